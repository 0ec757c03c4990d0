#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# takes: 60
"""Checks over https: a separate process makes them, and runs only while there are such checks. The servers may be malicious."""
import atexit
import json
import os
import socket
import ssl
import subprocess
import threading
import time
import urllib.parse

from lib import api, case, helper, trace
from lib.nomad_server import make_certificates

S = 10**9
MIB = 1 << 20
MANY = 100


def check(name, port, path="/ok", timeout=60, **more):
    return {"Name": name, "Type": "http", "Protocol": "https", "Path": path, "PortLabel": str(port), "Interval": S, "Timeout": timeout * S,
            **more}


class Peer:
    """A server at .port with a thread for each connection. cert None: without TLS."""

    def __init__(self, cert=None, serve=None, host="127.0.0.1"):
        self.context, self.names, self.connections = None, [], 0
        if cert:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(*cert)
            self.context.sni_callback = lambda connection, name, context: self.names.append(name)
        self.serve = serve or answer
        self.socket = socket.create_server((host, 0), backlog=256)
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            threading.Thread(target=self.talk, args=(self.socket.accept()[0],), daemon=True).start()

    def talk(self, s):
        self.connections += 1
        try:
            with (self.context.wrap_socket(s, server_side=True) if self.context else s) as connection:
                self.serve(connection)
        except OSError:
            pass  # the client may disconnect at any time, or reject the certificate


def read_request(s):
    """Returns the words of its first line, its headers and its body."""
    head = b""
    while b"\r\n\r\n" not in head:
        part = s.recv(65536)
        if not part:
            raise OSError("no request")
        head += part
    head, _, body = head.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    while len(body) < int(headers.get("Content-Length", 0)):
        body += s.recv(65536)
    return first.split(), headers, body


def say(s, status, headers="", body=b""):
    s.sendall(("HTTP/1.1 %s\r\n%sContent-Length: %d\r\n\r\n" % (status, headers, len(body))).encode() + body)


def answer(s):
    (method, path, _), headers, body = read_request(s)
    if path == "/ok":
        say(s, "200 OK", body=b"fine" if method != "HEAD" else b"")
    elif path == "/sick":
        say(s, "503 Service Unavailable", body=b"sick")
    elif path == "/post":
        good = (method, body, headers.get("X-Who"), headers["Host"]) == ("POST", b"x" * 4096, "me", "a.example")
        say(s, "200 OK" if good else "400 Bad Request", body=repr((method, headers)).encode())
    elif path.startswith("/to/"):
        say(s, "302 Found", "Location: %s\r\n" % urllib.parse.unquote(path[len("/to/"):]))
    elif path == "/big":
        s.sendall(b"HTTP/1.1 500 Internal Server Error\r\n\r\n")
        for _ in range(100):
            s.sendall(b"x" * MIB)
    elif path == "/lines":
        for _ in range(1000):
            s.sendall(b"HTTP/1.1 200 OK\r\n" + b"A: " + b"b" * 1000 + b"\r\n")
    elif path == "/noise":
        s.sendall(os.urandom(65536))
    elif path == "/cut":
        s.sendall(b"HTTP/1.1 201 Created\r\n\r\nno length, and no word at the end")
    else:
        never(s)


def to(place):
    """Returns a path that is redirected to this URL."""
    return "/to/" + urllib.parse.quote(place, "")


def never(s):
    """Reads without an answer until the client disconnects."""
    while s.recv(65536):
        pass


def noise(s):
    s.recv(1)
    s.sendall(os.urandom(65536))


def half(s):
    """Sends the beginning of a TLS record and never the rest."""
    s.sendall(b"\x16\x03\x03\x40\x00" + b"\x02")
    never(s)


def service(checks, **more):
    return {"Name": "web", "PortLabel": "1", "Provider": "nomad", "Address": "127.0.0.1", "Checks": checks, **more}


def register(name, services):
    node.register(api.job(name, group={"Services": services}))
    return node.wait_running(name)[0]


def checks_of(alloc):
    return {c["Check"]: c for c in (node.ask("/v1/client/allocation/%s/checks" % alloc["ID"]) or {}).values()}


def wait_check(alloc, name, status, output=""):
    """Waits until the check has this status and its output begins with this text. Returns the check."""
    seen = {}

    def look():
        seen.update(checks_of(alloc).get(name, {}))
        return seen.get("Status") == status and seen["Output"].startswith(output) and dict(seen)
    try:
        return case.until(look, 120, "check %s to be %s" % (name, status))
    except AssertionError as e:
        raise AssertionError("%s; it is %r" % (e, seen)) from None


def check_helper():
    return node.processes().get("check-helper")


def pss_kb(pid):
    with open("/proc/%d/smaps_rollup" % pid, encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("Pss:"))


def test_check_helper_is_not_started_before_the_first_https_check():
    alloc = register("plain", [service([dict(check("plain", plain_http.port), Protocol="http")])])
    wait_check(alloc, "plain", "success")
    case.equal(check_helper(), None, "check-helper")
    node.purge("plain")


def test_checks_report_their_results():
    # A string of a job has at most 4096 bytes, so many headers make a long request.
    long = ["x" * 4000] * 10
    post = check("post", good.port, "/post", Method="POST", Body="x" * 4096,
                 Header={"X-Who": ["me"], "Host": ["a.example"], "X-Long": long})
    checks = [check("good", good.port), check("head", good.port, Method="HEAD"), post, check("cut", good.port, "/cut"),
              check("named", good.port, TLSServerName="localhost"), check("skipped", stranger.port, TLSSkipVerify=True),
              check("to-itself", good.port, to("/ok")), check("to-plain", good.port, to("http://127.0.0.1:%d/ok" % plain_http.port)),
              dict(check("from-plain", plain_http.port, to("https://127.0.0.1:%d/ok" % good.port)), Protocol="http"),
              check("sick", good.port, "/sick"), check("big", good.port, "/big"),
              check("stranger", stranger.port), check("misnamed", good.port, TLSServerName="other.example"),
              check("no-tls", banner.port), check("mute", mute.port, timeout=5), check("half", halfway.port, timeout=5),
              check("never", good.port, "/never", timeout=5), check("noise", noisy.port), check("lines", good.port, "/lines"),
              check("noise-within", good.port, "/noise"), check("closed", closed), check("away", good.port, to("https://example.org/")),
              check("long", good.port, Method="POST", Header={"X-Long": long, "X-Longer": long})]
    alloc = register("checked", [service(checks), service([check("elsewhere", second.port)], Name="other", Address="127.0.0.2")])
    for name in ("good", "head", "post", "named", "skipped", "to-itself", "to-plain", "from-plain"):
        found = wait_check(alloc, name, "success")
        case.equal((found.get("StatusCode"), found["Output"]), (200, "nomad: http ok"), name)
    case.equal(set(stranger.names), {None}, "SNI names for checks without tls_server_name")
    case.contains(good.names, "localhost", "SNI names")
    case.equal(wait_check(alloc, "cut", "success")["StatusCode"], 201)
    for name, status, output in (("sick", 503, "sick"), ("big", 500, "x" * 3072)):
        found = wait_check(alloc, name, "failure", output[:1])
        case.equal((found["StatusCode"], found["Output"]), (status, output), name)
    get, refused = 'nomad: GET "https://127.0.0.1:%d%s": ', "the server's certificate is refused: "
    for name, port, path, output in (
            ("stranger", stranger.port, "/ok", refused), ("misnamed", good.port, "/ok", refused + "hostname mismatch"),
            ("no-tls", banner.port, "/ok", "the server does not speak TLS"),
            ("mute", mute.port, "/ok", "TLS handshake: no answer within the timeout of 5s"),
            ("half", halfway.port, "/ok", "TLS handshake: no answer within the timeout of 5s"),
            ("never", good.port, "/never", "no answer within the timeout of 5s"),
            ("noise", noisy.port, "/ok", ""), ("lines", good.port, "/lines", "malformed HTTP response: "),
            ("noise-within", good.port, "/noise", "malformed HTTP response: "),
            ("closed", closed, "/ok", "dial tcp 127.0.0.1:%d: connect: connection refused" % closed),
            ("away", good.port, to("https://example.org/"), '"example.org" is no IP address')):
        found = wait_check(alloc, name, "failure", get % (port, path) + output)
        case.equal(found.get("StatusCode", 0), 0, name)
    wait_check(alloc, "long", "failure", 'nomad: POST "https://127.0.0.1:%d/ok": a request over https has at most' % good.port)
    wait_check(alloc, "elsewhere", "failure",
               'nomad: GET "https://127.0.0.2:%d/ok": %sIP address mismatch' % (second.port, refused))
    print("    %d checks, check-helper: %d KB PSS" % (len(checks) + 1, pss_kb(check_helper())))
    node.purge("checked")


def signed(name, names, key=("ec", "-pkeyopt", "ec_paramgen_curve:P-256")):
    """Makes a certificate of our authority with the subject localhost and these subjectAltNames."""
    directory, ca, ca_key = os.path.dirname(certificates["ca"][0]), *certificates["ca"]
    cert, private, request, more = (os.path.join(directory, name + end) for end in (".pem", ".key", ".csr", ".ext"))
    with open(more, "w", encoding="ascii") as f:
        f.write("subjectAltName=%s\n" % names)
    for words in (("req", "-newkey", *key, "-nodes", "-subj", "/CN=localhost", "-keyout", private, "-out", request),
                  ("x509", "-req", "-in", request, "-CA", ca, "-CAkey", ca_key, "-CAcreateserial", "-days", "2", "-extfile", more,
                   "-out", cert)):
        subprocess.run(["openssl", *words], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    return cert, private


def test_a_name_must_be_in_the_subject_alt_name():
    """A name that is only in the subject is refused, and so is a wildcard for a part of a label."""
    subject, part = Peer(signed("subject", "email:a@example.org")), Peer(signed("part", "DNS:web*.example.org"))
    whole = Peer(signed("whole", "DNS:*.example.org"))
    alloc = register("named", [service([
        check("subject", subject.port, TLSServerName="localhost"), check("whole", whole.port, TLSServerName="web1.example.org"),
        check("part", part.port, TLSServerName="web1.example.org")])])
    wait_check(alloc, "whole", "success")
    for name, port in (("subject", subject.port), ("part", part.port)):
        wait_check(alloc, name, "failure",
                   'nomad: GET "https://127.0.0.1:%d/ok": the server\'s certificate is refused: hostname mismatch' % port)
    node.purge("named")


def test_a_server_cannot_choose_a_key_exchange_that_is_expensive():
    """Finite-field Diffie-Hellman is refused, as a cipher of TLS 1.2 and as a group of TLS 1.3."""
    cert, key = signed("integers", "DNS:localhost", ("rsa:2048",))
    older = Peer((cert, key))
    older.context.maximum_version = ssl.TLSVersion.TLSv1_2
    older.context.set_ciphers("DHE-RSA-AES256-GCM-SHA384")
    parameters = os.path.dirname(cert) + "/dh.pem"
    subprocess.run(["openssl", "genpkey", "-genparam", "-algorithm", "DH", "-pkeyopt", "group:ffdhe2048", "-out", parameters], check=True)
    older.context.load_dh_params(parameters)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    # With -www openssl answers every request with a page about the connection.
    newer = subprocess.Popen(["openssl", "s_server", "-accept", "127.0.0.1:%d" % port, "-cert", cert, "-key", key, "-www", "-quiet",
                              "-tls1_3", "-groups", "ffdhe8192"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
    try:
        alloc = register("integers", [service([check("older", older.port, TLSServerName="localhost"),
                                               check("newer", port, TLSServerName="localhost")])])
        for name, at in (("older", older.port), ("newer", port)):
            wait_check(alloc, name, "failure", 'nomad: GET "https://127.0.0.1:%d/ok": TLS handshake: ' % at)
        node.purge("integers")
    finally:
        newer.kill()
        newer.wait()


def test_a_killed_check_helper_fails_its_checks_and_is_restarted():
    asked_before = mute.connections
    alloc = register("killed", [service([check("fine", good.port), check("hangs", mute.port, timeout=600)])])
    wait_check(alloc, "fine", "success")
    case.until(lambda: mute.connections > asked_before, 60, "the request that hangs")
    for _ in range(3):
        before = mute.connections
        node.kill("check-helper")
        wait_check(alloc, "hangs", "failure",
                   'nomad: GET "https://127.0.0.1:%d/ok": check-helper, which asks over TLS, has ended' % mute.port)
        # The next process makes both requests again, after the kill.
        case.until(lambda n=before: mute.connections > n, 60, "another request")
        asked = time.time()
        case.until(lambda t=asked: checks_of(alloc)["fine"]["Timestamp"] > t, 60, "an attempt after the kill")
        wait_check(alloc, "fine", "success")
    node.purge("killed")


def test_many_checks_at_once():
    checks = [check("c%d" % i, good.port, timeout=100, Interval=4 * S) for i in range(MANY)]
    alloc = register("many", [service(checks)])
    case.until(lambda: [c["Status"] for c in checks_of(alloc).values()] == ["success"] * MANY, 120, "%d checks to pass" % MANY)
    print("    %d checks, check-helper: %d KB PSS" % (MANY, pss_kb(check_helper())))
    case.equal(trace.status(check_helper())["Threads"], "1", "threads")
    node.purge("many")


def test_checks_beyond_the_limit_of_simultaneous_requests_wait():
    """Three hundred checks without an answer are all made and none is refused; a check without TLS does not wait for them."""
    silent = socket.create_server(("127.0.0.1", 0), backlog=1024)
    port = silent.getsockname()[1]
    alloc = register("queued", [service([check("q%d" % i, port, timeout=5) for i in range(300)])])
    plain = register("beside", [service([dict(check("plain", plain_http.port), Protocol="http")])])
    wait_check(plain, "plain", "success")

    def failed():
        found = list(checks_of(alloc).values())
        return len(found) == 300 and all(c["Status"] == "failure" for c in found)
    case.until(failed, 240, "all of them to have been tried")
    case.equal([line for line in node.log().splitlines() if "too many" in line], [], "checks that were refused")
    node.purge("queued", 90)
    node.purge("beside", 90)
    silent.close()


def test_checks_that_are_redirected_to_https_wait_too():
    """The first request is without TLS and is redirected to https at an address that does not answer: none is refused."""
    silent = socket.create_server(("127.0.0.1", 0), backlog=1024)
    place = to("https://127.0.0.1:%d/ok" % silent.getsockname()[1])
    alloc = register("led", [service([dict(check("r%d" % i, plain_http.port, place, timeout=5), Protocol="http") for i in range(300)])])

    def tried():
        found = [c for c in checks_of(alloc).values() if c["Status"] != "pending"]
        case.equal([c["Output"] for c in found if "too many" in c["Output"]], [], "checks that were refused")
        return len(found) == 300
    case.until(tried, 240, "all of them to have been tried")
    case.equal([line for line in node.log().splitlines() if "too many" in line], [], "checks that were refused")
    node.purge("led", 90)
    silent.close()


def test_an_idle_check_helper_ends_and_is_started_again():
    case.until(lambda: not check_helper(), 120, "check-helper, which has nothing to do, to end")
    case.contains(node.ask("/v1/agent/self")["stats"]["processes"]["check-helper"], "pid 0,")
    wait_check(register("again", [service([check("good", good.port)])]), "good", "success")
    node.purge("again")


def write_authorities(*names):
    """Replaces the file by another, as update-ca-certificates does."""
    with open("/etc/ssl/certs/new", "wb") as made:
        for name in names:
            with open(name, "rb") as one:
                made.write(one.read())
    os.rename("/etc/ssl/certs/new", "/etc/ssl/certs/ca-certificates.crt")


def test_a_list_of_authorities_that_changes():
    """The new list is used although checks are always in progress, so that the process never ends by itself."""
    ours, other = certificates["ca"][0], os.path.dirname(certificates["ca"][0]) + "/other-ca.pem"
    alloc = register("renewed", [service([check("good", good.port), check("stranger", stranger.port)])])
    refused = 'nomad: GET "https://127.0.0.1:%d/ok": the server\'s certificate is refused: ' % stranger.port
    try:
        wait_check(alloc, "good", "success")
        wait_check(alloc, "stranger", "failure", refused)
        write_authorities(ours, other)
        wait_check(alloc, "stranger", "success")
        write_authorities(ours)
        wait_check(alloc, "stranger", "failure", refused)
        wait_check(alloc, "good", "success")
    finally:
        write_authorities(ours)
    node.purge("renewed")


def test_a_missing_list_of_authorities_is_reported():
    os.rename("/etc/ssl/certs/ca-certificates.crt", "/etc/ssl/certs/away")
    with api.Node() as other:
        try:
            other.register(api.job("poor", group={"Services": [service([check("verified", good.port),
                                                                        check("skipped", good.port, TLSSkipVerify=True)])]}))
            alloc = other.wait_running("poor")[0]

            def look():
                found = {c["Check"]: (c["Status"], c["Output"]) for c in
                         (other.ask("/v1/client/allocation/%s/checks" % alloc["ID"]) or {}).values()}
                return found.get("skipped") == ("success", "nomad: http ok") and \
                    "this machine has no list of certificate authorities" in found.get("verified", ("", ""))[1]
            case.until(look, 90, "both checks")
            other.purge("poor")
        finally:
            os.rename("/etc/ssl/certs/away", "/etc/ssl/certs/ca-certificates.crt")


def test_invalid_https_checks_are_refused():
    for wrong, text in (({"Protocol": "ftp"}, 'protocol must be "http" or "https", not "ftp"'),
                        ({"TLSServerName": "x" * 254}, "tls_server_name is too long")):
        node.refused(400, text, "POST", "/v1/jobs", api.job("refused", group={"Services": [service([dict(check("c", 1), **wrong)])]}))


def test_no_leaks_are_left():
    case.equal(json.loads(node.request("GET", "/v1/agent/leaks").body), [], "leaks")


certificates = make_certificates(case.directory(), names=("server", "stranger"))
# Replaces the machine's authorities by one of this test.
helper.mount("authorities", "/etc/ssl/certs", "tmpfs", 0)
with open("/etc/ssl/certs/ca-certificates.crt", "wb") as made, open(certificates["ca"][0], "rb") as ca:
    made.write(ca.read())
good, stranger = Peer(certificates["server"]), Peer(certificates["stranger"])
second = Peer(certificates["server"], host="127.0.0.2")
plain_http, mute, noisy, halfway = Peer(), Peer(serve=never), Peer(serve=noise), Peer(serve=half)
banner = Peer(serve=lambda s: s.sendall(b"SSH-2.0-none\r\n"))
atexit.register(helper.umount, "/etc/ssl/certs", 2)  # MNT_DETACH
held = socket.socket()  # an address without a listener that no other test uses
held.bind(("127.0.0.1", 0))
closed = held.getsockname()[1]
with api.Node() as node:
    case.run(globals())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# takes: 60
"""The API over TCP (ports { http }): what a client with a certificate or a token may do there, and that nobody else can do anything but read what is
open to everyone."""
import ctypes
import http.client
import json
import os
import re
import resource
import select
import signal
import socket
import ssl
import threading
import time

from lib import ROOT, agent, api, case, ipc, pour, websocket
from lib.nomad_server import make_certificates
from lib.watch import Watch, in_memory

PORT = 4646
FD_IPC, SYS_PIDFD_GETFD = 6, 438
LIBC = ctypes.CDLL(None, use_errno=True)
BASE = case.directory()
CERTS = make_certificates(BASE, names=("server", "client", "stranger"))
for _, key in CERTS.values():
    os.chmod(key, 0o600)
CA, (CERT, KEY) = CERTS["ca"][0], CERTS["server"]
TLS = 'tls {\n  http = true\n  ca_file = "%s"\n  cert_file = "%s"\n  key_file = "%s"\n  verify_https_client = %%s\n}\n' % (CA, CERT, KEY)
HTTP = 'ports {\n  http = %d\n}\naddresses {\n  http = "127.0.0.1"\n}\n' % PORT
ACL = "acl {\n  enabled = true\n}\n"
MUTUAL, TOKENS, PLAIN = HTTP + TLS % "true", HTTP + TLS % "false" + ACL, HTTP + ACL
ANONYMOUS = "Permission denied: a request over TCP needs a valid ACL token"


def node(config, **kwargs):
    return api.Node(agent.config_args(config + api.DISK), disk=True, **kwargs)


def context(client=None):
    c = ssl.create_default_context(cafile=CA)
    if client:
        c.load_cert_chain(*CERTS[client])
    return c


class Remote:
    """A client over TCP: .request() as of api.Node. plain: without TLS."""

    def __init__(self, client=None, plain=False, token=None, address="127.0.0.1"):
        self.context, self.token, self.address = None if plain else context(client), token, address

    def connect(self):
        s = socket.socket()
        s.settimeout(case.LEAST_S)
        s.bind((self.address, 0))
        s.connect(("127.0.0.1", PORT))
        return self.context.wrap_socket(s, server_hostname="localhost") if self.context else s

    def request(self, method, path, body=None, headers=None):
        c = http.client.HTTPConnection("localhost", PORT, timeout=case.LEAST_S)
        c.sock = self.connect()
        try:
            data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
            c.request(method, path, data, {**({"X-Nomad-Token": self.token} if self.token else {}), **(headers or {})})
            return api.Answer(c.getresponse())
        finally:
            c.close()

    def exchange(self, text):
        """Sends the text and returns everything that comes until the end."""
        found = b""
        with self.connect() as s:
            try:
                s.sendall(text)
                while more := s.recv(65536):
                    found += more
            except ConnectionError:
                pass
        return found


def paths():
    """Returns (method, path, permission) of each line of api_paths.def, with parameters filled in."""
    with open(ROOT + "/supervisor/http/api_paths.def", encoding="ascii") as f:
        rows = re.findall(r'^API_PATH\((\w+),\s+"([^"]+)",\s+\w+,\s+(\w+),', f.read(), re.M)
    case.equal(len(rows) > 100, True, "paths")
    for method, pattern, need in rows:
        path = re.sub(r":\w+|\*", "web", pattern)
        for each in {"ANY": ("GET", "PUT", "DELETE"), "PUT": ("PUT", "POST"), "GET": ("GET", "HEAD")}.get(method, (method,)):
            yield each, path, need


def test_a_client_with_a_certificate_uses_the_whole_api():
    with node(MUTUAL) as n:
        c = Remote("client")
        case.equal(c.request("POST", "/v1/jobs", api.job("web", "/bin/sh", ["-c", "echo hello; trap 'echo got' USR1; while :; do sleep 0.1; done"])).status, 200, "register")
        alloc = n.wait_running("web")
        alloc = n.allocs("web")[0]["ID"]
        case.equal(c.request("GET", "/v1/jobs").json, n.ask("/v1/jobs"), "the same as at the socket")
        n.wait_log("certificate /CN=client.global.nomad: 200")
        answer = c.request("PUT", "/v1/client/allocation/%s/signal" % alloc, {"Task": "t", "Signal": "SIGUSR1"})
        case.equal(answer.status, 200, answer.text)
        # Streams.
        with c.connect() as s:
            s.sendall(b"GET /v1/client/fs/logs/%s?task=t&type=stdout&follow=true&plain=true HTTP/1.1\r\nHost: x\r\n\r\n" % alloc.encode())
            found = b""
            while b"hello" not in found or b"got" not in found:
                found += s.recv(65536)
        for path in ("/v1/event/stream", "/v1/agent/monitor?log_level=debug"):
            with c.connect() as s:
                s.sendall(b"GET %s HTTP/1.1\r\nHost: x\r\n\r\n" % path.encode())
                found = s.recv(65536)
                case.equal(found[:15], b"HTTP/1.1 200 OK", path)
                n.register(api.job("other"))
                while b"Transfer-Encoding: chunked" not in found or len(found.split(b"\r\n\r\n", 1)[1]) < 10:
                    found += s.recv(65536)
        # A command: a websocket.
        with websocket.Exec(c, alloc, ["sh", "-c", "read x; echo got $x; exit 7"]) as ws:
            ws.type(b"one\n")
            case.equal(ws.end(), (b"got one\n", b"", {"exit_code": 7}), "a command")
        # Requests one after the other on one connection, and a blocking query.
        index = int(c.request("GET", "/v1/job/web").headers["X-Nomad-Index"])
        h = http.client.HTTPConnection("localhost", PORT, timeout=case.LEAST_S)
        h.sock = c.connect()
        for _ in range(3):
            h.request("GET", "/v1/job/web")
            case.equal(api.Answer(h.getresponse()).status, 200, "on one connection")
        h.request("GET", "/v1/job/web?index=%d&wait=1m" % index)
        n.do("DELETE", "/v1/job/web")
        case.equal(int(api.Answer(h.getresponse()).headers["X-Nomad-Index"]) > index, True, "the index of the blocking query")
        h.close()
        # Bodies.
        big = api.job("web")
        big["Job"]["Meta"] = {"x": "y" * 900000}
        case.equal(c.request("POST", "/v1/jobs", big).status, 200, "a large body")
        case.equal(c.request("POST", "/v1/jobs", b"x" * (2 << 20)).status, 413, "a body that is too large")
        case.equal(c.request("POST", "/v1/jobs", b"x").status, 400, "a body that is no JSON")
        case.equal(len(c.request("GET", "/v1/job/web").body) > 900000, True, "a large answer")


def test_without_its_certificate_nobody_is_heard():
    with node(MUTUAL) as n:
        before = n.request("GET", "/v1/jobs").headers["X-Nomad-Index"]
        for client in (None, "stranger"):
            for request in (b"GET /v1/agent/health", b"POST /v1/jobs", b"GET /v1/jobs"):
                try:
                    found = Remote(client).exchange(request + b" HTTP/1.1\r\nHost: x\r\nX-Nomad-Token: x\r\n\r\n")
                except ssl.SSLError as e:
                    case.contains(str(e), "alert")
                    continue
                case.equal(found, b"", "%s: %r" % (client, request))
        found = Remote(plain=True).exchange(b"GET /v1/jobs HTTP/1.1\r\nHost: x\r\n\r\n")
        case.equal((found[:12], b"https instead of http" in found, b"[]" in found), (b"HTTP/1.1 400", True, False), "without TLS")
        case.equal(n.request("GET", "/v1/jobs").headers["X-Nomad-Index"], before, "the index")
        case.equal(Remote("client").request("GET", "/v1/jobs").status, 200, "with it")


def test_what_an_anonymous_client_can_do():
    """Every path with every method, without a token and with invalid ones: nothing but GET of what is open to everyone."""
    for config, plain in ((TOKENS, False), (PLAIN, True)):
        with node(config) as n:
            refused = Remote(plain=plain).request("POST", "/v1/acl/bootstrap")
            case.equal((refused.status, refused.headers["Connection"]), (401, "close"), "the first token: " + refused.text)
            answer = Remote(plain=plain, token="x").request("POST", "/v1/acl/bootstrap")
            case.equal((answer.status, "Permission denied" in answer.text), (403, True), answer.text)
            n.token = n.do("POST", "/v1/acl/bootstrap")["SecretID"]
            # Even if the policy named "anonymous" permits everything at the control socket.
            n.do("POST", "/v1/acl/policy/anonymous", {"Name": "anonymous", "Rules": 'namespace "*" { policy = "write" } node { policy = "write" } agent { policy = "write" }'})
            n.register(api.job("web"))
            n.wait_running("web")
            alloc = n.allocs("web")[0]["ID"]
            management, n.token = n.token, None
            case.equal(n.request("GET", "/v1/jobs").status, 200, "an anonymous client of the control socket")
            n.token = management
            before = n.request("GET", "/v1/jobs").headers["X-Nomad-Index"]
            for token in (None, "00000000-0000-0000-0000-000000000000", "anonymous", "x" * 3000):
                c = Remote(plain=plain, token=token)
                for method, path, need in paths():
                    answer = c.request(method, path.replace("/allocation/web", "/allocation/" + alloc), b"{}" if method in ("PUT", "POST") else None)
                    opened = need == "ACL_OPEN" and method in ("GET", "HEAD")
                    case.equal(answer.status in (401, 403), not opened, "%s %s with %s: %d %s" % (method, path, token and token[:40], answer.status, answer.text))
                if not plain and not token:
                    case.contains(c.request("GET", "/v1/jobs").text, ANONYMOUS)
            case.equal(n.request("GET", "/v1/jobs").headers["X-Nomad-Index"], before, "the index: nothing has changed")
            # What a header says about the sender counts for nothing.
            for header in ("X-Forwarded-For: 127.0.0.1", "X-Client-Certificate: /CN=client.global.nomad", "Connection: X-Nomad-Token", "X-Real-Uid: 0"):
                found = Remote(plain=plain).exchange(b"GET /v1/jobs HTTP/1.1\r\nHost: x\r\n%s\r\n\r\n" % header.encode())
                case.equal(found[:12], b"HTTP/1.1 403", header)
            # A second request on a connection whose first was permitted.
            found = Remote(plain=plain).exchange(b"GET /v1/agent/health HTTP/1.1\r\nHost: x\r\n\r\nPOST /v1/system/gc HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
            case.equal((found.count(b"HTTP/1.1 200"), found.count(b"HTTP/1.1 403")), (1, 1), "two requests at once: %r" % found)
            # With a token.
            c = Remote(plain=plain, token=management)
            case.equal(c.request("DELETE", "/v1/job/web?purge=true").status, 200, "with the token")
            n.wait_log("DELETE /v1/job/:id of web by 127.0.0.1:")
            n.do("POST", "/v1/acl/policy/reads", {"Name": "reads", "Rules": 'namespace "default" { policy = "read" }'})
            limited = n.do("POST", "/v1/acl/token", {"Name": "r", "Type": "client", "Policies": ["reads"]})["SecretID"]
            case.equal(Remote(plain=plain, token=limited).request("GET", "/v1/jobs").status, 200, "a token that permits it")
            case.equal(Remote(plain=plain, token=limited).request("POST", "/v1/jobs", api.job("x")).status, 403, "a token without that permission")


def test_the_token_of_a_task_is_none_over_tcp():
    with node(TOKENS) as n:
        n.token = n.do("POST", "/v1/acl/bootstrap")["SecretID"]
        n.register(api.job("web", Identity={"Env": True}))
        n.wait_running("web")
        env = agent.environment(n, "web") if hasattr(agent, "environment") else None
        if env is None:
            pid = next(int(p) for p in os.listdir("/proc") if p.isdigit() and b"NOMAD_TOKEN=" in environ(p))
            env = dict(pair.split(b"=", 1) for pair in environ(pid).split(b"\0") if b"=" in pair)
        answer = Remote(token=env[b"NOMAD_TOKEN"].decode()).request("GET", "/v1/jobs")
        case.equal((answer.status, "needs a valid ACL token" in answer.text), (403, True), answer.text)
        n.purge("web")
    with node(MUTUAL + ACL) as n:  # nor does a certificate make it one
        n.token = n.do("POST", "/v1/acl/bootstrap")["SecretID"]
        n.register(api.job("web", Identity={"Env": True}))
        n.wait_running("web")
        pid = next(int(p) for p in os.listdir("/proc") if p.isdigit() and b"NOMAD_TOKEN=" in environ(p))
        env = dict(pair.split(b"=", 1) for pair in environ(pid).split(b"\0") if b"=" in pair)
        own = "/v1/var/nomad/jobs/web"
        for token, status in ((env[b"NOMAD_TOKEN"].decode(), 403), (n.token, 404)):
            case.equal(Remote("client", token=token).request("GET", own).status, status, "a variable of the task's job")
        n.purge("web")


def environ(pid):
    try:
        with open("/proc/%s/environ" % pid, "rb") as f:
            return f.read()
    except OSError:
        return b""


def test_requests_that_could_be_understood_in_two_ways_are_refused():
    with node(MUTUAL):
        c = Remote("client")
        post = b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\n"
        for status, text in ((400, post + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
                             (400, post + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello"), (400, post + b"Transfer-Encoding: gzip, chunked\r\n\r\n"),
                             (400, b"GET /v1/jobs HTTP/1.1\nHost: x\n\n"), (400, b"GET /v1/jobs HTTP/1.1\r\nHost: x\r\n X: y\r\n\r\n"),
                             (400, b"GET http://x/v1/jobs HTTP/1.1\r\nHost: x\r\n\r\n"), (405, b"CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n"),
                             (405, b"TRACE / HTTP/1.1\r\nHost: x\r\n\r\n"), (431, b"GET / HTTP/1.1\r\nX: " + b"y" * 9000), (417, post + b"Expect: 200-ok\r\n\r\n"),
                             (505, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")):
            case.equal(c.exchange(text)[:12], b"HTTP/1.1 %d" % status, repr(text[:100]))


def test_configurations_that_would_obey_everyone_are_refused():
    unsafe, plain = "the API at %s would obey everyone who can reach it: set tls { http = true verify_https_client = true }, or acl { enabled = true }", \
        "the API at %s needs TLS: set tls { http = true }, or addresses { http = \"127.0.0.1\" }"
    here, everywhere = "127.0.0.1:%d" % PORT, ":%d" % PORT
    for text, sentence in ((HTTP, unsafe % here), (HTTP + TLS % "false", unsafe % here), ("ports { http = %d }\n" % PORT + ACL, plain % everywhere),
                           ('bind_addr = "0.0.0.0"\nports { http = %d }\n' % PORT + ACL, plain % everywhere),
                           ('addresses { http = "192.0.2.1" }\n' + ACL, plain % "192.0.2.1:4646"),
                           ('addresses { http = "{{ GetPrivateIP }}" }\n' + ACL, "addresses.http: expected an address such as"),
                           (HTTP + 'tls { http = true verify_https_client = true cert_file = "/a" key_file = "/b" }\n', "tls.verify_https_client is on, but tls.ca_file is not set"),
                           (HTTP + ACL + "tls { http = true }\n", "tls.http is on, but tls.cert_file is not set")):
        with agent.Agent(agent.config_args(text)) as a:
            case.until(lambda a=a: a.process.poll() is not None, 10, "the end of the agent")
            case.contains(a.log(), sentence)
    with node("bind_addr = \"0.0.0.0\"\n") as n:
        case.equal("listener" in n.processes(), False, "without ports and addresses there is no API over TCP")


class Impostor:
    """Talks to the supervisor in the place of the listener, which is stopped."""

    def __init__(self, n):
        self.pid = n.processes()["listener"]
        os.kill(self.pid, signal.SIGSTOP)
        pidfd = os.pidfd_open(self.pid)
        fd = LIBC.syscall(SYS_PIDFD_GETFD, pidfd, FD_IPC, 0)
        os.close(pidfd)
        self.ipc, self.number = ipc.Channel(socket.socket(fileno=fd)), 1000

    def link(self, **more):
        self.number += 1
        self.ipc.send("LIS_WANT_EV", {"link": self.number, **more})
        packet = self.ipc.recv()
        s = socket.socket(fileno=packet.take_fd())
        s.setblocking(True)
        s.settimeout(case.LEAST_S)
        return s

    def ask(self, text, **more):
        found = b""
        with self.link(**more) as s:
            try:
                s.sendall(text)
                while more := s.recv(65536):
                    found += more
            except ConnectionError:
                pass
        return found

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ipc.close()
        os.kill(self.pid, signal.SIGCONT)


def test_an_attacker_in_the_listener_is_nobody_where_tokens_count():
    """A certificate that the listener claims counts only if the configuration asks for one; the listener's own user never counts."""
    close = b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    with node(TOKENS) as n:
        case.equal(Remote().request("GET", "/v1/agent/health").status, 200, "before")
        with Impostor(n) as i:
            for certificate in ("", "/CN=client.global.nomad", "root"):
                for request in (b"GET /v1/jobs", b"POST /v1/jobs", b"POST /v1/acl/bootstrap", b"PUT /v1/system/gc"):
                    found = i.ask(request + close, api=True, address="127.0.0.1:1", certificate=certificate)
                    case.equal(found[:12], b"HTTP/1.1 403", "%r with %s" % (request, certificate))
            case.contains(i.ask(b"GET /v1/agent/health" + close, api=True, address="x").decode(), " 200 OK")
            case.contains(i.ask(b"GET /v1/jobs" + close).decode(), " 403 ", "by a link for health")
            held = [i.link(api=True, address="x") for _ in range(300)]
            case.equal(n.request("GET", "/v1/agent/health").status, 200, "an operator")
            for s in held:
                s.close()
    health = 'health {\n  address = "127.0.0.1:4648"\n}\n'
    with node(health) as n:
        with socket.create_connection(("127.0.0.1", 4648)) as s:
            s.sendall(b"GET /v1/agent/health" + close)
            case.contains(s.recv(65536).decode(), " 200 OK")
        pid = n.processes()["listener"]
        with Impostor(n) as i:
            i.number += 1
            i.ipc.send("LIS_WANT_EV", {"link": i.number, "api": True, "address": "x"})
            case.equal(i.ipc.recv(), None, "the API, which the configuration does not have: the connection is closed")
        case.until(lambda: n.processes().get("listener") != pid, 10, "another listener")


def test_of_a_body_nothing_is_read_before_its_sender_is_known():
    with node(PLAIN) as n:
        n.token = n.do("POST", "/v1/acl/bootstrap")["SecretID"]
        head = b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 1073741824\r\n"
        for more, status in ((b"X-Nomad-Token: junk\r\n", 403), (b"X-Nomad-Token: junk\r\nExpect: 100-continue\r\n", 403), (b"", 401)):
            with Remote(plain=True).connect() as s:  # the body never comes
                s.sendall(head + more + b"\r\n")
                found = s.recv(65536)
                case.equal((found[:12], b"Connection: close\r\n" in found), (b"HTTP/1.1 %d" % status, True), "%r: %r" % (more, found))
        with Remote(plain=True).connect() as s:  # nor does that of the second request on a connection
            s.sendall(b"GET /v1/agent/health HTTP/1.1\r\nHost: x\r\n\r\n" + head + b"\r\n")
            found = b""
            while more := s.recv(65536):
                found += more
            case.equal((found.count(b"HTTP/1.1 200"), found.count(b"HTTP/1.1 403")), (1, 1), repr(found))
        with Remote(plain=True).connect() as s:  # nor that of a request that is open to everyone
            s.sendall(b"GET /v1/agent/health HTTP/1.1\r\nHost: x\r\n\r\nGET /v1/agent/health HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n")
            found = b""
            while more := s.recv(65536):
                found += more
            case.equal((found.count(b"HTTP/1.1 200"), found.count(b"HTTP/1.1 413")), (1, 1), repr(found))
        with Remote(plain=True).connect() as s:
            s.sendall(head + b"X-Nomad-Token: junk\r\n\r\n")
            sent = 0
            try:
                while sent < 64 << 20:
                    sent += s.send(b"x" * 65536)
            except ConnectionError:
                pass
            print("    a client without a valid token could send %d KiB" % (sent >> 10))
            case.equal(sent < 16 << 20, True, "no more than the buffers of the kernel hold: %d bytes" % sent)
        answer = Remote(plain=True, token=n.token).request("POST", "/v1/jobs", b"x" * 900000)
        case.equal(answer.status, 400, "with its token the whole body is read: " + answer.text)


def test_bodies_of_a_gibibyte_fill_no_memory():
    """Of a client who may send one, a part is read, so that it gets the answer."""
    for config, remote, limit in ((PLAIN, Remote(plain=True), 16), (MUTUAL, Remote("client"), 96)):
        with node(config) as n:
            for chunked in (False, True):
                n.request("GET", "/v1/agent/health")
                with pour.Peak(n.wait_process("listener"), n.wait_process("supervisor")) as peak, remote.connect() as s:
                    sent, answer = pour.pour(s, "POST /v1/jobs", chunked=chunked)
                print("    %s%s: %d KiB sent, %d KiB more memory, %r" % (
                    "anonymous" if limit == 16 else "client", ", chunked" if chunked else "", sent >> 10, peak.kb, answer))
                case.equal((sent < limit << 20, peak.kb < 8192, answer == "" or answer[9] in "45"), (True, True, True), repr(answer))
                case.equal(n.request("GET", "/v1/agent/health").status, 200, "afterwards")


def test_nobody_without_a_proof_ends_the_connection_of_another():
    with node(PLAIN) as n:
        n.token = n.do("POST", "/v1/acl/bootstrap")["SecretID"]
        kept = []
        for _ in range(10):
            h = http.client.HTTPConnection("localhost", PORT, timeout=case.LEAST_S)
            h.sock = Remote(plain=True).connect()
            h.request("GET", "/v1/jobs", headers={"X-Nomad-Token": n.token})
            case.equal(h.getresponse().read(), b"[]", "its first request")
            kept.append(h)
        silent_s, began, held, answers = 3, time.monotonic(), [], set()
        while time.monotonic() < began + silent_s or len(held) < 600:  # longer than a connection has to be silent to make room
            s = Remote(plain=True, address="127.0.1.%d" % (1 + len(held) % 50)).connect()
            s.sendall(b"GET /v1/agent/health HTTP/1.1\r\nHost: x\r\n\r\n")
            try:
                answers.add(s.recv(65536)[9:12])
            except ConnectionError:
                answers.add(b"")
            held.append(s)
            if len(held) % 100 == 0:
                time.sleep(0.2)
        case.contains(str(answers), "200")
        for h in kept:
            h.request("GET", "/v1/jobs", headers={"X-Nomad-Token": n.token})
            case.equal(h.getresponse().read(), b"[]", "the next request on its connection, beside %d others" % len(held))
        for s in held:
            s.close()


def test_a_listener_that_takes_no_links_fills_no_table():
    with node(TOKENS) as n:
        case.equal(Remote().request("GET", "/v1/agent/health").status, 200, "before")
        pid, most = n.processes()["supervisor"], 0
        with Impostor(n) as i:
            for _ in range(5000):
                i.number += 1
                i.ipc.send("LIS_WANT_EV", {"link": i.number, "api": True, "address": "x"})
                most = max(most, len(os.listdir("/proc/%d/fd" % pid)))
            case.equal(n.request("GET", "/v1/agent/health").status, 200, "an operator")
            case.until(lambda: select.select([], [i.ipc.sock], [], 0)[1], 10, "everything to be read")
        print("    the supervisor had %d descriptors at most" % most)
        case.equal(most < 800, True, "descriptors: %d" % most)
        case.equal(n.processes()["supervisor"], pid, "the supervisor")


def test_ten_thousand_connections_and_slow_clients_disturb_nobody():
    """Another client repeats a request whose connection made room for others; no single call holds the supervisor's loop."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (12000, max(12000, resource.getrlimit(resource.RLIMIT_NOFILE)[1])))
    with in_memory() as data, node(PLAIN, data=data) as n:
        n.token = n.do("POST", "/v1/acl/bootstrap")["SecretID"]
        pids = {name: n.wait_process(name) for name in ("listener", "supervisor")}
        c = Remote(plain=True, token=n.token, address="127.0.2.1")
        texts = (b"GET /v1/agent/health HTTP/1.1\r\n", b"\x16\x03\x01\x02\x00", b"GET /v1/agent/health HTTP/1.1\r\nHost: x\r\n\r\n",
                 b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nX-Nomad-Token: junk\r\nContent-Length: 1073741824\r\n\r\n" + b"x" * 30000,
                 b"GET /v1/jobs HTTP/1.1\r\nHost: x\r\nX-Nomad-Token: junk\r\n\r\n")
        held, tries = [], []
        with Watch(n):
            for i in range(10000):
                s = socket.socket()
                s.bind(("127.0.1.%d" % (1 + i % 100), 0))
                s.connect(("127.0.0.1", PORT))
                s.setblocking(False)
                try:
                    s.send(texts[i % len(texts)])
                except OSError:
                    pass  # it was closed to make room
                held.append(s)
                if i % 500 == 499:
                    case.equal(n.request("GET", "/v1/jobs").status, 200, "an operator")
                    case.until(lambda: answered(c, tries), 20, "an answer to another client")
        kb = {name: pss_kb(pids[name]) for name in ("listener", "supervisor")}
        print("    beside 10,000 connections another client got %d answers to %d requests; PSS in KB: %s" % (tries.count(200), len(tries), kb))
        case.equal(kb["listener"] < 32 << 10 and kb["supervisor"] < 64 << 10, True, "memory: %s" % kb)
        for s in held:
            s.close()
        case.until(lambda: c.request("GET", "/v1/jobs").status == 200, 40, "an answer afterwards")
        case.equal({name: n.processes()[name] for name in kb}, pids, "processes")


def answered(c, tries):
    """A request that made room for another, or found none, is repeated."""
    try:
        tries.append(c.request("GET", "/v1/jobs").status)
    except (OSError, http.client.HTTPException):
        tries.append(0)
    return tries[-1] == 200


def pss_kb(pid):
    with open("/proc/%d/smaps_rollup" % pid, encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("Pss:"))


def test_a_stream_whose_client_does_not_read_fills_no_memory():
    with node(MUTUAL) as n:
        n.register(api.job("web", "/bin/sh", ["-c", "yes | head -c 30000000; sleep 1000"]))
        n.wait_running("web")
        alloc = n.allocs("web")[0]["ID"]
        path = b"GET /v1/client/fs/logs/%s?task=t&type=stdout&follow=true&plain=true HTTP/1.1\r\nHost: x\r\n\r\n" % alloc.encode()
        held = []
        for _ in range(20):
            held.append(Remote("client").connect())
            held[-1].sendall(path)
        before = n.processes()["supervisor"]
        threads = [threading.Thread(target=lambda: [Remote("client").request("GET", "/v1/jobs") for _ in range(20)]) for _ in range(3)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        print("    PSS with 20 clients that do not read: %d KB" % pss_kb(n.processes()["listener"]))
        case.equal(pss_kb(n.processes()["listener"]) < 16 << 10, True, "memory of the listener")
        case.equal(n.processes()["supervisor"], before, "the supervisor")
        for s in held:
            s.close()
        n.purge("web")


case.run(globals())

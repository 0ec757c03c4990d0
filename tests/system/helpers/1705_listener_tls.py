#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# takes: 60
"""The listener alone, with TLS and a token: whose requests it answers, and what others may send instead of a handshake."""
import os
import resource
import socket
import ssl
import warnings

from lib import case, helper
from lib.listener import BODY, CONNECTIONS, HEALTH, Listener
from lib.nomad_server import make_certificates

TOKEN = "c2a1b2e4-7f0d-4e6b-9d5f-1234567890ab"
BASE = case.directory()
CERTS = make_certificates(BASE, names=("server", "client", "stranger"))
CA, (CERT, KEY), TOKEN_FILE = CERTS["ca"][0], CERTS["server"], BASE + "/token"
with open(TOKEN_FILE, "w", encoding="ascii") as token_file:
    token_file.write(TOKEN + "\n")


def config(ca=False, token=False, tls=True):
    names = [("ca_file", CA)] * ca + [("cert_file", CERT), ("key_file", KEY)]
    block = "tls { %s }" % "\n".join('%s = "%s"' % pair for pair in names) if tls else ""
    return 'health {\n  address = "127.0.0.1:4648"\n%s\n%s\n}\n' % (block, 'token_file = "%s"' % TOKEN_FILE if token else "")


def files(ca=False, token=False, tls=True):
    """In the order of enum config_file; a file that is not configured must not be used."""
    return ["/dev/null"] * 3 + [CA if ca else "/dev/null", CERT if tls else "/dev/null", KEY if tls else "/dev/null", TOKEN_FILE if token else "/dev/null"]


def context(client=None, newest=None):
    c = ssl.create_default_context(cafile=CA)
    if client:
        c.load_cert_chain(*CERTS[client])
    if newest:
        c.maximum_version = newest
    return c


def listener(client=None, newest=None, plain=False, **kwargs):
    return Listener(config(**kwargs), files(**kwargs), None if plain else context(client, newest))


def test_requests_over_tls():
    for newest in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        with listener(newest=newest) as l:
            status, text, _ = l.get()
            case.equal((status, text), (200, BODY.decode()), "the answer")
            l.answer = l.make(b"x" * (8 << 20))
            case.equal(len(l.get("/v1/metrics")[1]), 8 << 20, "a large answer")
            l.answer = l.make(BODY)
            found = l.exchange(HEALTH * 3 + HEALTH.replace(b"Host", b"Connection: close\r\nHost"))
            case.equal(found.count(b"HTTP/1.1 200 OK\r\n"), 4, "answers to requests that were sent in one record")
            big = HEALTH.replace(b"Host", b"X: " + b"y" * 7000 + b"\r\nHost")
            found = l.exchange(big * 2 + HEALTH.replace(b"Host", b"Connection: close\r\nHost"))
            case.equal(found.count(b"HTTP/1.1 200 OK\r\n"), 3, "answers to requests that fill the buffer")
            case.equal(l.exchange(b"GET /v1/jobs HTTP/1.0\r\n\r\n")[:12], b"HTTP/1.1 404", "another path")
    old = context()
    warnings.simplefilter("ignore", DeprecationWarning)
    old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
    old.set_ciphers("ALL:@SECLEVEL=0")
    with listener() as l:
        l.context = old
        case.raises(ssl.SSLError, l.connect)


def refused(l):
    """Returns whether a connection ends without an answer. With TLS 1.3 the client learns at its first read what the server thinks of its certificate."""
    try:
        return l.exchange(HEALTH) == b""
    except ssl.SSLError as e:
        return "alert" in str(e)


def test_with_a_ca_only_clients_with_its_certificate_are_answered():
    with listener(ca=True) as l:
        for client, answered in ((None, False), ("stranger", False), ("client", True), ("server", True)):
            l.context = context(client)
            if answered:
                case.equal(l.get()[0], 200, client)
            else:
                case.equal(refused(l), True, "refused: %s" % client)
        case.equal(len(l.asked), 2, "questions")


def test_a_token():
    wrong = ({}, {"Authorization": "Bearer x"}, {"Authorization": "Bearer " + TOKEN[:-1]}, {"Authorization": "Bearer " + TOKEN + "x"},
             {"Authorization": "Basic " + TOKEN}, {"Authorization": TOKEN}, {"Authorization": "Bearer "}, {"X-Nomad-Token": ""},
             {"X-Token": TOKEN}, {"Cookie": "token=" + TOKEN})
    for tls in (True, False):
        with listener(token=True, tls=tls, plain=not tls) as l:
            for headers in wrong:
                for path in ("/v1/agent/health", "/v1/agent/health?deep=1", "/v1/metrics", "/v1/jobs", "/v1/metrics?token=" + TOKEN):
                    status, _, r = l.get(path, headers=headers)
                    case.equal((status, r.headers["WWW-Authenticate"], r.headers["Connection"]), (401, "Bearer", "close"), "%s with %s" % (path, headers))
            case.equal(l.asked, [], "what the supervisor was asked")
            for headers in ({"Authorization": "Bearer " + TOKEN}, {"authorization": "bearer " + TOKEN}, {"X-Nomad-Token": TOKEN}):
                case.equal(l.get("/v1/agent/health?deep=1", headers=headers)[0], 200, str(headers))
            case.equal([TOKEN in text for text in l.asked], [False] * 3, "whether the token reaches the supervisor")
            both = HEALTH.replace(b"Host", b"X-Nomad-Token: %s\r\nAuthorization: Bearer %s\r\nHost" % (TOKEN.encode(), TOKEN.encode()))
            case.equal(l.exchange(both)[:12], b"HTTP/1.1 400", "two tokens")
            case.equal(TOKEN in l.h.log(), False, "the token in the log")


def test_files_that_cannot_be_used_are_named():
    for name, text, sentence in (("cert", "x", "health.tls.cert_file: expected a certificate in PEM"), ("key", "x", "health.tls.key_file: expected a private key"),
                                 ("token", "short", "health.token_file: expected one line of 16 to 256 printable characters without spaces"),
                                 ("token", "with spaces in the token", "health.token_file: expected one line"),
                                 ("token", "x" * 257, "health.token_file: expected one line"), ("token", "two-lines-of-text\ntwo-lines-of-text\n", "health.token_file: expected")):
        path = BASE + "/bad"
        with open(path, "w", encoding="ascii") as f:
            f.write(text)
        given = files(token=True)
        given[{"cert": 4, "key": 5, "token": 6}[name]] = path
        closed(given, sentence)
    given = files()
    given[5] = CERTS["client"][1]
    closed(given, "health.tls.key_file does not belong to the certificate")


def closed(given, sentence):
    """The address is closed to everyone, by one line in the log, and the process goes on: it would be started again and again."""
    with Listener(config(token=True), given) as l:
        for _ in range(3):
            case.equal(l.exchange(HEALTH), b"", "an answer")
        case.equal(l.h.log().count(sentence), 1, l.h.log())
        case.contains(l.h.log(), "connections to this address are closed until the file is right and the configuration is reloaded")


def test_what_is_no_handshake():
    garbage = (b"\x16\x03\x01\xff\xff" + b"\xff" * 70000, b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\xff", b"\x80\x2e\x01\x00\x02" + b"\0" * 50, b"\x15\x03\x01\x00\x02\x02\x28",
               b"\x17\x03\x03\x00\x10" + b"\0" * 16, b"\0" * 1000, b"\x80" + os.urandom(100000), b"\x16\x03\x03\x40\x00" + b"\x01\x02\x00\x00" + b"\0" * 16380)
    with listener() as l:
        tls, l.context = l.context, None
        for text in garbage:
            found = l.exchange(text)
            case.equal(found[:1] in (b"", b"\x15"), True, "an alert or nothing: %r" % found[:50])
        found = l.exchange(HEALTH)
        case.equal(found[:12], b"HTTP/1.1 400", "a client without TLS")
        case.contains(found.decode(), "this address needs TLS: https instead of http\n")
        l.context = tls
        case.equal(l.get()[0], 200, "afterwards")
        case.equal(len(l.asked), 1, "questions")


def test_handshakes_of_ten_thousand_connections_have_limits():
    """A record that promises a large ClientHello, of a hundred addresses: other clients are answered meanwhile."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (12000, max(12000, resource.getrlimit(resource.RLIMIT_NOFILE)[1])))
    with listener() as l:
        case.equal(l.get()[0], 200, "before")
        tls, empty_kb, most, held = l.context, l.pss_kb(), 0, []
        for i in range(10000):
            l.context = None
            s = l.connect("127.0.1.%d" % (1 + i % 100))
            try:
                s.sendall((b"\x16\x03\x01\x40\x00\x01\x01\xff\xf0\x03\x03" + b"\x01" * 16000, b"\x16", b"")[i % 3])
            except OSError:
                pass  # it was closed to make room
            held.append(s)
            if i % 500 == 0:
                l.context = tls
                case.equal(l.get(address="127.0.2.1")[0], 200, "another client, beside %d" % i)
                most = max(most, l.pss_kb())
        print("    10,000 handshakes: %d KB PSS at most, %d KB before" % (most, empty_kb))
        case.equal(most < empty_kb + 128 * 1024, True, "%d KB" % most)
        case.equal(len(os.listdir("/proc/%d/fd" % l.h.pid)) <= CONNECTIONS + 30, True, "descriptors")
        for s in held:
            s.close()
        l.context = tls
        case.equal(l.get()[0], 200, "afterwards")


def test_a_slow_handshake_is_ended():
    with listener() as l:
        tls, l.context = l.context, None
        s = l.connect()
        s.setblocking(False)

        def ended_now():
            try:
                s.send(b"\x16\x03\x01\x02\x00"[:1])
                return s.recv(1) == b""
            except BlockingIOError:
                return False
            except OSError:
                return True
        case.until(ended_now, 40, "the end of a handshake of single bytes")
        s.close()
        l.context = tls
        case.equal(l.get()[0], 200, "afterwards")


def test_an_endless_handshake_costs_others_nothing():
    """Half-open clients that vanish after their hello."""
    with listener() as l:
        tls = l.context
        for _ in range(50):
            incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
            o = tls.wrap_bio(incoming, outgoing, server_hostname="localhost")
            case.raises(ssl.SSLWantReadError, o.do_handshake)
            l.context = None
            with l.connect() as s:
                s.sendall(outgoing.read())
                s.recv(1)
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            l.context = tls
        case.equal(l.get()[0], 200, "afterwards")


case.run(globals())

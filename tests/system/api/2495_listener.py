#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# takes: 30
"""The TCP address of health { address }: what can be requested there, and that neither its clients nor a listener under an attacker's control
disturb the agent."""
import ctypes
import http.client
import os
import re
import resource
import signal
import socket

from lib import agent, api, case, ipc, pour
from lib.watch import Watch, in_memory

PORT = 4648
FD_IPC, SYS_PIDFD_GETFD = 6, 438
LIBC = ctypes.CDLL(None, use_errno=True)
CONFIG = 'health {\n  address = "127.0.0.1:%d"\n}\n'
HEALTH = b"GET /v1/agent/health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


def node(port=PORT, more="", **kwargs):
    return api.Node(agent.config_args(CONFIG % port + more + api.DISK), disk=True, **kwargs)


def get(path, method="GET", port=PORT, address="127.0.0.1", body=None, headers=None):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=case.LEAST_S, source_address=(address, 0))
    try:
        c.request(method, path, body, headers or {})
        return api.Answer(c.getresponse())
    finally:
        c.close()


def listens(pid):
    """Returns the local ports of TCP sockets that the process listens on."""
    inodes = {int(m.group(1)) for m in map(re.compile(r"socket:\[(\d+)\]").match, agent.descriptors(pid)) if m}
    with open("/proc/net/tcp", encoding="ascii") as f:
        rows = [line.split() for line in f][1:]
    return [int(row[1].split(":")[1], 16) for row in rows if row[3] == "0A" and int(row[9]) in inodes]


def test_without_an_address_there_is_neither_a_process_nor_a_socket():
    with api.Node() as n:
        case.equal("listener" in n.processes(), False, "the process")
        case.equal(listens(n.pid), [], "sockets of the launcher")


def test_health_and_nothing_else():
    with node() as n:
        answer = get("/v1/agent/health")
        own = n.request("GET", "/v1/agent/health")
        case.equal((answer.status, answer.json), (own.status, own.json), "the same as at the control socket")
        case.equal(get("/v1/agent/health", "HEAD").body, b"", "HEAD")
        case.equal(get("/v1/agent/health?type=client").status, n.request("GET", "/v1/agent/health?type=client").status, "one type")
        n.register(api.job("web"))
        for path in ("/", "/v1/jobs", "/v1/agent/self", "/v1/agent/monitor", "/v1/allocations", "/v1/agent/health/x"):
            answer = get(path)
            case.equal((answer.status, answer.text), (404, "only /v1/agent/health and /v1/metrics are answered at this address\n"), path)
        for method in ("POST", "PUT", "DELETE", "PATCH"):
            case.equal(get("/v1/agent/health", method, body=b"x").status, 405, method)
        case.equal((listens(n.pid), listens(n.processes()["listener"]), listens(n.processes()["supervisor"])), ([PORT], [PORT], []), "who listens")


def test_a_probe_as_at_the_control_socket():
    with node() as n:
        answer = get("/v1/agent/health?deep=1")
        case.equal((answer.status, set(answer.json["components"])), (200, set(n.request("GET", "/v1/agent/health?deep=1").json["components"])))
        case.equal("helper/listener" in answer.json["components"], True)
        pid = n.kill("heartbeat", signal.SIGSTOP)
        try:
            answer = get("/v1/agent/health?deep=1")
        finally:
            os.kill(pid, signal.SIGCONT)
        case.equal((answer.status, answer.json["client"]["ok"], answer.json["components"]["helper/heartbeat"]["state"]), (503, False, "hung"))


def test_metrics_as_at_the_control_socket():
    """The values differ from one request to the next, the names do not."""
    names = re.compile(r"^# TYPE (\S+)", re.M)
    with node(more="telemetry {\n  prometheus_metrics = true\n}\n") as n:
        n.register(api.job("web"))
        n.wait_running("web")
        for path, headers in (("/v1/metrics?format=prometheus", {}), ("/v1/metrics?format=openmetrics", {}), ("/v1/metrics", {"Accept": "text/plain"}),
                              ("/v1/metrics", {"Accept": "application/openmetrics-text; version=1.0.0, */*;q=0.1"})):
            def names_are_equal(path=path, headers=headers):
                """Some metrics exist only after the second sample."""
                own, answer = n.request("GET", path, headers=headers), get(path, headers=headers)
                case.equal((answer.status, answer.headers["Content-Type"]), (200, own.headers["Content-Type"]), path)
                found = set(names.findall(answer.text))
                return len(found) > 10 and found == set(names.findall(own.text))
            case.until(names_are_equal, 10, "the same metrics of " + path)
        case.equal(sorted(get("/v1/metrics").json), sorted(n.ask("/v1/metrics")), "members in JSON")
        n.purge("web")


def test_an_address_that_cannot_be_bound_ends_the_start_with_a_sentence():
    for text, sentence in (('"127.0.0.1"', "health.address: expected an address and a port"), ('"localhost:80"', "health.address: expected"),
                           ('"127.0.0.1:70000"', "health.address: expected"), ('"127.0.0.1:0"', "health.address: expected"),
                           ('"192.0.2.1:80"', "listen on 192.0.2.1:80: Cannot assign requested address")):
        with agent.Agent(agent.config_args("health { address = %s }\n" % text)) as a:
            case.until(lambda: a.process.poll() is not None, 10, "the end of the agent")
            case.contains(a.log(), sentence)


def test_no_restart_refuses_a_connection():
    with node() as n:
        for name in ("listener", "supervisor"):
            old = n.wait_process("listener")
            n.kill(name)
            agent.wait_gone([old])  # what it had accepted is lost
            with socket.create_connection(("127.0.0.1", PORT), case.LEAST_S) as s:  # it waits in the launcher's queue
                s.sendall(HEALTH)
                case.contains(s.recv(65536).decode(), "HTTP/1.1 200 OK\r\n", "after the end of " + name)
            case.equal(n.processes()["listener"] != old, True, "a new process")


def test_a_new_configuration_moves_the_address():
    with node() as n:
        with open(n.args[1], "w", encoding="utf-8") as f:
            f.write(CONFIG % (PORT + 1) + api.DISK)
        os.kill(n.pid, signal.SIGHUP)
        n.wait_log("configuration reloaded")
        case.equal(get("/v1/agent/health", port=PORT + 1).status, 200, "at the new address")
        case.raises(ConnectionRefusedError, get, "/v1/agent/health")
        with socket.socket() as other:  # the address of another program
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            other.bind(("127.0.0.1", PORT))
            other.listen(1)
            with open(n.args[1], "w", encoding="utf-8") as f:
                f.write(CONFIG % PORT + api.DISK)
            os.kill(n.pid, signal.SIGHUP)
            n.wait_log("listen on 127.0.0.1:%d: Address already in use; the agent keeps its current configuration" % PORT)
        case.equal(get("/v1/agent/health", port=PORT + 1).status, 200, "at the address that it keeps")
        with open(n.args[1], "w", encoding="utf-8") as f:
            f.write(api.DISK)
        os.kill(n.pid, signal.SIGHUP)
        case.until(lambda: listens(n.pid) == [], 10, "the socket to be closed")
        n.wait_log("configuration reloaded", times=2)
        n.wait_ready()
        case.until(lambda: "listener" not in n.processes(), 10, "the end of the listener")


def test_a_stopped_supervisor_is_reported_in_time():
    with node() as n:
        case.equal(get("/v1/agent/health").status, 200, "before")
        pid = n.processes()["supervisor"]
        os.kill(pid, signal.SIGSTOP)
        try:
            answer = get("/v1/agent/health")
        finally:
            os.kill(pid, signal.SIGCONT)
        case.equal((answer.status, answer.text), (503, "the agent did not answer within 10 seconds\n"), "meanwhile")
        case.until(lambda: get("/v1/agent/health").status == 200, 10, "an answer afterwards")


def test_ten_thousand_connections_do_not_disturb_the_agent():
    """The supervisor answers others, and no single call holds its loop."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (12000, max(12000, resource.getrlimit(resource.RLIMIT_NOFILE)[1])))
    with in_memory() as data, node(data=data) as n:
        n.register(api.job("web"))
        n.wait_running("web")
        case.equal(get("/v1/agent/health").status, 200, "before")
        pids = n.processes()
        held = []
        with Watch(n):
            for i in range(10000):
                s = socket.socket()
                s.bind(("127.0.1.%d" % (1 + i % 100), 0))
                s.connect(("127.0.0.1", PORT))
                try:
                    s.sendall((b"GET /v1/agent/health HTTP/1.1\r\n", b"\x16\x03\x01\x02\x00", HEALTH, b"X" * 8000)[i % 4])
                except OSError:
                    pass  # it was closed to make room
                held.append(s)
                if i % 1000 == 999:
                    case.equal(n.request("GET", "/v1/jobs").status, 200, "an operator")
                    case.equal(get("/v1/agent/health").status, 200, "another client")
        for s in held:
            s.close()
        case.equal({name: n.processes()[name] for name in ("supervisor", "listener")}, {name: pids[name] for name in ("supervisor", "listener")}, "processes")
        n.purge("web")


def test_bodies_of_a_gibibyte_are_not_read():
    with node() as n:
        for request in ("POST /v1/agent/health", "GET /v1/agent/health", "PUT /v1/jobs"):
            for chunked in (False, True):
                case.equal(get("/v1/agent/health").status, 200, "before")
                with pour.Peak(n.processes()["listener"], n.processes()["supervisor"]) as peak, socket.create_connection(("127.0.0.1", PORT)) as s:
                    sent, answer = pour.pour(s, request, chunked=chunked)
                print("    %s%s: %d KiB sent, %d KiB more memory, %r" % (request, ", chunked" if chunked else "", sent >> 10, peak.kb, answer))
                case.equal((sent < 16 << 20, peak.kb < 2048, answer == "" or answer[9] == "4"), (True, True, True), "%s: %r" % (request, answer))
        case.equal(get("/v1/agent/health").status, 200, "afterwards")


class Impostor:
    """Talks to the supervisor in the place of the listener, which is stopped."""

    def __init__(self, n):
        self.pid = n.processes()["listener"]
        os.kill(self.pid, signal.SIGSTOP)
        pidfd = os.pidfd_open(self.pid)
        fd = LIBC.syscall(SYS_PIDFD_GETFD, pidfd, FD_IPC, 0)
        os.close(pidfd)
        self.ipc = ipc.Channel(socket.socket(fileno=fd))
        self.number, self.held, self.sockets, self.open = 1000, [], [], 0

    def ask(self, text):
        """Sends a request by a new link. Returns what comes until its end."""
        self.number += 1
        self.ipc.send("LIS_WANT_EV", {"link": self.number})
        packet = self.ipc.recv()
        case.equal(packet["link"], self.number, "the number of the link")
        found = b""
        with socket.socket(fileno=packet.take_fd()) as s:
            s.setblocking(True)
            s.settimeout(case.LEAST_S)
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


def test_an_attacker_in_the_listener_reaches_only_health_and_metrics():
    """The supervisor gives it links, and answers nothing else there."""
    with node() as n:
        n.register(api.job("secret"))
        case.equal(get("/v1/agent/health").status, 200, "before")
        with Impostor(n) as i:
            for request in (b"GET /v1/jobs", b"GET /v1/job/secret", b"GET /v1/agent/self", b"POST /v1/jobs", b"PUT /v1/agent/health", b"GET /v1/var/x",
                            b"POST /v1/agent/health", b"GET /v1/agent/health/../../v1/jobs", b"GET /v1/agent/monitor", b"OPTIONS *"):
                text = i.ask(request + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                case.equal(text[:12] in (b"HTTP/1.1 400", b"HTTP/1.1 403", b"HTTP/1.1 404"), True, "%r: %r" % (request, text[:200]))
                case.equal(b"secret" in text, False, "whether it shows the job")
            case.contains(i.ask(b"GET /v1/agent/health HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx").decode(), " 403 ", "a body")
            case.contains(i.ask(HEALTH).decode(), " 200 OK")
            # More links than it needs: they do not take the place of operators.
            for _ in range(1000):
                i.number += 1
                i.ipc.send("LIS_WANT_EV", {"link": i.number})
                i.held.append(i.ipc.recv().take_fd())
            for fd in i.held:
                s = socket.socket(fileno=fd)
                s.setblocking(False)
                try:
                    i.open += s.recv(1) != b""
                except BlockingIOError:
                    i.open += 1
                i.sockets.append(s)
            case.equal(i.open, 16, "open links")
            case.equal(n.request("GET", "/v1/jobs").status, 200, "an operator")
            for s in i.sockets:
                s.close()
            case.contains(i.ask(HEALTH).decode(), " 200 OK", "afterwards")
        case.equal(n.log().count("which is not permitted") > 0, True, "lines about it in the log")


case.run(globals())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""API streams from servers: their events, and files, logs and commands of other nodes."""
import base64
import json
import os
import threading

from lib import case
from lib.cluster import node_of, servers as cluster
from lib.websocket import Closed, Exec, Refused

ELSEWHERE = "99999999-9999-4999-8999-999999999999"
LOGS = "/v1/client/fs/logs/%s?task=t&type=stdout" % ELSEWHERE
SECONDS = 60


def data(payload):
    return {"Error": None, "Payload": payload}


def error(code, message):
    return {"Error": {"Message": message, "Code": code}, "Payload": None}


class Answer:
    """An answer that arrives in parts: its status, and the body received so far."""

    def __init__(self, path, after=None, **headers):
        self.after = servers.last_call() if after is None else after
        self.socket, self.seen = node.connect(), b""
        self.socket.settimeout(case.LEAST_S)
        words = "".join("%s: %s\r\n" % h for h in headers.items())
        self.socket.sendall(("GET %s HTTP/1.0\r\n%s\r\n" % (path, words)).encode())

    def asked(self, method):
        """Returns the call as the servers received it."""
        found = servers.wait_call(method, self.after)[0]
        self.id = found["stream"]
        return found["args"]

    def begin(self):
        while b"\r\n\r\n" not in self.seen:
            self.more()
        head, _, self.seen = self.seen.partition(b"\r\n\r\n")
        return int(head.split()[1]), head.decode().lower()

    def more(self):
        part = self.socket.recv(65536)
        case.equal(part != b"", True, "the answer ended after %r" % self.seen)
        self.seen += part

    def until(self, text):
        while text not in self.seen:
            self.more()

    def rest(self):
        while part := self.socket.recv(65536):
            self.seen += part
        return self.seen

    def say(self, *frames, **raw):
        servers.say_asked(self.id, list(frames), **raw)

    def over(self):
        """Waits until the agent has closed the stream. Returns how."""
        return case.until(lambda: servers.hear_asked(self.id, 1, 1)["over"], SECONDS, "the end of the stream")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()


def test_logs_of_another_node_are_streamed():
    with Answer(LOGS + "&follow=true&offset=7&origin=end", **{"X-Nomad-Token": "a token"}) as a:
        args = a.asked("FileSystem.Logs")
        case.equal({k: args[k] for k in ("AllocID", "Task", "LogType", "Follow", "Offset", "Origin", "PlainText", "AuthToken", "Region")},
                   {"AllocID": ELSEWHERE, "Task": "t", "LogType": "stdout", "Follow": True, "Offset": 7, "Origin": "end",
                    "PlainText": False, "AuthToken": "a token", "Region": "global"})
        a.say(data(b'{"Data":"eA=="}'))
        status, head = a.begin()
        case.equal((status, "content-type: application/json" in head), (200, True), head)
        a.until(b'{"Data":"eA=="}')
        a.say(data(b"{}"), data(b'{"File":"f"}'))
        a.until(b'{}{"File":"f"}')
        servers.end_asked(a.id)
        case.equal(a.rest(), b'{"Data":"eA=="}{}{"File":"f"}')
        case.equal(a.over(), "end")
    with Answer(LOGS + "&plain=true") as a:
        case.equal(a.asked("FileSystem.Logs")["PlainText"], True)
        servers.end_asked(a.id)
        status, head = a.begin()
        case.equal((status, "content-type: text/plain" in head, a.rest()), (200, True, b""), head)


def test_a_client_that_disconnects_before_the_first_frame():
    for path in (LOGS, "/v1/event/stream"):
        with Answer(path) as a:
            a.asked("FileSystem.Logs" if path == LOGS else "Event.Stream")
        case.equal(a.over(), "end")


def test_events_of_servers_are_streamed():
    with Answer("/v1/event/stream?topic=Node&topic=Job:a&topic=Job:b&index=12&namespace=*") as a:
        args = a.asked("Event.Stream")
        case.equal((args["Topics"], args["Index"], args["Namespace"]), ({"Node": ["*"], "Job": ["a", "b"]}, 12, "*"))
        a.say({"Error": None, "Event": {"Data": b'{"Index":13}'}}, {"Error": None, "Event": {"Data": b"{}"}})
        case.equal(a.begin()[0], 200)
        a.until(b'{"Index":13}\n{}\n')
    case.equal(a.over(), "end", "the end of the stream at the servers")
    with Answer("/v1/event/stream") as a:
        case.equal(a.asked("Event.Stream")["Topics"], {"*": ["*"]})
        servers.end_asked(a.id)
    for bad in ("topic=a:b:c", "index=x"):
        with Answer("/v1/event/stream?" + bad) as a:
            case.equal(a.begin()[0], 400)


def test_logs_of_other_agents_are_streamed():
    with Answer("/v1/agent/monitor?node_id=%s&log_level=debug&log_json=true" % ELSEWHERE) as a:
        args = a.asked("Agent.Monitor")
        case.equal((args["NodeID"], args["LogLevel"], args["LogJSON"]), (ELSEWHERE, "debug", True))
        servers.end_asked(a.id)
    with Answer("/v1/agent/monitor?server_id=leader") as a:
        args = a.asked("Agent.Monitor")
        case.equal((args["ServerID"], args["LogLevel"]), ("leader", "INFO"))
        servers.end_asked(a.id)
    with Answer("/v1/agent/monitor/export?service_name=x&node_id=%s" % ELSEWHERE) as a:
        args = a.asked("Agent.MonitorExport")
        case.equal((args["ServiceName"], args["LogsSince"]), ("x", "72h"))
        servers.end_asked(a.id)
    with Answer("/v1/agent/monitor/export?service_name=x") as a:
        case.equal(a.begin()[0], 400)
        case.contains(a.rest(), b"journalctl")
    id_ = servers.open_stream(me, "Agent.MonitorExport", {"NodeID": me, "ServiceName": "drover"})
    found = servers.read_stream(id_, 2, SECONDS)
    case.equal((len(found["frames"]), found["end"], found["frames"][0]["Error"]["Code"]), (1, True, 400))
    servers.close_stream(id_)


def test_errors_of_servers_are_passed_on():
    for frame, status in ((error(404, "no such log"), 404), (error(403, "Permission denied"), 403), (error(None, "odd"), 500),
                          (error(7, "odd"), 500), (error(None, "Permission denied"), 403)):
        with Answer(LOGS) as a:
            a.asked("FileSystem.Logs")
            a.say(frame)
            found = a.begin()[0], a.rest().decode()
            case.equal(found, (status, frame["Error"]["Message"]))
    servers.fault("error", "FileSystem.Logs", text="Unknown rpc method: FileSystem.Logs", times=1)
    with Answer(LOGS) as a:
        case.equal((a.begin()[0], a.rest()), (500, b"Unknown rpc method: FileSystem.Logs"))
    with Answer(LOGS) as a:
        a.asked("FileSystem.Logs")
        a.say(data(b"x"), error(500, "the disk is gone"))
        case.equal((a.begin()[0], a.rest()), (200, b"x"))
        case.equal(a.over(), "end")


def test_invalid_frames_are_errors():
    for raw in (b"\xc1" * 64, b"\x93\1\2\3", b"\xdf\xff\xff\xff\xff"):
        with Answer(LOGS) as a:
            a.asked("FileSystem.Logs")
            a.say(raw=raw)
            servers.end_asked(a.id)
            case.equal(a.begin()[0] >= 500, True)
    for shape in ("reserved", "not_a_map", "deep"):
        servers.fault("garbage", "FileSystem.Logs", shape=shape, times=1)
        with Answer(LOGS) as a:
            case.equal(a.begin()[0], 500)
    case.equal(node.request("GET", "/v1/agent/self").status, 200)


def test_a_client_that_does_not_read_blocks_only_its_stream():
    """Without memory for the waiting data; other streams continue."""
    with Answer(LOGS + "&plain=true") as a:
        a.asked("FileSystem.Logs")
        block, sent = os.urandom(1 << 16), 0
        before = rss_kb("supervisor"), rss_kb("heartbeat")
        filler = threading.Thread(target=lambda: [a.say(data(block)) for _ in range(96)], daemon=True)
        filler.start()
        case.until(lambda: servers.calls("Node.UpdateStatus"), SECONDS, "another beat")
        with Answer(LOGS) as other:
            other.asked("FileSystem.Logs")
            other.say(data(b"{}"))
            other.until(b"{}")
        case.equal(filler.is_alive(), True, "whether the server is blocked")
        grown = rss_kb("supervisor") - before[0], rss_kb("heartbeat") - before[1]
        case.equal(max(grown) < 4000, True, "KB: %s, %s" % grown)
        a.begin()
        while sent < 96 * len(block):
            sent += len(a.seen)
            a.seen = b""
            if sent < 96 * len(block):
                a.more()
        case.equal(sent, 96 * len(block))
        filler.join()


def test_streams_end_with_the_connection_or_heartbeat():
    for cause in (lambda: servers.drop(0), lambda: node.kill("heartbeat")):
        with Answer(LOGS) as a:
            a.asked("FileSystem.Logs")
            told = Answer(LOGS)
            told.asked("FileSystem.Logs")
            told.say(data(b"x"))
            told.begin()
            told.until(b"x")
            cause()
            case.equal(told.rest(), b"x")
            told.socket.close()
            case.equal(a.begin()[0], 500, "status of a stream without data")
        case.until(lambda: node.request("GET", "/v1/jobs").status == 200, SECONDS, "the servers to be reachable again")


def test_too_many_streams_are_refused():
    """Other requests are still answered."""
    after = servers.last_call()
    some = [Answer(LOGS, after) for _ in range(80)]
    found = servers.wait_call("FileSystem.Logs", after, count=80)
    with Answer(LOGS) as a:
        case.equal(a.begin()[0], 503)
    case.equal(node.request("GET", "/v1/jobs").status, 200)
    for call in found:
        servers.end_asked(call["stream"])
    for a in some:
        case.equal(a.begin()[0], 200)
        a.socket.close()
    with Answer(LOGS) as a:
        a.asked("FileSystem.Logs")
        servers.end_asked(a.id)
        case.equal(a.begin()[0], 200)


def test_a_command_on_another_node():
    after = servers.last_call()
    with Exec(node, ELSEWHERE, ["sh", "-c", "x"], tty=True) as s:
        call = servers.wait_call("Allocations.Exec", after)[0]
        args, id_ = call["args"], call["stream"]
        case.equal((args["AllocID"], args["Task"], args["Cmd"], args["Tty"]), (ELSEWHERE, "t", ["sh", "-c", "x"], True))
        s.say({"tty_size": {"height": 12, "width": 34}})
        s.type(b"one\0")
        s.say({})
        s.end_input()
        heard = servers.hear_asked(id_, 4, SECONDS)["objects"]
        case.equal([(h["TtySize"], h["Stdin"]) for h in heard],
                   [({"Height": 12, "Width": 34}, None), (None, {"Data": "one\0", "Close": False}), (None, None),
                    (None, {"Data": "", "Close": True})])
        out = {"stdout": {"data": base64.b64encode(b"said").decode()}}
        servers.say_asked(id_, [data(json.dumps(out).encode()), data(json.dumps({"exited": True, "result": {"exit_code": 3}}).encode())])
        servers.end_asked(id_)
        case.equal(s.end(), (b"said", b"", {"exit_code": 3}))
    after = servers.last_call()
    with Exec.of_action(node, "j", "greet", ELSEWHERE) as s:
        call = servers.wait_call("Allocations.Exec", after)[0]
        case.equal([call["args"][k] for k in ("JobID", "Action", "AllocID")], ["j", "greet", ELSEWHERE])
        servers.say_asked(call["stream"], [error(404, 'task "t" not started yet.')])
        case.equal(str(case.raises(Closed, s.recv)), '1008: task "t" not started yet.')
    after = servers.last_call()
    with Exec(node, ELSEWHERE, ["cat"]):
        id_ = servers.wait_call("Allocations.Exec", after)[0]["stream"]
    case.until(lambda: servers.hear_asked(id_, 1, 1)["over"], SECONDS, "the end of the stream of a disconnected user")
    e = case.raises(Refused, Exec, node, ELSEWHERE, ["true"], headers={"Upgrade": "h2c"})
    case.equal(e.status, 400)


def rss_kb(name):
    with open("/proc/%d/status" % node.processes()[name], encoding="ascii") as f:
        return int(f.read().partition("VmRSS:")[2].split()[0])


with cluster() as servers, node_of(servers) as node:
    me = servers.wait_node()["ID"]
    case.run(globals())

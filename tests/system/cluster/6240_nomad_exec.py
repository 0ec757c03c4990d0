# SPDX-License-Identifier: Apache-2.0
# takes: 36
"""Commands that servers run inside tasks: input, output, terminals, and clients that disconnect."""
import base64
import json
import os

from lib import case
from lib.cluster import job, node_of, servers as cluster
from lib.websocket import Exec, Refused

NOBODY = "99999999-9999-4999-8999-999999999999"
HEARTBEAT = {"Setup": None, "Stdin": None, "TtySize": None, "XXX_NoUnkeyedLiteral": {}, "XXX_unrecognized": None, "XXX_sizecache": 0}
SECONDS = 30


class Command:
    def __init__(self, *words, task="t", tty=False, **request):
        self.id = servers.open_stream(me, "Allocations.Exec", {"AllocID": alloc, "Task": task, "Cmd": list(words), "Tty": tty,
                                                               **request})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        servers.close_stream(self.id)

    def say(self, **more):
        servers.send_stream(self.id, {**HEARTBEAT, **more})

    def type(self, data):
        self.say(Stdin={"Data": data, "Close": False, "XXX_sizecache": 0})

    def end_input(self):
        self.say(Stdin={"Data": None, "Close": True})

    def frame(self):
        """Returns the next frame; None at the end."""
        found = servers.read_stream(self.id, 1, SECONDS)
        case.equal(found["late"], False, "no frame in time after %s" % found["frames"])
        return found["frames"][0] if found["frames"] else None

    def wait(self, text):
        out = b""
        while text not in out:
            out += base64.b64decode(json.loads(self.frame()["Payload"]).get("stdout", {}).get("data", ""))

    def end(self):
        """Returns stdout, stderr and the result, after which the stream ends."""
        said, result = {"stdout": b"", "stderr": b""}, None
        while result is None:
            frame = self.frame()
            case.equal(frame["Error"], None)
            message = json.loads(frame["Payload"])
            for stream in said:
                said[stream] += base64.b64decode(message.get(stream, {}).get("data", ""))
            result = message["result"] if message.get("exited") else None
        case.equal(self.frame(), None, "the frame after the result")
        return said["stdout"], said["stderr"], result

    def error(self):
        found = self.frame()["Error"]
        case.equal(self.frame(), None, "the frame after the result")
        return found["Code"], found["Message"]


def test_commands_with_pipes_and_terminals():
    with Command("sh", "-c", "read x; echo got $x; echo bad >&2; exit 7") as c:
        c.say()
        c.type(b"one\n")
        case.equal(c.end(), (b"got one\n", b"bad\n", {"exit_code": 7}))
    with Command("cat") as c:
        c.end_input()
        case.equal(c.end(), (b"", b"", {}))
    with Command("no-such-thing") as c:
        case.equal(c.end()[2], {"exit_code": 127})
    with Command("sh", tty=True) as c:
        c.say(TtySize={"Height": 12, "Width": 34, "XXX_sizecache": 0})
        c.type(b"stty size\r")
        c.wait(b"12 34")
        c.type(b"exit 3\r")
        case.equal(c.end()[2], {"exit_code": 3})


def test_invalid_requests_are_refused():
    for code, part, words, request in (
            (400, "must provide a valid alloc id", ["true"], {"AllocID": "x"}),
            (404, 'Unknown allocation "%s"' % NOBODY, ["true"], {"AllocID": NOBODY}),
            (400, "must provide task name", ["true"], {"task": ""}),
            (400, "command is not present", [], {}),
            (400, 'unknown task name "x"', ["true"], {"task": "x"})):
        with Command(*words, **request) as c:
            found = c.error()
            case.equal(found[0], code, found[1])
            case.contains(found[1], part)
    with Command("sleep", "1000") as c:
        servers.send_stream(c.id, ["no map"])
        case.equal(c.error()[0], 400)


def test_actions_of_a_task():
    named = {"JobID": "acting", "Action": "greet", "Cmd": None}
    those = servers.run_job(job("acting", Actions=[{"Name": "greet", "Command": "echo", "Args": ["hello", "there"]}]), me)
    servers.wait_alloc(those[0], ["running"])
    with Command(AllocID=those[0], **named) as c:
        case.equal(c.end(), (b"hello there\n", b"", {}))
    for wrong, text in (({"Action": "none"}, "action none not found in task t"),
                        ({"JobID": "a"}, "job a does not have allocation " + those[0])):
        with Command(**{"AllocID": those[0], **named, **wrong}) as c:
            case.equal(c.error(), (400, text))


def test_megabytes_in_both_directions():
    data = os.urandom(1 << 16)
    with Command("cat") as c:
        out = b""
        for _ in range(32):
            c.type(data)
            while len(out) < len(data):
                frame = json.loads(c.frame()["Payload"])
                out += base64.b64decode(frame.get("stdout", {}).get("data", ""))
            case.equal(out, data)
            out = b""
        c.end_input()
        case.equal(c.end(), (b"", b"", {}))


def test_a_client_that_disconnects_ends_its_command():
    mark = "mark-%d" % os.getpid()
    c = Command("sh", "-c", "trap '' HUP; echo up; sleep 1000; :", mark)
    c.wait(b"up")
    servers.close_stream(c.id)
    case.until(lambda: not case.pids_with(mark), SECONDS, "the end of the command")


def test_a_stream_without_heartbeats_ends_its_command():
    """The server does not close the stream: only its periodic empty objects stop."""
    mark = "mark-%d" % os.getpid()
    with Command("sh", "-c", "echo up; sleep 1000; :", mark) as c:
        c.wait(b"up")
        c.say()
        case.until(lambda: not case.pids_with(mark), 90, "the end of the command")


def test_tokens_at_the_agents_own_socket():
    """A raw_exec task is not isolated, so a session in it has the access of the node, which needs a capability of its own."""
    tokens = {name: "%08x-1111-4111-8111-111111111111" % i for i, name in enumerate(("boss", "enters", "enters-nodes"))}
    with cluster() as those, node_of(those, more="acl {\n  enabled = true\n}\n") as own:
        here = those.wait_node()["ID"]
        those.add_token(tokens["boss"], "management")
        for name, can in (("enters", '"alloc-exec"'), ("enters-nodes", '"alloc-exec", "alloc-node-exec"')):
            those.add_policy(name, 'namespace "default" { capabilities = [%s] }' % can)
            those.add_token(tokens[name], "client", [name])
        for driver, may in (("raw_exec", ("boss", "enters-nodes")), ("exec", ("boss", "enters", "enters-nodes"))):
            there = those.run_job(job(driver, driver=driver), here)[0]
            those.wait_alloc(there, ["running"])
            for name in ("", *tokens):
                headers = {"X-Nomad-Token": tokens[name]} if name else {}
                if name in may:
                    with Exec(own, there, ["echo", "in"], headers=headers) as s:
                        case.equal(s.end(), (b"in\n", b"", {}), "%s into %s" % (name, driver))
                else:
                    e = case.raises(Refused, Exec, own, there, ["echo", "in"], headers=headers)
                    case.equal(e.status, 403, "%s into %s: %s" % (name, driver, e))


with cluster() as servers, node_of(servers) as node:
    me = servers.wait_node()["ID"]
    alloc = servers.run_job(job("a"), me)[0]
    servers.wait_alloc(alloc, ["running"])
    case.run(globals())

# SPDX-License-Identifier: Apache-2.0
"""`alloc exec` through a whole agent: the websocket of the API, and the command at an operator's terminal."""
import base64
import fcntl
import hashlib
import json
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import threading
import urllib.parse

from lib import agent, api, binary, case
from lib.fake_api import FakeApi, alloc
from lib.websocket import CLOSE, PING, PONG, TEXT, Closed, Exec, Refused, Socket, frame

SECONDS = 90  # for operations that take milliseconds on an idle machine
BIG = 10 * 1000 * 1000
GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


def check(value, what):
    if not value:
        raise AssertionError(what)


def running(node, name, driver="raw_exec", **more):
    node.register(api.job(name, driver=driver, **more))
    return node.wait_running(name, seconds=SECONDS)[0]["ID"]


def rss_kb(pid):
    with open("/proc/%d/status" % pid, encoding="ascii") as f:
        return int(f.read().partition("VmRSS:")[2].split()[0])


# --- the websocket ---

def test_a_command_exchanges_frames():
    with api.Node() as node:
        for driver in ("raw_exec", "exec"):
            alloc = running(node, driver, driver, Env={"MARK": "of the task"})
            with Exec(node, alloc, ["sh", "-c", "read x; echo got $x, $MARK; echo bad >&2; exit 7"], ws_handshake="true") as s:
                s.say({"version": 1, "auth_token": ""})
                s.say({})
                s.type(b"one\n")
                case.equal(s.end(), (b"got one, of the task\n", b"bad\n", {"exit_code": 7}), driver)
            with Exec(node, alloc, ["cat"]) as s:
                s.end_input()
                case.equal(s.end(), (b"", b"", {}))
            with Exec(node, alloc, ["sh", "-c", "kill -KILL $$"]) as s:
                case.equal(s.end()[2], {"exit_code": 137, "signal": 9})
            with Exec(node, alloc, ["no-such-thing"]) as s:
                out, err, result = s.end()
                case.equal((out, result), (b"", {"exit_code": 127}))
                case.contains(err, b"drover: no-such-thing: run the command: No such file or directory\n")
            with Exec(node, alloc, ["/etc/passwd"]) as s:
                case.equal(s.end()[2], {"exit_code": 126})
            with Exec(node, alloc, ["sh"], tty=True) as s:
                s.say({"tty_size": {"height": 12, "width": 34}})
                s.type(b"stty size; tty; echo $TERM.\r")
                s.wait(b"xterm.")
                s.say({"tty_size": {"height": 21, "width": 43}})
                s.type(b"stty size\r")
                s.wait(b"21 43")
                s.end_input()  # ^D
                case.equal(s.end()[2], {})


def test_invalid_requests_are_refused():
    with api.Node() as node:
        alloc = running(node, "web")
        node.register(api.job("over", "/bin/true", []))
        over = case.until(lambda: [a for a in node.allocs("over") if a["ClientStatus"] in ("complete", "failed")], SECONDS, "end")[0]
        unknown = "00000000-0000-4000-8000-000000000000"

        def refused(status, text, alloc_id=alloc, command='["true"]', task="t", headers=(), **query):
            words = urllib.parse.urlencode({"task": task, "command": command, **query})
            e = case.raises(Refused, Socket, node, "/v1/client/allocation/%s/exec?%s" % (alloc_id, words), headers=headers)
            case.equal(e.status, status, e.text)
            case.contains(e.text, text)
        refused(400, "must provide a valid alloc id", "nonsense")
        refused(404, 'Unknown allocation "%s"' % unknown, unknown)
        refused(400, "must provide task name", task="")
        refused(400, 'unknown task name "x"', task="x")
        refused(404, 'task "t" is not running.', over["ID"])
        refused(400, "command is not present", command="[]")
        refused(400, "command is not present", command='[""]')
        for nonsense in ("{", '{"a":1}', "[1]", '["a\\u0000b"]', json.dumps(["x"] * 600)):
            refused(400, "command", command=nonsense)
        refused(400, "tty", tty="perhaps")
        refused(400, "websocket", headers={"Upgrade": "h2c"})
        refused(400, "websocket", headers={"Sec-WebSocket-Version": "8"})


def test_an_agent_with_disable_remote_exec_runs_no_commands():
    with api.Node(args=agent.config_args("client { disable_remote_exec = true }\n")) as node:
        alloc = running(node, "web")
        e = case.raises(Refused, Exec, node, alloc, ["true"])
        case.equal(e.status, 403, e.text)
        case.contains(e.text, "disable_remote_exec")
        case.equal(len(node.wait_running("web")), 1, "whether the task still runs")


def test_invalid_frames_close_the_connection():
    with api.Node() as node:
        alloc = running(node, "web")
        for bad, code in ((lambda s: s.send(TEXT, b"{}", mask=None), 1002), (lambda s: s.sock.sendall(b"\xc1\x80\0\0\0\0"), 1002),
                          (lambda s: s.sock.sendall(b"\x81\xff" + b"\0\0\1" + b"\0" * 9), 1009),
                          (lambda s: s.send(TEXT, b"garbage"), 1008), (lambda s: s.send(TEXT, b"[]"), 1008),
                          (lambda s: s.say({"stdin": {"data": "!"}}), 1008), (lambda s: s.send(CLOSE, b""), 1000)):
            with Exec(node, alloc, ["sleep", "1000"]) as s:
                bad(s)
                case.equal(case.raises(Closed, s.recv).code, code)
        with Exec(node, alloc, ["sleep", "1000"], ws_handshake="true") as s:
            s.say({"version": 2})
            e = case.raises(Closed, s.recv)
            case.equal((e.code, e.reason), (1008, "unexpected handshake value"))
        # One message in many frames, with a ping between them.
        with Exec(node, alloc, ["cat"]) as s:
            text = json.dumps({"stdin": {"data": base64.b64encode(b"whole").decode(), "close": True}}).encode()
            s.send(TEXT, text[:5], fin=False)
            s.send(PING, b"are you there")
            for byte in text[5:-1]:
                s.send(0, bytes([byte]), fin=False)
            s.send(0, text[-1:])
            case.equal(s.recv(), (PONG, b"are you there"))
            case.equal(s.end(), (b"whole", b"", {}))
        case.equal(node.allocs("web")[0]["ClientStatus"], "running")


def test_megabytes_pass_without_filling_memory():
    with api.Node() as node:
        alloc = running(node, "web", "exec")
        supervisor = node.processes()["supervisor"]
        data = os.urandom(1 << 16) * (BIG >> 16)
        r = drover(node, "alloc", "exec", "web.g[0]", "cat", stdin=data)
        case.equal((r.returncode, hashlib.sha256(r.stdout).digest()), (0, hashlib.sha256(data).digest()), "bytes of 10 MB echoed")
        before = rss_kb(supervisor)
        with Exec(node, alloc, ["sleep", "1000"]) as deaf, Exec(node, alloc, ["yes"]) as loud:
            deaf.sock.setblocking(False)
            message, sent = json.dumps({"stdin": {"data": "A" * 60000}}).encode(), 0
            whole = frame(TEXT, message)
            while sent < BIG:  # until the agent accepts nothing more
                try:
                    sent += deaf.sock.send(whole[sent % len(whole):])
                except BlockingIOError:
                    if not select.select([], [deaf.sock], [], 2)[1]:
                        break
            check(sent < BIG, "a command that reads nothing was sent %d bytes" % sent)
            loud.wait(b"y\ny\n")
            case.equal(node.allocs("web")[0]["ClientStatus"], "running", "whether the agent answers others")
            check(rss_kb(supervisor) < before + 8192, "the supervisor grew from %d to %d KiB" % (before, rss_kb(supervisor)))
        # The connections of both clients are closed, and their commands have ended.
        with Exec(node, alloc, ["sh", "-c", "while pidof yes; do sleep 0.1; done; ps ax | grep -c '[s]leep 1000'"]) as s:
            check(int(s.end()[0].split()[-1]) >= 1, "the task's own sleep")


def test_pings_of_a_client_that_does_not_read_do_not_fill_memory():
    """Each ping needs an answer. The agent reads no more pings while unread answers fill the client's buffer."""
    pings = frame(PING, b"x" * 125) * 8000  # a megabyte
    with api.Node() as node:
        alloc = running(node, "sleeper")
        supervisor = node.processes()["supervisor"]
        with Exec(node, alloc, ["sleep", "1000"]) as s:
            before, sent = rss_kb(supervisor), 0
            s.sock.settimeout(2)
            try:
                while sent < 100 * len(pings):
                    s.sock.sendall(pings)
                    sent += len(pings)
            except TimeoutError:
                pass
            grown = rss_kb(supervisor) - before
            case.equal(grown < 20000, True, "the supervisor grew by %d kB after %d bytes of pings" % (grown, sent))
            check(sent < 100 * len(pings), "all pings were taken")
            s.sock.settimeout(case.LEAST_S)
            for _ in range(1000):
                case.equal(s.recv(), (PONG, b"x" * 125))


def test_a_session_ends_with_its_client_supervisor_or_task():
    with api.Node() as node:
        alloc = running(node, "web")
        # The client is killed.
        mark = "mark-%d" % os.getpid()
        words = [binary("drover"), "alloc", "exec", "web.g[0]", "sh", "-c", "trap '' HUP; sleep 1000; :", mark]
        client = subprocess.Popen(words, env=environment(node), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        case.until(lambda: [p for p in case.pids_with(mark) if p != client.pid], SECONDS, "the command to run")
        client.kill()
        client.wait()
        client.stdin.close()
        case.until(lambda: not case.pids_with(mark), SECONDS, "the end of the command whose client was killed")
        # The sessions of a killed supervisor end; the next supervisor can start new ones.
        with Exec(node, alloc, ["sh", "-c", "echo up; sleep 1000; :", mark]) as s:
            s.wait(b"up")
            node.kill("supervisor")
            case.raises((Closed, OSError), s.recv)
        case.until(lambda: not case.pids_with(mark), SECONDS, "the end of the command whose supervisor was killed")
        case.until(lambda: tries(node, alloc), SECONDS, "a session of the next supervisor")
        # The end of the task ends the session.
        with Exec(node, alloc, ["sh", "-c", "echo up; exec sleep 1000"]) as s:
            s.wait(b"up")
            node.do("DELETE", "/v1/job/web")
            case.equal(s.end()[2], {"exit_code": 137, "signal": 9})


def tries(node, alloc):
    try:
        with Exec(node, alloc, ["true"]) as s:
            return s.end()[2] == {}
    except (Closed, Refused, OSError):
        return False


def test_the_number_of_sessions_of_a_task_is_limited():
    with api.Node() as node:
        alloc = running(node, "web")
        held = [Exec(node, alloc, ["sh", "-c", "echo up; sleep 1000"]) for _ in range(15)]
        for s in held:
            s.wait(b"up")
        with Exec(node, alloc, ["true"]) as s:
            e = case.raises(Closed, s.recv)
            case.equal(e.code, 1011)
            case.contains(e.reason, 'task "t" has 15 sessions already')
        for s in held:
            s.close()
        case.until(lambda: tries(node, alloc), SECONDS, "another session to be possible")


def test_the_number_of_sessions_of_a_node_is_limited():
    """The 65th session is refused with an error message, and the others continue."""
    with api.Node() as node:
        node.register(api.job("web", count=5))
        allocs = [a["ID"] for a in node.wait_running("web", count=5, seconds=SECONDS)]
        held = [Exec(node, allocs[i % 5], ["sh", "-c", "echo up; read x; echo got $x"]) for i in range(64)]
        for s in held:
            s.wait(b"up")
        e = case.raises(Refused, lambda: Exec(node, allocs[4], ["true"]))
        case.equal((e.status, e.text), (503, "there are 64 sessions on this node already"))
        for s in held:
            s.type(b"this\n")
        for s in held:
            s.wait(b"got this")
            s.close()
        for alloc in allocs:
            case.until(lambda alloc=alloc: tries(node, alloc), SECONDS, "another session to be possible")


ACTIONS = [{"Name": "greet", "Command": "sh", "Args": ["-c", "read x; echo \"$MARK:$x:$0:${1-none}.\"; exit 4", "a b", ""]},
           {"Name": "plain", "Command": "true"}]


def test_actions_of_a_task():
    """The job defines the command of an action; a client cannot change it."""
    with api.Node() as node:
        alloc = running(node, "web", Env={"MARK": "of the task"}, Actions=ACTIONS)
        case.equal(node.ask("/v1/job/web/actions"),
                   [{"Args": [], **a, "TaskName": "t", "TaskGroupName": "g"} for a in ACTIONS])
        with Exec.of_action(node, "web", "greet", alloc, command='["id"]') as s:
            s.type(b"you\n")
            case.equal(s.end(), (b"of the task:you:a b:.\n", b"", {"exit_code": 4}))
        with Exec.of_action(node, "web", "plain", alloc) as s:
            case.equal(s.end(), (b"", b"", {}))
        for status, text, job, action, query in (
                (400, "action none not found in task t", "web", "none", {}), (400, "command is not present", "web", "", {}),
                (400, "task x not found in allocation " + alloc, "web", "plain", {"task": "x"}),
                (400, "job other does not have allocation " + alloc, "other", "plain", {}),
                (400, "must provide a valid alloc id", "web", "plain", {"alloc": ""})):
            e = case.raises(Refused, Exec.of_action, node, job, action, **{"alloc": alloc, **query})
            case.equal((e.status, e.text), (status, text))


def test_the_command_for_actions():
    with api.Node() as node:
        running(node, "web", Actions=ACTIONS)
        for words, stdin, wanted in (
                (["-job", "web", "greet"], b"x\n", (4, b":x:a b:.\n", b"")),
                (["-job=web", "-group", "g", "-task", "t", "-i=false", "plain"], b"", (0, b"", b"")),
                (["-alloc", "web.g[0]", "plain"], b"", (0, b"", b"")),
                (["plain"], b"", (1, b"", b"drover: name the job with -job JOB, or the allocation with -alloc ALLOC\n")),
                (["-job", "web", "-group", "x", "plain"], b"", (1, b"", b"drover: no allocation of web, group x is running\n"))):
            r = drover(node, "action", *words, stdin=stdin)
            case.equal((r.returncode, r.stdout, r.stderr), wanted, "drover action " + " ".join(words))
        r = drover(node, "job", "action", "-job", "web", "none")
        case.equal(r.returncode, 1)
        case.contains(r.stderr, b'has no task with the action "none"')


# --- the command ---

def environment(node):
    return dict(os.environ, DROVER_ADDR="unix://" + node.socket_path)


def drover(node, *words, stdin=b""):
    return subprocess.run([binary("drover"), *words], env=environment(node), input=stdin, capture_output=True, timeout=120,
                          check=False)


def test_the_command_with_pipes():
    with api.Node() as node:
        running(node, "web")
        for words, stdin, wanted in (
                (["web.g[0]", "sh", "-c", "cat; echo e >&2; exit 3"], b"in", (3, b"in", b"e\n")),
                (["-task", "t", "web.g[0]", "echo", "-task", "-help", "--"], b"", (0, b"-task -help --\n", b"")),
                (["--", "web.g[0]", "echo", "-n", "x"], b"", (0, b"x", b"")),
                (["-i=false", "web.g[0]", "cat"], b"not read", (0, b"", b"")),
                (["-ix", "web.g[0]", "true"], b"", (1, b"", b"drover: unknown flag -ix (add -help to see the flags)\n")),
                (["web.g[0]", "no-such-thing"], b"", (127, b"", b"drover: no-such-thing: run the command: No such file or directory\n")),
                (["-task", "x", "web.g[0]", "true"], b"", (1, b"", b'drover: unknown task name "x"\n')),
                (["web.g[0]"], b"", (1, b"", b"drover: usage: drover alloc exec [flags] ALLOC COMMAND [ARGUMENT...]\n")),
                (["-e", "ab", "web.g[0]", "true"], b"", (1, b"", b'drover: -e takes one character, or "none", not "ab"\n'))):
            r = drover(node, "alloc", "exec", *words, stdin=stdin)
            case.equal((r.returncode, r.stdout, r.stderr), wanted, "drover alloc exec " + " ".join(words))
        for flag in ("-t", "-it"):
            r = drover(node, "alloc", "exec", flag, "web.g[0]", "sh", "-c", "tty; read x; echo :$x:", stdin=b"word\n")
            case.equal(r.returncode, 0, r.stderr)
            case.contains(r.stdout, b"/dev/pts/")
            case.contains(r.stdout, b":word:")


class Terminal:
    """Runs drover alloc exec on a new terminal."""

    def __init__(self, node, *words):
        self.master, self.slave = pty.openpty()
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.before = termios.tcgetattr(self.slave)

        def own():
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        self.process = subprocess.Popen([binary("drover"), "alloc", "exec", *words], env=environment(node), stdin=self.slave,
                                        stdout=self.slave, stderr=self.slave, start_new_session=True, preexec_fn=own)
        self.seen = b""

    def wait(self, text):
        while text not in self.seen:
            if not select.select([self.master], [], [], SECONDS)[0]:
                raise AssertionError("%r is not in %r" % (text, self.seen))
            self.seen += os.read(self.master, 65536)
        _, _, self.seen = self.seen.partition(text)

    def type(self, data):
        os.write(self.master, data)

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def end(self):
        """Returns its exit code, and checks that the settings of the terminal were restored."""
        code = self.process.wait(SECONDS)
        case.equal(termios.tcgetattr(self.slave), self.before, "the terminal's settings")
        os.close(self.master)
        os.close(self.slave)
        return code


def test_the_command_on_a_terminal():
    with api.Node() as node:
        for driver in ("raw_exec", "exec"):
            running(node, driver, driver)
            t = Terminal(node, driver + ".g[0]", "sh")
            t.type(b"stty size; echo $((6 * 7))a\r")
            t.wait(b"24 80")
            t.wait(b"42a")
            t.resize(33, 77)
            t.type(b"until [ \"$(stty size)\" = '33 77' ]; do sleep 0.1; done; echo resi''zed\r")
            t.wait(b"resized")
            t.type(b"exit 9\r")
            case.equal(t.end(), 9, driver)
            t = Terminal(node, driver + ".g[0]", "sh", "-c", "trap 'echo interrupted; exit 4' INT; echo up; while :; do sleep 0.1; done")
            t.wait(b"up")
            t.type(b"\x03")
            t.wait(b"interrupted")
            case.equal(t.end(), 4, driver)
        # The escape character works only at the beginning of a line, and can be changed.
        t = Terminal(node, "exec.g[0]", "cat")
        t.type(b"a~.\r")
        t.wait(b"a~.")
        t.type(b"~~b\r")
        t.wait(b"~b")
        t.type(b"~.")
        case.equal(t.end(), 1)
        t = Terminal(node, "-e", "%", "exec.g[0]", "cat")
        t.type(b"~.\r")
        t.wait(b"~.")
        t.type(b"%.")
        case.equal(t.end(), 1)
        # The command is ended by a signal.
        t = Terminal(node, "exec.g[0]", "sh")
        t.type(b"echo u''p\r")
        t.wait(b"up")
        t.process.send_signal(signal.SIGTERM)
        case.equal(t.end(), -signal.SIGTERM)
        # The agent ends.
        t = Terminal(node, "exec.g[0]", "sh")
        t.type(b"echo u''p\r")
        t.wait(b"up")
        node.kill("supervisor")
        t.wait(b"drover:")
        case.equal(t.end(), 1)


def test_the_terminal_is_raw_before_the_first_output():
    """The output was printed before the terminal was raw, so a ^C typed in answer to it ended the client instead of the command."""
    made = alloc("aaaa1111-0000-4000-8000-000000000001")

    def serve(request, conn):
        accept = base64.b64encode(hashlib.sha1((request.headers["sec-websocket-key"] + GUID).encode()).digest()).decode()
        said = json.dumps({"stdout": {"data": base64.b64encode(b"up\r\n").decode()}}).encode()
        conn.sendall(("HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n" % accept).encode() +
                     frame(TEXT, said, mask=b""))
        ending.wait(case.LEAST_S)
        conn.sendall(frame(TEXT, b'{"exited": true, "result": {"exit_code": 4}}', mask=b"") + frame(CLOSE, b"\x03\xe8", mask=b""))
    ending = threading.Event()
    with FakeApi() as fake:
        fake.socket_path = fake.path
        fake.json("GET", "/v1/allocation/" + made["ID"], made)
        fake.json("GET", "/v1/allocations", [made])
        fake.route("GET", "/v1/client/allocation/%s/exec" % made["ID"], serve)
        t = Terminal(fake, made["ID"], "sh")
        t.wait(b"up")
        while len(t.seen) < 2:
            t.seen += os.read(t.master, 65536)
        case.equal(t.seen[:2], b"\r\n", "the rest of the output")
        ending.set()
        case.equal(t.end(), 4)


def test_a_closed_output_pipe_ends_the_command_without_a_message():
    with api.Node() as node:
        running(node, "web")
        r = subprocess.run("'%s' alloc exec 'web.g[0]' yes | head -n 1" % binary("drover"), shell=True, env=environment(node),
                           capture_output=True, timeout=60, check=False)
        case.equal((r.stdout, r.stderr), (b"y\n", b""))


case.run(globals())

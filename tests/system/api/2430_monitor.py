#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Following the agent's own log: as lines and as frames, from all processes, and without cost when nobody follows."""
import base64
import json
import mmap
import os
import signal
import subprocess

from lib import api, binary, case


class Follower:
    """Returns a socket positioned after the header of the answer."""

    def __init__(self, **query):
        words = {"plain": "true", **query}
        self.socket, self.seen = node.connect(), b""
        self.socket.settimeout(case.LEAST_S)
        self.socket.sendall(("GET /v1/agent/monitor?%s HTTP/1.0\r\n\r\n" % "&".join("%s=%s" % w for w in words.items())).encode())
        while b"\r\n\r\n" not in self.seen:
            self.seen += self.socket.recv(1)
        case.contains(self.seen, b" 200 ")
        self.seen = b""

    def until(self, *parts):
        while not all(p in self.seen for p in parts):
            more = self.socket.recv(65536)
            case.equal(more != b"", True, "the stream ended after %r" % self.seen)
            self.seen += more
        return self.seen.decode()

    def frames(self):
        """Returns the complete frames so far."""
        decoder, found, text = json.JSONDecoder(), [], self.seen.decode()
        while text:
            try:
                frame, end = decoder.raw_decode(text)
            except ValueError:
                break
            found.append(frame)
            text = text[end:]
        return found

    def data(self):
        """Returns the lines in these frames, without an incomplete last one."""
        data = b"".join(base64.b64decode(x.get("Data", "")) for x in self.frames())
        return data[:data.rfind(b"\n") + 1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()


def wanted():
    """Returns the highest level that any follower wants, which all processes read from shared memory."""
    directory = "/proc/%d/fd/" % node.pid
    name, = [n for n in os.listdir(directory) if "log-level" in link(directory + n) and is_writable(n)]
    with open(directory + name, "rb") as f, mmap.mmap(f.fileno(), 4, prot=mmap.PROT_READ) as page:
        return int.from_bytes(page[:4], "little")


def link(path):
    """Returns the target of a descriptor, "" if it was closed meanwhile."""
    try:
        return os.readlink(path)
    except FileNotFoundError:
        return ""


def is_writable(name):
    with open("/proc/%d/fdinfo/%s" % (node.pid, name), encoding="ascii") as f:
        flags = [line.split()[1] for line in f if line.startswith("flags")][0]
    return int(flags, 8) & os.O_ACCMODE == os.O_RDWR


def kill_helper(name):
    old = node.kill(name)
    node.wait_process(name, old, 20)
    return old


def test_followers_get_lines_of_all_processes_by_level():
    with Follower(log_level="debug") as all_of_it, Follower(log_level="error") as errors, Follower() as usual:
        pid = kill_helper("heartbeat")
        said = ("heartbeat (pid %d) was killed by signal 9" % pid).encode()
        # It has ended or was replaced: the supervisor sees the end of its socket or the new socket first.
        text = all_of_it.until(b"[WARN]  launcher: " + said, b"[WARN]  supervisor: heartbeat ",
                               b"[DEBUG] launcher: heartbeat started")
        for line in text.splitlines():
            stamp, rest = line.split(" ", 1)
            case.equal((len(stamp), stamp[-1], rest[0]), (24, "Z", "["), line)
        usual.until(said)
        case.equal(b"DEBUG" in usual.seen, False, "debug lines for a follower that did not request them")
        # The agent's own log still has only the configured level.
        case.equal("heartbeat started" in node.log(), False, "debug lines in the agent's log")
        errors.socket.settimeout(0.5)
        try:
            errors.seen = errors.socket.recv(1000)
        except TimeoutError:
            pass
        case.equal(errors.seen, b"", "lines for a follower that wants errors only")


def test_followers_get_frames_and_json():
    with Follower(plain="false", log_json="true") as f:
        node.register(api.job("said"))
        node.wait_running("said")
        f.until(b'"FileEvent":"log"', b"{}")
        while b"Task started by client" not in f.data():
            f.seen += f.socket.recv(65536)
        lines = f.data().decode().splitlines()
        found = [json.loads(line) for line in lines]
        case.equal([x["@level"] for x in found], ["info"] * len(found))
        case.contains(" ".join(x["@message"] for x in found), "Task started by client")
        case.equal({x["@module"] for x in found}, {"supervisor"})
        case.equal([x for x in f.frames() if set(x) - {"Data", "FileEvent"}], [], "frames with other fields")
        node.purge("said")


def test_debug_lines_are_made_only_while_somebody_follows():
    case.until(lambda: wanted() == 0, 20, "the followers to be removed")
    with Follower(log_level="warn"):
        case.until(lambda: wanted() == 4, 20, "the level to become warn")
        with Follower(log_level="trace"):
            case.until(lambda: wanted() == 7, 20, "the level to become trace")
        case.until(lambda: wanted() == 4, 20, "the other follower to be removed")
    case.until(lambda: wanted() == 0, 20, "all followers to be removed")


def test_a_follower_of_the_next_supervisor_gets_only_new_lines():
    with Follower(log_level="debug") as f:
        kill_helper("supervisor")
        case.until(lambda: f.socket.recv(65536) == b"", 20, "the end of the stream")
    node.wait_ready()
    with Follower(log_level="debug") as f:
        pid = kill_helper("heartbeat")
        text = f.until(("heartbeat (pid %d) was killed" % pid).encode())
        case.equal("supervisor (pid" in text, False, "lines of the previous supervisor")


def test_the_command_monitor():
    with subprocess.Popen([binary("drover"), "monitor", "-log-level=warn"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env={**os.environ, "DROVER_ADDR": "unix://" + node.socket_path}) as command:
        case.until(lambda: wanted() == 4, 20, "the command to follow")
        kill_helper("heartbeat")
        case.contains(command.stdout.readline(), b"[WARN]")
        command.send_signal(signal.SIGINT)
        command.wait()
    for words, text in ((["-log-level=loud"], b'Unknown log level "loud": use error, warn, info or debug'), (["more"], b"usage: drover monitor")):
        done = subprocess.run([binary("drover"), "monitor", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env={**os.environ, "DROVER_ADDR": "unix://" + node.socket_path}, check=False)
        case.equal(done.returncode, 1)
        case.contains(done.stdout, text)


def test_invalid_requests_are_refused():
    node.refused(400, "Unknown log level", "GET", "/v1/agent/monitor?log_level=loud")
    node.refused(400, "plain", "GET", "/v1/agent/monitor?plain=perhaps")
    node.refused(400, "only its own log", "GET", "/v1/agent/monitor?node_id=99999999-9999-4999-8999-999999999999")


with api.Node() as node:
    case.run(globals())

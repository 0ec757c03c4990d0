#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An executor of protocol version 1 that has outlived an upgrade of the agent: the agent recovers it, sends only messages that it
understands, and stops it. The test simulates it: it replaces a real executor, whose task keeps running, and sends the messages of
version 1."""
import os
import queue
import signal
import socket
import struct
import threading

from lib import ROOT, agent, api, case, crash, exe

S = 10 ** 9
HELLO, STATE, EXITED, SIGNAL, STOP, LEASE = 1, 2, 3, 4, 5, 6


def fixture(name):
    with open("%s/tests/unit/fixtures/%s.bin" % (ROOT, name), "rb") as f:
        return f.read()


def like(name, layout, **values):
    """Returns a recorded message of version 1 with other values."""
    data = fixture(name)
    size = len(data) - exe.HEAD.size
    body = {**layout.unpack(data[exe.HEAD.size:] + b"\0" * 64), **values}
    return data[:exe.HEAD.size] + layout.pack(**body)[:size]


class Executor(threading.Thread):
    """Listens at the socket of the run's executor. .told: received messages, (type, version, bytes after the head)."""

    def __init__(self, node, run, record):
        super().__init__(daemon=True)
        self.record, self.told, self.peers = record, queue.Queue(), []
        page = os.stat(node.data + "/rt/lease")
        self.hello = like("exe_hello_v1", exe.HELLO, run=record["run"], executor_pid=os.getpid(), task_pid=record["task_pid"],
                          task_start_ticks=record["task_start_ticks"], lease_dev=page.st_dev, lease_ino=page.st_ino,
                          lease_ms=3600 * 1000)
        directory = os.open(node.data + "/rt/x", os.O_PATH)
        path = "/proc/self/fd/%d/%s.sock" % (directory, run)
        os.unlink(path)
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(path)
        os.chmod(path, 0o660)  # the group of the socket is that of its directory
        self.listener.listen()
        os.close(directory)
        self.start()

    def run(self):
        while True:
            try:
                peer, _ = self.listener.accept()
            except OSError:
                return
            peer.send(self.hello)
            threading.Thread(target=self.serve, args=(peer,), daemon=True).start()

    def serve(self, peer):
        self.peers.append(peer)
        while True:
            try:
                data = peer.recv(exe.MSG_MAX)
            except OSError:
                return
            if not data:
                return
            version, kind, size = exe.HEAD.unpack_from(data)
            case.equal(size, len(data), "size of message %d" % kind)
            self.told.put((kind, version, data[exe.HEAD.size:]))

    def end(self):
        """Returns the state of the task as the old executor would send it."""
        os.kill(self.record["task_pid"], signal.SIGKILL)
        self.listener.close()
        for peer in self.peers:
            try:
                peer.send(like("exe_exited_v1", exe.EXITED, run=self.record["run"], flags=exe.EXE_END_STOP, exit_code=3, exit_signal=0))
            except OSError:
                pass
            peer.close()


def job(limit_s, kill_timeout_s):
    return api.job("old", group={"StopAfterClientDisconnect": limit_s * S}, KillTimeout=kill_timeout_s * S)


def is_version_1(kind, size):
    case.equal(len(fixture({STOP: "exe_stop_v1", LEASE: "exe_lease_v1"}[kind])) - exe.HEAD.size <= size, True, "size of the message as in version 1")


def test_an_old_executor_is_recovered():
    node.start()
    node.wait_ready()
    node.wait_log("recovered 1 running task")
    case.equal([a["ID"] for a in node.wait_running("old")], [alloc["ID"]], "the alloc of the job")
    case.equal(old.told.qsize(), 0, "messages that it received")


def test_an_old_executor_gets_only_messages_of_its_version():
    # It gets no kill settings, which version 1 does not have, but a new limit, at the offset of version 1.
    node.wait_evaluation(node.register(job(3600, 9))["EvalID"])
    node.wait_evaluation(node.register(job(1800, 9))["EvalID"])
    kind, version, body = old.told.get(timeout=case.LEAST_S)
    case.equal((kind, version >= 1), (LEASE, True), "the first message")
    is_version_1(kind, len(body))
    case.equal(struct.unpack_from("<Q", body)[0], 1800 * 1000, "limit")
    case.equal(old.told.qsize(), 0, "number of messages")
    case.equal([a["ID"] for a in node.wait_running("old")], [alloc["ID"]], "changed in place")


def test_a_task_of_an_old_executor_is_stopped():
    node.do("DELETE", "/v1/job/old")
    kind, _, body = old.told.get(timeout=case.LEAST_S)
    case.equal(kind, STOP)
    is_version_1(kind, len(body))
    case.equal(struct.unpack_from("<IIQ", body), (signal.SIGINT, 0, 9000), "signal, timeout")
    old.end()
    ended = node.wait_allocs("old", [(0, "stop", "complete")])[0]
    said = [e for e in ended["TaskStates"]["t"]["Events"] if e["Type"] == "Terminated"]
    case.equal((said[0]["ExitCode"], said[0]["Signal"]), (3, 0), "the end of the alloc")
    case.until(lambda: not agent.arguments(record["task_pid"]), 10, "the end of the task")
    node.purge("old")
    crash.wait_nothing_left(node)
    case.equal(node.ask("/v1/agent/leaks"), [], "leaks")


with api.Node() as node:
    node.register(job(3600, 2))
    alloc = node.wait_running("old")[0]
    (run, record), = crash.records(node).items()
    node.kill_launcher()
    os.kill(record["executor_pid"], signal.SIGKILL)
    case.until(lambda: not agent.arguments(record["executor_pid"]), 10, "the end of the real executor")
    case.equal(bool(agent.arguments(record["task_pid"])), True, "whether its task still runs")
    old = Executor(node, run, record)
    case.run(globals())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The holder of drover-tasks.service: when it ends, it asks every executor to stop its task, even if another executor does not answer."""
import os
import select
import signal
import socket
import struct

from lib import case, holder

STOP = struct.Struct("<HHI")  # struct exe_head
EXE_STOP = 5
CLOCK_NANOSLEEP = "230"


def listen(name, backlog=8):
    path = "%s/%s.sock" % (holder.SOCKETS, name)
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.bind(path)
    os.chmod(path, 0o666)
    s.listen(backlog)
    return s


def fill(name):
    """Connects until the queue is full, as that of a stopped executor."""
    held = []
    while True:
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        s.setblocking(False)
        held.append(s)
        try:
            s.connect("%s/%s.sock" % (holder.SOCKETS, name))
        except BlockingIOError:
            return held


def pauses(pid):
    with open("/proc/%d/syscall" % pid, encoding="ascii") as f:
        return f.read().split()[0] == CLOCK_NANOSLEEP


def accept_stop(s):
    """Returns the connection on which the stop was requested."""
    s.settimeout(case.LEAST_S)
    c, _ = s.accept()
    c.settimeout(case.LEAST_S)
    case.equal(STOP.unpack(c.recv(256)[:STOP.size])[1], EXE_STOP, "the request")
    return c


def test_a_stopped_executor_does_not_delay_the_others():
    os.makedirs(holder.SOCKETS)
    # In any order of the directory, one of the two comes before the others.
    full = [listen("a" * 32, 0)]
    good = [listen("%032x" % i) for i in range(3)]
    full.append(listen("b" * 32, 0))
    held = fill("a" * 32) + fill("b" * 32)
    listen("c" * 32).close()  # of an executor that has ended
    with holder.Holder() as h:
        h.process.send_signal(signal.SIGTERM)
        asked = [accept_stop(s) for s in good]
        case.until(lambda: "3 tasks asked to stop" in h.log(), 10, "all executors to be asked")
        for name in ("a", "b"):
            case.contains(h.log(), name * 32 + ".sock: its executor accepts no connection")
        case.equal(h.log().count("warn"), 2, h.log())
        for c in asked:
            case.equal(h.process.poll(), None, "whether it waits for the tasks")
            c.close()
        case.equal(h.process.wait(case.LEAST_S), 0, "exit code")
    for s in held + full + good:
        s.close()


def test_a_busy_executor_is_asked_again_later():
    busy = listen("d" * 32, 0)
    held = fill("d" * 32)
    with holder.Holder() as h:
        h.process.send_signal(signal.SIGTERM)
        case.until(lambda: pauses(h.process.pid), 5, "it to pause before the next attempt")
        for s in held:
            s.close()
        while True:
            c, _ = busy.accept()
            c.settimeout(case.LEAST_S)
            message = c.recv(256)
            if message:
                break
            c.close()
        case.equal(STOP.unpack(message[:STOP.size])[1], EXE_STOP, "the request")
        case.until(lambda: "1 tasks asked to stop" in h.log(), 10, "all executors to be asked")
        c.close()
        case.equal(h.process.wait(case.LEAST_S), 0, "exit code")
    busy.close()


def test_its_argument_is_the_runtime_directory():
    """Without executors there it asks nobody, although /run/drover has some."""
    theirs = listen("e" * 32)
    with holder.Holder(case.directory()) as h:
        h.process.send_signal(signal.SIGTERM)
        case.equal(h.process.wait(case.LEAST_S), 0, "exit code")
        case.contains(h.log(), "0 tasks asked to stop")
    case.equal(select.select([theirs], [], [], 0)[0], [], "connections to executors of another agent")
    theirs.close()


def test_without_executors_it_ends_at_once():
    for name in os.listdir(holder.SOCKETS):
        os.unlink("%s/%s" % (holder.SOCKETS, name))
    for _ in range(2):
        with holder.Holder() as h:
            h.process.send_signal(signal.SIGTERM)
            case.equal(h.process.wait(case.LEAST_S), 0, "exit code")
            case.contains(h.log(), "0 tasks asked to stop")
        if os.path.isdir(holder.SOCKETS):
            os.removedirs(holder.SOCKETS)


case.run(globals())

# SPDX-License-Identifier: Apache-2.0
"""ptrace: stops a child of a process at one of its system calls, so that a test can inspect it or act exactly then.

    with trace.Trace(helper_pid) as t:
        child = t.until(lambda pid, call: call.nr == trace.CONNECT, 10)
"""
import ctypes
import os
import struct
import time

from . import case

CONNECT, PIVOT_ROOT, SETNS, MOVE_MOUNT, OPEN_TREE, MOUNT_SETATTR = 42, 155, 308, 429, 428, 442  # x86-64
SYSCALL, DETACH, SEIZE, INTERRUPT, LISTEN, GETEVENTMSG, GET_SYSCALL_INFO, CONT = 24, 17, 0x4206, 0x4207, 0x4208, 0x4201, 0x420E, 7
OPTIONS = 1 | 2 | 4 | 8 | 16  # TRACESYSGOOD, and events for fork, vfork, clone and exec
EVENT_EXEC = 4
WALL = 0x40000000
SIGTRAP = 5

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
_libc.ptrace.restype = ctypes.c_long


class Call:
    """A system call that is about to be made."""

    def __init__(self, nr, args):
        self.nr, self.args = nr, args


class Trace:
    """Traces one process and all that it starts while this is active. Only the thread that made the object may use it. of(pid): called after an
    exec, returns whether to keep tracing; a process with a deadline should not be slowed down without need."""

    def __init__(self, pid, of=lambda pid: True):
        self.root, self.stopped, self.pids, self.of = pid, set(), {pid}, of
        self._do(SEIZE, pid, None, OPTIONS)

    def _do(self, request, pid, addr=None, data=None):
        r = _libc.ptrace(request, pid, addr, data)
        if r < 0:
            raise OSError(ctypes.get_errno(), "ptrace %d of %d" % (request, pid))
        return r

    def _message(self, pid):
        value = ctypes.c_ulong()
        self._do(GETEVENTMSG, pid, None, ctypes.addressof(value))
        return value.value

    def _call(self, pid):
        """Returns the Call at whose entry pid has stopped, or None at an exit."""
        info = ctypes.create_string_buffer(96)
        self._do(GET_SYSCALL_INFO, pid, 96, ctypes.addressof(info))
        op = info.raw[0]
        return Call(*(lambda v: (v[0], v[1:]))(struct.unpack_from("<7Q", info.raw, 24))) if op == 1 else None

    def _resume(self, pid, signo=0):
        """Attaches: the traced process itself runs freely; processes that it starts stop at each call."""
        self.stopped.discard(pid)
        try:
            self._do(CONT if pid == self.root else SYSCALL, pid, None, signo)
        except OSError:
            pass  # it was killed meanwhile

    def _on_stop(self, pid, status, condition):
        """Returns True if condition holds; pid then stays stopped. A process that is killed at this point counts as not stopped."""
        try:
            return self._look(pid, status, condition)
        except ProcessLookupError:
            self.stopped.discard(pid)
            return False

    def _look(self, pid, status, condition):
        self.stopped.add(pid)
        signo, event = os.WSTOPSIG(status), status >> 16
        if event in (1, 2, 3):
            self.pids.add(self._message(pid))
        elif event == EVENT_EXEC and not self.of(pid):
            self.let_go(pid)
            return False
        elif signo == SIGTRAP | 0x80:
            call = self._call(pid)
            if call and condition(pid, call):
                return True
        self._resume(pid, 0 if event or signo in (SIGTRAP, SIGTRAP | 0x80) else signo)
        return False

    def _poll(self, condition):
        for pid in list(self.pids):
            if pid in self.stopped:
                continue
            try:
                found, status = os.waitpid(pid, os.WNOHANG | WALL)
            except ChildProcessError:
                self.pids.discard(pid)
                continue
            if found == 0:
                continue
            if not os.WIFSTOPPED(status):
                self.pids.discard(pid)
            elif self._on_stop(pid, status, condition):
                return pid
        return 0

    def until(self, condition, seconds):
        """Runs everything until a child is about to make a call for which condition(pid, call) holds; it is stopped there."""
        seconds = case.patience(seconds)
        end = time.monotonic() + seconds
        while True:
            pid = self._poll(condition)
            if pid:
                return pid
            if time.monotonic() > end:
                raise AssertionError("no process made the awaited system call within %g s" % seconds)
            if not pid:
                time.sleep(0.0002)

    def hold_root(self):
        """Stops the traced process itself until the end of this block, or step(), so that its own deadlines cannot pass."""
        if self.root not in self.stopped and self._stop(self.root):
            self.stopped.add(self.root)

    def step(self, pid):
        """Resumes a process that until() stopped; it will stop again."""
        self._resume(pid)

    def let_go(self, pid):
        """Resumes a process that until() stopped, untraced."""
        self.stopped.discard(pid)
        self._do(DETACH, pid, None, 0)
        self.pids.discard(pid)

    def _stop(self, pid):
        self._do(INTERRUPT, pid)
        end = time.monotonic() + case.LEAST_S
        while time.monotonic() < end:
            found, status = os.waitpid(pid, os.WNOHANG | WALL)
            if found and not os.WIFSTOPPED(status):
                return False
            if found:
                if status >> 16 in (1, 2, 3):
                    self.pids.add(self._message(pid))
                return True
            time.sleep(0.0005)
        raise AssertionError("process %d does not stop" % pid)

    def close(self):
        while self.pids:
            pid = self.pids.pop()
            try:
                if pid in self.stopped or self._stop(pid):
                    self._do(DETACH, pid, None, 0)
            except OSError:
                pass  # it has ended
            self.stopped.discard(pid)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def status(pid):
    """/proc/PID/status as {name: value}."""
    with open("/proc/%d/status" % pid, encoding="utf-8") as f:
        return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)


def wait_gone(pid, seconds=10):
    case.until(lambda: not os.path.exists("/proc/%d" % pid), seconds, "the end of process %d" % pid)

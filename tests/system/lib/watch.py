# SPDX-License-Identifier: Apache-2.0
"""Whether the work loop of an agent waits for anything but its next event.

    with Watch(node):
        node.request("GET", "/v1/agent/health?deep=1")
"""
import contextlib
import http.client
import os
import threading
import time

from . import case, helper


@contextlib.contextmanager
def in_memory():
    """Makes a data directory whose commits do not wait for what other programs write to this machine's disk."""
    path = case.directory() + "/data"
    os.mkdir(path)
    helper.mount("tmpfs", path, "tmpfs", 0, "size=256m,mode=0711")
    try:
        yield path
    finally:
        helper.umount(path, 2)


class Watch:
    """Meanwhile the supervisor waits for nothing but its next event: else it would not answer. It is looked at all the time, and must not be seen in the
    same call of the kernel as half a second earlier, but for the one in which it waits for events. How fast it answers depends on the machine."""

    def __init__(self, node):
        self.node = node

    def __enter__(self):
        self.pid, self.on, self.stuck = self.node.processes()["supervisor"], True, set()
        self.waits = case.until(self.idle, 30, "a supervisor that waits for events")
        self.threads = [threading.Thread(target=target) for target in (self.ask, self.look)]
        for thread in self.threads:
            thread.start()

    def call(self):
        """Returns the call in which it is blocked, with its arguments, stack and place in the program; None: it runs."""
        with open("/proc/%d/syscall" % self.pid, encoding="ascii") as f:
            text = f.read()
        return None if text.startswith("running") else text

    def idle(self):
        """Returns the number of the call in which it waits for events."""
        before = self.call()
        time.sleep(0.3)
        return before and before == self.call() and before.split()[0]

    def ask(self):
        while self.on:
            with contextlib.suppress(OSError, http.client.HTTPException):  # its connection was closed in favor of another
                self.node.request("GET", "/v1/agent/self")
            time.sleep(0.01)

    def look(self):
        seen, since = None, 0
        while self.on:
            now = self.call()
            if now != seen:
                seen, since = now, time.monotonic()
            elif now and now.split()[0] != self.waits and time.monotonic() - since > 0.5:
                self.stuck.add(now)
            time.sleep(0.01)

    def __exit__(self, kind, *_):
        self.on = False
        for thread in self.threads:
            thread.join()
        if kind is None:
            case.equal(self.stuck, set(), "calls of the kernel in which the supervisor waited")

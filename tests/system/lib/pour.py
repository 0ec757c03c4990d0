# SPDX-License-Identifier: Apache-2.0
"""Requests with bodies of a gibibyte: how much of one an agent takes, and how much memory that costs.

    with pour.Peak(node.processes()["listener"]) as peak:
        sent, answer = pour.pour(socket, "POST /v1/jobs")
    peak.kb
"""
from . import case

GIB = 1 << 30
BLOCK = b"x" * 65536


def pour(s, request, head="", chunked=False):
    """Sends the request and 1 GiB of its body, or as much as is taken. Returns the number of bytes, and the first line of the answer ("": none)."""
    s.settimeout(case.LEAST_S)
    length = "Transfer-Encoding: chunked" if chunked else "Content-Length: %d" % GIB
    block, sent, answer = b"10000\r\n%s\r\n" % BLOCK if chunked else BLOCK, 0, b""
    try:
        s.sendall(("%s HTTP/1.1\r\nHost: x\r\n%s%s\r\n\r\n" % (request, head, length)).encode())
        while sent < GIB:
            s.sendall(block)
            sent += len(BLOCK)
    except OSError:
        pass
    try:
        answer = s.recv(65536)
    except OSError:
        pass
    return sent, answer.partition(b"\r\n")[0].decode()


class Peak:
    """kb: how much more memory these processes have had at most, in KiB, than at its begin."""

    def __init__(self, *pids):
        self.pids, self.kb = pids, 0

    def read(self, name):
        found = 0
        for pid in self.pids:
            with open("/proc/%d/status" % pid, encoding="utf-8") as f:
                found += next(int(line.split()[1]) for line in f if line.startswith(name + ":"))
        return found

    def __enter__(self):
        for pid in self.pids:
            case.write("/proc/%d/clear_refs" % pid, "5")  # VmHWM becomes VmRSS
        self.before = self.read("VmRSS")
        return self

    def __exit__(self, *_):
        self.kb = self.read("VmHWM") - self.before

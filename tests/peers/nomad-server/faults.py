# SPDX-License-Identifier: Apache-2.0
"""Faults: misbehavior on command. A fault applies to a method ("Node.*": several), to all servers or one, to so many calls or to all.

    kind          what happens to the call                                parameters
    delay         answered later                                          seconds
    silent        never answered (until the fault is cleared)
    error         answered with this error, nothing done                  text
    error_after   done, but answered with this error                      text
    index         the answer has this Index                               index, or by (added to the asked MinQueryIndex)
    empty         Allocs is empty; the Index is the newest, or            index
    reply         these keys of the answer are replaced                   reply
    pad           the answer has an unknown key of so many bytes          bytes
    drip          sent in pieces                                          bytes, seconds
    garbage       the answer's bytes are these instead                    hex, or shape (see GARBAGE)
    cut           so many bytes of the answer, then FIN of the stream     after
    reset         so many bytes of the answer, then RST of the stream     after
    vanish        so many bytes of the answer, then TCP ends             after, rst (true: not FIN), stop (the whole server ends)
    vanish_before nothing done, TCP ends                                  rst, stop
    wrong_seq     the answer is to another number
"""
import fnmatch
import os
import threading

GARBAGE = {
    "random": None,
    "reserved": b"\xc1" * 64,  # the one byte that msgpack never uses
    "array": b"\x83\xa5Error\xa0\xa3Seq\x01\xadServiceMethod\xa0\x93\x01\x02\x03",
    "not_a_map": b"\x2a\x2a",
    "deep": b"\x91" * 100000,
    "huge_string": b"\x83\xa5Error\xdb\xff\xff\xff\xffxxxx",
    "huge_map": b"\xdf\xff\xff\xff\xff",
    "huge_array": b"\xdd\xff\xff\xff\xff",
    "ext": b"\x83\xa5Error\xc9\x00\x00\x01\x00\x05" + b"x" * 256,
}
KINDS = ("delay", "silent", "error", "error_after", "index", "empty", "reply", "pad", "drip", "garbage", "cut", "reset",
         "vanish", "vanish_before", "wrong_seq")


class Fault:
    def __init__(self, number, kind, method, server, times, skip, params):
        self.number, self.kind, self.method, self.server = number, kind, method, server
        self.times, self.skip, self.params = times, skip, params
        self.hits = 0
        self.cleared = threading.Event()

    def __getitem__(self, name):
        return self.params[name]

    def get(self, name, default=None):
        return self.params.get(name, default)

    def garbage(self):
        """Returns the bytes of a garbage fault."""
        if "hex" in self.params:
            return bytes.fromhex(self["hex"])
        shape = self.get("shape", "random")
        return os.urandom(self.get("bytes", 256)) if shape == "random" else GARBAGE[shape]


class Faults:
    def __init__(self):
        self.lock, self.faults, self.count = threading.Lock(), [], 0

    def add(self, kind, method="*", server=None, times=None, skip=0, **params):
        """Adds a fault. times: number of calls that it affects; skip: number of calls before. Returns its number."""
        if kind not in KINDS:
            raise ValueError("there is no fault %r" % kind)
        with self.lock:
            self.count += 1
            self.faults.append(Fault(self.count, kind, method, server, times, skip, params))
            return self.count

    def clear(self, number=None):
        """Removes this fault or all; calls that wait for it continue."""
        with self.lock:
            for fault in [f for f in self.faults if number in (None, f.number)]:
                self.faults.remove(fault)
                fault.cleared.set()

    def take(self, method, server):
        """Returns {kind: fault} of this call, and counts each."""
        found = {}
        with self.lock:
            for fault in list(self.faults):
                if fault.kind in found or fault.server not in (None, server) or not fnmatch.fnmatch(method, fault.method):
                    continue
                if fault.skip:
                    fault.skip -= 1
                    continue
                fault.hits += 1
                found[fault.kind] = fault
                if fault.times is not None and fault.hits >= fault.times and fault.kind != "silent":
                    self.faults.remove(fault)
        return found

# SPDX-License-Identifier: Apache-2.0
"""Simulates a process that an attacker has taken over: makes a running process execute system calls that it would not make by itself, under its
own filter.

    takeover.call(pid, takeover.SHUTDOWN, 7, 2)  # the kernel's return value: 0 or more, or -errno
"""
import ctypes
import os
import signal
import socket
import struct

from . import case

CLOSE, SOCKET, CONNECT, SENDMSG, SHUTDOWN, FCNTL, FLOCK = 3, 41, 42, 46, 48, 72, 73  # x86-64
CONT, SINGLESTEP, GETREGS, SETREGS, DETACH, SEIZE, INTERRUPT = 7, 9, 12, 13, 17, 0x4206, 0x4207
WALL = 0x40000000
REGS = struct.Struct("<27Q")  # struct user_regs_struct
R10, R9, R8, RAX, RDX, RSI, RDI, ORIG_RAX, RIP = 7, 8, 9, 10, 12, 13, 14, 15, 16
KILLED = object()

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
_libc.ptrace.restype = ctypes.c_long


def _ptrace(request, pid, data=None):
    if _libc.ptrace(request, pid, None, data) < 0:
        raise OSError(ctypes.get_errno(), "ptrace %d of %d" % (request, pid))


def _in_a_call(pid):
    """Returns its registers when it is stopped just after a system call instruction."""
    _ptrace(INTERRUPT, pid)
    os.waitpid(pid, WALL)
    regs = ctypes.create_string_buffer(REGS.size)
    _ptrace(GETREGS, pid, ctypes.addressof(regs))
    values = list(REGS.unpack(regs.raw))
    with open("/proc/%d/mem" % pid, "rb", buffering=0) as f:
        f.seek(values[RIP] - 2)
        if f.read(2) == b"\x0f\x05":
            return values
    _ptrace(CONT, pid)
    return None


def _set(pid, values):
    regs = ctypes.create_string_buffer(REGS.pack(*values), REGS.size)
    _ptrace(SETREGS, pid, ctypes.addressof(regs))


def call(pid, nr, *args):
    """Returns the call's result, or KILLED if the filter kills the process."""
    _ptrace(SEIZE, pid)
    before = case.until(lambda: _in_a_call(pid), 10, "process %d to wait in a system call" % pid)
    values = list(before)
    values[RAX], values[ORIG_RAX], values[RIP] = nr, (1 << 64) - 1, before[RIP] - 2
    for register, arg in zip((RDI, RSI, RDX, R10, R8, R9), args):
        values[register] = arg
    _set(pid, values)
    status = None
    # A signal that arrives meanwhile (the end of a child) is suppressed, and so is the stop of INTERRUPT that may follow it.
    while status is None or (os.WIFSTOPPED(status) and (os.WSTOPSIG(status) != signal.SIGTRAP or status >> 16)):
        _ptrace(SINGLESTEP, pid)
        _, status = os.waitpid(pid, WALL)
    if not os.WIFSTOPPED(status):
        return KILLED
    regs = ctypes.create_string_buffer(REGS.size)
    _ptrace(GETREGS, pid, ctypes.addressof(regs))
    result = struct.unpack_from("<q", regs.raw, RAX * 8)[0]
    _set(pid, before)
    _ptrace(DETACH, pid)
    return result


def pass_on(pid, fd, name):
    """Makes it send one of its descriptors to the abstract unix socket of that name."""
    address = struct.pack("<H", socket.AF_UNIX) + b"\0" + name.encode()
    with open("/proc/%d/maps" % pid, encoding="ascii") as f:
        base = int(next(line for line in f if "[stack]" in line).split("-")[0], 16)  # the end of the stack that is not in use
    rights = struct.pack("<QiiiI", 20, socket.SOL_SOCKET, socket.SCM_RIGHTS, fd, 0)
    message = struct.pack("<QQQQQQQ", 0, 0, base + 128, 1, base + 192, len(rights), 0)
    with open("/proc/%d/mem" % pid, "r+b", buffering=0) as f:
        for offset, data in ((0, address), (128, struct.pack("<QQ", base, 1)), (192, rights), (256, message)):
            f.seek(base + offset)
            f.write(data)
    sock = call(pid, SOCKET, socket.AF_UNIX, socket.SOCK_STREAM, 0)
    case.equal(call(pid, CONNECT, sock, base, len(address)), 0, "connect")
    case.equal(call(pid, SENDMSG, sock, base + 256, 0), 1, "sendmsg")
    case.equal(call(pid, CLOSE, sock), 0, "close")

# SPDX-License-Identifier: Apache-2.0
# takes: 32
"""A task that writes more than its ephemeral_disk: the file system refuses it if it has project quota; else the usage is measured."""
import contextlib
import json
import os

from lib import api, case, quota

MIB = 1 << 20
# Writes 40 MiB, tries three ways to leave the project, prints the results and the apparent size of its disk, then waits. The file has
# holes, so that it needs metadata blocks too, which are counted when they are written and may exceed the limit.
WRITES = """
import ctypes, errno, fcntl, json, os, time
libc = ctypes.CDLL(None, use_errno=True)
done, failed = 0, ""
fd = os.open("local/f", os.O_RDWR | os.O_CREAT)
os.ftruncate(fd, 80 << 20)
try:
    while done < 40 << 20:
        done += os.pwrite(fd, b"x" * 4096, 2 * done)
except OSError as e:
    failed = errno.errorcode[e.errno]
os.fsync(fd)
def way(fn):
    try:
        fn()
        return ""
    except OSError as e:
        return errno.errorcode[e.errno]
def setattr():
    if libc.syscall(469, -100, b"local/f", bytes(24), ctypes.c_size_t(24), 0) < 0:
        raise OSError(ctypes.get_errno(), "")
ways = [way(lambda: fcntl.ioctl(fd, 0x401C5820, bytes(28))), way(lambda: fcntl.ioctl(fd, 0x40086602, bytes(8))), way(setattr)]
st = os.statvfs("local")
print(json.dumps([done, failed, ways, st.f_blocks * st.f_frsize]), flush=True)
time.sleep(1000)
"""


LOGS = {"MaxFiles": 1, "MaxFileSizeMB": 1}
# A start may fail on a slow machine, because the look-up of a user has a deadline of 2 s.
RESTARTS = {"Attempts": 100, "Interval": 3600 * 10**9, "Delay": 10**9, "Mode": "fail"}


def group(**more):
    return {"EphemeralDisk": {"SizeMB": 20, **more}, "RestartPolicy": RESTARTS}


def job(name, **more):
    return api.job(name, "/usr/bin/python3", ["-c", WRITES], driver="exec", LogConfig=LOGS, group=group(**more))


def refused(ways):
    """Returns the results of the ways that were not refused. The last system call is newer than the libseccomp of some machines, which then
    answers ENOSYS."""
    return [e for e in ways if e != "EPERM" and (e, ways.index(e)) != ("ENOSYS", 2)]


def said(node, name):
    alloc = node.wait_running(name, seconds=60)[0]
    node.wait_said(alloc, b"\n")
    return alloc, json.loads(node.logs(alloc))


def told(node, alloc):
    """Returns the event about its disk usage, or None."""
    found = [e for e in node.ask("/v1/allocation/" + alloc["ID"])["TaskStates"]["t"]["Events"] if e["Type"] == "Disk Resources Exceeded"]
    case.equal(len(found) < 2, True, "events about the disk: %r" % found)
    return found[0] if found else None


@contextlib.contextmanager
def started(kind):
    with quota.file_system(kind) as top, api.Node(data=top + "/data") as node:
        yield node
        case.equal(node.ask("/v1/agent/leaks"), [], "leaks")


def refused_by_the_file_system(kind, code):
    with started(kind) as node:
        node.register(job("greedy", Sticky=True))
        alloc, (done, failed, ways, size) = said(node, "greedy")
        case.equal((done > 19 * MIB, done <= 20 * MIB, failed), (True, True, code), "%d bytes" % done)
        case.equal((refused(ways), size), ([], 20 * MIB))
        # One event, and the task keeps running. Usage is checked every 30 s.
        event = case.until(lambda: told(node, alloc), 120, "the event")
        case.contains(event["DisplayMessage"], "uses all 20 MiB of its ephemeral_disk")
        case.equal((event["FailsTask"], node.ask("/v1/allocation/" + alloc["ID"])["ClientStatus"]), (False, "running"))
        number = quota.project("%s/alloc/%s" % (node.data, alloc["ID"]))[0]
        # The successor gets the data, with its own limit.
        node.register({"Job": {**job("greedy", Sticky=True, SizeMB=30)["Job"], "Meta": {"new": "1"}}})
        case.until(lambda: [a["ID"] for a in node.wait_running("greedy")] != [alloc["ID"]], 60, "its next version")
        successor = node.wait_running("greedy")[0]
        directory = "%s/alloc/%s" % (node.data, successor["ID"])
        case.equal((quota.project(directory)[0], quota.usage(directory, number)[1]), (number, 30 * MIB))
        case.equal(os.stat(directory + "/t/local/f").st_blocks * 512 >= 19 * MIB, True, "its data")
        # Writes of root are not refused (on xfs they are), so its usage is measured, as without a project.
        if kind == "ext4":
            node.register(api.job("root", LogConfig=LOGS, group=group()))
            alloc = node.wait_running("root")[0]
            with open("%s/alloc/%s/t/local/big" % (node.data, alloc["ID"]), "wb") as f:
                os.posix_fallocate(f.fileno(), 0, 25 * MIB)
            event = case.until(lambda: told(node, alloc), 120, "the event")
            case.contains(event["DisplayMessage"], "its ephemeral_disk has 20 MiB")
            node.wait_allocs("root", [(0, "run", "failed")], seconds=60)
            node.purge("root")
        node.purge("greedy")
        node.do("PUT", "/v1/system/gc")
        case.until(lambda: quota.usage(node.data, number) == (0, 0), 60, "its project to have no files")


def test_a_template_that_does_not_fit_is_named():
    """12 MiB of output on a disk of 10 MiB; the file has no part of it."""
    text = "{{ range loop 3000 }}" + 4096 * "x" + "{{ end }}"
    with started("ext4") as node:
        node.register(api.job("large", driver="exec", LogConfig=LOGS, group=group(SizeMB=10), Templates=[{"EmbeddedTmpl": text, "DestPath": "local/v"}]))
        said = 'write "local/v": Disk quota exceeded'
        case.until(lambda: node.allocs("large") and any(said in e["DisplayMessage"] for e in node.allocs("large")[0]["TaskStates"]["t"]["Events"]),
                   60, "the event")
        case.equal(os.listdir("%s/alloc/%s/t/local" % (node.data, node.allocs("large")[0]["ID"])), [], "files")
        node.purge("large")


def test_ext4_refuses_writes_beyond_the_limit():
    refused_by_the_file_system("ext4", "EDQUOT")


def test_xfs_refuses_writes_beyond_the_limit():
    refused_by_the_file_system("xfs", "ENOSPC")


def test_other_file_systems_are_measured():
    with api.Node() as node:
        node.register(job("greedy"))
        alloc, (done, failed, ways, _) = said(node, "greedy")
        case.equal((done, failed, refused(ways)), (40 * MIB, "", []))
        event = case.until(lambda: told(node, alloc), 120, "the event")
        case.contains(event["DisplayMessage"], "uses 41 MiB of disk, its ephemeral_disk has 20 MiB")
        case.equal(event["FailsTask"], True)
        node.wait_allocs("greedy", [(0, "run", "failed")], seconds=60)
        node.purge("greedy")
        case.equal(node.ask("/v1/agent/leaks"), [], "leaks")


case.run(globals())

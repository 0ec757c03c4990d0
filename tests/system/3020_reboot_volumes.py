# SPDX-License-Identifier: Apache-2.0
"""A reboot with volumes mounted: processes and mounts are gone, the database is not. The plugin comes back first, then who uses
its volume, which finds its data."""
import os
import signal
import sqlite3
import struct

from lib import agent, case, crash, exe, helper, volumes

OTHER_BOOT = "01234567-89ab-cdef-0123-456789abcdef"
WRITE = "n=$(wc -l < /data/log); echo $NOMAD_ALLOC_ID >> /data/log; sync; echo after $n lines; sleep 1000"


def mounts(node):
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        return [p for p in (line.split(" ")[4] for line in f) if p.startswith(node.top + "/") or p.startswith(node.data + "/")]


def unmount_all(node):
    """Those below the data directory and the plugin's store, newest first; the cgroups' processes are dead by then."""
    for point in reversed(mounts(node)):
        helper.umount(point, 2)
    case.equal(mounts(node), [], "mounts")


def reboot(node):
    """Everything ends at once, tasks too; what was mounted is not, and what was written says another boot."""
    records = crash.records(node)
    os.kill(node.pid, signal.SIGSTOP)  # or it would start again what is killed first
    pids = [node.pid, *node.processes().values(), *(r["executor_pid"] for r in records.values()),
            *(r["task_pid"] for r in records.values())]
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # with its executor
    node.process.wait()
    agent.wait_gone(pids)
    unmount_all(node)
    db = sqlite3.connect(node.data + "/state/state.db")
    db.execute("UPDATE run SET boot_id = ?", (OTHER_BOOT,))
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as f:
        db.execute("UPDATE mount SET json = replace(json, ?, ?)", (f.read().strip(), OTHER_BOOT))
    db.commit()
    db.close()
    for run, record in records.items():
        data = exe.RECORD.pack(**dict(record, boot_id=OTHER_BOOT.encode()))[:-8]
        with open("%s/run/%s.rec" % (node.data, run), "r+b") as f:
            f.write(data + struct.pack("<Q", exe.fnv1a(data)))


def wait_written(node, alloc_id, lines):
    """Until the task has found `lines` lines and its own is on the disk: a reboot before that would take it."""
    expected = b"after %d lines" % lines
    case.until(lambda: expected in node.logs({"ID": alloc_id}).splitlines(), 20, expected.decode())


def test_a_volume_is_mounted_again_after_a_reboot():
    with volumes.Node() as node:
        node.start_plugin()
        node.create("demo")
        node.register(volumes.job("web", "demo", "touch /data/log; " + WRITE))
        web = node.wait_running("web")[0]["ID"]
        wait_written(node, web, 0)
        for n in (1, 2):
            reboot(node)
            case.equal(node.published("demo"), [], "mounts after the reboot")
            node.start()
            node.wait_ready()
            case.until(node.plugin_is_healthy, 60, "the plugin after the reboot")
            case.until(lambda: node.published("demo"), 60, "the mount after the reboot:\n" + node.log())
            found = node.wait_running("web")[0]["ID"]
            print("    reboot %d: the volume is at %s alloc" % (n, "the same" if found == web else "another"))
            print("    " + node.events(found).replace("\n", "\n    "))
            wait_written(node, found, n)
        node.purge("web")
        node.purge("csi-local")


case.run(globals())

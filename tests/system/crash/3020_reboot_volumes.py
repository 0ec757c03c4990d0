# SPDX-License-Identifier: Apache-2.0
"""A reboot with mounted volumes: processes and mounts are lost, the database is kept. The plugin starts first, then the job with its
volume, which has its data."""
from lib import case, crash, helper, volumes

WRITE = "n=$(wc -l < /data/log); echo $NOMAD_ALLOC_ID >> /data/log; sync; echo after $n lines; sleep 1000"


def mounts(node):
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        return [p for p in (line.split(" ")[4] for line in f) if p.startswith(node.top + "/") or p.startswith(node.data + "/")]


def unmount_all(node):
    """Unmounts all below the data directory and the plugin's store, newest first, when the processes in the cgroups have ended."""
    for point in reversed(mounts(node)):
        helper.umount(point, 2)
    case.equal(mounts(node), [], "mounts")


def reboot(node):
    """Simulates a reboot: all processes end at once, also tasks, mounts are lost, and the records are of another boot."""
    crash.cut_power(node)
    unmount_all(node)


def wait_written(node, alloc_id, lines):
    """Waits until the task has found so many lines and its own line is on the disk, so that the reboot does not lose it."""
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
            case.until(node.plugin_is_healthy, 60, "the plugin to be healthy after the reboot")
            case.until(lambda: node.published("demo"), 60, "the mount after the reboot:\n" + node.log())
            found = node.wait_running("web")[0]["ID"]
            print("    reboot %d: the volume is at %s alloc" % (n, "the same" if found == web else "another"))
            print("    " + node.events(found).replace("\n", "\n    "))
            wait_written(node, found, n)
        node.purge("web")
        node.purge("csi-local")


case.run(globals())

# SPDX-License-Identifier: Apache-2.0
"""A volume that somebody else unmounts is mounted again, and its consumer is told and goes on; a mount of no allocation is unmounted."""
import os
import uuid

from lib import case, helper, volumes

SCRIPT = "while sleep 0.1; do date +%s%N >/data/beat; done"
LOST = "is not mounted on this node any more: somebody else has unmounted it"
MOUNTED = "running tasks keep the mount that they have, and for their next start it is mounted again"


def start(name, script=SCRIPT):
    """Returns the alloc of a job that uses the volume, and the volume's path."""
    node.create("v-" + name)
    node.register(volumes.job(name, "v-" + name, script))
    (alloc,) = node.wait_running(name)
    (path,) = node.published("v-" + name)
    case.until(lambda: os.path.exists(path + "/beat"), 20, "the task to write")
    return alloc["ID"], path


def writes(path):
    """Waits until the task has written to the volume again."""
    def beat():
        with open(path + "/beat", encoding="utf-8") as f:
            return f.read()
    old = beat()
    case.until(lambda: beat() not in ("", old), 20, "the task to write to the volume")


def test_a_volume_is_mounted_again_and_the_running_task_keeps_its_own_mount():
    alloc, path = start("keeps")
    helper.umount(path)
    case.until(lambda: MOUNTED in node.events(alloc), 60, "an event")
    case.contains(node.events(alloc), LOST, "the event")
    case.equal(node.published("v-keeps"), [path], "mounts")
    writes(path)  # through its own mount, which shows the same file system
    node.do("PUT", "/v1/client/allocation/%s/restart" % alloc, {})
    case.until(lambda: "Restarting" in node.events(alloc) or "Restart Signaled" in node.events(alloc), 20, "the restart")
    node.wait_running("keeps")
    writes(path)
    node.purge("keeps")
    case.until(lambda: node.published("v-keeps") == [], 20, "the unmount")


def test_a_restart_of_the_supervisor_does_not_end_the_task():
    alloc, path = start("stays")
    node.kill("supervisor")
    helper.umount(path)
    node.wait_ready()
    case.until(lambda: node.published("v-stays") == [path], 60, "the volume to be mounted again")
    (state,) = [a["ClientStatus"] for a in node.allocs("stays")]
    case.equal(state, "running", "the alloc")
    writes(path)
    case.equal("mounting volumes" in node.events(alloc), False, "events: " + node.events(alloc))
    node.purge("stays")


def test_a_mount_that_no_allocation_uses_is_unmounted():
    root, alloc = node.data + "/csi/monolith/local", str(uuid.uuid4())
    paths = [root + "/per-alloc/%s/late/rw" % alloc, root + "/staging/late/rw"]
    for path in paths:
        os.makedirs(path)
        helper.mount("late", path, "tmpfs")
    for path in paths:
        case.until(lambda: not os.path.exists(path), 60, path + " to be removed")
    case.contains(node.log(), "was mounted, but no allocation uses it: drover has unmounted it", "the log")
    case.equal(node.ask("/v1/agent/leaks"), [], "leaks")


with volumes.Node() as node:
    node.start_plugin()
    case.run(globals())

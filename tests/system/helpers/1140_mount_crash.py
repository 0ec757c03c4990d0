# SPDX-License-Identifier: Apache-2.0
"""mount-helper and file-helper are killed at each of their crash points. The request is repeated to the next helper, which completes the
operation."""
import mmap
import os
import re
import struct

from lib import ROOT, case, crash, helper, mnt, runs

crash.use_build()
with open(os.path.join(ROOT, "common", "crash_points.def"), encoding="utf-8") as f:
    POINTS = ["none"] + re.findall(r"^CRASH_DEF\((\w+),", f.read(), re.M)
OURS = [p for p in POINTS if p.startswith(("MNT_", "FILE_"))]


class Page:
    """The page that a build with crash points reads: the armed point, then a counter for each point."""

    def __init__(self):
        self.path = case.directory() + "/page"
        with open(self.path, "w+b") as f:
            f.truncate(4096)
            self.map = mmap.mmap(f.fileno(), 4096)

    def arm(self, point):
        self.map[0:4] = struct.pack("<I", POINTS.index(point))

    def armed(self):
        return struct.unpack("<I", self.map[0:4])[0]

    def start(self, places, message):
        """Starts the helper that receives this message."""
        name = "mount-helper" if message.startswith("MNT_") else "file-helper"
        return helper.Helper(name, places, env={"DROVER_CRASH_PAGE": self.path})


def crash_at(page, places, point, name, fields, before=None):
    """Sends the request to a helper that dies at the point, and again to one that does not. Returns the reply."""
    with page.start(places, name) as h:
        if before:
            before(h)
        page.arm(point)
        h.ipc.send(name, fields)
        case.equal(h.wait(), 137, point)
        case.equal(page.armed(), 0, point + ": whether it is still armed")
        h.close()
    with page.start(places, name) as h:
        packet = h.ipc.call(name, fields)
        packet.close()
        return packet


def everything(places, alloc):
    found = {}
    for root in ("alloc", "logs"):
        top = "%s/%s/%s" % (places.data, root, mnt.text(alloc))
        for at, directories, files in os.walk(top):
            found.update({p[len(top):] + " in " + root: mnt.mode(p) for p in [at] + [at + "/" + n for n in directories + files]})
    groups = {runs.group_of(alloc): "the alloc's"}
    return {p: (mode, uid, groups.get(gid, gid)) for p, (mode, uid, gid) in found.items()}


def test_making_an_alloc_is_completed_after_a_crash():
    with helper.Places() as places:
        page, whole = Page(), os.urandom(16)
        with page.start(places, "FILE_") as h:
            h.ipc.call("FILE_ALLOC_DIR_MAKE_REQ", {"alloc": whole, "tasks": ["web", "side"]})
        for point in ("FILE_AFTER_ALLOC_DIR", "FILE_AFTER_LOG_DIR"):
            alloc = os.urandom(16)
            reply = crash_at(page, places, point, "FILE_ALLOC_DIR_MAKE_REQ", {"alloc": alloc, "tasks": ["web", "side"]})
            case.equal(reply["made"], False, "made")
            case.equal(everything(places, alloc), everything(places, whole), point)


def test_removing_an_alloc_is_completed_after_a_crash():
    with helper.Places() as places:
        page = Page()
        for point in ("FILE_BEFORE_REMOVE", "FILE_AFTER_TRASH"):
            alloc = os.urandom(16)
            crash_at(page, places, point, "FILE_ALLOC_DIR_REMOVE_REQ", {"alloc": alloc},
                     lambda h: h.ipc.call("FILE_ALLOC_DIR_MAKE_REQ", {"alloc": alloc, "tasks": ["web"]}))
            case.equal(everything(places, alloc), {}, point)
        with page.start(places, "FILE_"):
            case.until(lambda: not os.listdir(places.data + "/alloc/.trash") + os.listdir(places.data + "/csi/sock/.trash"),
                       10, "empty trash")


def test_mounting_a_plugins_root_is_completed_after_a_crash():
    with helper.Places() as places:
        page, fields = Page(), {"kind": "PLUGIN_NODE", "plugin": "p"}
        os.mkdir(places.data + "/csi/node/p", 0o700)
        crash_at(page, places, "MNT_AFTER_PLUGIN_MOUNT", "MNT_PLUGIN_ROOT_MAKE_REQ", fields)
        case.equal(len(mnt.mounts_below(places.data + "/csi/node/p")), 1, "mounts")


def test_each_crash_point_used_here_exists():
    # All other points are tested with a whole agent: 3100_crash_points.
    tested = ["FILE_AFTER_ALLOC_DIR", "FILE_AFTER_LOG_DIR", "FILE_BEFORE_REMOVE", "FILE_AFTER_TRASH", "MNT_AFTER_PLUGIN_MOUNT"]
    case.equal([p for p in tested if p not in OURS], [], "points of this test that are not in the table")


case.run(globals())

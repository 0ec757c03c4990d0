# SPDX-License-Identifier: Apache-2.0
"""mount-helper and file-helper killed at each of its crash points: the request, repeated to the next one, completes what was begun."""
import mmap
import os
import re
import struct

from lib import ROOT, build_dir, case, helper, mnt, runs

CRASH_BUILD = os.path.join(build_dir(), "crash")
os.environ["DROVER_BUILD"] = CRASH_BUILD

with open(os.path.join(ROOT, "common", "crash_points.def"), encoding="utf-8") as f:
    POINTS = ["none"] + re.findall(r"^CRASH_DEF\((\w+),", f.read(), re.M)
OURS = [p for p in POINTS if p.startswith(("MNT_", "FILE_"))]


class Page:
    """The file that a build with crash points reads: armed point, then a counter for each."""

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
        """The helper that gets this message."""
        name = "mount-helper" if message.startswith("MNT_") else "file-helper"
        return helper.Helper(name, places, env={"DROVER_CRASH_PAGE": self.path})


def crash_at(page, places, point, name, fields, before=None):
    """Sends the request to a helper that dies at the point, and again to one that does not: its reply."""
    with page.start(places, name) as h:
        if before:
            before(h)
        page.arm(point)
        h.ipc.send(name, fields)
        case.equal(h.wait(), 137, point)
        case.equal(page.armed(), 0, point + " was not passed: armed")
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


def test_making_an_alloc():
    with helper.Places() as places:
        page, whole = Page(), os.urandom(16)
        with page.start(places, "FILE_") as h:
            h.ipc.call("FILE_ALLOC_DIR_MAKE_REQ", {"alloc": whole, "tasks": ["web", "side"]})
        for point in ("FILE_AFTER_ALLOC_DIR", "FILE_AFTER_LOG_DIR"):
            alloc = os.urandom(16)
            reply = crash_at(page, places, point, "FILE_ALLOC_DIR_MAKE_REQ", {"alloc": alloc, "tasks": ["web", "side"]})
            case.equal(reply["made"], False, "made")
            case.equal(everything(places, alloc), everything(places, whole), point)


def test_removing_an_alloc():
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


def test_mounting_a_plugins_root():
    with helper.Places() as places:
        page, fields = Page(), {"kind": "PLUGIN_NODE", "plugin": "p"}
        os.mkdir(places.data + "/csi/node/p", 0o700)
        crash_at(page, places, "MNT_AFTER_PLUGIN_MOUNT", "MNT_PLUGIN_ROOT_MAKE_REQ", fields)
        case.equal(len(mnt.mounts_below(places.data + "/csi/node/p")), 1, "mounts")


def test_the_points_of_this_file_are_in_the_table():
    # The rest of the table is passed by the whole agent: 3100_crash_points.
    tested = ["FILE_AFTER_ALLOC_DIR", "FILE_AFTER_LOG_DIR", "FILE_BEFORE_REMOVE", "FILE_AFTER_TRASH", "MNT_AFTER_PLUGIN_MOUNT"]
    case.equal([p for p in tested if p not in OURS], [], "points that are gone")


case.run(globals())

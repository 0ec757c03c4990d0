# SPDX-License-Identifier: Apache-2.0
# takes: 40
"""A disk without free space or inodes, while an image is fetched, unpacked, started and running: each failure says what could not be written, where,
and what to do; what was begun is removed; a neighbour notices nothing; and when there is space again, it works without a further request."""
import contextlib
import glob
import os
import shutil

from lib import api, case, crash, helper, images, web
from lib.websocket import Exec, Refused

MIB = 1 << 20
SIZE_MB, ROOM_MB = 48, 400
INODES, MANY = 6000, 9000
TOOLS = images.tar(images.busybox("sh", "sleep", "dd", "rm", "echo", "cat", "touch", "trap"))
SMALL = images.Image([TOOLS], {"Env": ["PATH=/bin"]})
FETCHED = images.Image([TOOLS, images.tar([images.file("big", os.urandom(64 * MIB))])], {"Env": ["PATH=/bin"]}, pack="")
UNPACKED = images.Image([TOOLS, images.tar([images.file("big", bytes(64 * MIB))])], {"Env": ["PATH=/bin"]})
FILES = images.Image([TOOLS, images.tar([images.directory("f")] + [images.file("f/%d" % i) for i in range(MANY)])], {"Env": ["PATH=/bin"]})
ENDLESS = {"Attempts": 1000, "Interval": 10**15, "Delay": 10**9, "Mode": "delay"}


def container(name, image, script="echo started; exec sleep 1000"):
    made = api.job(name, driver="docker")
    group = made["Job"]["TaskGroups"][0]
    group["RestartPolicy"] = ENDLESS
    group["Tasks"][0]["Resources"] = {"CPU": 50, "MemoryMB": 200}  # what is on a tmpfs counts as memory
    group["Tasks"][0]["Config"] = {"image": images.name(server, image), "network_mode": "none", "command": "/bin/sh", "args": ["-c", script]}
    return made


def resize(options):
    helper.mount("none", top, "tmpfs", 32, options)  # MS_REMOUNT


def events(name):
    return [e["DisplayMessage"] for a in node.allocs(name) for e in node.ask("/v1/allocation/" + a["ID"])["TaskStates"]["t"]["Events"]]


def wait_event(name, *parts):
    def found():
        seen[:] = events(name)
        return next((e for e in seen if all(p in e for p in parts)), None)
    seen = []
    try:
        return case.until(found, 20, "an event with %s" % (parts,))
    except AssertionError as e:
        raise AssertionError("%s: %s" % (e, seen)) from e


def writes():
    """Whether a container runs dd."""
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        with contextlib.suppress(OSError), open(path, "rb") as f:
            if f.read().startswith(b"dd\0"):
                return True
    return False


def healthy():
    return node.request("GET", "/v1/agent/health").status == 200


def check_neighbour(session=True):
    alloc = node.wait_running("neighbour")[0]
    case.equal((alloc["ID"], node.ask("/v1/allocation/" + alloc["ID"])["TaskStates"]["t"]["Restarts"]), (neighbour, 0), "the neighbour, and its restarts")
    if session:
        case.equal(Exec(node, neighbour, ["/bin/echo", "here"]).end()[0], b"here\n", "a session in the neighbour")


def check_nothing_left(*names):
    for name in names:
        node.purge(name)
    for image in node.ask("/v1/agent/images"):
        if image["Name"] != images.name(server, "small:1"):
            node.do("DELETE", "/v1/agent/images?name=" + image["Name"])
    case.until(lambda: images.layers(node) == [images.digest(TOOLS)[7:]], 30, "the layers to be removed")
    case.until(lambda: os.listdir(node.data + "/images/blobs") == [], 30, "the blobs to be removed")
    case.until(lambda: crash.leaks(node) == [], 30, "no leaks")
    check_neighbour()


def check_image(image, layer, more, less, *parts):
    """Starts a container of an image for which there is no space, and gives the disk more of it."""
    node.register(container("late", image))
    text = wait_event("late", "Failed to pull", *parts)
    for part in ("No space left on device", "free space or inodes on the disk of " + node.data):
        case.contains(text, part)
    check_neighbour()
    assert layer not in images.layers(node), images.layers(node)
    resize(more)
    alloc = node.wait_running("late", seconds=60)[0]
    node.wait_said(alloc, b"started\n")
    check_nothing_left("late")
    resize(less)
    case.until(healthy, 20, "health")


def test_an_image_that_cannot_be_fetched():
    check_image("fetched:1", images.digest(FETCHED.tars[1])[7:], "size=%dm" % ROOM_MB, "size=%dm" % SIZE_MB, "store layer " + images.digest(FETCHED.blobs[1]))


def test_an_image_that_cannot_be_unpacked():
    check_image("unpacked:1", images.digest(UNPACKED.tars[1])[7:], "size=%dm" % ROOM_MB, "size=%dm" % SIZE_MB, 'write "big"')


def test_an_image_with_more_files_than_there_are_inodes():
    check_image("files:1", images.digest(FILES.tars[1])[7:], "nr_inodes=%d" % (INODES + MANY), "nr_inodes=%d" % INODES, 'make "f/')


def test_a_container_that_fills_the_disk():
    """It gets the error itself; the agent refuses changes with a sentence, and goes on when there is space again."""
    for path, there in (("/big", "t/private/upper"), ("/local/big", "t/local"), ("/alloc/data/big", "alloc/data")):
        script = "said=$(dd if=/dev/zero of=%s bs=1M 2>&1); while [ -s %s ]; do sleep 0.1; done; echo \"$said\"; echo end; exec sleep 1000" % (path, path)
        node.register(container("writer", "small:1", script))
        alloc = node.wait_running("writer")[0]
        case.until(lambda: "full" in node.request("PUT", "/v1/var/other", {"Items": {"k": os.urandom(3000).hex()}}).text, 30, "a change to be refused")
        refused = case.raises(Refused, Exec, node, neighbour, ["/bin/echo"])
        case.equal((refused.status, "nothing can be started now: " in refused.text), (507, True), refused.text)
        check_neighbour(False)
        case.until(lambda: not writes(), 30, "dd to end")
        os.truncate("%s/alloc/%s/%s/big" % (node.data, alloc["ID"], there), 0)
        case.until(healthy, 30, "health")
        node.wait_said(alloc, b"end\n")
        case.contains(node.logs(alloc).decode(), "No space left on device", "what dd says")
        check_nothing_left("writer")


def test_a_container_that_restarts_without_free_inodes():
    """What it wrote before is removed first, which makes room for its new files."""
    node.register(container("victim", "small:1"))
    alloc = node.wait_running("victim")[0]
    resize("nr_inodes=%d" % (INODES - os.statvfs(top).f_ffree))
    node.do("PUT", "/v1/client/allocation/%s/restart" % alloc["ID"], {"TaskName": "t"})

    def again():
        state = node.ask("/v1/allocation/" + alloc["ID"])["TaskStates"]["t"]
        return (state["Restarts"], state["State"]) == (1, "running")
    case.until(again, 30, "the container to run again")
    check_neighbour()
    resize("nr_inodes=%d" % INODES)
    check_nothing_left("victim")


if not shutil.which("skopeo") or not os.path.exists("/bin/busybox"):
    case.skip("no skopeo, or no busybox-static")
top = case.directory() + "/small"
os.mkdir(top)
helper.mount("none", top, "tmpfs", 0, "size=%dm,nr_inodes=%d" % (SIZE_MB, INODES))
try:
    with web.Server(images.registry({"small": {"1": SMALL}, "fetched": {"1": FETCHED}, "unpacked": {"1": UNPACKED}, "files": {"1": FILES}})) as server, \
            api.Node(data=top + "/data") as node:
        node.register(container("neighbour", "small:1"))
        neighbour = node.wait_running("neighbour", seconds=60)[0]["ID"]
        case.run(globals())
finally:
    helper.umount(top)

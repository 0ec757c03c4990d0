#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# takes: 30
"""Images that no task uses are removed, image_delay after their last use, or when the disk is full; those that an operator pulled are kept."""
import contextlib
import os
import shutil
import sqlite3

from lib import agent, api, case, exposition, helper, images, web

S = 10**9
HOUR_NS = 3600 * S
NO_MORE = {"RestartPolicy": {"Attempts": 0, "Mode": "fail"}, "ReschedulePolicy": {"Attempts": 0, "Unlimited": False}}
SHELL = images.tar(images.busybox("sh", "sleep", "true"))
MB = 1 << 20


def image(mark, size=0):
    """Images with a layer in common and one of their own."""
    return images.Image([SHELL, images.tar([images.file("mark", mark.encode() + os.urandom(size))])], {"Env": ["PATH=/bin"]})


def name(tag):
    return images.name(server, "a:" + tag)


def shown(node, tag):
    found = [x for x in node.ask("/v1/agent/images") if x["Name"] == name(tag) and x["Status"] == "ready"]
    return found[0] if found else None


def run(node, tag, script="true", ends=True):
    """Runs a task in the image; waits for the end of its use, or until it runs."""
    made = api.job("job-" + tag, driver="docker", group=NO_MORE)
    made["Job"]["TaskGroups"][0]["Tasks"][0]["Config"] = {"image": name(tag), "command": "/bin/sh", "args": ["-c", script], "network_mode": "none"}
    made["Job"]["Type"] = "batch" if ends else "service"
    before = (shown(node, tag) or {"LastUsed": 0})["LastUsed"]
    node.register(made)
    if not ends:
        return node.wait_running("job-" + tag, seconds=60)[0]
    case.until(lambda: [a["ClientStatus"] for a in node.allocs("job-" + tag)][-1:] in (["complete"], ["failed"]), 60, "the end of the task")
    case.until(lambda: not shown(node, tag) or shown(node, tag)["LastUsed"] > before, 60, "the end of the use of " + tag)
    return None


def pull(node, tag):
    node.do("PUT", "/v1/agent/images", {"Name": name(tag)})
    case.until(lambda: shown(node, tag), 60, "the image")


def wait_removed(node, tag):
    case.until(lambda: not shown(node, tag), 60, "the removal of " + tag)


def check_layers(node, *tags):
    wanted = sorted({images.digest(x)[7:] for tag in tags for x in IMAGES[tag].tars})
    case.until(lambda: images.layers(node) == wanted, 30, "only the layers of %s to be left" % (tags,))


def started(image_gc, client="", **more):
    return api.Node(agent.config_args('plugin "docker" {\n config {\n enabled = true\n gc {\n%s\n}\n}\n}\nclient {\n%s\n}\n' % (image_gc, client)), **more)


def age(node, tag, ns):
    """Makes the last use older, while the agent is stopped."""
    with contextlib.closing(sqlite3.connect(node.data + "/state/state.db")) as db:
        db.execute("UPDATE image SET used = used - ?, pulled = pulled - ? WHERE name = ?", (ns, ns, name(tag)))
        db.commit()


def test_an_image_is_removed_after_its_last_use():
    with started('image_delay = "1s"') as node:
        run(node, "used", "exec sleep 1000", ends=False)
        pull(node, "kept")
        run(node, "gone")
        node.wait_log("image %s is removed: no task has used it for 1s" % name("gone"), 60)
        wait_removed(node, "gone")
        check_layers(node, "used", "kept")
        case.equal([(shown(node, t)["InUse"], shown(node, t)["LastUsed"], shown(node, t)["Kept"]) for t in ("used", "kept")],
                   [(True, 0, False), (False, 0, True)], "those that are left")
        lines = {line.split()[0]: line for line in node.drover("image", "list").out.splitlines()[1:]}
        case.equal((lines[name("used")].endswith("  in use     false"), lines[name("kept")].endswith("  never      true")), (True, True), "the list: %s" % lines)
        case.equal(node.ask("/v1/agent/leaks"), [], "leaks")
        found = exposition.parse(node.request("GET", "/v1/metrics?format=prometheus").text)
        case.equal([found["drover_images_" + x].one() for x in ("collected_total", "on_node", "layers")], [1, 2, 3], "metrics")
        # It is pulled again for the next task. An operator who pulls an image that is here keeps it.
        run(node, "gone", "exec sleep 1000", ends=False)
        pull(node, "gone")
        node.refused(409, "a task on this node uses image %s" % name("gone"), "DELETE", "/v1/agent/images?name=" + name("gone"))
        node.drover("image", "remove", "-force", name("gone"))
        pull(node, "gone")
        node.purge("job-gone")
        case.until(lambda: shown(node, "gone")["LastUsed"] > 0, 60, "the end of its last use")
        node.purge("job-used")
        wait_removed(node, "used")
        check_layers(node, "gone", "kept")
        node.do("DELETE", "/v1/agent/images?name=" + name("gone"))
        check_layers(node, "kept")


def test_a_task_that_starts_meanwhile_keeps_the_image():
    with started('image_delay = "2s"') as node:
        run(node, "used")
        run(node, "used", "exec sleep 1000", ends=False)
        run(node, "gone")
        wait_removed(node, "gone")  # its use ended later than the first use of the other
        case.equal(shown(node, "used")["InUse"], True, "whether the image is in use")
        check_layers(node, "used")
        node.purge("job-used")
        node.purge("job-gone")
        wait_removed(node, "used")
        check_layers(node)


def test_after_a_restart_of_the_agent():
    """An image whose last use ended before it is removed when its time has come, also while the agent was stopped; one whose task still runs is not."""
    with started('image_delay = "1h"') as node:
        run(node, "used", "exec sleep 1000", ends=False)
        pull(node, "kept")
        for tag in ("gone", "late"):
            run(node, tag)
        before = shown(node, "late")["LastUsed"]
        node.kill_launcher()
        for tag in ("used", "kept", "gone"):
            age(node, tag, 2 * HOUR_NS)
        node.start()
        node.wait_ready()
        node.wait_log("image %s is removed: no task has used it for 1h0m0s" % name("gone"), 60)
        wait_removed(node, "gone")
        check_layers(node, "used", "kept", "late")
        case.equal((shown(node, "late")["LastUsed"], shown(node, "used")["InUse"], shown(node, "kept")["Kept"]), (before, True, True), "those that are left")
        # A supervisor that dies does not forget them either.
        node.kill("supervisor")
        node.wait_ready()
        case.equal((shown(node, "late")["LastUsed"], shown(node, "used")["InUse"], shown(node, "kept")["Kept"]), (before, True, True), "after the kill")
        for tag in ("used", "gone", "late"):
            node.purge("job-" + tag)


@contextlib.contextmanager
def small_disk(image_gc):
    """A node whose data directory is on a disk of its own, with two unused images, the first of which was used later, one that is kept, and an
    allocation that has ended. The disk is then made so full that either image frees enough."""
    base = case.directory()
    helper.mount("disk", base, "tmpfs", 0, "size=128m,mode=755")
    try:
        with started(image_gc, 'gc_interval = "200ms"\ngc_disk_usage_threshold = 70\ngc_inode_usage_threshold = 100', data=base + "/data") as node:
            pull(node, "kept")
            for tag in ("big2", "big1"):
                run(node, tag)
            case.until(lambda: os.listdir(node.data + "/images/blobs") == [], 30, "the blobs to be removed")
            node.register(api.job("ended", "/bin/true", group=NO_MORE))
            case.until(lambda: [a["ClientStatus"] for a in node.allocs("ended")] == ["failed"], 60, "the end of the allocation")
            disk = os.statvfs(base)
            missing = disk.f_blocks * disk.f_frsize * 77 // 100 - (disk.f_blocks - disk.f_bavail) * disk.f_frsize
            case.equal(missing > 0, True, "whether the disk was not full before")
            with open(base + "/ballast", "wb") as f:
                os.posix_fallocate(f.fileno(), 0, missing)
            yield node, base
            for job in ("job-big1", "job-big2", "ended"):
                node.purge(job)
    finally:
        helper.umount(base, 2)  # MNT_DETACH: a process may still be emptying the trash


def events(node):
    return [e["Message"] for e in node.ask("/v1/node/" + node.ask("/v1/nodes")[0]["ID"])["Events"] or () if e["Subsystem"] == "Disk"]


def test_a_full_disk_removes_the_image_whose_last_use_is_the_oldest():
    with small_disk('image_delay = "1h"') as (node, _):
        case.until(lambda: [m for m in events(node) if "there is room again" in m], 60, "the disk not to be full any more")
        case.equal([tag for tag in ("big1", "big2", "kept") if shown(node, tag)], ["big1", "kept"], "the images that are left")
        node.wait_log("image %s is removed: no task uses it, and the disk is 7" % name("big2"), 60)
        case.equal("ended allocations" in node.log(), False, "whether an allocation was removed")


def test_with_image_false_no_image_is_removed():
    with small_disk('image = false\nimage_delay = "1ms"') as (node, base):
        node.wait_log("removing 1 ended allocations", 60)
        os.unlink(base + "/ballast")
        case.equal([tag for tag in ("big1", "big2", "kept") if shown(node, tag)], ["big1", "big2", "kept"], "the images that are left")
        case.equal("is removed" in node.log(), False, "whether an image was removed")


if not shutil.which("skopeo") or not os.path.exists("/bin/busybox"):
    case.skip("no skopeo, or no busybox-static")
IMAGES = {tag: image(tag) for tag in ("used", "kept", "gone", "late")}
IMAGES.update({tag: image(tag, 14 * MB) for tag in ("big1", "big2")})
with web.Server(images.registry({"a": IMAGES})) as server:
    case.run(globals())

# SPDX-License-Identifier: Apache-2.0
"""A block device that is gone from where it is published, or is another one, is published again; a staging directory that somebody unmounts is
staged again. Running tasks go on."""
import os

from lib import api, build_dir, case, helper, loop, volumes

MS_BIND = 4096
OTHER = "was published as a device that is gone or another one now"
AGAIN = "running tasks keep the device that they have, and for their next start it is mounted again"


def plugin(version):
    script = 'CSI_BAD_DEVICE=%s exec %s "$${CSI_ENDPOINT#unix://}"' % (disk.path, os.path.join(build_dir(), "tests", "csi_bad"))
    return api.job("disks", "/bin/sh", ["-c", script], CSIPluginConfig={"ID": "disks", "Type": "monolith", "MountDir": "/csi"},
                   Env={"VERSION": str(version)})


def start_reader():
    node.register(plugin(1))
    case.until(lambda: [p["NodesHealthy"] for p in node.ask("/v1/plugins", type="csi") if p["ID"] == "disks"] == [1], 30, "the plugin")
    node.do("PUT", "/v1/volume/csi/disk/create", {"Volumes": [{"ID": "disk", "Name": "disk", "PluginID": "disks", "RequestedCapabilities": [
        {"AccessMode": "single-node-writer", "AttachmentMode": "block-device"}]}]})
    node.register(api.job("reader", "/bin/sh", ["-c", "while dd if=/disk bs=4 count=1; do sleep 0.1; done"], driver="exec", group={"Volumes": {
        "v": {"Name": "v", "Type": "csi", "Source": "disk", "AccessMode": "single-node-writer", "AttachmentMode": "block-device"}}},
        VolumeMounts=[{"Volume": "v", "Destination": "/disk"}]))
    return node.wait_running("reader")[0]


def check_now():
    """Devices are checked once a minute, and when a plugin restarts."""
    (alloc,) = node.wait_running("disks")
    node.do("PUT", "/v1/client/allocation/%s/restart" % alloc["ID"], {})


def wait_published(path, alloc, times):
    case.until(lambda: node.events(alloc["ID"]).count(AGAIN) == times, 90, "an event: " + node.events(alloc["ID"]))
    case.equal(os.stat(path).st_rdev, disk.number, "the device")
    case.equal(node.published("disk"), [path], "mounts")
    size = len(node.logs(alloc))
    case.until(lambda: len(node.logs(alloc)) > size, 20, "the task to read its device")
    case.equal(node.events(alloc["ID"]).count("Started"), 1, "starts")


def test_a_device_that_is_gone_or_another_one_is_published_again():
    alloc = start_reader()
    (path,) = node.published("disk")
    helper.umount(path)
    os.unlink(path)
    check_now()
    wait_published(path, alloc, 1)
    case.contains(node.events(alloc["ID"]), OTHER)
    with loop.Loop() as other:
        helper.mount(other.path, path, flags=MS_BIND)
        check_now()
        wait_published(path, alloc, 2)
    node.do("PUT", "/v1/client/allocation/%s/restart" % alloc["ID"], {})
    case.until(lambda: node.events(alloc["ID"]).count("Started") == 2, 20, "the next start")
    node.purge("reader")
    case.until(lambda: node.ask("/v1/agent/leaks") == [], 20, "no leaks")


def test_a_staging_directory_that_somebody_unmounts_is_staged_again():
    node.start_plugin()
    node.create("v")
    node.register(volumes.job("user", "v", "echo started; while sleep 0.1; do date +%s%N >/data/beat; done"))
    (alloc,) = node.wait_running("user")
    (staged,) = staging()
    (path,) = node.published("v")
    helper.umount(staged)
    case.until(lambda: "it is staged again" in node.events(alloc["ID"]), 60, "an event: " + node.events(alloc["ID"]))
    case.contains(node.events(alloc["ID"]), "somebody else has unmounted its staging directory; tasks keep their mounts")
    case.equal((staging(), node.published("v")), ([staged], [path]), "mounts")
    case.equal(node.logs(alloc), b"started\n", "starts")
    node.purge("user")
    case.until(lambda: node.ask("/v1/agent/leaks") == [], 20, "no leaks")


def staging():
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        return [p for p in (line.split(" ")[4] for line in f) if "/staging/v/" in p]


with loop.Loop() as disk, volumes.Node() as node:
    case.run(globals())

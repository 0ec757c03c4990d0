# SPDX-License-Identifier: Apache-2.0
"""A plugin that refuses to unmount FUSE file systems whose process has ended: drover unmounts them, to mount them again and after the task."""
import os
import signal

from lib import api, build_dir, case, volumes

ENDED = "the file system of volume v has ended, and its plugin could not unmount it: drover has unmounted it"


def register_plugin():
    script = 'exec %s "$${CSI_ENDPOINT#unix://}" mounts=yes NodeUnpublishVolume=status:13 NodeUnstageVolume=status:13' % (
        os.path.join(build_dir(), "tests", "csi_bad"))
    node.register(api.job("plugin", "/bin/sh", ["-c", script], Env={"CSI_BAD_MOUNTER": "bindfs " + data}, CSIPluginConfig={
        "ID": "fuse", "Type": "monolith", "MountDir": "/csi"}))
    case.until(lambda: [p["NodesHealthy"] for p in node.ask("/v1/plugins", type="csi")] == [1], 30, "the plugin")


def start_user():
    node.do("PUT", "/v1/volume/csi/v/create", {"Volumes": [{"ID": "v", "Name": "v", "PluginID": "fuse", "RequestedCapabilities": [
        {"AccessMode": "single-node-writer", "AttachmentMode": "file-system"}]}]})
    node.register(volumes.job("user", "v", "touch /data/used && echo started; sleep 1000"))
    return node.wait_running("user")[0]


def test_it_is_mounted_again():
    alloc = start_user()
    node.wait_said(alloc, b"started\n")
    (plugin,) = node.wait_running("plugin")
    node.do("PUT", "/v1/client/allocation/%s/restart" % plugin["ID"], {})
    case.until(lambda: node.logs(alloc) == b"started\n" * 2, 60, "the restart: " + node.events(alloc["ID"]))
    case.equal(len(node.published("v")), 1, "mounts")


def test_it_is_unmounted_after_its_task():
    (path,) = node.published("v")
    (alloc,) = node.wait_running("user")
    for pid in node.fuse_processes():
        os.kill(pid, signal.SIGKILL)
    case.until(lambda: not usable(path), 20, "the end of the file system")
    node.do("DELETE", "/v1/job/user")
    case.until(lambda: ENDED in node.events(alloc["ID"]), 60, "an event: " + node.events(alloc["ID"]))
    case.equal((node.published("v"), node.ask("/v1/agent/leaks")), ([], []))


def usable(path):
    try:
        os.statvfs(path)
        return True
    except OSError:
        return False


if not os.path.exists("/dev/fuse"):
    case.skip("no /dev/fuse")
with volumes.Node() as node:
    data = case.directory()
    os.chmod(data, 0o777)
    register_plugin()
    case.run(globals())

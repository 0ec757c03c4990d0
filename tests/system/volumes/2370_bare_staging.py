#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A plugin that stages a volume without a mount on the staging directory: here it publishes a device. The volume is staged once for several
allocs, however each uses it, and NodeExpandVolume says how it was staged."""
import os

from lib import api, build_dir, case, csi, loop

MODE = {"AccessMode": "multi-node-multi-writer", "AttachmentMode": "block-device"}


def start_plugin():
    script = 'CSI_BAD_DEVICE=%s exec %s "$${CSI_ENDPOINT#unix://}" requests=%s rules=%s' % (
        disk.path, os.path.join(build_dir(), "tests", "csi_bad"), requests, rules)
    node.register(api.job("plugin", "/bin/sh", ["-c", script], CSIPluginConfig={"ID": "disks", "Type": "monolith", "MountDir": "/csi"}))
    wait_healthy()


def wait_healthy():
    case.until(lambda: [p["NodesHealthy"] for p in node.ask("/v1/plugins", type="csi")] == [1], 20, "a healthy plugin")


def create(size):
    node.do("PUT", "/v1/volume/csi/disk/create", {"Volumes": [{"ID": "disk", "Name": "disk", "PluginID": "disks",
                                                               "RequestedCapacityMin": size, "RequestedCapabilities": [MODE],
                                                               "Secrets": {"key": "of the disk"}}]})


def use(name, **request):
    node.register(api.job(name, "/bin/sleep", ["1000"], driver="exec", group={"Volumes": {"v": {
        "Name": "v", "Type": "csi", "Source": "disk", **MODE, **request}}}, VolumeMounts=[{"Volume": "v", "Destination": "/disk"}]))
    node.wait_running(name)


def counts():
    return [len(csi.calls(requests, call)) for call in ("NodeStageVolume", "NodePublishVolume", "NodeUnpublishVolume", "NodeUnstageVolume")]


def test_a_volume_is_staged_once():
    use("one")
    use("two", ReadOnly=True)
    case.equal(counts(), [1, 2, 0, 0])


def test_the_expansion_says_how_it_is_staged_and_has_the_secrets():
    node.replace_supervisor()  # what it says is in the row
    wait_healthy()
    create(2 << 20)
    made = csi.calls(requests, "NodeExpandVolume")
    case.equal(len(made), 2)
    for call in made:
        case.equal((call["volume_capability"]["access_mode"]["mode"], "block" in call["volume_capability"]), (5, True), str(call))
        case.equal(csi.entries(call["secrets"]), {"key": "of the disk"})


def test_the_last_user_unstages():
    node.purge("one")
    case.until(lambda: counts() == [1, 2, 1, 0], 20, "one unmount")
    use("three")
    case.equal(counts(), [1, 3, 1, 0])
    node.purge("two")
    node.purge("three")
    case.until(lambda: counts() == [1, 3, 3, 1], 20, "the last unmount")
    use("four")
    case.equal(counts(), [2, 4, 3, 1])
    node.purge("four")
    case.until(lambda: counts() == [2, 4, 4, 2], 20, "the unmount")


def test_the_last_user_unstages_while_another_waits_for_late_effects():
    """The first unpublish of one has an unknown effect, so its mount is looked at once more after 2 s. Meanwhile two ends too."""
    for name in ("one", "two"):
        use(name)
    before = counts()
    case.write(rules, "NodeUnpublishVolume=once:14\n")
    node.do("DELETE", "/v1/job/one?purge=true")
    case.until(lambda: counts()[2] == before[2] + 2, 20, "the unpublish and its repetition")
    case.write(rules, "")
    node.do("DELETE", "/v1/job/two?purge=true")
    case.until(lambda: counts()[2:] == [before[2] + 3, before[3] + 1], 20, "the last unmount")
    case.until(lambda: node.ask("/v1/allocations") == [a for a in node.ask("/v1/allocations") if a["JobID"] == "plugin"], 30, "their allocs")


def test_no_leaks_are_left():
    node.do("DELETE", "/v1/volume/csi/disk/delete")
    node.purge("plugin")
    case.until(lambda: node.ask("/v1/agent/leaks") == [], 20, "no leaks")


base = case.directory()
requests, rules = base + "/requests", base + "/rules"
case.write(rules, "")
os.chmod(rules, 0o666)
with open(requests, "w", encoding="ascii"):
    os.chmod(base, 0o777)
    os.chmod(requests, 0o666)
with loop.Loop() as disk, api.Node() as node:
    start_plugin()
    create(1 << 20)
    case.run(globals())

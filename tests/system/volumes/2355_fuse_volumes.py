#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# timeout: 400
# takes: 120
"""A plugin whose volumes are FUSE file systems (bindfs) that end with their process: they are mounted again, and their tasks restarted, signalled or only
told."""
import os
import signal

from lib import api, build_dir, case, volumes

LOST = "has lost its file system, because its process, usually the plugin's, has ended"
AGAIN = "files that tasks have open there fail, and it is mounted again"
WAITS = "it could not be mounted again yet: plugin fuse does not answer on this node"
WRITE = "trap 'echo told' HUP; echo started; while sleep 0.1; do date +%s%N >/data/$NOMAD_JOB_ID; done 2>/dev/null"
# A task of raw_exec has no mount of its own. It does not write there, because that would be the host's directory while nothing is mounted on it.
READ_RAW = "echo started; while sleep 0.1; do cat $(echo DATA/csi/*/fuse/per-alloc/$NOMAD_ALLOC_ID/*/*)/restarts >OUT; done 2>/dev/null"


def register_plugin(version=1):
    script = 'exec %s "$${CSI_ENDPOINT#unix://}" mounts=yes log=%s' % (os.path.join(build_dir(), "tests", "csi_bad"), calls_path)
    node.register(api.job("plugin", "/bin/sh", ["-c", script], Env={"CSI_BAD_MOUNTER": "bindfs " + data, "VERSION": str(version)}, CSIPluginConfig={
        "ID": "fuse", "Type": "monolith", "MountDir": "/csi"}))


def plugin_answers():
    answer = node.request("GET", "/v1/plugin/csi/fuse")
    return answer.status == 200 and answer.json["NodesHealthy"] == 1


def start_users():
    """`restarts` does what is the default; `told` is signalled; its second task, of raw_exec, goes on."""
    node.do("PUT", "/v1/volume/csi/v/create", {"Volumes": [{"ID": "v", "Name": "v", "PluginID": "fuse", "RequestedCapabilities": [
        {"AccessMode": "multi-node-multi-writer", "AttachmentMode": "file-system"}]}]})
    for name, meta in (("restarts", {}), ("told", {"drover_volume_loss": "signal:SIGHUP"})):
        made = volumes.job(name, "v", WRITE, Meta=meta)
        group = made["Job"]["TaskGroups"][0]
        group["Volumes"]["data"]["AccessMode"] = "multi-node-multi-writer"
        if name == "told":
            group["Tasks"].append(api.task("raw", "/bin/sh", ["-c", READ_RAW.replace("DATA", node.data).replace("OUT", data + "/raw")]))
        node.register(made)
    for name in ("restarts", "told"):
        users[name] = node.wait_running(name)[0]
    wait_writes("restarts", "told", "raw")


def wait_writes(*names):
    for name in names:
        old = beat(name)
        case.until(lambda: beat(name) not in ("", old), 30, "%s to write: %s" % (name, node.log()[-2000:]))


def beat(name):
    """Returns what the task has written last, or read."""
    try:
        with open(os.path.join(data, name), encoding="ascii") as f:
            return f.read()
    except FileNotFoundError:
        return ""


def said(name, text, task="t"):
    """Returns how often the task wrote this line."""
    return node.logs(users[name], task).decode().split("\n").count(text)


def wait_repaired(before, seconds=120):
    """Waits until each user has learned once more of the loss and uses the volume again. before: counts()."""
    def so():
        return counts() == tuple(n + 1 for n in before)
    case.until(so, seconds, "the volume to be mounted again: %s %s\n%s\n%s" % (
        before, counts(), node.events(users["restarts"]["ID"]), node.events(users["told"]["ID"])))
    wait_writes("restarts", "raw")  # `told` has the old mount until it ends
    case.equal(len(node.fuse_processes()), 1, "processes of file systems")
    case.equal((said("told", "started"), said("told", "started", "raw")), (1, 1), "starts of tasks that go on")


def counts():
    """Returns how often one was restarted, and the other one was told."""
    return said("restarts", "started"), said("told", "told")


def calls():
    with open(calls_path, encoding="ascii") as f:
        return [line.split(" ")[0] for line in f if line.startswith("Node") and "Get" not in line]


def test_the_file_system_ends_while_the_plugin_goes_on():
    before, made = counts(), len(calls())
    (daemon,) = node.fuse_processes()
    os.kill(daemon, signal.SIGKILL)
    wait_repaired(before)
    for name in users:
        case.contains(node.events(users[name]["ID"]), LOST, name)
        case.contains(node.events(users[name]["ID"]), AGAIN, name)
    case.contains(node.events(users["restarts"]["ID"]), "volume v was mounted again after it was lost")
    case.contains(node.events(users["told"]["ID"], "raw"), AGAIN, "the task of raw_exec")
    case.equal(sorted(calls()[made:made + 2]), ["NodeUnpublishVolume"] * 2, "first all are unpublished: %s" % calls())
    case.equal(calls()[made + 2:], ["NodeUnstageVolume", "NodeStageVolume", "NodePublishVolume", "NodePublishVolume"], "then")


def test_the_plugin_restarts():
    before = counts()
    plugin = node.wait_running("plugin")[0]["ID"]
    node.do("PUT", "/v1/client/allocation/%s/restart" % plugin, {})
    wait_repaired(before)


def test_the_plugin_is_away_for_some_time_and_the_supervisor_restarts_meanwhile():
    before = counts()
    plugin = node.wait_running("plugin")[0]["ID"]
    node.do("PUT", "/v1/client/allocation/%s/signal" % plugin, {"Signal": "SIGKILL"})
    for name in users:
        case.until(lambda: WAITS in node.events(users[name]["ID"]), 60, "event of %s" % name)
    case.equal(counts(), before, "nothing happens to the tasks meanwhile")
    node.replace_supervisor()
    register_plugin(2)
    case.until(plugin_answers, 60, "the plugin")
    wait_repaired(before)


def test_nothing_is_left():
    os.kill(node.fuse_processes()[0], signal.SIGKILL)  # nor of what has ended
    for name in users:
        node.purge(name)
    case.until(lambda: node.ask("/v1/agent/leaks") == [], 60, "no leaks: %s" % node.ask("/v1/agent/leaks"))
    case.equal((node.published("v"), node.fuse_processes()), ([], []))


if not os.path.exists("/dev/fuse"):
    case.skip("no /dev/fuse")
with volumes.Node() as node:
    users = {}
    data, calls_path = case.directory() + "/data", case.directory() + "/calls"
    os.mkdir(data)
    os.chmod(data, 0o777)
    register_plugin()
    case.until(plugin_answers, 30, "the plugin")
    start_users()
    case.run(globals())

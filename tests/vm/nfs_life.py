#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The whole life of volumes on an NFS server. Runs in: the guest, as root. Prints `the whole life` at the end if all tests pass."""
import os
import re
import signal
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "system"))
import outlives  # noqa: E402
from lib import api, case, volumes  # noqa: E402

PATIENCE = outlives.PATIENCE
S = outlives.S
WRITER, READER = "multi-node-multi-writer", "multi-node-reader-only"
node = outlives.Node()


def plugin_job(program):
    """A driver of network file systems needs what a privileged container has."""
    script = ("exec /var/lib/driver/%s --endpoint=$CSI_ENDPOINT --nodeid=${node.unique.id} --v=5 --working-mount-dir=$NOMAD_TASK_DIR "
              "--mount-permissions=0777" % program)
    made = api.job("nfs", group={
        "RestartPolicy": {"Attempts": 100, "Interval": 3600 * S, "Delay": S, "Mode": "fail"},
        "Tasks": [api.task("plugin", "/bin/sh", ["-c", script], CSIPluginConfig={"ID": "nfs", "Type": "monolith", "MountDir": "/csi"})]})
    made["Job"]["Type"] = "service"
    return made


def plugin():
    answer = node.request("GET", "/v1/plugin/csi/nfs")
    return answer.json if answer.status == 200 else {"NodesHealthy": 0, "ControllersHealthy": 0, "Version": ""}


def wait_plugin(version):
    try:
        wait_healthy(version)
    except AssertionError:
        for alloc in node.allocs("nfs"):
            print(volumes.Node.events(node, alloc["ID"], "plugin"), node.request_logs(alloc, "plugin", "stderr").text[-1500:])
        raise


def wait_healthy(version):
    case.until(lambda: (plugin()["NodesHealthy"], plugin()["ControllersHealthy"], plugin()["Version"]) == (1, 1, version), PATIENCE,
               "version %s of the plugin to be healthy" % version)


def spec(name, **more):
    return {"ID": name, "Name": name, "PluginID": "nfs", "RequestedCapacityMin": 1 << 20, "RequestedCapabilities": [
        {"AccessMode": mode, "AttachmentMode": "file-system"} for mode in (WRITER, READER)],
        "MountOptions": {"MountFlags": ["nfsvers=4.1", "soft", "timeo=50", "retrans=2"]},
        "Parameters": {"server": "127.0.0.1", "share": "/"}, **more}


def create(name, **more):
    node.do("PUT", "/v1/volume/csi/%s/create" % name, {"Volumes": [spec(name, **more)]})


def job(name, volume, script, mode=WRITER, count=1, **request):
    made = volumes.job(name, volume, script)
    group, = made["Job"]["TaskGroups"]
    group["Count"] = count
    group["Volumes"]["data"].update({"AccessMode": mode, "ReadOnly": mode == READER, **request})
    return made


def running(name, count=1):
    return node.wait_running(name, count, seconds=PATIENCE)


def wait_logs(alloc, text):
    return case.until(lambda: text in node.logs(alloc).decode() and node.logs(alloc).decode(), PATIENCE, text)


def wait_unmounted(volume):
    case.until(lambda: not volumes.Node.published(node, volume), PATIENCE, "%s to be unmounted" % volume)


def lines(volume):
    """Returns the lines in the volume's file `log`, as the server has it; none before the first."""
    path = "/srv/nfs/%s/log" % node.ask("/v1/volume/csi/" + volume)["ExternalID"].split("#")[2]
    try:
        with open(path, encoding="ascii") as f:
            return f.read().split()
    except FileNotFoundError:
        return []


def wait_more(volume):
    before = len(lines(volume))
    case.until(lambda: len(lines(volume)) > before, PATIENCE, "more lines in " + volume)


def nfs_server(action):
    subprocess.run(["systemctl", action, "nfs-server"], check=True)


def test_writers_and_readers():
    node.register(plugin_job("nfsplugin-old"))
    wait_plugin("v4.9.0")
    create("shared")
    node.register(job("writers", "shared", "while :; do echo $NOMAD_ALLOC_ID >> /data/log; sleep 1; done", count=3))
    allocs = {a["ID"] for a in running("writers", 3)}
    case.until(lambda: set(lines("shared")) == allocs, PATIENCE, "all to write")
    node.register(job("reader", "shared", "echo $(wc -l < /data/log) lines; touch /data/x || echo is read-only; grep ' /data ' /proc/self/mountinfo; "
                      "sleep 100000", READER))
    text = wait_logs(running("reader")[0], " nfs4 ")
    case.equal(bool(re.search(r"^[1-9]\d* lines\nis read-only\n", text)), True, text)
    case.contains(text, "vers=4.1")
    case.contains(text, "soft")
    case.equal(bool(re.search(r" /data ro,", text)), True, text)


def test_options_of_the_request():
    create("options")
    node.register(job("options", "options", "grep ' /data ' /proc/self/mountinfo; sleep 100000",
                      MountOptions={"MountFlags": ["nfsvers=4.2", "noatime", "rsize=65536"]}))
    text = wait_logs(running("options")[0], " nfs4 ")
    for option in ("vers=4.2", "noatime", "rsize=65536"):
        case.contains(text, option)
    node.purge("options", PATIENCE)
    node.do("DELETE", "/v1/volume/csi/options/delete")


def test_snapshot_and_clone():
    made, = node.do("PUT", "/v1/volumes/snapshot", {"Snapshots": [{"SourceVolumeID": "shared", "Name": "s1"}]})["Snapshots"]
    create("restored", SnapshotID=made["ID"])
    create("cloned", CloneID=node.ask("/v1/volume/csi/shared")["ExternalID"])
    for name in ("restored", "cloned"):
        node.register(job(name, name, "echo $(wc -l < /data/log) lines; sleep 100000"))
        case.equal(bool(re.match(r"[1-9]\d* lines", wait_logs(running(name)[0], "lines"))), True, name)
        node.purge(name, PATIENCE)
        node.do("DELETE", "/v1/volume/csi/%s/delete" % name)
    node.do("DELETE", "/v1/volumes/snapshot?plugin_id=nfs&snapshot_id=" + made["ID"].replace("#", "%23").replace("/", "%2F"))


def test_the_driver_is_killed_and_upgraded_while_the_volume_is_used():
    pid = int(subprocess.run(["pgrep", "-f", "nfsplugin-old --endpoint"], stdout=subprocess.PIPE, check=True).stdout.split()[0])
    os.kill(pid, signal.SIGKILL)
    wait_plugin("v4.9.0")
    wait_more("shared")
    allocs = sorted(a["ID"] for a in running("writers", 3))
    node.register(plugin_job("nfsplugin"))
    wait_plugin("v4.11.0")
    wait_more("shared")
    case.equal(sorted(a["ID"] for a in running("writers", 3)), allocs, "allocations")
    # What the old version has mounted, the new one unmounts.
    node.purge("reader", PATIENCE)
    node.register(job("reader", "shared", "wc -l < /data/log; sleep 100000", READER))
    running("reader")
    node.purge("reader", PATIENCE)


def test_the_supervisor_is_killed():
    allocs = sorted(a["ID"] for a in running("writers", 3))
    os.kill(int(subprocess.run(["pgrep", "-x", "drover-supervis"], stdout=subprocess.PIPE, check=True).stdout.split()[0]), signal.SIGKILL)
    node.wait_ready()
    wait_more("shared")
    case.equal(sorted(a["ID"] for a in running("writers", 3)), allocs, "allocations")


def test_expansion_in_use():
    wait_plugin("v4.11.0")  # it is asked again after the agent was replaced
    create("shared", RequestedCapacityMin=8 << 20)
    case.equal(node.ask("/v1/volume/csi/shared")["Capacity"] >= 8 << 20, True)


def test_the_server_is_gone_and_comes_back():
    """Nothing of the agent hangs meanwhile. A job that is stopped in the meantime ends, and its volume is free after."""
    create("away")
    node.register(job("away", "away", "while echo $NOMAD_ALLOC_ID >> /data/log; do sleep 1; done; echo failed; sleep 100000"))
    alloc, = running("away")
    case.until(lambda: lines("away"), PATIENCE, "lines")
    nfs_server("stop")
    node.do("DELETE", "/v1/job/away")
    for _ in range(20):
        case.equal(node.get("/v1/agent/health")[0], 200)
        node.drover("status")
        node.drover("volume", "status", "away")
    print(node.drover("alloc", "status", alloc["ID"]))
    nfs_server("start")
    case.until(lambda: node.ask("/v1/allocation/" + alloc["ID"])["ClientStatus"] == "complete", PATIENCE, "its end")
    wait_unmounted("away")
    # A server that has started lets nothing be removed for 90 s, so that its clients can reclaim what they had.
    case.until(lambda: node.request("DELETE", "/v1/volume/csi/away/delete", timeout=2 * PATIENCE).status == 200, PATIENCE, "the volume to be free")
    wait_more("shared")
    node.purge("away", PATIENCE)


def test_drain():
    node.drover("node", "drain", "-enable", "-self", "-yes")
    case.until(lambda: not node.ask("/v1/client/stats") or not volumes.Node.published(node, "shared"), PATIENCE, "the volume to be unmounted")
    node.drover("node", "drain", "-disable", "-self", "-yes")
    node.drover("node", "eligibility", "-enable", "-self")
    wait_plugin("v4.11.0")
    running("writers", 3)
    wait_more("shared")


def test_nothing_is_left():
    node.purge("writers", PATIENCE)
    wait_unmounted("shared")
    node.do("DELETE", "/v1/volume/csi/shared/delete")
    node.purge("nfs", PATIENCE)
    case.equal(os.listdir("/srv/nfs"), [], "directories on the server")
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        case.equal([line for line in f if "/var/lib/drover/csi" in line], [], "mounts")
    print(node.drover("leaks"))


def main():
    node.wait_ready()
    tests = {name: fn for name, fn in globals().items() if name.startswith("test_")}
    try:
        case.run(tests)
    except SystemExit as e:
        print(node.log() if e.code else "the whole life: %d tests" % len(tests), flush=True)


if __name__ == "__main__":
    main()

#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""csi-driver-nfs in containers, with the arguments of its published jobs, and its volumes in containers, whose ids NFS cannot map. Runs in: the guest, as
root. Prints `in containers` at the end if all tests pass."""
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "system"))
import nfs_life as life  # noqa: E402
from lib import api, case, images, volumes, web  # noqa: E402

node = life.node
TOOLS = ("sh", "cat", "echo", "sleep", "id", "ls", "stat", "touch")
USER = {"RestartPolicy": {"Attempts": 100, "Interval": 3600 * life.S, "Delay": life.S, "Mode": "fail"}}


def image():
    with open("/var/lib/driver/nfsplugin", "rb") as f:
        driver = images.file("bin/nfsplugin", f.read(), mode=0o755)
    layers = [images.busybox(*TOOLS), images.program("/bin/mount", "bin/mount"), images.program("/bin/umount", "bin/umount"),
              images.program("/sbin/mount.nfs", "sbin/mount.nfs"), [images.hardlink("sbin/mount.nfs4", "sbin/mount.nfs")], [driver]]
    flat = [entry for layer in layers for entry in layer]
    return images.Image([images.tar(flat)], {"Entrypoint": ["/bin/nfsplugin"], "Env": ["PATH=/bin:/sbin", "LD_LIBRARY_PATH=/lib"]}, pack="")


def half(kind, privileged):
    """Registers the controller or the node plugin as a container."""
    made = api.job("plugin-nfs-" + kind, driver="docker", group=USER)
    made["Job"]["TaskGroups"][0]["Tasks"][0].update(Resources={"CPU": 100, "MemoryMB": 128}, Config={
        "image": images.name(server, "nfsplugin:1"), "privileged": privileged, "network_mode": "host",
        "args": ["--v=5", "--nodeid=${attr.unique.hostname}", "--endpoint=unix:///csi/csi.sock", "--drivername=nfs.csi.k8s.io"]},
        CSIPluginConfig={"ID": "nfs", "Type": kind, "MountDir": "/csi", "HealthTimeout": 600 * life.S})
    node.register(made)


def wait_plugin():
    case.until(lambda: (life.plugin()["ControllersHealthy"], life.plugin()["NodesHealthy"]) == (1, 1), 3 * life.PATIENCE, "both halves to be healthy")


def said(name, volume, script, user=None, driver="docker"):
    """Returns what a script has written in a task with the volume at /data, and the task's events."""
    made = life.job(name, volume, script + "; echo end; exec sleep 100000")
    task = made["Job"]["TaskGroups"][0]["Tasks"][0]
    if driver == "docker":
        task.update(Driver="docker", User=user, Config={"image": images.name(server, "nfsplugin:1"), "network_mode": "host", "entrypoint": ["/bin/sh"], "args": [
            "-c", script + "; echo end; exec sleep 100000"]})
    node.register(made)
    alloc, = life.running(name)
    text = life.wait_logs(alloc, "end\n")
    events = volumes.Node.events(node, alloc["ID"])
    node.purge(name, life.PATIENCE)
    return text, events


def test_a_controller_without_privilege_can_do_all_but_mount():
    """It mounts the export to create a directory there. Volumes that exist can be registered and used."""
    half("controller", False)
    half("node", True)
    wait_plugin()
    answer = node.request("PUT", "/v1/volume/csi/made/create", {"Volumes": [life.spec("made")]}, timeout=life.PATIENCE)
    case.equal(answer.status, 500, answer.text)
    case.contains(answer.text, "CreateVolume of plugin nfs")
    case.contains(answer.text, "mount")
    os.mkdir("/srv/nfs/there")
    os.chmod("/srv/nfs/there", 0o777)
    node.do("PUT", "/v1/volume/csi/there", {"Volumes": [life.spec("there", ExternalID="127.0.0.1#/#there##", Context={
        "server": "127.0.0.1", "share": "/", "subdir": "there"})]})
    text, events = said("web", "there", "id -u; echo kept >/data/f; cat /data/f")
    case.equal(text, "0\nkept\nend\n")
    case.contains(events, 'volume "data": NFS cannot map ids')
    case.equal(os.stat("/srv/nfs/there/f").st_uid >= images.ID_OWN, True, "the owner on the server")
    case.equal(said("task", "there", "cat /data/f", driver="exec")[0], "kept\nend\n")


def test_the_node_restarts_and_the_controller_becomes_privileged():
    node.register(life.job("stays", "there", "while sleep 1; do echo line >>/data/log; done"))
    life.running("stays")
    alloc = node.allocs("plugin-nfs-node")[0]["ID"]
    node.do("PUT", "/v1/client/allocation/%s/restart" % alloc, {"TaskName": "t"})
    half("controller", True)
    wait_plugin()
    before = os.stat("/srv/nfs/there/log").st_size
    case.until(lambda: os.stat("/srv/nfs/there/log").st_size > before, life.PATIENCE, "more lines")
    node.purge("stays", life.PATIENCE)


def test_modes_and_squashing_decide():
    life.create("closed", Parameters={"server": "127.0.0.1", "share": "/", "mountPermissions": "0755"})
    text, _ = said("other", "closed", "echo x >/data/f || echo may not write; ls /data && echo may read")
    case.equal(text, "may not write\nmay read\nend\n")
    node.do("DELETE", "/v1/volume/csi/closed/delete")
    node.do("PUT", "/v1/volume/csi/squashed", {"Volumes": [life.spec("squashed", ExternalID="127.0.0.1#/squash#sub##", Context={
        "server": "127.0.0.1", "share": "/squash"})]})
    for user in (None, "1000:1000"):
        case.equal(said("web", "squashed", "echo mine >/data/f; cat /data/f", user)[0], "mine\nend\n", str(user))
        case.equal(os.stat("/srv/nfs/squash/f").st_uid, 1000, "the owner on the server")


def test_nothing_is_left():
    for name in ("there", "squashed"):
        node.do("DELETE", "/v1/volume/csi/" + name)
    for kind in ("controller", "node"):
        node.purge("plugin-nfs-" + kind, life.PATIENCE)
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        case.equal([line for line in f if "/var/lib/drover/csi" in line], [], "mounts")
    case.until(lambda: node.ask("/v1/agent/leaks") == [], life.PATIENCE, "no leaks")


if __name__ == "__main__":
    node.wait_ready()
    tests = {name: fn for name, fn in globals().items() if name.startswith("test_")}
    with web.Server(images.registry({"nfsplugin": {"1": image()}})) as server:
        try:
            case.run(tests)
        except SystemExit as e:
            subprocess.run(["journalctl", "-u", "drover.service", "-n", "150", "--no-pager"], check=False)
            print("in containers: %s" % ("FAILED" if e.code else "%d tests" % len(tests)), flush=True)

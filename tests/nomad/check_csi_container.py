#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs CSI drivers as their published jobs do, in containers, with images that are made here from the drivers' programs: csi-driver-host-path, one
privileged container, and csi-s3, a privileged container on the node, which mounts FUSE file systems, and a controller without privilege, both in bridge
networks. In namespaces of its own:

    CSI_HOSTPATH=path/to/hostpathplugin CSI_S3=path GEESEFS=path S3_SERVER='command' tests/nomad/isolated.py tests/nomad/check_csi_container.py

s3_driver.py says what the last three are; here the command has to listen on all addresses. A driver whose programs are missing is left out.
S3_JOBS, a list of paths separated by spaces, names job files to run in place of those of csi-s3 below; only the images in them are replaced. The job of
csi-driver-host-path has a host volume for its data here, because the root of its container ends with it, and cannot map ids."""
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from lib import api, case, images, networks, volumes, web  # noqa: E402
import network_volumes  # noqa: E402
import s3_driver  # noqa: E402

CONFIG = """plugin "docker" { config {
  enabled = true
  allow_privileged = true
} }"""
CLIENT = 'meta { type = "runner" }'
TOOLS = ("sh", "mount", "umount", "cp", "tar", "mkdir", "ls", "cat", "echo", "sleep", "id")


def read(path):
    with open(path, "rb") as f:
        return f.read()


def image(entrypoint, programs=None, linked=()):
    """programs: {name in /bin: path} of static programs; linked: paths of this machine's."""
    layers = [images.busybox(*TOOLS), *(images.program(shutil.which(p), "bin/" + os.path.basename(p)) for p in linked),
              [images.file("bin/" + name, read(path), mode=0o755) for name, path in (programs or {}).items()]]
    return images.Image([images.tar(x) for x in layers], {"Entrypoint": entrypoint, "Env": ["PATH=/bin", "LD_LIBRARY_PATH=/lib"]}, pack="")


def plugin(name, plugin_id, kind, args, **config):
    made = api.job(name, driver="docker")
    made["Job"]["TaskGroups"][0]["Tasks"][0].update(Config={"args": ["--v=5", *args], **config}, CSIPluginConfig={
        "ID": plugin_id, "Type": kind, "MountDir": "/csi"}, Resources={"CPU": 100, "MemoryMB": 300})
    return made


def start(made, reference, paths=()):
    """Registers the jobs in these files, or else these, with this image, and waits until the plugin is healthy. Returns its id and its jobs."""
    made = [{"Job": node.do("POST", "/v1/jobs/parse", {"JobHCL": read(p).decode(), "Canonicalize": True})} for p in paths] or made
    halves = set()
    for one in made:
        task, = one["Job"]["TaskGroups"][0]["Tasks"]
        print("    %s: image %s, privileged %s" % (one["Job"]["ID"], task["Config"].get("image"), task["Config"].get("privileged", False)), flush=True)
        task["Config"]["image"] = images.name(server, reference)
        halves |= {"monolith": {"Controllers", "Nodes"}, "controller": {"Controllers"}, "node": {"Nodes"}}[task["CSIPluginConfig"]["Type"]]
        node.register(one)
    name = task["CSIPluginConfig"]["ID"]

    def healthy():
        answer = node.request("GET", "/v1/plugin/csi/" + name)
        return answer.status == 200 and all(answer.json[half + "Healthy"] == 1 for half in halves)
    case.until(healthy, 90, "plugin %s to be healthy" % name)
    return name, [one["Job"]["ID"] for one in made]


def user(name, volume, script, driver):
    made = network_volumes.user(name, volume, script + "; echo end; exec sleep 1000", driver)
    if driver == "docker":
        made["Job"]["TaskGroups"][0]["Tasks"][0]["Config"] = {"image": images.name(server, "user:1"), "network_mode": "host", "command": "/bin/sh",
                                                            "args": ["-c", script + "; echo end; exec sleep 1000"]}
    return made


def said(name, volume, script, driver="exec"):
    """Returns what the script has written in a task with this volume at /d, and the task's events."""
    node.register(user(name, volume, script, driver))
    alloc = node.wait_running(name, seconds=90)[0]
    node.wait_said(alloc, b"end\n")
    text, events = node.logs(alloc).decode(), node.events(alloc["ID"])
    node.purge(name, 60)
    return text, events


def release(volume, jobs):
    node.do("DELETE", "/v1/volume/csi/%s/delete" % volume)
    case.until(lambda: not node.published(volume), 60, "no mount of the volume")
    for name in jobs:
        node.purge(name, 60)
    case.until(lambda: node.ask("/v1/agent/leaks") == [], 30, "no leaks")


def test_csi_driver_host_path():
    if not os.environ.get("CSI_HOSTPATH"):
        print("    left out: CSI_HOSTPATH=path/to/hostpathplugin is not set")
        return
    made = plugin("hostpath", "hostpath", "monolith", ["--drivername=csi-hostpath", "--endpoint=${CSI_ENDPOINT}", "--nodeid=node-${NOMAD_ALLOC_INDEX}"],
                  privileged=True, network_mode="host")
    made["Job"]["TaskGroups"][0]["Volumes"] = {"store": {"Name": "store", "Type": "host", "Source": "csi-local"}}
    made["Job"]["TaskGroups"][0]["Tasks"][0]["VolumeMounts"] = [{"Volume": "store", "Destination": "/csi-data-dir"}]
    name, jobs = start([made], "hostpathplugin:1")
    node.create("demo", "multi-node-multi-writer", PluginID=name)
    case.equal(said("web", "demo", "echo kept >/d/f; cat /d/f", "docker")[0], "kept\nend\n")
    case.equal(said("again", "demo", "cat /d/f")[0], "kept\nend\n")
    release("demo", jobs)


def test_csi_s3():
    """What the driver mounts is FUSE without default_permissions: also the users of containers, which have other ids there, can do everything."""
    missing = [n for n in s3_driver.NAMES if not os.environ.get(n)]
    if missing:
        print("    left out: not set: " + ", ".join(missing))
        return
    args = ["--endpoint=unix:///csi/csi.sock", "--nodeid=${node.unique.name}", "--logtostderr"]
    made = [plugin("plugin-s3-controller", "s3", "controller", args), plugin("plugin-s3-node", "s3", "node", args, privileged=True)]
    with s3_driver.Storage() as storage:
        name, jobs = start(made, "csi-s3-driver:1", os.environ.get("S3_JOBS", "").split())
        volume = storage.volume("bucket", PluginID=name)
        volume["Volumes"][0]["Secrets"]["endpoint"] = "http://198.18.0.1:%d" % storage.port
        node.do("PUT", "/v1/volume/csi/bucket/create", volume)
        text, events = said("web", "bucket", "id -u; echo kept >/d/f; cat /d/f", "docker")
        case.equal(text, "0\nkept\nend\n")
        case.contains(events, 'volume "v": FUSE cannot map ids')
        case.equal(said("again", "bucket", "cat /d/f; echo more >>/d/f; cat /d/f")[0], "kept\nkept\nmore\nend\n")
        for job in jobs:
            alloc = node.allocs(job)[0]["ID"]
            task, = node.ask("/v1/allocation/" + alloc)["TaskStates"]
            node.do("PUT", "/v1/client/allocation/%s/restart" % alloc, {"TaskName": task})
            case.until(lambda a=alloc, t=task: node.ask("/v1/allocation/" + a)["TaskStates"][t]["Restarts"] == 1, 60, "its restart")
        case.equal(said("last", "bucket", "cat /d/f", "docker")[0], "kept\nmore\nend\n")
        release("bucket", jobs)
    case.equal((network_volumes.fuse_mounts(), network_volumes.processes("geesefs")), ([], []), "what is left")


networks.need()
REPOSITORIES = {"user": {"1": image([])}}
if os.environ.get("CSI_HOSTPATH"):
    REPOSITORIES["hostpathplugin"] = {"1": image(["/bin/hostpathplugin"], {"hostpathplugin": os.environ["CSI_HOSTPATH"]}, ["findmnt"])}
if os.environ.get("CSI_S3") and os.environ.get("GEESEFS"):
    REPOSITORIES["csi-s3-driver"] = {"1": image(["/bin/s3driver"], {"s3driver": os.environ["CSI_S3"], "geesefs": os.environ["GEESEFS"]})}
with web.Server(images.registry(REPOSITORIES)) as server, volumes.Node(CONFIG, CLIENT) as node:
    case.run(globals())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs csi-driver-host-path as its published job does: in a privileged container, with the arguments and the csi_plugin block of that job, and an
image that is made here from the program. In namespaces of its own:

    CSI_HOSTPATH=path/to/hostpathplugin tests/nomad/isolated.py tests/nomad/check_csi_container.py"""
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from lib import api, case, images, volumes, web  # noqa: E402

CONFIG = 'plugin "docker" { config {\n enabled = true\n allow_privileged = true\n} }'


def image():
    with open(os.environ["CSI_HOSTPATH"], "rb") as f:
        program = images.file("hostpathplugin", f.read(), mode=0o755)
    layers = [images.tar(x) for x in (images.busybox("sh", "mount", "umount", "cp", "tar", "mkdir", "ls", "cat", "echo", "sleep"),
                                      images.program(shutil.which("findmnt"), "bin/findmnt"), [program])]
    return images.Image(layers, {"Entrypoint": ["/hostpathplugin"], "Env": ["PATH=/bin", "LD_LIBRARY_PATH=/lib"]}, pack="")


class Node(volumes.Node):
    def register_plugin(self, args=()):
        made = api.job("hostpath", driver="docker")
        made["Job"]["TaskGroups"][0]["Volumes"] = {"store": {"Name": "store", "Type": "host", "Source": "csi-local"}}
        made["Job"]["TaskGroups"][0]["Tasks"][0].update(
            VolumeMounts=[{"Volume": "store", "Destination": "/csi-data-dir"}],
            Config={"image": images.name(server, "sig-storage/hostpathplugin:v1"), "privileged": True, "network_mode": "host", "args": [
                "--drivername=csi-hostpath", "--v=5", "--endpoint=${CSI_ENDPOINT}", "--nodeid=node-${NOMAD_ALLOC_INDEX}", *args]},
            CSIPluginConfig={"ID": "local", "Type": "monolith", "MountDir": "/csi"}, Resources={"CPU": 100, "MemoryMB": 256})
        self.register(made)


def test_a_volume_is_made_used_and_deleted():
    node.create("demo")
    made = volumes.job("web", "demo", "")
    made["Job"]["TaskGroups"][0]["Tasks"][0].update(Driver="docker", Config={
        "image": images.name(server, "sig-storage/hostpathplugin:v1"), "network_mode": "host", "entrypoint": ["/bin/sh", "-c"],
        "args": ["echo kept >/data/f; cat /data/f; exec sleep 1000"]})
    node.register(made)
    alloc = node.wait_running("web", seconds=60)[0]
    node.wait_said(alloc, b"kept\n")
    case.equal(len(node.published("demo")), 1, "mounts of the volume")
    node.purge("web")
    node.register(volumes.job("again", "demo", "cat /data/f; exec sleep 1000"))
    node.wait_said(node.wait_running("again", seconds=60)[0], b"kept\n")
    node.purge("again")
    node.do("DELETE", "/v1/volume/csi/demo/delete")
    case.until(lambda: not node.published("demo"), 20, "no mount of the volume")


if not os.environ.get("CSI_HOSTPATH"):
    case.skip("CSI_HOSTPATH=path/to/hostpathplugin is not set")
with web.Server(images.registry({"sig-storage/hostpathplugin": {"v1": image()}})) as server, Node(CONFIG) as node:
    node.start_plugin()
    case.run(globals())
    node.purge("hostpath")
    case.until(lambda: node.ask("/v1/agent/leaks") == [], 20, "no leaks")

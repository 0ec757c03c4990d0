# SPDX-License-Identifier: Apache-2.0
"""A whole agent with volumes: csi-local as a plugin job, and jobs that mount its volumes.

    with volumes.Node() as node:
        node.start_plugin()
        node.create("demo")
        node.register(volumes.job("web", "demo", "touch /data/x; sleep 1000"))
"""
import json
import os
import shutil

from . import ROOT, api, binary, case


class Node(api.Node):
    """config: more lines for the agent's configuration; client: more lines for its client block."""

    def __init__(self, config="", client="", **kwargs):
        self.top = case.directory()
        self.store = self.top + "/store"
        os.mkdir(self.store)
        os.chmod(self.store, 0o777)
        shutil.copy(binary("csi-local"), self.store)
        with open(self.top + "/agent.hcl", "w", encoding="utf-8") as f:
            f.write('client {\n  host_volume "csi-local" { path = "%s" }\n%s\n}\n%s\n' % (self.store, client, config))
        super().__init__(["-config", self.top + "/agent.hcl"], **kwargs)

    def register_plugin(self, args=()):
        """Registers csi-local as a job: the example's, with the plugin from the host volume and more arguments."""
        with open(ROOT + "/contrib/examples/plugin.json", encoding="utf-8") as f:
            made = json.loads(f.read().replace("/usr/libexec/drover/", "/store/"))
        made["Job"]["Datacenters"] = ["*"]
        made["Job"]["TaskGroups"][0]["Tasks"][0]["Config"]["args"] += args
        self.register(made)

    def start_plugin(self, args=()):
        """Registers it and waits until it is healthy."""
        self.register_plugin(args)
        case.until(self.plugin_is_healthy, 30, "the plugin to be healthy")

    def plugin_is_healthy(self):
        answer = self.request("GET", "/v1/plugin/csi/local")
        return answer.status == 200 and answer.json["NodesHealthy"] == 1 and answer.json["ControllersHealthy"] == answer.json["ControllersExpected"]

    def create(self, name, mode="single-node-writer", **more):
        """Lets the plugin create a volume."""
        volume = {"ID": name, "Name": name, "PluginID": "local", "RequestedCapacityMin": 1 << 20, "RequestedCapabilities": [
            {"AccessMode": mode, "AttachmentMode": "file-system"}], **more}
        self.do("PUT", "/v1/volume/csi/%s/create" % name, {"Volumes": [volume]})

    def events(self, alloc_id, task="t"):
        """Returns the texts of all the task's events, as one text."""
        states = self.ask("/v1/allocation/" + alloc_id)["TaskStates"] or {}
        return "\n".join("%s: %s" % (e["Type"], e["DisplayMessage"]) for e in states.get(task, {}).get("Events", []))

    def published(self, volume):
        """Returns the mount points at which this volume is published to allocs."""
        with open("/proc/self/mountinfo", encoding="utf-8") as f:
            return [p for p in (line.split(" ")[4] for line in f) if "/per-alloc/" in p and "/%s/" % volume in p]

    def fuse_processes(self):
        """Returns the processes that serve FUSE file systems (bindfs) of the node's volumes."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/cmdline" % pid, "rb") as f:
                    words = f.read().split(b"\0")
            except OSError:
                continue
            if words[0] == b"bindfs" and self.data.encode() in b" ".join(words):
                found.append(int(pid))
        return found


def job(name, volume, script, **more):
    """Returns a job of one exec task that has this volume at /data."""
    made = api.job(name, "/bin/sh", ["-c", script], driver="exec", VolumeMounts=[{"Volume": "data", "Destination": "/data"}],
                   **more)
    made["Job"]["TaskGroups"][0]["Volumes"] = {"data": {
        "Name": "data", "Type": "csi", "Source": volume, "AccessMode": "single-node-writer", "AttachmentMode": "file-system"}}
    return made

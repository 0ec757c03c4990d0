# SPDX-License-Identifier: Apache-2.0
"""csi_told, the CSI plugin whose capabilities and failures are files, as a job of an agent.

    plugin = told.Plugin(node, "p", controller=(told.CREATE_DELETE,))
    plugin.tell("NodeExpandVolume", "once 13 disk on fire")
"""
import contextlib
import os

from . import api, build_dir, case

# Of the plugin, of its controller, of its node.
CONTROLLER_SERVICE, ACCESSIBILITY = 1, 2
CREATE_DELETE, PUBLISH, LIST_VOLUMES, CAPACITY, SNAPSHOTS, LIST_SNAPSHOTS, CLONE, EXPAND = 1, 2, 3, 4, 5, 6, 7, 9
NODE_STAGE, NODE_STATS, NODE_EXPAND = 1, 2, 3


class Plugin:
    """A plugin job that is healthy."""

    def __init__(self, node, name, plugin=(CONTROLLER_SERVICE,), controller=(CREATE_DELETE,), node_caps=(), kind="monolith", **files):
        self.node, self.name = node, name
        self.dir = case.directory()
        for file, numbers in (("plugin", plugin), ("controller", controller), ("node", node_caps)):
            self.tell(file, " ".join(map(str, numbers)))
        for file, text in files.items():
            self.tell(file, text)
        script = 'exec %s "$${CSI_ENDPOINT#unix://}" %s' % (os.path.join(build_dir(), "tests", "csi_told"), self.dir)
        self.job = api.job("plugin-" + name, "/bin/sh", ["-c", script], CSIPluginConfig={
            "ID": name, "Type": kind, "MountDir": "/csi", "HealthTimeout": 300 * 10**9})
        node.register(self.job)
        case.until(self.is_healthy, 30, "plugin %s to be healthy" % name)

    def is_healthy(self):
        found = self.node.request("GET", "/v1/plugin/csi/" + self.name)
        return found.status == 200 and found.json["NodesHealthy"] + found.json["ControllersHealthy"] > 0

    def tell(self, file, text):
        with open(os.path.join(self.dir, file + ".new"), "w", encoding="utf-8") as f:
            f.write(text)
        os.rename(os.path.join(self.dir, file + ".new"), os.path.join(self.dir, file))

    def untell(self, file):
        if os.path.exists(os.path.join(self.dir, file)):
            os.unlink(os.path.join(self.dir, file))

    def calls(self, method=""):
        """Returns the logged calls of a method: lists of its name, the volume and the path."""
        if not os.path.exists(os.path.join(self.dir, "log")):
            return []
        with open(os.path.join(self.dir, "log"), encoding="utf-8") as f:
            found = [line.rstrip("\n").split(" ", 2) for line in f]
        return [c for c in found if c[0] == method or not method]

    def purge(self):
        self.node.purge("plugin-" + self.name)


def volume(name, plugin, mode="single-node-writer", **more):
    made = {"ID": name, "PluginID": plugin, "ExternalID": name, "RequestedCapabilities": [
        {"AccessMode": mode, "AttachmentMode": "file-system"}]}
    made.update(more)
    return {"Volumes": [made]}


@contextlib.contextmanager
def plain(node, *names):
    """Runs plugins without a controller, so that volumes of them can be registered."""
    plugins = [Plugin(node, name, plugin=(), controller=()) for name in names]
    yield plugins
    for plugin in plugins:
        plugin.purge()

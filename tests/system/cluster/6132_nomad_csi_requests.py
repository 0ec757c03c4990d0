#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# takes: 40
"""What servers ask of a node about CSI volumes when something has failed: their plugin, an unmount, or the node was lost meanwhile."""
import types

from lib import api, case, cluster, nomad_server, told

CAPABILITY = {"AccessMode": "single-node-writer", "AttachmentMode": "file-system"}
FOREIGN = "00000000-0000-0000-0000-00000000000f"


class Plugin(told.Plugin):
    """A plugin that servers run on the node."""

    def __init__(self, servers, me, name, **kwargs):
        self.servers, self.me = servers, me
        super().__init__(types.SimpleNamespace(register=lambda made: servers.run_job(made["Job"], me)), name, **kwargs)

    def is_healthy(self):
        found = (self.servers.node(self.me)["CSINodePlugins"] or {}).get(self.name)
        return found and found["Healthy"]


def writer(name):
    return api.job(name, "/bin/sleep", ["1000"], driver="exec", group={"Volumes": {"v": {
        "Name": "v", "Type": "csi", "Source": "data", **CAPABILITY}}}, VolumeMounts=[{"Volume": "v", "Destination": "/d"}])["Job"]


def with_volume(servers, me):
    """Returns the plugin and an alloc that uses its volume."""
    plugin = Plugin(servers, me, "p", node_caps=(told.NODE_STAGE,))
    servers.create_volume({"ID": "data", "PluginID": "p", "RequestedCapabilities": [CAPABILITY]})
    alloc = servers.run_job(writer("one"), me)[0]
    servers.wait_alloc(alloc, ["running"])
    return plugin, alloc


def detach(servers, me, alloc, version="2.0.5"):
    request = {"PluginID": "p", "VolumeID": "data", "AllocID": alloc, "NodeID": me, "ExternalID": servers.volume("data")["ExternalID"],
               "ReadOnly": False, **CAPABILITY}
    if version != "1.6.10":
        request["VolumeNamespace"] = "default"
    return servers.call_node(me, "CSI.NodeDetachVolume", request, timeout=60)


def test_errors_name_the_code_and_are_whole():
    with cluster.servers() as servers, cluster.node_of(servers):
        me = servers.wait_node()["ID"]
        plugin = Plugin(servers, me, "p")
        asked = {"PluginID": "p", "ControllerNodeID": me, "ExternalVolumeID": "v"}
        words = "x" * 300 + " the end"
        plugin.tell("DeleteVolume", "9 " + words)
        refused = case.raises(nomad_server.Refusal, servers.call_node, me, "CSI.ControllerDeleteVolume", asked)
        case.contains(str(refused), "rpc error: code = FailedPrecondition desc = " + words)
        case.equal("CSI client error" in str(refused), False, "whether it is retried")


def test_servers_that_detach_retry_a_failed_unmount():
    """The answer is the result of a try that the request makes."""
    for version in ("1.6.10", "2.0.5"):
        with cluster.servers(version=version) as servers, cluster.node_of(servers) as node:
            me = servers.wait_node()["ID"]
            plugin, alloc = with_volume(servers, me)
            refused = case.raises(nomad_server.Refusal, detach, servers, me, alloc, version)
            case.contains(str(refused), "CSI client error (retryable): volume data is mounted for allocation " + alloc[:8])
            plugin.tell("NodeUnpublishVolume", "13 it is stuck")
            servers.stop_alloc(alloc)
            servers.wait_alloc(alloc, ["complete"])
            node.wait_log("it is stuck", 30)
            known = len(plugin.calls("NodeUnpublishVolume"))
            refused = case.raises(nomad_server.Refusal, detach, servers, me, alloc, version)
            case.contains(str(refused), "rpc error: code = Internal desc = it is stuck")
            case.equal(len(plugin.calls("NodeUnpublishVolume")) > known, True, "whether it was tried again")
            plugin.untell("NodeUnpublishVolume")
            detach(servers, me, alloc, version)
            case.until(lambda: not servers.volume("data")["WriteClaims"], 30, "the claim to be released")


def test_a_node_that_returns_unmounts_what_was_given_away():
    """It unpublishes and unstages its own mount. It neither detaches nor deletes the volume, and keeps the claim of the other node."""
    for version in ("1.6.10", "2.0.5"):
        with cluster.servers(version=version, grace=600) as servers, cluster.node_of(servers) as node:
            me = servers.wait_node()["ID"]
            plugin, alloc = with_volume(servers, me)
            servers.stop_server(0)
            node.wait_log("no server is reachable: ", 20)
            servers.miss_heartbeat(me)
            case.equal(servers.alloc(alloc)["ClientStatus"], "lost")
            other = servers.run_job(writer("two"), FOREIGN)[0]
            servers.give_volume("data", other, FOREIGN)
            known = servers.last_call()
            servers.run_job(plugin.job["Job"], me)  # the plugin's alloc is lost too: servers place another one
            servers.start_server(0)
            case.until(lambda: plugin.calls("NodeUnpublishVolume") and plugin.calls("NodeUnstageVolume"), 60, "the volume to be unmounted")
            servers.wait_node()
            released = servers.wait_call("CSIVolume.Unpublish", known)
            case.equal({c["args"]["Claim"]["AllocationID"] for c in released}, {alloc}, "claims that the node released")
            case.equal(list(servers.volume("data")["WriteClaims"]), [other], "claims")
            case.equal(plugin.calls("ControllerUnpublishVolume") + plugin.calls("DeleteVolume"), [], "calls of the controller")


case.run(globals())

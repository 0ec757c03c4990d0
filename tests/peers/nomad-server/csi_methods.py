# SPDX-License-Identifier: Apache-2.0
"""CSIVolume.*, the calls to controllers and nodes that they make before they answer, and requests of users."""
import copy
import threading
import time

import client_calls
import gopack
import jobs
from cluster import terminal
from identity import DENIED
from methods import Failure, method
from netrpc import RpcError
from yamux import Closed, Reset

READ, WRITE, GC = 0, 1, 2
TAKEN, NODE_DETACHED, CONTROLLER_DETACHED, READY_TO_FREE, UNPUBLISHING = range(5)
CALL_S = 120  # timeout of a controller
UNREACHABLE = (KeyError, Reset, Closed, TimeoutError, EOFError)


def may_claim(ctx):
    """With ACLs the caller must be a node or have a token."""
    cluster, caller = ctx.cluster, ctx.caller
    if cluster.acl_enabled and (not caller.valid or caller.kind == "anonymous"):
        raise Failure(DENIED)


# --- plugins ---

def controllers(cluster, plugin_id):
    """Returns nodes with a healthy controller of the plugin that a server can reach."""
    found = []
    for node_id, node in cluster.nodes.items():
        plugin = (node["CSIControllerPlugins"] or {}).get(plugin_id)
        if plugin and plugin["Healthy"] and node["Status"] == "ready":
            found.append(node_id)
    return found


def ask_controller(cluster, plugin_id, name, request):
    """Calls one of the plugin's controllers. Returns its answer."""
    found = controllers(cluster, plugin_id)
    if not found:
        raise Failure("no path to a controller of plugin %s: CSI client error (retryable)" % plugin_id)
    return client_calls.call(cluster, found[0], "CSI." + name,
                             {"ControllerNodeID": found[0], "PluginID": plugin_id, **request}, CALL_S)


def plugin_fields(cluster, volume):
    """Sets the fields that the servers derive from the nodes' plugins whenever they read a volume."""
    plugin_id = volume["PluginID"]
    nodes = [n["CSINodePlugins"][plugin_id] for n in cluster.nodes.values() if (n["CSINodePlugins"] or {}).get(plugin_id)]
    control = [n["CSIControllerPlugins"][plugin_id] for n in cluster.nodes.values()
               if (n["CSIControllerPlugins"] or {}).get(plugin_id)]
    both = nodes + control
    healthy = sum(1 for p in nodes if p["Healthy"])
    controlled = sum(1 for p in control if p["Healthy"])
    required = any(p["RequiresControllerPlugin"] for p in both)
    return {**volume, "ControllerRequired": required, "ControllersHealthy": controlled, "NodesHealthy": healthy,
            "Provider": both[0]["Provider"] if both else "",
            "ProviderVersion": both[0]["ProviderVersion"] if both else "",
            "Schedulable": healthy > 0 and (not required or controlled > 0)}


def find(cluster, namespace, volume_id):
    volume = cluster.volumes.get((namespace or "default", volume_id))
    return plugin_fields(cluster, volume) if volume else None


def external_node_id(cluster, node_id, plugin_id):
    plugin = ((cluster.nodes.get(node_id) or {}).get("CSINodePlugins") or {}).get(plugin_id) or {}
    return (plugin.get("NodeInfo") or {}).get("ID", "")


# --- claims ---

def _has_room(volume, claim, access_mode):
    """Returns whether one more alloc may claim the volume in this way."""
    others = {k: v for k, v in (volume["WriteClaims"] or {}).items() if k != claim["AllocationID"]}
    if claim["Mode"] == READ:
        return True
    if access_mode in ("single-node-writer", "multi-node-single-writer"):
        return not others
    return access_mode == "multi-node-multi-writer"


@method("CSIVolume.Claim", "CSIVolumeClaimRequest", "CSIVolumeClaimResponse", auth=may_claim, write=True)
def claim_volume(ctx):
    cluster, args = ctx.cluster, ctx.args
    if not args["VolumeID"]:
        raise Failure("missing volume ID")
    namespace = args["Namespace"] or "default"
    claim = {"AllocationID": args["AllocationID"], "NodeID": args["NodeID"], "ExternalNodeID": args["ExternalNodeID"],
             "Mode": args["Claim"], "AccessMode": args["AccessMode"], "AttachmentMode": args["AttachmentMode"],
             "State": args["State"]}
    with cluster.changed:
        volume = find(cluster, namespace, args["VolumeID"])
        if volume is None:
            raise Failure("volume not found: " + args["VolumeID"])
        if args["AllocationID"] not in cluster.allocs:
            text = "allocation missing: " + args["AllocationID"]
            raise Failure(text if not cluster.at_least(2, 0) else 'alloc "%s" failed to claim volume "%s": %s' % (
                args["AllocationID"], args["VolumeID"], text))
        mode = volume["AccessMode"] or args["AccessMode"]
        if not _has_room(volume, claim, mode):
            raise Failure("volume max claims reached")
        if volume["ControllerRequired"] and args["NodeID"] not in cluster.nodes:
            raise Failure("controller publish: missing external node ID: Unknown node%s %s" % (
                "" if cluster.at_least(1, 7) else ":", args["NodeID"]))
    context = None
    if volume["ControllerRequired"]:
        external = claim["ExternalNodeID"] or external_node_id(cluster, args["NodeID"], volume["PluginID"])
        context = _attach(cluster, volume, {**claim, "ExternalNodeID": external})
    with cluster.changed:
        stored = cluster.volumes[(namespace, args["VolumeID"])]
        kind = "WriteClaims" if claim["Mode"] == WRITE else "ReadClaims"
        stored[kind] = {**(stored[kind] or {}), claim["AllocationID"]: claim}
        stored["AccessMode"] = mode
        stored["AttachmentMode"] = stored["AttachmentMode"] or args["AttachmentMode"]
        stored["ModifyIndex"] = index = cluster.bump("csi_volumes")
        volume = find(cluster, namespace, args["VolumeID"])
        for kind in ("Read", "Write"):
            volume[kind + "Allocs"] = {k: None for k in volume[kind + "Claims"]}
    return {"PublishContext": context, "Volume": volume, "Index": index, "KnownLeader": True}


def _attach(cluster, volume, claim):
    options = volume["MountOptions"]
    options = {"Filesystem": options["FSType"], "MountFlags": options["MountFlags"]}
    try:
        return ask_controller(cluster, volume["PluginID"], "ControllerAttachVolume", {
            "VolumeID": volume["ExternalID"], "ClientCSINodeID": claim["ExternalNodeID"],
            "AttachmentMode": claim["AttachmentMode"], "AccessMode": claim["AccessMode"],
            "ReadOnly": claim["Mode"] == READ, "Secrets": volume["Secrets"], "VolumeContext": volume["Context"],
            "MountOptions": options})["PublishContext"]
    except RpcError as e:
        raise Failure("controller publish: controller attach volume: %s" % e) from e
    except UNREACHABLE as e:
        raise Failure("controller publish: %s" % (e.args[0] if e.args else e)) from e


@method("CSIVolume.Unpublish", "CSIVolumeUnpublishRequest", "CSIVolumeUnpublishResponse", auth=may_claim, write=True)
def unpublish_volume(ctx):
    cluster, args = ctx.cluster, ctx.args
    if not args["VolumeID"]:
        raise Failure("missing volume ID")
    if not args["Claim"]:
        raise Failure("missing volume claim")
    volume = find(cluster, args["Namespace"], args["VolumeID"])
    if volume is None:
        raise Failure("no such volume")
    release(cluster, volume, args["Claim"])
    return {"Index": cluster.index, "KnownLeader": True}


def release(cluster, volume, claim):
    """Detaches at the node and at the controller, then removes the claim. Failure leaves the claim."""
    external = claim["ExternalNodeID"] or external_node_id(cluster, claim["NodeID"], volume["PluginID"])
    if claim["NodeID"] in cluster.nodes:
        try:
            client_calls.call(cluster, claim["NodeID"], "CSI.NodeDetachVolume", {
                "PluginID": volume["PluginID"], "VolumeID": volume["ID"], "VolumeNamespace": volume["Namespace"],
                "AllocID": claim["AllocationID"], "NodeID": claim["NodeID"], "ExternalID": volume["ExternalID"],
                "AttachmentMode": claim["AttachmentMode"], "AccessMode": claim["AccessMode"],
                "ReadOnly": claim["Mode"] == READ}, CALL_S)
        except RpcError as e:
            raise Failure("could not detach from node: %s" % e) from e
        except UNREACHABLE as e:
            raise Failure("could not detach from node: %s" % (e.args[0] if e.args else e)) from e
    elsewhere = [c for kind in ("ReadClaims", "WriteClaims") for c in (volume[kind] or {}).values()
                 if c["NodeID"] == claim["NodeID"] and c["AllocationID"] != claim["AllocationID"]]
    if volume["ControllerRequired"] and not elsewhere:
        try:
            ask_controller(cluster, volume["PluginID"], "ControllerDetachVolume", {
                "VolumeID": volume["ExternalID"], "ClientCSINodeID": external, "Secrets": volume["Secrets"]})
        except RpcError as e:
            raise Failure("could not detach from controller: controller detach volume: %s" % e) from e
        except UNREACHABLE as e:
            raise Failure("could not detach from controller: %s" % (e.args[0] if e.args else e)) from e
    with cluster.changed:
        stored = cluster.volumes.get((volume["Namespace"], volume["ID"]))
        if stored is None:
            return
        for kind in ("ReadClaims", "WriteClaims"):
            if stored[kind]:
                stored[kind].pop(claim["AllocationID"], None)
        if not stored["ReadClaims"] and not stored["WriteClaims"]:
            stored["AccessMode"] = stored["AttachmentMode"] = ""
        stored["ModifyIndex"] = cluster.bump("csi_volumes")


@method("CSIVolume.Get", "CSIVolumeGetRequest", "CSIVolumeGetResponse")
def get_volume(ctx):
    cluster, args = ctx.cluster, ctx.args

    def look():
        volume = find(cluster, args["Namespace"], args["ID"])
        return (volume["ModifyIndex"] if volume else cluster.newest("csi_volumes")), {
            "Volume": _with_allocs(cluster, volume) if volume else None}
    return ctx.block(look)


def _with_allocs(cluster, volume):
    for kind in ("Read", "Write"):
        volume[kind + "Allocs"] = {
            k: {**cluster.allocs[k], "SignedIdentities": cluster.issuer.tasks(cluster.allocs[k])}
            for k in volume[kind + "Claims"] if k in cluster.allocs}
    return volume


STUB = ("ID", "Namespace", "Name", "ExternalID", "AccessMode", "AttachmentMode", "PluginID", "Provider", "Topologies", "ControllersHealthy",
        "ControllersExpected", "NodesHealthy", "NodesExpected", "Schedulable", "ControllerRequired", "ResourceExhausted", "CreateIndex", "ModifyIndex")


@method("CSIVolume.List", "CSIVolumeListRequest", "CSIVolumeListResponse")
def list_volumes(ctx):
    cluster, args = ctx.cluster, ctx.args

    def look():
        found = [find(cluster, *key) for key in sorted(cluster.volumes)
                 if args["Namespace"] in ("*", key[0]) and key[1].startswith(args["Prefix"])]
        return cluster.newest("csi_volumes"), {"Volumes": [
            {**{name: v[name] for name in STUB}, "CurrentReaders": len(v["ReadClaims"] or {}), "CurrentWriters": len(v["WriteClaims"] or {})}
            for v in found]}
    return ctx.block(look)


@method("CSIVolume.ListSnapshots", "CSISnapshotListRequest", "CSISnapshotListResponse")
def list_snapshots(ctx):
    args = ctx.args
    found = ask_controller(ctx.cluster, args["PluginID"], "ControllerListSnapshots", {
        "MaxEntries": args["PerPage"], "StartingToken": args["NextToken"], "Secrets": args["Secrets"]})
    return {"Snapshots": found["Entries"], "NextToken": found["NextToken"], "Index": ctx.cluster.index, "KnownLeader": True}


# --- the volume watcher ---

def watch(cluster):
    """Releases claims whose alloc has ended or was removed, and repeats failed releases, until the cluster ends."""
    while not cluster.stopping:
        with cluster.changed:
            cluster.changed.wait(1.0)
            due = []
            for key in cluster.volumes:
                volume = find(cluster, *key)
                claims = {**(volume["ReadClaims"] or {}), **(volume["WriteClaims"] or {})}
                due += [(volume, c) for c in claims.values() if c["AllocationID"] not in cluster.allocs or
                        terminal(cluster.allocs[c["AllocationID"]])]
        for volume, claim in due:
            try:
                release(cluster, copy.deepcopy(volume), claim)
            except Failure:
                time.sleep(0.5)


def start_watcher(cluster):
    threading.Thread(target=watch, args=(cluster,), daemon=True).start()


# --- requests of users ---

def _keep(cluster, volume):
    with cluster.changed:
        index = cluster.bump("csi_volumes")
        empty = {"ReadClaims": {}, "WriteClaims": {}, "PastClaims": {}, "ReadAllocs": {}, "WriteAllocs": {}}
        volume.update(CreateIndex=index, ModifyIndex=index, ResourceExhausted=gopack.ZERO_TIME, **empty)
        cluster.volumes[(volume["Namespace"], volume["ID"])] = volume
        return volume


def _capabilities(volume):
    return volume["RequestedCapabilities"] or [{"AccessMode": "single-node-writer", "AttachmentMode": "file-system"}]


def register(cluster, asked):
    """`nomad volume register`: validated by a controller if the plugin has one."""
    volume = jobs.filled("CSIVolume", asked, Namespace="default", Name=asked["ID"], Context={}, Topologies=[])
    volume["MountOptions"] = jobs.filled("CSIMountOptions", volume["MountOptions"])
    if plugin_fields(cluster, volume)["ControllerRequired"]:
        ask_controller(cluster, volume["PluginID"], "ControllerValidateVolume", {
            "VolumeID": volume["ExternalID"], "VolumeCapabilities": _capabilities(volume), "Secrets": volume["Secrets"],
            "MountOptions": asked.get("MountOptions"), "Parameters": volume["Parameters"], "Context": asked.get("Context")})
    return _keep(cluster, volume)


def create(cluster, volume):
    """`nomad volume create`."""
    volume = jobs.filled("CSIVolume", volume, Namespace="default", Name=volume["ID"], Context={}, Topologies=[])
    volume["MountOptions"] = jobs.filled("CSIMountOptions", volume["MountOptions"])
    made = ask_controller(cluster, volume["PluginID"], "ControllerCreateVolume", {
        "Name": volume["Name"], "VolumeCapabilities": _capabilities(volume), "MountOptions": volume["MountOptions"],
        "Parameters": volume["Parameters"], "Secrets": volume["Secrets"], "CapacityMin": volume["RequestedCapacityMin"],
        "CapacityMax": volume["RequestedCapacityMax"], "SnapshotID": volume["SnapshotID"], "CloneID": volume["CloneID"],
        "RequestedTopologies": volume["RequestedTopologies"]})
    volume.update(ExternalID=made["ExternalVolumeID"], Capacity=made["CapacityBytes"], Context=made["VolumeContext"],
                  Topologies=made["Topologies"])
    return _keep(cluster, volume)


def delete(cluster, namespace, volume_id):
    """`nomad volume delete`."""
    volume = find(cluster, namespace, volume_id)
    if volume is None:
        raise Failure("volume not found: " + volume_id)
    if volume["ReadClaims"] or volume["WriteClaims"]:
        raise Failure("volume in use: " + volume_id)
    ask_controller(cluster, volume["PluginID"], "ControllerDeleteVolume", {"ExternalVolumeID": volume["ExternalID"],
                                                                           "Secrets": volume["Secrets"]})
    with cluster.changed:
        del cluster.volumes[(namespace, volume_id)]
        cluster.bump("csi_volumes")


def detach(cluster, namespace, volume_id, node_id):
    """`nomad volume detach`."""
    volume = find(cluster, namespace, volume_id)
    if volume is None:
        raise Failure("volume not found: " + volume_id)
    for kind in ("ReadClaims", "WriteClaims"):
        for claim in list((volume[kind] or {}).values()):
            if claim["NodeID"] == node_id:
                release(cluster, copy.deepcopy(volume), claim)


@method("HostVolume.List", "HostVolumeListRequest", "HostVolumeListResponse", since=(1, 10))
def list_host_volumes(ctx):
    """One dynamic host volume, on every node."""
    return ctx.block(lambda: (ctx.cluster.index, {"Volumes": [{
        "Namespace": "default", "ID": "9f5c8d1a-0000-4000-8000-000000000001", "Name": "scratch", "PluginID": "mkdir", "NodePool": "default",
        "NodeID": ctx.args["NodeID"], "State": "ready"}]}))

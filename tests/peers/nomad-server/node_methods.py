# SPDX-License-Identifier: Apache-2.0
"""Node.*: registration, heartbeats, the list of allocs, updates, events, drain."""
import re
import time
import uuid

import gopack
import schema
from cluster import terminal
from identity import DENIED, is_uuid
from methods import Failure, method

UUID_LENGTH = "index error: UUID must be 36 characters"
STATUSES = ("initializing", "ready", "down", "disconnected")
CLIENT_STATUSES = ("pending", "running", "complete", "failed", "lost", "unknown")


# --- permissions ---

def acl_resolves(ctx):
    """Before 1.11 everything is permitted if ACLs are disabled."""
    if ctx.cluster.acl_enabled and not ctx.caller.valid:
        raise Failure(DENIED)


def node_only(*since):
    """Requires the secret or identity of a known node; from this version on also with ACLs disabled."""
    def check(ctx):
        cluster = ctx.cluster
        if not cluster.at_least(*since):
            return acl_resolves(ctx)
        if ctx.caller.kind != "node" or not ctx.caller.valid:
            raise Failure(DENIED)
        return same_node(ctx)
    return check


def same_node(ctx):
    named = ctx.args.get("NodeID")
    if ctx.cluster.at_least(2, 0, 1) and named and named != ctx.caller.node_id:
        raise Failure(DENIED)


def may_heartbeat(ctx):
    if not ctx.cluster.at_least(1, 11):
        return acl_resolves(ctx)
    if ctx.caller.kind != "node" or not ctx.caller.valid:
        raise Failure(DENIED)
    if ctx.cluster.at_least(2, 0, 1) and ctx.args["NodeID"] != ctx.caller.node_id:
        raise Failure(DENIED)
    return None


def may_register(ctx):
    cluster, caller, node = ctx.cluster, ctx.caller, ctx.args["Node"] or {}
    if not cluster.at_least(1, 11):
        return acl_resolves(ctx)
    known = node.get("ID") in cluster.nodes
    if caller.kind not in ("anonymous", "node", "intro") or (caller.expired and not known):
        raise Failure(DENIED)
    if caller.kind == "intro" and not known:
        claims = caller.claims
        if claims["nomad_node_pool"] != (node.get("NodePool") or "default") or \
           claims["nomad_node_name"] not in ("", node.get("Name")):
            raise Failure(DENIED)
    own = caller.kind == "node" and not caller.by_secret and caller.node_id == node.get("ID")
    if cluster.introduction == "strict" and not known and caller.kind != "intro" and not own:
        raise Failure(DENIED)
    return None


# --- registration and heartbeat ---

def _update_response(ctx, node, ttl, index, changed):
    """Returns the NodeUpdateResponse for the node."""
    cluster = ctx.cluster
    addresses = cluster.advertised
    if addresses is None:
        addresses = [s.address for s in cluster.live_servers()]
    return {"HeartbeatTTL": ttl, "EvalIDs": None, "EvalCreateIndex": 0, "NodeModifyIndex": changed, "Index": index,
            "LeaderRPCAddr": cluster.leader_address(), "NumNodes": len(cluster.nodes),
            "Servers": [{"RPCAdvertiseAddr": a, "Datacenter": cluster.datacenter} for a in addresses],
            "SchedulingEligibility": node["SchedulingEligibility"], "SignedIdentity": _sign(ctx, node)}


def _wants_identity(cluster, node):
    if not cluster.at_least(1, 11):
        return False
    try:
        version, _, pre = (node["Attributes"] or {}).get("nomad.version", "").partition("-")
        return schema.version_of(version) >= (1, 11, 0) and not (pre.startswith("alpha") and version == "1.11.0")
    except ValueError:
        return False


def _sign(ctx, node):
    """Returns a new identity if this answer must contain one."""
    cluster, claims = ctx.cluster, ctx.caller.claims
    if not _wants_identity(cluster, node):
        return None
    fresh = ctx.caller.kind == "node" and not ctx.caller.by_secret and not ctx.caller.expired
    if fresh and not ctx.args.get("ForceIdentityRenewal") and \
       claims["exp"] - time.time() > cluster.identity_ttl_s / 3 and \
       claims["nomad_node_pool"] == node["NodePool"] and claims["nomad_node_datacenter"] == node["Datacenter"] and \
       claims.get("nomad_node_class", "") == node["NodeClass"]:
        return None
    node["IdentitySigningKeyID"] = ctx.server.issuer.key.id
    return ctx.server.issuer.node(node)


def _check_registration(cluster, node):
    for missing, what in ((node, "node"), (node and node["ID"], "node ID"), (node and node["Datacenter"], "datacenter"),
                          (node and node["Name"], "node name"), (node and node["Attributes"], "attributes"),
                          (node and node["SecretID"], "node secret ID")):
        if not missing:
            raise Failure("missing %s for client registration" % what)
    if node["Status"] not in ("",) + STATUSES:
        raise Failure("invalid status for node")
    if not re.fullmatch(r"[a-zA-Z0-9-_]{0,128}", node["NodePool"]):
        raise Failure('invalid node pool: invalid name "%s", must match regex ^[a-zA-Z0-9-_]{1,128}$' % node["NodePool"])
    if node["NodePool"] == "all":
        raise Failure('node is not allowed to register in node pool "all"')
    if not is_uuid(node["ID"]):
        raise Failure("node lookup failed: " + UUID_LENGTH)
    old = cluster.nodes.get(node["ID"])
    if old and old["SecretID"] != node["SecretID"]:
        raise Failure("node secret ID does not match. Not registering node.")
    return old


def _lost_in_silence(node):
    """Returns why a real server would answer OK without storing the node, "" if it would store it."""
    if not is_uuid(node["SecretID"]):
        return "SecretID is no UUID"
    for kind in ("CSIControllerPlugins", "CSINodePlugins"):
        for name, plugin in (node[kind] or {}).items():
            if plugin and plugin["Healthy"] and not plugin["PluginID"]:
                return "%s[%s] has no PluginID" % (kind, name)
    return ""


@method("Node.Register", "NodeRegisterRequest", "NodeUpdateResponse", auth=may_register, write=True)
def register(ctx):
    cluster, node = ctx.cluster, ctx.args["Node"]
    with cluster.changed:
        old = _check_registration(cluster, node)
        node = dict(node)
        node["NodePool"] = node["NodePool"] or "default"
        node["Status"] = node["Status"] or "initializing"
        node["SchedulingEligibility"] = node["SchedulingEligibility"] or "eligible"
        node["ComputedClass"] = "v1:%d" % (hash(str(sorted((node["Attributes"] or {}).items()))) & 0xffffffffffffffff)
        lost = _lost_in_silence(node)
        if lost:
            cluster.violation("Node.Register: %s: the servers answer OK and store nothing" % lost)
        else:
            _store(cluster, node, old)
        ttl = cluster.arm(node["ID"]) if node["Status"] != "down" else 0
        index = node["ModifyIndex"] or cluster.index
        ctx.connection.serves(node["ID"])
        answer = _update_response(ctx, node, ttl, index, index)
        if old and _other_plugins(old, node) and cluster.allocs_of(node["ID"]):
            answer.update(EvalIDs=[str(uuid.uuid4())], EvalCreateIndex=cluster.bump("evals"))
        return answer


def _other_plugins(old, node):
    return any(set(old[k] or ()) != set(node[k] or ()) for k in ("CSIControllerPlugins", "CSINodePlugins"))


def _store(cluster, node, old):
    cluster.pools.add(node["NodePool"])
    index = cluster.bump("nodes")
    node.update(CreateIndex=index, ModifyIndex=index, StatusUpdatedAt=int(time.time()))
    if old:
        for kept in ("Status", "SchedulingEligibility", "DrainStrategy", "LastDrain", "Events", "CreateIndex",
                     "LastMissedHeartbeatIndex", "LastAllocUpdateIndex"):
            node[kept] = old[kept]
        if old["Status"] == "down":
            cluster.node_event(node, "Node re-registered")
    else:
        cluster.node_event(node, "Node registered", index=0)
    cluster.nodes[node["ID"]] = node


@method("Node.UpdateStatus", "NodeUpdateStatusRequest", "NodeUpdateResponse", auth=may_heartbeat, write=True)
def update_status(ctx):
    cluster, args = ctx.cluster, ctx.args
    if not args["NodeID"]:
        raise Failure("missing node ID for client status update")
    if args["Status"] not in STATUSES:
        raise Failure("invalid status for node")
    with cluster.changed:
        if not is_uuid(args["NodeID"]):
            raise Failure("node lookup failed: " + UUID_LENGTH)
        node = cluster.nodes.get(args["NodeID"])
        if node is None:
            raise Failure("node not found")
        ctx.connection.serves(node["ID"])
        status = _next_status(cluster, node, args["Status"])
        index = 0
        if status != node["Status"]:
            if node["Status"] in ("down", "disconnected"):
                cluster.node_event(node, "Node reregistered by heartbeat")
            index = cluster.bump("nodes")
            node.update(Status=status, ModifyIndex=index, StatusUpdatedAt=int(time.time()))
        ttl = cluster.arm(node["ID"]) if status != "down" else 0
        return _update_response(ctx, node, ttl, index, index)


def _next_status(cluster, node, asked):
    """Returns the node's status after a heartbeat."""
    if asked != "ready":
        return asked
    if node["Status"] == "disconnected":
        return "initializing"
    if node["Status"] == "initializing":
        live = [a for a in cluster.allocs_of(node["ID"]) if not terminal(a)]
        if live and node["LastAllocUpdateIndex"] <= node["LastMissedHeartbeatIndex"]:
            return "initializing"
    return "ready"


# --- allocs ---

def may_list(ctx):
    cluster, args = ctx.cluster, ctx.args
    if cluster.at_least(1, 10):
        return node_only(1, 10)(ctx)
    acl_resolves(ctx)
    if not args["SecretID"]:
        raise Failure("missing node secret ID for client status update")
    node = cluster.nodes.get(args["NodeID"])
    if node and node["SecretID"] != args["SecretID"]:
        raise Failure("node secret ID does not match")
    return None


@method("Node.GetClientAllocs", "NodeSpecificRequest", "NodeClientAllocsResponse", auth=may_list)
def get_client_allocs(ctx):
    cluster, node_id = ctx.cluster, ctx.args["NodeID"]
    if not node_id:
        raise Failure("missing node ID")
    before = set()

    def look():
        if node_id not in cluster.nodes:
            return max(1, cluster.index), {"Allocs": {}, "MigrateTokens": {}}
        allocs = cluster.allocs_of(node_id)
        index = max((a["ModifyIndex"] for a in allocs), default=cluster.newest("allocs"))
        if before - {a["ID"] for a in allocs}:
            index = cluster.newest("allocs")  # some may be removed while this call waits
        before.clear()
        before.update(a["ID"] for a in allocs)
        return index, {"Allocs": {a["ID"]: a["AllocModifyIndex"] for a in allocs}, "MigrateTokens": {}}

    if node_id in cluster.nodes:
        ctx.connection.serves(node_id)
    return ctx.block(look)


def _node_of(ctx, args):
    node_id = args["Alloc"][0]["NodeID"] if args["Alloc"] else ""
    if not node_id:
        raise Failure("missing node ID")
    node = ctx.cluster.nodes.get(node_id)
    if node is None:
        raise Failure("node %s not found" % node_id)
    return node


@method("Node.UpdateAlloc", "AllocUpdateRequest", "GenericResponse", auth=node_only(1, 9), write=True)
def update_alloc(ctx):
    cluster, args = ctx.cluster, ctx.args
    if not args["Alloc"]:
        raise Failure("must update at least one allocation")
    if args["Evals"]:
        raise Failure("evals field must not be set")
    with cluster.changed:
        node = _node_of(ctx, args)
        if cluster.at_least(2, 0, 1) and node["ID"] != ctx.caller.node_id:
            raise Failure(DENIED)
        if not cluster.at_least(1, 7) and not all(is_uuid(a["ID"]) for a in args["Alloc"] if a):
            raise Failure("1 error occurred:\n\t* alloc lookup failed: %s\n\n" % UUID_LENGTH)
        if node["Status"] in ("down", "disconnected"):
            raise Failure("node %s is not allowed to update allocs while in status %s" % (node["ID"], node["Status"]))
        index = cluster.bump("allocs")
        node["LastAllocUpdateIndex"] = index
        for update in (a for a in args["Alloc"] if a):  # a nil element, which was reported as a violation, would crash a real server
            _judge_update(cluster, node, update)
            alloc = cluster.allocs.get(update["ID"])
            if alloc is not None:
                _merge(alloc, update, index)
                _tell_job(cluster, alloc)
        cluster.finish_drain(node)
    time.sleep(0.05)  # updates are batched for this time
    return {"Index": index}


def _merge(alloc, update, index):
    for name in ("ClientStatus", "ClientDescription", "TaskStates", "NetworkStatus"):
        alloc[name] = update[name]
    new, old = update["DeploymentStatus"], alloc["DeploymentStatus"]
    if new and old and new["Healthy"] is not None and new["Healthy"] != old["Healthy"]:
        old.update(Healthy=new["Healthy"], Timestamp=new["Timestamp"], ModifyIndex=index)
    elif new and not old:
        alloc["DeploymentStatus"] = {**new, "ModifyIndex": index}
    alloc["ModifyIndex"], alloc["ModifyTime"] = index, time.time_ns()


def _tell_job(cluster, alloc):
    """Updates the status of a job after an update of one of its allocs. The job inside the alloc does not change."""
    key = (alloc["Namespace"], alloc["JobID"])
    job = cluster.jobs.get(key)
    if job is None or job["Version"] != alloc["Job"]["Version"]:
        return
    healthy = (alloc["DeploymentStatus"] or {}).get("Healthy")
    cluster.jobs[key] = {**job, "Status": "running" if alloc["ClientStatus"] == "running" else job["Status"],
                         "Stable": job["Stable"] or bool(healthy)}


def _judge_update(cluster, node, update):
    """Records violations in updates that servers accept, but no node should send."""
    where = "Node.UpdateAlloc: alloc %s" % update["ID"]
    alloc = cluster.allocs.get(update["ID"])
    if update["NodeID"] != node["ID"] or (alloc and alloc["NodeID"] != node["ID"]):
        cluster.violation("%s is another node's" % where)
    if update["ClientStatus"] not in CLIENT_STATUSES:
        cluster.violation("%s: ClientStatus %r" % (where, update["ClientStatus"]))
    for name, state in (update["TaskStates"] or {}).items():
        if state is None:
            continue  # already reported
        if len(state["Events"] or ()) > 10:
            cluster.violation("%s: %d events of task %s" % (where, len(state["Events"]), name))
        if state["State"] not in ("pending", "running", "dead"):
            cluster.violation("%s: task %s is %r" % (where, name, state["State"]))
        if update["ClientStatus"] in ("complete", "failed") and state["FinishedAt"] == gopack.ZERO_TIME:
            cluster.violation("%s: terminal, but task %s has no FinishedAt" % (where, name))
        for event in state["Events"] or ():
            if event and not event["DisplayMessage"]:
                cluster.violation("%s: event %s without DisplayMessage" % (where, event["Type"]))


# --- the rest ---

@method("Node.EmitEvents", "EmitNodeEventsRequest", "EmitNodeEventsResponse", auth=node_only(1, 9), write=True)
def emit_events(ctx):
    cluster, events = ctx.cluster, ctx.args["NodeEvents"]
    if not events:
        raise Failure("no node events given")
    with cluster.changed:
        for node_id, found in events.items():
            if not found:
                raise Failure('no node events given for node "%s"' % node_id)
            if not is_uuid(node_id):
                raise Failure("node lookup failed: " + UUID_LENGTH)
            if cluster.at_least(2, 0, 1) and node_id != ctx.caller.node_id:
                raise Failure(DENIED)
            if node_id not in cluster.nodes:
                raise Failure("node not found")
        index = cluster.bump("nodes")
        for node_id, found in events.items():
            node = cluster.nodes[node_id]
            node["Events"] = ((node["Events"] or []) + [{**e, "CreateIndex": index} for e in found])[-10:]
    return {"Index": index}


def look_up(ctx, kind, view):
    """Answers with the object of this kind, as view() shows it, or None."""
    object_id, table = ctx.args[kind + "ID"], kind.lower() + "s"
    if not is_uuid(object_id):
        raise Failure("%s lookup failed: %s" % (kind.lower(), UUID_LENGTH))

    def look():
        found = getattr(ctx.cluster, table).get(object_id)
        return (found["ModifyIndex"] if found else ctx.cluster.newest(table)), {kind: view(found) if found else None}
    return ctx.block(look)


@method("Node.GetNode", "NodeSpecificRequest", "SingleNodeResponse", auth=acl_resolves)
def get_node(ctx):
    return look_up(ctx, "Node", lambda node: {**node, "SecretID": ""})


def may_drain(ctx):
    """With ACLs the node's own token is required, except in some versions."""
    cluster, caller = ctx.cluster, ctx.caller
    if not cluster.acl_enabled:
        return
    if (1, 7) <= cluster.version < (1, 8, 4) and caller.kind == "node":
        raise Failure(DENIED)
    if not caller.valid or caller.kind == "anonymous" or (caller.kind == "node" and caller.node_id != ctx.args["NodeID"]):
        raise Failure(DENIED)


@method("Node.UpdateDrain", "NodeUpdateDrainRequest", "NodeDrainUpdateResponse", auth=may_drain, write=True)
def update_drain(ctx):
    cluster, args = ctx.cluster, ctx.args
    if not args["NodeID"]:
        raise Failure("missing node ID for drain update")
    with cluster.changed:
        if args["NodeID"] not in cluster.nodes:
            raise Failure("node not found")
        strategy = args["DrainStrategy"]
        if strategy:
            now = time.time_ns()
            strategy = {**strategy, "StartedAt": gopack.time_from_ns(now)}
            if strategy["Deadline"] > 0:
                strategy["ForceDeadline"] = gopack.time_from_ns(now + strategy["Deadline"])
        cluster.drain(args["NodeID"], strategy, args["MarkEligible"], args["Meta"])
        index = cluster.nodes[args["NodeID"]]["ModifyIndex"]
    return {"NodeModifyIndex": index, "EvalIDs": None, "EvalCreateIndex": 0, "Index": index}


def may_write_nodes(ctx):
    """With ACLs a token of users is required, whose policies are not checked; a node's own is not enough."""
    if ctx.cluster.acl_enabled and ctx.caller.kind != "token":
        raise Failure(DENIED)


@method("Node.Deregister", "NodeDeregisterRequest", "NodeUpdateResponse", auth=may_write_nodes, write=True)
def deregister(ctx):
    cluster, node_id = ctx.cluster, ctx.args["NodeID"]
    if not node_id:
        raise Failure("missing node ID for client deregistration")
    with cluster.changed:
        if node_id not in cluster.nodes:
            raise Failure("node not found")
        cluster.purge_node(node_id)
        index = cluster.newest("nodes")
    return {"NodeModifyIndex": index, "Index": index}

# SPDX-License-Identifier: Apache-2.0
"""Alloc.*: allocs that nodes fetch, and identities that they request."""
import gopack
from identity import DENIED, is_uuid
from methods import Failure, method
from node_methods import UUID_LENGTH, acl_resolves, look_up, node_only


def _own_allocs_only(ctx, alloc_ids):
    """From 2.0.1 on, only allocs of the calling node or of its pool are returned."""
    cluster = ctx.cluster
    if not cluster.at_least(2, 0, 1):
        return
    node = cluster.nodes.get(ctx.caller.node_id, {"NodePool": ""})
    for alloc in (cluster.allocs[i] for i in alloc_ids if i in cluster.allocs):
        if alloc["NodeID"] != ctx.caller.node_id and alloc["Job"]["NodePool"] not in (node["NodePool"], "all"):
            raise Failure(DENIED)


def _with_identities(ctx, alloc):
    """Returns a copy for the wire. From 1.7 on it has the default identities of the tasks, which are only in this answer."""
    return {**alloc, "SignedIdentities": alloc["SignedIdentities"] or ctx.server.issuer.tasks(alloc)}


@method("Alloc.GetAllocs", "AllocsGetRequest", "AllocsGetResponse", auth=node_only(1, 7))
def get_allocs(ctx):
    cluster, wanted = ctx.cluster, ctx.args["AllocIDs"] or []
    for alloc_id in wanted:
        if not is_uuid(alloc_id):
            raise Failure("alloc lookup failed: " + UUID_LENGTH)
    _own_allocs_only(ctx, wanted)
    asked = ctx.args["MinQueryIndex"]

    def look():
        found = [cluster.allocs[i] for i in wanted if i in cluster.allocs]
        index = max((a["ModifyIndex"] for a in found), default=0)
        partial = cluster.at_least(2, 0, 1)
        if not found or index <= asked or (len(found) < len(wanted) and not partial):
            return cluster.newest("allocs"), {"Allocs": None}
        return index, {"Allocs": [_with_identities(ctx, a) for a in found]}
    return ctx.block(look)


@method("Alloc.GetAlloc", "AllocSpecificRequest", "SingleAllocResponse", auth=acl_resolves)
def get_alloc(ctx):
    return look_up(ctx, "Alloc", lambda alloc: alloc)


# --- Alloc.SignIdentities ---

def _identity_of(alloc, wanted):
    """Returns (task name, identity) of a request; Failure with the reason if it is rejected."""
    for group in alloc["Job"]["TaskGroups"]:
        if group["Name"] != alloc["TaskGroup"]:
            continue
        for task in group["Tasks"]:
            if wanted["WorkloadType"] == 0 and task["Name"] == wanted["WorkloadIdentifier"]:
                for one in task["Identities"] or ():
                    if one["Name"] == wanted["IdentityName"]:
                        return task["Name"], one
                raise Failure("identity not found")
        services = list(group["Services"] or ()) + [s for t in group["Tasks"] for s in t["Services"] or ()]
        for service in services:
            if wanted["WorkloadType"] == 1 and service["Name"] == wanted["WorkloadIdentifier"] and service["Identity"]:
                return service["Name"], service["Identity"]
    raise Failure("task not found" if wanted["WorkloadType"] == 0 else "service not found")


@method("Alloc.SignIdentities", "AllocIdentitiesRequest", "AllocIdentitiesResponse", auth=node_only(1, 7), since=(1, 7))
def sign_identities(ctx):
    cluster, wanted = ctx.cluster, ctx.args["Identities"]
    if not wanted:
        raise Failure("no identities requested")
    for one in wanted:
        if not is_uuid(one["AllocID"]):
            raise Failure("alloc lookup failed: " + UUID_LENGTH)
    _own_allocs_only(ctx, [w["AllocID"] for w in wanted])

    def look():
        signed, rejected, index = [], [], 0
        for one in wanted:
            alloc = cluster.allocs.get(one["AllocID"])
            try:
                if alloc is None or cluster.signs == "behind":
                    raise Failure("allocation not found")
                index = max(index, alloc["CreateIndex"])
                if cluster.signs == "refuses":
                    raise Failure("identity not found")
                token, expires = ctx.server.issuer.task(alloc, *_identity_of(alloc, one))
                if cluster.signs == "garbage":
                    token = "a.b.c\nLD_PRELOAD=/tmp/x"
                if cluster.signs == "expired":
                    expires = 1
                if cluster.signs == "others":
                    one = {**one, "WorkloadIdentifier": "other"}
                expiration = gopack.time_from_ns(expires * 10 ** 9) if expires else gopack.ZERO_TIME
                signed.append({**one, "JWT": token, "Expiration": expiration})
            except Failure as e:
                rejected.append({**one, "Reason": str(e)})
        if cluster.signs == "behind":
            index = max(1, ctx.args["MinQueryIndex"])
            return index, {"SignedIdentities": None, "Rejections": rejected}
        return index or cluster.newest("allocs"), {"SignedIdentities": signed or None, "Rejections": rejected or None}
    return ctx.block(look)

# SPDX-License-Identifier: Apache-2.0
"""ServiceRegistration.*, Variables.* and Keyring.*: services of tasks, and variables and keys that tasks read."""
import time
import uuid

from identity import DENIED, is_uuid
from methods import Failure, method
from node_methods import acl_resolves


def may_register(ctx):
    """Requires a node that acts for itself. Before 1.7 the token is resolved even if ACLs are disabled."""
    cluster, caller = ctx.cluster, ctx.caller
    token = ctx.args["AuthToken"]
    if not cluster.at_least(1, 7):
        if not is_uuid(token):
            raise Failure("node lookup by SecretID failed: index error: UUID must be 36 characters")
        if caller.kind != "node":
            raise Failure("ACL token not found")
        return
    if caller.kind != "node" or not caller.valid:
        raise Failure(DENIED)
    if cluster.at_least(2, 0, 1) and any(s["NodeID"] != caller.node_id for s in ctx.args["Services"] or () if s):
        raise Failure(DENIED)


@method("ServiceRegistration.Upsert", "ServiceUpsertRequest", "GenericResponse", auth=may_register, write=True)
def upsert(ctx):
    cluster, services = ctx.cluster, ctx.args["Services"] or []
    for service in services:
        if service["Address"] in ("0.0.0.0", "::"):
            raise Failure("1 error occurred:\n\t* invalid service registration address\n\n")
        if not service["Namespace"]:
            raise Failure("service registration insert failed: object missing primary index")
        if not service["Address"]:
            ctx.connection.violation("ServiceRegistration.Upsert: %s has no address" % service["ID"])
    with cluster.changed:
        index = cluster.bump("services")
        for service in services:
            old = cluster.services.get(service["ID"])
            service.update(CreateIndex=old["CreateIndex"] if old else index, ModifyIndex=index)
            cluster.services[service["ID"]] = service
    return {"Index": index}


@method("ServiceRegistration.DeleteByID", "ServiceDeleteRequest", "GenericResponse", write=True)
def delete(ctx):
    cluster, args = ctx.cluster, ctx.args
    with cluster.changed:
        service = cluster.services.get(args["ID"])
        if service is None or service["Namespace"] != args["Namespace"]:
            raise Failure(DENIED if cluster.acl_enabled and cluster.at_least(2, 0) else "service registration not found")
        del cluster.services[args["ID"]]
        return {"Index": cluster.bump("services")}


def may_read(ctx):
    acl_resolves(ctx)
    if ctx.cluster.acl_enabled and (ctx.caller.kind == "anonymous" or (ctx.caller.kind == "node" and ctx.cluster.at_least(1, 7))):
        raise Failure(DENIED)


def some(cluster, found, table):
    """What a query for these objects watches: them, or the whole table if there is none."""
    return [one["ModifyIndex"] for one in found] or cluster.newest(table)


def choose(services, text):
    """Returns the services that `number|key` takes. Which of them is a matter of hashes: here, the first."""
    number, bar, _ = text.partition("|")
    if not text:
        return services
    if not bar or not number.isdigit():
        raise Failure("RPC Error:: 400,failed to choose services: Parameter for choose must be in form '<number>|<key>'")
    return services[:int(number)]


@method("ServiceRegistration.GetService", "ServiceByNameRequest", "ServiceByNameResponse", auth=may_read)
def get_service(ctx):
    cluster, args = ctx.cluster, ctx.args
    choose([], args["Choose"])

    def of_name():
        return [s for s in cluster.services.values() if s["ServiceName"] == args["ServiceName"] and
                s["Namespace"] == (args["Namespace"] or "default")]

    def look():
        found = of_name()
        return cluster.newest("services"), {"Services": choose(found, args["Choose"]) if found or cluster.at_least(1, 7) else None}
    return ctx.block(look, lambda: some(cluster, of_name(), "services"))


@method("ServiceRegistration.List", "GenericRequest", "ServiceListResponse", auth=may_read)
def list_services(ctx):
    """Workloads see nothing of all namespaces together."""
    cluster, namespace = ctx.cluster, ctx.args["Namespace"] or "default"
    if namespace == "*" and cluster.acl_enabled and ctx.caller.kind != "token":
        return {"Services": [], "Index": 0, "KnownLeader": cluster.leader is not None, "LastContact": 0}

    def look():
        found = {}
        for s in cluster.services.values():
            if namespace in ("*", s["Namespace"]):
                tags = found.setdefault(s["Namespace"], {}).setdefault(s["ServiceName"], [])
                tags += [t for t in s["Tags"] or () if t not in tags]
        return cluster.newest("services"), {"Services": [
            {"Namespace": ns, "Services": [{"ServiceName": n, "Tags": t} for n, t in sorted(names.items(), reverse=True)]}  # in no order
            for ns, names in found.items()]}
    return ctx.block(look)


def sees_variable(ctx, namespace, path):
    """Returns whether the caller may list and read it. Policies are not evaluated: a token, and a workload whose job has one, sees all. Servers before
    1.7 let nodes see all."""
    caller, cluster = ctx.caller, ctx.cluster
    if not cluster.acl_enabled or caller.kind == "token":
        return True
    if caller.kind != "workload":
        return caller.kind == "node" and not cluster.at_least(1, 7)
    _, own, job, group, task, _ = caller.claims["sub"].split(":")
    if (own, job) in cluster.job_policies.values():
        return True
    return namespace == own and path in ("nomad/jobs", "nomad/jobs/" + job, "nomad/jobs/%s/%s" % (job, group), "nomad/jobs/%s/%s/%s" % (job, group, task))


def may_list_variables(ctx):
    """Who may see none gets an empty list."""
    if ctx.cluster.acl_enabled and not ctx.caller.valid:
        raise Failure(DENIED)


def may_read_variable(ctx):
    may_list_variables(ctx)
    if not sees_variable(ctx, ctx.args["Namespace"] or "default", ctx.args["Path"]):
        raise Failure(DENIED)


def may_change_variables(ctx):
    """Without ACLs each token will do."""
    if ctx.cluster.acl_enabled and (ctx.caller.kind not in ("workload", "token") or not ctx.caller.valid):
        raise Failure(DENIED)


@method("Variables.Read", "VariablesReadRequest", "VariablesReadResponse", auth=may_read_variable)
def read_variable(ctx):
    cluster, key = ctx.cluster, (ctx.args["Namespace"] or "default", ctx.args["Path"])

    def look():
        found = cluster.variables.get(key)
        return (found["ModifyIndex"] if found else cluster.newest("variables")), {"Data": found}

    def watched():
        return some(cluster, [cluster.variables[key]] if key in cluster.variables else [], "variables")
    return ctx.block(look, watched, "variables")


@method("Variables.List", "GenericRequest", "VariablesListResponse", auth=may_list_variables)
def list_variables(ctx):
    cluster, namespace = ctx.cluster, ctx.args["Namespace"] or "default"

    def below():
        return [one for (ns, path), one in sorted(cluster.variables.items())
                if namespace in ("*", ns) and path.startswith(ctx.args["Prefix"])]

    def look():
        found = [{k: v for k, v in one.items() if k != "Items"} for one in below() if sees_variable(ctx, one["Namespace"], one["Path"])]
        return cluster.newest("variables"), {"Data": found or ([] if cluster.at_least(1, 7) else None)}
    return ctx.block(look, lambda: some(cluster, below(), "variables"), "variables")


def lock_id(variable):
    return ((variable or {}).get("Lock") or {}).get("ID")


@method("Variables.Apply", "VariablesApplyRequest", "VariablesApplyResponse", auth=may_change_variables)
def apply_variable(ctx):
    cluster, op, var = ctx.cluster, ctx.args["Op"], ctx.args["Var"]
    namespace = var["Namespace"] or ctx.args["Namespace"] or "default"
    key = (namespace, var["Path"])
    with cluster.changed:
        old = cluster.variables.get(key)
        named = {"Namespace": namespace, "Path": var["Path"]}
        if op not in ("set", "cas", "delete", "delete-cas") and not (cluster.at_least(1, 7) and op in ("lock-acquire", "lock-release")):
            raise Failure("unexpected VarOp received: %s" % op)
        if op.endswith("cas") and (old["ModifyIndex"] if old else 0) != var["ModifyIndex"]:
            return {"Op": op, "Result": "conflict", "Conflict": old or named, "Index": cluster.newest("variables")}
        if op == "lock-release" and not lock_id(old):
            raise Failure("variable doesn't hold a lock")
        if lock_id(old) and lock_id(old) != lock_id(var):
            return {"Op": op, "Result": "conflict", "Conflict": named, "Index": cluster.newest("variables")}
        index = cluster.bump("variables")
        if op.startswith("delete"):
            cluster.variables.pop(key, None)
            return {"Op": op, "Result": "ok", "Index": index}
        made = {"CreateIndex": index, "CreateTime": time.time_ns(), **(old or {}), **named, "ModifyIndex": index, "ModifyTime": time.time_ns()}
        if op == "lock-release":
            made["Lock"] = None
        else:
            made["Items"] = var["Items"]
        if op == "lock-acquire":
            made["Lock"] = {"ID": lock_id(var) or str(uuid.uuid4()), "TTL": (var.get("Lock") or {}).get("TTL") or 15 * 10**9,
                            "LockDelay": (var.get("Lock") or {}).get("LockDelay") or 15 * 10**9}
        cluster.variables[key] = made
        return {"Op": op, "Result": "ok", "Output": {**made, "Items": var["Items"]}, "Index": index}


@method("Variables.RenewLock", "VariablesRenewLockRequest", "VariablesRenewLockResponse", since=(1, 7), auth=may_change_variables)
def renew_lock(ctx):
    found = ctx.cluster.variables.get((ctx.args["Namespace"] or "default", ctx.args["Path"]))
    if not found:
        raise Failure("RPC Error:: 404,variable doesn't exist")
    if lock_id(found) != ctx.args["LockID"]:
        raise Failure("RPC Error:: 409,attempting to modify locked variable")
    return {"VarMeta": {k: v for k, v in found.items() if k != "Items"}, "Index": found["ModifyIndex"]}


@method("Keyring.ListPublic", "GenericRequest", "KeyringListPublicResponse", since=(1, 7))
def list_public(ctx):
    return {"PublicKeys": [ctx.server.issuer.key.public()], "RotationThreshold": 720 * 3600 * 10 ** 9, "Index": 1,
            "KnownLeader": True}


@method("Keyring.GetConfig", "GenericRequest", "KeyringGetConfigResponse", since=(1, 7))
def get_config(ctx):
    """With an issuer in the servers' configuration."""
    issuer = ctx.cluster.oidc_issuer
    return {"OIDCDiscovery": issuer and {"Issuer": issuer, "JWKS": issuer + "/.well-known/jwks.json", "IDTokenAlgs": ["RS256", "EdDSA"],
                                         "ResponseTypes": ["code"], "Subjects": ["public"]}}

# SPDX-License-Identifier: Apache-2.0
"""ACL.*: calls by which a node resolves the tokens of its callers."""
import time

import gopack
from identity import DENIED, is_uuid
from methods import Failure, method


# The errors of a token that cannot be verified, by what is wrong with it: (of servers before 1.7, of later ones).
MALFORMED = {
    "parts": ("failed to verify token: token is malformed: token contains an invalid number of segments",
              "failed to parse signed token: go-jose/go-jose: compact JWS format must have three parts"),
    "base64": ("failed to verify token: token is malformed: could not base64 decode header: illegal base64 data at input byte 0",
               "failed to parse signed token: illegal base64 data at input byte 0"),
    "signature": ("failed to verify token: token signature is invalid: ed25519: verification error",
                  "invalid signature: go-jose/go-jose: error in cryptographic primitive")}


def known(ctx):
    token = ctx.args["AuthToken"]
    if not ctx.cluster.acl_enabled or ctx.caller.valid:
        return
    if ctx.caller.kind == "invalid" and not is_uuid(token):
        wrong = "parts" if token.count(".") != 2 else "signature" if token.startswith("eyJ") else "base64"
        raise Failure(MALFORMED[wrong][ctx.cluster.at_least(1, 7)])
    raise Failure(DENIED)


def _claims(cluster, claims):
    """Returns claims in the form of WhoAmI: another struct in each version; in the newer one its times are nil."""
    names = {"Namespace": "nomad_namespace", "JobID": "nomad_job_id", "AllocationID": "nomad_allocation_id",
             "TaskName": "nomad_task", "Issuer": "iss", "Subject": "sub", "ID": "jti"}
    found = {k: claims.get(v, "") for k, v in names.items()}
    audience = claims["aud"]
    found["Audience"] = [audience] if isinstance(audience, str) else audience
    if not cluster.at_least(1, 7):
        now = gopack.time_from_ns(time.time_ns())
        return {**found, "Audience": None, "ID": "", "Subject": "", "ExpiresAt": None, "IssuedAt": now, "NotBefore": now}
    if not cluster.at_least(1, 11):
        return {**found, "ExpiresAt": None, "IssuedAt": None, "NotBefore": None}
    found.update({k: None for k in ("Expiry", "NotBefore", "IssuedAt", "ExtraClaims")})
    found.update({k: "" for k in ("ServiceName", "ConsulNamespace", "VaultNamespace", "VaultRole")})
    for name, key in (("NodeID", "nomad_node_id"), ("NodePool", "nomad_node_pool"), ("NodeClass", "nomad_node_class"),
                      ("NodeDatacenter", "nomad_node_datacenter"), ("NodeName", "nomad_node_name")):
        found[name] = claims.get(key)
    return found


def _address(ctx):
    return bytes(int(part) for part in ctx.connection.peer[0].split("."))


@method("ACL.WhoAmI", "GenericRequest", "ACLWhoAmIResponse", auth=known)
def who_am_i(ctx):
    cluster, caller = ctx.cluster, ctx.caller
    if not cluster.acl_enabled and caller.kind == "workload" and caller.valid:
        return {"Identity": {"Claims": _claims(cluster, caller.claims)}, "KnownLeader": cluster.at_least(1, 7)}
    if not cluster.acl_enabled:
        if not cluster.at_least(1, 7):
            return {"Identity": {}, "KnownLeader": False}
        token = {"AccessorID": "acls-disabled", "Name": "ACLs disabled token", "Type": "client"}
        return {"Identity": {"ACLToken": token, "RemoteIP": _address(ctx)}, "KnownLeader": True}
    identity = {"TLSName": ctx.connection.tls_name, "RemoteIP": _address(ctx) if caller.kind in ("token", "anonymous") else None}
    if caller.kind == "token":
        identity["ACLToken"] = caller.token
    elif caller.kind == "anonymous":
        identity["ACLToken"] = {"AccessorID": "anonymous", "Name": "Anonymous Token", "Type": "client",
                                "Policies": ["anonymous"]}
    if caller.kind == "node":
        identity["ClientID"] = caller.node_id
    elif caller.kind == "workload":
        identity["Claims"] = _claims(cluster, caller.claims)
    return {"Identity": identity, "KnownLeader": cluster.at_least(1, 7)}


@method("ACL.ResolveToken", "ResolveACLTokenRequest", "ResolveACLTokenResponse")
def resolve_token(ctx):
    if not ctx.cluster.acl_enabled:
        raise Failure("RPC Error:: 400,ACL support disabled")
    found = ctx.cluster.tokens.get(ctx.args["SecretID"])
    return {"Token": found, "Index": 1, "KnownLeader": True}


@method("ACL.GetPolicies", "ACLPolicySetRequest", "ACLPolicySetResponse")
def get_policies(ctx):
    cluster, caller, names = ctx.cluster, ctx.caller, ctx.args["Names"] or []
    if not cluster.acl_enabled:
        raise Failure("RPC Error:: 400,ACL support disabled")
    if caller.kind not in ("token", "anonymous"):
        raise Failure(DENIED)
    own = {"anonymous"}
    if caller.kind == "token":
        own = set(caller.token["Policies"] or ())
        for link in caller.token["Roles"] or ():
            own |= {p["Name"] for p in cluster.roles.get(link["ID"], {"Policies": []})["Policies"]}
    if (caller.kind != "token" or caller.token["Type"] != "management") and not set(names) & set(cluster.policies) <= own:
        raise Failure(DENIED)
    return {"Policies": {n: cluster.policies[n] for n in names if n in cluster.policies}, "Index": 1, "KnownLeader": True}


@method("ACL.GetRolesByID", "ACLRolesByIDRequest", "ACLRolesByIDResponse")
def get_roles(ctx):
    cluster = ctx.cluster
    if not cluster.acl_enabled:
        raise Failure("RPC Error:: 400,ACL support disabled")
    if ctx.caller.kind != "token":
        raise Failure("ACL token not found")
    found = {r: cluster.roles[r] for r in ctx.args["ACLRoleIDs"] or () if r in cluster.roles}
    return {"ACLRoles": found, "Index": 1, "KnownLeader": True}


@method("ACL.GetClaimPolicies", "GenericRequest", "ACLPolicySetResponse")
def get_claim_policies(ctx):
    if ctx.caller.kind != "workload" or not ctx.caller.valid or not ctx.cluster.acl_enabled:
        raise Failure(DENIED)
    job = (ctx.caller.claims["nomad_namespace"], ctx.caller.claims["nomad_job_id"])
    found = {name: p for name, p in ctx.cluster.policies.items() if ctx.cluster.job_policies.get(name) == job}
    return {"Policies": found, "Index": 1, "KnownLeader": True}

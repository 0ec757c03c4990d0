#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tokens that the embedded server signs for tasks: their claims, their renewal, and its keys, with which openssl verifies them."""
import json
import os

from lib import api, case, jwt, state
from lib.jwt import parts

S = 10**9
FOLLOW = "trap 'echo signal' HUP; while :; do new=$(cat $NOMAD_SECRETS_DIR/nomad_%s.jwt); [ \"$new\" = \"$old\" ] || echo token $new; old=$new; sleep 0.05; done"


def job(name, script, group=None, **task):
    return api.job(name, "/bin/sh", ["-c", script], group=group, **task)


def said(alloc):
    return node.logs(alloc).decode().split("\n")[:-1]


def tokens_of(alloc):
    return [line.split()[1] for line in said(alloc) if line.startswith("token ")]


def wait_tokens(alloc, n):
    return case.until(lambda: len(tokens_of(alloc)) >= n and tokens_of(alloc), 60, "%d tokens" % n)


def test_a_job_without_tokens_makes_no_keys():
    node.register(job("plain", "sleep 1000", Identity={"Name": "default"}, Identities=[{"Name": "unused"}]))
    node.wait_running("plain")
    case.equal((jwt.keys(node), node.ask("/v1/operator/keyring/keys")), ([], []))
    node.purge("plain")


def test_tokens_are_variables_and_files():
    script = "printenv NOMAD_TOKEN NOMAD_TOKEN_a; cd $NOMAD_SECRETS_DIR; cat nomad_token; echo; cat nomad_a.jwt; echo; cat other; echo; " \
             "printenv NOMAD_TOKEN_many; sleep 1000"
    node.register(job("named", script, Identity={"Env": True, "File": True}, Identities=[
        {"Name": "a", "Env": True, "File": True, "TTL": 3600 * S, "Audience": ["one"]},
        {"Name": "b", "File": True, "Filepath": "secrets/other"}, {"Name": "many", "Env": True, "Audience": ["one", "two"]}]))
    alloc = node.wait_running("named")[0]
    default, named, default_file, named_file, other, many = case.until(lambda: len(said(alloc)) == 6 and said(alloc), 60, "the tokens")
    case.equal((default, named), (default_file, named_file))
    common = {"nomad_namespace": "default", "nomad_job_id": "named", "nomad_allocation_id": alloc["ID"], "nomad_task": "t"}
    for token, name, alg, aud, life in ((default, "default", "EdDSA", "nomadproject.io", None), (named, "a", "RS256", "one", 3600),
                                        (other, "b", "RS256", None, None), (many, "many", "RS256", ["one", "two"], None)):
        head, claims = parts(token)
        wanted = {**common, "sub": "global:default:named:g:t:" + name, "iat": claims["iat"], "nbf": claims["iat"], "jti": claims["jti"]}
        if aud:
            wanted["aud"] = aud
        if life:
            wanted["exp"] = claims["iat"] + life
        case.equal((head["alg"], claims), (alg, wanted), name)
        case.equal(jwt.verify(node, token), True, "whether openssl verifies the token of " + name)
        changed = token[:-20] + ("A" if token[-20] != "A" else "B") + token[-19:]
        case.equal(jwt.verify(node, changed) is True, False, "whether openssl verifies a changed signature")
    shown = json.dumps([node.ask("/v1/allocation/" + alloc["ID"]), node.ask("/v1/allocations")]) + node.log()
    case.equal([t for t in (default, named, other, many) if t in shown or t.split(".")[2] in shown], [], "tokens in answers and logs")
    node.purge("named")
    # The log of the database has earlier versions of rows.
    case.until(lambda: state.files_with(node, default, named, other, many) == [], 60, "no file of state.db to have a token")


def test_extra_claims_of_the_namespace():
    required = {"where": "${node.datacenter}/${job.id}", "who": "${task.name} of ${group.name}, ${job.meta.team} ${job.meta.none} ${x $"}
    node.do("PUT", "/v1/namespace", {"Name": "claims", "RequiredExtraClaims": required, "OptionalExtraClaims": {"tier": "gold", "other": "unused"}})
    case.equal(node.ask("/v1/namespace/claims")["RequiredExtraClaims"], required)
    made = job("extra", "printenv NOMAD_TOKEN NOMAD_TOKEN_a; sleep 1000", Identity={"Env": True},
               Identities=[{"Name": "a", "Env": True, "ExtraClaims": ["tier", "none"]}])
    made["Job"].update(Namespace="claims", Meta={"team": "blue"})
    node.register(made)
    alloc = case.until(lambda: [a for a in node.ask("/v1/allocations", namespace="claims") if a["ClientStatus"] == "running"], 60, "the allocation")[0]
    case.until(lambda: len(said(alloc)) == 2, 60, "the tokens")
    common = {"where": "dc1/extra", "who": "t of g, blue ${job.meta.none} ${x $"}
    case.equal([parts(token)[1]["extra_claims"] for token in said(alloc)], [common, {**common, "tier": "gold"}])
    node.do("DELETE", "/v1/job/extra?purge=true&namespace=claims")
    case.until(lambda: node.ask("/v1/allocations", namespace="claims") == [], 60, "the allocation to be removed")


def test_children_have_the_claims_of_their_parent():
    made = job("parent", "printenv NOMAD_TOKEN_x", Identities=[{"Name": "x", "Env": True}])
    made["Job"].update(Type="batch", ParameterizedJob={})
    for member in ("ReschedulePolicy", "Update"):
        made["Job"]["TaskGroups"][0].pop(member, None)
    node.register(made)
    child = node.do("PUT", "/v1/job/parent/dispatch", {})["DispatchedJobID"]
    alloc = case.until(lambda: [a for a in node.allocs(child) if a["ClientStatus"] == "complete"], 60, "the child")[0]
    claims = parts(said(alloc)[0])[1]
    case.equal((claims["nomad_job_id"], claims["sub"]), ("parent", "global:default:parent:g:t:x"))
    node.purge("parent")


def test_tokens_are_renewed_and_their_change_mode_applies():
    for mode in ("noop", "signal", "restart"):
        signal = {"ChangeSignal": "SIGHUP"} if mode == "signal" else {}
        node.register(job("renew-" + mode, FOLLOW % "r", Identities=[{"Name": "r", "File": True, "TTL": 4 * S, "ChangeMode": mode, **signal}]))
    for mode in ("noop", "signal", "restart"):
        alloc = node.wait_running("renew-" + mode)[0]
        found = wait_tokens(alloc, 3)
        case.equal(len({parts(t)[1]["jti"] for t in found}), len(found), "different tokens")
        case.equal(jwt.verify(node, found[-1]), True)
        case.equal(("signal" in said(alloc), "Restart Signaled" in str(node.ask("/v1/allocation/" + alloc["ID"]))),
                   (mode == "signal", mode == "restart"), mode)
        node.purge("renew-" + mode)


def start_follower(name):
    node.register(job(name, FOLLOW % "k", Identities=[{"Name": "k", "File": True, "TTL": 4 * S, "ChangeMode": "noop"}]))
    return node.wait_running(name)[0]


def test_keys_survive_and_are_rotated():
    alloc = start_follower("keys")
    first = wait_tokens(alloc, 1)[0]
    kid = parts(first)[0]["kid"]
    before = node.kill("supervisor")
    node.wait_process("supervisor", before)
    node.wait_ready()
    case.equal(jwt.verify(node, first), True, "whether a token is valid after a restart")
    node.refused(400, "signs new tokens: rotate the keys", "DELETE", "/v1/operator/keyring/key/" + kid)
    node.refused(404, "there is no key", "DELETE", "/v1/operator/keyring/key/00000000-0000-0000-0000-000000000000")
    new = node.do("PUT", "/v1/operator/keyring/rotate")["Key"]
    keys = {k["KeyID"]: k["State"] for k in node.ask("/v1/operator/keyring/keys")}
    case.equal((keys[kid], keys[new["KeyID"]], list(keys.values()).count("active")), ("inactive", "active", 2), "states of keys")
    case.until(lambda: parts(tokens_of(alloc)[-1])[0]["kid"] == new["KeyID"], 60, "a token signed by the new key")
    case.equal([jwt.verify(node, t) for t in (first, tokens_of(alloc)[-1])], [True, True])
    node.do("DELETE", "/v1/operator/keyring/key/" + kid)
    case.equal(kid in [k["kid"] for k in jwt.keys(node)], False, "whether a deleted key is still there")
    node.purge("keys")


def test_a_lost_seal_key_ends_the_keys_and_not_the_tasks():
    alloc = start_follower("lost")
    kid = parts(wait_tokens(alloc, 1)[0])[0]["kid"]
    node.kill_launcher()
    os.rename(node.data + "/state/seal.key", node.data + "/state/seal.moved")
    node.start()
    node.wait_ready()
    node.wait_log("signing key %s cannot be used" % kid)
    case.until(lambda: parts(tokens_of(alloc)[-1])[0]["kid"] != kid, 60, "a token signed by a new key")
    case.equal(jwt.verify(node, tokens_of(alloc)[-1]), True)
    node.purge("lost")


with api.Node() as node:
    case.run(globals())

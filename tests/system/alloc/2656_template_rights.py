#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""With ACLs, what a template reads is what its task's identity may: without a policy the variables of its own job, else what policies add."""
from lib import agent, api, case

QUICK = {"Wait": {"Min": 0, "Max": 0}, "Splay": 0, "ChangeMode": "noop"}
SHOW = "last=; while :; do now=$(cat local/v); [ \"$now\" = \"$last\" ] || echo \"<$now>\"; last=$now; sleep 0.1; done"
READ = "{{ with nomadVar \"%s\" }}{{ .x }}{{ end }}"
LIST = "{{ range nomadVarList \"nomad/jobs\" }}{{ .Path }} {{ end }}"


def put(path, x):
    node.do("PUT", "/v1/var/" + path, {"Path": path, "Items": {"x": x}})


def job(name, text):
    return api.job(name, "/bin/sh", ["-c", SHOW], Templates=[{"EmbeddedTmpl": text, "DestPath": "local/v", **QUICK}])


def said(name):
    found = node.allocs(name)
    return [text for a in found for text in node.logs(a).decode().splitlines()] if found and found[0]["ClientStatus"] == "running" else []


def told(name):
    """Returns the messages of the events that say what its templates wait for."""
    found = node.allocs(name)
    states = (found[0]["TaskStates"] or {}) if found else {}
    return [e["DisplayMessage"] for e in states.get("t", {}).get("Events", []) if e["Type"] == "Template"]


def grant(rules, name="more", of="reader"):
    node.do("POST", "/v1/acl/policy/" + name, {"Name": name, "Rules": rules, "JobACL": {"Namespace": "default", "JobID": of}})


def waits(name):
    case.until(lambda: told(name), 30, "what the task waits for")
    case.equal((node.allocs(name)[0]["ClientStatus"], said(name)), ("pending", []))


def test_own_foreign_granted_and_revoked():
    node.register(job("reader", READ % "nomad/jobs/reader" + READ % "nomad/jobs/other"))
    node.register(job("other", READ % "nomad/jobs/other"))
    case.until(lambda: said("other") == ["<foreign>"], 30, "the variable of its own job")
    waits("reader")
    case.contains(told("reader")[-1], "nomad/jobs/other")
    case.equal("nomad/jobs/reader" in told("reader")[-1], False, told("reader"))
    grant('namespace "default" { variables { path "nomad/jobs/other" { capabilities = ["read"] } } }')
    case.until(lambda: said("reader") == ["<own foreign>"], 30, "a value that a policy permits")
    node.do("DELETE", "/v1/acl/policy/more")
    put("nomad/jobs/other", "secret")
    put("nomad/jobs/reader", "own2 ")
    case.until(lambda: said("other")[-1] == "<secret>", 30, "the change")
    case.equal([text for text in said("reader") if "secret" in text], [], "a value that is not permitted any more")
    grant('namespace "default" { variables { path "nomad/jobs/other" { capabilities = ["read"] } } }')
    case.until(lambda: said("reader")[-1] == "<own2 secret>", 30, "a value that is permitted again")
    for name in ("reader", "other"):
        node.purge(name)
    node.do("DELETE", "/v1/acl/policy/more")


def test_a_list_shows_what_the_task_may_list():
    node.register(job("lister", LIST))
    case.until(lambda: said("lister") == ["<nomad/jobs/lister >"], 30, "its own variable alone")
    grant('namespace "default" { variables { path "nomad/jobs/o*" { capabilities = ["list"] } } }', of="lister")
    case.until(lambda: said("lister")[-1] == "<nomad/jobs/lister nomad/jobs/other >", 30, "what a policy adds")
    node.do("DELETE", "/v1/acl/policy/more")
    put("nomad/jobs/lister", "again")
    case.until(lambda: said("lister")[-1] == "<nomad/jobs/lister >", 30, "its own variable alone, again")
    node.purge("lister")


with api.Node(args=agent.config_args("acl { enabled = true }\n")) as node:
    node.token = node.do("POST", "/v1/acl/bootstrap")["SecretID"]
    for at, value in (("nomad/jobs/reader", "own "), ("nomad/jobs/other", "foreign"), ("nomad/jobs/lister", "x")):
        put(at, value)
    case.run(globals())

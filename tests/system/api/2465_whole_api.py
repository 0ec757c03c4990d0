#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Paths of the API that the official command line uses: search, namespaces, eligibility, metadata, drains, garbage collection, evaluation
of jobs; and paths that drover does not implement."""
import json

from lib import api, case, told


def search(prefix, context="all", **query):
    found = node.do("POST", "/v1/search" + ("?" + "&".join("%s=%s" % q for q in query.items()) if query else ""),
                    {"Prefix": prefix, "Context": context})
    return found["Matches"], found["Truncations"]


def test_ids_are_found_by_prefix():
    node.register(api.job("web"))
    alloc = node.wait_running("web")[0]
    me = node.ask("/v1/nodes")[0]["ID"]
    with told.plain(node, "p"):
        node.do("PUT", "/v1/volume/csi/web-data", told.volume("web-data", "p"))
    case.equal(search("web")[0], {"jobs": ["web"], "volumes": ["web-data"]})
    case.equal(search(alloc["ID"][:8])[0].get("allocs"), [alloc["ID"]])
    case.equal(search(alloc["EvalID"], "evals")[0], {"evals": [alloc["EvalID"]]})
    case.equal(search(me, "nodes")[0], {"nodes": [me]})
    case.equal(search("web", "volumes")[0], {"volumes": ["web-data"]})
    case.equal(search("none")[0], {})
    case.equal(search("web", namespace="other")[0], {})
    case.equal(search("web", namespace="*")[0]["jobs"], ["web"])
    for i in range(21):
        node.register(api.job("many%02d" % i, count=0))
    found, cut = search("many", "jobs")
    case.equal((len(found["jobs"]), cut["jobs"], cut["allocs"]), (20, True, False))
    node.refused(400, "no text Prefix", "POST", "/v1/search", {"Context": "all"})
    node.refused(400, 'there is no context "moons"', "POST", "/v1/search", {"Prefix": "", "Context": "moons"})
    node.do("DELETE", "/v1/volume/csi/web-data")


def test_a_job_is_evaluated_again():
    node.register(api.job("short", "/bin/false", []))
    node.wait_allocs("short", [(0, "run", "failed")])
    node.wait_evaluation(node.do("PUT", "/v1/job/short/evaluate", {"JobID": "short"})["EvalID"])
    case.equal(len(node.allocs("short")), 1, "allocations after an evaluation without ForceReschedule")
    answer = node.do("PUT", "/v1/job/short/evaluate", {"JobID": "short", "EvalOptions": {"ForceReschedule": True}})
    case.equal(node.wait_evaluation(answer["EvalID"])["TriggeredBy"], "job-register")
    case.until(lambda: len(node.allocs("short")) == 2, 20, "another allocation")
    node.refused(404, "job not found", "PUT", "/v1/job/none/evaluate", {})
    made = api.job("parent", "/bin/true", [])
    made["Job"].update(Type="batch", ParameterizedJob={})
    node.register(made)
    node.refused(400, "can't evaluate", "PUT", "/v1/job/parent/evaluate", {})


def test_jobs_are_validated():
    fine = node.do("PUT", "/v1/validate/job", api.job("new"))
    case.equal((fine["DriverConfigValidated"], fine["ValidationErrors"], fine["Error"]), (True, None, ""))
    bad = node.do("PUT", "/v1/validate/job", api.job("new", driver="none"))
    case.contains(bad["Error"], 'unknown driver "none"')
    case.equal(bad["ValidationErrors"], [bad["Error"]])
    node.refused(400, "no object Job", "PUT", "/v1/validate/job", {})
    case.equal(node.request("GET", "/v1/job/new").status, 404)


def eligibility():
    me = node.ask("/v1/nodes")[0]
    return me["SchedulingEligibility"], me["Drain"]


def set_eligibility(wanted):
    return node.do("POST", "/v1/node/%s/eligibility" % node.ask("/v1/nodes")[0]["ID"], {"Eligibility": wanted})


def test_an_ineligible_node_gets_no_new_allocations():
    """An ineligible node keeps its allocations and gets no new ones, also after a restart of the agent."""
    before = node.wait_running("web")[0]["ID"]
    set_eligibility("ineligible")
    case.equal(eligibility(), ("ineligible", False))
    evaluation = node.register(api.job("later"))["EvalID"]
    node.wait_evaluation(evaluation)
    case.equal(node.allocs("later"), [])
    node.wait_process("supervisor", other_than=node.kill("supervisor"))
    node.wait_ready()
    case.equal(eligibility(), ("ineligible", False))
    case.equal(node.wait_running("web")[0]["ID"], before)
    set_eligibility("eligible")
    case.equal(eligibility(), ("eligible", False))
    node.wait_running("later")
    for body, part in (({"Eligibility": "perhaps"}, "must be"), ({}, "must be"), ({"Eligibility": 5}, "must be")):
        node.refused(400, part, "POST", "/v1/node/%s/eligibility" % node.ask("/v1/nodes")[0]["ID"], body)
    node.refused(404, "node not found", "POST", "/v1/node/none/eligibility", {"Eligibility": "eligible"})
    node.purge("later")


def test_metadata_of_the_node_is_changed():
    """Metadata from the API takes precedence over the configuration, also after a restart."""
    me = node.ask("/v1/nodes")[0]["ID"]
    case.equal(node.ask("/v1/client/metadata"), {"Meta": {"rack": "r1", "zone": "a"}, "Dynamic": {},
                                                 "Static": {"rack": "r1", "zone": "a"}})
    found = node.do("POST", "/v1/client/metadata", {"NodeID": me, "Meta": {"rack": "r2", "zone": None, "new": "x"}})
    case.equal(found, {"Meta": {"rack": "r2", "new": "x"}, "Dynamic": {"rack": "r2", "zone": None, "new": "x"},
                       "Static": {"rack": "r1", "zone": "a"}})
    for body, part in (({}, "no object Meta"), ({"Meta": {"a b": "x"}}, 'invalid metadata key "a b"'),
                       ({"Meta": {"a": 5}}, "invalid metadata key")):
        node.refused(400, part, "POST", "/v1/client/metadata", body)
    node.refused(404, "Unknown node", "GET", "/v1/client/metadata?node_id=none")
    node.wait_process("supervisor", other_than=node.kill("supervisor"))
    node.wait_ready()
    case.equal(node.ask("/v1/client/metadata", node_id=me), found)
    case.equal(node.ask("/v1/node/" + me)["Meta"], found["Meta"])
    made = api.job("picky")
    made["Job"]["Constraints"] = [{"LTarget": "${meta.rack}", "RTarget": "r3", "Operand": "="}]
    node.register(made)
    case.equal(node.allocs("picky"), [])
    node.do("POST", "/v1/client/metadata", {"Meta": {"rack": "r3"}})
    node.wait_running("picky")
    node.purge("picky")


def test_a_drain_can_ignore_system_jobs():
    system = api.job("everywhere")
    system["Job"]["Type"] = "system"
    for key in ("ReschedulePolicy", "Update"):
        del system["Job"]["TaskGroups"][0][key]
    node.register(system)
    spared, stopped = node.wait_running("everywhere")[0], node.wait_running("web")[0]
    path = "/v1/node/%s/drain" % node.ask("/v1/nodes")[0]["ID"]
    node.do("PUT", path, {"DrainSpec": {"Deadline": 10**11, "IgnoreSystemJobs": True}})
    case.until(lambda: node.ask("/v1/node/" + spared["NodeID"])["DrainStrategy"] is None, 30, "the end of the drain")
    case.equal(node.ask("/v1/allocation/" + stopped["ID"])["ClientStatus"], "complete")
    found = node.ask("/v1/allocation/" + spared["ID"])
    case.equal((found["ClientStatus"], found["DesiredStatus"]), ("running", "run"))
    node.do("PUT", path, {"DrainSpec": {"Deadline": 10**11, "IgnoreSystemJobs": False}})
    case.until(lambda: node.ask("/v1/allocation/" + spared["ID"])["ClientStatus"] == "complete", 30, "the end of the system job too")
    node.do("PUT", path, {"DrainSpec": None, "MarkEligible": True})
    node.wait_running("web")
    node.purge("everywhere")


def test_a_cancelled_drain():
    """Allocations that were stopped by the drain end; their replacements stay."""
    deaf = api.job("deaf", "/bin/sh", ["-c", "trap '' INT; echo here; while [ ! -e $0 ]; do sleep 0.1; done", node.base + "/end"],
                   KillTimeout=600 * 10**9)
    node.register(deaf)
    alloc = node.wait_running("deaf")[0]
    node.wait_said(alloc, b"here")
    path = "/v1/node/%s/drain" % alloc["NodeID"]
    node.do("PUT", path, {"DrainSpec": {"Deadline": 10**11}})
    case.until(lambda: node.ask("/v1/allocation/" + alloc["ID"])["DesiredStatus"] == "stop", 30, "the drain to begin")
    node.do("PUT", path, {"DrainSpec": None, "MarkEligible": True})
    case.equal(eligibility(), ("eligible", False))
    node.register(api.job("fresh"))
    fresh = node.wait_running("fresh")[0]["ID"]
    with open(node.base + "/end", "w", encoding="ascii"):
        pass
    case.until(lambda: node.ask("/v1/allocation/" + alloc["ID"])["ClientStatus"] == "complete", 30, "the end of the stopped allocation")
    node.wait_running("web")
    case.equal([(a["ID"], a["DesiredStatus"]) for a in node.allocs("fresh")], [(fresh, "run")])
    for name in ("deaf", "fresh"):
        node.purge(name)


def test_garbage_collection_removes_only_what_has_ended():
    batch = api.job("once", "/bin/true", [])
    batch["Job"]["Type"] = "batch"
    node.register(batch)
    node.register(api.job("stopped"))
    node.wait_running("stopped")
    node.do("DELETE", "/v1/job/stopped")
    node.wait_allocs("once", [(0, "run", "complete")])
    for name in ("once", "stopped"):
        case.until(lambda n=name: node.ask("/v1/job/" + n)["Status"] == "dead", 20, name + " to be dead")
    node.do("PUT", "/v1/system/gc")
    for name in ("once", "stopped"):
        case.equal(node.request("GET", "/v1/job/" + name).status, 404, name)
    case.until(lambda: not [a for a in node.ask("/v1/allocations") if a["JobID"] in ("once", "stopped")], 20, "the removal of ended jobs")
    case.equal([j["ID"] for j in node.ask("/v1/jobs", prefix="web")], ["web"], "running jobs")
    case.equal(node.ask("/v1/job/short")["Status"], "dead", "status of a job that failed and was not stopped")
    node.do("PUT", "/v1/system/reconcile/summaries")


def test_namespaces_and_regions_are_listed():
    case.equal([n["Name"] for n in node.ask("/v1/namespaces")], ["default"])
    node.do("PUT", "/v1/namespace", {"Name": "other"})
    case.equal([n["Name"] for n in node.ask("/v1/namespaces")], ["default", "other"])
    case.equal([n["Name"] for n in node.ask("/v1/namespaces", prefix="o")], ["other"])
    case.equal(node.ask("/v1/namespace/default")["Description"], "Default shared namespace")
    node.refused(404, "Namespace not found", "GET", "/v1/namespace/none")
    case.equal(node.ask("/v1/regions"), ["global"])


def test_list_items_have_the_requested_optional_fields():
    def stub(**query):
        return node.ask("/v1/allocations", prefix=node.wait_running("web")[0]["ID"], **query)[0]
    plain = stub()
    case.equal(("AllocatedResources" in plain, plain["TaskStates"]["t"]["State"]), (False, "running"))
    case.equal(stub(resources="true")["AllocatedResources"]["Tasks"]["t"]["Cpu"]["CpuShares"], 20)
    case.equal(stub(task_states="false")["TaskStates"], None)
    case.equal("NodeResources" in node.ask("/v1/nodes")[0], False)
    case.equal(node.ask("/v1/nodes", resources="true")[0]["NodeResources"]["Cpu"]["CpuShares"] > 0, True)
    node.refused(400, "resources", "GET", "/v1/allocations?resources=perhaps")


def test_versions_of_a_job_with_their_differences():
    def register(text):
        node.register(api.job("changing", "/bin/sh", ["-c", "echo %s; sleep 1000" % text], count=0))
    register("one")
    case.equal(node.ask("/v1/job/changing/versions", diffs="true")["Diffs"], None)
    register("two")
    case.equal(node.ask("/v1/job/changing/versions")["Diffs"], None)
    register("three")
    found = node.ask("/v1/job/changing/versions", diffs="true")
    case.equal(([v["Version"] for v in found["Versions"]], [d["Type"] for d in found["Diffs"]]), ([2, 1, 0], ["Edited"] * 2))
    case.contains(json.dumps(found["Diffs"][0]), "echo three")
    case.equal("echo one" in json.dumps(found["Diffs"][0]), False)


def test_versions_are_compared_with_one_of_them():
    """By its number or its tag, instead of with the one before."""
    def types(**query):
        return [d["Type"] for d in node.ask("/v1/job/changing/versions", diffs="true", **query)["Diffs"]]
    case.equal(types(diff_version="0"), ["Edited", "Edited", "None"])
    node.do("PUT", "/v1/job/changing/versions/middle/tag", {"Version": 1})
    case.equal(types(diff_tag="middle"), ["Edited", "None", "Edited"])
    found = node.ask("/v1/job/changing/versions", diffs="true", diff_version="2")["Diffs"]
    case.equal(("echo one" in json.dumps(found[2]), "VersionTag" in json.dumps(found)), (True, False))
    node.refused(404, 'tag "none" not found', "GET", "/v1/job/changing/versions?diff_tag=none")
    node.refused(404, "version 9 not found", "GET", "/v1/job/changing/versions?diff_version=9")
    node.refused(400, "is not a number", "GET", "/v1/job/changing/versions?diff_version=-1")


def test_tags_of_versions():
    def tags():
        return {v["Version"]: (v["VersionTag"] or {}).get("Name") for v in node.ask("/v1/job/changing/versions")["Versions"]}
    index = node.ask("/v1/job/changing")["ModifyIndex"]
    found = node.do("POST", "/v1/job/changing/versions/gold/tag", {"Latest": True, "Description": "good"})
    case.equal((found["Name"], found["Description"], found["TaggedTime"] > 10**18, found["Index"] > index), ("gold", "good", True, True))
    case.equal(tags(), {2: "gold", 1: "middle", 0: None})
    job = node.ask("/v1/job/changing")
    case.equal((job["VersionTag"]["Description"], job["ModifyIndex"] > index), ("good", True))
    node.do("PUT", "/v1/job/changing/versions/gold/tag", {"Version": 2, "Description": "better"})
    case.equal(node.ask("/v1/job/changing")["VersionTag"]["Description"], "better", "the description of a tag that is there")
    for status, part, body in ((409, "already exists on version 2", {"Version": 1}), (404, "no version 7", {"Version": 7}),
                               (400, "must be 0", {"Version": 1, "Latest": True}), (400, "not a JSON object", []),
                               (400, "at most 1000 bytes", {"Version": 2, "Description": "x" * 1001})):
        node.refused(status, part, "PUT", "/v1/job/changing/versions/gold/tag", body)
    node.refused(400, "UTF-8", "PUT", "/v1/job/changing/versions/%ff/tag", {"Version": 0})
    node.refused(404, "job not found", "PUT", "/v1/job/none/versions/gold/tag", {"Version": 0})
    # A job that is registered as it was shown becomes a version without a tag.
    node.register({"Job": {**job, "Priority": 60}})
    case.equal(tags(), {3: None, 2: "gold", 1: "middle", 0: None})
    node.kill("supervisor")
    node.wait_log("recovered ", 20)
    case.equal(tags(), {3: None, 2: "gold", 1: "middle", 0: None}, "after a restart")
    node.do("DELETE", "/v1/job/changing/versions/gold/tag")
    node.refused(404, 'tag "gold" not found', "DELETE", "/v1/job/changing/versions/gold/tag")
    node.do("POST", "/v1/job/changing/versions/gold/tag", {"Version": 0})
    case.equal(tags(), {3: None, 2: None, 1: "middle", 0: "gold"})


def test_a_tagged_version_is_kept_until_its_tag_is_removed():
    def kept():
        return [v["Version"] for v in node.ask("/v1/job/changing/versions")["Versions"]]
    for priority in range(10, 20):
        node.register(api.job("changing", count=0, Meta={"n": str(priority)}))
    case.equal(kept(), [13, 12, 11, 10, 9, 8, 1, 0])
    node.do("DELETE", "/v1/job/changing/versions/gold/tag")
    case.until(lambda: kept() == [13, 12, 11, 10, 9, 8, 1], 20, "the version without a tag to be removed")
    node.purge("changing")


def test_the_agent_reports_its_own_configuration():
    found = node.ask("/v1/agent/self")
    case.equal((found["config"]["Client"], found["config"]["Server"], found["config"]["ACL"]),
               ({"Enabled": True}, {"Enabled": False}, {"Enabled": False}))
    case.equal(found["stats"]["runtime"]["kernel.name"], "linux")
    case.equal(found["stats"]["client"]["node_id"], node.ask("/v1/nodes")[0]["ID"])


def test_paths_that_drover_does_not_implement_say_so():
    me = node.ask("/v1/nodes")[0]["ID"]
    alloc = node.wait_running("web")[0]["ID"]
    for method, path, part in (
            ("GET", "/v1/agent/members", "works alone"), ("PUT", "/v1/agent/join", "works alone"),
            ("GET", "/v1/status/leader", "no servers"), ("GET", "/v1/status/peers", "no servers"),
            ("GET", "/v1/operator/raft/configuration", "no servers"), ("GET", "/v1/operator/scheduler/configuration", "alone"),
            ("GET", "/v1/operator/snapshot", "alone"),
            ("GET", "/v1/node/pools", "no node pools"), ("GET", "/v1/node/pool/default", "no node pools"),
            ("PUT", "/v1/node/%s/purge" % me, "only node"), ("GET", "/v1/scaling/policies", "scaling policies"),
            ("GET", "/v1/quotas", "no quotas"), ("GET", "/v1/sentinel/policies", "no policies"),
            ("POST", "/v1/search/fuzzy", "only prefixes"),
            ("GET", "/v1/client/allocation/%s/pause" % alloc, "schedules of tasks"), ("POST", "/v1/job/web/stable", "becomes stable"),
            ("PUT", "/v1/volume/host/create", "configuration")):
        answer = node.request(method, path, {} if method != "GET" else None)
        case.equal((answer.status, part in answer.text), (501, True), path + ": " + answer.text)
    for method, path in (("GET", "/v1/acl/tokens"), ("POST", "/v1/acl/bootstrap")):
        node.refused(400, "ACL support disabled", method, path)
    for path in ("/v1/nothing", "/v1/variable", "/v1/node/%s/nothing" % me):
        node.refused(404, "resource not found", "GET", path)
    node.refused(404, "job not found", "GET", "/v1/job/web/nothing")  # it could be the id of a job
    node.refused(404, "resource not found", "GET", "/nothing")
    case.equal(json.loads(node.get("/v1/agent/health")[1])["client"]["ok"], True)


config = case.directory() + "/agent.hcl"
with open(config, "w", encoding="ascii") as f:
    f.write('client {\n  max_kill_timeout = "10m"\n  meta {\n    rack = "r1"\n    zone = "a"\n  }\n}\n')
with api.Node(["-config", config]) as node:
    case.run(globals())

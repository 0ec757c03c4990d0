#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Jobs on one node: registration, changes, scaling, stops, blocked jobs, and their evaluations."""
import copy
import json

from lib import api, case
from lib.fake_api import run_command


def index(alloc):
    return int(alloc["Name"][alloc["Name"].rindex("[") + 1:-1])


def test_a_job_is_completed_with_defaults():
    answer = node.register({"Job": {"ID": "web", "TaskGroups": [{"Name": "g", "Tasks": [
        {"Name": "t", "Driver": "raw_exec", "Config": {"command": "/bin/sleep", "args": ["1000"]}}]}]}})
    case.equal(node.wait_evaluation(answer["EvalID"])["JobID"], "web")
    node.wait_running("web")
    job = node.ask("/v1/job/web")
    case.equal([job[k] for k in ("Name", "Namespace", "Region", "Type", "Priority", "Datacenters", "Version", "Status")],
               ["web", "default", "global", "service", 50, ["*"], 0, "running"])
    group = job["TaskGroups"][0]
    case.equal((group["Count"], group["EphemeralDisk"]["SizeMB"]), (1, 300))
    case.equal((group["Tasks"][0]["Resources"]["CPU"], group["Tasks"][0]["Resources"]["MemoryMB"]), (100, 300))
    for name in ("RestartPolicy", "ReschedulePolicy", "Update", "Migrate"):
        case.equal(isinstance(group[name], dict), True, name)
    stub = node.ask("/v1/jobs", prefix="we")[0]
    case.equal(stub["JobSummary"]["Summary"]["g"]["Running"], 1, "running in the summary")
    case.equal(node.ask("/v1/jobs", prefix="x"), [], "jobs of another prefix")
    alloc = node.ask("/v1/allocation/" + node.allocs("web")[0]["ID"])
    case.equal(alloc["Job"]["ID"], "web")
    case.equal(alloc["Metrics"]["NodesEvaluated"], 1, "metrics")
    case.equal(alloc["AllocatedResources"]["Tasks"]["t"]["Memory"]["MemoryMB"], 300)
    # Sums that clients of the API expect in every full alloc.
    for shown in (alloc, node.ask("/v1/node/%s/allocations" % alloc["NodeID"])[0]):
        case.equal([shown["Resources"][k] for k in ("CPU", "MemoryMB", "MemoryMaxMB", "DiskMB")], [100, 300, 300, 300])
        case.equal([shown["TaskResources"]["t"][k] for k in ("CPU", "MemoryMB", "MemoryMaxMB", "DiskMB")], [100, 300, 0, 0])
        case.equal((shown["SharedResources"]["CPU"], shown["SharedResources"]["DiskMB"]), (0, 300))
    node.purge("web")
    node.refused(404, "job not found", "GET", "/v1/job/web")


def test_a_change_replaces_only_the_changed_group():
    made = api.job("two")
    made["Job"]["TaskGroups"].append(dict(copy.deepcopy(made["Job"]["TaskGroups"][0]), Name="h"))
    node.register(made)
    first = {a["TaskGroup"]: a for a in node.wait_running("two", 2)}
    unchanged = node.register(made)
    case.equal(node.ask("/v1/job/two")["Version"], 0, "version after the same job again")
    case.equal(node.wait_evaluation(unchanged["EvalID"])["FailedTGAllocs"], None)
    made["Job"]["TaskGroups"][1]["Tasks"][0]["Env"] = {"NEW": "1"}
    answer = node.register(made)
    node.wait_evaluation(answer["EvalID"])
    second = {a["TaskGroup"]: a for a in node.wait_running("two", 2)}
    case.equal(second["g"]["ID"], first["g"]["ID"], "allocs of the unchanged group")
    case.equal(second["g"]["JobVersion"], 1, "its version")
    case.equal(second["h"]["ID"] != first["h"]["ID"], True, "allocs of the changed group that are new")
    new = node.ask("/v1/allocation/" + second["h"]["ID"])
    case.equal((new["PreviousAllocation"], new["Name"]), (first["h"]["ID"], "two.h[0]"))
    case.equal({a["ID"] for a in node.ask("/v1/evaluation/%s/allocations" % answer["EvalID"])},
               {second["g"]["ID"], second["h"]["ID"]}, "allocations of the evaluation")
    node.purge("two")


def test_scaling_keeps_the_indexes():
    node.register(api.job("many", count=3))
    first = {index(a): a["ID"] for a in node.wait_running("many", 3)}
    case.equal(sorted(first), [0, 1, 2])
    node.register(api.job("many", count=1))
    node.wait_allocs("many", [(0, "run", "running"), (1, "stop", "complete"), (2, "stop", "complete")])
    node.register(api.job("many", count=4))
    again = {index(a): a["ID"] for a in node.wait_running("many", 4)}
    case.equal(sorted(again), [0, 1, 2, 3])
    case.equal(again[0], first[0], "the alloc that was kept")
    node.purge("many")


def test_a_failed_alloc_is_replaced_only_on_request():
    node.register(api.job("bad", "/bin/sh", ["-c", "exit 3"]))  # api.job: no attempts to reschedule
    node.wait_allocs("bad", [(0, "run", "failed")])
    case.equal(node.ask("/v1/job/bad")["Status"], "dead")
    node.register(api.job("bad", "/bin/sh", ["-c", "exit 3"]))
    allocs = node.wait_allocs("bad", [(0, "stop", "failed"), (0, "run", "failed")])
    case.equal(allocs[0]["NextAllocation"], allocs[1]["ID"])
    node.purge("bad")


def test_stopping_an_alloc_places_another_in_its_slot():
    node.register(api.job("stopped", count=2))
    allocs = {index(a): a for a in node.wait_running("stopped", 2)}
    answer = node.do("PUT", "/v1/allocation/%s/stop" % allocs[1]["ID"])
    case.equal(node.wait_evaluation(answer["EvalID"])["TriggeredBy"], "alloc-stop")
    after = {index(a): a for a in node.wait_running("stopped", 2)}
    case.equal(after[0]["ID"], allocs[0]["ID"], "the other alloc")
    case.equal(after[1]["EvalID"], answer["EvalID"], "trigger of the new alloc's evaluation")
    node.refused(404, "alloc not found", "PUT", "/v1/allocation/x/stop")
    path = "/v1/allocation/%s/stop?no_shutdown_delay=" % after[0]["ID"]
    node.refused(400, "failed to parse no_shutdown_delay field to boolean", "PUT", path + "maybe")
    case.equal({a["ID"] for a in node.wait_running("stopped", 2)}, {a["ID"] for a in after.values()}, "whether the old alloc is listed")
    node.purge("stopped")


def test_a_job_that_does_not_fit_waits_and_reports_the_reason():
    cpu = node.ask("/v1/node/" + node.ask("/v1/nodes")[0]["ID"])["NodeResources"]["Cpu"]["CpuShares"]
    big = api.job("big", count=2, Resources={"CPU": cpu * 2 // 3, "MemoryMB": 20})
    answer = node.register(big)
    ev = node.wait_evaluation(answer["EvalID"])
    case.equal(ev["FailedTGAllocs"]["g"]["DimensionExhausted"], {"cpu": 1})
    case.equal(ev["QueuedAllocations"], {"g": 1})
    case.equal(node.evaluation(ev["BlockedEval"])["Status"], "blocked")
    job = node.ask("/v1/job/big")
    case.equal((job["Status"], job["StatusDescription"]), ("pending", "group g: not enough cpu"))
    node.wait_running("big", 1)
    case.equal(node.ask("/v1/jobs", prefix="big")[0]["JobSummary"]["Summary"]["g"]["Queued"], 1, "queued")
    # A blocked alloc is placed as soon as resources are free.
    node.register(api.job("small", Resources={"CPU": cpu * 2 // 3, "MemoryMB": 20}))
    case.equal(node.ask("/v1/job/small")["Status"], "pending")
    node.purge("big")
    node.wait_running("small")
    case.equal(node.evaluation(ev["BlockedEval"])["Status"], "complete")
    node.purge("small")


def test_a_kill_timeout_above_the_nodes_maximum_gives_a_warning():
    answer = node.register(api.job("patient", KillTimeout=30 * 10**9))
    case.equal(answer["Warnings"], "")
    answer = node.register(api.job("patient", KillTimeout=90 * 10**9))
    case.contains(answer["Warnings"], 'group "g", task "t": kill_timeout of 1m30s is more than the node\'s '
                                      "max_kill_timeout, which is used: 30s")
    alloc = node.wait_running("patient")[0]
    node.do("DELETE", "/v1/job/patient")
    stopped = node.wait_allocs("patient", [(0, "stop", "complete")])[0]
    case.equal(stopped["ID"], alloc["ID"], "changed in place")
    killing = next(e for e in stopped["TaskStates"]["t"]["Events"] if e["Type"] == "Killing")
    case.contains(killing["DisplayMessage"], "Waiting 30s before force killing")
    node.purge("patient")


def test_constraints_filter_the_node():
    made = api.job("there")
    made["Job"]["Constraints"] = [{"LTarget": "${attr.kernel.name}", "RTarget": "linux", "Operand": "="},
                                  {"LTarget": "${meta.rack}", "RTarget": "r1", "Operand": "!="}]
    node.register(made)
    node.wait_running("there")
    node.purge("there")
    made["Job"]["Constraints"] = [{"LTarget": "${attr.kernel.name}", "RTarget": "windows", "Operand": ""}]
    ev = node.wait_evaluation(node.register(made)["EvalID"])
    case.equal(ev["FailedTGAllocs"]["g"]["ConstraintFiltered"], {"${attr.kernel.name} = windows": 1})
    node.purge("there")


def test_a_job_id_may_have_slashes():
    node.register(api.job("a/b"))
    alloc = node.wait_running("a/b")[0]
    for path in ("a/b", "a%2Fb"):
        case.equal(node.ask("/v1/job/" + path)["ID"], "a/b")
        case.equal([a["ID"] for a in node.ask("/v1/job/%s/allocations" % path)], [alloc["ID"]])
    node.purge("a/b")


def test_members_that_nobody_knows_are_named():
    made = api.job("typo", group={"Volumes": {"v": {"Type": "host", "Source": "none", "Readonly": True, "Wrong": 1}}})
    made["Job"].update({"priority": 50, "Datacentres": ["dc1"], "Meta": {"any": "thing"}})
    made["Job"]["TaskGroups"][0]["Tasks"][0]["Resources"]["MemoryMBB"] = 10
    made["Job"]["TaskGroups"][0]["Tasks"][0]["OfAnotherVersion"] = {"Text": "", "List": [], "Number": 0}
    for path in ("/v1/validate/job", "/v1/job/typo/plan", "/v1/jobs"):
        warnings = node.do("POST", path, made)["Warnings"]
        for part in ('Datacentres is not known and has no effect: did you mean "Datacenters"?',
                     'TaskGroups[0].Tasks[0].Resources.MemoryMBB is not known and has no effect: did you mean "MemoryMB"?',
                     'TaskGroups[0].Volumes["v"].Wrong is not known and has no effect'):
            case.contains(warnings, part)
        case.equal(warnings.count("not known"), 3, warnings)
    # The nomad command also writes empty members of its own version. No warning names them.
    made["Job"]["TaskGroups"][0]["Tasks"][0].update({"Newer": None, "Newest": {"Sub": "", "List": [], "N": 0}})
    case.equal(node.do("POST", "/v1/validate/job", made)["Warnings"].count("not known"), 3)
    made["Job"].update({"x%d" % i: i + 1 for i in range(5000)})
    case.equal(node.do("POST", "/v1/jobs", made)["Warnings"].count("not known") <= 20, True)
    node.purge("typo")
    case.equal(node.do("POST", "/v1/jobs", api.job("typo"))["Warnings"], "")
    node.purge("typo")


def test_a_refusal_has_every_fault_in_full_on_a_line_of_its_own():
    made = api.job("faulty")
    group = made["Job"]["TaskGroups"][0]
    names = ["task-with-a-long-name-%02d" % i for i in range(40)]
    group["Tasks"] = [api.task(name, "/bin/true", driver="nothing-like-it") for name in names]
    wanted = ['group "g", task "%s": unknown driver "nothing-like-it": there are raw_exec, exec, docker, podman' % name for name in names]
    for path in ("/v1/jobs", "/v1/job/faulty/plan"):
        answer = node.request("POST", path, made)
        case.equal((answer.status, answer.text.split("\n")), (400, wanted), path)
    answer = node.do("POST", "/v1/validate/job", made)
    case.equal((answer["ValidationErrors"], answer["Error"].split("\n")), (wanted, wanted))
    for words in (["run"], ["plan"], ["validate"]):
        r = run_command(["job", *words, "-"], env={"DROVER_ADDR": "unix://" + node.socket_path}, stdin=json.dumps(made).encode())
        case.equal((r.code, r.err.splitlines()), (255 if words == ["plan"] else 1, ["drover: " + line for line in wanted]), words)


def test_a_stopped_job_can_be_started_again_or_purged():
    node.register(api.job("pause"))
    node.wait_running("pause")
    node.refused(400, "failed to parse purge field to boolean", "DELETE", "/v1/job/pause?purge=perhaps")
    answer = node.do("DELETE", "/v1/job/pause")
    case.equal(node.wait_evaluation(answer["EvalID"])["TriggeredBy"], "job-deregister")
    node.wait_allocs("pause", [(0, "stop", "complete")])
    job = node.ask("/v1/job/pause")
    case.equal((job["Stop"], job["Status"]), (True, "dead"))
    node.register(api.job("pause"))
    node.wait_running("pause")
    answer = node.do("DELETE", "/v1/job/pause?purge=true")
    case.until(lambda: not node.ask("/v1/allocations"), 20, "its allocations to be removed")
    case.equal(node.evaluation(answer["EvalID"])["Status"], "complete", "whether the evaluation of the purge can still be read")
    case.equal(node.ask("/v1/agent/leaks"), [], "leaks")


def test_a_job_that_is_purged_and_registered_again_at_once():
    made = api.job("back", "/bin/sh", ["-c", "trap '' INT; while :; do sleep 0.1; done"], KillTimeout=10**9)
    node.register(made)
    old = node.wait_running("back")[0]
    node.do("DELETE", "/v1/job/back?purge=true")
    node.refused(404, "job not found", "GET", "/v1/job/back")
    answer = node.register(made)
    node.wait_evaluation(answer["EvalID"])
    case.equal(node.wait_running("back")[0]["ID"] != old["ID"], True, "a new alloc")
    # Once more, while the old job is being removed.
    node.do("DELETE", "/v1/job/back")
    node.wait_allocs("back", [(0, "stop", "complete")] * len(node.allocs("back")))
    node.do("DELETE", "/v1/job/back?purge=true")
    node.wait_evaluation(node.register(made)["EvalID"])
    node.wait_running("back")
    node.purge("back")


def test_invalid_jobs_are_refused_and_change_nothing():
    node.register(api.job("good"))
    before = node.wait_running("good")[0]["ID"]

    def bad(part, change):
        made = api.job("good")
        change(made["Job"])
        node.refused(400, part, "POST", "/v1/jobs", made)

    def group(job):
        return job["TaskGroups"][0]

    bad('unknown driver "java"', lambda j: group(j)["Tasks"][0].update(Driver="java"))
    bad("config.command", lambda j: group(j)["Tasks"][0].update(Config={}))
    bad("does not exist", lambda j: group(j).update(Volumes={"d": {
        "Name": "d", "Type": "csi", "Source": "nodata", "AccessMode": "single-node-writer",
        "AttachmentMode": "file-system"}}))
    bad("two tasks of this name", lambda j: group(j)["Tasks"].append(group(j)["Tasks"][0]))
    bad("two groups of this name", lambda j: j["TaskGroups"].append(group(j)))
    bad("no group", lambda j: j.update(TaskGroups=[]))
    for name in ("../x", "a b", "", "x" * 300, "a\u0000b", "a/../b"):
        made = api.job("good")
        made["Job"]["ID"] = name
        case.equal(node.request("POST", "/v1/jobs", made).status, 400, repr(name))
        made = api.job("good")
        made["Job"]["TaskGroups"][0]["Tasks"][0]["Name"] = name or "."
        case.equal(node.request("POST", "/v1/jobs", made).status, 400, "task " + repr(name))
    made = api.job("good")
    made["Job"]["Namespace"] = "a/b"
    node.refused(400, "namespace", "POST", "/v1/jobs", made)
    case.equal(node.request("POST", "/v1/jobs", {"Job": api.job("good")["Job"], "EnforceIndex": True,
                                                 "JobModifyIndex": 0}).status, 409, "index")
    case.equal([j["ID"] for j in node.ask("/v1/jobs")], ["good"], "jobs")
    case.equal(node.ask("/v1/job/good")["Version"], 0, "version")
    case.equal(node.wait_running("good")[0]["ID"], before, "the alloc of the job")
    node.purge("good")


def test_terminal_allocs_are_removed_oldest_first():
    made = api.job("churn", "/bin/true", count=30)
    for _ in range(3):
        node.register(made)
        case.until(lambda: all(a["ClientStatus"] in ("complete", "failed") for a in node.allocs("churn")), 60, "all allocs to end")
    case.until(lambda: len(node.allocs("churn")) <= 80, 20, "the oldest to be removed")
    latest = [a for a in node.allocs("churn") if a["DesiredStatus"] == "run"]
    case.equal(len(latest), 30, "the allocations that represent their slots")
    node.purge("churn")


def test_an_accepted_change_survives_a_kill_of_the_supervisor():
    node.register(api.job("long", "/bin/sh", ["-c", "trap '' INT; echo deaf; while :; do sleep 0.1; done"], KillTimeout=10**10))
    old = node.wait_running("long")[0]
    node.wait_said(old, b"deaf")
    changed = api.job("long", "/bin/sh", ["-c", "sleep 1000"])
    answer = node.register(changed)
    case.equal(node.evaluation(answer["EvalID"])["Status"], "pending", "status of the new alloc, which waits for the old")
    node.kill("supervisor")
    node.wait_ready()
    case.equal(node.wait_evaluation(answer["EvalID"])["Status"], "complete")
    new = node.wait_running("long")[0]
    case.equal(node.ask("/v1/allocation/" + new["ID"])["PreviousAllocation"], old["ID"])
    node.purge("long")


def test_a_drain_stops_all_and_is_remembered():
    node.register(api.job("ship", count=2))
    node.wait_running("ship", 2)
    node_id = node.ask("/v1/nodes")[0]["ID"]
    path = "/v1/node/%s/drain" % node_id
    node.refused(400, "DrainSpec", "PUT", path, {"DrainSpec": 7})
    node.do("PUT", path, {"DrainSpec": {"Deadline": 10**11, "IgnoreSystemJobs": False}, "MarkEligible": False})
    case.until(lambda: node.ask("/v1/node/" + node_id)["DrainStrategy"] is None, 20, "the drain to end")
    case.equal(node.ask("/v1/node/" + node_id)["SchedulingEligibility"], "ineligible")
    node.wait_allocs("ship", [(0, "stop", "complete"), (1, "stop", "complete")])
    case.equal(node.ask("/v1/job/ship")["Status"], "pending")
    node.kill("supervisor")
    node.wait_ready()
    case.equal(node.ask("/v1/node/" + node_id)["SchedulingEligibility"], "ineligible", "eligibility after a restart")
    node.do("PUT", path, {"DrainSpec": None, "MarkEligible": True})
    node.wait_running("ship", 2)
    node.purge("ship")


def test_no_leaks_are_left():
    case.equal(json.loads(node.request("GET", "/v1/agent/leaks").body), [], "leaks")


with api.Node() as node:
    case.run(globals())

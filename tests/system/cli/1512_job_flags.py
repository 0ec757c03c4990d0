#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Flags of job run, plan, validate, stop and inspect that Nomad's command has: each has an effect, or is refused with one sentence."""
import json

from lib import api, case
from lib.fake_api import FakeApi


def group(name):
    return node.ask("/v1/job/" + name)["TaskGroups"][0]


def test_flags_reach_the_agent():
    path = case.write(base + "/web.json", json.dumps(api.job("web")))
    with FakeApi() as fake:
        answer = {"EvalID": "", "Warnings": ""}
        fake.json("POST", "/v1/jobs", answer)
        fake.json("POST", "/v1/job/web/plan", {"Diff": {"Type": "None", "ID": "web"}, "JobModifyIndex": 5})
        fake.json("GET", "/v1/jobs", [{"ID": "web", "Namespace": "default"}, {"ID": "db", "Namespace": "prod"}])
        fake.json("DELETE", "/v1/job/web", answer)
        fake.json("DELETE", "/v1/job/db", answer)
        names = ("EnforceIndex", "JobModifyIndex", "EvalPriority", "PolicyOverride", "PreserveCounts", "PreserveResources")

        def sent(*flags):
            case.equal(fake.drover("job", "run", "-detach", *flags, path).code, 0)
            return {k: v for k, v in fake.asked("POST", "/v1/jobs")[-1].body.items() if k in names}
        case.equal(sent(), {})
        case.equal(sent("-check-index", "7", "-eval-priority", "70"), {"EnforceIndex": True, "JobModifyIndex": 7, "EvalPriority": 70})
        case.equal(sent("-check-index=0"), {"EnforceIndex": True, "JobModifyIndex": 0})
        case.equal(sent("-policy-override", "-preserve-counts", "-preserve-resources", "-hcl2-strict=false"),
                   {"PolicyOverride": True, "PreserveCounts": True, "PreserveResources": True})
        case.equal(fake.drover("job", "plan", "-policy-override", path).code, 0)
        case.equal(fake.asked("POST", "/v1/job/web/plan")[-1].body["PolicyOverride"], True)
        case.equal(fake.drover("job", "stop", "-detach", "-eval-priority", "9", "-no-shutdown-delay", "web", "db").code, 0)
        query = {"purge": "false", "no_shutdown_delay": "true", "eval_priority": "9"}
        for name, namespace in (("web", "default"), ("db", "prod")):
            case.equal({k: v for k, v in fake.asked("DELETE", "/v1/job/" + name)[-1].query.items()},
                       {**query, "namespace": namespace})


def test_what_drover_has_not_is_refused():
    path = case.write(base + "/web.json", json.dumps(api.job("web")))
    for command, flags in ((("job", "run"), ("-ui", "-consul-namespace=a", "-vault-namespace=a")), (("job", "validate"), ("-vault-namespace",)),
                           (("job", "plan"), ("-vault-namespace=a",)), (("job", "stop"), ("-global",))):
        for flag in flags:
            r = node.drover(*command, flag, path, code=255 if "plan" in command else 1)
            case.equal((r.out, r.err.startswith("drover: %s is not supported: " % flag.partition("=")[0]), r.err.count("\n")), ("", True, 1), r.err)
        case.equal("vault" in node.drover(*command, "-h").out, False)
    case.equal(node.request("GET", "/v1/job/web").status, 404)


def test_values_for_undeclared_variables_are_a_warning():
    path = case.write(base + "/strict.nomad.hcl", 'job "strict" {\n  group "g" {\n    task "t" {\n      driver = "raw_exec"\n'
                                     '      config {\n        command = "/bin/true"\n      }\n    }\n  }\n}\n')
    for command in ("run", "plan", "validate"):
        r = node.drover("job", command, "-var", "a=b", path, code=255 if command == "plan" else 1)
        case.contains(r.err, 'declares no variable "a"')
    r = node.drover("job", "validate", "-hcl2-strict=false", "-var", "a=b", path)
    case.equal(("The job is valid" in r.out, 'declares no variable "a"' in r.err), (True, True), r.out + r.err)


def test_counts_and_resources_are_preserved():
    made = api.job("keep", count=2)
    node.register(made)
    made["Job"]["TaskGroups"][0]["Count"] = 1
    made["Job"]["TaskGroups"][0]["Tasks"][0]["Resources"]["CPU"] = 30
    made["Job"]["TaskGroups"].append(dict(made["Job"]["TaskGroups"][0], Name="new", Count=1))
    path = case.write(base + "/keep.json", json.dumps(made))
    node.drover("job", "run", "-detach", "-preserve-counts", path)
    case.equal((group("keep")["Count"], group("keep")["Tasks"][0]["Resources"]["CPU"]), (2, 30))
    case.equal(node.ask("/v1/job/keep")["TaskGroups"][1]["Count"], 1)
    made["Job"]["TaskGroups"][0]["Tasks"][0]["Resources"]["CPU"] = 40
    made["Job"]["TaskGroups"][0]["Tasks"].append(api.task("second", "/bin/sleep", ["1000"]))
    case.write(base + "/keep.json", json.dumps(made))
    node.drover("job", "run", "-detach", "-preserve-resources", path)
    case.equal((group("keep")["Count"], [t["Resources"]["CPU"] for t in group("keep")["Tasks"]]), (1, [30, 20]))
    node.drover("job", "run", "-detach", path)
    case.equal((group("keep")["Count"], group("keep")["Tasks"][0]["Resources"]["CPU"]), (1, 40))


def test_the_evaluation_has_its_own_priority():
    path = case.write(base + "/priority.json", json.dumps(api.job("priority")))
    node.drover("job", "run", "-detach", "-eval-priority", "99", path)
    case.equal([e["Priority"] for e in node.ask("/v1/job/priority/evaluations")], [99])
    node.drover("job", "stop", "-detach", "-eval-priority", "1", "priority")
    case.equal(sorted(e["Priority"] for e in node.ask("/v1/job/priority/evaluations")), [1, 99])
    case.equal(node.ask("/v1/job/priority")["Priority"], 50)
    for words in (("run", "-eval-priority", "101", path), ("stop", "-eval-priority", "101", "priority")):
        case.contains(node.drover("job", *words, code=1).err, "Eval priority must be between 1 and 100")
    case.contains(node.drover("job", "run", "-eval-priority", "-1", path, code=1).err, "-eval-priority must be a number of 0 or more")


def test_an_override_without_policies_is_a_warning():
    path = case.write(base + "/override.json", json.dumps(api.job("override")))
    case.contains(node.drover("job", "run", "-detach", "-policy-override", path).out, "PolicyOverride has no effect: there are no policies")
    case.equal("PolicyOverride" in node.drover("job", "run", "-detach", path).out, False)


def test_plans_are_shown_in_part_or_as_json():
    path = case.write(base + "/plan.json", json.dumps(api.job("plan")))
    whole = node.drover("job", "plan", path, code=1).out
    short = node.drover("job", "plan", "-diff=false", path, code=1).out
    case.equal(("Job: \"plan\"" in whole, "Job: \"plan\"" in short, "What would happen" in short), (True, False, True), short)
    for flag in ("-json", "-json-output"):
        case.equal(json.loads(node.drover("job", "plan", flag, path, code=1).out)["Diff"]["Type"], "Added")
    hcl = case.write(base + "/plan it.nomad.hcl", 'variable "a" {}\njob "x" {\n  group "g" {\n    task "t" {\n      driver = "raw_exec"\n'
                     '      config {\n        command = "/bin/true"\n      }\n    }\n  }\n}\n')
    out = node.drover("job", "plan", "-hcl2-strict=false", "-var", "a=it's", "-var", "b=c", hcl, code=1).out
    case.contains(out, "  drover job run -check-index 0 -hcl2-strict=false -var 'a=it'\\''s' -var b=c '%s'\n" % hcl)
    node.drover("job", "run", "-detach", path)
    case.equal(json.loads(node.drover("job", "plan", "-json", path).out)["Diff"]["Type"], "None")


def test_several_jobs_are_stopped():
    for name in ("one", "two"):
        node.register(api.job(name))
        node.wait_running(name)
    r = node.drover("job", "stop", "one", "nothing", "two", code=1)
    case.contains(r.err, '"nothing"')
    case.equal([line for line in r.out.split("\n") if "is stopped" in line], ['==> Job "one" is stopped', '==> Job "two" is stopped'])
    case.equal([node.ask("/v1/job/" + name)["Stop"] for name in ("one", "two")], [True, True])


base = case.directory()
with api.Node() as node:
    case.run(globals())

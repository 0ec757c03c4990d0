#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""job plan reports what would change and changes nothing; a registration then does exactly that."""
import json

from lib import api, case
from lib.fake_api import run_command


def drover(*words, code=0, stdin=None):
    r = run_command(words, env={"DROVER_ADDR": "unix://" + node.socket_path}, stdin=stdin)
    case.equal(r.code, code, "drover %s: %s%s" % (" ".join(words), r.out, r.err))
    return r


def plan(job):
    found = node.do("POST", "/v1/job/%s/plan" % job["Job"]["ID"], dict(job, Diff=True))
    counts = found["Annotations"]["DesiredTGUpdates"]
    return found, {g: {k: n for k, n in c.items() if n} for g, c in counts.items()}


def test_a_plan_of_a_new_job():
    job = api.job("new", count=3)
    found, counts = plan(job)
    case.equal(counts, {"g": {"Place": 3}})
    case.equal((found["JobModifyIndex"], found["FailedTGAllocs"], found["Diff"]["Type"]), (0, None, "Added"))
    case.equal([t["Name"] for t in found["Diff"]["TaskGroups"][0]["Tasks"]], ["t"])
    node.refused(404, "job not found", "GET", "/v1/job/new")
    r = drover("job", "plan", "-", code=1, stdin=json.dumps(job).encode())
    case.contains(r.out, '+   Job: "new"')
    case.contains(r.out, "-check-index 0 -")
    drover("job", "run", "-check-index", "0", "-", stdin=json.dumps(job).encode())
    node.wait_running("new", 3)
    case.contains(drover("job", "run", "-check-index", "0", "-", code=1, stdin=json.dumps(job).encode()).err,
                  "job already exists")
    node.purge("new")


def test_a_plan_of_an_unchanged_job():
    job = api.job("same")
    node.register(job)
    node.wait_running("same")
    found, counts = plan(job)
    case.equal((counts, found["Diff"]["Type"], found["Diff"]["TaskGroups"]), ({"g": {"Ignore": 1}}, "None", []))
    drover("job", "plan", "-", stdin=json.dumps(job).encode())
    node.purge("same")


def test_a_registration_does_what_its_plan_reported():
    job = api.job("web", count=2)
    node.register(job)
    before = {a["ID"] for a in node.wait_running("web", 2)}
    index = node.ask("/v1/job/web")["JobModifyIndex"]
    group = job["Job"]["TaskGroups"][0]
    group["Count"] = 3
    found, counts = plan(job)
    case.equal((counts, found["JobModifyIndex"]), ({"g": {"Place": 1, "InPlaceUpdate": 2}}, index))
    fields = found["Diff"]["TaskGroups"][0]["Fields"]
    case.equal([(f["Type"], f["Name"], f["Old"], f["New"]) for f in fields], [("Edited", "Count", "2", "3")])
    case.equal(found["Diff"]["TaskGroups"][0]["Updates"], {"create": 1, "in-place update": 2})
    case.equal({a["ID"] for a in node.allocs("web")}, before, "the job after a plan")
    case.equal(node.ask("/v1/job/web")["Version"], 0)
    group["Tasks"][0]["Env"] = {"A": "1"}
    group["Tasks"][0]["Config"]["args"] = ["999"]
    case.equal(plan(job)[1], {"g": {"Place": 1, "DestructiveUpdate": 2}})
    out = drover("job", "plan", "-", code=1, stdin=json.dumps(job).encode()).out
    for line in ('+/- Task Group: "g" (1 create, 2 create/destroy update)', '    +/- Count: "2" => "3"', '    +/- Task: "t"',
                 '            +/- args[0]: "1000" => "999"', '            +   A: "1"'):
        case.equal(line in out.splitlines(), True, "%r in\n%s" % (line, out))
    node.register(job)
    case.until(lambda: not before & {a["ID"] for a in node.wait_running("web", 3)}, 20, "allocs that were kept")
    group["Name"] = "h"
    case.equal(plan(job)[1], {"h": {"Place": 3}, "g": {"Stop": 3}})
    node.purge("web")


def test_a_plan_of_a_job_that_does_not_fit():
    cpu = node.ask("/v1/nodes")[0]["ID"]
    cpu = node.ask("/v1/node/" + cpu)["NodeResources"]["Cpu"]["CpuShares"]
    found, _ = plan(api.job("big", count=3, Resources={"CPU": cpu * 2 // 3, "MemoryMB": 20}))
    failed = found["FailedTGAllocs"]["g"]
    case.equal((failed["DimensionExhausted"], failed["CoalescedFailures"]), ({"cpu": 1}, 1))
    # A group that does not fit does not reduce the resources for the next.
    job = api.job("two", Resources={"CPU": cpu * 2, "MemoryMB": 20})
    groups = job["Job"]["TaskGroups"]
    groups += [dict(g, Name="small") for g in api.job("two")["Job"]["TaskGroups"]]
    found, _ = plan(job)
    case.equal(list(found["FailedTGAllocs"]), ["g"])
    node.register(job)
    case.equal(node.wait_running("two")[0]["TaskGroup"], "small")
    node.purge("two")


def test_a_plan_of_canaries_whose_port_is_in_use():
    def job(canaries, text):
        ports = [{"Mode": "host", "ReservedPorts": [{"Label": "http", "Value": 18083}]}]
        return api.job("bird", Env={"TEXT": text}, group={"Networks": ports, "Update": {"MaxParallel": 1, "Canary": canaries}})
    node.register(job(0, "zero"))
    node.wait_running("bird")
    case.equal(plan(job(0, "one"))[0]["Warnings"], "")
    found, counts = plan(job(1, "one"))
    case.equal((counts, found["FailedTGAllocs"]["g"]["DimensionExhausted"]),
               ({"g": {"Canary": 1, "Ignore": 1}}, {"network: reserved port collision http=18083 (bird.g[0] has it)": 1}))
    said = "an update with canaries fails at its progress_deadline: the allocation that a canary is to replace has the static " \
           "port http=18083"
    case.contains(found["Warnings"], said)
    made = json.dumps(job(1, "one")).encode()
    case.contains(drover("job", "plan", "-", code=1, stdin=made).out, said)
    case.contains(drover("job", "run", "-detach", "-", stdin=made).out, said)
    node.purge("bird")


def test_invalid_plans_are_refused():
    bad = api.job("bad")
    bad["Job"]["TaskGroups"][0]["Tasks"][0]["Driver"] = "nothing"
    node.refused(400, 'unknown driver "nothing"', "POST", "/v1/job/bad/plan", bad)
    node.refused(400, "does not match the id in the path", "POST", "/v1/job/other/plan", api.job("bad"))
    case.contains(drover("job", "plan", "/nonexistent", code=255).err, "/nonexistent")
    case.contains(drover("job", "plan", "-", code=255, stdin=b"{").err, "standard input:1:1")
    case.contains(drover("job", "plan", "-", code=255, stdin=b'{"Job": {}}').err, "has no ID")
    # A wrong command line has its own exit code: 0 and 1 say whether there are changes.
    for words in ((), ("a", "b"), ("-nonsense", "a")):
        drover("job", "plan", *words, code=255)


with api.Node() as node:
    case.run(globals())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Commands that find an allocation, a deployment or an evaluation of a job, and follow them."""
from lib import api, case
from lib.fake_api import run_command

S = 10**9


def drover(*words, code=0):
    r = run_command(words, env={"DROVER_ADDR": "unix://" + node.socket_path})
    case.equal(r.code, code, "drover %s: %s%s" % (" ".join(words), r.out, r.err))
    return r.out + r.err


def test_an_allocation_of_a_job_is_used():
    made = api.job("web", "/bin/sh", ["-c", "echo from $NOMAD_GROUP_NAME; exec sleep 1000"])
    group = made["Job"]["TaskGroups"][0]
    made["Job"]["TaskGroups"].append({**group, "Name": "h"})
    node.register(made)
    for alloc in node.wait_running("web", 2):
        node.wait_said(alloc, b"from")
    for name in ("g", "h"):
        case.equal(drover("alloc", "logs", "-job", "-group", name, "web"), "from %s\n" % name)
        case.equal(drover("alloc", "exec", "-job", "-group", name, "web", "sh", "-c", "echo $NOMAD_GROUP_NAME"), name + "\n")
    case.contains(drover("alloc", "fs", "-job", "we"), "alloc/")
    case.contains(drover("logs", "-job", "web"), "from ")
    case.contains(drover("alloc", "logs", "-group", "g", "web", code=1), "-group needs -job")
    case.contains(drover("alloc", "logs", "-job", "-group", "i", "web", code=1), "web, group i has no allocation")
    case.contains(drover("alloc", "logs", "-job", "none", code=1), 'no job "none" exists')
    for words, wanted in ((("alloc", "logs", "-job", "w"), "web\trunning\n"), (("alloc", "logs", "-job", "web", "-group", "h"), "h\n"),
                          (("alloc", "logs", "-job", "-group", "h", "web", ""), "t\traw_exec\n")):
        case.equal(run_command(["__complete", *words], env={"DROVER_ADDR": "unix://" + node.socket_path}).out, wanted, words)


def test_a_running_allocation_is_preferred_to_a_newer_one():
    node.register(api.job("fails", "/bin/sh", ["-c", "echo $NOMAD_ALLOC_INDEX; [ $NOMAD_ALLOC_INDEX = 0 ] && exec sleep 1000; exit 1"], count=2))
    node.wait_allocs("fails", [(0, "run", "running"), (1, "run", "failed")])
    case.equal(drover("alloc", "logs", "-job", "fails"), "0\n")
    drover("job", "stop", "fails")
    case.equal(drover("alloc", "logs", "-job", "fails") in ("0\n", "1\n"), True, "without one that runs")
    node.purge("fails")


def test_deployments_and_evaluations_are_followed():
    update = {"Update": {"MaxParallel": 1, "HealthCheck": "task_states", "MinHealthyTime": S // 10}}
    made = node.register(api.job("slow", group=update))
    case.contains(drover("eval", "status", "-monitor", made["EvalID"]), 'finished with status "complete"')
    node.wait_running("slow")
    deployment = node.ask("/v1/job/slow/deployment")["ID"]
    case.contains(drover("deployment", "status", "-monitor", deployment), "is successful")
    case.contains(drover("job", "deployments", "-latest", "slow"), deployment[:8])
    node.register(api.job("plain", count=0))
    case.equal(drover("job", "deployments", "-latest", "plain"), "No deployments\n")
    cpu = node.ask("/v1/node/" + node.ask("/v1/nodes")[0]["ID"])["NodeResources"]["Cpu"]["CpuShares"]
    made = node.register(api.job("big", Resources={"CPU": cpu, "MemoryMB": 20}))
    case.contains(drover("eval", "status", "-monitor", made["EvalID"], code=2), "could not place everything")
    for name in ("big", "slow"):
        node.purge(name)


def test_what_an_earlier_job_left_is_shown_on_request():
    node.register(api.job("again"))
    first = node.wait_running("again")[0]["ID"]
    case.contains(drover("job", "allocs", "again"), first[:8])
    case.contains(drover("job", "allocs", "-all", "again"), first[:8])
    case.equal(drover("job", "deployments", "-all", "again"), drover("job", "deployments", "again"))
    node.purge("again")


def test_parts_of_the_page_of_a_job():
    node.register(api.job("page"))
    alloc = node.wait_running("page")[0]
    case.equal(alloc["EvalID"][:8] in drover("job", "status", "page"), False)
    out = drover("job", "status", "-evals", "page")
    case.contains(out, "\nEvaluations\n")
    case.contains(out, alloc["EvalID"][:8])
    case.contains(drover("job", "status", "-all-allocs", "page"), alloc["ID"][:8])
    out = drover("job", "status", "-short", "page")
    case.equal((out.splitlines()[0].split(), "Summary" in out, alloc["ID"][:8] in out), (["ID", "=", "page"], False, False))


def test_parts_of_the_pages_of_nodes_and_allocations():
    alloc = node.wait_running("page")[0]["ID"]
    line = drover("node", "status", "-allocs", "-os").splitlines()
    running = [a for a in node.ask("/v1/allocations") if a["ClientStatus"] == "running"]
    case.equal((line[0].split()[-3:], line[1].split()[-1]), (["OS", "Running", "Allocs"], str(len(running))))
    case.equal(drover("node", "status", "-allocs").splitlines()[0].split()[-3:], ["Status", "Running", "Allocs"])
    case.equal(drover("node", "status", "-os").splitlines()[0].split()[-1], "OS")
    out = drover("node", "status", "-self", "-short")
    case.equal(("Kernel" in out, "Drivers" in out, alloc[:8] in out), (True, False, False))
    out = drover("alloc", "status", "-short", alloc)
    case.equal(out.splitlines()[-1].split()[:3], ["t", "running", "Started"])
    case.equal("Events" in out, False)
    case.contains(drover("alloc", "status", "-stats", alloc), "\nResource Usage\n")


def test_a_job_is_scaled_from_a_known_state():
    index = node.ask("/v1/job/page")["JobModifyIndex"]
    case.contains(drover("job", "scale", "-check-index", str(index + 1), "page", "2", code=1), "has the modify index %d, not %d" % (index, index + 1))
    drover("job", "scale", "-check-index", str(index), "page", "2")
    node.wait_running("page", 2)
    drover("job", "scale", "-check-index", "0", "page", "1")
    node.wait_running("page", 1)
    node.refused(409, "Enforcing job modify index", "POST", "/v1/job/page/scale", {
        "Count": 2, "Target": {"Group": "g"}, "EnforceIndex": True, "JobModifyIndex": 1})
    node.purge("page")
    made = api.job("two", count=0)
    made["Job"]["TaskGroups"].append({**made["Job"]["TaskGroups"][0], "Name": "h"})
    node.register(made)
    case.contains(drover("job", "scale", "two", "1", code=1), "has 2 groups")
    drover("job", "scale", "two", "h", "1")
    node.wait_running("two")
    node.purge("two")


with api.Node() as node:
    case.run(globals())

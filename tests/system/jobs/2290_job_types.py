#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Job types with the embedded server: batch and sysbatch run once for each version; system jobs keep running."""
import time

from lib import api, case

ONCE = {"Attempts": 1, "Interval": 3600 * 10**9, "Delay": 10**9, "DelayFunction": "constant", "Unlimited": False}


def typed(name, kind, script, **group):
    job = api.job(name, "/bin/sh", ["-c", script], group=group)
    job["Job"]["Type"] = kind
    return job


def wait_dead(name):
    case.until(lambda: node.ask("/v1/job/" + name)["Status"] == "dead", 30, "the end of " + name)


def test_a_completed_job_runs_again_only_for_a_new_version():
    for kind in ("batch", "sysbatch"):
        job = typed(kind, kind, "echo done")
        node.register(job)
        first = node.wait_allocs(kind, [(0, "run", "complete")])[0]
        wait_dead(kind)
        node.wait_evaluation(node.register(job)["EvalID"])
        case.equal([a["ID"] for a in node.allocs(kind)], [first["ID"]], "allocs after the same job again")
        node.kill("supervisor")
        node.wait_ready()
        case.equal([a["ID"] for a in node.allocs(kind)], [first["ID"]], "allocs after a restart of the supervisor")
        node.register(typed(kind, kind, "echo again"))
        case.until(lambda: [a["ClientStatus"] for a in node.allocs(kind)] == ["complete"] * 2, 30, "the new version to complete")
        wait_dead(kind)
        node.purge(kind)


def test_slots_of_a_batch_job_complete_independently():
    job = typed("slots", "batch", "echo $NOMAD_ALLOC_INDEX", Count=3)
    node.register(job)
    allocs = node.wait_allocs("slots", [(n, "run", "complete") for n in range(3)])
    for a in allocs:
        n = a["Name"][-2]
        case.until(lambda a=a, n=n: node.logs(a).decode().split() == [n], 20, "the output of slot " + n)
    wait_dead("slots")
    case.equal(node.ask("/v1/jobs", prefix="slots")[0]["JobSummary"]["Summary"]["g"]["Complete"], 3, "completed slots")
    node.purge("slots")


def test_a_failed_batch_job_is_rescheduled_and_can_be_registered_again():
    node.register(typed("fails", "batch", "exit 3", ReschedulePolicy=ONCE))
    node.wait_allocs("fails", [(0, "stop", "failed"), (0, "run", "failed")], 30)
    wait_dead("fails")
    node.register(typed("fails", "batch", "exit 3", ReschedulePolicy=ONCE))
    case.until(lambda: len(node.allocs("fails")) >= 3, 30, "the alloc after a registration by an operator")
    node.purge("fails")


def test_a_failed_batch_task_is_restarted_before_it_is_rescheduled():
    job = typed("retry", "batch", "cd $NOMAD_ALLOC_DIR; [ -f tried ] || { touch tried; exit 1; }")
    job["Job"]["TaskGroups"][0]["RestartPolicy"] = {"Attempts": 1, "Interval": 10**11, "Delay": 10**8, "Mode": "fail"}
    node.register(job)
    found = node.wait_allocs("retry", [(0, "run", "complete")], 30)[0]
    case.equal([e["Type"] for e in found["TaskStates"]["t"]["Events"]].count("Restarting"), 1, "restarts")
    node.purge("retry")


def test_a_batch_job_is_stopped_at_its_max_run_duration():
    """It does not fail; poststop tasks do not run, and an event has the reason."""
    job = typed("long", "batch", "trap '' INT; echo begins; sleep 1000", MaxRunDuration=3600 * 10**9)
    group = job["Job"]["TaskGroups"][0]
    group["Tasks"].append(api.task("after", "/bin/sh", ["-c", "echo after"], Lifecycle={"Hook": "poststop"}))
    node.register(job)
    alloc = node.wait_running("long")[0]
    # A change in place: the time still counts from the placement.
    group["MaxRunDuration"] = 10**9
    node.register(job)
    found = node.wait_allocs("long", [(0, "run", "complete")], 60)[0]
    case.equal((found["ID"], found["ClientDescription"]), (alloc["ID"], "allocation exceeded max_run_duration"))
    killing = next(e for e in found["TaskStates"]["t"]["Events"] if e["Type"] == "Killing")
    case.equal(killing["DisplayMessage"], "allocation exceeded max_run_duration")
    case.equal([(n, s["State"], s["Failed"]) for n, s in sorted(found["TaskStates"].items())],
               [("after", "dead", False), ("t", "dead", False)])
    case.equal("Started" in [e["Type"] for e in found["TaskStates"]["after"]["Events"]], False, "events of the poststop task")
    wait_dead("long")
    node.purge("long")
    node.refused(400, "max_run_duration is for batch and sysbatch jobs", "POST", "/v1/jobs",
                 typed("ever", "service", "sleep 1", MaxRunDuration=10**9))


def test_a_max_run_duration_that_passes_without_an_agent_is_enforced_by_the_next():
    job = typed("away", "batch", "echo begins; exec sleep 1000", MaxRunDuration=3600 * 10**9)
    node.register(job)
    created = node.wait_running("away")[0]["CreateTime"]
    end = time.time_ns() + 2 * 10**9
    job["Job"]["TaskGroups"][0]["MaxRunDuration"] = end - created
    node.register(job)
    node.kill_launcher()
    case.until(lambda: time.time_ns() > end, 60, "its max_run_duration to pass")
    node.start()
    node.wait_ready()
    found = node.wait_allocs("away", [(0, "run", "complete")], 60)[0]
    case.equal(found["ClientDescription"], "allocation exceeded max_run_duration")
    node.purge("away")


def test_a_system_job_has_one_alloc_of_each_group():
    node.register(typed("sys", "system", "sleep 1000"))
    found = node.wait_running("sys")[0]
    case.equal(found["Name"], "sys.g[0]")
    node.refused(400, "count may not be above 1 in a system job", "POST", "/v1/jobs", typed("two", "system", "sleep 1", Count=2))
    node.purge("sys")


def test_a_failed_system_alloc_is_not_replaced():
    node.register(typed("sysfail", "system", "exit 3", ReschedulePolicy=ONCE))
    found = node.wait_allocs("sysfail", [(0, "run", "failed")])[0]
    case.equal(found["FollowupEvalID"], "")
    node.purge("sysfail")


with api.Node() as node:
    case.run(globals())

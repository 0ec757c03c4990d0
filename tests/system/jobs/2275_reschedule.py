#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# takes: 30
"""Failed allocs are replaced according to the reschedule block, also if the agent is killed during a delay."""
from lib import api, case

S = 10**9
POLICY = {"Attempts": 2, "Interval": 3600 * 10**9, "Delay": 10**9, "DelayFunction": "constant", "Unlimited": False}


def failing(name, script="exit 3", **more):
    return api.job(name, "/bin/sh", ["-c", script], group={"ReschedulePolicy": dict(POLICY, **more)})


def chain(name):
    return sorted(node.allocs(name), key=lambda a: a["CreateIndex"])


def wait_chain(name, n, last="failed"):
    """Waits until the job has n allocs and the last has this status. Returns them, oldest first."""
    case.until(lambda: [a["ClientStatus"] for a in chain(name)[n - 1:]] == [last], 30,
               "%d allocs of %s, the last %s" % (n, name, last))
    return [node.ask("/v1/allocation/" + a["ID"]) for a in chain(name)]


def test_attempts_are_counted():
    node.register(failing("counted"))
    allocs = wait_chain("counted", 3)
    case.until(lambda: node.ask("/v1/job/counted")["Status"] == "dead", 20, "the end of the job")
    case.equal([a["Name"] for a in allocs], ["counted.g[0]"] * 3)
    for before, after in zip(allocs, allocs[1:]):
        case.equal((before["NextAllocation"], after["PreviousAllocation"]), (after["ID"], before["ID"]))
        case.equal((before["DesiredStatus"], before["DesiredDescription"]),
                   ("stop", "alloc was rescheduled because it failed"))
        eval_ = node.ask("/v1/evaluation/" + before["FollowupEvalID"])
        case.equal((eval_["TriggeredBy"], eval_["Status"]), ("alloc-failure", "complete"))
        case.equal(after["EvalID"], eval_["ID"])
    events = allocs[2]["RescheduleTracker"]["Events"]
    case.equal([(e["PrevAllocID"], e["Delay"]) for e in events], [(a["ID"], 10**9) for a in allocs[:2]])
    for a, e in zip(allocs, events):
        case.equal(e["RescheduleTime"] >= a["ModifyTime"], True, "whether the delay has passed")
    case.equal((allocs[2]["DesiredStatus"], allocs[2]["FollowupEvalID"]), ("run", ""))
    node.purge("counted")


def test_the_block_of_a_job_applies_to_its_groups():
    made = failing("block")
    made["Job"]["Reschedule"] = made["Job"]["TaskGroups"][0].pop("ReschedulePolicy")
    case.equal(node.register(made)["Warnings"], "")
    wait_chain("block", 3)
    node.purge("block")


def test_a_registration_of_the_same_job_skips_the_delay():
    node.register(failing("again", Delay=3600 * 10**9))
    wait_chain("again", 1)
    case.equal(node.ask("/v1/job/again")["Status"], "pending")
    node.register(failing("again", Delay=3600 * 10**9))
    allocs = wait_chain("again", 2)
    case.equal(allocs[1]["RescheduleTracker"], None, "reschedule tracker after a registration by an operator")
    node.purge("again")


def test_a_new_version_skips_the_delay():
    node.register(failing("new", Delay=3600 * 10**9))
    wait_chain("new", 1)
    node.register(failing("new", "sleep 1000", Delay=3600 * 10**9))
    wait_chain("new", 2, "running")
    node.purge("new")


def test_an_alloc_of_a_stopped_job_is_not_rescheduled():
    node.register(failing("stopped", Delay=20 * 10**9))
    failed = wait_chain("stopped", 1)[0]
    eval_ = failed["FollowupEvalID"]
    case.equal(node.ask("/v1/evaluation/" + eval_)["Status"], "pending")
    node.do("DELETE", "/v1/job/stopped")
    node.wait_evaluation(eval_)
    case.equal(node.ask("/v1/job/stopped")["Status"], "dead")
    case.equal(len(chain("stopped")), 1)
    node.purge("stopped")


def test_a_delay_survives_a_kill_of_the_supervisor():
    node.register(failing("kill", Delay=4 * 10**9))
    failed = wait_chain("kill", 1)[0]
    case.equal(node.ask("/v1/evaluation/" + failed["FollowupEvalID"])["WaitUntil"] is not None, True)
    node.kill("supervisor")
    node.wait_ready()
    allocs = wait_chain("kill", 3)
    case.equal(allocs[1]["PreviousAllocation"], failed["ID"])
    case.equal(len(allocs[2]["RescheduleTracker"]["Events"]), 2)
    node.purge("kill")


def grown(function, before, now):
    """Returns the expected delay after these delays, in seconds."""
    earlier = before[-2] if len(before) > 1 and before[-2] <= before[-1] else 0
    following = before[-1] + (before[-1] if function == "exponential" else earlier)
    # An alloc that ran for longer than its delay (on a slow machine) resets the delay to the first.
    return 1 if now > min(following, 2) else min(following, 2)


def test_delays_grow_up_to_the_limit():
    for function in ("exponential", "fibonacci"):
        node.register(failing("grow", Unlimited=True, DelayFunction=function, MaxDelay=2 * S))
        case.until(lambda: len(chain("grow")) > 4, 60, "4 replacements")
        allocs = [node.ask("/v1/allocation/" + a["ID"]) for a in chain("grow")[:5]]
        ends = [next(e["Time"] for e in a["TaskStates"]["t"]["Events"] if e["Type"] == "Not Restarting") for a in allocs[:4]]
        events = allocs[4]["RescheduleTracker"]["Events"]
        case.equal([e["PrevAllocID"] for e in events], [a["ID"] for a in allocs[:4]])
        delays = [e["Delay"] // S for e in events]
        case.equal(delays[0], 1)
        for i in range(1, 4):
            case.equal(delays[i], grown(function, delays[:i], (ends[i] - events[i - 1]["RescheduleTime"]) / S), function)
        for end, e in zip(ends, events):
            case.equal(e["RescheduleTime"] - end >= e["Delay"] * 9 // 10, True, "whether the delay has passed")
        node.purge("grow")


def test_each_type_of_job_has_its_own_default():
    """Without a reschedule block a service is always rescheduled, a batch job once, and the other types never."""
    for kind, policy in (("service", {"Unlimited": True, "Attempts": 0, "Delay": 30 * S, "DelayFunction": "exponential"}),
                         ("batch", {"Unlimited": False, "Attempts": 1, "Delay": 5 * S, "DelayFunction": "constant"})):
        made = failing("rule")
        made["Job"]["Type"] = kind
        del made["Job"]["TaskGroups"][0]["ReschedulePolicy"]
        node.register(made)
        found = node.ask("/v1/job/rule")["TaskGroups"][0]["ReschedulePolicy"]
        case.equal({k: found[k] for k in policy}, policy, kind)
        case.until(lambda: chain("rule") and chain("rule")[0]["FollowupEvalID"], 60, "its replacement to be scheduled")
        case.equal(node.evaluation(chain("rule")[0]["FollowupEvalID"])["TriggeredBy"], "alloc-failure", kind)
        node.purge("rule")
    for kind in ("system", "sysbatch"):
        made = failing("rule")
        made["Job"]["Type"] = kind
        node.register(made)
        first = wait_chain("rule", 1)[0]
        case.equal((first["FollowupEvalID"], first["DesiredStatus"]), ("", "run"), kind)
        node.purge("rule")


with api.Node() as node:
    case.run(globals())

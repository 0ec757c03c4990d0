#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# takes: 30
"""Allocs that fail have successors as the reschedule block says, also when the agent is killed while they wait."""
from lib import api, case

S = 10**9
POLICY = {"Attempts": 2, "Interval": 3600 * 10**9, "Delay": 10**9, "DelayFunction": "constant", "Unlimited": False}


def failing(name, script="exit 3", **more):
    return api.job(name, "/bin/sh", ["-c", script], group={"ReschedulePolicy": dict(POLICY, **more)})


def chain(name):
    return sorted(node.allocs(name), key=lambda a: a["CreateIndex"])


def wait_chain(name, n, last="failed"):
    """The n allocs of the job, oldest first, once the last is what it should be."""
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
        case.equal(e["RescheduleTime"] >= a["ModifyTime"], True, "not before its delay")
    case.equal((allocs[2]["DesiredStatus"], allocs[2]["FollowupEvalID"]), ("run", ""))
    node.purge("counted")


def test_the_jobs_block_is_its_groups():
    made = failing("block")
    made["Job"]["Reschedule"] = made["Job"]["TaskGroups"][0].pop("ReschedulePolicy")
    case.equal(node.register(made)["Warnings"], "")
    wait_chain("block", 3)
    node.purge("block")


def test_registering_again_does_not_wait():
    node.register(failing("again", Delay=3600 * 10**9))
    wait_chain("again", 1)
    case.equal(node.ask("/v1/job/again")["Status"], "pending")
    node.register(failing("again", Delay=3600 * 10**9))
    allocs = wait_chain("again", 2)
    case.equal(allocs[1]["RescheduleTracker"], None, "an operator's try is no attempt")
    node.purge("again")


def test_a_new_version_does_not_wait():
    node.register(failing("new", Delay=3600 * 10**9))
    wait_chain("new", 1)
    node.register(failing("new", "sleep 1000", Delay=3600 * 10**9))
    wait_chain("new", 2, "running")
    node.purge("new")


def test_a_job_that_is_stopped_has_no_successor():
    node.register(failing("stopped", Delay=20 * 10**9))
    failed = wait_chain("stopped", 1)[0]
    eval_ = failed["FollowupEvalID"]
    case.equal(node.ask("/v1/evaluation/" + eval_)["Status"], "pending")
    node.do("DELETE", "/v1/job/stopped")
    node.wait_evaluation(eval_)
    case.equal(node.ask("/v1/job/stopped")["Status"], "dead")
    case.equal(len(chain("stopped")), 1)
    node.purge("stopped")


def test_the_agent_is_killed_while_it_waits():
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
    """The delay after these, in s."""
    earlier = before[-2] if len(before) > 1 and before[-2] <= before[-1] else 0
    following = before[-1] + (before[-1] if function == "exponential" else earlier)
    # What ran for longer than that (on a machine that has no time for it) begins again with the first.
    return 1 if now > min(following, 2) else min(following, 2)


def test_delays_grow_and_are_limited():
    for function in ("exponential", "fibonacci"):
        node.register(failing("grow", Unlimited=True, DelayFunction=function, MaxDelay=2 * S))
        case.until(lambda: len(chain("grow")) > 4, 60, "4 successors")
        allocs = [node.ask("/v1/allocation/" + a["ID"]) for a in chain("grow")[:5]]
        ends = [next(e["Time"] for e in a["TaskStates"]["t"]["Events"] if e["Type"] == "Not Restarting") for a in allocs[:4]]
        events = allocs[4]["RescheduleTracker"]["Events"]
        case.equal([e["PrevAllocID"] for e in events], [a["ID"] for a in allocs[:4]])
        delays = [e["Delay"] // S for e in events]
        case.equal(delays[0], 1)
        for i in range(1, 4):
            case.equal(delays[i], grown(function, delays[:i], (ends[i] - events[i - 1]["RescheduleTime"]) / S), function)
        for end, e in zip(ends, events):
            case.equal(e["RescheduleTime"] - end >= e["Delay"] * 9 // 10, True, "not before its delay")
        node.purge("grow")


def test_each_type_of_job_has_its_own_rule():
    """Without a block: a service again and again, a batch once, and the others never."""
    for kind, policy in (("service", {"Unlimited": True, "Attempts": 0, "Delay": 30 * S, "DelayFunction": "exponential"}),
                         ("batch", {"Unlimited": False, "Attempts": 1, "Delay": 5 * S, "DelayFunction": "constant"})):
        made = failing("rule")
        made["Job"]["Type"] = kind
        del made["Job"]["TaskGroups"][0]["ReschedulePolicy"]
        node.register(made)
        found = node.ask("/v1/job/rule")["TaskGroups"][0]["ReschedulePolicy"]
        case.equal({k: found[k] for k in policy}, policy, kind)
        case.until(lambda: chain("rule") and chain("rule")[0]["FollowupEvalID"], 60, "its successor to be wanted")
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

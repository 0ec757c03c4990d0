#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A version of a service takes the place of the one before step by step, and a bad one is stopped; also when the agent is
killed in between. Where health is `manual` the test itself says what is healthy, so that no step depends on the time."""
import calendar
import time

from lib import api, case

S = 10**9
PATIENCE = 120
MANUAL = {"MaxParallel": 1, "HealthCheck": "manual"}
QUICK = {"MaxParallel": 1, "HealthCheck": "task_states", "MinHealthyTime": S // 10}


def time_ns(text):
    whole, _, part = text.rstrip("Z").partition(".")
    return calendar.timegm(time.strptime(whole, "%Y-%m-%dT%H:%M:%S")) * S + int(part.ljust(9, "0") or 0)


def job(name, text, count=3, update=MANUAL, script="exec sleep 1000", **more):
    return api.job(name, "/bin/sh", ["-c", "echo %s; %s" % (text, script)], count, group={"Update": update}, **more)


def deployment(name):
    return node.ask("/v1/job/%s/deployment" % name)


def wait_deployment(name, status, version=None):
    def so():
        found = deployment(name)
        return found["Status"] == status and version in (None, found["JobVersion"]) and found
    return case.until(so, PATIENCE, "deployment %s of %s to be %s; it is %s" % (version, name, status, deployment(name)))


def state(name):
    return deployment(name)["TaskGroups"]["g"]


def live(name):
    """{index: alloc} of those that are wanted and run; of two with one index both are in the list."""
    found = [a for a in node.allocs(name) if a["DesiredStatus"] == "run" and a["ClientStatus"] == "running"]
    return sorted(found, key=lambda a: (a["Name"], a["CreateIndex"]))


def versions(name):
    return [a["JobVersion"] for a in live(name)]


def wait_versions(name, wanted):
    case.until(lambda: versions(name) == wanted, PATIENCE, "versions %s of %s" % (wanted, name))
    return live(name)


def say_health(name, healthy=(), unhealthy=()):
    found = deployment(name)["ID"]
    return node.do("POST", "/v1/deployment/allocation-health/" + found,
                   {"DeploymentID": found, "HealthyAllocationIDs": [a["ID"] for a in healthy],
                    "UnhealthyAllocationIDs": [a["ID"] for a in unhealthy]})


def change(name, verb, **body):
    found = deployment(name)["ID"]
    return node.do("POST", "/v1/deployment/%s/%s" % (verb, found), {"DeploymentID": found, **body})


def begin(name, count=3, **more):
    """Its first version, deployed."""
    node.register(job(name, "zero", count, **more))
    say_health(name, node.wait_running(name, count, PATIENCE))
    wait_deployment(name, "successful", 0)
    return live(name)


def test_one_after_the_other():
    first = begin("web")
    case.equal([v["Stable"] for v in node.ask("/v1/job/web/versions")["Versions"]], [True])
    case.equal({(a["DeploymentStatus"]["Healthy"], a["DeploymentStatus"]["Canary"]) for a in first}, {(True, False)})
    node.register(job("web", "one"))
    for i in range(3):
        allocs = wait_versions("web", [1] * (i + 1) + [0] * (2 - i))
        case.equal([a["ID"] for a in allocs[i + 1:]], [a["ID"] for a in first[i + 1:]], "the others are as they were")
        found = state("web")
        case.equal([found[k] for k in ("DesiredTotal", "PlacedAllocs", "HealthyAllocs", "UnhealthyAllocs")], [3, i + 1, i, 0])
        case.equal(deployment("web")["Status"], "running")
        say_health("web", allocs[i:i + 1])
    done = wait_deployment("web", "successful", 1)
    case.equal((done["StatusDescription"], done["TaskGroups"]["g"]["HealthyAllocs"]), ("Deployment completed successfully", 3))
    case.equal([d["JobVersion"] for d in node.ask("/v1/job/web/deployments")], [1, 0])
    case.equal({a["ID"] for a in node.ask("/v1/deployment/allocations/" + done["ID"])}, {a["ID"] for a in live("web")})
    node.purge("web")
    node.refused(404, "deployment not found", "GET", "/v1/deployment/" + done["ID"])


def test_two_at_a_time_by_their_tasks():
    two = dict(QUICK, MaxParallel=2)
    node.register(job("two", "zero", 5, two))
    wait_deployment("two", "successful", 0)
    node.register(job("two", "one", 5, two))
    wait_deployment("two", "successful", 1)
    case.equal(versions("two"), [1] * 5)
    # Both at once were not healthy yet, never three: a successor waits for the health of another.
    allocs = sorted((node.ask("/v1/allocation/" + a["ID"]) for a in live("two")), key=lambda a: a["CreateIndex"])
    times = [time_ns(a["DeploymentStatus"]["Timestamp"]) for a in allocs]
    for i in range(2, 5):
        case.equal(allocs[i]["CreateTime"] >= sorted(times)[i - 2], True, "alloc %d after the health of %d others" % (i, i - 1))
    node.purge("two")


def test_a_bad_version_is_stopped():
    first = begin("bad", update=QUICK)
    node.register(job("bad", "one", update=QUICK, script="exit 3"))
    failed = wait_deployment("bad", "failed", 1)
    case.equal(failed["StatusDescription"], "Failed due to unhealthy allocations")
    case.equal(failed["TaskGroups"]["g"]["UnhealthyAllocs"], 1)
    case.equal([a["ID"] for a in live("bad")], [a["ID"] for a in first[1:]])
    ended = [a for a in node.allocs("bad") if a["JobVersion"] == 1]
    case.equal([(a["Name"], a["ClientStatus"]) for a in ended], [("bad.g[0]", "failed")])
    events = node.ask("/v1/allocation/" + ended[0]["ID"])["TaskStates"]["t"]["Events"]
    case.equal(events[-1]["Type"], "Alloc Unhealthy")
    # What stays of the old version is followed by itself.
    node.do("POST", "/v1/allocation/%s/stop" % first[1]["ID"])
    allocs = case.until(lambda: first[1]["ID"] not in {a["ID"] for a in live("bad")} and len(live("bad")) == 2 and live("bad"),
                        PATIENCE, "a successor")
    case.equal([a["JobVersion"] for a in allocs], [0, 0])
    # A version that is good again goes to all of them.
    node.register(job("bad", "two", update=QUICK))
    wait_deployment("bad", "successful", 2)
    case.equal(versions("bad"), [2] * 3)
    node.purge("bad")


with api.Node() as node:
    case.run(globals())

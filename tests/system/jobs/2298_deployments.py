#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Deployments: a version replaces the previous one step by step, and a bad one is stopped, also if the supervisor is killed in between.
With health_check = "manual" the test itself sets the health, so that no step depends on time."""
import calendar
import json
import time

from lib import api, case
from lib.fake_api import run_command

S = 10**9
PATIENCE = 120
MANUAL = {"MaxParallel": 1, "HealthCheck": "manual"}
QUICK = {"MaxParallel": 1, "HealthCheck": "task_states", "MinHealthyTime": S // 10}
# A failing task fails long before it could be healthy.
PATIENT = dict(QUICK, MinHealthyTime=100 * S)


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
    """Returns the allocs that should run and do, by index; two allocs may have the same index."""
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


def begin(name, count=3):
    """Registers and deploys the first version of a job. Returns its allocs."""
    made = node.register(job(name, "zero", count))
    case.equal(node.wait_evaluation(made["EvalID"])["DeploymentID"], deployment(name)["ID"], "deployment of the evaluation")
    say_health(name, node.wait_running(name, count, PATIENCE))
    wait_deployment(name, "successful", 0)
    return live(name)


def test_allocs_are_replaced_one_after_the_other():
    first = begin("web")
    case.equal([v["Stable"] for v in node.ask("/v1/job/web/versions")["Versions"]], [True])
    case.equal({(a["DeploymentStatus"]["Healthy"], a["DeploymentStatus"]["Canary"]) for a in first}, {(True, False)})
    node.register(job("web", "one"))
    for i in range(3):
        allocs = wait_versions("web", [1] * (i + 1) + [0] * (2 - i))
        case.equal([a["ID"] for a in allocs[i + 1:]], [a["ID"] for a in first[i + 1:]], "the other allocs, which are unchanged")
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


def test_two_allocs_at_a_time_with_health_by_task_states():
    two = dict(QUICK, MaxParallel=2)
    node.register(job("two", "zero", 5, two))
    wait_deployment("two", "successful", 0)
    node.register(job("two", "one", 5, two))
    wait_deployment("two", "successful", 1)
    case.equal(versions("two"), [1] * 5)
    # At most two allocs were not healthy at a time: each further replacement waits for the health of another.
    allocs = sorted((node.ask("/v1/allocation/" + a["ID"]) for a in live("two")), key=lambda a: a["CreateIndex"])
    times = [time_ns(a["DeploymentStatus"]["Timestamp"]) for a in allocs]
    for i in range(2, 5):
        case.equal(allocs[i]["CreateTime"] >= sorted(times)[i - 2], True, "whether alloc %d was placed after %d others were healthy" % (i, i - 1))
    node.purge("two")


def test_a_bad_version_is_stopped():
    first = begin("bad")
    node.register(job("bad", "one", update=PATIENT, script="exit 3"))
    failed = wait_deployment("bad", "failed", 1)
    case.equal(failed["StatusDescription"], "Failed due to unhealthy allocations")
    case.equal(failed["TaskGroups"]["g"]["UnhealthyAllocs"], 1)
    case.equal([a["ID"] for a in live("bad")], [a["ID"] for a in first[1:]])
    ended = [a for a in node.allocs("bad") if a["JobVersion"] == 1]
    case.equal([(a["Name"], a["ClientStatus"]) for a in ended], [("bad.g[0]", "failed")])
    events = node.ask("/v1/allocation/" + ended[0]["ID"])["TaskStates"]["t"]["Events"]
    case.equal(events[-1]["Type"], "Alloc Unhealthy")
    # A stopped alloc of the old version is replaced by one of the same version.
    node.do("POST", "/v1/allocation/%s/stop" % first[1]["ID"])
    allocs = case.until(lambda: first[1]["ID"] not in {a["ID"] for a in live("bad")} and len(live("bad")) == 2 and live("bad"),
                        PATIENCE, "a replacement")
    case.equal([a["JobVersion"] for a in allocs], [0, 0])
    # A good version then replaces all of them.
    node.register(job("bad", "two", update=QUICK))
    wait_deployment("bad", "successful", 2)
    case.equal(versions("bad"), [2] * 3)
    node.purge("bad")


def test_auto_revert_rolls_back_to_the_last_stable_version():
    update, bad = dict(QUICK, AutoRevert=True), dict(PATIENT, AutoRevert=True)
    node.register(job("back", "zero", update=bad, script="exit 3"))
    case.equal(wait_deployment("back", "failed", 0)["StatusDescription"],
               "Failed due to unhealthy allocations - no stable job version to auto revert to")
    node.register(job("back", "one", update=update))
    wait_deployment("back", "successful", 1)
    first = live("back")
    node.register(job("back", "two", update=bad, script="exit 3"))
    wait_deployment("back", "successful", 3)
    found = node.ask("/v1/job/back/deployments")
    case.equal([(d["JobVersion"], d["StatusDescription"]) for d in found[:2]],
               [(3, "Deployment completed successfully"),
                (2, "Failed due to unhealthy allocations - rolling back to job version 1")])
    case.equal(versions("back"), [3] * 3)
    case.equal([a["ID"] for a in live("back")[1:]], [a["ID"] for a in first[1:]], "allocs that were not replaced")
    case.equal([v["Stable"] for v in node.ask("/v1/job/back/versions")["Versions"]], [True, False, True, False])
    # An operator can fail the deployment with the same effect.
    node.register(job("back", "four", update=dict(MANUAL, AutoRevert=True)))
    wait_versions("back", [4, 3, 3])
    case.equal(change("back", "fail")["RevertedJobVersion"], 3)
    wait_deployment("back", "successful", 5)
    case.equal(versions("back"), [5] * 3)
    node.purge("back")


def test_canaries_run_beside_the_others():
    first = begin("bird")
    canary = dict(MANUAL, Canary=2)
    node.register(job("bird", "one", update=canary))
    allocs = wait_versions("bird", [0, 1, 0, 1, 0])
    case.equal([a["ID"] for a in allocs if a["JobVersion"] == 0], [a["ID"] for a in first])
    canaries = [a for a in allocs if a["JobVersion"] == 1]
    case.equal([a["DeploymentStatus"]["Canary"] for a in canaries], [True, True])
    found = deployment("bird")
    case.equal(found["StatusDescription"], "Deployment is running but requires manual promotion")
    case.equal(sorted(found["TaskGroups"]["g"]["PlacedCanaries"]), sorted(a["ID"] for a in canaries))
    node.refused(400, 'Task group "g" has 0/2 healthy allocations', "POST", "/v1/deployment/promote/" + found["ID"],
                 {"DeploymentID": found["ID"], "All": True})
    say_health("bird", canaries[:1])
    # A stopped canary is replaced by one of its version, an old alloc by one of the old version.
    for alloc, expected in ((canaries[1], [0, 1, 0, 1, 0]), (first[2], [0, 1, 0, 1, 0])):
        node.do("POST", "/v1/allocation/%s/stop" % alloc["ID"])
        case.until(lambda: alloc["ID"] not in {a["ID"] for a in live("bird")}, PATIENCE, "the end of the alloc")
        allocs = wait_versions("bird", expected)
    canaries = [a for a in allocs if a["JobVersion"] == 1]
    say_health("bird", canaries)
    node.kill("supervisor")
    wait_versions("bird", [0, 1, 0, 1, 0])
    drover("deployment", "promote", "-detach", found["ID"])
    node.kill("supervisor")
    allocs = wait_versions("bird", [1, 1, 1])
    case.equal([a["ID"] for a in allocs[:2]], [a["ID"] for a in canaries])
    case.equal([a["DeploymentStatus"]["Canary"] for a in allocs[:2]], [False, False])
    say_health("bird", allocs[2:])
    done = wait_deployment("bird", "successful", 1)
    case.equal(done["TaskGroups"]["g"]["Promoted"], True)
    # A failing canary of the next version is removed, and the other allocs stay.
    node.register(job("bird", "two", update=canary))
    allocs = wait_versions("bird", [1, 2, 1, 2, 1])
    say_health("bird", unhealthy=[a for a in allocs if a["JobVersion"] == 2][:1])
    case.equal(wait_deployment("bird", "failed", 2)["StatusDescription"], "Failed due to unhealthy allocations")
    wait_versions("bird", [1, 1, 1])
    node.purge("bird")


def test_canaries_are_promoted_automatically():
    update = dict(QUICK, Canary=1, AutoPromote=True)
    node.register(job("auto", "zero", 2, update))
    wait_deployment("auto", "successful", 0)
    node.register(job("auto", "one", 2, update))
    wait_deployment("auto", "successful", 1)
    case.equal(versions("auto"), [1, 1])
    node.purge("auto")


def takes(percent):
    """Returns resources with this part of the node's memory."""
    return {"CPU": 10, "MemoryMB": node.ask(me())["NodeResources"]["Memory"]["MemoryMB"] * percent // 100}


def me():
    return "/v1/node/" + node.ask("/v1/nodes")[0]["ID"]


def test_a_promotion_does_not_wait_for_a_blocked_alloc_of_the_old_version():
    """An alloc of the old version is blocked. Resources that become free are given to another job instead."""
    node.register(job("room", "zero", 2, QUICK, Resources=takes(40)))
    wait_deployment("room", "successful", 0)
    node.do("PUT", me() + "/eligibility", {"Eligibility": "ineligible"})
    for name, percent in (("first", 30), ("second", 39)):
        node.register(api.job(name, Resources=takes(percent)))
    stopped = "/v1/allocation/%s" % live("room")[1]["ID"]
    node.do("PUT", stopped + "/stop")
    wait_versions("room", [0])
    # Its resources are free when it has ended, not when its stop begins.
    case.until(lambda: node.ask(stopped)["ClientStatus"] == "complete", PATIENCE, "the stopped alloc to end")
    node.do("PUT", me() + "/eligibility", {"Eligibility": "eligible"})
    node.wait_running("first", seconds=PATIENCE)
    case.equal((node.allocs("second"), versions("room")), ([], [0]))
    node.register(job("room", "one", 2, dict(QUICK, Canary=1, AutoPromote=True), Resources=takes(10)))
    wait_deployment("room", "successful", 1)
    case.equal(versions("room"), [1, 1])
    node.wait_running("second", seconds=PATIENCE)
    for name in ("room", "first", "second"):
        node.purge(name)


def test_a_deployment_without_progress_fails():
    first = begin("slow", 2)
    late = dict(MANUAL, MinHealthyTime=0, HealthyDeadline=S // 2, ProgressDeadline=S)
    node.register(job("slow", "one", 2, late))
    case.equal(wait_deployment("slow", "failed", 1)["StatusDescription"], "Failed due to progress deadline")
    case.equal([a["ID"] for a in live("slow")][-1:], [first[1]["ID"]])
    node.purge("slow")


def test_a_deployment_is_paused_resumed_failed_and_cancelled():
    begin("hand")
    node.register(job("hand", "one"))
    allocs = wait_versions("hand", [1, 0, 0])
    change("hand", "pause", Pause=True)
    case.equal(deployment("hand")["Status"], "paused")
    say_health("hand", allocs[:1])
    node.kill("supervisor")
    case.until(lambda: node.request("GET", "/v1/job/hand/deployment").json["Status"] == "paused", PATIENCE, "the deployment to be paused after the kill")
    case.equal(versions("hand"), [1, 0, 0])
    change("hand", "pause", Pause=False)
    wait_versions("hand", [1, 1, 0])
    paused = deployment("hand")["ID"]
    node.register(job("hand", "two"))
    case.equal([d["StatusDescription"] for d in node.ask("/v1/job/hand/deployments")][:2],
               ["Deployment is running", "Cancelled due to newer version of job"])
    node.refused(400, "can't promote terminal deployment", "POST", "/v1/deployment/promote/" + paused,
                 {"DeploymentID": paused, "All": True})
    node.refused(400, "DeploymentID must be specified", "POST", "/v1/deployment/pause/" + deployment("hand")["ID"], {})
    wait_versions("hand", [2, 1, 0])
    change("hand", "fail")
    case.equal(deployment("hand")["StatusDescription"], "Deployment marked as failed")
    node.do("DELETE", "/v1/job/hand")
    node.register(job("hand", "three"))
    node.do("DELETE", "/v1/job/hand")
    case.equal(deployment("hand")["StatusDescription"], "Cancelled because job is stopped")
    node.purge("hand")


def test_a_deployment_survives_kills_of_the_supervisor():
    begin("kill")
    node.register(job("kill", "one"))
    for i in range(3):
        if i == 0:
            node.kill("supervisor")
        allocs = wait_versions("kill", [1] * (i + 1) + [0] * (2 - i))
        if i == 1:
            node.kill("supervisor")
        say_health("kill", allocs[i:i + 1])
    wait_deployment("kill", "successful", 1)
    node.purge("kill")


def drover(*words, code=0, stdin=None):
    r = run_command(words, env={"DROVER_ADDR": "unix://" + node.socket_path}, stdin=stdin)
    case.equal(r.code, code, "drover %s: %s%s" % (" ".join(words), r.out, r.err))
    return r


def run(made, code=0):
    return drover("job", "run", "-", code=code, stdin=json.dumps(made).encode()).out


def test_the_command_follows_a_deployment():
    case.contains(run(job("cli", "zero", 2, QUICK)), "is successful: Deployment completed successfully")
    out = run(job("cli", "one", 2, dict(QUICK, Canary=1)))
    case.contains(out, "the canaries are healthy")
    found = deployment("cli")["ID"]
    case.contains(drover("job", "status", "cli").out, "Latest Deployment")
    case.equal([line.split()[-2] for line in drover("job", "history", "cli").out.splitlines()[1:]], ["current", "stable"])
    rows = [line.split()[:4] for line in drover("deployment", "list").out.splitlines()]
    case.equal(rows[1], [found[:8], "cli", "1", "running"])
    out = drover("deployment", "promote", found[:8]).out
    case.contains(out, "is successful")
    case.contains(drover("deployment", "status", found).out, "Deployment completed successfully")
    case.contains(run(job("cli", "two", 2, PATIENT, script="exit 3"), code=1), "Deployment \"")
    node.register(job("cli", "three", 2))
    paused = deployment("cli")["ID"]
    drover("deployment", "pause", paused)
    drover("deployment", "resume", "-detach", paused)
    case.contains(drover("deployment", "fail", paused).out, "is marked as failed")
    case.contains(drover("deployment", "fail", paused, code=1).err, "terminal deployment")
    node.purge("cli")
    case.contains(drover("deployment", "list").out, "No deployments")


def test_progress_is_reported_to_queries_and_the_event_stream():
    """For blocking queries and in the event stream."""
    begin("told", 1)
    node.register(job("told", "one", 1))
    allocs = wait_versions("told", [1])
    found = deployment("told")["ID"]
    path = "/v1/deployment/" + found
    before = int(node.request("GET", path).headers["X-Nomad-Index"])
    say_health("told", allocs)
    end = time.monotonic() + PATIENCE
    while node.ask(path)["Status"] != "successful":
        assert time.monotonic() < end, "the deployment was not successful in time"
        answer = node.request("GET", path + "?wait=60s&index=%d" % before)
        case.equal(int(answer.headers["X-Nomad-Index"]) > before, True, "whether the index has grown with the answer")
        before = int(answer.headers["X-Nomad-Index"])
    stream = api.Connection(node, PATIENCE)
    stream.request("GET", "/v1/event/stream?index=1&topic=Deployment:" + found)
    events = stream.getresponse()
    line = {}
    while not line:
        line = json.loads(events.readline())
    event, = line["Events"]
    case.equal((event["Topic"], event["Type"], event["Key"], event["FilterKeys"]),
               ("Deployment", "DeploymentStatusUpdate", found, ["told"]))
    case.equal((event["Payload"]["Deployment"]["Status"], event["Payload"]["Deployment"]["TaskGroups"]["g"]["HealthyAllocs"]),
               ("successful", 1))
    events.close()
    stream.close()
    node.purge("told")


def test_a_plan_reports_the_first_step_of_a_deployment():
    begin("plan", 4)

    def plan(**update):
        made = job("plan", "one", 4, dict(MANUAL, **update))
        found = node.do("POST", "/v1/job/plan/plan", dict(made, Diff=True))
        return {k: n for k, n in found["Annotations"]["DesiredTGUpdates"]["g"].items() if n}
    case.equal(plan(), {"DestructiveUpdate": 1, "Ignore": 3})
    case.equal(plan(MaxParallel=3), {"DestructiveUpdate": 3, "Ignore": 1})
    case.equal(plan(MaxParallel=0), {"DestructiveUpdate": 4})
    case.equal(plan(Canary=2), {"Canary": 2, "Ignore": 4})
    node.register(job("plan", "one", 4))
    allocs = wait_versions("plan", [1, 0, 0, 0])
    case.equal(plan(), {"Ignore": 4}, "the plan of a deployment that is running")
    say_health("plan", allocs[:1])
    wait_versions("plan", [1, 1, 0, 0])
    scale = node.ask("/v1/job/plan/scale")["TaskGroups"]["g"]
    case.equal([scale[k] for k in ("Desired", "Healthy", "Unhealthy")], [4, 3, 0])
    node.purge("plan")


def test_invalid_requests_are_refused():
    for update, sentence in (({"HealthCheck": "x"}, "health_check must be checks, task_states or manual"),
                             ({"AutoPromote": True}, "auto_promote needs a canary count"),
                             ({"HealthyDeadline": 3600 * S}, "healthy_deadline must be less than progress_deadline")):
        node.refused(400, sentence, "POST", "/v1/jobs", job("bad", "x", update=update))
    node.refused(404, "deployment not found", "GET", "/v1/deployment/x")
    node.refused(404, "job not found", "GET", "/v1/job/none/deployment")
    begin("input", 1)
    node.register(job("input", "one", 1))
    found = deployment("input")["ID"]
    path = "/v1/deployment/allocation-health/" + found
    node.refused(400, 'no allocation "x"', "POST", path, {"DeploymentID": found, "HealthyAllocationIDs": ["x"]})
    node.refused(400, "does not match", "POST", path, {"DeploymentID": "x"})
    node.refused(400, "no canaries to promote", "POST", "/v1/deployment/promote/" + found, {"DeploymentID": found, "All": True})
    node.refused(400, "expected names", "POST", "/v1/deployment/promote/" + found, {"DeploymentID": found, "Groups": [1]})
    node.purge("input")


with api.Node() as node:
    case.run(globals())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# takes: 28
"""When an allocation of a deployment becomes healthy, and the event that each task gets when it does not."""
import calendar
import contextlib
import http.server
import threading
import time

from lib import api, case, stages
from lib.stages import events, let_go, order, task, wait_order

S = 10**9
TASKS = {"MaxParallel": 1, "HealthCheck": "task_states", "MinHealthyTime": S, "HealthyDeadline": 1000 * S,
         "ProgressDeadline": 2000 * S}
CHECKS = dict(TASKS, HealthCheck="checks")
# tolerance: the agent uses another clock, in milliseconds
CLOCKS = S // 100


def start(name, tasks, update, **group):
    node.register(stages.job(name, tasks, Update=update, **group))
    return case.until(lambda: node.allocs(name), 60, "an allocation")[0]


def get(alloc):
    return node.ask("/v1/allocation/" + alloc["ID"])


def status(alloc):
    return get(alloc)["DeploymentStatus"] or {}


def time_ns(text):
    whole, _, part = text.rstrip("Z").partition(".")
    return calendar.timegm(time.strptime(whole, "%Y-%m-%dT%H:%M:%S")) * S + int(part.ljust(9, "0") or 0)


def wait_health(alloc, healthy):
    """Waits until the allocation has this health. Returns the time at which it was set."""
    try:
        case.until(lambda: status(alloc).get("Healthy") is healthy, 120, "its health to be %s" % healthy)
    except AssertionError as e:
        raise AssertionError("%s: %s, %s" % (e, status(alloc), get(alloc)["TaskStates"])) from None
    return time_ns(status(alloc)["Timestamp"])


def started(alloc, name, before=None):
    """Returns the time of the task's last start before this time; 0 if it had not started."""
    found = [e["Time"] for e in node.ask("/v1/client/allocation/%s/events" % alloc["ID"])[name] if e["Type"] == "Started"]
    return max([t for t in found if before is None or t <= before], default=0)


def told(alloc):
    """Returns the messages of the health events of each task."""
    return {name: [e["DisplayMessage"] for e in found if e["Type"] == "Alloc Unhealthy"]
            for name, found in node.ask("/v1/client/allocation/%s/events" % alloc["ID"]).items()}


@contextlib.contextmanager
def judge():
    """Answers the requests of checks with the value that .code had when they arrived, when .free is set."""
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            code = server.code
            server.asked += 1
            server.free.wait()
            with contextlib.suppress(OSError):
                self.send_response(code)
                self.end_headers()

        def log_message(self, *_):
            pass
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.code, server.asked, server.free = 200, 0, threading.Event()
        server.free.set()
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def judged_by(server):
    return [{"Name": "judged", "PortLabel": str(server.server_address[1]), "Address": "127.0.0.1", "Provider": "nomad",
             "Checks": [{"Name": "alive", "Type": "http", "Path": "/", "Interval": S, "Timeout": 20 * S}]}]


def test_an_ended_prestart_task_is_ignored_but_a_sidecar_counts():
    alloc = start("stages", [task("main"), task("early", "prestart"), task("side", "prestart", True), task("late", "poststart"),
                             task("after", "poststop")], TASKS)
    case.until(lambda: len(order(node, alloc)) == 2, 60, "prestart tasks to begin")
    case.equal(status(alloc), {}, "health during prestart")
    let_go(node, alloc, "early")
    case.until(lambda: "late begins" in order(node, alloc), 60, "the poststart task to begin")
    let_go(node, alloc, "late")
    at = wait_health(alloc, True)
    for name in ("main", "side"):
        case.equal(at - started(alloc, name) >= S - CLOCKS, True, "whether %s ran for min_healthy_time" % name)
    case.equal(told(alloc), {n: [] for n in ("main", "early", "side", "late", "after")})
    # The health is not evaluated again.
    node.kill("supervisor")
    node.wait_ready()
    case.equal((status(alloc)["Healthy"], time_ns(status(alloc)["Timestamp"])), (True, at), "health after a restart of the agent")
    let_go(node, alloc, "side", 1)
    case.until(lambda: "Not Restarting" in events(get(alloc), "side"), 60, "the sidecar to fail")
    case.equal((status(alloc)["Healthy"], time_ns(status(alloc)["Timestamp"])), (True, at), "health after a later failure")
    node.do("DELETE", "/v1/job/stages")
    case.until(lambda: order(node, alloc)[-1] == "after begins", 60, "the poststop task to begin")
    let_go(node, alloc, "after")
    node.purge("stages")


def test_a_failed_task_makes_the_allocation_unhealthy():
    for name, hook, sidecar in (("main", None, False), ("early", "prestart", False), ("side", "prestart", True),
                                ("late", "poststart", False)):
        tasks = [task("main")] if name == "main" else [task("main"), task(name, hook, sidecar)]
        alloc = start("fails", tasks, dict(TASKS, MinHealthyTime=900 * S))
        case.until(lambda: "%s begins" % name in order(node, alloc), 60, "the task to begin")
        let_go(node, alloc, name, 3)
        wait_health(alloc, False)
        case.until(lambda: get(alloc)["TaskStates"]["main"]["State"] == "dead", 60, "the end of the main task")
        case.equal(told(alloc), {**{t["Name"]: [] for t in tasks}, name: ["Unhealthy because of failed task"]}, name)
        node.purge("fails")


def test_a_task_that_does_not_run_by_the_deadline():
    alloc = start("late", [task("main"), task("early", "prestart"), task("after", "poststop")],
                  dict(TASKS, HealthyDeadline=2 * S))
    at = wait_health(alloc, False)
    late = ["Task not running by healthy_deadline of 2s"]
    case.equal(told(alloc), {"main": late, "early": [] if started(alloc, "early", at) else late, "after": []})
    case.equal(get(alloc)["ClientStatus"], "running", "status of an unhealthy allocation")
    let_go(node, alloc, "early")
    case.until(lambda: "main begins" in order(node, alloc), 60, "the task to begin")
    case.equal(status(alloc)["Healthy"], False, "health, which does not change again")
    node.do("DELETE", "/v1/job/late")
    case.until(lambda: order(node, alloc)[-1] == "after begins", 60, "the poststop task to begin")
    let_go(node, alloc, "after")
    node.purge("late")


def test_a_task_that_starts_too_late_before_the_deadline():
    """The main task starts when less than min_healthy_time is left before the deadline."""
    alloc = start("short", [task("main"), task("early", "prestart"), task("side", "prestart", True)],
                  dict(TASKS, MinHealthyTime=4 * S, HealthyDeadline=5 * S))
    case.until(lambda: len(order(node, alloc)) == 2, 60, "prestart tasks to begin")
    time.sleep(1.5)
    let_go(node, alloc, "early")
    at = wait_health(alloc, False)
    late = ["Task not running for min_healthy_time of 4s by healthy_deadline of 5s"]
    if started(alloc, "main", at):
        long = at - started(alloc, "side", at) > 4 * S + CLOCKS
        case.equal(told(alloc), {"main": late, "early": [], "side": [] if long else late})
    node.purge("short")


def test_a_restart_starts_min_healthy_time_again():
    """With health by task states and by checks."""
    script = "echo x >> $NOMAD_ALLOC_DIR/data/tries; [ $(wc -l < $NOMAD_ALLOC_DIR/data/tries) -gt 2 ] || exit 1; exec sleep 1000"
    policy = {"Attempts": 5, "Interval": 3600 * S, "Delay": S // 100, "Mode": "fail"}
    with judge() as judged:
        for name, update in (("tasks", TASKS), ("checks", CHECKS)):
            alloc = start(name, [api.task("t", "/bin/sh", ["-c", script])], dict(update, MinHealthyTime=2 * S),
                          RestartPolicy=policy, Services=judged_by(judged))
            at = wait_health(alloc, True)
            case.equal(at - started(alloc, "t", at) >= 2 * S - CLOCKS, True, "whether min_healthy_time has passed since the last start")
            node.purge(name)


def test_checks_must_pass_for_min_healthy_time():
    with judge() as judged:
        judged.code = 503
        alloc = start("checked", [task("main")], CHECKS, Services=judged_by(judged))
        wait_order(node, alloc, ["main begins"])
        case.until(lambda: judged.asked >= 3, 60, "the check to be made")
        case.equal(status(alloc).get("Healthy"), None, "health while the check fails")
        changed = time.time_ns()
        judged.code = 200
        at = wait_health(alloc, True)
        case.equal(at - changed >= S - CLOCKS, True, "whether the check passed for min_healthy_time")
        node.purge("checked")
        judged.code = 503
        alloc = start("sick", [task("main"), task("early", "prestart")], dict(CHECKS, HealthyDeadline=5 * S),
                      Services=judged_by(judged))
        wait_order(node, alloc, ["early begins"])
        let_go(node, alloc, "early")
        at = wait_health(alloc, False)
        if started(alloc, "main", at):
            found = told(alloc)
            case.equal(found["early"], [])
            # If the task started very late, the event says instead that it runs too late.
            wanted = 'Only 0 out of 1 checks registered and passing: check "alive" of service judged: '
            case.equal(found["main"][0].startswith(wanted) or "by healthy_deadline of 5s" in found["main"][0], True, found["main"][0])
        node.purge("sick")


def test_the_answer_to_a_check_from_before_a_restart_is_ignored():
    """The answer arrives after the restart, but is that of the process before it."""
    with judge() as judged:
        judged.free.clear()
        alloc = start("asked", [task("main")], dict(CHECKS, MinHealthyTime=S // 10), Services=judged_by(judged))
        case.until(lambda: judged.asked >= 1, 60, "the check to be made")
        case.until(lambda: get(alloc)["TaskStates"]["main"]["State"] == "running", 60, "the task to run")
        judged.code = 503
        node.do("PUT", "/v1/client/allocation/%s/restart" % alloc["ID"], {})
        case.until(lambda: get(alloc)["TaskStates"]["main"]["Restarts"] == 1 and started(alloc, "main") >
                   time_ns(get(alloc)["TaskStates"]["main"]["LastRestart"]), 60, "the task to start again")
        judged.free.set()
        asked = judged.asked
        case.until(lambda: judged.asked > asked + 1, 60, "the next check to be made")
        (found,) = node.ask("/v1/client/allocation/%s/checks" % alloc["ID"]).values()
        case.equal((found["Status"], status(alloc).get("Healthy")), ("failure", None))
        node.purge("asked")


def test_a_failed_allocation_is_unhealthy_with_manual_health():
    """With health_check = "manual" a failed allocation is unhealthy without a request of the operator."""
    alloc = start("manual", [task("main")], dict(TASKS, HealthCheck="manual"))
    wait_order(node, alloc, ["main begins"])
    case.equal(status(alloc).get("Healthy"), None)
    let_go(node, alloc, "main", 1)
    wait_health(alloc, False)
    case.equal(told(alloc), {"main": []})
    node.purge("manual")


with api.Node() as node:
    case.run(globals())

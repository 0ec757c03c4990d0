#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares decisions of servers that depend on updates of clients: deployments, canaries, rollbacks, checks, reschedules. They must be the
same with drover and with a client of the servers' own program. In namespaces of its own: tests/nomad/isolated.py runs it, for `make
check-nomad NOMAD=path`.

    tests/nomad/isolated.py tests/nomad/check_deployments.py PATH [test_…]…"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from lib import case  # noqa: E402
import alike  # noqa: E402
import real  # noqa: E402
from alike import OURS, THEIRS, WAITS, events_of, restarts, task  # noqa: E402
from real import S  # noqa: E402

UPDATE = {"MaxParallel": 1, "HealthCheck": "task_states", "MinHealthyTime": S, "HealthyDeadline": 300 * S, "ProgressDeadline": 600 * S}
PORTS = {"Networks": [{"Mode": "host", "DynamicPorts": [{"Label": "web"}, {"Label": "nobody"}]}]}
SERVES = "exec /usr/bin/python3 -c 'import http.server, os; http.server.ThreadingHTTPServer((\"\", int(os.environ[\"NOMAD_PORT_web\"]))," \
         " http.server.SimpleHTTPRequestHandler).serve_forever()'"


def service(*checks):
    return {"Services": [{"Name": "served", "PortLabel": "web", "Provider": "nomad", "Checks": [
        {"Type": "tcp", "Interval": S, "Timeout": 5 * S, **c} for c in checks]}]}


def alloc_of(one):
    """Returns the outcome of an alloc. The time at which a client reports a task as unhealthy depends on its threads:
    docs/differences.md."""
    alloc = both.server.ask("/v1/allocation/" + one["ID"])
    # Without a deployment health does not matter, and clients often end before they have determined it.
    health = (one.get("DeploymentStatus") or {}) if alloc.get("DeploymentID") else {}
    return {"version": one["JobVersion"], "status": (alloc["DesiredStatus"], alloc["ClientStatus"], alloc.get("ClientDescription")),
            "health": (health.get("Healthy"), health.get("Canary")), "delays": delays_of(alloc),
            "tasks": {n: (t["State"], t["Failed"], t["Restarts"], told(events_of(t)))
                      for n, t in (alloc.get("TaskStates") or {}).items()}}


def told(events):
    """Removes how a stopped task ended, which the original client does not always know: alike.way()."""
    killed = "Killing" in [e[0] for e in events]
    return [(e[0], None if killed else e[1], *e[2:]) for e in events if e[0] != "Alloc Unhealthy"]


def delays_of(alloc):
    return [e["Delay"] // S for e in (alloc.get("RescheduleTracker") or {}).get("Events") or ()]


def deployments_of(name, node):
    return sorted((d["JobVersion"], d["Status"], d["StatusDescription"], [
        (g.get("Promoted"), g.get("DesiredCanaries"), g["DesiredTotal"], g["HealthyAllocs"], g["UnhealthyAllocs"])
        for g in d["TaskGroups"].values()]) for d in both.server.ask("/v1/job/%s-%s/deployments" % (name, node)))


def became(name, node):
    """Returns each version's deployment, and all allocs, of the job on this node."""
    return deployments_of(name, node), sorted((alloc_of(a) for a in both.server.allocs("%s-%s" % (name, node))), key=str)


def deployed(name, *wanted):
    """Waits until the deployments of all versions have these statuses, on both nodes."""
    def look():
        return [[d[1] for d in deployments_of(name, n)] for n in (OURS, THEIRS)]
    try:
        case.until(lambda: look() == [list(wanted)] * 2, 180, "the deployments of %s to be %s" % (name, " ".join(wanted)))
    except AssertionError as e:
        raise AssertionError("%s; they are %s: %s" % (e, look(), [became(name, n) for n in (OURS, THEIRS)])) from None


def same(*names):
    """Compares the final state. The last update of a client may reach the servers late."""
    wrong = []
    for name in names:
        try:
            case.until(lambda n=name: became(n, OURS) == became(n, THEIRS), 60, name + " to be the same on both nodes")
        except AssertionError as e:
            wrong += [str(e)] + ["  %s: %s" % (n, became(name, n)) for n in (OURS, THEIRS)]
        both.purge(name)
    if wrong:
        raise AssertionError("\n".join(wrong))


def version(name, script, update, **group):
    both.run(name, [task("t", script)], "service", {"Count": 2, "Update": {**UPDATE, **update}, **group})


NEXT = "echo next; " + WAITS


def test_deployments():
    names = ("rolling", "at-once", "canary", "taken-back", "unhealthy", "slow")
    for name in names:
        version(name, WAITS, {"AutoRevert": name == "taken-back"})
    for name in names:
        deployed(name, "successful")
    version("rolling", NEXT, {})
    version("at-once", NEXT, {"MaxParallel": 2})
    version("canary", NEXT, {"Canary": 1, "AutoPromote": True})
    version("taken-back", "exit 1", {"AutoRevert": True})
    version("unhealthy", "exit 1", {})
    # Neither a client nor an operator sets the health here.
    version("slow", NEXT, {"HealthCheck": "manual", "HealthyDeadline": 2 * S, "ProgressDeadline": 5 * S})
    for name in ("rolling", "at-once", "canary"):
        deployed(name, "successful", "successful")
    deployed("taken-back", "successful", "failed", "successful")
    for name in ("unhealthy", "slow"):
        deployed(name, "successful", "failed")
    same(*names)


def test_deployments_with_health_by_checks():
    good, dead = {"Name": "good"}, {"Name": "dead", "PortLabel": "nobody"}
    by_checks = {"HealthCheck": "checks"}
    for name in ("checked", "back-by-checks"):
        version(name, SERVES, {**by_checks, "AutoRevert": name != "checked"}, **PORTS, **service(good))
    for name in ("checked", "back-by-checks"):
        deployed(name, "successful")
    # Never healthy, however long it takes.
    never = {**by_checks, "HealthyDeadline": 5 * S}
    version("checked", SERVES, never, **PORTS, **service(good, dead))
    version("back-by-checks", SERVES, {**never, "AutoRevert": True}, **PORTS, **service(dead))
    deployed("checked", "successful", "failed")
    deployed("back-by-checks", "successful", "failed", "successful")
    same("checked", "back-by-checks")


def test_results_of_checks():
    """Checks that get answers, and, where the deployment does not depend on them, checks without an answer."""
    ignored = {"OnUpdate": "ignore"}
    checks = service({"Name": "tcp"}, {"Name": "http", "Type": "http", "Path": "/"}, {"Name": "refused", "PortLabel": "nobody", **ignored},
                     {"Name": "missing", "Type": "http", "Path": "/nothing", **ignored},
                     {"Name": "posted", "Type": "http", "Path": "/", "Method": "POST", "Body": "x", **ignored})
    version("asked", "cd /etc/alternatives; " + SERVES, {"HealthCheck": "checks"}, **PORTS, **checks)
    deployed("asked", "successful")

    def said(node):
        alloc = both.server.allocs("asked-" + node)[0]["ID"]
        found = both.server.ask("/v1/client/allocation/%s/checks" % alloc).values()
        return sorted((c["Check"], c["Mode"], c["Status"], c.get("StatusCode"), c["Service"], c["Group"].split(".")[1][:-3], c.get("Task") or "",
                       c["Output"] if c.get("StatusCode") else "") for c in found)
    case.until(lambda: all("pending" not in {c[2] for c in said(n)} for n in (OURS, THEIRS)), 60, "each check to have been made")
    case.equal(said(OURS), said(THEIRS), "results of the checks, by drover and by the original client")
    case.equal([c[0] for c in said(OURS) if c[2] == "success"], ["http", "tcp"])
    same("asked")


def test_reschedules():
    """The number and delays of reschedules."""
    policies = {"constant": (2, [5, 5]), "exponential": (2, [5, 10]), "fibonacci": (3, [5, 5, 10])}
    for kind, (attempts, _) in policies.items():
        policy = {"Attempts": attempts, "Interval": 3600 * S, "Delay": 5 * S, "MaxDelay": 3600 * S, "DelayFunction": kind, "Unlimited": False}
        for job in ("batch", "service"):
            both.run("%s-%s" % (kind, job), [task("t", "exit 3")], job, {"ReschedulePolicy": policy, **restarts(1)})
    both.run("no-more", [task("t", "exit 3")], group={"ReschedulePolicy": {"Attempts": 0, "Unlimited": False}})
    for kind, (attempts, delays) in policies.items():
        for job in ("batch", "service"):
            name = "%s-%s" % (kind, job)
            for node in (OURS, THEIRS):
                both.server.wait("%s-%s" % (name, node), ["failed"] * (attempts + 1), 120)
                last = both.server.allocs("%s-%s" % (name, node))[-1]
                case.equal(delays_of(both.server.ask("/v1/allocation/" + last["ID"])), delays, name)
    same("no-more", *("%s-%s" % (k, j) for k in policies for j in ("batch", "service")))


with alike.pair() as both:
    print("  servers and client: " + real.VERSION)
    case.run(globals())

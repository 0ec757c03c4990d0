#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# takes: 27
"""Deployments with health by checks: a version waits for failing checks, and one whose checks never pass is rolled back. The test itself
answers the checks, so no step depends on time."""
import http.server
import os
import signal
import threading

from lib import api, case, volumes
from lib.cluster import processes_of

S = 10**9
PATIENCE = 120
UPDATE = {"MaxParallel": 1, "HealthCheck": "checks", "MinHealthyTime": S // 10, "HealthyDeadline": 600 * S, "ProgressDeadline": 900 * S,
          "AutoRevert": True}


class Judge(http.server.BaseHTTPRequestHandler):
    """Answers 200 for the paths in .good, else 503; .asked counts the requests."""
    good, asked = set(), {}

    def do_GET(self):
        self.asked[self.path] = self.asked.get(self.path, 0) + 1
        self.send_response(200 if self.path in self.good else 503)
        self.end_headers()

    def log_message(self, *_):
        pass


def job(name, version, count=2, more=(), **update):
    """Returns a job whose check requests /<name>/<version>."""
    checks = [{"Name": "c", "Type": "http", "Path": "/%s/%s" % (name, version), "Interval": S, "Timeout": 60 * S}, *more]
    service = {"Name": name, "PortLabel": str(judge.server_address[1]), "Provider": "nomad", "Address": "127.0.0.1", "Checks": checks}
    return api.job(name, "/bin/sh", ["-c", "exec sleep 1000 # " + version], count,
                   group={"Services": [service], "Update": dict(UPDATE, **update)})


def deployment(name):
    return node.ask("/v1/job/%s/deployment" % name)


def wait_deployment(name, status, version):
    def so():
        found = deployment(name)
        return (found["Status"], found["JobVersion"]) == (status, version) and found
    return case.until(so, PATIENCE, "deployment %d of %s to be %s; it is %s" % (version, name, status, deployment(name)))


def versions(name):
    found = [a for a in node.allocs(name) if a["DesiredStatus"] == "run" and a["ClientStatus"] == "running"]
    return [a["JobVersion"] for a in sorted(found, key=lambda a: a["Name"])]


def wait_versions(name, wanted):
    case.until(lambda: versions(name) == wanted, PATIENCE, "versions %s of %s; they are %s" % (wanted, name, versions(name)))


def wait_asked(path, times):
    """Waits until the path was requested this many times more."""
    wanted = Judge.asked.get(path, 0) + times
    case.until(lambda: Judge.asked.get(path, 0) >= wanted, PATIENCE, "%d requests for %s" % (times, path))


def counts(name):
    found = deployment(name)["TaskGroups"]["g"]
    return found["PlacedAllocs"], found["HealthyAllocs"], found["UnhealthyAllocs"]


def test_a_version_waits_for_its_checks():
    node.register(job("slow", "zero"))
    wait_asked("/slow/zero", 6)  # by two allocs
    case.equal((deployment("slow")["Status"], counts("slow")), ("running", (2, 0, 0)), "status of a deployment whose checks fail")
    Judge.good.add("/slow/zero")
    wait_deployment("slow", "successful", 0)
    first = node.wait_running("slow", 2)
    # The next version: while the check of its first alloc fails, the other alloc is not replaced.
    node.register(job("slow", "one"))
    wait_asked("/slow/one", 3)
    wait_versions("slow", [1, 0])
    case.equal((deployment("slow")["Status"], counts("slow")), ("running", (1, 0, 0)), "versions while the check fails")
    node.kill("supervisor")
    node.wait_ready()
    wait_asked("/slow/one", 3)
    wait_versions("slow", [1, 0])
    case.equal((deployment("slow")["Status"], counts("slow")), ("running", (1, 0, 0)), "versions after a restart")
    Judge.good.add("/slow/one")
    wait_deployment("slow", "successful", 1)
    wait_versions("slow", [1, 1])
    case.equal(counts("slow"), (2, 2, 0))
    case.equal({a["ID"] for a in first} & {a["ID"] for a in node.wait_running("slow", 2)}, set(), "allocs of the previous version")
    node.purge("slow")


def test_a_version_whose_checks_never_pass_is_rolled_back():
    Judge.good.add("/never/zero")
    node.register(job("never", "zero"))
    wait_deployment("never", "successful", 0)
    first = node.wait_running("never", 2)
    node.register(job("never", "one", HealthyDeadline=8 * S))
    wait_deployment("never", "successful", 2)
    case.equal([(d["JobVersion"], d["Status"], d["StatusDescription"]) for d in node.ask("/v1/job/never/deployments")],
               [(2, "successful", "Deployment completed successfully"),
                (1, "failed", "Failed due to unhealthy allocations - rolling back to job version 0"),
                (0, "successful", "Deployment completed successfully")])
    wait_versions("never", [2, 2])
    bad = [a for a in node.allocs("never") if a["JobVersion"] == 1]
    case.equal([a["Name"] for a in bad], ["never.g[0]"], "allocs of the bad version")
    told = [e["DisplayMessage"] for e in node.ask("/v1/allocation/" + bad[0]["ID"])["TaskStates"]["t"]["Events"]
            if e["Type"] == "Alloc Unhealthy"]
    case.equal(len(told), 1, "events Alloc Unhealthy")
    # If the start takes very long, the event says instead that it runs too late.
    wanted = 'Only 0 out of 1 checks registered and passing: check "c" of service never: HTTP status 503'
    case.equal(told[0] == wanted or "by healthy_deadline of 8s" in told[0], True, told[0])
    case.contains([a["ID"] for a in node.wait_running("never", 2)], first[1]["ID"], "the alloc that was not replaced")
    node.purge("never")


def test_a_check_with_on_update_ignore_does_not_delay_the_deployment():
    Judge.good.add("/ignore/zero")
    node.register(job("ignore", "zero", 1, [{"Name": "ignored", "Type": "http", "Path": "/bad", "Interval": S, "Timeout": 60 * S,
                                             "OnUpdate": "ignore"}]))
    wait_deployment("ignore", "successful", 0)
    wait_asked("/bad", 1)
    node.purge("ignore")


def test_without_a_stable_version_the_deployment_fails():
    node.register(job("first", "zero", 1, HealthyDeadline=4 * S))
    case.equal(wait_deployment("first", "failed", 0)["StatusDescription"],
               "Failed due to unhealthy allocations - no stable job version to auto revert to")
    node.purge("first")


def test_after_a_restart_an_alloc_is_not_healthy_before_its_checks_begin():
    """The checks begin after the volume is mounted, which the plugin delays. By its task states the alloc would be healthy at once."""
    node.start_plugin()
    node.create("kept")
    made = job("held", "zero", 1, MinHealthyTime=1)
    made["Job"]["TaskGroups"][0]["Volumes"] = {"v": {"Name": "v", "Type": "csi", "Source": "kept", "AccessMode": "single-node-writer",
                                                     "AttachmentMode": "file-system"}}
    node.register(made)
    wait_asked("/held/zero", 2)
    said = "recovered "
    before = node.log().count(said)
    plugin = processes_of(node.wait_running("csi-local")[0]["ID"])[0]
    os.kill(plugin, signal.SIGSTOP)
    try:
        node.kill("supervisor")
        node.wait_ready()
        node.wait_log(said, PATIENCE, before + 1)
    finally:
        os.kill(plugin, signal.SIGCONT)
    wait_asked("/held/zero", 2)
    case.equal((deployment("held")["Status"], counts("held")), ("running", (1, 0, 0)), "versions while the check fails")
    Judge.good.add("/held/zero")
    wait_deployment("held", "successful", 0)
    for name in ("held", "csi-local"):
        node.purge(name)


with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Judge) as judge, volumes.Node() as node:
    threading.Thread(target=judge.serve_forever, daemon=True).start()
    case.run(globals())

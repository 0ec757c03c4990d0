#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests a whole agent with real servers, which this program starts on loopback: `make check-nomad NOMAD=path`.

    tests/nomad/check.py PATH [test_…]…"""
import base64
import contextlib
import json
import os
import signal
import subprocess
import sys
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from lib import api, binary, case, helper, nomad_server  # noqa: E402
from lib.cluster import events, node_of, processes_of  # noqa: E402
from lib.nomad_server import make_certificates  # noqa: E402
import real  # noqa: E402
from real import BINARY, S, Server, fetch, sayer, sleeper, tcp_door  # noqa: E402

def test_jobs_of_the_four_types_with_both_drivers():
    for driver in ("raw_exec", "exec"):
        for kind in ("service", "system"):
            server.run(sleeper(kind + driver, driver), Type=kind)
            server.wait(kind + driver, ["running"])
        for kind in ("batch", "sysbatch"):
            server.run(api.job(kind + driver, "/bin/sh", ["-c", "exit 0"], driver=driver), Type=kind)
            found = server.wait(kind + driver, ["complete"])[0]
            case.equal(events(found), ["Received", "Task Setup", "Started", "Terminated"])
        for kind in ("service", "system", "batch", "sysbatch"):
            server.purge(kind + driver)
            case.until(lambda k=kind: all(a["ClientStatus"] == "complete" for a in server.allocs(k + driver)), 30,
                       "the %s job to end" % kind)


def test_a_batch_job_is_stopped_at_its_max_run_duration():
    if real.older_than(2, 0):
        case.skip("these servers do not support max_run_duration")
    made = sleeper("long", "raw_exec")
    made["Job"]["TaskGroups"][0]["MaxRunDuration"] = 2 * S
    server.run(made, Type="batch")
    found = server.wait("long", ["complete"])[0]
    case.equal(found["ClientDescription"], "allocation exceeded max_run_duration")
    killing = next(e for e in found["TaskStates"]["t"]["Events"] if e["Type"] == "Killing")
    case.equal(killing["DisplayMessage"], "allocation exceeded max_run_duration")
    server.purge("long")


def test_a_dispatch_payload_is_a_file_of_the_task():
    for driver in ("raw_exec", "exec"):
        made = api.job("handed", "/bin/sh", ["-c", 'cat "$NOMAD_TASK_DIR/in/x"; echo "$NOMAD_META_who.$NOMAD_META_none."'],
                       driver=driver, DispatchPayload={"File": "in/x"})
        server.run(made, Type="batch", ParameterizedJob={"MetaOptional": ["who", "none"]})
        payload = b"again, and once more\n" * 300 + bytes(range(128))  # so that the server has something to compress
        child = server.do("/v1/job/handed/dispatch", {"Payload": base64.b64encode(payload).decode(), "Meta": {"who": "me"}})
        path = "/v1/job/%s/allocations" % urllib.parse.quote(child["DispatchedJobID"], safe="")
        found = case.until(lambda p=path: [a for a in server.ask(p) if a["ClientStatus"] == "complete"], 60, "the end of the child")
        case.equal(node.logs(found[0]) == payload + b"me..\n", True, node.logs(found[0])[-200:])
        server.do("/v1/job/" + urllib.parse.quote(child["DispatchedJobID"], safe="") + "?purge=true", method="DELETE")
        server.purge("handed")


def test_a_rolling_deployment():
    update = {"MaxParallel": 1, "HealthCheck": "task_states", "MinHealthyTime": S, "HealthyDeadline": 30 * S,
              "ProgressDeadline": 60 * S}

    def deployed(version):
        found = server.ask("/v1/job/roll/deployment")
        return found and found["JobVersion"] == version and found["Status"] == "successful"
    server.run(sleeper("roll", count=2, group={"Update": update}))
    case.until(lambda: deployed(0), 40, "the first deployment to succeed")
    server.run(sleeper("roll", count=2, group={"Update": update}, Env={"CHANGED": "1"}))
    case.until(lambda: deployed(1), 60, "the second deployment to succeed")
    server.wait("roll", ["complete", "complete", "running", "running"])
    server.purge("roll")


def test_a_deployment_with_health_by_checks_and_its_services():
    script = "import http.server, os; http.server.ThreadingHTTPServer(('', int(os.environ['NOMAD_PORT_web'])), " \
             "http.server.SimpleHTTPRequestHandler).serve_forever()"

    def made(path, **more):
        check = {"Name": "alive", "Type": "http", "Path": path, "Interval": S, "Timeout": 2 * S}
        return api.job("checked", "/usr/bin/python3", ["-c", script], count=2, group={
            "Update": {"MaxParallel": 1, "HealthCheck": "checks", "MinHealthyTime": S, "HealthyDeadline": 25 * S,
                       "ProgressDeadline": 60 * S},
            "Networks": [{"Mode": "host", "DynamicPorts": [{"Label": "web"}]}],
            "Services": [{"Name": "checked", "PortLabel": "web", "Provider": "nomad", "Tags": ["t${NOMAD_ALLOC_INDEX}"],
                          "Checks": [check]}]}, **more)

    def status(version):
        found = server.ask("/v1/job/checked/deployment")
        return found["Status"] if found and found["JobVersion"] == version else None

    def running():
        return sorted(a["ID"] for a in server.allocs("checked") if a["ClientStatus"] == "running")
    server.run(made("/"))
    case.until(lambda: status(0) == "successful", 90, "the first deployment to succeed")
    first = running()
    found = server.ask("/v1/service/checked")
    case.equal(sorted(s["AllocID"] for s in found), first)
    case.equal(sorted(t for s in found for t in s["Tags"]), ["t0", "t1"])
    ports = {a: server.ask("/v1/allocation/" + a)["AllocatedResources"]["Shared"]["Ports"][0] for a in first}
    case.equal({s["AllocID"]: (s["Address"], s["Port"]) for s in found},
               {a: (p["HostIP"], p["Value"]) for a, p in ports.items()})
    checks = list(server.ask("/v1/client/allocation/%s/checks" % first[0]).values())
    case.equal([(c["Check"], c["Status"], c["Output"], c["StatusCode"]) for c in checks], [("alive", "success", "nomad: http ok", 200)])
    said = subprocess.run([BINARY, "service", "info", "-address=http://127.0.0.1:%d" % server.ports[0], "checked"], check=True,
                          stdout=subprocess.PIPE, text=True).stdout
    case.equal([a[:8] in said for a in first], [True, True], said)
    # An alloc with a failing check fails the deployment; the other allocs keep running.
    server.run(made("/nothing", Env={"BAD": "1"}))
    case.until(lambda: status(1) == "failed", 90, "the second deployment to fail")
    bad = [a for a in server.allocs("checked") if a["JobVersion"] == 1]
    case.equal((len(bad), bad[0]["DeploymentStatus"]["Healthy"]), (1, False))
    case.equal(events(bad[0])[-1], "Alloc Unhealthy")
    server.run(made("/", Env={"GOOD": "1"}))
    case.until(lambda: status(2) == "successful", 120, "the third deployment to succeed")
    case.until(lambda: sorted(s["AllocID"] for s in server.ask("/v1/service/checked")) == running(), 30, "the services of the running allocs")
    server.purge("checked")
    case.until(lambda: server.ask("/v1/service/checked") == [], 60, "the services to be removed")


def test_canaries_have_their_tags_and_are_promoted_or_removed():
    made = dict(count=2, group={
        "Update": {"MaxParallel": 1, "Canary": 1, "AutoRevert": True, "HealthCheck": "task_states", "MinHealthyTime": S,
                   "HealthyDeadline": 60 * S, "ProgressDeadline": 120 * S},
        "Services": [{"Name": "bird", "Provider": "nomad", "Tags": ["live"], "CanaryTags": ["canary"]}]})

    def deployed(version, status):
        found = server.ask("/v1/job/bird/deployment")
        return found and (found["JobVersion"], found["Status"]) == (version, status) and found

    def runs(version):
        return sorted(a["ID"] for a in server.allocs("bird") if (a["JobVersion"], a["ClientStatus"]) == (version, "running"))

    def tags():
        return sorted((s["AllocID"], s["Tags"]) for s in server.ask("/v1/service/bird"))
    server.run(sleeper("bird", **made))
    case.until(lambda: deployed(0, "successful"), 90, "the first deployment to succeed")
    first = runs(0)
    case.until(lambda: tags() == sorted((a, ["live"]) for a in first), 60, "the services of all allocs")
    server.run(sleeper("bird", **made, Env={"NEW": "1"}))
    waits = case.until(lambda: (d := deployed(1, "running")) and d["TaskGroups"]["g"]["HealthyAllocs"] == 1 and d, 90, "the canary to be healthy")
    canary, = waits["TaskGroups"]["g"]["PlacedCanaries"]
    case.equal((runs(0), runs(1)), (first, [canary]), "the other allocs, beside the canary")
    case.until(lambda: tags() == sorted([(a, ["live"]) for a in first] + [(canary, ["canary"])]), 60, "tags of the canary")
    pid = processes_of(canary)
    server.do("/v1/deployment/promote/" + waits["ID"], {"DeploymentID": waits["ID"], "All": True})
    case.until(lambda: deployed(1, "successful"), 120, "the second deployment to succeed")
    second = case.until(lambda: not runs(0) and len(runs(1)) == 2 and runs(1), 60, "the others to be replaced")
    case.until(lambda: tags() == sorted((a, ["live"]) for a in second), 60, "the tags of the promoted alloc")
    case.equal(processes_of(canary), pid, "processes of the promoted alloc")
    # The canary of a bad version does not affect the running allocs.
    before = {a: processes_of(a) for a in second}
    server.run(api.job("bird", "/bin/sh", ["-c", "exit 1"], **made))
    case.until(lambda: any((d["JobVersion"], d["Status"]) == (2, "failed") for d in server.ask("/v1/job/bird/deployments")), 120,
               "the third deployment to fail")
    case.until(lambda: server.ask("/v1/job/bird")["Version"] == 3, 60, "the previous version to be restored")
    case.equal({a: processes_of(a) for a in second}, before, "allocs that ran before")
    bad = [a for a in server.allocs("bird") if a["JobVersion"] == 2]
    case.equal([(a["ClientStatus"], a["DeploymentStatus"]["Healthy"]) for a in bad], [("failed", False)] * len(bad))
    case.equal(len(bad) > 0, True, "canaries of the bad version")
    server.purge("bird")
    case.until(lambda: tags() == [], 60, "the services to be removed")


def test_checks_over_https():
    """Servers before 2.0 do not accept tls_skip_verify with provider nomad."""
    cert, key = make_certificates(case.directory(), names=("server",))["server"]
    script = "import http.server, os, ssl; s = http.server.ThreadingHTTPServer(('', int(os.environ['NOMAD_PORT_web'])), " \
             "http.server.SimpleHTTPRequestHandler); c = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER); c.load_cert_chain('%s', '%s'); " \
             "s.socket = c.wrap_socket(s.socket, server_side=True); s.serve_forever()" % (cert, key)
    checks = [{"Name": "verified", "Type": "http", "Protocol": "https", "Path": "/", "Interval": S, "Timeout": 20 * S}]
    if not real.older_than(2, 0):
        checks.append(dict(checks[0], Name="skipped", TLSSkipVerify=True))
    server.run(api.job("secret", "/usr/bin/python3", ["-c", script], group={
        "Networks": [{"Mode": "host", "DynamicPorts": [{"Label": "web"}]}],
        "Services": [{"Name": "secret", "PortLabel": "web", "Provider": "nomad", "Checks": checks}]}))

    def found():
        allocs = [a["ID"] for a in server.allocs("secret") if a["ClientStatus"] == "running"]
        results = server.ask("/v1/client/allocation/%s/checks" % allocs[0]) if allocs else None
        return {c["Check"]: (c["Status"], c["Output"]) for c in (results or {}).values()}
    case.until(lambda: "the server's certificate is refused" in found().get("verified", ("", ""))[1], 90, "the check with verification")
    if len(checks) > 1:
        case.until(lambda: found()["skipped"] == ("success", "nomad: http ok"), 90, "the check without verification")
    server.purge("secret")


def test_a_version_without_changes_of_tasks_keeps_the_processes():
    again = {"Attempts": 5, "Interval": 3600 * S, "Delay": S // 10, "Mode": "fail"}
    server.run(sleeper("altered"))
    alloc = server.wait("altered", ["running"])[0]["ID"]
    pid = processes_of(alloc)
    server.run(sleeper("altered", count=2, group={"RestartPolicy": again}), Priority=70)
    server.wait("altered", ["running", "running"])
    case.equal(processes_of(alloc), pid, "processes of the task")
    case.until(lambda: node.ask("/v1/allocation/" + alloc)["Job"]["Priority"] == 70, 30, "the version of the alloc")
    os.kill(pid[0], signal.SIGKILL)
    case.until(lambda: processes_of(alloc) not in ([], pid), 30, "another process, by the restart policy of the new version")
    case.until(lambda: server.ask("/v1/allocation/" + alloc)["TaskStates"]["t"]["Restarts"] == 1, 30, "the servers to know of the restart")
    server.wait("altered", ["running", "running"])
    server.purge("altered")


def test_restart_signal_and_stop_of_an_alloc():
    server.run(sleeper("asked", group={"RestartPolicy": {"Attempts": 3, "Interval": 10**12, "Delay": 10**7, "Mode": "fail"}}))
    alloc = server.wait("asked", ["running"])[0]["ID"]
    pid = processes_of(alloc)
    server.do("/v1/client/allocation/%s/restart" % alloc)
    case.until(lambda: events(server.ask("/v1/allocation/" + alloc)).count("Started") == 2, 20, "the task to start again")
    case.equal(processes_of(alloc) not in ([], pid), True, "whether it is another process")
    server.do("/v1/client/allocation/%s/signal" % alloc, {"Signal": "SIGUSR1", "Task": "t"})
    case.until(lambda: "Signaling" in events(server.ask("/v1/allocation/" + alloc)), 20, "the event of the signal")
    server.do("/v1/allocation/%s/stop" % alloc)
    case.until(lambda: [a["ClientStatus"] for a in server.allocs("asked")] == ["complete", "running"], 30, "a replacement")
    server.purge("asked")


def test_a_failed_task_is_reported_and_rescheduled():
    policy = {"Attempts": 1, "Interval": 3600 * S, "Delay": 5 * S, "DelayFunction": "constant"}
    server.run(api.job("fails", "/bin/sh", ["-c", "exit 3"], group={"ReschedulePolicy": policy}), Type="batch")
    found = server.wait("fails", ["failed", "failed"])[0]
    case.equal([e["ExitCode"] for e in found["TaskStates"]["t"]["Events"] if e["Type"] == "Terminated"], [3])
    server.purge("fails")


def test_a_driver_that_does_not_work_is_unhealthy_and_gets_no_work():
    """No cgroup can be made for tasks meanwhile. What runs goes on, and what waits starts when the driver works again."""
    with open(node.data + "/instance", encoding="ascii") as f:
        limit = "%s/drover-%s/tasks/cgroup.max.descendants" % (helper.cgroup_trees().get("v2"), f.read().strip())
    if not os.path.exists(limit):
        case.skip("no limit of cgroups here")
    patient = {"RestartPolicy": {"Attempts": 100, "Interval": 10**12, "Delay": S // 20, "Mode": "delay"}}
    me = server.wait_ready()

    def driver():
        found = server.ask("/v1/node/" + me)["Drivers"]["raw_exec"]
        return found["Healthy"], found["HealthDescription"]

    def messages():
        return [e["Message"] for e in server.ask("/v1/node/" + me)["Events"] if e["Subsystem"] == "Driver"]
    server.run(sleeper("early", group=patient))
    pids = processes_of(server.wait("early", ["running"])[0]["ID"])
    case.equal(driver(), (True, "Healthy"))
    case.write(limit, "0")
    try:
        server.run(sleeper("late", group=patient))
        why = case.until(lambda: not (found := driver())[0] and found[1], 60, "the servers to have an unhealthy driver")
        case.contains(why, "start its task: make cgroup")
        case.until(lambda: messages()[-1:] == ["Driver raw_exec is unhealthy: " + why], 30, "the event")
        evaluation = "/v1/evaluation/" + server.do("/v1/jobs", sleeper("third"))["EvalID"]
        case.until(lambda: server.ask(evaluation)["Status"] == "complete", 30, "the evaluation")
        metric = server.ask(evaluation)["FailedTGAllocs"]["g"]
        case.equal((metric["NodesFiltered"], list(metric["ConstraintFiltered"]), server.allocs("third")), (1, ["missing drivers"], []))
        case.equal([a["ClientStatus"] for name in ("early", "late") for a in server.allocs(name)], ["running", "pending"])
        case.equal(processes_of(server.allocs("early")[0]["ID"]), pids, "processes of the task")
        case.equal((server.wait_ready(), server.ask("/v1/node/" + me)["SchedulingEligibility"]), (me, "eligible"))
    finally:
        case.write(limit, "max")
    case.until(lambda: driver() == (True, "Healthy"), 120, "the servers to have a healthy driver")
    for name in ("early", "late", "third"):
        server.wait(name, ["running"])
    case.until(lambda: messages()[-1:] == ["Driver raw_exec is healthy"], 30, "the event")
    for name in ("early", "late", "third"):
        server.purge(name)


def test_a_drain_stops_allocs_and_changes_the_eligibility():
    me = server.wait_ready()
    server.run(sleeper("drained"))
    alloc = server.wait("drained", ["running"])[0]["ID"]
    server.do("/v1/node/%s/drain" % me, {"DrainSpec": {"Deadline": 60 * S}})
    case.until(lambda: server.ask("/v1/allocation/" + alloc)["ClientStatus"] == "complete", 40, "the alloc to end")
    case.until(lambda: server.ask("/v1/node/" + me)["DrainStrategy"] is None, 40, "the drain to end")
    case.equal(server.ask("/v1/node/" + me)["SchedulingEligibility"], "ineligible")
    case.until(lambda: node.ask("/v1/node/" + me)["SchedulingEligibility"] == "ineligible", 20, "the change to reach the node")
    server.do("/v1/node/%s/eligibility" % me, {"Eligibility": "eligible"})
    server.wait("drained", ["complete", "running"])
    server.purge("drained")


def test_allocs_that_the_server_removes_are_collected():
    server.run(api.job("short", "/bin/true"), Type="batch")
    alloc = server.wait("short", ["complete"])[0]["ID"]
    directory = "%s/alloc/%s" % (node.data, alloc)
    case.equal(os.path.exists(directory), True, "its directory")
    server.purge("short")
    server.do("/v1/system/gc")
    server.run(sleeper("other"))  # makes the node fetch its list, if it was not waiting for it when the alloc was removed
    server.wait("other", ["running"])
    case.until(lambda: not os.path.exists(directory), 30, "the directory to be removed")
    server.purge("other")


def test_a_volume_is_created_claimed_and_released():
    store = case.directory()
    os.chmod(store, 0o777)
    server.run(api.job("plugin", binary("csi-local"), ["-root", store], CSIPluginConfig={
        "ID": "local", "Type": "monolith", "MountDir": "/csi"}))
    server.wait("plugin", ["running"])

    def healthy():
        try:
            return server.ask("/v1/plugin/csi/local")["NodesHealthy"] == 1
        except AssertionError:
            return False
    case.until(healthy, 40, "the plugin to be healthy")
    capability = {"AccessMode": "single-node-writer", "AttachmentMode": "file-system"}
    # Through the agent's socket: the agent forwards it to the server, and the server calls the agent's plugin.
    node.do("PUT", "/v1/volume/csi/data/create", {"Volumes": [{
        "ID": "data", "Name": "data", "PluginID": "local", "RequestedCapacityMin": 1 << 20,
        "RequestedCapabilities": [capability]}]})
    server.run(api.job("writer", "/bin/sh", ["-c", "echo there > /d/file; exec sleep 1000"], driver="exec", group={"Volumes": {
        "v": {"Name": "v", "Type": "csi", "Source": "data", **capability}}},
        VolumeMounts=[{"Volume": "v", "Destination": "/d"}]))
    server.wait("writer", ["running"])
    volume = server.ask("/v1/volume/csi/data")
    case.equal(list(volume["WriteAllocs"]), [server.allocs("writer")[0]["ID"]])
    case.equal(node.ask("/v1/volume/csi/data")["WriteAllocs"], volume["WriteAllocs"])
    path = "%s/volumes/%s/file" % (store, volume["ExternalID"])
    case.until(lambda: os.path.exists(path), 10, "the data of the task")
    server.purge("writer")
    case.until(lambda: not server.ask("/v1/volume/csi/data")["WriteAllocs"], 40, "the claim to be released")
    server.request("DELETE", "/v1/volume/csi/data/delete")
    case.equal(os.listdir(store + "/meta"), [], "volumes that the plugin has")
    server.purge("plugin")


def test_the_server_is_killed_and_started_again():
    server.run(sleeper("kept"))
    alloc = server.wait("kept", ["running"])[0]["ID"]
    pid = processes_of(alloc)
    server.stop()
    case.until(lambda: "no server" in node.log(), 30, "the link to be lost")
    server.start()
    server.wait_ready()
    case.equal(processes_of(alloc), pid, "processes of the task")
    server.run(sleeper("after"))
    server.wait("after", ["running"])
    for name in ("kept", "after"):
        server.purge(name)


def test_a_purged_node_registers_again_with_its_allocs():
    server.run(sleeper("stays"))
    alloc = server.wait("stays", ["running"])[0]["ID"]
    me, pid = server.wait_ready(), processes_of(alloc)
    server.do("/v1/node/%s/purge" % me)
    case.until(lambda: [n["ID"] for n in server.ask("/v1/nodes") if n["Status"] == "ready"] == [me], 40, "the node to be registered again")
    case.until(lambda: any(a["ClientStatus"] == "running" for a in server.allocs("stays")), 40, "the alloc to run")
    case.equal(len(pid), 1)
    server.purge("stays")


# --- tests with their own clusters ---

def test_a_silent_node_is_lost_or_disconnected_and_reconnects():
    old = real.older_than(1, 8)
    with Server(beats=real.STRICT) as one, node_of(one) as mine:
        one.wait_ready()
        one.run(sleeper("away", group={"MaxClientDisconnect": 3600 * S} if old else {"Disconnect": {"LostAfter": 3600 * S}}))
        alloc = one.wait("away", ["running"])[0]["ID"]
        pid = processes_of(alloc)
        heartbeat = mine.kill("heartbeat", signal.SIGSTOP)
        try:
            one.wait_ready("disconnected")
            case.until(lambda: one.ask("/v1/allocation/" + alloc)["ClientStatus"] == "unknown", 20, "the alloc to be unknown")
        finally:
            os.kill(heartbeat, signal.SIGCONT)
        one.wait_ready()
        case.until(lambda: one.ask("/v1/allocation/" + alloc)["ClientStatus"] == "running", 40, "the alloc to be running again")
        case.equal(processes_of(alloc), pid, "processes of the task")
        case.contains(" ".join(events(one.ask("/v1/allocation/" + alloc))), "Reconnected")


def test_three_servers_with_the_leader_killed():
    with contextlib.ExitStack() as all_of:
        servers = []
        for _ in range(3):
            servers.append(Server(count=3, others=list(servers)))
            all_of.callback(servers[-1].stop)
        for one in servers:
            one.wait_leader()
            one.addresses = [s.address for s in servers]
        me = all_of.enter_context(node_of(servers[0]))
        servers[0].wait_ready()
        servers[0].run(sleeper("kept"))
        alloc = servers[0].wait("kept", ["running"])[0]["ID"]
        pid = processes_of(alloc)
        leader = servers[0].ask("/v1/status/leader")
        killed, = (s for s in servers if s.address == leader)
        killed.stop()
        left = [s for s in servers if s is not killed]
        left[0].wait_leader()
        left[0].run(sleeper("after"))
        left[0].wait("after", ["running"], 60)
        case.equal(processes_of(alloc), pid, "processes of the task")
        case.equal(left[0].ask("/v1/allocation/" + alloc)["ClientStatus"], "running")
        case.contains(me.ask("/v1/agent/self")["stats"]["client"]["server"], "127.0.0.1")
        killed.start()
        left[0].run(sleeper("last"))
        left[0].wait("last", ["running"], 60)


def test_a_cluster_with_acls():
    with Server(more="acl {\n  enabled = true\n}") as one:
        one.token = one.do("/v1/acl/bootstrap")["SecretID"]
        with node_of(one) as mine:
            me = one.wait_ready()
            one.run(sleeper("said"))
            alloc = one.wait("said", ["running"])[0]["ID"]
            one.do("/v1/client/allocation/%s/restart" % alloc)
            case.until(lambda: "Restart Signaled" in events(one.ask("/v1/allocation/" + alloc)), 20, "the event of the restart")
            case.equal(mine.request("GET", "/v1/jobs").status, 403, "status without a token")
            with tcp_door(mine) as url:
                done = subprocess.run([BINARY, "acl", "token", "self"], check=True, stdout=subprocess.PIPE, timeout=120,
                                      env={**os.environ, "NOMAD_ADDR": url, "NOMAD_TOKEN": one.token})
                case.contains(done.stdout.decode(), one.token)
            case.equal(mine.request("GET", "/v1/allocation/" + alloc).status in (403, 404), True, "status without a token")
            one.do("/v1/node/%s/purge" % me)
            case.until(lambda: [n["ID"] for n in one.ask("/v1/nodes") if n["Status"] == "ready"] == [me], 60, "the node to be ready again")


TLS = """
tls {
  rpc = true
  ca_file = "%s"
  cert_file = "%s"
  key_file = "%s"
  verify_server_hostname = true
}
"""


def test_a_cluster_with_tls():
    """Both sides show certificates; requests of a server to the node use the same connection."""
    made = nomad_server.make_certificates(case.directory())
    server_tls, client_tls, stranger_tls = (TLS % (made["ca"][0], *made[k]) for k in ("server", "client", "stranger"))
    with Server(more=server_tls) as one:
        with node_of(one, more=client_tls):
            one.wait_ready()
            one.run(api.job("sealed", "/bin/sh", ["-c", "echo said; exec sleep 1000"]))
            alloc = one.wait("sealed", ["running"])[0]["ID"]
            url = "http://%s:%d" % (one.ip, one.ports[0])
            case.until(lambda: fetch(url + "/v1/client/fs/logs/%s?task=t&type=stdout&plain=true" % alloc) == (200, b"said\n"), 30, "the log")
            one.purge("sealed")
        with node_of(one, more=stranger_tls, name="stranger") as mine:
            mine.wait_log("no server can be reached", 30)
            case.equal("stranger" in [n["Name"] for n in one.ask("/v1/nodes")], False)


FOLLOW = """
echo default $NOMAD_TOKEN $(cat $NOMAD_SECRETS_DIR/nomad_token)
echo lasting $NOMAD_TOKEN_lasting $(cat $LASTING)
trap 'echo brief $(cat $NOMAD_SECRETS_DIR/nomad_brief.jwt)' HUP
echo brief $(cat $NOMAD_SECRETS_DIR/nomad_brief.jwt)
while :; do sleep 0.1; done
"""


def words(alloc):
    """Returns the output of a task of FOLLOW: [name, token …] for each line."""
    path = "%s/logs/%s/t.stdout.0" % (node.data, alloc)
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as f:
        return [line.split() for line in f.read().split("\n")[:-1]]  # complete lines


def claims(token):
    part = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))


def test_tokens_are_signed_and_renewed():
    for driver in ("raw_exec", "exec"):
        name, named = "tokens" + driver, [
            {"Name": "brief", "Audience": ["example.org"], "File": True, "TTL": 8 * S, "ChangeMode": "signal", "ChangeSignal": "SIGHUP"},
            {"Name": "lasting", "Audience": ["example.org"], "Env": True, "File": True, "Filepath": "local/lasting", "TTL": 3600 * S,
             "ChangeMode": "restart"}]
        script = FOLLOW if not real.older_than(1, 7) else FOLLOW.split("echo lasting")[0] + "exec sleep 1000"
        lasting = "${NOMAD_SECRETS_DIR}/nomad_lasting.jwt" if real.older_than(1, 9) else "${NOMAD_TASK_DIR}/lasting"
        server.run(api.job(name, "/bin/sh", ["-c", script], driver=driver, Identity={"Env": True, "File": True}, Env={"LASTING": lasting},
                           **({} if real.older_than(1, 7) else {"Identities": named})))
        alloc = server.wait(name, ["running"])[0]["ID"]
        wanted = 1 if real.older_than(1, 7) else 5
        case.until(lambda a=alloc: len(words(a)) >= wanted, 60, "tokens, and two renewals")
        found = words(alloc)
        case.equal(found[0][1], found[0][2], "the default token, in variable and file")
        case.equal(claims(found[0][1])["nomad_allocation_id"], alloc)
        if not real.older_than(1, 7):
            case.equal(found[1][1], found[1][2], "the token without expiry, in variable and file")
            case.equal(claims(found[1][1])["sub"], "global:default:%s:g:t:lasting" % name)
            brief = [claims(w[1]) for w in found[2:]]
            case.equal({(c["sub"], c["aud"]) for c in brief}, {("global:default:%s:g:t:brief" % name, "example.org")})
            case.equal(len({c["jti"] for c in brief}), len(brief), "whether all tokens are different")
            case.equal({c["exp"] - c["iat"] for c in brief}, {8})
            told = [e["DisplayMessage"] for e in server.ask("/v1/allocation/" + alloc)["TaskStates"]["t"]["Events"]]
            case.equal("Identity[brief]: new Identity token acquired" in told, True, told)
            case.equal([t for t in told if "restart" in t], [], "restarts")
        case.equal("eyJ" in node.log(), False, "tokens in the log")
        server.purge(name)


def test_the_nodes_own_identity():
    """It is issued at the registration, can be read, is renewed on request at the next beat, and is kept after a restart."""
    if real.older_than(1, 11):
        return  # these servers issue none
    me = server.wait_ready()
    at_server = sayer("http://%s:%d" % (server.ip, server.ports[0]))

    def identity(say):
        found = json.loads(say("node", "identity", "get", "-json", me))
        case.equal(found["nomad_node_id"], me)
        return found["jti"]
    with tcp_door(node) as url:
        first = identity(at_server)
        case.equal(identity(sayer(url)), first)
        at_server("node", "identity", "renew", me)
        case.until(lambda: identity(at_server) != first, 60, "another identity")
        second = identity(sayer(url))
        node.kill("supervisor")
        node.wait_log("recovered " if node.ask("/v1/allocations") else "joining the servers", 20)
        case.until(lambda: server.wait_ready() == me and identity(at_server) == second, 60, "the same identity after a restart")


def test_a_cluster_that_requires_an_introduction_token():
    if real.older_than(1, 11):
        return  # these servers do not support it
    with Server(server="client_introduction {\n    enforcement = \"strict\"\n  }", more="acl {\n  enabled = true\n}") as one:
        one.token = one.do("/v1/acl/bootstrap")["SecretID"]
        def introduce():
            try:
                return one.do("/v1/acl/identity/client-introduction-token", {"NodeName": "n1", "NodePool": "default"})["JWT"]
            except AssertionError as e:
                case.contains(str(e), "keyring has not been initialized yet")
                return None
        made = case.until(introduce, 30, "the server's keyring")
        with node_of(one) as mine:
            mine.wait_log("the servers refuse the node", 20)
            with open(mine.data + "/state/intro_token.jwt", "w", encoding="ascii") as f:
                f.write(made + "\n")
            os.chmod(mine.data + "/state/intro_token.jwt", 0o644)
            one.wait_ready()


with Server(more="enable_debug = true  # or nobody is told of hosts") as server, node_of(server) as node:
    server.wait_ready()
    case.run(globals())

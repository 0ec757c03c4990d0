#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Upgrades an installed agent that is a node of servers (tests/peers/nomad-server), as check.py does without servers.

    tests/nomad/isolated.py tests/upgrade/check_cluster.py EARLIER_BUILD/drover-launcher [test_…]…"""
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from lib import agent, api, case, cluster, crash, service, volumes  # noqa: E402
from lib.cluster import events  # noqa: E402
from lib.fake_api import run_command  # noqa: E402
import earlier  # noqa: E402

S = 10**9
HOUR = 3600 * S
PATIENCE = 120
STEADY = {"%s-%d" % (driver[:3], i): driver for driver in ("raw_exec", "exec") for i in range(5)}  # {job: driver}
CLIENT = 'disk_free_mb = 1000000\n  max_kill_timeout = "1h"'
CAPABILITY = {"AccessMode": "single-node-writer", "AttachmentMode": "file-system"}
GATE = 'while [ ! -e "$NOMAD_ALLOC_DIR/data/go" ]; do sleep 0.1; done; '
WEB = 'cd "$NOMAD_ALLOC_DIR/data"; : > fine; exec python3 -B -m http.server 18080'
# Prints each new token.
FOLLOW = 'while :; do new=$(cat "$NOMAD_SECRETS_DIR/nomad_a.jwt"); [ "$new" = "$old" ] || echo token $new; old=$new; sleep 0.05; done'
IDENTITY = {"Name": "a", "Audience": ["vault.example"], "File": True, "TTL": 4 * S}
UPDATE = {"MaxParallel": 1, "HealthCheck": "task_states", "MinHealthyTime": S // 10, "HealthyDeadline": HOUR,
          "ProgressDeadline": 2 * HOUR}
DEPLOYMENT = "dddddddd-1111-4111-8111-000000000000"


class Node(api.Node):
    """An agent as installed. It starts with the programs of the earlier build."""

    def __init__(self, args):
        super().__init__(args, dev=False, launcher=earlier.install_earlier())

    def __exit__(self, kind, value, tb):
        try:
            return super().__exit__(kind, value, tb)
        finally:
            service.remove(self)


def shell(name, script, driver="raw_exec", **more):
    return cluster.job(name, "/bin/sh", ["-c", script], driver=driver, **more)


def start(made, **more):
    return servers.run_job(made, me, **more)[0]


def start_work():
    """Returns {name: alloc} of jobs of every kind. Their tasks run, and each is in the state in which the upgrade must find it."""
    store = case.directory()
    os.chmod(store, 0o777)
    plugin = os.path.join(os.path.dirname(node.launcher), "drover-csi-local")
    found = {"plugin": start(cluster.job("plugin", plugin, ["-root", store], CSIPluginConfig={
        "ID": "local", "Type": "monolith", "MountDir": "/csi", "HealthTimeout": HOUR}))}
    case.until(lambda: (servers.node(me)["CSINodePlugins"] or {}).get("local", {}).get("Healthy"), PATIENCE, "a healthy plugin")
    servers.create_volume({"ID": "demo", "PluginID": "local", "RequestedCapacityMin": 1 << 20, "RequestedCapabilities": [CAPABILITY]})
    for name, driver in STEADY.items():
        found[name] = start(crash.job(name, 1, driver)["Job"])
    check = {"Name": "fine", "Type": "http", "Path": "/fine", "Interval": S, "Timeout": 60 * S}
    gate = api.task("gate", "/bin/sh", ["-c", GATE + "exit 0"], Lifecycle={"Hook": "prestart"})
    deployed = shell("deployed", "exec sleep 100000", group={"Update": UPDATE})
    deployed["TaskGroups"][0]["Tasks"].append(gate)
    found.update({
        "writer": start(volumes.job("writer", "demo", "while :; do echo line >> /data/log; sleep 0.1; done")["Job"]),
        "web": start(shell("web", WEB, group={"Services": [
            {"Name": "web", "PortLabel": "18080", "Provider": "nomad", "Tags": ["a"], "Checks": [check]}]})),
        "identity": start(shell("identity", FOLLOW, Identities=[IDENTITY])),
        "deployed": start(deployed, deployment=DEPLOYMENT),
        "ends-meanwhile": start(shell("ends-meanwhile", GATE + "exit 7", "exec")),
        "stopped-meanwhile": start(shell("stopped-meanwhile", "exec sleep 100000", "exec")),
        "leaver": start(shell("leaver", "trap '' INT; echo ready; while :; do sleep 1; done", KillTimeout=HOUR))})
    for alloc in found.values():
        servers.wait_alloc(alloc, ["running"], PATIENCE)
    node.wait_said({"ID": found["leaver"]}, b"ready")
    servers.stop_alloc(found["leaver"])
    case.until(lambda: "Killing" in events(servers.alloc(found["leaver"])), PATIENCE, "leaver to be told")
    case.until(lambda: check_status(found["web"]) == "success", PATIENCE, "the check to pass")
    case.until(lambda: tokens(found["identity"]), PATIENCE, "a token")
    return found


def check_status(alloc):
    found = servers.call_node(me, "Allocations.Checks", {"AllocID": alloc})["Results"]
    return [c["Status"] for c in (found or {}).values()][:1] == ["success"] and "success"


def tokens(alloc):
    with open("%s/logs/%s/t.stdout.0" % (node.data, alloc), encoding="ascii") as f:
        return [line for line in f if line.endswith("\n")]


def processes():
    """Returns {name: (pid of the executor, pid of the task)} of the running tasks."""
    names = {alloc.replace("-", ""): name for name, alloc in allocs.items()}
    return {names[r["alloc"].hex()]: (r["executor_pid"], r["task_pid"]) for r in crash.records(node).values()}


def mounts():
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        return sorted((w[0], w[4]) for w in (line.split(" ") for line in f) if "/per-alloc/" in w[4])


def open_gate(name):
    with open("%s/alloc/%s/alloc/data/go" % (node.data, allocs[name]), "w", encoding="ascii"):
        pass


def meanwhile():
    """While no agent runs, one task ends, and the servers stop another alloc."""
    open_gate("ends-meanwhile")
    case.until(lambda: not agent.arguments(pids["ends-meanwhile"][0]), PATIENCE, "the executor of ends-meanwhile to end")
    servers.stop_alloc(allocs["stopped-meanwhile"])


# --- after the upgrade ---

def test_it_is_the_same_node():
    """The servers would refuse another secret id of the same node."""
    case.equal(list(servers.nodes()), [me], "nodes")
    case.equal({c["args"]["Node"]["SecretID"] for c in servers.calls("Node.Register")}, {secret}, "secret ids")


def test_all_tasks_run_on_in_their_processes():
    wanted = {name: pair for name, pair in pids.items() if not name.endswith("-meanwhile")}
    case.until(lambda: processes() == wanted, PATIENCE, "the two others to end")
    for name in STEADY:
        found = servers.alloc(allocs[name])
        case.equal((found["ClientStatus"], events(found)), ("running", ["Received", "Task Setup", "Started"]), name)
    case.equal(crash.conflicts(node), [], "tasks that ran twice at a time")


def test_what_happened_meanwhile_is_done():
    found = servers.wait_alloc(allocs["ends-meanwhile"], ["failed"], PATIENCE)
    case.equal([e["ExitCode"] for e in found["TaskStates"]["t"]["Events"] if e["Type"] == "Terminated"], [7])
    servers.wait_alloc(allocs["stopped-meanwhile"], ["complete"], PATIENCE)


def test_ends_and_restarts_are_noticed():
    for name in STEADY:
        os.kill(pids[name][1], signal.SIGKILL)
    for name in STEADY:
        case.until(lambda n=name: events(servers.alloc(allocs[n])).count("Started") == 2, PATIENCE, "the second start of " + name)
    case.equal(crash.conflicts(node), [], "tasks that ran twice at a time")


def test_the_service_stays_registered_and_checked():
    found, = servers.services()
    case.equal((found["ServiceName"], found["AllocID"], found["Tags"]), ("web", allocs["web"], ["a"]))
    case.equal(servers.calls("ServiceRegistration.DeleteByID"), [], "deregistrations")
    fine = "%s/alloc/%s/alloc/data/fine" % (node.data, allocs["web"])
    case.until(lambda: check_status(allocs["web"]) == "success", PATIENCE, "the check to pass")
    os.unlink(fine)
    case.until(lambda: check_status(allocs["web"]) != "success", PATIENCE, "the check to fail")


def test_tokens_are_renewed():
    known = len(tokens(allocs["identity"]))
    case.until(lambda: len(tokens(allocs["identity"])) > known, PATIENCE, "another token")


def test_health_is_reported():
    case.equal((servers.alloc(allocs["deployed"])["DeploymentStatus"] or {}).get("Healthy"), None)
    open_gate("deployed")
    case.until(lambda: (servers.alloc(allocs["deployed"])["DeploymentStatus"] or {}).get("Healthy"), PATIENCE, "its health")


def test_the_volume_stays_mounted_and_its_claim_is_released():
    case.equal(mounts(), mounted, "mounts")
    case.equal(list(servers.volume("demo")["WriteClaims"]), [allocs["writer"]])
    servers.stop_alloc(allocs["writer"])
    servers.wait_alloc(allocs["writer"], ["complete"], PATIENCE)
    case.until(lambda: not servers.volume("demo")["WriteClaims"], PATIENCE, "the claim to be released")
    case.equal(mounts(), [], "mounts")
    servers.delete_volume("demo")


def test_the_stop_is_finished():
    found = servers.alloc(allocs["leaver"])
    case.equal((found["ClientStatus"], events(found).count("Killing")), ("running", 1))
    os.kill(pids["leaver"][1], signal.SIGKILL)
    found = servers.wait_alloc(allocs["leaver"], ["complete"], PATIENCE)
    case.equal(events(found).count("Started"), 1)


def test_nothing_is_left():
    for alloc in allocs.values():
        servers.stop_alloc(alloc)
        servers.wait_alloc(alloc, ["complete", "failed"], PATIENCE)
    for alloc in allocs.values():
        servers.remove_alloc(alloc)
    servers.drop()  # the lists that the node waits for
    crash.wait_nothing_left(node, PATIENCE)
    r = run_command(["leaks"], env={"DROVER_ADDR": "unix://" + node.socket_path})
    case.equal((r.code, r.out), (0, "no leaks\n"), r.err)
    case.equal(crash.unexplained(node), [], "what had no row")


with service.Users(), cluster.servers(grace=3600) as servers, cluster.node_of(servers, CLIENT, kind=Node) as node:
    me = servers.wait_node()["ID"]
    secret = servers.calls("Node.Register")[0]["args"]["Node"]["SecretID"]
    allocs = start_work()
    pids, mounted = processes(), mounts()
    print("upgrading a node with %d running tasks" % len(pids), flush=True)
    registered = servers.last_call()
    earlier.upgrade(node, meanwhile)
    servers.wait_call("Node.Register", registered)
    case.run(globals())

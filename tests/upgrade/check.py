#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Upgrades an installed agent while it runs work of every kind: the programs of an earlier commit are replaced by those of
this tree, which must take over its state.db and its executors. `make check-upgrade FROM=commit` runs this.

    tests/nomad/isolated.py tests/upgrade/check.py EARLIER_BUILD/drover-launcher [test_…]…"""
import os
import signal
import sys
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from lib import agent, api, case, crash, service, state, volumes  # noqa: E402
from lib.cluster import events  # noqa: E402
from lib.fake_api import run_command  # noqa: E402
from lib.websocket import Exec  # noqa: E402
import earlier  # noqa: E402

S = 10**9
HOUR = 3600 * S
PATIENCE = 120
CROWD = {"raw": "raw_exec", "own": "exec"}  # two jobs of 50 tasks
COUNT = 50
SECRETS = {"key": "s3cr3t-of-the-volume"}
CONFIG = '''plugin "raw_exec" { config { enabled = true } }
plugin "exec" { config { allow_caps = ["audit_write", "kill", "net_bind_service", "sys_admin", "dac_override", "fowner", "chown"] } }
'''
CLIENT = 'disk_free_mb = 1000000\n  cpu_total_compute = 20000\n  max_kill_timeout = "1h"'
# Prints a line on SIGUSR1, exits with 3 on SIGUSR2.
LISTENS = 'echo first; trap "echo told" USR1; trap "exit 3" USR2; sleep 100000 & while :; do wait; done'
GATE = 'while [ ! -e "$NOMAD_ALLOC_DIR/data/go" ]; do sleep 0.1; done; '
WEB = 'cd "$NOMAD_ALLOC_DIR/data"; : > fine; exec python3 -B -m http.server "$NOMAD_PORT_http"'
# The deadlines are so long that health does not depend on the machine's speed.
UPDATE = {"MaxParallel": 1, "HealthCheck": "task_states", "MinHealthyTime": S // 10, "HealthyDeadline": HOUR,
          "ProgressDeadline": 2 * HOUR}


class Node(volumes.Node):
    """An agent as installed, with the CSI plugin. It starts with the programs of the earlier build."""

    def __init__(self):
        super().__init__(CONFIG, CLIENT, dev=False, launcher=earlier.install_earlier())
        earlier.replace(earlier.BUILD + "/drover-csi-local", self.store + "/drover-csi-local")

    def upgrade(self, meanwhile):
        earlier.upgrade(self, meanwhile)
        case.until(self.plugin_is_healthy, PATIENCE, "the plugin to be healthy again")

    def __exit__(self, kind, value, tb):
        try:
            return super().__exit__(kind, value, tb)
        finally:
            service.remove(self)


# --- jobs and their state ---

def shell(name, script, kind="service", count=1, driver="raw_exec", **more):
    made = api.job(name, "/bin/sh", ["-c", script], count, driver, **more)
    made["Job"]["Type"] = kind
    return made


def job_path(name, more=""):
    return "/v1/job/%s%s" % (urllib.parse.quote(name, safe=""), more)


def job_allocs(name):
    return node.ask(job_path(name, "/allocations"))


def children(name):
    return sorted(j["ID"] for j in node.ask("/v1/jobs", prefix=name + "/"))


def open_gate(name):
    for alloc in job_allocs(name):
        directory = "%s/alloc/%s/alloc/data" % (node.data, alloc["ID"])
        if os.path.isdir(directory):
            with open(directory + "/go", "w", encoding="ascii"):
                pass


def wait_status(name, status):
    """Waits until the job's only alloc has this client status; returns the alloc with its events."""
    def find():
        found = job_allocs(name)
        return len(found) == 1 and found[0]["ClientStatus"] == status and found
    return node.ask("/v1/allocation/" + case.until(find, PATIENCE, "the alloc of %s to be %s" % (name, status))[0]["ID"])


def wait_events(alloc_id, kind, count):
    case.until(lambda: events(node.ask("/v1/allocation/" + alloc_id)).count(kind) == count, PATIENCE,
               "%d events %s of %s" % (count, kind, alloc_id))


def exit_codes(alloc):
    return [e["ExitCode"] for e in alloc["TaskStates"]["t"]["Events"] if e["Type"] == "Terminated"]


def deployment(name):
    return node.ask("/v1/job/%s/deployment" % name)


def wait_deployed(name, version):
    case.until(lambda: (d := deployment(name)) and (d["JobVersion"], d["Status"]) == (version, "successful"), PATIENCE,
               "version %d of %s to be deployed" % (version, name))


def rolls(version):
    """Version 1: the first alloc becomes healthy; in the others the prestart task waits at the gate."""
    gate = "" if version == 0 else '[ "$NOMAD_ALLOC_INDEX" = 0 ] && exit 0; ' + GATE
    made = shell("rolls", "exec sleep 100000", count=3, group={"Update": UPDATE}, Env={"VERSION": str(version)})
    made["Job"]["TaskGroups"][0]["Tasks"].append(
        api.task("gate", "/bin/sh", ["-c", gate + "exit 0"], Lifecycle={"Hook": "prestart"}))
    return made


def bird(version):
    return shell("bird", "exec sleep 100000", count=2, group={"Update": dict(UPDATE, Canary=1)}, Env={"VERSION": str(version)})


def web():
    """Returns a job whose check passes as long as the file `fine` exists."""
    check = {"Name": "fine", "Type": "http", "Path": "/fine", "Interval": S, "Timeout": 60 * S}
    return shell("web", WEB, group={
        "Update": dict(UPDATE, HealthCheck="checks"),
        "Networks": [{"Mode": "host", "DynamicPorts": [{"Label": "http"}]}],
        "Services": [{"Name": "web", "PortLabel": "http", "Provider": "nomad", "Checks": [check]}]})


def leaver():
    """Returns a job with a volume whose task ignores its kill signal."""
    made = volumes.job("leaver", "left", "trap '' INT; echo ready; while :; do sleep 1; done", KillTimeout=HOUR)
    made["Job"]["TaskGroups"][0]["Tasks"].append(
        api.task("last", "/bin/sh", ["-c", "echo last"], Lifecycle={"Hook": "poststop"}))
    return made


def periodic(name, spec, script, **block):
    made = shell(name, script, "batch")
    made["Job"]["Periodic"] = dict(block, Spec=spec)
    return made


def is_steady(job_id):
    """Returns whether the upgrade alone changes nothing of this job: no periodic launch, no task that ends meanwhile."""
    return not job_id.startswith("tick") and job_id != "ends-meanwhile"


def processes():
    """Returns {alloc: [(pid of the executor, pid of the task, start time of the task)]}, one for each running task."""
    mine = {a["ID"] for a in node.ask("/v1/allocations") if is_steady(a["JobID"])}
    found = {}
    for record in crash.records(node).values():
        text = record["alloc"].hex()
        alloc = "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
        if alloc in mine:
            found.setdefault(alloc, []).append((record["executor_pid"], record["task_pid"], record["task_start_ticks"]))
    return {alloc: sorted(runs) for alloc, runs in found.items()}


def all_alive(found):
    for alloc, runs in found.items():
        for executor, task, ticks in runs:
            case.equal(agent.arguments(executor)[:1], ["drover-executor"], "executor of " + alloc)
            with open("/proc/%d/stat" % task, encoding="utf-8") as f:
                fields = f.read().rpartition(")")[2].split()
            case.equal((fields[0] != "Z", int(fields[19])), (True, ticks), "task of " + alloc)


def known():
    """Returns what the API reports about everything that the upgrade must not change."""
    def chosen(row, *names):
        return {name: row[name] for name in names}
    jobs = [j for j in node.ask("/v1/jobs") if is_steady(j["ID"])]
    allocs = [a for a in node.ask("/v1/allocations") if is_steady(a["JobID"])]
    evals = [e for e in node.ask("/v1/evaluations") if is_steady(e["JobID"])]
    return {
        "node": node.ask("/v1/nodes")[0]["ID"],
        "jobs": {j["ID"]: node.ask(job_path(j["ID"])) for j in jobs},
        "versions": {j["ID"]: [v["Version"] for v in node.ask(job_path(j["ID"], "/versions"))["Versions"]] for j in jobs},
        # The plugin gets a new event when it is probed again.
        "allocs": {a["ID"]: chosen(a, "Name", "JobID", "JobVersion", "TaskGroup", "DesiredStatus", "ClientStatus", "DeploymentStatus",
                                   "CreateIndex", "CreateTime", *["TaskStates"] * (a["JobID"] != "csi-local")) for a in allocs},
        "evals": {e["ID"]: chosen(e, "JobID", "Status", "TriggeredBy", "DeploymentID") for e in evals},
        "deployments": {d["ID"]: d for d in node.ask("/v1/deployments")},
        "volumes": {v["ID"]: chosen(v, "PluginID", "AccessMode", "AttachmentMode", "CurrentWriters", "Schedulable")
                    for v in node.ask("/v1/volumes", type="csi")},
        "services": node.ask("/v1/services"),
        "web": [chosen(s, "ID", "AllocID", "Address", "Port", "Tags") for s in node.ask("/v1/service/web")],
    }


def compare(found, wanted, where):
    """Fails unless `found` has every value of `wanted`. It may have more fields, since a later agent may add some."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        for key, value in wanted.items():
            case.equal(key in found, True, "%s.%s is known" % (where, key))
            compare(found[key], value, "%s.%s" % (where, key))
    elif isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        for i, value in enumerate(wanted):
            compare(found[i], value, "%s[%d]" % (where, i))
    else:
        case.equal(found, wanted, where)


def mounts_of(volume):
    """Returns [(mount id, mount point)] of the mounts at which the volume is published to allocs."""
    points = set(node.published(volume))
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        return sorted((w[0], w[4]) for w in (line.split(" ") for line in f) if w[4] in points)


def written():
    """Returns the number of lines that job `writer` has written to its volume."""
    with open(mounts_of("demo")[0][1] + "/log", encoding="ascii") as f:
        return len(f.readlines())


def check_result():
    alloc, = job_allocs("web")
    found, = node.ask("/v1/client/allocation/%s/checks" % alloc["ID"]).values()
    return found


# --- before ---

def start_work():
    node.start_plugin()
    for name in ("demo", "left"):
        node.create(name, Secrets=SECRETS)
    for name, driver in CROWD.items():
        node.register(crash.job(name, COUNT, driver, LISTENS, Resources={"CPU": 1, "MemoryMB": 10}))
    for made in (volumes.job("writer", "demo", "while :; do echo line >> /data/log; sleep 0.1; done"), leaver(), rolls(0), bird(0),
                 web(), shell("everywhere", "exec sleep 100000", "system"), shell("done", "exit 0", "batch"),
                 shell("succeeds", GATE + "exit 0", "batch"), shell("fails", GATE + "exit 3", "batch", driver="exec"),
                 shell("ends-meanwhile", GATE + "exit 7", "batch", driver="exec")):
        node.register(made)
    each = shell("each", 'cat "$NOMAD_TASK_DIR/in"; ' + GATE, "batch", DispatchPayload={"File": "in"})
    each["Job"]["ParameterizedJob"] = {"Payload": "required"}
    node.register(each)
    node.do("PUT", "/v1/job/each/dispatch", {"Payload": "c29tZSBieXRlcwo="})  # some bytes
    node.register(periodic("slow", "@yearly", GATE, ProhibitOverlap=True))
    node.do("PUT", "/v1/job/slow/periodic/force")
    node.register(periodic("tick", "* * * * * * *", "true"))


def wait_for_work():
    """Waits until all jobs are in the state in which the upgrade must find them."""
    for name in CROWD:
        for alloc in node.wait_running(name, COUNT, PATIENCE):
            node.wait_said(alloc, b"first")
    for name, version in (("rolls", 0), ("bird", 0), ("web", 0)):
        wait_deployed(name, version)
    wait_status("done", "complete")
    for name in ("writer", "everywhere", "succeeds", "fails", "ends-meanwhile", *children("each"), *children("slow")):
        wait_status(name, "running")
    case.until(lambda: written() >= 3, PATIENCE, "lines in the volume")
    case.until(lambda: len(children("tick")) >= 2, PATIENCE, "periodic launches")
    node.wait_said(wait_status("leaver", "running"), b"ready")
    node.do("DELETE", "/v1/job/leaver")
    wait_events(job_allocs("leaver")[0]["ID"], "Killing", 1)
    node.register(rolls(1))
    node.register(bird(1))

    def in_the_middle():
        state = deployment("rolls")["TaskGroups"]["g"]
        gates = [(a["TaskStates"] or {}).get("gate", {}).get("State") for a in job_allocs("rolls") if a["JobVersion"] == 1]
        return (state["PlacedAllocs"], state["HealthyAllocs"], sorted(map(str, gates))) == (2, 1, ["dead", "running"])
    case.until(in_the_middle, PATIENCE, "the second step of the deployment of rolls")
    case.until(lambda: deployment("bird")["TaskGroups"]["g"]["HealthyAllocs"] == 1, PATIENCE, "a healthy canary")


# --- after ---

def test_the_state_is_the_same():
    compare(known(), remembered, "state")


def test_secrets_are_sealed():
    case.until(lambda: state.files_with(node, SECRETS["key"]) == [], PATIENCE, "no secret in the clear")
    for name in ("demo", "left"):
        case.equal(state.volume(node, name)["Secrets"], SECRETS)


def test_all_tasks_run_on_in_their_processes():
    for name in CROWD:
        for alloc in node.wait_running(name, COUNT, PATIENCE):
            case.equal(events(alloc), ["Received", "Task Setup", "Started"], name)
    case.equal(processes(), pids, "processes")
    all_alive(pids)
    case.equal(crash.conflicts(node), [], "tasks that ran twice at a time")


def test_what_ended_meanwhile_is_known():
    found = wait_status("ends-meanwhile", "failed")
    case.equal(exit_codes(found), [7])


def test_all_executors_answer():
    """Each task confirms a signal in its log, which still has the lines from before, as the alloc has its files."""
    allocs = [a for name in CROWD for a in job_allocs(name)]
    for alloc in allocs:
        node.do("PUT", "/v1/client/allocation/%s/signal" % alloc["ID"], {"Signal": "SIGUSR1", "Task": "t"})
    for alloc in allocs:
        node.wait_said(alloc, b"told")
        case.equal(node.logs(alloc), b"first\ntold\n")
        started = crash.alloc_data(node, alloc["ID"], "starts")
        text = node.request("GET", "/v1/client/fs/cat/%s?path=alloc/data/starts" % alloc["ID"]).text
        case.equal((len(started), text.split()), (1, started), "its file")


def test_commands_and_stats_of_tasks():
    """Commands run inside the tasks, and their resource usage is measured."""
    for name in CROWD:
        alloc = job_allocs(name)[0]["ID"]
        used = node.ask("/v1/client/allocation/%s/stats" % alloc)["Tasks"]["t"]["ResourceUsage"]["MemoryStats"]
        case.equal(used["RSS"] > 0, True, "memory that it uses: %s" % used)
        with Exec(node, alloc, ["sh", "-c", "read x; echo $x $NOMAD_ALLOC_ID; exit 7"]) as s:
            s.type(b"here\n")
            case.equal(s.end(), (b"here %s\n" % alloc.encode(), b"", {"exit_code": 7}), name)
    with Exec(node, job_allocs("writer")[0]["ID"], ["head", "-n", "1", "/data/log"]) as s:
        case.equal(s.end(), (b"line\n", b"", {}), "the volume inside the task")


def test_ends_and_restarts_are_noticed():
    for name in CROWD:
        exits, killed, asked = job_allocs(name)[:3]
        node.do("PUT", "/v1/client/allocation/%s/signal" % exits["ID"], {"Signal": "SIGUSR2", "Task": "t"})
        os.kill(pids[killed["ID"]][0][1], signal.SIGKILL)
        node.do("PUT", "/v1/client/allocation/%s/restart" % asked["ID"], {})
        for alloc, code in ((exits["ID"], 3), (killed["ID"], 137), (asked["ID"], 130)):
            wait_events(alloc, "Started", 2)
            case.equal(exit_codes(node.ask("/v1/allocation/" + alloc)), [code], name)
            case.until(lambda a=alloc: [run in pids[a] for run in processes().get(a, ())] == [False], PATIENCE, "one new process")
    case.equal(crash.conflicts(node), [], "tasks that ran twice at a time")


def test_the_batch_jobs_end():
    for name, code, status in (("succeeds", 0, "complete"), ("fails", 3, "failed")):
        open_gate(name)
        case.equal(exit_codes(wait_status(name, status)), [code], name)


def test_the_dispatched_job_ends():
    child, = children("each")
    case.equal(node.logs(job_allocs(child)[0]), b"some bytes\n")
    open_gate(child)
    wait_status(child, "complete")
    node.do("PUT", "/v1/job/each/dispatch", {"Payload": "bW9yZQo="})  # more
    other, = set(case.until(lambda: len(children("each")) == 2 and children("each"), PATIENCE, "another child")) - {child}
    node.wait_said(wait_status(other, "running"), b"more\n")
    open_gate(other)
    wait_status(other, "complete")


def test_periodic_jobs_go_on():
    before = set(children("tick"))
    case.until(lambda: len(set(children("tick")) - before) >= 2, PATIENCE, "more launches")
    child, = children("slow")
    case.equal(node.ask(job_path(child))["Status"], "running")
    open_gate(child)
    case.until(lambda: node.ask(job_path(child))["Status"] == "dead", PATIENCE, "its child to end")


def test_the_checks_go_on():
    """The time of the last result advances, and the result follows a failure and a recovery of the service."""
    began = check_result()["Timestamp"]
    case.until(lambda: (now := check_result())["Timestamp"] > began and now["Status"] == "success", PATIENCE, "another success")
    alloc, = job_allocs("web")
    fine = "%s/alloc/%s/alloc/data/fine" % (node.data, alloc["ID"])
    os.unlink(fine)
    case.until(lambda: check_result()["Status"] == "failure", PATIENCE, "the check to fail")
    with open(fine, "w", encoding="ascii"):
        pass
    case.until(lambda: check_result()["Status"] == "success", PATIENCE, "the check to pass")
    case.equal([s["AllocID"] for s in node.ask("/v1/service/web")], [alloc["ID"]], "who serves")


def test_deployments_go_on():
    """The rolling one continues with the step that waited for health, and the other's canary is promoted."""
    def step():
        open_gate("rolls")
        return deployment("rolls")["Status"] == "successful"
    case.equal(deployment("rolls")["ID"], deployments["rolls"], "the deployment")
    case.until(step, PATIENCE, "the deployment of rolls")
    case.equal([a["JobVersion"] for a in node.wait_running("rolls", 3)], [1, 1, 1])
    found = deployment("bird")
    case.equal(found["ID"], deployments["bird"], "the deployment")
    canary, = found["TaskGroups"]["g"]["PlacedCanaries"]
    node.do("POST", "/v1/deployment/promote/" + found["ID"], {"DeploymentID": found["ID"], "All": True})
    wait_deployed("bird", 1)
    case.equal([a["JobVersion"] for a in node.wait_running("bird", 2)], [1, 1])
    case.equal(processes()[canary], pids[canary], "the canary")


def test_the_stop_is_finished():
    """The task is not told again. After its end the poststop task runs, and the volume becomes free."""
    alloc = wait_status("leaver", "running")
    case.equal((alloc["DesiredStatus"], events(alloc).count("Killing")), ("stop", 1))
    case.equal(len(mounts_of("left")), 1, "its volume")
    os.kill(pids[alloc["ID"]][0][1], signal.SIGKILL)
    alloc = wait_status("leaver", "complete")
    case.equal((events(alloc).count("Started"), node.logs(alloc, "last")), (1, b"last\n"))
    case.until(lambda: not mounts_of("left"), PATIENCE, "its volume to be unmounted")
    case.until(lambda: node.request("DELETE", "/v1/volume/csi/left/delete").status == 200, PATIENCE, "the volume to be free")


def test_a_volume_stays_mounted_and_is_handed_on():
    case.equal(mounts_of("demo"), remembered_mounts, "the mounts")
    lines = written()
    case.until(lambda: written() > lines, PATIENCE, "more lines")
    node.purge("writer")
    case.until(lambda: not mounts_of("demo"), PATIENCE, "it to be unmounted")
    node.register(volumes.job("writer", "demo", "wc -l < /data/log; echo line >> /data/log; exec sleep 100000"))
    alloc = node.wait_running("writer", seconds=PATIENCE)[0]
    node.wait_said(alloc, b"\n")
    case.equal(int(node.logs(alloc)) >= lines, True, "lines that it finds")
    case.equal(len(mounts_of("demo")), 1, "mounts of the new agent")


def test_a_job_is_changed_in_place():
    before = processes()
    for name, driver in CROWD.items():
        made = crash.job(name, COUNT, driver, LISTENS, Resources={"CPU": 1, "MemoryMB": 10})
        made["Job"]["Priority"] = 70
        node.register(made)
        case.until(lambda n=name: {a["JobVersion"] for a in job_allocs(n)} == {1}, PATIENCE, "version 1 of " + name)
        node.wait_running(name, COUNT, PATIENCE)
    now = processes()
    for name in CROWD:
        case.equal([now[a["ID"]] == before[a["ID"]] for a in job_allocs(name)], [True] * COUNT, "processes of " + name)


def test_it_survives_another_restart():
    """state.db has rows of both builds now."""
    before = processes()
    killed = node.kill("supervisor")
    node.wait_process("supervisor", other_than=killed)
    node.wait_ready()
    for name in CROWD:
        node.wait_running(name, COUNT, PATIENCE)
    case.equal(processes(), before, "processes")


def test_nothing_is_left():
    for name in [j["ID"] for j in node.ask("/v1/jobs") if not j["ParentID"] and j["ID"] != "csi-local"] + ["csi-local"]:
        node.do("DELETE", job_path(name) + "?purge=true")
        if name in ("each", "slow", "tick"):
            for child in children(name):
                node.request("DELETE", job_path(child) + "?purge=true")
        case.until(lambda n=name: not [a for a in node.ask("/v1/allocations") if a["JobID"].partition("/")[0] == n], PATIENCE,
                   "allocations of %s to be gone" % name)
    crash.wait_nothing_left(node, PATIENCE)
    r = run_command(["leaks"], env={"DROVER_ADDR": "unix://" + node.socket_path})
    case.equal((r.code, r.out), (0, "no leaks\n"), r.err)
    case.equal(crash.unexplained(node), [], "what had no row")


def meanwhile():
    """While no agent runs, one task ends, and the others run on."""
    executor = next(r["executor_pid"] for r in crash.records(node).values() if r["alloc"].hex() == ended.replace("-", ""))
    with open("%s/alloc/%s/alloc/data/go" % (node.data, ended), "w", encoding="ascii"):
        pass
    case.until(lambda: not agent.arguments(executor), PATIENCE, "the executor of ends-meanwhile to end")
    all_alive(pids)


with service.Users(), Node() as node:
    start_work()
    wait_for_work()
    ended = job_allocs("ends-meanwhile")[0]["ID"]
    remembered, pids, remembered_mounts = known(), processes(), mounts_of("demo")
    deployments = {name: deployment(name)["ID"] for name in ("rolls", "bird")}
    print("upgrading an agent with %d running tasks" % sum(map(len, pids.values())), flush=True)
    node.upgrade(meanwhile)
    case.run(globals())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# timeout: 1800
# takes: 210
"""The supervisor dies before and after the commit of each row of state.db about jobs, versions, tasks, drains and landings. The result must be the
same as without a crash. Then each other process dies while the supervisor is stopped at such a step. The other rows: 3115."""
import http.client
import os
import signal
import threading

from lib import case
from lib.crash_page import page
from lib.crash_sweep import check_reached, spread
from lib.crash_walk import OF_3115, OF_3120, OF_3130, S, disturbed, events, finish, kinds, starts, wait_status, walk
from lib import api, crash

# --- cycles: each returns its result ---

def restarts(node):
    """A task fails four times and then runs, which makes more events than an alloc's row holds. It is stopped and later removed."""
    again = '[ "$(wc -l < "$NOMAD_ALLOC_DIR/data/starts")" -gt 4 ] || exit 3; exec sleep 100000'
    node.register(crash.job("fails", then=again))
    case.until(lambda: [starts(node, a) for a in node.allocs("fails")] == [5], 60, "the fifth start")
    alloc = wait_status(node, "fails", "running")[0]
    node.request("DELETE", "/v1/job/fails")
    wait_status(node, "fails", "complete")
    out = [events(node, alloc), starts(node, alloc), crash.conflicts(node),
           node.ask("/v1/allocation/" + alloc["ID"])["TaskStates"]["t"]["Restarts"]]
    finish(node, "fails")
    return out


def stages(node):
    """All stages of a batch job run once and in order; then it is garbage collected."""
    def say(name, **more):
        return api.task(name, "/bin/sh", ["-c", "echo %s >> $NOMAD_ALLOC_DIR/data/starts; %s" % (name, more.pop("then", "true"))], **more)
    made = api.job("stages", group={"RestartPolicy": crash.RESTART, "Tasks": [
        say("main"), say("early", Lifecycle={"Hook": "prestart"}), say("last", Lifecycle={"Hook": "poststop"}),
        say("side", then="exec sleep 100000", Lifecycle={"Hook": "prestart", "Sidecar": True})]})
    made["Job"]["Type"] = "batch"
    node.register(made)
    alloc = wait_status(node, "stages", "complete")[0]
    said = [name for name in crash.alloc_data(node, alloc["ID"], "starts") if name != "side"]  # it may end before it has recorded its start
    out = [said, events(node, alloc), node.ask("/v1/job/stages")["Status"]]
    case.until(lambda: node.request("PUT", "/v1/client/allocation/%s/gc" % alloc["ID"]).status in (200, 404, 409) and
               not os.path.exists("%s/alloc/%s" % (node.data, alloc["ID"])), 60, "the job to be garbage collected")
    finish(node, "stages")
    return out


QUICK = {"MaxParallel": 1, "HealthCheck": "task_states", "MinHealthyTime": S // 20, "AutoRevert": True}
# A failing task fails long before it could be healthy.
PATIENT = dict(QUICK, MinHealthyTime=1000 * S, HealthyDeadline=2000 * S, ProgressDeadline=3000 * S)


def deployed(node, name):
    return [(d["JobVersion"], d["Status"], d["StatusDescription"], d["TaskGroups"]["g"]["PlacedAllocs"],
             d["TaskGroups"]["g"]["HealthyAllocs"], d["TaskGroups"]["g"]["UnhealthyAllocs"])
            for d in node.ask("/v1/job/%s/deployments" % name)]


def wait_deployed(node, name, version, status="successful"):
    def so():
        d = node.ask("/v1/job/%s/deployment" % name)
        return d and (d["JobVersion"], d["Status"]) == (version, status) and d
    return case.until(so, 60, "version %d of %s to be %s" % (version, name, status))


def versions(node, name):
    """Returns the starts that the tasks recorded: one for each running task. A replaced task may have been stopped before it recorded its
    start."""
    found = node.allocs(name)
    live = [a for a in found if a["ClientStatus"] == "running"]
    case.until(lambda: all(starts(node, a) for a in live), 60, "the starts of " + name)
    return (sorted((a["JobVersion"], a["DesiredStatus"], a["ClientStatus"]) for a in found),
            sorted(a["Name"] for a in live), [a["Name"] for a in found if starts(node, a) > 1])


def deployments(node):
    """A version replaces another, a bad version fails, and the good one is restored."""
    def version(text, update=QUICK, then="exec sleep 100000"):
        return crash.job("web", 2, then="echo %s; %s" % (text, then), group={
            "Update": update, "RestartPolicy": dict(crash.RESTART, Attempts=0)})
    node.register(version("zero"))
    wait_deployed(node, "web", 0)
    node.register(version("one"))
    wait_deployed(node, "web", 1)
    node.register(version("two", PATIENT, "exit 3"))
    wait_deployed(node, "web", 3)
    node.wait_running("web", 2, 60)
    case.until(lambda: not [a for a in node.allocs("web") if a["DesiredStatus"] == "stop" and a["ClientStatus"] == "running"], 60,
               "the other allocs to end")
    out = [deployed(node, "web"), versions(node, "web"), crash.conflicts(node)]
    finish(node, "web")
    return out


def canaries(node):
    """A canary is placed, set healthy and promoted; the next version is failed by an operator."""
    def version(text):
        return crash.job("bird", 1, then="echo %s; exec sleep 100000" % text, group={"Update": {
            "MaxParallel": 1, "Canary": 1, "HealthCheck": "manual"}})

    def live(n):
        """Waits until n allocs run and have recorded their starts. Returns the newest."""
        return case.until(lambda: [a for a in node.allocs("bird") if a["ClientStatus"] == "running" and starts(node, a)][n - 1:],
                          60, "%d allocs" % n)

    def healthy(version, alloc):
        """Sets the health repeatedly until it is stored, because an answer may be lost."""
        def so():
            d = node.ask("/v1/job/bird/deployment")
            if d["JobVersion"] == version and d["TaskGroups"]["g"]["HealthyAllocs"] == 0:
                node.request("POST", "/v1/deployment/allocation-health/" + d["ID"], {
                    "DeploymentID": d["ID"], "HealthyAllocationIDs": [alloc["ID"]]})
            return d["TaskGroups"]["g"]["HealthyAllocs"] == 1 and d
        return case.until(so, 60, "version %d to be healthy" % version)
    node.register(version("zero"))
    healthy(0, live(1)[0])
    wait_deployed(node, "bird", 0)
    node.register(version("one"))
    d = healthy(1, live(2)[0])
    node.request("POST", "/v1/deployment/promote/" + d["ID"], {"DeploymentID": d["ID"], "All": True})
    wait_deployed(node, "bird", 1)
    case.until(lambda: [a["JobVersion"] for a in node.allocs("bird") if a["ClientStatus"] == "running"] == [1], 60, "the old allocs to end")
    node.register(version("two"))
    live(2)
    d = node.ask("/v1/job/bird/deployment")
    node.request("POST", "/v1/deployment/fail/" + d["ID"], {"DeploymentID": d["ID"]})
    wait_deployed(node, "bird", 2, "failed")
    case.until(lambda: [a["JobVersion"] for a in node.allocs("bird") if a["ClientStatus"] == "running"] == [1], 60, "the canary to end")
    out = [deployed(node, "bird"), versions(node, "bird"), crash.conflicts(node)]
    finish(node, "bird")
    return out


def drain(node):
    """All allocs are stopped by a drain, and placed again when the node is eligible."""
    node.register(crash.job("ship", 2))
    first = node.wait_running("ship", 2, 60)
    case.until(lambda: [starts(node, a) for a in first] == [1, 1], 60, "the tasks to start")
    path = "/v1/node/" + node.ask("/v1/nodes")[0]["ID"]
    node.do("PUT", path + "/drain", {"DrainSpec": {"Deadline": 10**12}, "MarkEligible": False})
    case.until(lambda: node.ask(path)["DrainStrategy"] is None and {a["ClientStatus"] for a in node.allocs("ship")} == {"complete"},
               60, "the drain to end")
    eligible = node.ask(path)["SchedulingEligibility"]
    node.do("PUT", path + "/drain", {"DrainSpec": None, "MarkEligible": True})
    second = node.wait_running("ship", 2, 60)
    case.until(lambda: [starts(node, a) for a in second] == [1, 1], 60, "the tasks to start")
    out = [eligible, node.ask(path)["SchedulingEligibility"], versions(node, "ship"),
           len({a["ID"] for a in first + second}), crash.conflicts(node)]
    finish(node, "ship")
    return out


def landing(node):
    """The node begins to land, which stops a service and lets a batch job run, and is told to stay."""
    def ask(cancel, state):
        """Repeats the request, because a killed supervisor may not have accepted it, or only its answer may be lost."""
        def so():
            if node.ask("/v1/agent/departure")["State"] == state:
                return True
            node.request("PUT", "/v1/agent/land", {"Deadline": 0, "Cancel": cancel})
            return False
        case.until(so, 60, "the node to be " + state)
    made = crash.job("work")
    made["Job"]["Type"] = "batch"
    node.register(made)
    node.register(crash.job("ship"))
    first = [node.wait_running(name, 1, 60)[0] for name in ("work", "ship")]
    case.until(lambda: [starts(node, a) for a in first] == [1, 1], 60, "the tasks to start")
    ask(False, "landing")
    case.until(lambda: {a["ClientStatus"] for a in node.allocs("ship")} == {"complete"}, 60, "the service to end")
    ask(True, "running")
    second = node.wait_running("ship", 1, 60)
    case.until(lambda: [starts(node, a) for a in second] == [1], 60, "the task to start")
    out = [[a["ID"] for a in node.allocs("work")] == [first[0]["ID"]], versions(node, "ship"), crash.conflicts(node),
           node.ask("/v1/nodes")[0]["SchedulingEligibility"]]
    case.until(lambda: node.request("DELETE", "/v1/job/work?purge=true").status in (200, 404), 60, "the batch job to be purged")
    finish(node, "ship")
    return out


def orders(node):
    """All tasks are restarted while one of them has ended: each starts once, and none before all have ended."""
    early = api.task("early", "/bin/sh", ["-c", "echo early >> $NOMAD_ALLOC_DIR/data/early"], Lifecycle={"Hook": "prestart"})
    made = crash.job("order")
    made["Job"]["TaskGroups"][0]["Tasks"].append(early)
    node.register(made)
    alloc = node.wait_running("order", 1, 60)[0]

    def began(n):
        states = node.ask("/v1/allocation/" + alloc["ID"])["TaskStates"]
        return (len(crash.alloc_data(node, alloc["ID"], "early")), starts(node, alloc)) == (n, n) and \
            (states["t"]["State"], states["early"]["State"]) == ("running", "dead")
    case.until(lambda: began(1), 60, "both to begin")

    def ordered():
        """Repeats the request only if the killed supervisor had not accepted it, because only its answer may be lost."""
        try:
            api.Node.request(node, "PUT", "/v1/client/allocation/%s/restart" % alloc["ID"], {"AllTasks": True})
        except (OSError, http.client.HTTPException):
            pass
        return "Restart Signaled" in events(node, alloc)["t"]
    case.until(ordered, 60, "the restart to be accepted")
    case.until(lambda: began(2), 60, "both to begin again")
    node.do("PUT", "/v1/client/allocation/%s/signal" % alloc["ID"], {"Task": "t", "Signal": "SIGCONT"})
    states = node.ask("/v1/allocation/" + alloc["ID"])["TaskStates"]
    out = [[a["ID"] == alloc["ID"] for a in node.allocs("order")], crash.conflicts(node), events(node, alloc)["early"],
           [e for e in events(node, alloc)["t"] if e != "Signaling"], states["t"]["Restarts"], states["early"]["Restarts"]]
    finish(node, "order")
    return out


def sticky(node):
    """A sticky disk: the next alloc gets the files of the first."""
    def version(text):
        return crash.job("disk", then='echo %s | tee -a "$NOMAD_TASK_DIR/own" >> "$NOMAD_ALLOC_DIR/data/own"; exec sleep 100000' % text,
                         group={"EphemeralDisk": {"Sticky": True, "SizeMB": 100}})

    def written(alloc, lines):
        """Waits for both files, which are written in any order."""
        def so():
            try:
                with open("%s/alloc/%s/t/local/own" % (node.data, alloc["ID"]), encoding="ascii") as f:
                    found = [f.read().split(), crash.alloc_data(node, alloc["ID"], "own")]
            except FileNotFoundError:
                return None
            return min(len(x) for x in found) >= lines and found
        return case.until(so, 60, "the lines of %d allocs" % lines)
    node.register(version("zero"))
    first = node.wait_running("disk", 1, 60)[0]
    written(first, 1)
    node.register(version("one"))
    second = case.until(lambda: [a for a in node.allocs("disk") if a["ID"] != first["ID"]], 60, "the next alloc to run")[0]
    found = written(second, 2)
    case.until(lambda: [a["ClientStatus"] for a in node.allocs("disk")] == ["complete", "running"], 60, "the first alloc to end")
    out = [found, starts(node, second), len(node.allocs("disk")), events(node, first), events(node, second)]
    finish(node, "disk")
    return out


# --- tests ---

def test_crashes_at_rows_of_tasks_and_events():
    with crash.Node(env=page.env) as node:
        walk("restarts", lambda: restarts(node), kinds("ALLOC", "RUN", "EVENT"), 12)
        walk("stages", lambda: stages(node), kinds("ALLOC", "RUN"), 8, helpers=True)
        walk("orders", lambda: orders(node), kinds("ALLOC"), 8)
        walk("sticky", lambda: sticky(node), kinds("ALLOC"), 8, helpers=True)


def test_crashes_at_rows_of_versions_and_deployments():
    with crash.Node(env=page.env) as node:
        walk("deployments", lambda: deployments(node), kinds("DEPLOYMENT", "JOB"), 12)
        walk("canaries", lambda: canaries(node), kinds("DEPLOYMENT", "JOB"), 12)


def test_crashes_at_rows_of_a_drain():
    with crash.Node(env=page.env) as node:
        walk("drain", lambda: drain(node), kinds("DRAIN"))
        walk("landing", lambda: landing(node), kinds("DEPARTURE"))


class Killer(threading.Thread):
    """Kills a process when the supervisor has stopped at the point, then lets the supervisor continue."""

    def __init__(self, node, victim):
        super().__init__()
        self.node, self.victim, self.over, self.done = node, victim, threading.Event(), False
        self.start()

    def run(self):
        while not self.over.wait(0.002):
            if page.holds():
                self.kill()
                self.done = True
                page.disarm()
                return

    def kill(self):
        if self.victim == "launcher":
            with self.node.reviving:
                self.node.process.kill()
                self.node.wait()
        elif self.victim == "executor":
            for pid in crash.executors(self.node):
                os.kill(pid, signal.SIGKILL)
        elif self.victim in self.node.processes():
            self.node.kill(self.victim)

    def end(self):
        self.over.set()
        self.join()


def test_crashes_of_other_processes_at_each_step():
    """The supervisor is stopped after a row is committed and before anything is sent, while another process is killed; then it
    continues."""
    with crash.Node(env=page.env) as node:
        def life():
            node.register(crash.job("life"))
            alloc = node.wait_running("life", 1, 60)[0]
            case.until(lambda: starts(node, alloc), 60, "the task to start")
            out = [[a["ID"] == alloc["ID"] for a in node.allocs("life")], crash.conflicts(node)]
            finish(node, "life")
            return out
        before = {p: page.passed(p) for p in crash.ROWS}
        wanted = life()
        passes = {p: page.passed(p) - before[p] for p in crash.ROWS if p.endswith("_COMMITTED")}
        kills = {}
        for victim in ("exec-helper", "mount-helper", "file-helper", "heartbeat", "executor", "launcher"):
            for point in kinds("JOB", "EVAL", "ALLOC", "RUN"):
                for skip in spread(passes.get(point, 0), 6):
                    killer = Killer(node, victim)
                    try:
                        disturbed("life, " + victim, point, skip, life, wanted, hold=True)
                    finally:
                        killer.end()
                    kills[victim] = kills.get(victim, 0) + killer.done
        print("    " + ", ".join("%s %d" % pair for pair in kills.items()))
        case.equal([v for v, n in kills.items() if n < 4], [], "whether each process was killed often enough: %s" % kills)


def test_each_row_was_reached():
    check_reached([p for p in crash.ROWS if p not in OF_3115 + OF_3120 + OF_3130])


case.run(globals())

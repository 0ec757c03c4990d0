#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# timeout: 1800
"""The supervisor dies before and after each row of state.db is committed, of every kind there is: what comes out in the end is
what came out undisturbed. Then each other process dies while the supervisor stands at such a step."""
import base64
import datetime
import http.client
import os
import signal
import sys
import threading
import time
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import build_dir, case  # noqa: E402

CRASH = os.path.join(build_dir(), "crash")
if not os.path.exists(CRASH + "/drover-supervisor"):
    case.skip("no build with crash points (make CRASH=1 BUILD=%s)" % CRASH)
os.environ["DROVER_BUILD"] = CRASH
from lib import api, binary, cluster, crash, nomad_server  # noqa: E402

S = 10**9
page = crash.Page()
died = {}


def kinds(*names):
    return [p for p in crash.ROWS if p[len("ROW_"):].removesuffix("_COMMITTED") in names]


def spread(n, most):
    """Of n passes so many: the first, the last, and between."""
    return range(n) if n <= most else [i * (n - 1) // (most - 1) for i in range(most)]


def disturbed(what, point, skip, cycle, wanted, **arm):
    page.arm(point, skip, **arm)
    try:
        case.equal(cycle(), wanted, "outcome")
        if not page.armed():
            died[point] = died.get(point, 0) + 1
    except (AssertionError, nomad_server.Refusal) as e:
        raise AssertionError("%s, %s after %d passes (%s): %s" % (what, point, skip, "not yet hit" if page.armed() else "hit",
                                                                  e)) from None
    finally:
        page.disarm()


# Of whose death nothing may be seen either. An executor's is its task's; the launcher's is all the others'.
HELPERS = [p for p in crash.POINTS if p.startswith(("SUP_AFTER_SEND", "SUP_BETWEEN", "EXEC_", "MNT_AFTER_ALLOC", "MNT_AFTER_LOG"))]


def walk(what, cycle, own, most=100, others=2, helpers=False):
    """Each pass of the rows that the cycle is about, `most` of them, a few of all the others that it comes by, and one of each
    point of the helpers if they are to be killed too. It is gone through undisturbed first: what came out of it then is what
    has to come out each time."""
    before = {p: page.passed(p) for p in crash.POINTS}
    wanted = cycle()
    passes = {p: page.passed(p) - before[p] for p in crash.POINTS}
    for point in crash.ROWS:
        for skip in spread(passes[point], most if point in own else others):
            disturbed(what, point, skip, cycle, wanted)
    for point in [p for p in HELPERS if helpers and passes[p]]:
        disturbed(what, point, passes[point] // 2, cycle, wanted)


def finish(node, name):
    """Nothing of the job and its children stays."""
    for job in node.ask("/v1/jobs", prefix=name):
        node.purge(urllib.parse.quote(job["ID"], safe=""))
    case.until(lambda: not [j for j in node.ask("/v1/jobs", prefix=name)], 60, name + " to be gone")
    crash.wait_nothing_left(node, 60)
    case.equal(crash.unexplained(node), [], "what had no row")


def events(node, alloc):
    """All of them, also those that only state.db has."""
    found = node.ask("/v1/client/allocation/%s/events" % alloc["ID"])
    return {task: [e["Type"] for e in found[task]] for task in found}


def starts(node, alloc):
    return len(crash.alloc_data(node, alloc["ID"], "starts"))


def wait_status(node, name, status, n=1):
    """Until the job has so many allocs, all of this client status. Those, oldest first."""
    def so():
        found = node.ask("/v1/job/%s/allocations" % urllib.parse.quote(name, safe=""))
        return len(found) == n and {a["ClientStatus"] for a in found} == {status} and found
    return case.until(so, 60, "%d allocations of %s to be %s" % (n, name, status))


# --- cycles: each returns what came out ---

def restarts(node):
    """A task fails four times and then runs: more events than an alloc's row holds. It is stopped, and forgotten later."""
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
    """Every stage of a batch job's life, each once and in its order; then its garbage is collected."""
    def say(name, **more):
        return api.task(name, "/bin/sh", ["-c", "echo %s >> $NOMAD_ALLOC_DIR/data/starts; %s" % (name, more.pop("then", "true"))], **more)
    made = api.job("stages", group={"RestartPolicy": crash.RESTART, "Tasks": [
        say("main"), say("early", Lifecycle={"Hook": "prestart"}), say("last", Lifecycle={"Hook": "poststop"}),
        say("side", then="exec sleep 100000", Lifecycle={"Hook": "prestart", "Sidecar": True})]})
    made["Job"]["Type"] = "batch"
    node.register(made)
    alloc = wait_status(node, "stages", "complete")[0]
    said = [name for name in crash.alloc_data(node, alloc["ID"], "starts") if name != "side"]  # it may end before it has said it
    out = [said, events(node, alloc), node.ask("/v1/job/stages")["Status"]]
    case.until(lambda: node.request("PUT", "/v1/client/allocation/%s/gc" % alloc["ID"]).status in (200, 404, 409) and
               not os.path.exists("%s/alloc/%s" % (node.data, alloc["ID"])), 60, "it to be collected")
    finish(node, "stages")
    return out


QUICK = {"MaxParallel": 1, "HealthCheck": "task_states", "MinHealthyTime": S // 20, "AutoRevert": True}
# What fails has failed long before it could be healthy.
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
    """Who runs has said so, once. Who was replaced may have been told to end before it came to that."""
    found = node.allocs(name)
    live = [a for a in found if a["ClientStatus"] == "running"]
    case.until(lambda: all(starts(node, a) for a in live), 60, "the starts of " + name)
    return (sorted((a["JobVersion"], a["DesiredStatus"], a["ClientStatus"]) for a in found),
            sorted(a["Name"] for a in live), [a["Name"] for a in found if starts(node, a) > 1])


def deployments(node):
    """A version takes the place of another, a bad one fails, and the good one comes back."""
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
               "the others to end")
    out = [deployed(node, "web"), versions(node, "web"), crash.conflicts(node)]
    finish(node, "web")
    return out


def canaries(node):
    """One is placed, said to be healthy, promoted; the next version is failed by an operator."""
    def version(text):
        return crash.job("bird", 1, then="echo %s; exec sleep 100000" % text, group={"Update": {
            "MaxParallel": 1, "Canary": 1, "HealthCheck": "manual"}})

    def live(n):
        """The newest of so many that run and have said so."""
        return case.until(lambda: [a for a in node.allocs("bird") if a["ClientStatus"] == "running" and starts(node, a)][n - 1:],
                          60, "%d allocs" % n)

    def healthy(version, alloc):
        """Said until it is known: the answer may have been lost."""
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
    case.until(lambda: [a["JobVersion"] for a in node.allocs("bird") if a["ClientStatus"] == "running"] == [1], 60, "the old to end")
    node.register(version("two"))
    live(2)
    d = node.ask("/v1/job/bird/deployment")
    node.request("POST", "/v1/deployment/fail/" + d["ID"], {"DeploymentID": d["ID"]})
    wait_deployed(node, "bird", 2, "failed")
    case.until(lambda: [a["JobVersion"] for a in node.allocs("bird") if a["ClientStatus"] == "running"] == [1], 60, "the canary to end")
    out = [deployed(node, "bird"), versions(node, "bird"), crash.conflicts(node)]
    finish(node, "bird")
    return out


def launches(node):
    """A periodic job that has one time: one child, which runs once. Whoever came too late for it tries with another."""
    while True:
        at = datetime.datetime.fromtimestamp(int(time.time()) + 3, datetime.timezone.utc)
        made = crash.job("at", then="exit 0")
        made["Job"].update(Type="batch", Periodic={"Spec": at.strftime("%S %M %H %d %m * %Y")})
        node.register(made)
        if node.ask("/v1/job/at")["SubmitTime"] < at.timestamp() * S:
            break
        node.purge("at")
    child = "at/periodic-%d" % at.timestamp()
    case.until(lambda: node.ask("/v1/jobs", prefix="at/"), 60, "the launch")
    alloc = wait_status(node, child, "complete")[0]
    out = [[j["ID"] == child for j in node.ask("/v1/jobs", prefix="at/")], starts(node, alloc), events(node, alloc),
           node.ask("/v1/jobs", prefix="at")[0]["JobSummary"]["Children"]]
    finish(node, "at")
    return out


def dispatches(node):
    """Twice with one token: one child, which has its payload."""
    then = 'cp "$NOMAD_TASK_DIR/in" "$NOMAD_ALLOC_DIR/data/payload"'
    made = crash.job("calc", then=then, driver="raw_exec", DispatchPayload={"File": "in"})
    made["Job"].update(Type="batch", ParameterizedJob={})
    node.register(made)
    path = "/v1/job/calc/dispatch?idempotency_token=" + os.urandom(8).hex()
    body = {"Payload": base64.b64encode(b"what is dispatched").decode()}
    child = node.do("PUT", path, body)["DispatchedJobID"]
    case.equal(node.do("PUT", path, body)["DispatchedJobID"], child, "the same token")
    alloc = wait_status(node, child, "complete")[0]
    out = [len(node.ask("/v1/jobs", prefix="calc/")), starts(node, alloc), events(node, alloc),
           crash.alloc_data(node, alloc["ID"], "payload")]
    finish(node, "calc")
    return out


def drain(node):
    """All are stopped, and placed again when the node takes work."""
    node.register(crash.job("ship", 2))
    first = node.wait_running("ship", 2, 60)
    case.until(lambda: [starts(node, a) for a in first] == [1, 1], 60, "their start")
    path = "/v1/node/" + node.ask("/v1/nodes")[0]["ID"]
    node.do("PUT", path + "/drain", {"DrainSpec": {"Deadline": 10**12}, "MarkEligible": False})
    case.until(lambda: node.ask(path)["DrainStrategy"] is None and {a["ClientStatus"] for a in node.allocs("ship")} == {"complete"},
               60, "the drain to end")
    eligible = node.ask(path)["SchedulingEligibility"]
    node.do("PUT", path + "/drain", {"DrainSpec": None, "MarkEligible": True})
    second = node.wait_running("ship", 2, 60)
    case.until(lambda: [starts(node, a) for a in second] == [1, 1], 60, "their start")
    out = [eligible, node.ask(path)["SchedulingEligibility"], versions(node, "ship"),
           len({a["ID"] for a in first + second}), crash.conflicts(node)]
    finish(node, "ship")
    return out


def orders(node):
    """All tasks are restarted while one of them is over: each once, and none before all have ended."""
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
        """Again only if the agent that died over it has not taken it: its answer may have been lost."""
        try:
            api.Node.request(node, "PUT", "/v1/client/allocation/%s/restart" % alloc["ID"], {"AllTasks": True})
        except (OSError, http.client.HTTPException):
            pass
        return "Restart Signaled" in events(node, alloc)["t"]
    case.until(ordered, 60, "the order")
    case.until(lambda: began(2), 60, "both to begin again")
    node.do("PUT", "/v1/client/allocation/%s/signal" % alloc["ID"], {"Task": "t", "Signal": "SIGCONT"})
    states = node.ask("/v1/allocation/" + alloc["ID"])["TaskStates"]
    out = [[a["ID"] == alloc["ID"] for a in node.allocs("order")], crash.conflicts(node), events(node, alloc)["early"],
           [e for e in events(node, alloc)["t"] if e != "Signaling"], states["t"]["Restarts"], states["early"]["Restarts"]]
    finish(node, "order")
    return out


def sticky(node):
    """What an alloc has written, for the next one."""
    def version(text):
        return crash.job("disk", then='echo %s | tee -a "$NOMAD_TASK_DIR/own" >> "$NOMAD_ALLOC_DIR/data/own"; exec sleep 100000' % text,
                         group={"EphemeralDisk": {"Sticky": True, "SizeMB": 100}})

    def written(alloc, lines):
        """Both files: neither is the last to be written."""
        def so():
            try:
                with open("%s/alloc/%s/t/local/own" % (node.data, alloc["ID"]), encoding="ascii") as f:
                    found = [f.read().split(), crash.alloc_data(node, alloc["ID"], "own")]
            except FileNotFoundError:
                return None
            return min(len(x) for x in found) >= lines and found
        return case.until(so, 60, "what %d of them write" % lines)
    node.register(version("zero"))
    first = node.wait_running("disk", 1, 60)[0]
    written(first, 1)
    node.register(version("one"))
    second = case.until(lambda: [a for a in node.allocs("disk") if a["ID"] != first["ID"]], 60, "the next one")[0]
    found = written(second, 2)
    case.until(lambda: [a["ClientStatus"] for a in node.allocs("disk")] == ["complete", "running"], 60, "the first to end")
    out = [found, starts(node, second), len(node.allocs("disk")), events(node, first), events(node, second)]
    finish(node, "disk")
    return out


def volume(node):
    """It is made, written by two jobs one after the other, and deleted."""
    wish = {"ID": "data", "Name": "data", "PluginID": "local", "RequestedCapacityMin": 1 << 20, "RequestedCapabilities": [
        {"AccessMode": "single-node-writer", "AttachmentMode": "file-system"}]}
    case.until(lambda: node.request("PUT", "/v1/volume/csi/data/create", {"Volumes": [wish]}).status in (200, 409), 60, "the volume")
    found = []
    for name in ("writer", "reader"):
        node.register(crash.job(name, then="echo %s >> /d/who; cp /d/who $NOMAD_ALLOC_DIR/data/who; exec sleep 100000" % name,
                                driver="exec", group={"Volumes": {"v": {
                                    "Name": "v", "Type": "csi", "Source": "data", "AccessMode": "single-node-writer",
                                    "AttachmentMode": "file-system"}}}, VolumeMounts=[{"Volume": "v", "Destination": "/d"}]))
        alloc = node.wait_running(name, 1, 60)[0]
        case.until(lambda a=alloc: crash.alloc_data(node, a["ID"], "who"), 60, "what it wrote")
        found += [crash.alloc_data(node, alloc["ID"], "who"), starts(node, alloc), events(node, alloc)]
        node.purge(name, 60)
    case.until(lambda: node.request("DELETE", "/v1/volume/csi/data/delete").status in (200, 404), 60, "the volume to be deleted")
    return [found, node.ask("/v1/volumes", type="csi"), crash.unexplained(node)]


# --- tests ---

def test_tasks_and_their_events():
    with crash.Node(env=page.env) as node:
        walk("restarts", lambda: restarts(node), kinds("ALLOC", "RUN", "EVENT"), 12)
        walk("stages", lambda: stages(node), kinds("ALLOC", "RUN"), 8, helpers=True)
        walk("orders", lambda: orders(node), kinds("ALLOC"), 8)
        walk("sticky", lambda: sticky(node), kinds("ALLOC"), 8, helpers=True)


def test_versions_that_replace_each_other():
    with crash.Node(env=page.env) as node:
        walk("deployments", lambda: deployments(node), kinds("DEPLOYMENT", "JOB"), 12)
        walk("canaries", lambda: canaries(node), kinds("DEPLOYMENT", "JOB"), 12)


def test_children_are_launched_once():
    with crash.Node(env=page.env) as node:
        walk("launches", lambda: launches(node), kinds("LAUNCH"))
        walk("dispatches", lambda: dispatches(node), kinds("JOB", "EVAL"), 8)


def test_the_node_is_drained():
    with crash.Node(env=page.env) as node:
        walk("drain", lambda: drain(node), kinds("DRAIN"))


def test_volumes():
    store = case.directory()
    with crash.Node(env=page.env) as node:
        node.register(api.job("plugin", binary("csi-local"), ["-root", store], group={"RestartPolicy": crash.RESTART},
                              CSIPluginConfig={"ID": "local", "Type": "monolith", "MountDir": "/csi"}))
        case.until(lambda: [p["NodesHealthy"] for p in node.ask("/v1/plugins", type="csi")] == [1], 60, "a plugin")
        walk("volume", lambda: volume(node), kinds("VOLUME", "MOUNT"), 12)
        finish(node, "plugin")


def test_the_first_start_of_a_node():
    def first():
        with crash.Node(env=page.env, disk=True) as node:
            found = node.ask("/v1/nodes")[0]
            node.kill("supervisor")
            again = node.ask("/v1/nodes")[0]
            return [found["ID"] == again["ID"], found["Status"], crash.unexplained(node)]
    walk("first start", first, kinds("NODE", "DISK", "INDEX"))


def test_a_node_of_servers():
    with cluster.servers() as servers, cluster.node_of(servers, kind=crash.Node, env=page.env) as node:
        me = servers.wait_node()["ID"]
        service = {"Name": "web", "PortLabel": "8080", "Provider": "nomad", "Checks": [], "Tags": []}

        def cycle():
            """Metadata, and an alloc with a service and a token that starts and stops."""
            text = os.urandom(8).hex()

            def told():
                """Again, where its answer was lost."""
                try:
                    servers.call_node(me, "NodeMeta.Apply", {"NodeID": me, "Meta": {"text": text}})
                except nomad_server.Refusal:
                    pass
                return (servers.node(me)["Meta"] or {}).get("text") == text
            case.until(told, 60, "the metadata")
            made = crash.job("far", then='wc -l < "$NOMAD_SECRETS_DIR/nomad_far.jwt" > "$NOMAD_ALLOC_DIR/data/token"; exec sleep 100000',
                             group={"Services": [service]}, Identities=[{"Name": "far", "Audience": ["far"], "File": True}])
            alloc = servers.run_job(made["Job"], me)[0]
            found = servers.wait_alloc(alloc, ["running"], 60)
            case.until(lambda: [s["AllocID"] for s in servers.services()] == [alloc] and
                       crash.alloc_data(node, alloc, "token"), 60, "its service and token")
            token = crash.alloc_data(node, alloc, "token")
            n = starts(node, {"ID": alloc})
            servers.stop_alloc(alloc)
            found = servers.wait_alloc(alloc, ["complete"], 60)
            case.until(lambda: servers.services() == [], 60, "its service to go")
            servers.remove_alloc(alloc)
            crash.wait_nothing_left(node, 60)
            return [n, token, cluster.events(found), crash.unexplained(node), servers.node(me)["Status"]]
        walk("servers", cycle, kinds("NODE_META", "NOMAD_JOB", "SERVICE"), 3)


def test_a_node_joins_servers():
    def joins():
        """It registers once as a node that nobody knows, and is the same one from then on."""
        with cluster.servers() as servers, cluster.node_of(servers, kind=crash.Node, env=page.env) as node:
            me = servers.wait_node("ready", 60)["ID"]
            known = servers.last_call()
            node.kill("supervisor")
            servers.wait_call("Node.Register", known, 60)
            return [list(servers.nodes()) == [me], node.ask("/v1/agent/self")["stats"]["client"]["node_id"] == me]
    walk("joins", joins, kinds("NOMAD_NODE"))


class Killer(threading.Thread):
    """Kills somebody once the supervisor stands at the point, then lets it go on."""

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


def test_whoever_dies_at_each_step():
    """The supervisor stands where a row is committed and nothing sent, while another process is killed; then it goes on."""
    with crash.Node(env=page.env) as node:
        def life():
            node.register(crash.job("life"))
            alloc = node.wait_running("life", 1, 60)[0]
            case.until(lambda: starts(node, alloc), 60, "its start")
            out = [[a["ID"] == alloc["ID"] for a in node.allocs("life")], crash.conflicts(node)]
            finish(node, "life")
            return out
        before = {p: page.passed(p) for p in crash.ROWS}
        wanted = life()
        passes = {p: page.passed(p) - before[p] for p in crash.ROWS if p.endswith("_COMMITTED")}
        kills = {}
        for victim in ("exec-helper", "mount-helper", "heartbeat", "executor", "launcher"):
            for point in kinds("JOB", "EVAL", "ALLOC", "RUN"):
                for skip in spread(passes.get(point, 0), 6):
                    killer = Killer(node, victim)
                    try:
                        disturbed("life, " + victim, point, skip, life, wanted, hold=True)
                    finally:
                        killer.end()
                    kills[victim] = kills.get(victim, 0) + killer.done
        print("    " + ", ".join("%s %d" % pair for pair in kills.items()))
        case.equal([v for v, n in kills.items() if n < 4], [], "who was hardly killed: %s" % kills)


def test_each_row_was_reached():
    for point in crash.ROWS:
        print("    %-28s killed %3d times, passed %5d times" % (point, died.get(point, 0), page.passed(point)))
    case.equal([p for p in crash.ROWS if not died.get(p)], [], "rows at which nobody died")


case.run(globals())

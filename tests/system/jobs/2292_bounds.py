#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Limits: requests beyond them get one error message, the oldest of kept objects are removed, and nothing else is lost. Objects that take
long to create are written into state.db while no agent runs, as copies of what the agent had written."""
import fcntl
import json
import os
import socket
import sqlite3
import struct
import urllib.parse
import uuid

from lib import agent, api, case
from lib.stages import task

CHILDREN, DEAD, CLOSED, EVENTS, VERSIONS, STREAMS, TASKS, MOUNTS = 6000, 1000, 1000, 500, 6, 80, 256, 32
KEYS, VARIABLES = 1000, 4000
SIOCSIFADDR = 0x8916
ADDED = ["127.1.%d.%d" % (i // 100, 1 + i % 100) for i in range(300)]
NEVER = [{"LTarget": "${attr.kernel.name}", "Operand": "=", "RTarget": "none"}]


def path(job_id, more=""):
    return "/v1/job/" + urllib.parse.quote(job_id, safe="") + more


def edit(change):
    """Stops the agent, changes state.db, and starts the agent again."""
    node.kill_launcher()
    db = sqlite3.connect(node.data + "/state/state.db")
    with db:
        change(db)
    db.close()
    node.start()
    node.wait_ready()


def copy_job(db, job, names):
    """Copies the rows of a job and of its evaluations under other names."""
    rows = db.execute("SELECT namespace, version, current, json FROM job WHERE id = ?", (job,)).fetchall()
    evals = [(id_text, json.loads(text)) for id_text, text in db.execute("SELECT id, json FROM eval").fetchall()]
    evals = [e for _, e in evals if e["JobID"] == job]
    for name in names:
        db.executemany("INSERT INTO job(namespace, id, version, current, json) VALUES(?, ?, ?, ?, ?)",
                       [(ns, name, version, current, text.replace('"%s"' % job, '"%s"' % name)) for ns, version, current, text in rows])
        for e in evals:
            made = uuid.uuid4()
            db.execute("INSERT INTO eval(id, json) VALUES(?, ?)", (made.bytes, json.dumps({**e, "ID": str(made), "JobID": name})))


def parent(name, **more):
    made = api.job(name, "/bin/true")
    made["Job"].update(Type="batch", ParameterizedJob={}, **more)
    return made


def dispatch(name):
    return node.do("PUT", path(name, "/dispatch"), {})["DispatchedJobID"]


def children_of(name):
    return node.ask(path(name, "/summary"))["Children"]


def wait_children(name, **wanted):
    case.until(lambda: children_of(name) == wanted, 60, "children of %s to be %s" % (name, wanted))


def purge(*names):
    """Purges jobs without waiting for each."""
    for name in names:
        node.do("DELETE", path(name) + "?purge=true")


def test_children_of_one_job_are_limited():
    """They wait for a node that does not exist. One more is refused, but accepted when one has been removed."""
    node.register(parent("many", Constraints=NEVER))
    node.register(api.job("beside"))
    beside = node.wait_running("beside")[0]["ID"]
    first = dispatch("many")
    wait_children("many", Pending=1, Running=0, Dead=0)
    names = ["%s%04d" % (first[:-4], i) for i in range(CHILDREN)]
    names = [n for n in names if n != first][:CHILDREN - 1]
    edit(lambda db: copy_job(db, first, names))
    wait_children("many", Pending=CHILDREN, Running=0, Dead=0)
    node.refused(429, 'job "many" has 6000 children, which is the limit: wait until some have ended', "PUT",
                 path("many", "/dispatch"), {})
    wait_children("many", Pending=CHILDREN, Running=0, Dead=0)
    case.equal([a["ID"] for a in node.wait_running("beside")], [beside], "the alloc of another job")
    purge(names[0])
    case.until(lambda: node.request("GET", path(names[0])).status == 404, 60, "one to be removed")
    dispatch("many")
    wait_children("many", Pending=CHILDREN, Running=0, Dead=0)

    def forget(db):
        db.execute("DELETE FROM job WHERE id LIKE 'many%'")
        db.execute("DELETE FROM eval WHERE json LIKE '%\"many%'")
    edit(forget)
    case.equal([j["ID"] for j in node.ask("/v1/jobs")], ["beside"])
    case.equal([a["ID"] for a in node.wait_running("beside")], [beside], "the alloc of another job")
    node.purge("beside")


def test_the_newest_dead_children_are_kept():
    node.register(parent("old"))
    first = dispatch("old")
    wait_children("old", Pending=0, Running=0, Dead=1)
    names = sorted("%s%04d" % (first[:-4], i) for i in range(DEAD))
    names = [n for n in names if n != first][:DEAD - 1]
    edit(lambda db: copy_job(db, first, names))
    wait_children("old", Pending=0, Running=0, Dead=DEAD)
    made = [dispatch("old") for _ in range(3)]
    case.until(lambda: all(node.ask(path(j))["Status"] == "dead" for j in made), 60, "the new children to end")
    wait_children("old", Pending=0, Running=0, Dead=DEAD)
    left = {c["ID"] for c in node.ask("/v1/jobs", prefix="old/")}
    case.equal((len(left), set(made) <= left, "old" in [j["ID"] for j in node.ask("/v1/jobs")]), (DEAD, True, True))
    edit(lambda db: db.execute("DELETE FROM job WHERE id LIKE 'old/%' AND id NOT IN (SELECT job FROM alloc)"))
    for job in node.ask("/v1/jobs", prefix="old"):
        purge(job["ID"])
    case.until(lambda: not node.ask("/v1/jobs", prefix="old"), 60, "the oldest to be removed")


def test_the_newest_evaluations_are_kept():
    """The oldest closed evaluations are removed; a blocked one stays, however old it is."""
    made = api.job("waits")
    made["Job"]["Constraints"] = NEVER
    node.register(made)
    node.register(api.job("closed"))
    node.wait_running("closed")

    def more(db):
        _, text = next(r for r in db.execute("SELECT id, json FROM eval") if json.loads(r[1])["JobID"] == "closed")
        for _ in range(CLOSED + 100):
            name = uuid.uuid4()
            db.execute("INSERT INTO eval(id, json) VALUES(?, ?)", (name.bytes, json.dumps({**json.loads(text), "ID": str(name)})))
    edit(more)
    last = node.register(api.job("closed", Env={"A": "1"}))["EvalID"]
    node.wait_evaluation(last)
    found = node.ask("/v1/evaluations")
    case.equal([e["JobID"] for e in found if e["Status"] == "blocked"], ["waits"])
    case.equal(last in [e["ID"] for e in found], True, "the newest evaluations")
    case.equal(len([e for e in found if e["Status"] == "complete"]) <= CLOSED, True, "%d evaluations" % len(found))
    purge("waits")
    node.purge("closed")


def test_the_newest_events_of_a_task_are_kept():
    alloc = node.register(api.job("long", group={"Tasks": [task("main")]})) and node.wait_running("long")[0]

    def more(db):
        text = '{"Type": "Signaling", "Time": %d, "DisplayMessage": "number %d", "Details": {}}'
        db.executemany("INSERT INTO event(alloc, task, json) VALUES(?, 'main', ?)",
                       [(uuid.UUID(alloc["ID"]).bytes, text % (i, i)) for i in range(EVENTS)])
    edit(more)
    for n in range(1, 4):  # four events each: with the first three, five more than the ten that are kept in the alloc
        # A restarted agent answers requests a moment before it has recovered the task.
        case.until(lambda: node.request("PUT", "/v1/client/allocation/%s/restart" % alloc["ID"], {"TaskName": "main"}).status == 200,
                   60, "the restart to be accepted")
        case.until(lambda n=n: (lambda s: (s["State"], s["Restarts"]))(node.ask("/v1/allocation/" + alloc["ID"])["TaskStates"]["main"]) ==
                   ("running", n), 60, "restart %d" % n)
    found = node.ask("/v1/client/allocation/%s/events" % alloc["ID"])["main"]
    case.equal(len(found), EVENTS + 10)
    case.equal([e["Type"] for e in found[EVENTS - 5:]], ["Received", "Task Setup", "Started", "Restart Signaled", "Terminated"] + [
        "Restarting", "Started"] + ["Restart Signaled", "Terminated", "Restarting", "Started"] * 2)
    case.equal(found[0]["DisplayMessage"], "number 5", "the oldest kept event")
    node.purge("long")


def test_the_newest_versions_and_deployments_are_kept():
    """The newest versions of a job are kept, and the newest stable one, however old it is."""
    def version(text):
        return api.job("web", "/bin/sh", ["-c", "echo %s; exec sleep 1000" % text], group={
            "Update": {"MaxParallel": 1, "HealthCheck": "manual"}})
    node.register(version("zero"))
    good = node.wait_running("web")[0]
    d = node.ask("/v1/job/web/deployment")
    node.do("POST", "/v1/deployment/allocation-health/" + d["ID"], {"DeploymentID": d["ID"], "HealthyAllocationIDs": [good["ID"]]})
    case.until(lambda: node.ask("/v1/job/web/deployment")["Status"] == "successful", 60, "the deployment of the first version")
    for n in range(1, 13):
        node.register(version(str(n)))
        case.until(lambda n=n: [a["JobVersion"] for a in node.allocs("web") if a["ClientStatus"] == "running"] == [n], 60, "version %d" % n)
    found = node.ask("/v1/job/web/versions")["Versions"]
    known = {a["JobVersion"] for a in node.allocs("web")}
    case.equal([v["Version"] for v in found[:VERSIONS]], list(range(12, 12 - VERSIONS, -1)))
    case.equal((found[-1]["Version"], found[-1]["Stable"]), (0, True), "the stable version")
    case.equal({v["Version"] for v in found} - set(range(7, 13)) - {0} <= known, True, "whether other kept versions have allocations")
    case.equal([v["JobVersion"] for v in node.ask("/v1/job/web/deployments")], list(range(12, 12 - VERSIONS, -1)))
    node.refused(404, "version", "PUT", "/v1/job/web/revert", {"JobID": "web", "JobVersion": 99})
    node.do("PUT", "/v1/job/web/revert", {"JobID": "web", "JobVersion": 0})
    alloc = case.until(lambda: [a for a in node.allocs("web") if a["ClientStatus"] == "running" and a["JobVersion"] == 13], 60, "the reverted job to run")[0]
    node.wait_said(alloc, b"zero")
    node.purge("web")


def test_followers_of_the_event_stream_are_limited():
    """One more is refused; other requests are still answered, and a new follower is accepted when another leaves."""
    held = []
    try:
        for _ in range(STREAMS):
            stream = api.Connection(node, case.LEAST_S)
            held.append(stream)
            stream.request("GET", "/v1/event/stream")
            case.equal(stream.getresponse().status, 200)
        node.refused(503, "%d " % STREAMS, "GET", "/v1/event/stream")
        node.register(api.job("beside"))
        node.wait_running("beside")
    finally:
        for stream in held:
            stream.close()

    def room():
        stream = api.Connection(node, case.LEAST_S)
        try:
            stream.request("GET", "/v1/event/stream")
            return stream.getresponse().status == 200
        finally:
            stream.close()
    case.until(room, 60, "another follower to be accepted")
    node.purge("beside")


def events(alloc, name="t"):
    return "; ".join(e["Type"] + ": " + e["DisplayMessage"] for e in node.ask("/v1/allocation/" + alloc["ID"])["TaskStates"][name]["Events"])


def failed(name):
    return case.until(lambda: [a for a in node.allocs(name) if a["ClientStatus"] == "failed"], 60, name + " to fail")[0]


def test_tasks_of_a_group_and_mounts_of_a_task_are_limited():
    small = {"CPU": 1, "MemoryMB": 10}
    node.register(api.job("beside", Resources=small))
    node.wait_running("beside")
    node.register(api.job("tasks", group={"Tasks": [api.task("t%d" % i, "/bin/true", Resources=small) for i in range(TASKS + 1)]}))
    case.contains(events(failed("tasks"), "t0"), "the group has 257 tasks, 256 are allowed")
    node.purge("tasks")
    node.register(api.job("mounts", driver="exec", Resources=small, VolumeMounts=[
        {"Volume": "v", "Destination": "/m%d" % i} for i in range(MOUNTS + 1)], group={"Volumes": {
            "v": {"Name": "v", "Type": "host", "Source": "src"}}}))
    case.contains(events(failed("mounts")), "task t has 33 volume mounts, 32 are allowed")
    node.purge("mounts")
    case.equal([a["ClientStatus"] for a in node.allocs("beside")], ["running"])
    node.purge("beside")


def test_metadata_of_the_node_is_limited():
    def change(status, part, meta):
        answer = node.request("POST", "/v1/client/metadata", {"Meta": meta})
        case.equal((answer.status, part in answer.text), (status, True), answer.text[:200])

    change(400, "that would be 1001 keys of metadata; the maximum is 1000", {"k%d" % i: "v" for i in range(KEYS + 1)})
    change(400, 'metadata "long" is longer than 4096 bytes', {"a": "b", "long": "x" * 4097})
    case.equal(node.ask("/v1/client/metadata")["Dynamic"], {}, "metadata after the refusals")
    change(200, '"k999"', {"k%d" % i: "v" for i in range(KEYS)})
    change(400, "that would be 1001 keys", {"more": "v"})
    # A removed key does not count, unless it hides one of the configuration and must be remembered.
    change(200, "", {"k0": "x" * 4096, "k1": None, "new": "v", "of-configuration": None, "k2": None})
    change(400, "that would be 1001 keys", {"more": "v"})
    found = node.ask("/v1/client/metadata")
    case.equal((len(found["Dynamic"]), len(found["Dynamic"]["k0"]), found["Dynamic"]["new"], found["Dynamic"]["of-configuration"]),
               (KEYS, 4096, "v", None))
    case.equal([key for key in ("k1", "k2", "of-configuration") if key in found["Meta"]], [], "keys that were removed")


def test_many_addresses_of_the_node_are_found():
    """All addresses are found, more than a table of fixed size had."""
    me = node.ask("/v1/node/" + node.ask("/v1/nodes")[0]["ID"])
    found = [a["Address"] for n in me["NodeResources"]["NodeNetworks"] for a in n["Addresses"] or [] if a["Alias"] == "loop"]
    case.equal(sorted(set(ADDED) - set(found)), [], "addresses that are missing")


def test_variables_of_a_task_are_limited():
    """All of many variables are set, the task's value overrides that of the group, and references are resolved."""
    env = {"V%d" % i: "%d" % i for i in range(VARIABLES)}
    script = 'env | grep -c "^V[0-9]*=" >$NOMAD_ALLOC_DIR/n; echo $V0 $V%d $NOMAD_META_key $LAST >$NOMAD_ALLOC_DIR/v; sleep 1000' % (VARIABLES - 1)
    node.register(api.job("env", "/bin/sh", ["-c", script], Env=dict(env, LAST="${NOMAD_META_key}"), Meta={"key": "of-task"},
                          group={"Meta": {"key": "of-group"}}))
    alloc = node.wait_running("env", seconds=120)[0]["ID"]
    place = "%s/alloc/%s/alloc/" % (node.data, alloc)
    case.until(lambda: os.path.exists(place + "v") and open(place + "v", encoding="ascii").read().endswith("\n"), 120, "the files that the task writes")
    case.equal(open(place + "n", encoding="ascii").read(), "%d\n" % VARIABLES)
    case.equal(open(place + "v", encoding="ascii").read(), "0 %d of-task of-task\n" % (VARIABLES - 1))
    node.purge("env")
    node.register(api.job("env", Env={"V%d" % i: "x" for i in range(50000)}))
    case.contains(events(failed("env")), "task t has more than 4096 variables, arguments and files")
    node.purge("env")


def test_no_leaks_are_left():
    case.equal(node.ask("/v1/agent/leaks"), [], "leaks")
    case.equal(node.ask("/v1/jobs"), [])


def add_addresses():
    """Adds addresses to the loopback interface of this test's network namespace."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        for i, address in enumerate(ADDED):
            fcntl.ioctl(s, SIOCSIFADDR, struct.pack("16sHH4s8x", b"lo:%d" % i, socket.AF_INET, 0, socket.inet_aton(address)))


TOP = case.directory()
add_addresses()
os.mkdir(TOP + "/src")
CONFIG = agent.config_args(
    'client {\n  memory_total_mb = 100000\n  cpu_total_compute = 100000\n  host_network "loop" { interface = "lo" }\n  meta { of-configuration = "v" }\n  host_volume "src" { path = "%s/src" }\n}\n'
            'plugin "raw_exec" { config { enabled = true } }\n' % TOP)

with api.Node(CONFIG) as node:
    case.run(globals())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# takes: 23
"""Periodic jobs with the embedded server: which are launched at which times, each once."""
import datetime
import json
import re
import sqlite3
import time
import urllib.parse

from lib import api, case
from lib.fake_api import run_command

EACH_SECOND = "* * * * * * *"
IDLE = {"Pending": 0, "Running": 0, "Dead": 0}


def periodic(name, spec, script="true", **block):
    job = api.job(name, "/bin/sh", ["-c", script])
    job["Job"].update(Type="batch", Periodic=dict({"Spec": spec} if spec else {}, **block))
    return job


def path(job_id, more=""):
    return "/v1/job/" + urllib.parse.quote(job_id, safe="") + more


def children(name):
    """Returns the ids of the children, oldest first."""
    return sorted(j["ID"] for j in node.ask("/v1/jobs", prefix=name + "/periodic-"))


def counts(name):
    return node.ask("/v1/jobs", prefix=name)[0]["JobSummary"]["Children"]


def wait_children(name, n):
    return case.until(lambda: len(children(name)) >= n and children(name), 60, "%d children of %s" % (n, name))


def wait_status(job_id, status):
    case.until(lambda: node.ask(path(job_id))["Status"] == status, 60, "%s to be %s" % (job_id, status))


def wait_launches(n):
    """Waits for that many more children of a job that is launched each second: then other jobs with the same times have had theirs too."""
    known = len(children("witness"))
    wait_children("witness", known + n)


def purge(*names):
    for name in names:
        node.do("DELETE", path(name) + "?purge=true")
        for child in children(name):
            node.do("DELETE", path(child) + "?purge=true")
    case.until(lambda: not [j for j in node.ask("/v1/jobs") if j["ID"].partition("/")[0] in names], 60, "the jobs to be removed")


def edit(*statements):
    """Stops the agent, changes state.db, and starts the agent again."""
    node.kill_launcher()
    db = sqlite3.connect(node.data + "/state/state.db", isolation_level=None)
    for change in statements:
        change(db)
    db.close()
    node.start()
    node.wait_ready()


def test_a_job_is_launched_at_its_times():
    answer = node.register(periodic("tick", EACH_SECOND, "echo $NOMAD_JOB_ID $NOMAD_JOB_PARENT_ID"))
    case.equal(answer["EvalID"], "")
    found = wait_children("tick", 2)
    for child in found[:2]:
        case.equal(bool(re.fullmatch(r"tick/periodic-\d{10}", child)), True, child)
    job = node.ask(path(found[0]))
    case.equal((job["Name"], job["ParentID"], job["Periodic"], job["Type"]), (found[0], "tick", None, "batch"))
    case.equal(node.ask(path(found[0], "/evaluations"))[-1]["TriggeredBy"], "periodic-job")
    wait_status(found[0], "dead")
    alloc = node.ask(path(found[0], "/allocations"))[0]
    case.equal((alloc["ClientStatus"], node.logs(alloc).decode()), ("complete", found[0] + " tick\n"))
    stub = node.ask("/v1/jobs", prefix="tick")[0]
    case.equal((stub["Periodic"], stub["Status"], stub["JobSummary"]["Summary"]["g"]["Complete"]), (True, "running", 0))
    case.equal(counts("tick")["Dead"] >= 1, True)
    case.equal(node.allocs("tick"), [])
    purge("tick")


def test_a_job_with_several_expressions():
    node.register(periodic("some", None, Specs=["@yearly", EACH_SECOND], TimeZone="Europe/Berlin"))
    wait_children("some", 1)
    purge("some")


def test_a_job_that_is_stopped_or_disabled_is_not_launched():
    for name in ("stopped", "disabled", "witness"):
        node.register(periodic(name, EACH_SECOND))
    wait_children("stopped", 1)
    wait_children("disabled", 1)
    node.do("DELETE", "/v1/job/stopped")
    node.register(periodic("disabled", EACH_SECOND, Enabled=False))
    known = children("stopped"), children("disabled")
    wait_launches(3)
    case.equal((children("stopped"), children("disabled")), known)
    case.equal((node.ask("/v1/job/stopped")["Status"], node.ask("/v1/job/disabled")["Status"]), ("dead", "running"))
    for name in ("stopped", "disabled"):
        node.refused(400, "not periodic, not enabled, or stopped", "PUT", path(name, "/periodic/force"))
    node.register(periodic("stopped", EACH_SECOND))
    wait_children("stopped", len(known[0]) + 1)
    purge("stopped", "disabled", "witness")


def test_prohibit_overlap_skips_launches():
    node.register(periodic("alone", EACH_SECOND, "sleep 1000", ProhibitOverlap=True))
    node.register(periodic("witness", EACH_SECOND))
    first = wait_children("alone", 1)[0]
    wait_status(first, "running")
    wait_launches(3)
    case.equal(children("alone"), [first])
    node.do("PUT", path("alone", "/periodic/force"))
    case.equal(len(children("alone")), 2, "a launch by an operator")
    for child in children("alone"):
        node.do("DELETE", path(child))
    wait_children("alone", 3)
    purge("alone", "witness")


def test_an_operator_launches_a_job():
    node.register(periodic("forced", "@yearly", "echo forced"))
    case.equal(counts("forced"), IDLE)
    answer = node.do("PUT", path("forced", "/periodic/force"))
    node.wait_evaluation(answer["EvalID"])
    found = children("forced")
    case.equal(len(found), 1)
    case.equal(node.evaluation(answer["EvalID"])["JobID"], found[0])
    wait_status(found[0], "dead")
    case.equal(counts("forced"), {"Pending": 0, "Running": 0, "Dead": 1})
    node.refused(400, "not periodic, not enabled, or stopped", "PUT", path(found[0], "/periodic/force"))
    node.refused(404, "job not found", "PUT", "/v1/job/none/periodic/force")
    purge("forced")


def test_a_missed_launch_happens_once():
    node.register(periodic("missed", "@yearly", "echo late"))
    node.register(periodic("not-missed", "@yearly"))
    node.register(periodic("busy", "@yearly", "sleep 1000", ProhibitOverlap=True))
    node.do("PUT", path("busy", "/periodic/force"))
    wait_status(children("busy")[0], "running")
    began = int(time.time())
    old = began - 366 * 86400
    edit(lambda db: [case.equal(db.execute("UPDATE meta SET value = ? WHERE key = ?", (str(old), "local_launch/default/" + name)
                                           ).rowcount, 1, name) for name in ("missed", "busy")])
    found = wait_children("missed", 1)
    case.equal(int(found[0].rpartition("-")[2]) >= began, True, "whether its time is that of the start: " + found[0])
    wait_status(found[0], "dead")
    case.equal((len(children("not-missed")), len(children("busy"))), (0, 1))
    for _ in range(2):
        node.kill("supervisor")
        node.wait_ready()
        case.equal(children("missed"), found)
    purge("missed", "not-missed", "busy")
    edit(lambda db: case.equal(db.execute("SELECT count(*) FROM meta WHERE key LIKE 'local_launch/%'").fetchone()[0], 0, "rows of launch times"))


def test_launches_continue_after_kills():
    node.register(periodic("goes-on", EACH_SECOND))
    for _ in range(3):
        wait_children("goes-on", len(children("goes-on")) + 1)
        node.kill("supervisor")
        node.wait_ready()
    wait_children("goes-on", len(children("goes-on")) + 2)
    purge("goes-on")


def test_a_child_is_removed_hours_after_its_end():
    node.register(periodic("kept", "@yearly"))
    node.do("PUT", path("kept", "/periodic/force"))
    old = wait_children("kept", 1)[0]
    wait_status(old, "dead")
    alloc = node.ask(path(old, "/allocations"))[0]

    def put_back(db):
        """Sets all times of the child back by five hours."""
        before = (datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(hours=5)).strftime("%Y-%m-%dT%H:%M:%SZ")
        row = db.execute("SELECT rowid, json FROM alloc WHERE job = ?", (old,)).fetchone()
        text = re.sub(r'("FinishedAt":)"[^"]*"', r'\1"%s"' % before, row[1])
        case.contains(text, before)
        db.execute("UPDATE alloc SET json = ? WHERE rowid = ?", (text, row[0]))
        job = json.loads(db.execute("SELECT json FROM job WHERE id = ?", (old,)).fetchone()[0])
        job["SubmitTime"] -= 5 * 3600 * 10**9
        db.execute("UPDATE job SET json = ? WHERE id = ?", (json.dumps(job), old))
    edit()
    case.equal(children("kept"), [old], "the child before its time")
    edit(put_back)
    case.until(lambda: not children("kept"), 60, "the child to be removed")
    case.until(lambda: alloc["ID"] not in [a["ID"] for a in node.ask("/v1/allocations")], 60, "allocations of the child")
    case.equal((node.ask("/v1/job/kept")["Status"], counts("kept")), ("running", IDLE))
    purge("kept")


def test_a_plan_has_the_next_launch():
    plan = node.do("PUT", "/v1/job/planned/plan", dict(periodic("planned", "0 0 1 1 *"), Diff=True))
    year = datetime.datetime.now(datetime.timezone.utc).year + 1
    case.equal((plan["NextPeriodicLaunch"], plan["Annotations"]["DesiredTGUpdates"]), ("%d-01-01T00:00:00Z" % year, {}))


def test_invalid_periodic_jobs_are_refused():
    def no(part, spec=None, kind="batch", **block):
        job = periodic("odd", spec, **block)
        job["Job"]["Type"] = kind
        node.refused(400, part, "POST", "/v1/jobs", job)
    no('"61" is not a valid minute', "61 * * * *")
    no('cron expression "0 0 30 2 *" matches no future time', "0 0 30 2 *")
    no("matches no future time", "0 0 1 1 * 1999")
    no("only @yearly", "@every 5m")
    no('time zone "Mars/Base" is unknown', "@daily", TimeZone="Mars/Base")
    no('time zone "../../../etc/passwd" is unknown', "@daily", TimeZone="../../../etc/passwd")
    no("give cron or crons, not both", "@daily", Specs=["@daily"])
    no("the cron expression is missing")
    no('expressions of type "at" are not supported', "@daily", SpecType="at")
    no("only batch and sysbatch jobs", "@daily", kind="service")
    node.register(periodic("odd", "@yearly"))
    plain = periodic("odd", "@yearly")
    plain["Job"]["Periodic"] = None
    node.refused(400, "cannot become periodic, or stop being periodic", "POST", "/v1/jobs", plain)
    purge("odd")


def test_the_command_shows_and_launches_periodic_jobs():
    def say(*words, code=0):
        r = run_command(words, env={"DROVER_ADDR": "unix://" + node.socket_path})
        case.equal(r.code, code, "%s: %s%s" % (" ".join(words), r.out, r.err))
        return r.out + r.err
    node.register(periodic("shown", "0 0 1 1 *", "sleep 1000", TimeZone="Asia/Kathmandu"))
    out = say("job", "status", "shown")
    case.equal(bool(re.search(r"Next launch          = 20\d\d-12-31T18:15:00Z \(in \d+h", out)), True, out)
    case.contains(say("job", "periodic", "force", "shown"), "is running")
    out = say("job", "status", "shown")
    case.contains(out, children("shown")[0])
    case.contains(say("job", "status"), "batch/periodic")
    case.contains(say("job", "periodic", "stop", "shown", code=1), 'unknown command "job periodic stop"')
    case.contains(say("job", "periodic", "force", children("shown")[0], code=1), "it is not periodic")
    say("job", "stop", "shown")
    case.equal("Next launch" in say("job", "status", "shown"), False)
    purge("shown")


with api.Node() as node:
    case.run(globals())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Parameterized jobs with the embedded server: dispatches with payload and meta, and those that are refused."""
import base64
import json
import os
import re
import urllib.parse

from lib import api, case
from lib.fake_api import run_command

LIMIT = 16384


def parent(name, script="cat local/in; env | grep NOMAD_", driver="raw_exec", file="in", **block):
    job = api.job(name, "/bin/sh", ["-c", script], driver=driver, DispatchPayload={"File": file})
    job["Job"].update(Type="batch", ParameterizedJob=block, Meta={"who": "nobody", "kept": "yes"})
    return job


def path(job_id, more=""):
    return "/v1/job/" + urllib.parse.quote(job_id, safe="") + more


def dispatch(name, payload=b"", query="", **body):
    if payload:
        body["Payload"] = base64.b64encode(payload).decode()
    return node.do("PUT", path(name, "/dispatch") + query, body)


def wait_done(job_id, status="complete"):
    return case.until(lambda: [a for a in node.ask(path(job_id, "/allocations")) if a["ClientStatus"] == status], 60,
                      "%s to be %s" % (job_id, status))[0]


def wait_gone(prefix):
    case.until(lambda: not node.ask("/v1/jobs", prefix=prefix) and
               not [a for a in node.ask("/v1/allocations") if a["JobID"].startswith(prefix)], 60, prefix + " to be removed")


def purge(name):
    """Purges the parent and all its children."""
    for job in node.ask("/v1/jobs", prefix=name):
        node.do("DELETE", path(job["ID"]) + "?purge=true")
    wait_gone(name)


def children(name):
    return node.ask("/v1/jobs", prefix=name)[0]["JobSummary"]["Children"]


def test_only_dispatched_children_run():
    answer = node.register(parent("calc", MetaOptional=["who", "some-what"]))
    case.equal((answer["EvalID"], answer["EvalCreateIndex"]), ("", 0), "evaluations of the parent")
    case.equal(node.ask("/v1/job/calc")["Status"], "running")
    stub = node.ask("/v1/jobs", prefix="calc")[0]
    case.equal((stub["ParameterizedJob"], stub["Periodic"], stub["Status"]), (True, False, "running"))
    case.equal(node.allocs("calc"), [])
    made = dispatch("calc", b"one\0two", Meta={"who": "me"})
    case.equal(bool(re.fullmatch(r"calc/dispatch-\d+-[0-9a-f]{8}", made["DispatchedJobID"])), True, made["DispatchedJobID"])
    node.wait_evaluation(made["EvalID"])
    child = node.ask(path(made["DispatchedJobID"]))
    case.equal([child[k] for k in ("Name", "ParentID", "Dispatched", "Type", "Meta")],
               [made["DispatchedJobID"], "calc", True, "batch", {"who": "me", "kept": "yes"}])
    alloc = wait_done(made["DispatchedJobID"])
    said = node.logs(alloc)
    case.contains(said, b"one\0two")
    for line in ("NOMAD_META_who=me", "NOMAD_META_WHO=me", "NOMAD_META_kept=yes", "NOMAD_META_some_what=",
                 "NOMAD_JOB_PARENT_ID=calc", "NOMAD_JOB_ID=" + made["DispatchedJobID"]):
        case.equal(line.encode() in said.splitlines(), True, line)
    case.until(lambda: children("calc") == {"Pending": 0, "Running": 0, "Dead": 1}, 60, "the summary of the parent")
    case.equal(node.ask("/v1/jobs", prefix="calc/")[0]["ParameterizedJob"], False, "the summary of the child")
    purge("calc")


def test_the_payload_is_a_file_of_the_tasks_user_at_its_start():
    script = "cat /local/in/deep/payload; stat -c %a.%U /local/in /local/in/deep/payload; id -un"
    for payload in (b"x", b"\x7f\x00" * (LIMIT // 2)):
        job = parent("file", script, driver="exec", file="in/deep/payload")
        job["Job"]["TaskGroups"][0]["Tasks"][0]["User"] = "nobody"
        node.register(job)
        found = wait_done(dispatch("file", payload)["DispatchedJobID"])
        case.equal(node.logs(found) == payload + b"755.nobody\n600.nobody\nnobody\n", True, repr(node.logs(found)[-80:]))
        purge("file")


def test_the_payload_is_restored_at_a_restart():
    job = parent("again", 'cat local/in; echo more >>local/in; [ -f "$NOMAD_ALLOC_DIR/been" ] || { touch "$NOMAD_ALLOC_DIR/been"; exit 1; }')
    job["Job"]["TaskGroups"][0]["RestartPolicy"] = {"Attempts": 1, "Interval": 10**12, "Delay": 10**7, "Mode": "fail"}
    node.register(job)
    found = wait_done(dispatch("again", b"as it was\n")["DispatchedJobID"])
    case.equal(node.logs(found), b"as it was\n" * 2)
    purge("again")


def test_the_payload_is_not_written_through_a_link():
    """At the second start a link replaces the directory of the file: the start fails, and nothing is written through the link."""
    job = parent("linked", 'rm -r local/in; ln -s "$NOMAD_ALLOC_DIR/data" local/in; exit 1', file="in/payload")
    job["Job"]["TaskGroups"][0]["RestartPolicy"] = {"Attempts": 1, "Interval": 10**12, "Delay": 10**7, "Mode": "fail"}
    node.register(job)
    found = wait_done(dispatch("linked", b"secret")["DispatchedJobID"], "failed")
    events = [(e["Type"], e["DisplayMessage"]) for e in found["TaskStates"]["t"]["Events"]]
    case.equal([kind for kind, _ in events].count("Started"), 1, events)
    case.equal([kind for kind, _ in events].count("Driver Failure"), 1, events)
    case.equal(os.listdir("%s/alloc/%s/alloc/data" % (node.data, found["ID"])), [])
    purge("linked")


def test_dispatches_that_the_parent_does_not_allow_are_refused():
    def no(part, name, **body):
        node.refused(400, part, "PUT", path(name, "/dispatch"), body)
    some = base64.b64encode(b"some").decode()
    node.register(parent("wants", Payload="required", MetaRequired=["a", "b"], MetaOptional=["c"]))
    no("Payload is not provided but required", "wants", Meta={"a": "1", "b": ""})
    no('"b" is missing', "wants", Payload=some, Meta={"a": "1"})
    no('unpermitted metadata keys: "d"', "wants", Payload=some, Meta={"a": "1", "b": "2", "d": ""})
    no("Payload: expected base64", "wants", Payload="!", Meta={"a": "1", "b": "2"})
    no("Meta.a: expected a string", "wants", Payload=some, Meta={"a": 1, "b": "2"})
    no("Payload exceeds maximum size; 16385 > 16384", "wants", Meta={"a": "1", "b": "2"},
       Payload=base64.b64encode(b"x" * (LIMIT + 1)).decode())
    no("Job ID does not match", "wants", JobID="other")
    no("a job's id must have 1 to 255", "wants", Payload=some, Meta={"a": "1", "b": ""}, IdPrefixTemplate="a b")
    case.equal(children("wants"), {"Pending": 0, "Running": 0, "Dead": 0})
    made = dispatch("wants", b"some", Meta={"a": "", "b": ""}, IdPrefixTemplate="night")["DispatchedJobID"]
    case.equal(bool(re.fullmatch(r"wants/dispatch-night-\d+-[0-9a-f]{8}", made)), True, made)
    no("is not a parameterized job", made)
    node.register(parent("nothing", Payload="forbidden"))
    no("Payload provided but forbidden", "nothing", Payload=some)
    node.do("DELETE", "/v1/job/nothing")
    no('Specified job "nothing" is stopped', "nothing")
    node.refused(404, "job not found", "PUT", "/v1/job/none/dispatch", {})
    for name in ("wants", "nothing"):
        purge(name)


def test_invalid_parameterized_jobs_are_refused_and_a_parent_can_become_normal():
    def no(part, **change):
        job = parent("odd")
        job["Job"].update(change)
        node.refused(400, part, "POST", "/v1/jobs", job)
    no("only batch and sysbatch jobs", Type="service")
    no('not "some"', ParameterizedJob={"Payload": "some"})
    no('"k" is both in meta_required and in meta_optional', ParameterizedJob={"MetaRequired": ["k"], "MetaOptional": ["k"]})
    no("cannot be registered as dispatched", Dispatched=True)
    no("has at most 200 characters", ID="x" * 201)
    for file in ("../x", "/x", "a//b", ".x", "x/.."):
        job = parent("odd", file=file)
        node.refused(400, "cannot be a file in the task's directory local", "POST", "/v1/jobs", job)
    node.register(parent("odd"))
    no("cannot become parameterized, or stop being parameterized", ParameterizedJob=None)
    purge("odd")


def test_an_idempotency_token_creates_only_one_child():
    node.register(parent("once", "cat local/in"))
    first = dispatch("once", b"1", "?idempotency_token=t1")
    again = dispatch("once", b"1", "?idempotency_token=t1")
    other = dispatch("once", b"1", "?idempotency_token=t2")
    case.equal((again["DispatchedJobID"], again["EvalID"]), (first["DispatchedJobID"], ""))
    case.equal(other["DispatchedJobID"] != first["DispatchedJobID"], True)
    node.kill("supervisor")
    node.wait_ready()
    case.equal(dispatch("once", b"1", "?idempotency_token=t1")["DispatchedJobID"], first["DispatchedJobID"], "the child of the token after a restart")
    purge("once")


def test_children_outlive_their_parent_and_a_restart():
    node.register(parent("outlived", "echo begins; sleep 1000"))
    made = dispatch("outlived")["DispatchedJobID"]
    alloc = wait_done(made, "running")
    node.wait_said(alloc, b"begins")
    node.do("DELETE", "/v1/job/outlived")
    case.equal(node.ask("/v1/job/outlived")["Status"], "dead")
    case.equal(node.ask(path(made))["Status"], "running", "status of the child of a stopped parent")
    node.do("DELETE", "/v1/job/outlived?purge=true")
    case.equal(node.request("GET", "/v1/job/outlived").status, 404)
    node.kill("supervisor")
    node.wait_ready()
    case.equal(node.ask(path(made))["Status"], "running", "status of the child of a removed parent")
    node.register(parent("outlived"))
    case.equal(children("outlived"), {"Pending": 0, "Running": 1, "Dead": 0})
    node.do("DELETE", path(made))
    case.until(lambda: children("outlived") == {"Pending": 0, "Running": 0, "Dead": 1}, 60, "the child to end")
    purge("outlived")


def test_the_command_job_dispatch():
    def say(*words, code=0, stdin=None):
        r = run_command(words, env={"DROVER_ADDR": "unix://" + node.socket_path}, stdin=stdin)
        case.equal(r.code, code, "%s: %s%s" % (" ".join(words), r.out, r.err))
        return r.out + r.err
    job = parent("said", "cat local/in; echo; echo $NOMAD_META_a $NOMAD_META_b; sleep 1000", MetaRequired=["a"], MetaOptional=["b", "c"])
    case.contains(say("job", "run", "-", stdin=json.dumps(job).encode()), 'Job "said" is registered')
    for way, words, stdin in (("stdin", ("-",), b"from stdin"), ("file", (os.path.join(node.data, "../in"),), None), ("none", (), None)):
        if way == "file":
            with open(words[0], "w", encoding="ascii") as f:
                f.write("from a file")
        out = say("job", "dispatch", "-meta", "a=1=2", "-meta=b=" + way, "-id-prefix-template", way, "said", *words, stdin=stdin)
        child = re.search(r"Dispatched job (said/dispatch-%s-\d+-[0-9a-f]{8})\n" % way, out).group(1)
        alloc = wait_done(child, "running")
        wanted = {"stdin": "from stdin", "file": "from a file", "none": ""}[way] + "\n1=2 " + way
        node.wait_said(alloc, wanted.encode())
        case.contains(say("job", "status", child), "Parent               = said\n")
    out = say("job", "status", "said")
    for part in ("Payload              = optional", "Meta required        = a\n", "Meta optional        = b, c\n", "Children", child):
        case.contains(out, part)
    case.contains(say("job", "status"), "batch/parameterized")
    case.contains(say("job", "dispatch", "-meta", "x", "said", code=1), "-meta must be KEY=VALUE")
    case.contains(say("job", "dispatch", "said", code=1), '"a" is missing')
    case.contains(say("job", "dispatch", "said", "-", code=1, stdin=b"x" * (LIMIT + 1)), "larger than 16384 bytes")
    case.contains(say("job", "dispatch", "said", "/none", code=1), "open /none")
    first = say("job", "dispatch", "-detach", "-meta", "a=", "-idempotency-token", "t/1", "said")
    again = say("job", "dispatch", "-detach", "-meta", "a=", "-idempotency-token", "t/1", "said")
    case.equal(re.search(r"Dispatched job (\S+)", again).group(1), re.search(r"Dispatched job (\S+)", first).group(1))
    case.contains(say("job", "stop", "-purge", "said"), 'Job "said" is stopped and purged')
    purge("said")


with api.Node() as node:
    case.run(globals())

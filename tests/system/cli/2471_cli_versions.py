#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Versions of a job from the command: their differences, their tags, the way back, a stopped job that is started again; promotion."""
import json

from lib import api, case
from lib.fake_api import run_command

S = 10**9


def drover(*words, code=0):
    r = run_command(words, env={"DROVER_ADDR": "unix://" + node.socket_path})
    case.equal((r.code, r.err.count("\n") if code else 0), (code, 1 if code else 0), "drover %s: %s%s" % (" ".join(words), r.out, r.err))
    return r.out + r.err


def register(text, **more):
    node.register(api.job("web", "/bin/sh", ["-c", "echo %s; exec sleep 1000" % text], **more))


def versions():
    return {v["Version"]: v for v in node.ask("/v1/job/web/versions")["Versions"]}


def test_versions_are_listed_and_compared():
    for text in ("one", "two", "three"):
        register(text, count=0)
    out = drover("job", "history", "web")
    case.equal([line.split()[0] for line in out.splitlines()], ["Version", "2", "1", "0"])
    case.contains(out, "current")
    # With the version before each; the oldest has none.
    out = drover("job", "history", "-p", "web")
    case.equal((out.count("Version  "), out.count("+/- Job: \"web\"")), (3, 2))
    case.contains(out, '"echo two; exec sleep 1000" => "echo three; exec sleep 1000"')
    case.contains(out, '"echo one; exec sleep 1000" => "echo two; exec sleep 1000"')
    out = drover("job", "history", "-p", "-version", "2", "-diff-version", "0", "web")
    case.contains(out, '"echo one; exec sleep 1000" => "echo three; exec sleep 1000"')
    case.equal(out.count("Version  "), 1)
    out = drover("job", "history", "-full", "-version", "1", "web")
    case.contains(out, '"echo two; exec sleep 1000"')
    case.equal(json.loads(drover("job", "history", "-json", "-version", "1", "web"))["Version"], 1)
    case.equal(len(json.loads(drover("job", "history", "-json", "-p", "web"))["Diffs"]), 2)
    for words, part in ((("-diff-tag", "x"), "needs -p"), (("-p", "-diff-tag", "x", "-diff-version", "1"), "exclude each other"),
                        (("-p", "-diff-tag", "x"), 'tag "x" not found'), (("-version", "9"), "no version 9")):
        case.contains(drover("job", "history", *words, "web", code=1), part)


def test_versions_get_tags():
    case.contains(drover("job", "tag", "apply", "-name", "newest", "web"), 'Version 2 of job "web" has the tag "newest"')
    drover("job", "tag", "apply", "-name", "gold", "-description", "the good one", "-version", "0", "we")
    case.equal((versions()[0]["VersionTag"]["Name"], versions()[0]["VersionTag"]["Description"]), ("gold", "the good one"))
    case.contains(drover("job", "history", "web"), "gold")
    case.contains(drover("job", "history", "-version", "0", "web"), "the good one")
    case.contains(drover("job", "history", "-p", "-diff-tag", "gold", "-version", "2", "web"), "echo one")
    case.contains(drover("job", "tag", "apply", "-name", "gold", "web", code=1), "already exists on version 0")
    case.contains(drover("job", "tag", "apply", "web", code=1), "-name is missing")
    case.contains(drover("job", "tag", "unset", "-name", "silver", "web", code=1), 'tag "silver" not found')
    drover("job", "tag", "unset", "-name", "newest", "web")
    case.equal(versions()[2]["VersionTag"], None)


def test_a_job_is_rolled_back_to_a_tag():
    drover("job", "revert", "web", "gold")
    case.equal(node.ask("/v1/job/web")["Version"], 3)
    case.contains(json.dumps(node.ask("/v1/job/web")), "echo one")
    case.equal(versions()[3]["VersionTag"], None)
    drover("job", "revert", "web", "1")
    case.contains(json.dumps(node.ask("/v1/job/web")), "echo two")
    case.contains(drover("job", "revert", "web", "silver", code=1), 'no version of job "web" has the tag "silver"')


def test_a_stopped_job_is_started_again():
    register("four")
    node.wait_running("web")
    case.contains(drover("job", "start", "web", code=1), "is not stopped")
    drover("job", "stop", "web")
    case.contains(drover("job", "start", "web"), "1 of 1 allocation(s) running")
    node.wait_running("web")
    case.equal((node.ask("/v1/job/web")["Stop"], versions()[0]["VersionTag"]["Name"]), (False, "gold"))
    case.contains(drover("start", "web", code=1), "is not stopped")
    node.purge("web")


def test_canaries_of_a_job_are_promoted():
    case.contains(drover("job", "promote", "web", code=1), 'no job "web" exists')
    update = {"Update": {"MaxParallel": 1, "Canary": 1, "HealthCheck": "task_states", "MinHealthyTime": S // 10}}
    register("one", group=update)
    node.wait_running("web")
    case.until(lambda: node.ask("/v1/job/web/deployment")["Status"] == "successful", 60, "the first deployment")
    register("two", group=update)
    case.until(lambda: node.ask("/v1/job/web/deployment")["TaskGroups"]["g"]["HealthyAllocs"] == 1, 60, "a healthy canary")
    case.contains(drover("job", "promote", "-group", "none", "web", code=1), "no canaries to promote")
    case.contains(drover("job", "promote", "-group", "g", "web"), "successful")
    case.equal([a["JobVersion"] for a in node.wait_running("web")], [1])
    node.register(api.job("plain", count=0))
    case.contains(drover("job", "promote", "plain", code=1), "has no deployment")


with api.Node() as node:
    case.run(globals())

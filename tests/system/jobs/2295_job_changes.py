#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rolling a job back to an older version, and scaling: by the API and by the command."""
import json

from lib import api, case
from lib.fake_api import run_command


def drover(*words, code=0):
    r = run_command(words, env={"DROVER_ADDR": "unix://" + node.socket_path})
    case.equal(r.code, code, "drover %s: %s%s" % (" ".join(words), r.out, r.err))
    return r


def said(name, text):
    """Waits until the newest running alloc of the job has written this text. It may replace an older one at this moment."""
    case.until(lambda: text in node.logs(node.wait_running(name)[0]).split(), 20, text.decode())


def echo(name, text, **more):
    return api.job(name, "/bin/sh", ["-c", "echo %s; sleep 1000" % text], **more)


def test_a_job_is_rolled_back_to_an_older_version():
    node.register(echo("web", "zero"))
    said("web", b"zero")
    node.register(echo("web", "one"))
    said("web", b"one")
    drover("job", "revert", "web", "0")
    said("web", b"zero")
    job = node.ask("/v1/job/web")
    case.equal((job["Version"], job["Stop"]), (2, False))
    node.refused(400, "can't revert to current version", "POST", "/v1/job/web/revert", {"JobID": "web", "JobVersion": 2})
    node.refused(404, 'job "web" has no version 9', "POST", "/v1/job/web/revert", {"JobID": "web", "JobVersion": 9})
    node.refused(409, "Current job has version 2; enforcing version 1", "POST", "/v1/job/web/revert",
                 {"JobID": "web", "JobVersion": 0, "EnforcePriorVersion": 1})
    node.refused(400, "no number JobVersion", "POST", "/v1/job/web/revert", {"JobVersion": "0"})
    node.refused(404, "job not found", "POST", "/v1/job/none/revert", {"JobVersion": 0})
    case.contains(drover("job", "revert", "web", "-1", code=1).err, "-1")
    case.contains(drover("job", "revert", "web", "9", code=1).err, "has no version 9")
    node.do("DELETE", "/v1/job/web")
    rows = [line.split() for line in drover("job", "history", "web").out.splitlines()]
    case.equal([r[0] for r in rows], ["Version", "3", "2", "1", "0"])
    case.equal(rows[1][-3:], ["current,", "stopped", "-"])
    case.equal(len(json.loads(drover("job", "history", "-json", "web").out)["Versions"]), 4)
    drover("job", "revert", "web", "1")
    said("web", b"one")
    node.purge("web")


def test_a_version_whose_volume_was_removed_is_not_placed():
    with_volume = echo("vol", "zero")
    with_volume["Job"]["TaskGroups"][0]["Volumes"] = {"v": {"Type": "host", "Source": "data"}}
    node.register(with_volume)
    node.register(echo("vol", "one"))
    node.wait_running("vol")
    node.do("POST", "/v1/job/vol/revert", {"JobVersion": 0})
    ev = case.until(lambda: node.ask("/v1/job/vol")["StatusDescription"], 20, "why it is not placed")
    case.contains(ev, "missing host volume data")
    node.purge("vol")


def test_a_group_is_scaled():
    node.register(api.job("many", count=2))
    before = {a["ID"] for a in node.wait_running("many", 2)}
    drover("job", "scale", "many", "4")
    allocs = node.wait_running("many", 4)
    case.equal(before <= {a["ID"] for a in allocs}, True, "allocs that ran before")
    scale = node.ask("/v1/job/many/scale")
    case.equal((scale["JobID"], scale["JobStopped"]), ("many", False))
    case.equal([scale["TaskGroups"]["g"][k] for k in ("Desired", "Placed", "Running")], [4, 4, 4])
    answer = node.do("POST", "/v1/job/many/scale", {"Count": 1, "Target": {"Group": "g"}})
    case.equal(node.wait_evaluation(answer["EvalID"])["TriggeredBy"], "job-scaling")
    node.wait_running("many", 1)
    drover("job", "scale", "many", "g", "0")
    case.until(lambda: node.ask("/v1/job/many")["Status"] == "dead", 20, "its end")
    case.contains(drover("job", "scale", "many", "h", "1", code=1).err, 'task group "h" does not exist')
    case.contains(drover("job", "scale", "many", "x", code=1).err, "must be a number")
    node.refused(400, "Count: expected a number", "POST", "/v1/job/many/scale", {"Count": -1})
    node.refused(400, "may not be above 10000", "POST", "/v1/job/many/scale", {"Count": 10001})
    node.do("DELETE", "/v1/job/many")
    node.refused(400, "is stopped", "POST", "/v1/job/many/scale", {"Count": 1})
    node.purge("many")


with api.Node() as node:
    case.run(globals())

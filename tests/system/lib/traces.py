# SPDX-License-Identifier: Apache-2.0
"""Looks for secrets where nobody must find them.

    traces.find(node, [b"a password"], "job")    # ["the log has b'a password'"]

The node's configuration has traces.AUDIT, because its audit log is read too.
"""
import base64
import json
import os
import urllib.parse

from . import api, case

AUDIT = "audit { enabled = true }\n"


def forms(mark):
    return {mark, base64.b64encode(mark), mark.hex().encode(), urllib.parse.quote(mark, safe="").encode()}


def read(path):
    """Returns what the file has; nothing if it is no file, or no longer there."""
    try:
        with open(path, "rb", opener=lambda p, flags: os.open(p, flags | os.O_NONBLOCK | os.O_NOFOLLOW)) as f:
            return f.read()
    except OSError:
        return b""


def found_in(where, data, marks):
    return ["%s has %r" % (where, m) for mark in marks for m in forms(mark) if m in data]


def in_processes(marks, what, but=()):
    """Looks into "cmdline" or "environ" of each process, except those of the pids `but`."""
    return [text for pid in os.listdir("/proc") if pid.isdigit() and int(pid) not in but
            for text in found_in("%s of process %s (%s)" % (what, pid, read("/proc/%s/comm" % pid)), read("/proc/%s/%s" % (pid, what)), marks)]


def in_files(top, marks, but=()):
    """Looks into the files below top, except those below the directories `but`."""
    found = []
    for at, dirs, names in os.walk(top):
        dirs[:] = [d for d in dirs if os.path.join(at, d) not in but]
        for name in names:
            found += found_in(os.path.join(at, name), read(os.path.join(at, name)), marks)
    return found


def without_jobs(data):
    """Returns the JSON without the members that are the job as it was registered."""
    if isinstance(data, dict):
        return {k: without_jobs(v) for k, v in data.items() if k not in ("Job", "TaskGroups")}
    return [without_jobs(v) for v in data] if isinstance(data, list) else data


def events(node, job):
    """Returns the lines of the event stream, from the first event to the last one of the job's allocations."""
    last = max(a["ModifyIndex"] for a in node.allocs(job))
    c = api.Connection(node, case.LEAST_S)
    try:
        c.request("GET", "/v1/event/stream?index=1&topic=*&namespace=*")
        answer, lines = c.getresponse(), []
        while not any(e["Topic"] == "Allocation" and e["Index"] >= last for line in lines for e in line.get("Events", [])):
            lines.append(json.loads(answer.readline()))
        return lines
    finally:
        c.close()


def find(node, marks, job, of_job=False):
    """Returns where one of the marks can be read: in files of the agent, its log, its audit log, its API, its events, or arguments of its processes. of_job:
    the job itself has them, so the agent's database and the job in answers have them too."""
    case.equal(os.path.getsize(node.data + "/audit/audit.log") > 0, True, "an audit log")
    found = in_files(node.data, marks, [node.data + "/state"] if of_job else ())
    with open(node.log_path, "rb") as f:
        found += found_in("the log", f.read(), marks)
    allocs = [a["ID"] for a in node.allocs(job)]
    for path in ("/v1/allocations", "/v1/jobs", "/v1/vars", "/v1/agent/self", "/v1/metrics", "/v1/nodes", "/v1/evaluations", "/v1/deployments",
                 *("/v1/allocation/" + a for a in allocs), "/v1/job/%s/allocations" % job, "/v1/job/%s/summary" % job):
        answer = node.request("GET", path)
        found += found_in(path, repr(without_jobs(answer.json)).encode() if of_job and answer.status == 200 and path != "/v1/metrics" else answer.body, marks)
    lines = events(node, job)
    found += found_in("the event stream", repr(without_jobs(lines) if of_job else lines).encode(), marks)
    for words in (("alloc", "status", "-verbose"), ("alloc", "why")):
        for alloc in allocs:
            found += found_in(" ".join(words), node.drover(*words, alloc).out.encode(), marks)
    return found + in_processes(marks, "cmdline")

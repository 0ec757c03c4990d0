# SPDX-License-Identifier: Apache-2.0
"""Looks for secrets where nobody must find them.

    traces.find(node, [b"a password"], "job")    # ["the log has b'a password'"]

The node's configuration has traces.AUDIT, because its audit log is read too.
"""
import base64
import json
import os
import re
import urllib.parse

from . import ROOT, api, case

AUDIT = "audit { enabled = true }\n"
# Paths with no answer that ends, that change something, or whose answer is for those who may read the secret.
NOT_ASKED = re.compile(r"/v1/(agent/monitor|event/stream|client/gc|client/fs/stream|var/|acl/token/|.*/(exec|action|gc)$)")


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
        c.request("GET", "/v1/event/stream?index=1&topic=*&namespace=*", headers={"X-Nomad-Token": node.token} if node.token else {})
        answer, lines = c.getresponse(), []
        while not any(e["Topic"] == "Allocation" and e["Index"] >= last for line in lines for e in line.get("Events", [])):
            lines.append(json.loads(answer.readline()))
        return lines
    finally:
        c.close()


def paths(node, job):
    """Yields each path of the API that can be read, for the node and for each object of the job."""
    job_path = "/v1/job/" + urllib.parse.quote(job, safe="")
    allocs, evals, deployments = ([a["ID"] for a in node.ask(job_path + "/" + kind)] for kind in ("allocations", "evaluations", "deployments"))
    ids = {"job": [job], "allocation": allocs, "allocations": allocs, "fs": allocs, "evaluation": evals, "deployment": deployments,
           "node": [n["ID"] for n in node.ask("/v1/nodes")], "service": [s["ServiceName"] for n in node.ask("/v1/services") for s in n["Services"]]}
    with open(ROOT + "/supervisor/http/api_paths.def", encoding="utf-8") as f:
        for path in re.findall(r'^API_PATH\(GET,\s*"([^"]+)"', f.read(), re.M):
            if NOT_ASKED.match(path):
                continue
            before, *after = re.split(":id|:name", path)
            kinds = [kind for kind in before.split("/") if kind in ids]
            for value in ids[kinds[-1]] if after and kinds else ["default"]:
                yield urllib.parse.quote(value, safe="").join([before, *after])


def of_tasks():
    """Returns {pid: environment} of the processes whose environment is that of a task."""
    found = {int(pid): read("/proc/%s/environ" % pid).decode(errors="replace").split("\0") for pid in os.listdir("/proc") if pid.isdigit()}
    found = {pid: dict(word.split("=", 1) for word in words if "=" in word) for pid, words in found.items()}
    return {pid: words for pid, words in found.items() if "NOMAD_ALLOC_ID" in words}


def find(node, marks, job, of_job=False, but=(), journal=None):
    """Returns where one of the marks can be read: in files of the agent but those below the directories `but`, its log, its audit log, its API, its events,
    arguments of processes, or entries of the journal, a journal.Journal, if it logs there. of_job: the job itself has them, so the agent's database and the job in answers have them too."""
    case.equal(os.path.getsize(node.data + "/audit/audit.log") > 0, True, "an audit log")
    found = in_files(node.data, marks, [*but, *([node.data + "/state"] if of_job else ())])
    with open(node.log_path, "rb") as f:
        found += found_in("the log", f.read(), marks)
    if journal:
        found += found_in("the journal", journal.log(), marks)
    allocs = [a["ID"] for a in node.allocs(job)]
    for path in paths(node, job):
        answer = node.request("GET", path)
        hidden = of_job and answer.status == 200 and path != "/v1/metrics" and not path.startswith("/v1/client/fs/")
        found += found_in(path, repr(without_jobs(answer.json)).encode() if hidden else answer.body, marks)
    lines = events(node, job)
    found += found_in("the event stream", repr(without_jobs(lines) if of_job else lines).encode(), marks)
    for words in (("alloc", "status", "-verbose"), ("alloc", "why")):
        for alloc in allocs:
            found += found_in(" ".join(words), node.drover(*words, alloc, env={"DROVER_TOKEN": node.token}).out.encode(), marks)
    return found + in_processes(marks, "cmdline")

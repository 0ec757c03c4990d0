#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Invalid ids, names and bodies on every path of the control socket: each gets an error status and message, and nothing else changes."""
import copy
import json
import re
import urllib.parse

from lib import ROOT, api, case

# Ids as they occur in a request target. No alloc, job, node … has one of them.
IDS = ("..", ".", "%2e%2e", "..%2F..%2F..%2Fetc%2Fpasswd", "%2Fetc%2Fpasswd", "a%2F..%2Fb", "%2F", "%00", "a%00b", "x" * 300,
       "x" * 128, "%0A", "a%0Ab", "%20", "a+b", "%FF%FE", "%C3%A9", "%25s%25n", "'%3B%20DROP%20TABLE%20job%3B%20--", "*", "-", "%",
       "00000000-0000-0000-0000-000000000000", "6ba7b810-9dad-11d1-80b4-00c04fd430c8", "6BA7B810-9DAD-11D1-80B4-00C04FD430C8")
# Names as they occur in a body.
NAMES = ("..", ".", "../x", "/", "/etc", "a/b", "a/../b", "a b", "a\nb", "a\x7fb", "x" * 300, "", ".hidden", 7, None, ["a"], {})
BODIES = (b"", b"{", b'{"Job":', b"nonsense", b"[]", b"7", b'"text"', b"null", b"\xff\xfe\x00", b"[" * 5000, b'{"a":"\\u0000"}',
          b'{"a":1,"a":2}', b"{}x", b" " * 100000)


def routes():
    """(method, pattern) of all routes that an agent on its own answers, from the table of paths: a new path is tried too."""
    with open(ROOT + "/supervisor/http/api_paths.def", encoding="utf-8") as f:
        rows = re.findall(r'^API_PATH\((\w+), *"(/v1/[^"]*)", *\w+, *\w+, *\w+, *(\w+), *(\w+),', f.read(), re.M)
    found = {(method, path) for method, path, agent, server in rows if (agent, server) != ("api_none", "api_none")}
    assert len(found) >= 30, "%d routes found" % len(found)
    return sorted(found)


def sentence(answer, what, statuses=(400, 404)):
    """Checks that the answer is text for humans, one line for each fault, with a status that does not report an error of the agent."""
    case.equal(answer.status in statuses, True, "%s: %d %s" % (what, answer.status, answer.text))
    case.contains(answer.headers["Content-Type"], "text/plain", what)
    lines = answer.body.decode("utf-8").split("\n")
    case.equal((1 <= len(lines) <= 100, [x for x in lines if not 0 < len(x) <= 600]), (True, []), "%s: %r" % (what, lines))


def all_as_before():
    case.equal(node.processes()["supervisor"], supervisor, "the supervisor")
    case.equal([j["ID"] for j in node.ask("/v1/jobs")], ["good"], "jobs")
    case.equal(node.ask("/v1/job/good")["Version"], 0, "version")
    case.equal([a["ID"] for a in node.wait_running("good")], [good["ID"]], "the alloc of the job")
    case.equal(node.ask("/v1/volumes"), [], "volumes")
    case.equal(node.ask("/v1/nodes")[0]["SchedulingEligibility"], "eligible", "the node")
    case.equal(node.ask("/v1/agent/leaks"), [], "leaks")


def test_invalid_ids_in_every_path_are_refused():
    tried = 0
    for method, pattern in routes():
        if ":id" not in pattern:
            continue
        for bad in IDS:
            path = pattern.replace(":id", bad)
            answer = node.request(method, path, {} if method == "PUT" else None)
            sentence(answer, "%s %s" % (method, path[:60]))
            tried += 1
    print("    %d requests" % tried)
    all_as_before()


def test_invalid_ids_in_every_query_are_refused():
    alloc = "/v1/client/fs/logs/%s?type=stdout&task=" % good["ID"]
    for bad in IDS:
        if bad in ("%", "%00", "a%00b"):
            for path in ("/v1/jobs?prefix=", "/v1/allocations?namespace=", alloc):
                sentence(node.request("GET", path + bad), path + bad, (400,))
            continue
        sentence(node.request("GET", alloc + bad), "task=" + bad[:60])
        for path in ("jobs", "allocations", "evaluations", "nodes", "volumes", "plugins"):
            answer = node.request("GET", "/v1/%s?prefix=%s" % (path, bad))
            case.equal((answer.status, answer.body), (200, b"[]"), "%s with prefix %s" % (path, bad[:60]))
        sentence(node.request("GET", "/v1/job/good?namespace=" + bad), "namespace=" + bad[:60], (404,))
        made = api.job("good", count=2)
        answer = node.request("POST", "/v1/jobs?namespace=" + bad, made)
        sentence(answer, "register in namespace " + bad[:60], (400,))
        name = urllib.parse.unquote_plus(bad, errors="replace")
        if not re.fullmatch("[A-Za-z0-9-]{1,128}", name):
            sentence(node.request("PUT", "/v1/namespace", {"Name": name}), "make namespace " + bad[:60], (400,))
    all_as_before()


def with_name(place, name):
    made = copy.deepcopy(api.job("named"))
    job = made["Job"]
    group = job["TaskGroups"][0]
    task = group["Tasks"][0]
    volume = {"Name": "v", "Type": "csi", "Source": "s", "AccessMode": "single-node-writer", "AttachmentMode": "file-system"}
    if place == "job":
        job["ID"] = name
    elif place == "group":
        group["Name"] = name
    elif place == "task":
        task["Name"] = name
    elif place == "driver":
        task["Driver"] = name
    elif place == "source":
        group["Volumes"] = {"v": dict(volume, Source=name)}
    elif place == "host volume":
        group["Volumes"] = {"v": {"Name": "v", "Type": "host", "Source": name}}
    elif place == "volume type":
        group["Volumes"] = {"v": dict(volume, Type=name)}
    elif place == "mounted volume":
        task["VolumeMounts"] = [{"Volume": name, "Destination": "/v"}]
    elif place == "plugin":
        task["CSIPluginConfig"] = {"ID": name, "Type": "monolith", "MountDir": "/csi"}
    elif place == "signal":
        task["KillSignal"] = name if name not in ("", None) else "SIGNONE"
    return made


# Accepted, as by Nomad, because these never become part of a path.
FINE = {"job": ("a/b", ".hidden"), "group": ("..", ".", "../x", "/", "/etc", "a/b", "a/../b", "a b", ".hidden")}


def runs_and_goes(made):
    name = made["Job"]["ID"]
    node.register(made)
    path = "/v1/job/" + urllib.parse.quote(name, safe="")
    case.until(lambda: [a for a in node.ask(path + "/allocations") if a["ClientStatus"] == "running"], 20, "%r to run" % name)
    node.do("DELETE", path + "?purge=true")
    case.until(lambda: [a["JobID"] for a in node.ask("/v1/allocations")] == ["good"], 20, "%r to be removed" % name)


def waits_and_goes(made, name):
    """Only the node knows its host volumes, and it may get another: the job waits and says for which one."""
    ev = node.wait_evaluation(node.register(made)["EvalID"])
    case.equal(list(ev["FailedTGAllocs"]["g"]["ConstraintFiltered"]), ["missing host volume " + name])
    node.do("DELETE", "/v1/job/named?purge=true")


def test_invalid_names_in_every_field_of_a_job_are_refused():
    for place in ("job", "group", "task", "driver", "source", "host volume", "volume type", "mounted volume", "plugin", "signal"):
        for name in NAMES + ("a\0b",):
            made = with_name(place, name)
            if name in FINE.get(place, ()):
                runs_and_goes(made)
            elif place == "host volume" and name and isinstance(name, str) and "\0" not in name:
                waits_and_goes(made, name)
            else:
                sentence(node.request("POST", "/v1/jobs", made), "%s %r" % (place, name), (400,))
    # A body with an id other than that of the path is refused.
    sentence(node.request("PUT", "/v1/job/other", api.job("good", count=2)), "another job's path", (400,))
    all_as_before()


def test_invalid_names_in_every_field_of_a_volume_are_refused():
    whole = {"ID": "v", "Name": "v", "PluginID": "p", "RequestedCapabilities": [
        {"AccessMode": "single-node-writer", "AttachmentMode": "file-system"}]}
    for place in ("ID", "PluginID", "Namespace"):
        for name in NAMES + ("a\0b",):
            if place == "Namespace" and name in ("", None):  # means the default namespace
                continue
            volume = dict(whole, **{place: name})
            for path in ("/v1/volume/csi/v/create", "/v1/volumes", "/v1/volume/csi/v"):
                answer = node.request("PUT", path, {"Volumes": [volume]})
                sentence(answer, "%s with %s %r" % (path, place, name))
    all_as_before()


def test_invalid_bodies_on_every_path_are_refused():
    # These paths need no body, or are refused whatever it is.
    bodiless = {"/v1/agent/servers", "/v1/agent/volumes", "/v1/allocation/:id/stop", "/v1/client/allocation/:id/restart",
                "/v1/client/allocation/:id/gc", "/v1/client/gc",
                "/v1/deployment/fail/:id", "/v1/job/:id/evaluate", "/v1/operator/keyring/rotate", "/v1/system/gc",
                "/v1/system/reconcile/summaries"}
    me = node.ask("/v1/nodes")[0]["ID"]
    ids = {"/v1/node/:id/drain": me, "/v1/node/:id/eligibility": me, "/v1/client/allocation/:id/signal": good["ID"]}
    for method, pattern in routes():
        if method != "PUT" or pattern in bodiless:
            continue
        for body in BODIES:
            path = pattern.replace(":id", ids.get(pattern, "good"))
            sentence(node.request("PUT", path, body), "%s with %r" % (path, body[:20]), (400,))
        sentence(node.request("PUT", path, b"x" * (2 << 20)), path + " with 2 MiB", (413,))
    all_as_before()


def test_no_leaks_are_left():
    node.purge("good")
    case.equal(json.loads(node.request("GET", "/v1/agent/leaks").body), [], "leaks")


with api.Node() as node:
    node.register(api.job("good"))
    good = node.wait_running("good")[0]
    supervisor = node.processes()["supervisor"]
    case.run(globals())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the same jobs on drover and on a client of the servers' own program, and compares the metrics of both: names, labels, kinds, and the values
that do not depend on the moment. In namespaces of its own: tests/nomad/isolated.py runs it, for `make check-nomad NOMAD=path`. The table in
docs/metrics.md has the metrics that may differ.

    tests/nomad/isolated.py tests/nomad/check_metrics.py PATH [test_…]…"""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from lib import ROOT, api, case, exposition  # noqa: E402
from lib.cluster import node_of  # noqa: E402
import client  # noqa: E402
import real  # noqa: E402
from alike import CHROOT, OURS, THEIRS, WAITS, restarts, task  # noqa: E402

TELEMETRY = """telemetry {
  collection_interval = "1s"
  publish_node_metrics = true
  publish_allocation_metrics = true
  prometheus_metrics = true
}
"""
SIZES = {"Resources": {"CPU": 200, "MemoryMB": 64}}
JOBS = (("jail", [task("t", WAITS, "exec", **SIZES)], "service", {}), ("web", [task("t", WAITS, **SIZES)], "service", {}),
        ("fails", [task("t", "sleep 0.2; exit 1")], "batch", restarts(2)), ("done", [task("t", "exit 0")], "batch", {}))
PARENT, CHILD = "parent", "parent-%s/dispatch"
# Values that are the same at any moment, for the label that tells their rows apart.
VALUES = {name: "" for name in (
    "allocated_cpu", "allocated_memory", "allocated_disk", "allocated_max_memory", "unallocated_cpu", "unallocated_memory", "allocations_blocked",
    "allocations_migrating", "allocations_pending", "allocations_running", "allocations_terminal", "tasks_running", "tasks_dead", "tasks_pending",
    "host_memory_total")}
VALUES.update({"host_disk_size": "disk", "unallocated_network": "device", "allocs_cpu_allocated": "job", "allocs_memory_allocated": "job",
               "allocs_running": "job", "allocs_restart": "job", "allocs_complete": "job", "allocs_cpu_throttled_periods": "job"})


def table():
    """Returns {name: kind of difference} of the table in docs/metrics.md, with a trailing * for names that begin so."""
    with open(ROOT + "/docs/metrics.md", encoding="utf-8") as f:
        return {m[0]: m[1] for m in re.findall(r"^\| `(nomad_[\w*]+)` \| (missing|only here|kind|value|labels) \|", f.read(), re.M)}


def differs(name, *kinds):
    return any(kind in kinds and (name == known or known[-1] == "*" and name.startswith(known[:-1])) for known, kind in DIFFERENCES.items())


def place(text):
    """Returns the text without the name of the node and the time of a dispatch."""
    return re.sub(r"dispatch-.*", "dispatch", text.replace("-" + OURS, "").replace("-" + THEIRS, ""))


def rows(family, label):
    """Returns {value of the label: value}, of running tasks in the case of tasks."""
    return {place(found.get(label, "")): value for _, found, value in family.samples if found.get("node_status", "ready") == "ready"}


def register(server, node):
    at = [{"LTarget": "${node.unique.name}", "RTarget": node, "Operand": "="}]
    for name, tasks, kind, group in JOBS:
        server.run(api.job("%s-%s" % (name, node), group={**restarts(0), "Tasks": tasks, **group}), Type=kind, Constraints=at)
    server.run(api.job("%s-%s" % (PARENT, node), group={**restarts(0), "Tasks": [task("t", WAITS)]}), Type="batch", Constraints=at,
               ParameterizedJob={"Payload": "optional"})
    server.do("/v1/job/%s-%s/dispatch" % (PARENT, node), {})


def read(text):
    """Returns the families without their histograms' and summaries' samples. The original's format breaks rules on which exposition.parse() insists."""
    found = {}
    for name, kind in re.findall(r"^# TYPE (\w+) (\w+)$", text, re.M):
        found[name] = exposition.Family(name)
        found[name].kind = kind
    for name, labels, value in re.findall(r"^(\w+)(?:\{(.*)\})? (\S+)$", text, re.M):
        if name in found:
            found[name].samples.append((name, exposition.read_labels(labels), float(value)))
    return found


def texts():
    both = {OURS: ours.request("GET", "/v1/metrics?format=prometheus").text, THEIRS: theirs.get("/v1/metrics?format=prometheus")[1].decode()}
    return {node: read(text) for node, text in both.items()}


def is_complete(found):
    """It has sampled the usage of three running tasks, and has seen the end of two others."""
    try:
        return len(found["nomad_client_allocs_cpu_user"].samples) >= 3 and rows(found["nomad_client_allocs_restart"], "job")["fails"] == 2 and \
            [rows(found["nomad_client_allocations_" + state], "")[""] for state in ("running", "terminal")] == [3, 2]
    except KeyError:
        return False


def ready():
    """Returns the families of both when both have all tasks."""
    found = texts()
    return all(is_complete(f) for f in found.values()) and found


def test_both_have_the_same_names():
    found = case.until(ready, 90, "both to have all tasks")
    names = {node: {name for name in f if name.startswith("nomad_")} for node, f in found.items()}
    case.equal({n for n in names[THEIRS] - names[OURS] if not differs(n, "missing")}, set(), "names that only the original has")
    case.equal({n for n in names[OURS] - names[THEIRS] if not differs(n, "only here")}, set(), "names that only drover has")
    case.equal({n for n in names[OURS] & names[THEIRS] if differs(n, "missing")}, set(), "names that the table calls missing")


def test_both_have_the_same_labels_and_kinds():
    found = case.until(ready, 90, "both to have all tasks")
    wrong = []
    for name in sorted(n for n in set(found[OURS]) & set(found[THEIRS]) if n.startswith("nomad_")):
        kinds = [found[node][name].kind for node in (OURS, THEIRS)]
        if kinds[0] != kinds[1] and not differs(name, "kind"):
            wrong.append("%s is a %s, and a %s there" % (name, *kinds))
        labels = [{tuple(sorted(labels)) for _, labels, _ in found[node][name].samples} for node in (OURS, THEIRS)]
        if labels[0] != labels[1] and not (differs(name, "labels") and labels[0] > labels[1]):
            wrong.append("%s has %s, and %s there" % (name, *labels))
    case.equal(wrong, [], "labels and kinds")


def test_both_have_the_same_values():
    def wrong():
        found = ready()
        if not found:
            return ["not ready"]
        bad = []
        for name, label in VALUES.items():
            if differs("nomad_client_" + name, "only here") and "nomad_client_" + name not in found[THEIRS]:
                continue
            pair = [rows(found[node]["nomad_client_" + name], label) for node in (OURS, THEIRS)]
            if label == "job":  # those of ended tasks are still there for a while, or not any more
                pair = [{k: v for k, v in values.items() if k in pair[0] and k in pair[1]} for values in pair]
            if label != "job" and set(pair[0]) != set(pair[1]) - {""} and set(pair[0]) != set(pair[1]) or not pair[0] or \
                    any(abs(v - pair[1][k]) > 1e-6 * abs(v) for k, v in pair[0].items()):
                bad.append("%s: %s, and %s there" % (name, *pair))
        return bad
    try:
        case.until(lambda: not wrong(), 60, "equal values")
    except AssertionError:
        case.equal(wrong(), [], "values")


def test_both_have_the_same_json():
    """Each name has the same place. The original shows the last ten seconds, so counters only after an increment."""
    def places(answer):
        return {(part, one["Name"], tuple(sorted(one["Labels"]))) for part in ("Gauges", "Counters", "Samples") for one in answer[part]
                if one["Name"].startswith("nomad.client.")}

    def wrong():
        mine, other = places(ours.ask("/v1/metrics")), places(theirs.ask("/v1/metrics"))
        return {one for one in other - mine if not differs(one[1].replace(".", "_"), "missing")} | \
            {one for one in mine - other if one[0] == "Gauges" and not differs(one[1].replace(".", "_"), "only here", "labels")}
    try:
        case.until(lambda: not wrong(), 60, "the same JSON")
    except AssertionError:
        case.equal(wrong(), set(), "places in the JSON")


DIFFERENCES = table()
MORE = "chroot_env {\n%s\n}" % "\n".join('"%s" = "%s"' % (p, "/bin/sh" if p.endswith("dash") else p) for p in CHROOT)
with real.Server() as servers, node_of(servers, name=OURS, more=TELEMETRY) as ours, \
        client.Original(servers, THEIRS, MORE, more=TELEMETRY) as theirs:
    case.until(lambda: {n["Name"] for n in servers.ask("/v1/nodes") if n["Status"] == "ready"} == {OURS, THEIRS}, 120, "two nodes")
    for where in (OURS, THEIRS):
        register(servers, where)
    case.run(globals())

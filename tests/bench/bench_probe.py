# SPDX-License-Identifier: Apache-2.0
"""The cost of probes, and what a neighbour notices: a task that sleeps a millisecond at a time, and measures how late it wakes."""
import statistics
import time

from measured import Bench, Spent, fresh_directory, job, pss_mb, row, settle
from lib import case

SECONDS = 20
# Prints its CPU time and its lateness (median, 99th and 99.9th per cent, in us) each SECONDS.
NEIGHBOUR = """
import resource, time
while True:
    late, end, began = [], time.monotonic() + %d, resource.getrusage(resource.RUSAGE_SELF)
    while time.monotonic() < end:
        at = time.monotonic()
        time.sleep(0.001)
        late.append(time.monotonic() - at - 0.001)
    used = resource.getrusage(resource.RUSAGE_SELF)
    late.sort()
    print(*("%%.0f" %% (1e6 * late[int(len(late) * part)]) for part in (0.5, 0.99, 0.999)), flush=True)
""" % SECONDS


def lateness(node, alloc, n):
    """Returns the medians of the last n lines that the neighbour has printed."""
    lines = case.until(lambda: (found := node.logs(alloc, "t").decode().splitlines()) and len(found) >= n and found, 300, "%d results" % n)
    return [statistics.median(x) for x in zip(*(map(float, line.split()) for line in lines[-n:]))]


def probe(node):
    answer = node.request("GET", "/v1/agent/health?deep=1")
    case.equal(answer.status, 200, answer.text)
    return answer.json["duration_ms"]


def bench_probe():
    with fresh_directory("tmpfs") as base, Bench(base) as node:
        made = job("neighbour", "raw_exec", 1)
        made["Job"]["TaskGroups"][0]["Tasks"][0]["Config"] = {"command": "/usr/bin/python3", "args": ["-c", NEIGHBOUR]}
        node.register(made)
        alloc = node.wait_running("neighbour")[0]
        settle(3)
        probe(node)
        before = sum(pss_mb(p) for p in node.parts().values())
        quiet = lateness(node, alloc, 2)
        spent, took, done = Spent(node), [], len(node.logs(alloc, "t").decode().splitlines())
        began = time.monotonic()
        while len(node.logs(alloc, "t").decode().splitlines()) < done + 3:
            took.append(probe(node))
            time.sleep(0.1)
        spent.end()
        probed = lateness(node, alloc, 2)
        after = sum(pss_mb(p) for p in node.parts().values())
        row("a probe takes, median of %d" % len(took), "%.0f" % statistics.median(took), "ms")
        row("CPU time of a probe, all processes", "%.1f" % ((spent.all_us or spent.agent_us) / len(took) / 1000), "ms", "with the neighbour's")
        row("PSS of the agent after %d probes, added" % len(took), "%.0f" % (1024 * (after - before)), "KiB")
        for name, a, b in zip(("median", "99 %", "99.9 %"), quiet, probed):
            row("lateness of a neighbour, %s, beside probes" % name, "%.0f" % b, "us", "alone: %.0f" % a)
        row("probes in a second meanwhile", "%.1f" % (len(took) / (time.monotonic() - began)), "/s")


PARTS = {"probe": bench_probe}

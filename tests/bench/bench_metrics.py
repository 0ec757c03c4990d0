# SPDX-License-Identifier: Apache-2.0
"""What reading /v1/metrics costs the agent, and whether its memory grows with it. The budget is for the CPU time of all its processes, with
the metrics of tasks: of idle ones, and of ones that work, of which the supervisor reads all files of their cgroups. 9,000 of 10,000 allocations
have just ended."""
import os
import threading
import time

from bench_many import ended, supervisor_mb
from measured import N, PROGRAMS, Bench, Spent, fresh_directory, row, settle
from lib import api

ROWS = int(os.environ.get("BENCH_METRIC_ALLOCS", "10000"))
SCRAPES = 20
FORMATS = ("json", "prometheus")
PUBLISH = "telemetry { publish_node_metrics = true publish_allocation_metrics = true }\n"
KINDS = (("idle", ["stay"], 50), ("working", ["tick"], None))


def scrape(node, form):
    answer = node.request("GET", "/v1/metrics?format=" + form, timeout=120)
    assert answer.status == 200, answer.text
    return len(answer.body)


def long_turns(node):
    """Returns how many turns of the work loop took longer than 5 ms and than 25 ms."""
    found = {line.split('le="')[1].split('"')[0]: int(line.split()[-1]) for line in
             node.request("GET", "/v1/metrics?format=prometheus").text.splitlines() if line.startswith("drover_agent_turn_seconds_bucket")}
    return found["+Inf"] - found["0.005"], found["+Inf"] - found["0.025"]


def measure(node, what, budget):
    settle(2)
    for form in FORMATS:
        size, before = scrape(node, form), long_turns(node)
        spent = Spent(node)
        for _ in range(SCRAPES):
            scrape(node, form)
            time.sleep(0.15)  # a sample of a task is used for 0.1 s
        each = spent.end().agent_us / SCRAPES / 1e3
        after = long_turns(node)
        row("CPU time of a scrape, %s, %s" % (what, form), "%.1f" % each, "ms", "<= %d" % budget if budget else "", each <= budget if budget else None)
        row("its size; turns of the work loop over 5 ms; over 25 ms", "%.1f KB; %d; %d" % (size / 1e3, after[0] - before[0], after[1] - before[1]),
            "of %d" % SCRAPES)


def slowest_answer(node, scrapes):
    """Returns the longest time that another client waits for an answer during scrapes."""
    over, worst = threading.Event(), [0.0]

    def ask():
        while not over.is_set():
            began = time.monotonic()
            node.get("/v1/agent/health")
            worst[0] = max(worst[0], time.monotonic() - began)
    thread = threading.Thread(target=ask)
    thread.start()
    for _ in range(scrapes):
        scrape(node, "prometheus")
    over.set()
    thread.join()
    return worst[0] * 1000


def bench_metrics():
    for kind, argument, budget in KINDS:
        with fresh_directory("tmpfs") as base, Bench(base, more=PUBLISH) as node:
            ended(node, "old", ROWS - N)
            node.register(api.job("running", PROGRAMS + "/bench_task", argument, N, "raw_exec"))
            node.wait_running("running", N, seconds=600)
            measure(node, "%d %s tasks of %d allocs" % (N, kind, ROWS), budget)
            row("longest wait of another client during scrapes, then", "%.1f" % slowest_answer(node, 5), "ms")
            settle(2)
            before = supervisor_mb(node)
            for _ in range(100):
                scrape(node, "prometheus")
            row("memory of the supervisor before 100 scrapes; after", "%.2f; %.2f" % (before, supervisor_mb(node)), "MB", "constant",
                supervisor_mb(node) - before < 0.5)


PARTS = {"metrics": bench_metrics}

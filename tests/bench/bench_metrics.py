# SPDX-License-Identifier: Apache-2.0
"""What reading /v1/metrics costs the supervisor, and whether its memory grows with it."""
import os
import threading
import time

from bench_many import ended, supervisor_mb
from measured import N, Bench, fresh_directory, row, settle, start

ROWS = int(os.environ.get("BENCH_METRIC_ALLOCS", "10000"))
SCRAPES = 20
FORMATS = ("json", "prometheus")


def cpu_ms(node):
    """Returns the CPU time of the supervisor so far."""
    with open("/proc/%d/schedstat" % node.processes()["supervisor"], encoding="ascii") as f:
        return int(f.read().split()[0]) / 1e6


def scrape(node, form):
    answer = node.request("GET", "/v1/metrics?format=" + form, timeout=120)
    assert answer.status == 200, answer.text
    return len(answer.body)


def measure(node, what, budget):
    settle(2)
    for form in FORMATS:
        size = scrape(node, form)
        before, began = cpu_ms(node), time.monotonic()
        for _ in range(SCRAPES):
            scrape(node, form)
        each = (cpu_ms(node) - before) / SCRAPES
        took = (time.monotonic() - began) / SCRAPES * 1000
        row("CPU time of the supervisor for a scrape, %s, %s" % (what, form), "%.1f" % each, "ms", "<= %d" % budget if budget else "",
            each <= budget if budget else None)
        row("until its end; size", "%.0f ms" % took, "%.1f KB" % (size / 1e3))


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
    for telemetry, what, budget in (("publish_node_metrics = true publish_allocation_metrics = false", "without tasks", 50),
                                    ("publish_node_metrics = true publish_allocation_metrics = true", "with tasks", None)):
        with fresh_directory("tmpfs") as base, Bench(base, more="telemetry { %s }" % telemetry) as node:
            ended(node, "old", ROWS - N)
            start(node, "running", "raw_exec", N)
            measure(node, "%s, %d running of %d" % (what, N, ROWS), budget)
            row("longest wait of another client during scrapes, then", "%.1f" % slowest_answer(node, 5), "ms")
            settle(2)
            before = supervisor_mb(node)
            for _ in range(100):
                scrape(node, "prometheus")
            row("memory of the supervisor before 100 scrapes; after", "%.2f; %.2f" % (before, supervisor_mb(node)), "MB", "constant",
                supervisor_mb(node) - before < 0.5)


PARTS = {"metrics": bench_metrics}

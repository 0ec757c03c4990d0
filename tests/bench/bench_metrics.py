# SPDX-License-Identifier: Apache-2.0
"""What reading /v1/metrics costs the agent, and whether its memory grows with it. The budget is for the CPU time of all its processes, with
the metrics of tasks: of idle ones, and of ones that work, of which the supervisor reads more files of their cgroups. 9,000 of 10,000 allocations
have just ended. Over TCP, as Prometheus reads, the listener passes the answers on."""
import http.client
import os
import socket
import threading
import time

from bench_many import ended, supervisor_mb
from measured import N, PROGRAMS, Bench, Spent, fresh_directory, row, settle
from lib import api

ROWS = int(os.environ.get("BENCH_METRIC_ALLOCS", "10000"))
SCRAPES = 20
FORMATS = ("json", "prometheus")
PUBLISH = "telemetry { publish_node_metrics = true publish_allocation_metrics = true }\n"
LISTEN = 'health { address = "127.0.0.1:%d" }\n'
KINDS = (("idle", ["stay"]), ("working", ["tick"]))


def scrape(node, form):
    answer = node.request("GET", "/v1/metrics?format=" + form, timeout=120)
    assert answer.status == 200, answer.text
    return len(answer.body)


def scrape_tcp(port):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    connection.request("GET", "/v1/metrics?format=prometheus")
    answer = connection.getresponse()
    size = len(answer.read())
    connection.close()
    assert answer.status == 200, answer.status
    return size


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def long_turns(node):
    """Returns how many turns of the work loop took longer than 5 ms and than 25 ms."""
    found = {line.split('le="')[1].split('"')[0]: int(line.split()[-1]) for line in
             node.request("GET", "/v1/metrics?format=prometheus").text.splitlines() if line.startswith("drover_agent_turn_seconds_bucket")}
    return found["+Inf"] - found["0.005"], found["+Inf"] - found["0.025"]


def measure(node, what, port):
    settle(2)
    for form, read in [(form, lambda form=form: scrape(node, form)) for form in FORMATS] + [("over TCP", lambda: scrape_tcp(port))]:
        size, before = read(), long_turns(node)
        spent = Spent(node)
        for _ in range(SCRAPES):
            read()
            time.sleep(0.15)  # a sample of a task is used for 0.1 s
        each = spent.end().agent_us / SCRAPES / 1e3
        after = long_turns(node)
        row("CPU time of a scrape, %s, %s" % (what, form), "%.1f" % each, "ms", "<= 50", each <= 50)
        if "listener" in spent.cpu:
            row("of it the listener's", "%.1f" % (spent.cpu["listener"] / SCRAPES / 1e3), "ms")
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
    for kind, argument in KINDS:
        port = free_port()
        with fresh_directory("tmpfs") as base, Bench(base, more=PUBLISH + LISTEN % port) as node:
            ended(node, "old", ROWS - N)
            node.register(api.job("running", PROGRAMS + "/bench_task", argument, N, "raw_exec"))
            node.wait_running("running", N, seconds=600)
            measure(node, "%d %s tasks of %d allocs" % (N, kind, ROWS), port)
            row("longest wait of another client during scrapes, then", "%.1f" % slowest_answer(node, 5), "ms")
            settle(2)
            before = supervisor_mb(node)
            for _ in range(100):
                scrape(node, "prometheus")
            row("memory of the supervisor before 100 scrapes; after", "%.2f; %.2f" % (before, supervisor_mb(node)), "MB", "constant",
                supervisor_mb(node) - before < 0.5)


PARTS = {"metrics": bench_metrics}

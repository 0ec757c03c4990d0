# SPDX-License-Identifier: Apache-2.0
"""The cost of an operator's requests per alloc, and the number of updates that an alloc sends to its source during its life."""
import concurrent.futures
import json
import os

from measured import N, Bench, Spent, fresh_directory, job, poll, row, settle
from lib import api, case

LIVES = int(os.environ.get("BENCH_LIVES", "100"))
FEW = 100
CONNECTIONS = 8
S = 10**9


def ask_all(node, name, what, body):
    """Sends a request for each alloc of a job over a few connections that stay open: each waits for its answer, which is sent after the
    commit."""
    allocs = [a["ID"] for a in node.ask("/v1/job/%s/allocations" % name)]

    def ask(mine):
        connection = api.Connection(node, 60)
        for one in mine:
            connection.request("PUT", "/v1/client/allocation/%s/%s" % (one, what), json.dumps(body).encode())
            answer = connection.getresponse()
            case.equal((answer.read() and answer.status), 200, what)
        connection.close()
    with concurrent.futures.ThreadPoolExecutor(CONNECTIONS) as pool:
        list(pool.map(ask, [allocs[i::CONNECTIONS] for i in range(CONNECTIONS)]))


def runs(node):
    return {n for n in os.listdir(node.data + "/run") if n.endswith(".rec")}


def last_events(node):
    return [a["TaskStates"]["t"]["Events"][-1]["Type"] for a in node.ask("/v1/allocations") if a["ClientStatus"] == "running"]


# Each request, and a check that it was done, which is not measured.

def started(node, name, count):
    node.register(job(name, "raw_exec", count))
    poll(lambda: node.counts(name)["Running"] >= count, 300, "%d running" % count)
    return lambda: last_events(node).count("Started") == count


def restarted(node, name, count):
    before = runs(node)
    ask_all(node, name, "restart", {"AllTasks": True})
    poll(lambda: len(runs(node) - before) == count and not before & runs(node), 300, "%d to run again" % count)
    return lambda: last_events(node).count("Started") == count


def signalled(node, name, count):
    ask_all(node, name, "signal", {"Signal": "SIGURG", "Task": ""})
    return lambda: last_events(node).count("Signaling") == count


def stopped(node, name, count):
    node.do("DELETE", "/v1/job/" + name)
    poll(lambda: node.records() == 0, 300, "%d to be stopped" % count)
    return lambda: node.counts(name)["Complete"] == count


ORDERS = (("start", started), ("restart -all-tasks", restarted), ("signal", signalled), ("stop", stopped))


def print_request(name, count, spent, first, few):
    """Prints the row of a request. first: the cost of a start; few: the same request with FEW allocs, in CPU time of the agent."""
    each = spent.agent_us / count
    parts = ", ".join("%s %.0f" % (n, us / count) for n, us in sorted(spent.cpu.items()) if us / count >= 1)
    row("%s of %d" % (name, count), "%.2f" % spent.seconds, "s")
    row("  CPU time of the agent's processes per alloc", "%.0f" % each, "us", parts)
    if spent.all_us:
        row("  CPU time per alloc with executors and tasks", "%.0f" % (spent.all_us / count), "us")
    row("  of a start's; of the same with %d" % FEW, "%.0f; %.0f" % (100 * each / first, 100 * each / few), "%", "<= 150 of that",
        each <= 1.5 * few)
    row("  written by the supervisor per alloc, but for its log", "%.1f" % (spent.bytes / count / 1024), "KiB")
    if spent.flushes is not None:
        row("  syncs of the disk", "%d" % spent.flushes, "")


def bench_orders():
    few = {}
    with fresh_directory() as base, Bench(base) as node:
        for count in (FEW, FEW, N):  # the first includes work that an agent does only once
            first = None
            for name, order in ORDERS:
                settle(3)
                spent = Spent(node)
                proof = order(node, "j%d" % count, count)
                spent.end()
                poll(proof, 60, "%s of %d" % (name, count))
                first = first or spent.agent_us / count
                if count == N:
                    print_request(name, count, spent, first, few[name])
                else:
                    few[name] = spent.agent_us / count
            node.purge("j%d" % count)


# --- updates ---

UPDATE = {"MaxParallel": LIVES, "HealthCheck": "task_states", "MinHealthyTime": S, "HealthyDeadline": 100 * S, "ProgressDeadline": 200 * S}


def index(node):
    return int(node.request("GET", "/v1/allocations").headers["X-Nomad-Index"])


def source_made(node):
    """Returns the number of indexes that the source used for its own decisions, without those for updates."""
    found = {a[k] for a in node.ask("/v1/allocations") for k in ("CreateIndex",)}
    found |= {node.ask("/v1/allocation/" + a["ID"])["AllocModifyIndex"] for a in node.ask("/v1/allocations")}
    for path in ("/v1/evaluations", "/v1/deployments", "/v1/jobs"):
        found |= {one[k] for one in node.ask(path) for k in ("CreateIndex", "ModifyIndex", "JobModifyIndex") if k in one}
    return found


def bench_updates():
    """Measures allocs of a service that start, become healthy, and are stopped."""
    with fresh_directory() as base, Bench(base) as node:
        began, told, costs, steps = index(node), 0, [], []
        spent = Spent(node)

        def step(what):
            nonlocal told
            here = index(node) - began - len({i for i in source_made(node) if i > began})
            steps.append("%s %.2f" % (what, (here - told) / LIVES))
            told = here
        node.register(job("life", "raw_exec", LIVES, Update=UPDATE))
        poll(lambda: node.counts("life")["Running"] == LIVES, 120, "all to run")
        step("start")
        poll(lambda: node.ask("/v1/job/life/deployment")["Status"] == "successful", 120, "all to be healthy")
        step("health")
        node.do("DELETE", "/v1/job/life")
        poll(lambda: node.records() == 0 and node.counts("life")["Complete"] == LIVES, 120, "all to be stopped")
        step("stop")
        spent.end()
        costs.append(spent)
        row("updates of an alloc's life to the local source, of %d" % LIVES, "%.2f" % (told / LIVES), "", ", ".join(steps))
        row("  written by the supervisor per life, but for its log", "%.1f" % (spent.bytes / LIVES / 1024), "KiB")
        if spent.flushes is not None:
            row("  syncs of the disk per life", "%.2f" % (spent.flushes / LIVES), "")


PARTS = {"orders": bench_orders, "updates": bench_updates}

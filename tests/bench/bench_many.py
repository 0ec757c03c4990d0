# SPDX-License-Identifier: Apache-2.0
"""The cost of starts, lists, blocking queries and stops when there are many other allocs, and of allocs that only exist."""
import os
import threading
import time

from measured import N, Bench, Spent, fresh_directory, job, poll, pss_mb, row, settle, start, stop
from lib import api, case

EXISTING = int(os.environ.get("BENCH_EXISTING", "10000"))
IDLE_S = float(os.environ.get("BENCH_IDLE_S", "31"))  # long enough to include the work of every 30 s
WAITERS = 50


def ended(node, name, count):
    """Makes that many ended allocs."""
    node.register(job(name, "raw_exec", count, stay=False))
    poll(lambda: sum(node.counts(name)[k] for k in ("Complete", "Failed")) >= count and node.records() == 0, 600,
         "%d allocs that have ended" % count)


class Waiters:
    """Blocking queries for the allocs of one job, each repeated when it is answered."""

    def __init__(self, node, name):
        self.node, self.path, self.answers, self.over = node, "/v1/job/%s/allocations" % name, 0, False
        self.threads = [threading.Thread(target=self.wait, daemon=True) for _ in range(WAITERS)]

    def wait(self):
        connection, index = api.Connection(self.node, 120), 1
        while not self.over:
            connection.request("GET", "%s?index=%d&wait=60s" % (self.path, index))
            answer = connection.getresponse()
            answer.read()
            index = int(answer.headers["X-Nomad-Index"])
            self.answers += 1
        connection.close()

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        case.until(lambda: self.answers >= WAITERS, 30, "the first answers to arrive")
        return self

    def __exit__(self, *_):
        """Waits until all are answered; the caller makes the change."""
        self.over = True


def idle(node):
    """Returns the CPU time in percent of one core: of all processes, and of each process of the agent."""
    time.sleep(2)
    spent = Spent(node)
    time.sleep(IDLE_S)
    spent.end()
    used = max(spent.all_us, spent.agent_us)
    return used / spent.seconds / 1e4, ", ".join("%s %.3f" % (n, us / spent.seconds / 1e4) for n, us in sorted(spent.cpu.items()))


def supervisor_mb(node):
    return pss_mb(node.processes()["supervisor"])


def cost(node, what):
    """Returns the CPU time of all processes while what() runs."""
    spent = Spent(node)
    what()
    spent.end()
    return spent.all_us or spent.agent_us


def beside(node, existing, count, name):
    """Returns {operation: us} of a start, lists, blocking queries and a stop beside so many allocs."""
    found = {}
    settle(3)
    found["a start"] = cost(node, lambda: start(node, name, "raw_exec", count)) / count
    whole = existing + count
    found["a list, per alloc"] = cost(node, lambda: [node.request("GET", "/v1/allocations") for _ in range(3)]) / whole / 3
    with Waiters(node, name) as waiters:
        found["a start, %d wait for others" % WAITERS] = cost(node, lambda: start(node, name + "-b", "raw_exec", count)) / count
        found["a stop, %d wait for others" % WAITERS] = cost(node, lambda: stop(node, name + "-b", count)) / count
        case.equal(waiters.answers, WAITERS, "answers to queries for other allocs")
        waiters.over = True
        found["a stop, %d wait for it" % WAITERS] = cost(node, lambda: stop(node, name, count)) / count
    return found


def bench_existing():
    """On tmpfs, because removed inodes of ext4 would affect the values (bench_agent.py)."""
    with fresh_directory("tmpfs") as base, Bench(base) as node:
        count, costs, base_mb = min(N, 200), [], supervisor_mb(node)
        ended(node, "first", 50)
        for existing, name in ((100, "few"), (EXISTING, "many")):
            ended(node, "old-" + name, existing - len(node.ask("/v1/allocations")))
            now = len(node.ask("/v1/allocations"))
            costs.append((now, beside(node, now, count, "new-" + name)))
        (few_n, few), (many_n, many) = costs
        for what, us in few.items():
            grew = many[what] / max(1, us)
            row("CPU time of %s, with %d allocs; with %d" % (what, few_n, many_n), "%.0f; %.0f" % (us, many[what]), "us", "constant",
                grew <= 1.5)
        used, parts = idle(node)
        row("idle CPU with %d allocs that are over" % many_n, "%.3f" % used, "% of 1", parts)
        began = time.monotonic()
        node.kill("supervisor")
        poll(lambda: answers(node), 60, "an answer after the restart")
        row("kill of the supervisor until it answers, %d allocs" % many_n, "%.2f" % (time.monotonic() - began), "s")
        before, known = supervisor_mb(node), len(node.ask("/v1/allocations"))
        row("PSS of the supervisor per alloc that is over, then", "%.2f" % ((before - base_mb) * 1024 / known), "KiB")
        start(node, "running", "raw_exec", N)
        row("PSS of the supervisor added per running alloc, of %d" % N, "%.2f" % ((supervisor_mb(node) - before) * 1024 / N), "KiB")
        used, parts = idle(node)
        row("idle CPU with %d running and %d that are over" % (N, many_n), "%.3f" % used, "% of 1", parts)


def answers(node):
    try:
        return node.get("/v1/agent/health")[0] == 200
    except OSError:
        return False


PARTS = {"existing": bench_existing}

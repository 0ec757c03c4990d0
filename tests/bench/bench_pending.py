# SPDX-License-Identifier: Apache-2.0
"""The cost of starts and stops when many allocs are blocked: of as many jobs, or of one."""
import os
import time

from measured import N, Bench, fresh_directory, job, poll, row, settle, start, stop
from bench_many import answers, cost, idle

PENDING = int(os.environ.get("BENCH_PENDING", "10000"))
FEW = 100
ALONE = 50
PORT = 18181
WHOLE_MB = 100000000  # resources of the node (measured.py)


def memory(made):
    made["Job"]["TaskGroups"][0]["Tasks"][0]["Resources"]["MemoryMB"] = WHOLE_MB - 100000
    return made


def port(made):
    made["Job"]["TaskGroups"][0]["Networks"] = [{"ReservedPorts": [{"Label": "p", "Value": PORT}]}]
    return made


def many_jobs(wanting):
    def add(node, first, count):
        for i in range(first, first + count):
            node.register(wanting(job("waits-%d" % i, "raw_exec", 1)))
    return add


def one_job(node, first, count):
    node.register(memory(job("waits", "raw_exec", first + count)))


def queued(node):
    """Returns the number of blocked allocs, from the blocked evaluations."""
    found = node.ask("/v1/evaluations", filter='Status == "blocked"')
    return sum(n for e in found for n in (e["QueuedAllocations"] or {}).values())


def one_by_one(node, name, act):
    """Returns the CPU time of each change in its own turn: each turn examines the blocked allocs."""
    return cost(node, lambda: [act("%s-%d" % (name, i)) for i in range(ALONE)]) / ALONE


def start_one(node, name):
    node.register(job(name, "raw_exec", 1))
    poll(lambda: node.counts(name)["Running"] == 1, 60, name + " running")


def beside(node, count, name):
    """Returns {operation: us} of a start and a stop beside these."""
    settle(3)
    return {"a start of %d" % count: cost(node, lambda: start(node, name, "raw_exec", count)) / count,
            "a start alone": one_by_one(node, name, lambda one: start_one(node, one)),
            "a stop alone": one_by_one(node, name, lambda one: stop(node, one, 1)),
            "a stop of %d" % count: cost(node, lambda: stop(node, name, count)) / count}


def bench_pending():
    """On tmpfs, because removed inodes of ext4 would affect the values (bench_agent.py)."""
    count = min(N, 200)
    for what, wanting, add in (("jobs that wait for memory", memory, many_jobs(memory)), ("jobs that wait for a port", port, many_jobs(port)),
                               ("allocs of a job that wait for memory", memory, one_job)):
        with fresh_directory("tmpfs") as base, Bench(base) as node:
            node.register(wanting(job("has", "raw_exec", 1, stay=True)))
            poll(lambda: node.counts("has")["Running"] == 1, 60, "who has it")
            costs, known = [], 0
            for waiting, name in ((FEW, "few"), (PENDING, "many")):
                began = time.monotonic()
                add(node, known, waiting - known)
                poll(lambda: queued(node) == waiting, 600, "%d %s" % (waiting, what))
                print("  %d %s: %.1f s" % (waiting, what, time.monotonic() - began), flush=True)
                known = waiting
                costs.append(beside(node, count, name))
            few, many = costs
            for part, us in few.items():
                row("CPU time of %s, with %d %s; with %d" % (part, FEW, what, PENDING), "%.0f; %.0f" % (us, many[part]), "us", "constant",
                    many[part] / max(1, us) <= 1.5)
            used, parts = idle(node)
            row("idle CPU with %d %s" % (PENDING, what), "%.3f" % used, "% of 1", parts)
            began = time.monotonic()
            node.kill("supervisor")
            poll(lambda: answers(node), 60, "an answer after the restart")
            row("kill of the supervisor until it answers, %d %s" % (PENDING, what), "%.2f" % (time.monotonic() - began), "s")
            node.do("DELETE", "/v1/job/has")
            poll(lambda: queued(node) == PENDING - 1, 60, "the next one's turn")


PARTS = {"pending": bench_pending}

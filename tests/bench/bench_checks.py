# SPDX-License-Identifier: Apache-2.0
"""The cost of checks of services: many checks with an interval of ten seconds, compared with the same allocs without checks."""
import asyncio
import os
import threading
import time

from measured import Bench, Spent, fresh_directory, job, poll, row
from lib import case

CHECKS = int(os.environ.get("BENCH_CHECKS", "1000"))
SECONDS = 30
ALLOCS = 10
S = 10**9


class Listener:
    """Answers every request on its own port, on all addresses, in a thread of this process."""

    def __enter__(self):
        self.loop, self.count, ready = asyncio.new_event_loop(), 0, threading.Event()

        async def answer(reader, writer):
            self.count += 1
            if await reader.read(4096):
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
            writer.close()

        async def serve():
            self.server = await asyncio.start_server(answer, "0.0.0.0", 0, backlog=1024)
            self.port = self.server.sockets[0].getsockname()[1]
            ready.set()
        self.loop.create_task(serve())
        threading.Thread(target=self.loop.run_forever, daemon=True).start()
        ready.wait(10)
        return self

    def __exit__(self, *_):
        self.loop.call_soon_threadsafe(self.loop.stop)


def with_checks(kind, listener):
    more = {"Path": "/health"} if kind == "http" else {}
    made = [{"Name": "c%d" % i, "Type": kind, "Interval": 10 * S, "Timeout": 5 * S, **more} for i in range(CHECKS // ALLOCS)]
    return job("with-" + kind, "raw_exec", ALLOCS, Services=[
        {"Name": "s", "PortLabel": str(listener.port), "Provider": "nomad", "Checks": made}])


def passing(node, name):
    return sum(c["Status"] == "success" for a in node.ask("/v1/job/%s/allocations" % name)
               for c in (node.ask("/v1/client/allocation/%s/checks" % a["ID"]) or {}).values())


def idle_us(node):
    """Returns the CPU time of the agent's processes per second."""
    spent = Spent(node)
    time.sleep(SECONDS)
    spent.end()
    return spent.agent_us / spent.seconds, spent.bytes / spent.seconds


def bench_checks():
    with fresh_directory() as base, Bench(base) as node, Listener() as listener:
        node.register(job("without", "raw_exec", ALLOCS))
        poll(lambda: node.counts("without")["Running"] == ALLOCS, 60, "%d running" % ALLOCS)
        plain, _ = idle_us(node)
        row("CPU time without checks, %d allocs" % ALLOCS, "%.3f" % (plain / 1e4), "% of 1")
        for kind in ("http", "tcp"):
            made = with_checks(kind, listener)
            node.register(made)
            case.until(lambda n=made["Job"]["ID"]: passing(node, n) == CHECKS, 60, "%d checks to pass" % CHECKS)
            before = listener.count
            used, written = idle_us(node)
            tries = (listener.count - before) / SECONDS
            row("CPU time of %d %s checks every 10 s" % (CHECKS, kind), "%.3f" % ((used - plain) / 1e4), "% of 1",
                "%.0f tries a second" % tries)
            row("  per try; written per try", "%.0f; %.0f" % ((used - plain) / tries, written / tries), "us; bytes")
            node.purge(made["Job"]["ID"])


PARTS = {"checks": bench_checks}

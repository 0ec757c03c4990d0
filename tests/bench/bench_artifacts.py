# SPDX-License-Identifier: Apache-2.0
"""The cost of artifacts from a web server on loopback: starts of tasks that have one, beside the same tasks without, many artifacts of one task, a
large file, and the fetcher's memory."""
import contextlib
import gzip
import io
import tarfile
import time

from lib import web
from measured import Bench, all_processes, fresh_directory, job, poll, pss_mb, row, settle, stop

COUNT, SMALL, LARGE = 100, 100 << 10, 1 << 30  # artifacts, and bytes of one


def archive():
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as t:
        for i in range(100):
            info = tarfile.TarInfo("d/%d" % i)
            info.size = 10 << 10
            t.addfile(info, io.BytesIO(b"x" * info.size))
    return gzip.compress(out.getvalue())


def large(h):
    h.send_response(200)
    h.send_header("Content-Length", str(LARGE))
    h.end_headers()
    for _ in range(LARGE >> 20):
        h.wfile.write(b"x" * (1 << 20))


def with_artifacts(name, sources, count=1):
    made = job(name, "raw_exec", count, EphemeralDisk={"SizeMB": 3000})
    made["Job"]["TaskGroups"][0]["Tasks"][0]["Artifacts"] = [{"GetterSource": s} for s in sources]
    return made


class Peak:
    """The largest PSS of the fetcher and its workers, and the number of workers."""

    def __init__(self, node):
        self.node, self.mb, self.workers, self.one_mb = node, 0, 0, 0

    def look(self):
        fetcher = self.node.processes().get("fetcher")
        found = []
        for pid in [fetcher, *all_processes(fetcher)] if fetcher else ():
            with contextlib.suppress(OSError, AttributeError):  # it has ended
                found.append(pss_mb(pid))
        self.mb, self.workers = max(self.mb, sum(found)), max(self.workers, len(found) - 1)
        self.one_mb = max([self.one_mb, *found[1:]])


def begin(node, made, count, peak=None):
    """Returns the seconds until that many run."""
    def run():
        if peak:
            peak.look()
        return node.counts(name)["Running"] >= count
    name = made["Job"]["ID"]
    settle(5)
    cpu, began = node.cpu_s(), time.monotonic()
    node.register(made)
    poll(run, 600, "%d tasks to run" % count)
    return time.monotonic() - began, node.cpu_s() - cpu


def bench_artifacts():
    files = {"/small": b"x" * SMALL, "/tree.tgz": archive(), "/large": large}
    with fresh_directory() as base, web.Server(files) as server, Bench(base) as node:
        plain, plain_cpu = begin(node, job("plain", "raw_exec", COUNT), COUNT)
        stop(node, "plain", COUNT)
        idle = sum(pss_mb(p) for p in node.parts().values())
        for name, path in (("a file of 100 KiB", "/small"), ("an archive of 100 files", "/tree.tgz")):
            peak = Peak(node)
            took, cpu = begin(node, with_artifacts("each", [server.url + path], COUNT), COUNT, peak)
            row("starts, with %s each" % name, "%.0f" % (COUNT / took), "/s", "without: %.0f" % (COUNT / plain))
            row("CPU time of each, more than without", "%.1f" % ((cpu - plain_cpu) / COUNT * 1e3), "ms", "" if cpu else "not counted here")
            row("largest PSS of the fetcher and its workers", "%.1f" % peak.mb, "MB", "%d workers, one: %.1f" % (peak.workers, peak.one_mb))
            stop(node, "each", COUNT)
        took, _ = begin(node, with_artifacts("many", ["%s/small?n=%d&filename=%d" % (server.url, i, i) for i in range(COUNT)]), 1)
        row("%d artifacts of one task" % COUNT, "%.0f" % (COUNT / took), "/s", "three at a time")
        stop(node, "many", 1)
        peak = Peak(node)
        took, cpu = begin(node, with_artifacts("large", [server.url + "/large"]), 1, peak)
        row("a file of 1 GiB", "%.0f" % (1024 / took), "MiB/s", "fetched and copied")
        row("largest PSS of the fetcher and its worker", "%.1f" % peak.mb, "MB", "")
        stop(node, "large", 1)
        poll(lambda: "fetcher" not in node.processes(), 120, "the fetcher to end")
        settle(3)
        row("PSS of the agent afterwards, more than before", "%.1f" % (sum(pss_mb(p) for p in node.parts().values()) - idle), "MB", "the fetcher has ended")


PARTS = {"artifacts": bench_artifacts}

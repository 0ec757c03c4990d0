# SPDX-License-Identifier: Apache-2.0
"""Walks over the rows of state.db: runs a cycle once undisturbed, then again and again while the supervisor dies before or after a row of some
kind is committed. The result must be the same each time. For 3110 and 3115.

    with crash.Node(env=page.env) as node:
        walk("drain", lambda: drain(node), kinds("DRAIN"))
"""
import urllib.parse

from . import case, crash, nomad_server
from .crash_page import page
from .crash_sweep import armed, counted, spread

S = 10**9


def kinds(*names):
    return [p for p in crash.ROWS if p[len("ROW_"):].removesuffix("_COMMITTED") in names]


def disturbed(what, point, skip, cycle, wanted, **arm):
    with armed(what, point, skip, **arm):
        try:
            case.equal(cycle(), wanted, "outcome")
        except nomad_server.Refusal as e:
            raise AssertionError(e) from None


# Points of processes whose death must not change the result either. Executors are left out, because their tasks die with them, and the launcher,
# because all others do.
HELPERS = [p for p in crash.POINTS if p.startswith(("SUP_AFTER_SEND", "SUP_BETWEEN", "EXEC_", "FILE_AFTER_ALLOC", "FILE_AFTER_LOG"))]


def walk(what, cycle, own, most=100, others=2, helpers=False):
    """Kills at up to `most` passes of the rows that the cycle is about, at a few passes of all other rows that it writes, and, with helpers, at
    one pass of each of their points. The first run is undisturbed; its result is the expected one."""
    passes = {}
    with counted(passes):
        wanted = cycle()
    for point in crash.ROWS:
        for skip in spread(passes[point], most if point in own else others):
            disturbed(what, point, skip, cycle, wanted)
    for point in [p for p in HELPERS if helpers and passes[p]]:
        disturbed(what, point, passes[point] // 2, cycle, wanted)


def finish(node, name):
    """Removes the job and its children."""
    for job in node.ask("/v1/jobs", prefix=name):
        node.purge(urllib.parse.quote(job["ID"], safe=""))
    case.until(lambda: not [j for j in node.ask("/v1/jobs", prefix=name)], 60, name + " to be gone")
    crash.wait_nothing_left(node, 60)
    case.equal(crash.unexplained(node), [], "what had no row")


def events(node, alloc):
    """Returns all events, including those that only state.db has."""
    found = node.ask("/v1/client/allocation/%s/events" % alloc["ID"])
    return {task: [e["Type"] for e in found[task]] for task in found}


def starts(node, alloc):
    return len(crash.alloc_data(node, alloc["ID"], "starts"))


def wait_status(node, name, status, n=1):
    """Waits until the job has so many allocs, all of this client status; returns them, oldest first."""
    def so():
        found = node.ask("/v1/job/%s/allocations" % urllib.parse.quote(name, safe=""))
        return len(found) == n and {a["ClientStatus"] for a in found} == {status} and found
    return case.until(so, 60, "%d allocations of %s to be %s" % (n, name, status))


# 3115, 3120 and 3130 walk these kinds; 3110 walks all others, and so any new kind.
OF_3120 = kinds("PROBE_VALUE", "PROBE_TASK")
OF_3130 = kinds("IMAGE")
OF_3115 = kinds("NODE", "DISK", "INDEX", "LAUNCH", "NAMESPACE", "SIGNING_KEY", "ACL_POLICY", "ACL_ROLE", "ACL_TOKEN", "ACL_BOOTSTRAP", "VOLUME",
                "VARIABLE", "MOUNT", "NODE_META", "NOMAD_NODE", "NOMAD_JOB", "SERVICE", "ACKED")

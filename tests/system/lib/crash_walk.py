# SPDX-License-Identifier: Apache-2.0
"""Walks over the rows of state.db: a cycle is gone through once undisturbed, then again and again while the supervisor dies before or
after a row of a kind is committed, and what comes out in the end has to be the same. For 3110 and 3115.

    with crash.Node(env=page.env) as node:
        walk("drain", lambda: drain(node), kinds("DRAIN"))
"""
import os
import urllib.parse

from . import build_dir, case

CRASH = os.path.join(build_dir(), "crash")
if not os.path.exists(CRASH + "/drover-supervisor"):
    case.skip("no build with crash points (make CRASH=1 BUILD=%s)" % CRASH)
os.environ["DROVER_BUILD"] = CRASH
from . import crash, nomad_server  # noqa: E402

S = 10**9
page = crash.Page()
died = {}


def kinds(*names):
    return [p for p in crash.ROWS if p[len("ROW_"):].removesuffix("_COMMITTED") in names]


def spread(n, most):
    """Of n passes so many: the first, the last, and between."""
    return range(n) if n <= most else [i * (n - 1) // (most - 1) for i in range(most)]


def disturbed(what, point, skip, cycle, wanted, **arm):
    page.arm(point, skip, **arm)
    try:
        case.equal(cycle(), wanted, "outcome")
        if not page.armed():
            died[point] = died.get(point, 0) + 1
    except (AssertionError, nomad_server.Refusal) as e:
        raise AssertionError("%s, %s after %d passes (%s): %s" % (what, point, skip, "not yet hit" if page.armed() else "hit",
                                                                  e)) from None
    finally:
        page.disarm()


# Of whose death nothing may be seen either. An executor's is its task's; the launcher's is all the others'.
HELPERS = [p for p in crash.POINTS if p.startswith(("SUP_AFTER_SEND", "SUP_BETWEEN", "EXEC_", "FILE_AFTER_ALLOC", "FILE_AFTER_LOG"))]


def walk(what, cycle, own, most=100, others=2, helpers=False):
    """Each pass of the rows that the cycle is about, `most` of them, a few of all the others that it comes by, and one of each
    point of the helpers if they are to be killed too. It is gone through undisturbed first: what came out of it then is what
    has to come out each time."""
    before = {p: page.passed(p) for p in crash.POINTS}
    wanted = cycle()
    passes = {p: page.passed(p) - before[p] for p in crash.POINTS}
    for point in crash.ROWS:
        for skip in spread(passes[point], most if point in own else others):
            disturbed(what, point, skip, cycle, wanted)
    for point in [p for p in HELPERS if helpers and passes[p]]:
        disturbed(what, point, passes[point] // 2, cycle, wanted)


def finish(node, name):
    """Nothing of the job and its children stays."""
    for job in node.ask("/v1/jobs", prefix=name):
        node.purge(urllib.parse.quote(job["ID"], safe=""))
    case.until(lambda: not [j for j in node.ask("/v1/jobs", prefix=name)], 60, name + " to be gone")
    crash.wait_nothing_left(node, 60)
    case.equal(crash.unexplained(node), [], "what had no row")


def events(node, alloc):
    """All of them, also those that only state.db has."""
    found = node.ask("/v1/client/allocation/%s/events" % alloc["ID"])
    return {task: [e["Type"] for e in found[task]] for task in found}


def starts(node, alloc):
    return len(crash.alloc_data(node, alloc["ID"], "starts"))


def wait_status(node, name, status, n=1):
    """Until the job has so many allocs, all of this client status. Those, oldest first."""
    def so():
        found = node.ask("/v1/job/%s/allocations" % urllib.parse.quote(name, safe=""))
        return len(found) == n and {a["ClientStatus"] for a in found} == {status} and found
    return case.until(so, 60, "%d allocations of %s to be %s" % (n, name, status))


# The kinds that 3115 walks; 3110 has all others, and so any that is new.
OF_3115 = kinds("NODE", "DISK", "INDEX", "LAUNCH", "VOLUME", "MOUNT", "NODE_META", "NOMAD_NODE", "NOMAD_JOB", "SERVICE")


def reached(points):
    """Somebody has died at each of these."""
    for point in points:
        print("    %-28s killed %3d times, passed %5d times" % (point, died.get(point, 0), page.passed(point)))
    case.equal([p for p in points if not died.get(p)], [], "rows at which nobody died")

# SPDX-License-Identifier: Apache-2.0
"""Sweeps over crash points: a cycle runs again and again, and in each run a process dies at another pass of a point.

    def cycle(disturbed):
        ...
        with disturbed():   # only passes in this block count
            ...
        ...
    sweep("renewal", cycle, SUPERVISOR, most=12)

With CRASH_PASSES=all in the environment (make check-crash), each pass of each point is tested, not only `most` of them.
"""
import contextlib
import os

from . import case, crash
from .crash_page import page

ALL = os.environ.get("CRASH_PASSES") == "all"
SUPERVISOR = ("SUP_BEFORE_COMMIT", "SUP_AFTER_COMMIT", "SUP_AFTER_SEND", "SUP_BETWEEN_SENDS")
died = {}


def spread(n, most):
    """Returns `most` of n passes: the first, the last, and some between."""
    if ALL or n <= most:
        return range(n)
    return [i * (n - 1) // (most - 1) for i in range(most)] if most > 1 else [n // 2]


@contextlib.contextmanager
def armed(what, point, skip=0, **arm):
    """The process that reaches the point in this block dies, after `skip` passes. Yields True."""
    page.arm(point, skip, **arm)
    try:
        yield True
        if not page.armed():
            died[point] = died.get(point, 0) + 1
    except AssertionError as e:
        raise AssertionError("%s, %s after %d passes (%s): %s" % (what, point, skip, "not yet hit" if page.armed() else "hit", e)) from None
    finally:
        page.disarm()


@contextlib.contextmanager
def counted(found):
    """Sets found to {point: passes in this block}. Yields False: no process dies."""
    before = {p: page.passed(p) for p in crash.POINTS}
    yield False
    found.update({p: page.passed(p) - before[p] for p in crash.POINTS})


def run(what, cycle, point, skip):
    """Runs the cycle once. Errors after the disturbed block name the point too. Returns whether the point was reached."""
    before = died.get(point, 0)
    try:
        cycle(lambda: armed(what, point, skip))
    except AssertionError as e:
        if point in str(e):
            raise
        raise AssertionError("%s, %s after %d passes, later: %s" % (what, point, skip, e)) from None
    return died.get(point, 0) > before


def sweep(what, cycle, points, most):
    """Counts the passes of each point in an undisturbed run, and lets a process die at up to `most` of them."""
    passes = {}
    cycle(lambda: counted(passes))
    for point in points:
        for skip in spread(passes[point], most):
            run(what, cycle, point, skip)


def each_pass(what, cycle, point, most):
    """For a point whose passes differ from run to run: tests one pass after the other, until one is not reached."""
    for skip in range(most):
        if not run(what, cycle, point, skip):
            break


def is_alive(pid):
    """False: its children have got the signal that ends them with it."""
    try:
        with open("/proc/%d/stat" % pid, encoding="ascii") as f:
            return f.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def kill_at(node, point, victim, begin, skip=0, ended=None):
    """Kills the process `victim` while another one is at the point, to which begin() leads. That one goes on at once, or with `ended`, when the process of
    this name has ended."""
    page.arm(point, skip, hold=True)
    try:
        begin()
        case.until(page.holds, 30, "a process to be at " + point)
        pid = node.processes()[ended] if ended else 0
        node.kill(victim)
        case.until(lambda: not pid or not is_alive(pid), 30, "the end of the %s" % ended)
    finally:
        page.disarm()


def whole(cycle):
    """Returns the cycle that is disturbed from its begin to its end."""
    def disturbed_cycle(disturbed):
        with disturbed():
            cycle()
    return disturbed_cycle


def check_reached(points):
    """Checks that a process has died at each of these points."""
    for point in points:
        print("    %-28s killed %3d times, passed %5d times" % (point, died.get(point, 0), page.passed(point)))
    case.equal([p for p in points if not died.get(p)], [], "points at which no process died")

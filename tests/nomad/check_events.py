#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the same jobs on drover and on a client of the servers' own program: their events, exit codes and states must be the same. In
namespaces of its own: tests/nomad/isolated.py runs it, for `make check-nomad NOMAD=path`.

    tests/nomad/isolated.py tests/nomad/check_events.py PATH [test_…]…"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from lib import api, case  # noqa: E402
import alike  # noqa: E402
import real  # noqa: E402
from alike import WAITS, has, hook, restarts, running, task  # noqa: E402
from real import S  # noqa: E402

# A sign from one task to another of its alloc. The task that has seen it waits a moment, until the client knows that the other task has
# started.
TELL, WAIT = "echo on > $NOMAD_ALLOC_DIR/data/on", "while [ ! -e $NOMAD_ALLOC_DIR/data/on ]; do sleep 0.1; done; sleep 2"
# A command that fails at its first starts, which it counts in a file, and then keeps running.
FAILS = "echo >> $NOMAD_ALLOC_DIR/data/n; [ $(wc -l < $NOMAD_ALLOC_DIR/data/n) -ge %d ] || exit %d; "


def test_success_and_failure():
    both.run("success", [task("t", "exit 0")])
    both.run("failure", [task("t", "exit 3")])
    both.run("restarts", [task("t", "exit 3")], group=restarts(2))
    both.run("signalled", [task("t", "kill -TERM $$")])
    both.run("nothing", [api.task("t", "/no/such/command")])
    both.same("success", "failure", "restarts", "signalled", "nothing")


def test_stops():
    both.run("stop", [task("t", "echo on; " + WAITS)], "service")
    both.run("stubborn", [task("t", "trap '' INT; echo on; " + WAITS, KillTimeout=S)], "service")
    both.run("term", [task("t", "trap 'exit 7' TERM; echo on; " + WAITS, KillSignal="SIGTERM")], "service")
    both.run("delayed", [task("t", "echo on; " + WAITS, ShutdownDelay=S)], "service")
    names = ("stop", "stubborn", "term", "delayed")
    for name in names:
        both.wait_said(name)
    for name in names:
        both.stop(name)
    both.same(*names)


def test_delays_before_a_stop():
    both.run("group-delay", [task("t", "echo on; " + WAITS)], "service", {"ShutdownDelay": S})
    both.run("no-delay", [task("t", "echo on; " + WAITS, ShutdownDelay=600 * S)], "service", {"ShutdownDelay": 600 * S})
    for name, query in (("group-delay", ""), ("no-delay", "?no_shutdown_delay=true")):
        both.wait_said(name)
        both.stop(name, query)
    both.same("group-delay", "no-delay")


def test_max_run_duration():
    if real.older_than(2, 0):
        case.skip("these servers do not support max_run_duration")
    both.run("limited", [task("t", WAITS), hook("end", "exit 0", "poststop")], group={"MaxRunDuration": 30 * S})
    both.same("limited")


def test_requests_of_an_operator():
    both.run("restarted", [task("t", WAITS)], "service")
    both.run("told", [task("t", "trap 'exit 9' USR1; echo on; " + WAITS)], "batch")
    both.wait_said("told")
    restarted, told = both.until("restarted", running, "run"), both.until("told", running, "run")
    for alloc in restarted.values():
        both.server.do("/v1/client/allocation/%s/restart" % alloc["ID"])
    for alloc in told.values():
        both.server.do("/v1/client/allocation/%s/signal" % alloc["ID"], {"Signal": "SIGUSR1", "Task": "t"})
    both.same("told")
    both.until("restarted", has("Started", count=2), "begin again")
    both.stop("restarted")
    both.same("restarted")


def test_a_restart_of_all_tasks():
    both.run("anew", [hook("before", "exit 0", "prestart"), task("t", "echo on; " + WAITS), hook("after", "exit 0", "poststart"),
                 hook("end", "exit 0", "poststop")], "service")
    for alloc in both.until("anew", has("Terminated", "after"), "run what follows the start").values():
        both.server.do("/v1/client/allocation/%s/restart" % alloc["ID"], {"AllTasks": True})
    both.until("anew", has("Terminated", "after", 2), "run all of it again")
    both.stop("anew")
    both.same("anew")


def test_leaders_and_siblings():
    both.run("leader", [task("t", WAIT + "; exit 0", Leader=True), task("other", TELL + "; " + WAITS)])
    both.run("sibling", [task("t", WAIT + "; exit 5"), task("other", TELL + "; " + WAITS)])
    both.run("hooks", [hook("before", "exit 0", "prestart"), hook("beside", WAITS, "prestart", True), task("t", WAIT + "; exit 0"),
                  hook("after", TELL + "; exit 0", "poststart"), hook("end", "exit 0", "poststop")])
    both.run("failed-before", [hook("before", "exit 4", "prestart"), task("t", WAITS), hook("end", "exit 0", "poststop")])
    both.run("killed-hooks", [task("t", "echo on; " + WAITS), hook("end", "exit 0", "poststop")], "service")
    both.wait_said("killed-hooks")
    both.stop("killed-hooks")
    both.same("leader", "sibling", "hooks", "failed-before", "killed-hooks")
    case.equal(both.met, both.left_out, "events of the original client that docs/differences.md names")


def test_failing_lifecycle_tasks():
    both.run("poststart-fails", [task("t", WAITS), hook("after", "sleep 2; exit 4", "poststart"), hook("end", "exit 0", "poststop")])
    both.run("poststop-fails", [task("t", "exit 0"), hook("end", "exit 6", "poststop")])
    both.run("poststop-again", [task("t", "exit 0"), hook("end", FAILS % (2, 6) + "exit 0", "poststop")], group=restarts(2))
    both.run("prestart-again", [hook("before", FAILS % (2, 4) + "exit 0", "prestart"), task("t", "exit 0")], group=restarts(2))
    both.same("poststart-fails", "poststop-fails", "poststop-again", "prestart-again")


def test_sidecars():
    until_three = "while [ $(wc -l < $NOMAD_ALLOC_DIR/data/n) -lt 3 ]; do sleep 0.1; done; sleep 2; exit 0"
    for code in (0, 1):
        both.run("sidecar-again-%d" % code, [hook("beside", FAILS % (3, code) + WAITS, "prestart", True), task("t", until_three)],
                 group=restarts(2))
    both.run("sidecar-fails", [hook("beside", WAIT + "; exit 4", "prestart", True), task("t", TELL + "; " + WAITS)])
    both.run("sidecar-after", [task("t", WAIT + "; exit 0"), hook("beside", TELL + "; " + WAITS, "poststart", True)])
    both.run("sidecar-after-fails", [task("t", WAITS), hook("beside", "sleep 2; exit 4", "poststart", True)])
    both.same("sidecar-again-0", "sidecar-again-1", "sidecar-fails", "sidecar-after", "sidecar-after-fails")


def test_a_restart_policy_with_delay():
    """After the second failure within the interval the task waits for the end of the interval; the third failure is the first of the
    next."""
    both.run("later", [task("t", FAILS % (4, 3) + "echo on; " + WAITS)], "service", restarts(1, "delay", 20))
    both.until("later", lambda a: running(a) and a["TaskStates"]["t"]["Restarts"] == 3, "have begun for the fourth time")
    both.wait_said("later")
    both.stop("later")
    both.same("later")


def dead(limit):
    """Returns a service whose check of a port without a listener restarts its task, and the port."""
    check = {"Name": "dead", "Type": "tcp", "Interval": S, "Timeout": S, "CheckRestart": {"Limit": limit, "Grace": S}}
    return {"Services": [{"Name": "dead", "PortLabel": "x", "Provider": "nomad", "Checks": [check]}]}


def test_checks_that_restart():
    network = {"Networks": [{"Mode": "host", "DynamicPorts": [{"Label": "x"}]}]}
    both.run("of-group", [task("t", WAITS)], group={**restarts(1), **network, **dead(2)})
    both.run("of-task", [task("t", WAITS, **dead(2)), hook("end", "exit 0", "poststop")], group={**restarts(1), **network})
    both.run("at-once", [task("t", WAITS)], group={**restarts(0), **network, **dead(1)})
    both.same("of-group", "of-task", "at-once")


def test_the_exec_driver():
    both.run("exec-success", [task("t", "exit 0", "exec")])
    both.run("exec-failure", [task("t", "exit 3", "exec")], group=restarts(2))
    both.run("oom", [task("t", "x=aaaaaaaaaaaaaaaa; while :; do x=$x$x; done", "exec")])
    both.run("exec-stop", [task("t", "trap 'exit 7' INT; echo on; " + WAITS, "exec")], "service")
    both.wait_said("exec-stop")
    both.stop("exec-stop")
    both.same("exec-success", "exec-failure", "oom", "exec-stop")


with alike.pair() as both:
    print("  servers and client: " + real.VERSION)
    case.run(globals())

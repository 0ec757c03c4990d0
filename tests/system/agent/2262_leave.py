#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""drain_on_shutdown of an agent without servers: which signals drain the node, what is stopped when, and what runs again afterwards."""
import contextlib
import os
import signal

from lib import api, case, service
from lib.cluster import processes_of

CONFIG = """log_level = "debug"
leave_on_terminate = true
client {
  max_kill_timeout = "60s"
  drain_on_shutdown { %s }
}
plugin "raw_exec" { config { enabled = true } }
"""
UP = "touch $NOMAD_ALLOC_DIR/up; while :; do sleep 0.1; done"
STUBBORN = ["-c", "trap '' INT TERM; " + UP]
SLOW = ["-c", "trap 'sleep 2; exit 0' INT; " + UP]


def node_with(drain=""):
    return service.Node(CONFIG % drain)


def start(node, name, kind="service", **more):
    """Returns the id of an alloc whose task runs."""
    made = api.job(name, **more)
    made["Job"]["Type"] = kind
    if kind != "service":
        for member in ("ReschedulePolicy", "Update"):
            made["Job"]["TaskGroups"][0].pop(member)
    node.register(made)
    return node.wait_running(name)[0]["ID"]


def start_trap(node, name, args):
    """As start(), for a shell that has set its trap."""
    alloc = start(node, name, command="/bin/sh", args=args, KillTimeout=60 * 10**9)
    case.until(lambda: os.path.exists("%s/alloc/%s/alloc/up" % (node.data, alloc)), 20, "the trap")
    return alloc


def restart(node):
    node.start()
    node.wait_ready()


def purge(node, *jobs):
    for name in jobs:
        node.purge(name)


def test_sigterm_drains_and_the_next_start_runs_the_jobs_again():
    with node_with() as node:
        alloc = start(node, "web")
        case.equal(node.stop(signal.SIGTERM), 0)
        case.equal(processes_of(alloc), [])
        case.contains(node.log(), "launcher: info: draining; send the signal again to stop waiting")
        case.contains(node.log(), "the node is drained")
        restart(node)
        case.equal(node.wait_running("web")[0]["ID"] != alloc, True, "whether another allocation runs")
        # A signal for which no drain is configured leaves the tasks running.
        left = node.wait_running("web")[0]["ID"]
        case.equal(node.stop(signal.SIGINT), 0)
        case.equal(len(processes_of(left)), 1, "tasks after SIGINT")
        restart(node)
        case.equal(node.wait_running("web")[0]["ID"], left)
        purge(node, "web")


def test_system_jobs_are_left_running_on_request():
    with node_with("ignore_system_jobs = true") as node:
        web, guard = start(node, "web"), start(node, "guard", "system")
        case.equal(node.stop(), 0)
        case.equal((len(processes_of(web)), len(processes_of(guard))), (0, 1))
        restart(node)
        case.equal(node.wait_running("guard")[0]["ID"], guard)
        purge(node, "web", "guard")


def test_batch_jobs_may_finish_until_the_deadline():
    with node_with('deadline = "1h"') as node:
        start(node, "work", "batch", command="/bin/sh", args=["-c", "until [ -e $NOMAD_ALLOC_DIR/go ]; do sleep 0.05; done"])
        alloc = node.allocs("work")[0]["ID"]
        node.process.send_signal(signal.SIGTERM)
        node.wait_log("draining the node before the agent ends")
        case.equal(len(processes_of(alloc)) > 0, True, "whether the job still runs")
        with open("%s/alloc/%s/alloc/go" % (node.data, alloc), "w", encoding="ascii"):
            pass
        case.equal(node.wait(), 0)
        restart(node)
        case.equal([a["ClientStatus"] for a in node.allocs("work")], ["complete"])
        purge(node, "work")
    with node_with('deadline = "1s"') as node:
        alloc = start(node, "work", "batch")
        case.equal(node.stop(), 0)
        case.equal(processes_of(alloc), [])
        restart(node)
        purge(node, "work")


def test_a_second_signal_ends_the_wait_and_leaves_the_tasks():
    with node_with() as node:
        alloc = start_trap(node, "stubborn", STUBBORN)
        node.process.send_signal(signal.SIGTERM)
        node.wait_log("Sent interrupt")
        node.process.send_signal(signal.SIGTERM)
        case.equal(node.wait(), 0)
        case.contains(node.log(), "not waiting any longer for the end of the remaining tasks")
        case.equal(len(processes_of(alloc)) > 0, True, "whether the task still runs")
        restart(node)
        for pid in processes_of(alloc):
            with contextlib.suppress(ProcessLookupError):  # the sleep of the loop
                os.kill(pid, signal.SIGKILL)
        purge(node, "stubborn")


def test_the_drain_goes_on_when_the_supervisor_is_killed():
    with node_with() as node:
        alloc = start_trap(node, "slow", SLOW)
        node.process.send_signal(signal.SIGTERM)
        node.wait_log("Sent interrupt")
        node.kill("supervisor")
        case.equal(node.wait(), 0)
        case.equal(processes_of(alloc), [])
        case.contains(node.log(), "the node is drained")
        restart(node)
        purge(node, "slow")


with service.Users():
    case.run(globals())

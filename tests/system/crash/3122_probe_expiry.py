#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# takes: 130
"""The agent dies while the task of a probe runs, and is not started: the task ends by itself after two minutes, and the next agent removes the rest."""
import http.client
import os
import signal
import threading
import time

from lib import api, case, state
from lib.agent import wait_gone

LIFE_S = 120


def probe():
    try:
        node.request("GET", "/v1/agent/health?deep=1")
    except (OSError, http.client.HTTPException):
        pass  # the agent dies meanwhile


def rows():
    """Returns {alloc: the latest end of its task}, from state.db."""
    return {key.split("/")[1]: int(value) / 1e9 for key, value in state.query(node, "SELECT key, value FROM meta WHERE key LIKE 'health_check/%'")}


def stop_in_a_probe():
    """Stops the supervisor while a task of a probe runs. Returns the processes of the task, or [] if it has ended before."""
    supervisor = node.processes()["supervisor"]
    asking = threading.Thread(target=probe)
    asking.start()
    while asking.is_alive() and not case.pids_with("health-check"):
        pass
    os.kill(supervisor, signal.SIGSTOP)
    case.until(lambda: stopped(supervisor), 10, "the supervisor to be stopped")
    found = case.pids_with("health-check")
    if found:
        threads.append(asking)
        return found
    os.kill(supervisor, signal.SIGCONT)
    asking.join()
    return []


def stopped(pid):
    with open("/proc/%d/stat" % pid, encoding="ascii") as f:
        return f.read().rpartition(")")[2].split()[0] == "T"


def test_a_task_that_nobody_stops():
    pids = case.until(stop_in_a_probe, 60, "a task of a probe that runs while the supervisor is stopped")
    node.kill_launcher()
    for thread in threads:
        thread.join()
    left, now = rows(), time.time()
    case.equal(len(left) > 0, True, "rows of tasks")
    case.equal([end for end in left.values() if not now - LIFE_S < end <= now + LIFE_S], [], "ends that are not two minutes after the begin")
    case.equal([alloc for alloc in left if os.path.isdir(node.data + "/alloc/" + alloc)] != [], True, "directories of tasks")
    wait_gone(pids, LIFE_S + 90)
    node.start()
    node.wait_ready()
    case.until(lambda: not rows(), 30, "the rows to be removed")
    case.equal([name for place in ("/alloc", "/logs") for name in os.listdir(node.data + place) if name[0] != "."], [], "directories that are left")
    case.equal((case.pids_with("health-check"), node.ask("/v1/agent/leaks")), ([], []), "what is left")
    case.equal(node.request("GET", "/v1/agent/health?deep=1").status, 200)


threads = []
with api.Node() as node:
    case.run(globals())

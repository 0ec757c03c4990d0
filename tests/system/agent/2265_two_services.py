#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two agents without -dev on one machine, each with a runtime_dir of its own: they share the users, and neither affects the other."""
import os

from lib import agent, api, case, crash, service
from lib.cluster import processes_of

CONFIG = 'plugin "raw_exec" { config { enabled = true } }\nclient {\n  min_dynamic_port = %d\n  max_dynamic_port = %d\n}\n'
OTHER = "/run/drover-b"


def start_jobs(node):
    """Returns {driver: id of an alloc whose task runs}. Both nodes get the same jobs."""
    found = {}
    for driver in ("raw_exec", "exec"):
        node.register(api.job(driver, driver=driver))
        found[driver] = node.wait_running(driver)[0]["ID"]
    return found


def running(allocs):
    return {driver: len(processes_of(alloc)) for driver, alloc in allocs.items()}


def test_the_two_share_nothing_but_users():
    for name in ("drover.sock", "lease", "x"):
        case.equal([os.path.exists(node.runtime_dir + "/" + name) for node in (a, b)], [True, True], name)
    case.equal(crash.instance(a) == crash.instance(b), False, "whether they are one instance")
    case.equal({n["ID"] for n in a.ask("/v1/nodes")} & {n["ID"] for n in b.ask("/v1/nodes")}, set(), "node ids")
    case.equal((len(os.listdir(a.runtime_dir + "/x")), len(os.listdir(b.runtime_dir + "/x"))), (2, 2), "sockets of executors")
    for node in (a, b):
        case.equal(node.ask("/v1/agent/leaks"), [], "leaks")
        case.equal(sorted(j["ID"] for j in node.ask("/v1/jobs")), ["exec", "raw_exec"])


def test_the_end_and_crashes_of_one_do_not_affect_the_other():
    pids = b.processes()
    for name in ("supervisor", "exec-helper", "mount-helper", "file-helper"):
        a.wait_process(name, other_than=a.kill(name))
    a.wait_ready()
    case.equal(a.stop(), 0)
    case.equal(b.processes(), pids, "processes of the other agent")
    case.equal((running(ours), running(theirs)), ({"raw_exec": 1, "exec": 1}, {"raw_exec": 1, "exec": 1}), "tasks")
    a.start()
    a.wait_ready()
    case.equal({driver: a.wait_running(driver)[0]["ID"] for driver in ours}, ours)
    a.purge("raw_exec")
    a.purge("exec")
    case.until(lambda: running(ours) == {"raw_exec": 0, "exec": 0}, 20, "the end of the tasks")
    case.equal(running(theirs), {"raw_exec": 1, "exec": 1}, "tasks of the other agent")
    b.purge("raw_exec")
    b.purge("exec")


def test_agents_with_the_same_runtime_directory_are_refused():
    with agent.Agent(["-config", b.args[1]], dev=False) as c:
        case.equal(c.wait(), 1)
        case.contains(c.log(), "another agent uses " + OTHER)


with service.Users(), service.Node(CONFIG % (20000, 25999)) as a, service.Node(CONFIG % (26000, 32000), OTHER) as b:
    ours, theirs = start_jobs(a), start_jobs(b)
    case.run(globals())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two agents with -dev on a machine where drover is installed. Both have jobs of the same names, and neither affects the other."""
import os
import signal

from lib import agent, api, case, crash, helper, service

COUNT = 'i=0; while :; do i=$((i + 1)); echo $i > "$NOMAD_ALLOC_DIR/data/n.new"; mv "$NOMAD_ALLOC_DIR/data/n.new" ' \
        '"$NOMAD_ALLOC_DIR/data/n"; sleep 0.05; done'
DRIVERS = ("raw_exec", "exec")


class Node(api.Node):
    def start_jobs(self):
        for driver in DRIVERS:
            self.register(api.job(driver, "/bin/sh", ["-c", COUNT], count=2, driver=driver))
        for driver in DRIVERS:
            self.wait_running(driver, 2)

    def allocs_of_all(self):
        return [a for driver in DRIVERS for a in self.wait_running(driver, 2)]

    def counter(self, alloc):
        try:
            with open("%s/alloc/%s/alloc/data/n" % (self.data, alloc["ID"]), encoding="ascii") as f:
                return int(f.read())
        except (OSError, ValueError):
            return -1

    def tasks(self):
        """Returns {alloc id: pid of its task} from the records."""
        return {r["alloc"].hex(): r["task_pid"] for r in crash.records(self).values()}

    def uids(self):
        """Returns the users of its processes except root and nobody."""
        found = set()
        for pid in self.processes().values():
            with open("/proc/%d/status" % pid, encoding="ascii", errors="replace") as f:
                found |= {int(line.split()[1]) for line in f if line.startswith("Uid:")}
        return found - {0, 65534}

    def cgroups(self):
        name = "drover-" + crash.instance(self)
        return [at for tree in helper.cgroup_trees().values() for at in [tree + "/" + name] if os.path.exists(at)]

    def check_works(self, tasks, what):
        """Checks that the same processes still work, and that the agent accepts a new job."""
        case.equal(self.tasks(), tasks, "tasks, " + what)
        for alloc in self.allocs_of_all():
            seen = self.counter(alloc)
            case.until(lambda: self.counter(alloc) > seen, 10, "%s to keep counting, %s" % (alloc["Name"], what))
        self.register(api.job("new", driver="exec"))
        self.wait_running("new")
        self.purge("new")
        case.until(lambda: self.tasks() == tasks, 10, "the record of the new alloc to be removed, " + what)
        case.equal(self.ask("/v1/agent/leaks"), [], "leaks, " + what)


def test_the_two_agents_share_nothing():
    a.start_jobs()
    b.start_jobs()
    case.equal(crash.instance(a) == crash.instance(b), False, "whether they are one instance")
    case.equal(bool(a.uids()) and bool(b.uids()) and not a.uids() & b.uids(), True, "uids %s %s" % (a.uids(), b.uids()))
    installed = {service.FIRST_ID + i for i in range(len(service.AGENT))}
    case.equal((a.uids() | b.uids()) & installed, set(), "users of the installed agent")
    case.equal((len(a.tasks()), len(b.tasks()), set(a.tasks().values()) & set(b.tasks().values())), (4, 4, set()), "tasks")
    case.equal(bool(a.cgroups()) and bool(b.cgroups()), True, "cgroups")
    case.equal({x["ID"] for x in a.ask("/v1/nodes")} & {x["ID"] for x in b.ask("/v1/nodes")}, set(), "node ids")
    a.check_works(a.tasks(), "beside the other")
    b.check_works(b.tasks(), "beside the other")


def test_crashes_of_one_agent_do_not_affect_the_other():
    theirs, mine = b.tasks(), a.tasks()
    for name in ("supervisor", "exec-helper", "mount-helper", "file-helper", "heartbeat"):
        other = a.wait_process(name)
        a.kill(name)
        a.wait_process(name, other_than=other)
        a.wait_ready()
    a.kill_launcher()
    a.start()
    a.wait_ready()
    a.check_works(mine, "after crashes")
    b.check_works(theirs, "after crashes of the other")


def test_an_agent_ignores_the_leftovers_of_a_killed_one():
    """Objects that a killed agent left are not treated as leftovers by the other, neither while it runs nor when it starts."""
    theirs, mine = b.tasks(), a.tasks()
    a.kill_launcher()
    supervisor = b.kill("supervisor")
    b.wait_process("supervisor", other_than=supervisor)
    b.wait_ready()
    b.check_works(theirs, "started beside one that is not there")
    case.equal([pid for pid in mine.values() if not agent.arguments(pid)], [], "tasks of the other agent")
    a.start()
    a.wait_ready()
    a.check_works(mine, "after that")


def test_one_agent_ends_without_affecting_the_other():
    theirs, mine = b.tasks(), a.tasks()
    case.equal(a.stop(signal.SIGINT), 0, "exit code")
    case.equal([pid for pid in mine.values() if agent.arguments(pid)], [], "its tasks")
    case.equal(a.cgroups(), [], "its cgroups")
    case.equal([m for m in mounts() if a.data + "/" in m], [], "its mounts")
    b.check_works(theirs, "after the end of the other")
    # It can start again beside the other.
    a.start()
    a.wait_ready()
    a.start_jobs()
    a.check_works(a.tasks(), "the second time")
    b.check_works(theirs, "beside the other's second time")


def test_both_agents_end_and_leave_nothing():
    for node in (b, a):
        case.equal(node.stop(), 0, "exit code")
        case.equal((node.cgroups(), [m for m in mounts() if node.data + "/" in m]), ([], []), "objects that are left")
        # Files of its allocs are data and stay; nothing of its runs is left.
        case.equal((os.listdir(node.data + "/run"), os.path.exists(node.data + "/rt")), ([], False), "its runs")


def mounts():
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        return [line.split(" ")[4] for line in f]


# As on a machine where drover is installed: no process here may have its users.
with service.Users(), Node() as a, Node() as b:
    case.run(globals())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two agents with -dev on a machine where drover is installed: jobs of the same names on both, and what happens to one is nothing
to the other."""
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
        """{alloc id: pid of its task}, from the records."""
        return {r["alloc"].hex(): r["task_pid"] for r in crash.records(self).values()}

    def uids(self):
        """Whose its processes are, root's and nobody's apart."""
        found = set()
        for pid in self.processes().values():
            with open("/proc/%d/status" % pid, encoding="ascii", errors="replace") as f:
                found |= {int(line.split()[1]) for line in f if line.startswith("Uid:")}
        return found - {0, 65534}

    def cgroups(self):
        name = "drover-" + crash.instance(self)
        return [at for tree in helper.cgroup_trees().values() for at in [tree + "/" + name] if os.path.exists(at)]

    def is_well(self, tasks, what):
        """The same processes, still at work; and the agent takes new work."""
        case.equal(self.tasks(), tasks, "tasks, " + what)
        for alloc in self.allocs_of_all():
            seen = self.counter(alloc)
            case.until(lambda: self.counter(alloc) > seen, 10, "%s to go on, %s" % (alloc["Name"], what))
        self.register(api.job("new", driver="exec"))
        self.wait_running("new")
        self.purge("new")
        case.until(lambda: self.tasks() == tasks, 10, "the new one's record to be gone, " + what)
        case.equal(self.ask("/v1/agent/leaks"), [], "leaks, " + what)


def test_they_share_nothing():
    a.start_jobs()
    b.start_jobs()
    case.equal(crash.instance(a) == crash.instance(b), False, "one instance")
    case.equal(bool(a.uids()) and bool(b.uids()) and not a.uids() & b.uids(), True, "uids %s %s" % (a.uids(), b.uids()))
    installed = {service.FIRST_ID + i for i in range(len(service.AGENT))}
    case.equal((a.uids() | b.uids()) & installed, set(), "users of the installed agent")
    case.equal((len(a.tasks()), len(b.tasks()), set(a.tasks().values()) & set(b.tasks().values())), (4, 4, set()), "tasks")
    case.equal(bool(a.cgroups()) and bool(b.cgroups()), True, "cgroups")
    case.equal({x["ID"] for x in a.ask("/v1/nodes")} & {x["ID"] for x in b.ask("/v1/nodes")}, set(), "node ids")
    a.is_well(a.tasks(), "beside the other")
    b.is_well(b.tasks(), "beside the other")


def test_crashes_of_one_are_nothing_to_the_other():
    theirs, mine = b.tasks(), a.tasks()
    for name in ("supervisor", "exec-helper", "mount-helper", "file-helper", "heartbeat"):
        other = a.wait_process(name)
        a.kill(name)
        a.wait_process(name, other_than=other)
        a.wait_ready()
    a.kill_launcher()
    a.start()
    a.wait_ready()
    a.is_well(mine, "after crashes")
    b.is_well(theirs, "after crashes of the other")


def test_a_start_beside_one_that_is_half_gone():
    """What one left when everything of it was killed is no leftover of the other, neither while it runs nor when it starts."""
    theirs, mine = b.tasks(), a.tasks()
    a.kill_launcher()
    supervisor = b.kill("supervisor")
    b.wait_process("supervisor", other_than=supervisor)
    b.wait_ready()
    b.is_well(theirs, "started beside one that is not there")
    case.equal([pid for pid in mine.values() if not agent.arguments(pid)], [], "the other's tasks")
    a.start()
    a.wait_ready()
    a.is_well(mine, "after that")


def test_the_end_of_one_is_its_own():
    theirs, mine = b.tasks(), a.tasks()
    case.equal(a.stop(signal.SIGINT), 0, "exit code")
    case.equal([pid for pid in mine.values() if agent.arguments(pid)], [], "its tasks")
    case.equal(a.cgroups(), [], "its cgroups")
    case.equal([m for m in mounts() if a.data + "/" in m], [], "its mounts")
    b.is_well(theirs, "after the end of the other")
    # And it comes back beside it.
    a.start()
    a.wait_ready()
    a.start_jobs()
    a.is_well(a.tasks(), "the second time")
    b.is_well(theirs, "beside the other's second time")


def test_nothing_is_left():
    for node in (b, a):
        case.equal(node.stop(), 0, "exit code")
        case.equal((node.cgroups(), [m for m in mounts() if node.data + "/" in m]), ([], []), "what is left")
        # What its allocs wrote is data and stays; whatever ran is gone.
        case.equal((os.listdir(node.data + "/run"), os.path.exists(node.data + "/rt")), ([], False), "its runs")


def mounts():
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        return [line.split(" ")[4] for line in f]


# As on a machine where drover is installed: its users are nobody's here.
with service.Users(), Node() as a, Node() as b:
    case.run(globals())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""drover cleanup on a machine of its own: what it removes of dead agents, and that it leaves running agents and tasks alone."""
import json
import os
import shutil

from lib import case, systemd_bed

CONFIG = 'plugin "raw_exec" { config { enabled = true } }\n'
JOB = {"Job": {"ID": "stay", "Name": "stay", "Type": "service", "Datacenters": ["*"], "TaskGroups": [{
    "Name": "g", "Count": 1, "Update": {"MaxParallel": 0}, "Tasks": [{
        "Name": "t", "Driver": "raw_exec", "Config": {"command": "/bin/sleep", "args": ["987654"]},
        "Resources": {"CPU": 100, "MemoryMB": 64}}]}]}}


def boot():
    return systemd_bed.Bed({"etc/drover/agent.hcl": CONFIG, "root/job.json": json.dumps(JOB)})


def cleanup(bed, *flags, code=0):
    """Returns {(kind, name): (result, detail)}."""
    r = bed.run("drover", "cleanup", "-json", *flags, check=False)
    case.equal(r.returncode, code, r.stdout)
    return {(row["Kind"], row["Name"]): (row["Result"], row["Detail"]) for row in json.loads(r.stdout)}


def results(found):
    return {key: value[0] for key, value in found.items()}


class Dev:
    """An agent with -dev as a transient unit of the bed. Its executors are not in the unit's cgroup."""

    def __init__(self, bed, data):
        self.bed, self.data = bed, data
        self.start()

    def start(self):
        self.bed.run("systemd-run", "-q", "--unit=dev", "-p", "KillMode=control-group", "drover", "agent", "-dev", "-data-dir", self.data)
        case.until(lambda: self.drover("status", check=False).returncode == 0, 20, "the agent")
        self.instance = self.bed.run("cat", self.data + "/instance").stdout.strip()
        self.cgroup = ("cgroup", "/drover-" + self.instance)

    def drover(self, *words, check=True):
        return self.bed.run("drover", *words, "-address", "unix://%s/rt/drover.sock" % self.data, check=check)

    def run_job(self):
        self.drover("job", "run", "/root/job.json")
        return case.until(self.tasks, 20, "the task")

    def tasks(self):
        return self.bed.run("pgrep", "-f", "^/bin/sleep 987654", check=False).stdout.split()

    def kill(self):
        self.bed.run("systemctl", "kill", "-s", "KILL", "dev.service")
        case.until(lambda: self.bed.show("dev.service", "ActiveState") in ("failed", "inactive"), 20, "the end of the agent")
        case.until(lambda: not self.bed.run("pgrep", "-f", "^drover-(supervisor|[a-z]+-helper|heartbeat)", check=False).stdout, 20, "all its processes")
        self.bed.run("systemctl", "reset-failed", "dev.service", check=False)

    def kill_tasks(self):
        self.bed.run("pkill", "-9", "-f", "^drover-executor", check=False)
        self.bed.run("pkill", "-9", "-f", "^/bin/sleep 987654", check=False)
        events = "find /sys/fs/cgroup -path '*/drover-%s/cgroup.events' -exec cat {} +" % self.instance
        case.until(lambda: "populated 1" not in self.bed.run("sh", "-c", events).stdout, 10, "the end of the task")


def mounts(bed, path):
    return [line for line in bed.run("cat", "/proc/self/mountinfo").stdout.splitlines() if " %s/" % path in line]


def cgroups(bed, name):
    return bed.run("find", "/sys/fs/cgroup", "-name", name).stdout.split()


def test_what_a_killed_agent_leaves_is_removed():
    with boot() as bed:
        a = Dev(bed, "/root/a")
        case.equal(bed.run("drover", "cleanup").stdout, "nothing to remove\n", "beside a running agent")
        r = bed.run("setpriv", "--reuid=nobody", "--clear-groups", "drover", "cleanup", check=False)
        case.equal((r.returncode, r.stdout), (1, "drover: cleanup must run as root\n"))
        case.equal(cleanup(bed, "-all", "-kill", "-data-dir", "/root/a"), {("data directory", "/root/a"): ("kept", "its agent runs")})
        task = a.run_job()
        case.equal(results(cleanup(bed, "-kill")), {}, "with a task")
        a.kill()
        # A task of an agent that was killed may be followed again by the next one.
        found = cleanup(bed)
        case.equal(found, {a.cgroup: ("kept", "tasks run, of /root/a: start their agent, or add -kill")})
        case.equal(a.tasks(), task)
        a.start()
        case.equal(a.tasks(), task, "the task after the restart")
        a.kill()
        a.kill_tasks()
        wanted = {a.cgroup, ("mount", "/root/a/alloc"), ("runtime directory", "/root/a/rt")}
        dry = results(cleanup(bed, "-dry-run"))
        case.equal((set(dry) >= wanted, set(dry.values())), (True, {"would be removed"}), dry)
        case.equal((len(mounts(bed, "/root/a")) > 0, len(cgroups(bed, "drover-" + a.instance)) > 0), (True, True), "after -dry-run")
        case.equal(set(results(cleanup(bed)).values()), {"removed"})
        case.equal((mounts(bed, "/root/a"), cgroups(bed, "drover-" + a.instance)), ([], []))
        case.equal(bed.run("ls", "/root/a/rt", check=False).returncode, 2)
        case.equal(bed.run("drover", "cleanup").stdout, "nothing to remove\n")
        # The data is still there, and the agent starts with it.
        a.start()
        case.contains(a.drover("job", "status").stdout, "stay")
        a.drover("job", "stop", "stay")
        bed.run("systemctl", "stop", "dev.service")
        bed.power_off()


def test_tasks_are_killed_on_request_or_when_their_data_is_gone():
    with boot() as bed:
        a = Dev(bed, "/root/a")
        a.run_job()
        a.kill()
        case.equal(results(cleanup(bed, "-kill"))[a.cgroup], "removed")
        case.equal((a.tasks(), mounts(bed, "/root/a"), cgroups(bed, "drover-" + a.instance)), ([], [], []))
        b = Dev(bed, "/root/b")
        b.run_job()
        b.kill()
        bed.run("umount", "-R", "-l", "/root/b/alloc")
        bed.run("rm", "-rf", "/root/b")
        case.equal(results(cleanup(bed)), {b.cgroup: "removed"})
        case.equal((b.tasks(), cgroups(bed, "drover-" + b.instance)), ([], []))
        bed.power_off()


def test_a_temporary_data_directory_is_removed():
    with boot() as bed:
        bed.run("systemd-run", "-q", "--unit=dev", "drover", "agent", "-dev")
        data = case.until(lambda: bed.run("find", "/tmp", "-name", "drover.sock").stdout.strip(), 20, "the agent").partition("/rt")[0]
        case.until(lambda: bed.run("drover", "status", "-address", "unix://" + data + "/rt/drover.sock", check=False).returncode == 0, 20, "its answer")
        case.equal(results(cleanup(bed)), {})
        bed.run("systemctl", "kill", "-s", "KILL", "dev.service")
        case.until(lambda: results(cleanup(bed)).get(("data directory", data)) == "removed", 10, "the removal")
        case.equal(bed.run("ls", data, check=False).returncode, 2)
        # Cleanup ignores directories that other users can change, and does not wait for a FIFO.
        bed.run("sh", "-c", "mkdir -p /tmp/drover-aaaaaa/rt; cd /tmp/drover-aaaaaa; echo deadbeef >instance; mkfifo lock; touch uids; chown -R nobody .")
        bed.run("sh", "-c", "mkdir /tmp/drover-bbbbbb; cd /tmp/drover-bbbbbb; echo deadbeef >instance; mkfifo lock; touch uids")
        found = results(cleanup(bed, "-dry-run"))
        case.equal(("data directory", "/tmp/drover-aaaaaa") in found, False)
        case.equal(bed.run("ls", "/tmp/drover-aaaaaa/rt").returncode, 0)
        bed.run("rm", "-rf", "/tmp/drover-aaaaaa", "/tmp/drover-bbbbbb")
        bed.power_off()


def test_all_of_a_stopped_service_is_removed_on_request():
    with boot() as bed:
        bed.run("systemctl", "start", "drover.socket", "drover.service")
        bed.run("drover", "job", "run", "/root/job.json")
        instance = bed.run("cat", "/var/lib/drover/instance").stdout.strip()
        cgroup = ("cgroup", "/drover.slice/drover-tasks.service/" + instance)
        case.equal(cleanup(bed, "-all", "-users")[("user", "drover")], ("kept", "agents or tasks run"))
        bed.run("systemctl", "stop", "drover.socket", "drover.service")
        case.equal(cleanup(bed, "-all")[cgroup][0], "kept", "with a task")
        bed.run("systemctl", "stop", "drover-tasks.service")
        # Without -all a service is only stopped: its mounts and its runtime directory stay.
        found = results(cleanup(bed))
        case.equal(found.get(("data directory", "/var/lib/drover")), "kept", found)
        case.equal(bed.run("ls", "/run/drover/lease").returncode, 0)
        found = results(cleanup(bed, "-all", "-users"))
        case.equal(set(found.values()), {"removed"})
        assert {("mount", "/var/lib/drover/alloc"), ("runtime directory", "/run/drover"), ("user", "drover"), ("user", "drover-file")} <= set(found), found
        case.equal((mounts(bed, "/var/lib/drover"), cgroups(bed, instance)), ([], []))
        case.equal(bed.run("grep", "^drover", "/etc/passwd", "/etc/group", check=False).stdout, "")
        case.equal(bed.run("drover", "cleanup", "-all", "-users").stdout, "nothing to remove\n")
        bed.power_off()


if not (shutil.which("gcc") and os.path.exists("/lib/systemd/systemd")) or os.environ.get("DROVER_BED") == "machine":
    case.skip("needs systemd, and gcc for make install")
case.run(globals())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# takes: 45
"""The units under a systemd: socket activation, readiness, the watchdog, and tasks that outlive restarts of the agent and of systemd."""
import json
import os
import re
import shutil

from lib import ROOT, case, systemd_bed

with open(ROOT + "/supervisor/core/journal_kinds.def", encoding="utf-8") as kinds_file:
    KINDS = dict(re.findall(r'^JOURNAL_KIND\((\w+), "([0-9a-f]{32})"\)', kinds_file.read(), re.M))
CONFIG = 'plugin "raw_exec" { config { enabled = true } }\n'
# An emulated guest needs seconds for a start, and any machine may be busy.
WATCHDOG = "[Service]\nWatchdogSec=%d\n" % (20 if systemd_bed.Bed.is_machine else 10)
SCRIPT = "trap 'echo asked >/run/asked; exit 0' INT TERM; sleep 987654 & wait"
JOB = {"Job": {"ID": "stay", "Name": "stay", "Type": "service", "Datacenters": ["*"], "TaskGroups": [{
    "Name": "g", "Count": 1, "Update": {"MaxParallel": 0}, "Tasks": [{
        "Name": "t", "Driver": "raw_exec", "Config": {"command": "/bin/sh", "args": ["-c", SCRIPT]},
        "Resources": {"CPU": 100, "MemoryMB": 64}}]}]}}
# Connects again and again, without repeating a failed connect(2).
PROBE = """
import os, socket, time
good, bad = 0, []
while True:
    s = socket.socket(socket.AF_UNIX)
    try:
        s.connect("/run/drover/drover.sock")
        good += 1
    except OSError as e:
        bad.append(str(e))
    s.close()
    with open("/run/probe.new", "w") as f:
        f.write("%d %d %s" % (good, len(bad), bad[:1]))
    os.rename("/run/probe.new", "/run/probe")
    time.sleep(0.005)
"""


def boot(unified):
    return systemd_bed.Bed({"etc/drover/agent.hcl": CONFIG, "root/job.json": json.dumps(JOB), "root/probe.py": PROBE,
                            "etc/systemd/system/drover.service.d/test.conf": WATCHDOG}, unified=unified)


def pids(bed, pattern):
    """Returns the pids of processes that match and whose parent does not match: a shell may have forked but not yet executed its
    command."""
    found = [int(p) for p in bed.run("pgrep", "-f", pattern, check=False).stdout.split()]
    below = [int(p) for pid in found for p in bed.run("pgrep", "-P", str(pid), check=False).stdout.split()]
    return [pid for pid in found if pid not in below]


def parent(bed, pid):
    return int(bed.run("ps", "-o", "ppid=", "-p", str(pid)).stdout)


def followed(bed):
    """Returns whether the API answers and reports that the task runs."""
    r = bed.run("drover", "job", "status", "stay", check=False)
    return r.returncode == 0 and "running" in r.stdout


def supervisor(bed):
    found = pids(bed, "^drover-supervisor")
    return found[0] if len(found) == 1 else 0


def start_by_connecting(bed):
    bed.run("systemctl", "start", "drover.socket")
    case.equal(bed.show("drover.service", "ActiveState"), "inactive", "state of the service before the first connection")
    bed.run("drover", "node", "status")
    # The agent answers before ExecStartPost= has ended.
    case.until(lambda: bed.show("drover.service", "ActiveState") == "active", 20, "the service to be active after the first connection")
    case.equal(bed.show("drover-tasks.service", "ActiveState"), "active", "the tasks' unit")
    case.equal([bed.show("drover.service", x) for x in ("LimitMEMLOCKSoft", "LimitMEMLOCK")], ["8388608", "infinity"], "limits of locked memory, which tasks inherit")
    case.contains(bed.run("stat", "-c", "%U:%G %a", "/run/drover/drover.sock").stdout, "root:drover 660")


def tasks_survive(unified):
    with boot(unified) as bed:
        start_by_connecting(bed)
        bed.run("systemd-run", "-q", "--unit=probe", "python3", "/root/probe.py")
        bed.run("drover", "job", "run", "/root/job.json")
        task = case.until(lambda: pids(bed, "^/bin/sh -c trap"), 20, "the task to run")
        executor = parent(bed, task[0])
        for pid in task + [executor]:
            with_unit = bed.run("cat", "/proc/%d/cgroup" % pid).stdout
            case.contains(with_unit, "/drover.slice/drover-tasks.service/", "cgroup of %d" % pid)

        def unchanged(what):
            # A systemctl command is disconnected while systemd executes itself again.
            case.until(lambda: bed.show("drover.service", "ActiveState", check=False) == "active", 60, "the agent to answer after " + what)
            case.until(lambda: followed(bed), 60, "the task to be recovered after " + what)
            case.equal(pids(bed, "^/bin/sh -c trap"), task, "task after " + what)
            case.equal(parent(bed, task[0]), executor, "executor after " + what)

        unchanged("its start")
        check_journal(bed)
        for what in (["restart", "drover.service"], ["daemon-reexec"], ["reload", "drover.service"],
                     ["kill", "-s", "KILL", "drover.service"]):
            before = supervisor(bed)
            bed.run("systemctl", *what)
            if what[0] != "daemon-reexec":
                case.until(lambda: supervisor(bed) not in (0, before), 60, "a new supervisor after " + what[0])
            unchanged(" ".join(what))
        check_lines_of_stderr(bed)
        watchdog(bed, unchanged)
        good, bad, first = bed.run("cat", "/run/probe").stdout.split(" ", 2)
        case.equal(int(bad), 0, "refused connections (%s of %s were accepted)" % (first, good))
        assert int(good) > 50, "the probe connected only %s times" % good
        bed.run("systemctl", "stop", "probe")
        stop_all(bed, task[0])
        if not bed.is_machine:
            bed.power_off()


def entries(bed, *matches):
    """Returns entries of the journal as dicts, oldest first."""
    bed.run("journalctl", "--sync", check=False)
    out = bed.run("journalctl", "-q", "--no-pager", "-o", "json", *matches).stdout
    return [json.loads(line) for line in out.splitlines()]


def check_journal(bed):
    """Lines have fields (docs/journal.md): those of the supervisor by the journal's own protocol, others by stderr."""
    found = entries(bed, "-t", "drover", "DROVER_JOB=stay", "DROVER_TASK=t")
    started = next(e for e in found if "Started: Task started by client" in e["MESSAGE"])
    alloc = json.loads(bed.run("drover", "job", "allocs", "-json", "stay").stdout)[0]["ID"]
    case.equal({k: started.get(k) for k in ("DROVER_ALLOC_ID", "DROVER_NAMESPACE", "MESSAGE_ID", "PRIORITY", "_SYSTEMD_UNIT", "_TRANSPORT", "_COMM")},
               {"DROVER_ALLOC_ID": alloc, "DROVER_NAMESPACE": "default", "MESSAGE_ID": KINDS["TASK"], "PRIORITY": "6",
                "_SYSTEMD_UNIT": "drover.service", "_TRANSPORT": "journal", "_COMM": "drover-supervis"})
    case.equal([e["DROVER_REQUEST"] for e in entries(bed, "MESSAGE_ID=" + KINDS["REQUEST"]) if e["PRIORITY"] == "6"], ["POST /v1/jobs"])
    assert entries(bed, "MESSAGE_ID=" + KINDS["READY"])


def check_lines_of_stderr(bed):
    """The launcher's lines come from stderr, without prefix or time; the unit gives them the identifier."""
    launcher = [e for e in entries(bed, "-t", "drover", "_TRANSPORT=stdout") if e["MESSAGE"] == "launcher: configuration reloaded"]
    assert launcher and {e["_COMM"] for e in launcher} == {"drover-launcher"}, launcher
    everything = entries(bed, "_SYSTEMD_UNIT=drover.service")
    case.equal({e["SYSLOG_IDENTIFIER"] for e in everything}, {"drover"}, "identifiers")
    case.equal([e["MESSAGE"] for e in everything if e["MESSAGE"].startswith("<")], [], "lines with a prefix")


def watchdog(bed, unchanged):
    before = supervisor(bed)
    bed.run("kill", "-STOP", str(before))
    case.until(lambda: supervisor(bed) not in (0, before), 90, "a new supervisor after the watchdog")
    case.contains(bed.journal("drover.service"), "Watchdog timeout")
    unchanged("the watchdog")


def stop_all(bed, task):
    """Stops the units as a shutdown does: first the agent, then the tasks, each with its own kill signal."""
    bed.run("systemctl", "stop", "drover.socket", "drover.service")
    case.equal(pids(bed, "^/bin/sh -c trap"), [task], "task after the stop of the agent")
    case.equal(bed.run("cat", "/run/asked", check=False).returncode, 1, "whether the task got a signal")
    holder = bed.run("systemctl", "show", "-p", "MainPID", "--value", "drover-tasks.service").stdout.strip()
    case.equal(bed.run("ps", "-o", "user=,comm=", "-p", holder).stdout.split(), ["drover", "drover-holder"], "the holder")
    bed.run("systemctl", "stop", "drover-tasks.service")
    case.equal(pids(bed, "^/bin/sh -c trap"), [], "task after the stop of its unit")
    case.equal(bed.run("cat", "/run/asked").stdout, "asked\n", "output of the task")


def test_systemd_analyze_accepts_the_units():
    with boot(False) as bed:
        r = bed.run("systemd-analyze", "verify", "--man=no", "drover.service", "drover.socket", "drover-tasks.service")
        case.equal(r.stdout, "", "systemd-analyze verify")


def test_tasks_survive_the_agent():
    tasks_survive(False)


def test_tasks_survive_the_agent_on_cgroup_v2():
    if os.environ.get("DROVER_BED") != "machine":
        tasks_survive(True)


def test_two_agents_with_units_of_their_own():
    other = CONFIG + 'data_dir = "/var/lib/drover-b"\nruntime_dir = "/run/drover-b"\n' \
                     'client {\n  cgroup_parent = "drover.slice/drover-tasks@b.service"\n}\n'
    with systemd_bed.Bed({"etc/drover/agent.hcl": CONFIG, "etc/drover-b/agent.hcl": other, "root/job.json": json.dumps(JOB)}) as bed:
        r = bed.run("systemd-analyze", "verify", "--man=no", "drover@b.service", "drover-tasks@b.service")
        case.equal(r.stdout, "", "systemd-analyze verify")
        bed.run("systemctl", "start", "drover.socket", "drover@b.service")
        found = {}
        for name, unit, address in (("a", "drover-tasks.service", []),
                                    ("b", "drover-tasks@b.service", ["-address", "unix:///run/drover-b/drover.sock"])):
            bed.run("drover", "job", "run", *address, "/root/job.json")
            found[name] = case.until(lambda: set(pids(bed, "^/bin/sh -c trap")) - set(found.values()), 20, "the task to run").pop()
            case.contains(bed.run("cat", "/proc/%d/cgroup" % found[name]).stdout, "/drover.slice/%s/" % unit)
        # The end of one agent and its tasks does not affect the other.
        bed.run("systemctl", "stop", "drover@b.service", "drover-tasks@b.service")
        case.equal(pids(bed, "^/bin/sh -c trap"), [found["a"]])
        case.equal(bed.run("cat", "/run/asked").stdout, "asked\n", "output of the task that was stopped")
        case.equal(followed(bed), True)
        bed.run("rm", "/run/asked")
        bed.run("systemctl", "stop", "drover.socket", "drover.service", "drover-tasks.service")
        if not bed.is_machine:
            bed.power_off()


def test_systemd_never_gives_up_the_agent():
    """The default limit is five starts in ten seconds."""
    with systemd_bed.Bed({"etc/drover/agent.hcl": CONFIG, "etc/systemd/system/drover.service.d/test.conf": "[Service]\nRestartSec=10ms\n"}) as bed:
        for unit in ("drover.service", "drover-tasks.service"):
            case.equal(bed.show(unit, "StartLimitIntervalUSec"), "0", "limit of " + unit)
        bed.run("systemctl", "start", "drover.service")
        for _ in range(8):
            before = bed.show("drover.service", "MainPID")
            bed.run("kill", "-KILL", before)
            case.until(lambda: bed.show("drover.service", "MainPID") not in ("0", before), 60, "a new launcher")
        case.until(lambda: bed.show("drover.service", "ActiveState") == "active", 60, "the agent to be ready")
        bed.run("systemctl", "stop", "drover.socket", "drover.service", "drover-tasks.service")
        if not bed.is_machine:
            bed.power_off()


def test_a_drain_may_take_longer_than_the_units_timeout():
    """The supervisor asks systemd for more time as long as the drain lasts."""
    leave = 'leave_on_terminate = true\nclient { drain_on_shutdown { } }\n'
    slow = json.loads(json.dumps(JOB).replace("echo asked", "sleep 6; echo asked"))
    slow["Job"]["TaskGroups"][0]["Tasks"][0]["KillTimeout"] = 30 * 10**9
    with systemd_bed.Bed({"etc/drover/agent.hcl": CONFIG + leave, "root/job.json": json.dumps(slow),
                          "etc/systemd/system/drover.service.d/test.conf": "[Service]\nTimeoutStopSec=3\n"}) as bed:
        bed.run("systemctl", "start", "drover.socket")
        bed.run("drover", "job", "run", "/root/job.json")
        case.until(lambda: pids(bed, "^/bin/sh -c trap"), 20, "the task to run")
        bed.run("systemctl", "stop", "drover.service")
        case.equal(bed.show("drover.service", "Result"), "success")
        case.equal(bed.run("cat", "/run/asked").stdout, "asked\n", "output of the task")
        case.equal(pids(bed, "^/bin/sh -c trap"), [], "task after the stop")
        bed.run("rm", "/run/asked")
        bed.run("systemctl", "stop", "drover.socket", "drover-tasks.service")
        if not bed.is_machine:
            bed.power_off()


def test_a_landed_or_retired_agent_is_not_started_again():
    def wait_ended(bed):
        case.until(lambda: bed.show("drover.service", "ActiveState") == "inactive", 30, "the end of the agent")
        case.until(lambda: bed.show("drover.socket", "ActiveState") == "inactive", 30, "the end of the socket")
        case.equal([bed.show("drover.service", p) for p in ("Result", "ExecMainStatus", "NRestarts")], ["success", "0", "0"])
    with systemd_bed.Bed({"etc/drover/agent.hcl": CONFIG, "root/job.json": json.dumps(JOB)}) as bed:
        bed.run("systemctl", "start", "drover.socket", "drover.service")
        bed.run("drover", "job", "run", "/root/job.json")
        case.until(lambda: pids(bed, "^/bin/sh -c trap"), 20, "the task to run")
        case.contains(bed.run("drover", "node", "land", "-yes").stdout, "has landed")
        wait_ended(bed)
        case.equal(pids(bed, "^/bin/sh -c trap"), [], "task after the landing")
        # It comes back. A stop is no landing: the next connection starts the agent.
        bed.run("systemctl", "start", "drover.socket", "drover.service")
        case.until(lambda: pids(bed, "^/bin/sh -c trap"), 20, "the task to run again")
        bed.run("systemctl", "stop", "drover.service")
        case.equal(bed.show("drover.socket", "ActiveState"), "active", "socket after a stop")
        bed.run("drover", "node", "status")
        # The signal reaches all processes of the unit.
        bed.run("systemctl", "kill", "--signal=SIGUSR2", "drover.service")
        wait_ended(bed)
        case.equal(pids(bed, "^/bin/sh -c trap"), [], "task after the retirement")
        case.equal(bed.run("systemctl", "start", "drover.service", check=False).returncode, 1)
        case.equal([bed.show("drover.service", p) for p in ("Result", "ExecMainStatus", "NRestarts")], ["exit-code", "78", "0"])
        bed.run("drover", "node", "rejoin")
        bed.run("systemctl", "start", "drover.socket", "drover.service")
        bed.run("drover", "node", "status")
        bed.run("rm", "-f", "/run/asked")
        bed.run("systemctl", "stop", "drover.socket", "drover.service", "drover-tasks.service")
        if not bed.is_machine:
            bed.power_off()


if os.environ.get("DROVER_BED") != "machine" and not (shutil.which("gcc") and os.path.exists("/lib/systemd/systemd")):
    case.skip("needs systemd, and gcc for make install")
case.run(globals())

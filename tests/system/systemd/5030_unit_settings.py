#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# takes: 40
"""What an operator may set at the units of a real systemd: the group of programs that ship logs, reloads, the drop-in files of docs/systemd.md, and TCP
sockets that systemd holds."""
import json
import re

from lib import ROOT, case, systemd_bed

CONFIG = 'plugin "raw_exec" { config { enabled = true } }\n'
JOB = json.dumps({"Job": {"ID": "web", "Name": "web", "Type": "service", "Datacenters": ["*"], "TaskGroups": [{
    "Name": "g", "Count": 1, "Tasks": [{
        "Name": "t", "Driver": "raw_exec", "Config": {"command": "/bin/sh", "args": ["-c", "echo hello; exec sleep 987654"]},
        "Resources": {"CPU": 100, "MemoryMB": 64}}]}]}})


def start(bed):
    bed.run("systemctl", "start", "drover.socket", "drover.service")
    bed.run("drover", "job", "run", "/root/web.json")


def supervisor(bed):
    return bed.run("pgrep", "-f", "^drover-supervisor", check=False).stdout.split()


def end(bed):
    bed.run("systemctl", "stop", "drover.socket", "drover.service", "drover-tasks.service")
    if not bed.is_machine:
        bed.power_off()


def test_a_member_of_drover_logs_reads_logs_and_nothing_else():
    with systemd_bed.Bed({"etc/drover/agent.hcl": CONFIG, "root/web.json": JOB}, unified=True) as bed:
        start(bed)
        bed.run("useradd", "--system", "--groups", "drover-logs", "shipper")
        bed.run("useradd", "--system", "stranger")

        def can(user, script):
            return bed.run("runuser", "-u", user, "--", "sh", "-c", script, check=False)
        read = "cat /var/lib/drover/logs/*/t.stdout.0"
        case.until(lambda: can("shipper", read).stdout == "hello\n", 20, "the log of the task")
        case.equal(can("shipper", "ls -a /var/lib/drover/logs/*/").returncode, 0, "the list of a directory")
        case.equal(can("stranger", read).returncode != 0, True, "another user")
        case.equal(can("shipper", "drover node status").returncode != 0, True, "the control socket")
        for place in ("state", "run", "alloc", "audit", "secrets"):
            case.equal(can("shipper", "ls /var/lib/drover/" + place).returncode != 0, True, place)
        case.equal(can("shipper", "touch /var/lib/drover/logs/x || rm /var/lib/drover/logs/*/t.stdout.0").returncode != 0, True, "a change")
        bed.run("systemctl", "restart", "drover.service")
        case.equal(can("shipper", read).stdout, "hello\n", "after a restart of the agent")
        end(bed)


def test_a_reload_ends_when_the_agent_answers_again():
    with systemd_bed.Bed({"etc/drover/agent.hcl": CONFIG, "root/web.json": JOB}) as bed:
        start(bed)
        for _ in range(3):
            before = supervisor(bed)
            bed.run("systemctl", "reload", "drover.service")
            after = supervisor(bed)
            case.equal((len(after), after != before), (1, True), "the supervisor when systemctl has returned: %s, before %s" % (after, before))
            case.equal(bed.show("drover.service", "ActiveState"), "active")
            case.contains(bed.run("drover", "job", "status", "web").stdout, "running")
        bed.run("sh", "-c", "echo 'region = 5.x' > /etc/drover/bad.hcl")
        bed.run("systemctl", "reload", "drover.service")
        case.equal(supervisor(bed), after, "the supervisor after a reload of an invalid configuration")
        case.equal(bed.show("drover.service", "ActiveState"), "active")
        end(bed)


def drop_ins():
    """Returns the examples of docs/systemd.md that restrict the agent."""
    with open(ROOT + "/docs/systemd.md", encoding="utf-8") as f:
        text = f.read()
    block = re.search(r"^    \[Service\]\n    # Network.*?(?=^\S)", text, re.M | re.S)[0]
    case.equal(re.findall(r"^    (\w+)=", block, re.M), ["IPAddressDeny", "IPAddressAllow", "MemoryMax", "DevicePolicy"], "settings of the example")
    return re.sub(r"^    ", "", block, flags=re.M)


def test_the_agent_works_with_the_restrictions_of_the_manual():
    files = {"etc/drover/agent.hcl": CONFIG, "root/web.json": JOB, "etc/systemd/system/drover.service.d/restrict.conf": drop_ins()}
    with systemd_bed.Bed(files) as bed:
        start(bed)
        case.equal([bed.show("drover.service", p) for p in ("DevicePolicy", "MemoryMax")], ["closed", str(512 << 20)])
        case.contains(bed.show("drover.service", "IPAddressDeny"), "0.0.0.0/0")
        limits = "cat /sys/fs/cgroup/memory/system.slice/drover.service/memory.limit_in_bytes /sys/fs/cgroup/system.slice/drover.service/memory.max 2>/dev/null"
        case.equal(bed.run("sh", "-c", limits, check=False).stdout.split(), [str(512 << 20)], "what the kernel enforces")
        case.until(lambda: "running" in bed.run("drover", "job", "status", "web").stdout, 20, "the task")
        case.equal(bed.run("drover", "probe").returncode, 0, "the node can do its work")
        pid = bed.run("pgrep", "-f", "sleep 987654").stdout.split()[0]
        case.contains(bed.run("cat", "/proc/%s/cgroup" % pid).stdout, "/drover-tasks.service/")
        end(bed)


case.run(globals())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# takes: 75
"""What an operator may set at the units of a real systemd: the group of programs that ship logs, reloads, the drop-in files of docs/systemd.md, and TCP
sockets that systemd holds."""
import ast
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


# Becomes a process of a unit, where a way into its cgroups is given, then opens a device and connects to two addresses.
USE = """
import glob, os, socket, sys
for path in glob.glob("/sys/fs/cgroup/**/" + sys.argv[1] + "/cgroup.procs", recursive=True) if sys.argv[1:] else []:
    open(path, "w").write(str(os.getpid()))

def outcome(attempt, *args):
    try:
        attempt(*args).close()
        return "ok"
    except OSError as e:
        return e.strerror or str(e)
servers = [socket.create_server((address, 0)) for address in ("127.0.0.1", "198.51.100.7")]
print([outcome(open, "/dev/kmsg")] + [outcome(socket.create_connection, s.getsockname(), 3) for s in servers])
"""


def test_the_restrictions_of_the_manual_deny():
    files = {"etc/drover/agent.hcl": CONFIG, "root/web.json": JOB, "root/use.py": USE,
             "etc/systemd/system/drover.service.d/restrict.conf": drop_ins()}
    for unified in (False, True):
        with systemd_bed.Bed(files, unified=unified) as bed:
            start(bed)
            bed.run("sh", "-c", "ip address add 198.51.100.7/32 dev lo; [ -e /dev/kmsg ] || mknod /dev/kmsg c 1 11")
            found = {unit: ast.literal_eval(bed.run("python3", "/root/use.py", *unit).stdout) for unit in ((), ("drover.service",), ("drover-tasks.service",))}
            case.equal(found, {(): ["ok", "ok", "ok"], ("drover.service",): ["Operation not permitted", "ok", "timed out"],
                               ("drover-tasks.service",): ["ok", "ok", "ok"]}, "a device, loopback and another address; unified: %s" % unified)
            end(bed)


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


# Asks all the time while the agent restarts, and prints how the attempts ended.
ASK = """
import subprocess, urllib.error, urllib.request
restart, found = subprocess.Popen(["systemctl", "restart", "drover.service"]), []
while restart.poll() is None or found[-1] != 200:
    try:
        found.append(urllib.request.urlopen("http://127.0.0.1:4648/v1/agent/health", timeout=60).status)
    except urllib.error.HTTPError as e:
        found.append(e.code)
    except urllib.error.URLError as e:
        found.append("refused" if isinstance(e.reason, ConnectionRefusedError) else "ended")
    except ConnectionError:
        found.append("ended")
print(len(found), "refused" in found)
"""


def test_tcp_sockets_of_systemd_refuse_nobody():
    files = {"etc/drover/agent.hcl": CONFIG + 'health { address = "127.0.0.1:4648" }\n', "root/ask.py": ASK,
             "etc/systemd/system/drover.socket.d/tcp.conf": "[Socket]\nListenStream=127.0.0.1:4648\nListenStream=[::1]:4999\n"}
    with systemd_bed.Bed(files) as bed:
        bed.run("systemctl", "start", "drover.socket")
        health = ["curl", "-s", "-S", "http://127.0.0.1:4648/v1/agent/health"]
        case.equal(bed.show("drover.service", "ActiveState"), "inactive")
        case.equal(json.loads(bed.run(*health).stdout)["client"]["ok"], True, "the connection starts the agent")
        journal = bed.journal("drover.service")
        case.contains(journal, "TCP connections to 127.0.0.1:4648 are accepted, on the socket that systemd holds")
        case.contains(journal, "nobody answers at a TCP socket that systemd holds")
        for _ in range(3):
            count, refused = bed.run("python3", "/root/ask.py").stdout.split()
            case.equal((int(count) > 1, refused), (True, "False"), "attempts to connect while the agent restarts")
        bed.run("sh", "-c", "sed -i s/4648/4649/ /etc/drover/agent.hcl")
        bed.run("systemctl", "reload", "drover.service")
        case.equal(json.loads(bed.run(*health[:-1], health[-1].replace("4648", "4649")).stdout)["client"]["ok"], True, "an address of the agent's own")
        bed.run("sh", "-c", "sed -i s/4649/4648/ /etc/drover/agent.hcl")
        bed.run("systemctl", "reload", "drover.service")
        case.equal(json.loads(bed.run(*health).stdout)["client"]["ok"], True, "systemd's again")
        end(bed)


def test_the_audit_log_names_unit_and_session():
    audit = 'audit {\n  enabled = true\n  sink "file" {\n    type = "file"\n    format = "json"\n    path = "/var/log/drover/audit.log"\n  }\n}\n'
    with systemd_bed.Bed({"etc/drover/agent.hcl": CONFIG + audit, "root/web.json": JOB}) as bed:
        bed.run("install", "-d", "-o", "drover", "-m", "0750", "/var/log/drover")
        start(bed)
        bed.run("systemd-run", "--quiet", "--wait", "--collect", "--unit=deploy.service", "drover", "job", "run", "/root/web.json")
        bed.run("systemd-run", "--quiet", "--scope", "--collect", "--unit=session-7.scope", "drover", "job", "stop", "web")
        entries = [json.loads(line)["payload"] for line in bed.run("cat", "/var/log/drover/audit.log").stdout.splitlines()]
        peers = [e["request"]["peer"] for e in entries if e["stage"] == "OperationComplete" and e["request"]["operation"] in ("POST", "PUT", "DELETE")]
        case.equal([[p.get(k) for k in ("socket", "uid", "unit", "session")] for p in peers[-2:]],
                   [["control", 0, "deploy.service", ""], ["control", 0, "session-7.scope", "7"]], peers)
        end(bed)


case.run(globals())

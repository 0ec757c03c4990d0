#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# takes: 90
"""An agent under a real systemd probes its node at an interval: what a scrape, the node's events, the journal and the unit show while a component fails."""
import json
import re

from lib import case, systemd_bed

CONFIG = """plugin "raw_exec" { config { enabled = true } }
health { address = "127.0.0.1:4648" interval = "1s" }
"""
JOB = json.dumps({"Job": {"ID": "web", "Name": "web", "Type": "service", "Datacenters": ["*"], "TaskGroups": [{
    "Name": "g", "Count": 1, "Tasks": [{
        "Name": "t", "Driver": "raw_exec", "Config": {"command": "/bin/sleep", "args": ["987654"]}, "Resources": {"CPU": 100, "MemoryMB": 64}}]}]}})
URL = "http://127.0.0.1:4648/v1/"


def scrape(bed):
    """Returns {metric with its labels: value}, as Prometheus reads it."""
    out = bed.run("curl", "-s", "-S", "-f", URL + "metrics?format=prometheus", check=False).stdout
    return dict(re.findall(r"^([a-z]\S*) (\S+)$", out, re.M))


def healthy(bed):
    return scrape(bed).get('drover_probe_healthy{component="helper/heartbeat"}')


def status(bed):
    return bed.run("curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", URL + "agent/health?deep=1").stdout


def messages(bed):
    found = json.loads(bed.run("drover", "node", "events", "-json").stdout) or []
    return [e["Message"] for e in sorted(found, key=lambda e: e["Timestamp"]) if e["Subsystem"] == "Health"]


def check_failure(bed, before):
    """A process of the agent hangs. Returns the events."""
    bed.run("pkill", "-STOP", "-f", "^drover-heartbeat")
    case.until(lambda: healthy(bed) == "0", 30, "a failed probe in a scrape")
    case.until(lambda: len(messages(bed)) > len(before), 30, "the event")
    found = messages(bed)
    case.equal((found[:-1], found[-1]), (before, "helper/heartbeat hangs: wait for its answer: not done after 10 seconds"))
    case.contains(bed.journal("drover.service"), "probe: " + found[-1])
    case.equal(status(bed), "503")
    return found


def check_end(bed, before):
    case.until(lambda: healthy(bed) == "1", 30, "a good probe in a scrape")
    wanted = before + ["helper/heartbeat works again"]
    case.until(lambda: messages(bed) == wanted, 30, "the event of the end")
    case.equal((status(bed), bed.run("drover", "probe").returncode), ("200", 0))


def test_a_component_that_fails():
    """It works again by itself, or after a restart of the unit."""
    for unified in (False, True):
        with systemd_bed.Bed({"etc/drover/agent.hcl": CONFIG, "root/web.json": JOB}, unified=unified) as bed:
            bed.run("systemctl", "start", "drover.socket", "drover.service")
            bed.run("drover", "job", "run", "/root/web.json")
            case.until(lambda: healthy(bed) == "1", 30, "the first probe in a scrape")
            found = scrape(bed)
            case.equal([v for k, v in found.items() if k.startswith("nomad_client_tasks_running{")], ["1"], "tasks that run")
            case.equal((found["drover_state_stuck"], found['drover_process_up{process="listener"}']), ("0", "1"))
            pid = bed.run("pgrep", "-f", "sleep 987654").stdout
            told = check_failure(bed, [])
            bed.run(*(("systemctl", "restart", "drover.service") if unified else ("pkill", "-CONT", "-f", "^drover-heartbeat")))
            check_end(bed, told)
            case.equal([bed.show("drover.service", p) for p in ("ActiveState", "NRestarts")], ["active", "0"], "the unit")
            case.equal(bed.run("pgrep", "-f", "sleep 987654").stdout, pid, "the task's process")
            bed.run("systemctl", "stop", "drover.socket", "drover.service", "drover-tasks.service")
            if not bed.is_machine:
                bed.power_off()


case.run(globals())

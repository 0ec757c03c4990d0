#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# takes: 30
"""The output of tasks in the journal of a real journald: its fields, more lines than the limit of a unit, and a restart of journald."""
import json

from lib import case, systemd_bed

CONFIG = 'plugin "raw_exec" { config { enabled = true } }\nclient { options { "logs.destination" = "journald" } }\n'
LINES = 30000
SCRIPT = "i=0; while [ $i -lt %d ]; do echo line $i; i=$((i+1)); done; echo '<2>end' >&2" % LINES


def job(name, script, **logs):
    return json.dumps({"Job": {"ID": name, "Name": name, "Type": "batch", "Datacenters": ["*"], "TaskGroups": [{
        "Name": "g", "Count": 1, "Tasks": [{
            "Name": "t", "Driver": "raw_exec", "Config": {"command": "/bin/sh", "args": ["-c", script]}, "LogConfig": logs or None,
            "Resources": {"CPU": 100, "MemoryMB": 64}}]}]}})


def entries(bed, *words):
    out = bed.run("journalctl", "--no-pager", "-o", "json", *words).stdout
    return [json.loads(line) for line in out.splitlines() if line.startswith("{")]


def test_journald_gets_every_line_although_it_restarts():
    files = {"etc/drover/agent.hcl": CONFIG, "root/many.json": job("many", SCRIPT), "root/both.json": job("both", "echo hello", Destination="both")}
    with systemd_bed.Bed(files, unified=True) as bed:
        bed.run("systemctl", "start", "drover.socket")
        bed.run("drover", "job", "run", "-detach", "-json", "/root/many.json")
        case.until(lambda: entries(bed, "-n", "1", "DROVER_JOB=many"), 30, "the first entry")
        for _ in range(3):
            bed.run("systemctl", "restart", "systemd-journald.service")
            bed.run("systemctl", "reset-failed", "systemd-journald.service")
        last = case.until(lambda: entries(bed, "DROVER_JOB=many", "DROVER_STREAM=stderr"), 60, "the task's last line")[0]
        case.equal((last["MESSAGE"], last["PRIORITY"], last["_SYSTEMD_UNIT"]), ("end", "2", "drover-tasks.service"), "the last line")
        case.equal({k: last[k] for k in ("SYSLOG_IDENTIFIER", "DROVER_TASK", "DROVER_GROUP", "DROVER_NAMESPACE")},
                   {"SYSLOG_IDENTIFIER": "t", "DROVER_TASK": "t", "DROVER_GROUP": "g", "DROVER_NAMESPACE": "default"}, "fields")
        found = [e["MESSAGE"] for e in entries(bed, "DROVER_ALLOC_ID=" + last["DROVER_ALLOC_ID"], "DROVER_STREAM=stdout")]
        said = bed.run("drover", "alloc", "logs", last["DROVER_ALLOC_ID"], check=False).stdout
        if any(m.startswith("drover: ") for m in found):  # journald took more than 10 s to come back
            found = sorted([m for m in found if not m.startswith("drover: ")] + said.splitlines(), key=lambda m: int(m.split()[1]))
        else:
            case.contains(" ".join(said.split()), "are in the journal: journalctl DROVER_ALLOC_ID=" + last["DROVER_ALLOC_ID"])
        at = next((i for i, m in enumerate(found) if m != "line %d" % i), len(found))
        case.equal((at, len(found), found[at:at + 2]), (LINES, LINES, []), "the first wrong line, their number, what is there")

        bed.run("drover", "job", "run", "-detach", "-json", "/root/both.json")
        entry = case.until(lambda: entries(bed, "DROVER_JOB=both"), 30, "the entry")[0]
        case.equal(bed.run("drover", "alloc", "logs", entry["DROVER_ALLOC_ID"]).stdout, "hello\n", "the file")


case.run(globals())

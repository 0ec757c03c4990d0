#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# takes: 30
"""The output of tasks in the journal of a real journald: its fields, more lines than the limit of a unit, and a restart of journald; and drover job
logs, which reads it together with files."""
import json
import re

from lib import case, systemd_bed

CONFIG = 'plugin "raw_exec" { config { enabled = true } }\nclient { options { "logs.destination" = "journald" } }\n'
LINES = 30000
STEADY = 6000
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
    files = {"etc/drover/agent.hcl": CONFIG, "root/many.json": job("many", SCRIPT), "root/both.json": job("both", "echo hello", Destination="both"),
             "root/long.json": job("long", "head -c 40000 /dev/zero | tr '\\0' x; echo; echo end")}
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
        case.equal(bed.run("drover", "job", "logs", "-plain", "both").stdout, "hello\n", "the line that both stores have")

        # A line of several entries is one line again.
        bed.run("drover", "job", "run", "-detach", "-json", "/root/long.json")
        case.until(lambda: [e for e in entries(bed, "DROVER_JOB=long", "DROVER_STREAM=stdout") if e["MESSAGE"] == "end"], 30, "the last entry")
        lines = bed.run("drover", "job", "logs", "-plain", "long").stdout.splitlines()
        case.equal([(line[:3], len(line)) for line in lines], [("xxx", 40000), ("end", 3)], "lines")


def writer(name, destination, width):
    """A task that writes numbered lines for about ten seconds."""
    script = "i=0; while [ $i -lt %d ]; do printf '%s %%0*d\\n' %d $i; i=$((i+1)); [ $((i %% 100)) -gt 0 ] || sleep 0.15; done" % (STEADY, name, width)
    return {"Name": name, "Driver": "raw_exec", "Config": {"command": "/bin/sh", "args": ["-c", script]},
            "LogConfig": {"Destination": destination, "MaxFiles": 10, "MaxFileSizeMB": 1}, "Resources": {"CPU": 100, "MemoryMB": 64}}


def numbers(text):
    """Returns {task: the numbers of its lines, in the order in which they were printed}."""
    found = {"file": [], "entry": [], "twice": []}
    for line in text.splitlines():
        words = line.split()
        case.equal((len(words), words[0] in found), (2, True), line)
        found[words[0]].append(int(words[1]))
    return found


def first_wrong(found):
    """Returns for each task with a wrong line: its place, the number of lines, what is there."""
    return {name: next((at, len(those), those[at:at + 3]) for at in range(STEADY + 1) if those[at:at + 1] != ([at] if at < STEADY else []))
            for name, those in found.items() if those != list(range(STEADY))}


def test_job_logs_loses_and_doubles_nothing():
    """A file is rotated, and the journal; journald and the agent are restarted, while it follows a job with tasks in either store, and one in both."""
    mixed = json.dumps({"Job": {"ID": "mixed", "Name": "mixed", "Type": "batch", "Datacenters": ["*"], "TaskGroups": [{
        "Name": "g", "Count": 1, "Tasks": [writer("file", "files", 240), writer("entry", "journald", 20), writer("twice", "both", 240)]}]}})
    with systemd_bed.Bed({"etc/drover/agent.hcl": CONFIG, "root/mixed.json": mixed}, unified=True) as bed:
        bed.run("systemctl", "start", "drover.socket")
        bed.run("drover", "job", "run", "-detach", "-json", "/root/mixed.json")
        bed.run("systemd-run", "--unit=follow", "sh", "-c", "drover job logs -f -plain mixed > /root/followed 2> /root/errors")

        def followed():
            text = bed.run("sh", "-c", "touch /root/followed && cat /root/followed").stdout
            return numbers(text[:text.rfind("\n") + 1])
        for i, words in enumerate((("journalctl", "--rotate"), ("systemctl", "restart", "systemd-journald.service"),
                                   ("systemctl", "restart", "drover.service"), ("journalctl", "--rotate"))):
            try:
                case.until(lambda i=i: len(followed()["entry"]) > 500 * (i + 1), 60, "more lines")
            except AssertionError:
                print("        before %s: %s\n%s" % (words, {name: len(those) for name, those in followed().items()},
                                                     bed.run("sh", "-c", "cat /root/errors; systemctl status --no-pager -l follow.service | head -30").stdout))
                raise
            bed.run(*words)
        case.until(lambda: all(STEADY - 1 in those for those in followed().values()), 90, "the last lines")
        bed.run("systemctl", "stop", "follow.service")
        case.equal(first_wrong(followed()), {}, "followed: " + bed.run("cat", "/root/errors").stdout)
        case.equal(first_wrong(numbers(bed.run("drover", "job", "logs", "-plain", "mixed").stdout)), {}, "read at the end")
        case.equal(len(entries(bed, "-n", "1", "DROVER_JOB=mixed", "DROVER_TASK=twice")), 1, "whether the journal has the task of both stores")


def test_job_logs_follows_an_allocation_that_comes_later():
    """Its task prints to the journal too, of which only the entries of the first allocation are read before."""
    made = json.dumps({"Job": {"ID": "again", "Name": "again", "Datacenters": ["*"], "TaskGroups": [{"Name": "g", "Count": 1, "Tasks": [{
        "Name": "t", "Driver": "raw_exec", "Config": {"command": "/bin/sh", "args": ["-c", "echo begun $NOMAD_ALLOC_ID; exec sleep 1000"]},
        "LogConfig": {"Destination": "journald"}}]}]}})
    with systemd_bed.Bed({"etc/drover/agent.hcl": CONFIG, "root/again.json": made}, unified=True) as bed:
        bed.run("systemctl", "start", "drover.socket")
        bed.run("drover", "job", "run", "-detach", "-json", "/root/again.json")
        bed.run("systemd-run", "--unit=follow", "sh", "-c", "drover job logs -f -plain again > /root/followed 2> /root/errors")

        def begun():
            return re.findall(r"^begun (\S+)$", bed.run("sh", "-c", "touch /root/followed; cat /root/followed").stdout, re.M)
        case.until(lambda: len(begun()) == 1, 60, "the first line")
        bed.run("drover", "alloc", "stop", "-detach", begun()[0])
        case.until(lambda: len(begun()) == 2, 60, "the line of the allocation in its place")
        case.equal(len(set(begun())), 2, "allocations")
        bed.run("systemctl", "stop", "follow.service")


case.run(globals())

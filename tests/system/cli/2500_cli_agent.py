# SPDX-License-Identifier: Apache-2.0
"""drover with a real agent: what an operator does in the first half hour."""
import json
import os
import signal
import subprocess

from lib import ROOT, agent, binary, case
from lib.fake_api import finish, read_until, run_command

EXAMPLES = ROOT + "/contrib/examples/"


def job(name, command, args=(), driver="raw_exec", count=1, **group):
    """Returns a service job with one task and without restarts."""
    task = {"Name": "main", "Driver": driver, "User": "nobody", "Config": {"command": command, "args": list(args)},
            "Resources": {"CPU": 20, "MemoryMB": 20}}
    made = {"Name": "group", "Count": count, "Tasks": [task],
            "RestartPolicy": {"Attempts": 0, "Interval": 10**10, "Delay": 10**9, "Mode": "fail"},
            "ReschedulePolicy": {"Attempts": 0, "Unlimited": False}, "Update": {"MaxParallel": 0}}
    task.update(group.pop("task", {}))
    made.update(group)
    return {"Job": {"ID": name, "Name": name, "Type": "service", "Datacenters": ["dc1"], "TaskGroups": [made]}}


class Node(agent.Agent):
    """An agent, and the command that uses its socket."""

    def drover(self, *words, code=0, stdin=None):
        r = run_command(words, env={"DROVER_ADDR": "unix://" + self.socket_path}, stdin=stdin)
        case.equal(r.code, code, "drover %s: %s%s" % (" ".join(words), r.out, r.err))
        return r

    def background(self, *words):
        env = dict(os.environ, DROVER_ADDR="unix://" + self.socket_path)
        return subprocess.Popen([binary("drover")] + list(words), env=env, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run(self, made, code=0):
        return self.drover("job", "run", "-", code=code, stdin=json.dumps(made).encode())

    def allocs(self, name):
        found = json.loads(self.drover("alloc", "status", "-json").out)
        return [a for a in found if a["JobID"] == name]


def test_an_operator_runs_and_changes_a_first_job():
    with Node() as node:
        node.wait_ready()
        r = node.drover("status")
        case.contains(r.out, "ready, eligible")
        case.equal("Problem" in r.out, False, r.out)
        case.equal(node.drover("leaks").out, "no leaks\n")
        case.contains(node.drover("job", "validate", EXAMPLES + "container.nomad.hcl").out, "is valid")
        r = node.drover("job", "run", EXAMPLES + "hello.nomad.hcl")
        case.contains(r.out, "Started: Task started by client")
        case.contains(r.out, "1 of 1 allocation(s) run")
        first = node.allocs("hello")[0]["ID"]
        case.until(lambda: node.drover("alloc", "logs", "hello.hello[0]").out == "hello from hello.hello[0]\n", 10, "a log")
        out = node.drover("alloc", "status", first[:8]).out
        case.equal(out.index("Started") < out.index("Received"), True, "newest first")
        case.contains(node.drover("job", "status", "hello").out, "hello       1")
        # Another allocation replaces it, and the command waits for both.
        node.drover("alloc", "stop", first[:6])
        running = [a["ID"] for a in node.allocs("hello") if a["ClientStatus"] == "running"]
        case.equal(len(running) == 1 and running[0] != first, True, running)
        r = node.drover("job", "stop", "hello")
        case.contains(r.out, 'Job "hello" is stopped')
        case.equal([a["ClientStatus"] for a in node.allocs("hello")], ["complete", "complete"])
        node.drover("job", "stop", "-purge", "hello")
        case.equal(node.drover("job", "status").out, "No jobs\n")
        case.equal(node.drover("leaks").out, "no leaks\n")
        case.equal(node.stop(signal.SIGINT), 0)


def test_drover_agent_dev_starts_an_agent():
    directory = case.directory()
    with open(directory + "/log", "wb") as log:
        p = subprocess.Popen([binary("drover"), "agent", "-dev", "-data-dir", directory + "/data"], stdin=subprocess.DEVNULL,
                             stdout=log, stderr=log, start_new_session=True)
    try:
        address = "unix://%s/data/rt/drover.sock" % directory
        case.until(lambda: run_command(["status", "-address", address]).code == 0, 20, "status")
    finally:
        p.send_signal(signal.SIGINT)
        case.equal(p.wait(case.LEAST_S), 0)


def test_a_job_that_cannot_run_reports_the_reason():
    with Node() as node:
        node.wait_ready()
        r = node.run(job("nope", "/nowhere/nope"), code=1)
        case.contains(r.out, "there is no such program")
        case.contains(r.out, "is failed")
        case.contains(node.drover("job", "status", "nope").out, "Why ")
        case.contains(node.drover("status").out.splitlines()[0], "nope.group[0]")
        r = node.run(job("nobody", "/bin/true", task={"User": "no-such-user-x"}), code=1)
        case.contains(r.out, "no-such-user-x")
        r = node.run(job("huge", "/bin/true", task={"Resources": {"CPU": 20, "MemoryMB": 10**8}}), code=2)
        case.contains(r.out, "memory")
        r = node.run(job("driver", "/bin/true", driver="no-such-driver"), code=1)
        case.contains(r.err + r.out, "no-such-driver")
        r = node.run({"Job": {"ID": "empty"}}, code=1)
        case.equal(bool(r.err.strip()), True)
        for words in (["job", "status", "gone"], ["alloc", "status", "ffffffff"], ["alloc", "logs", "ffffffff"],
                      ["volume", "status", "gone"], ["plugin", "status", "gone"], ["job", "stop", "gone"]):
            case.contains(node.drover(*words, code=1).err, " exists")


def test_a_followed_log_continues_when_the_supervisor_is_killed():
    with Node() as node:
        node.wait_ready()
        node.run(job("count", "/bin/sh", ["-c", "i=0; while echo line $i; do i=$((i+1)); sleep 0.05; done"]))
        process = node.background("alloc", "logs", "-f", "-stdout", "count.group[0]")
        seen = read_until(process, b"line 10\n")
        for last in (40, 80):
            node.wait_process("supervisor", other_than=node.kill("supervisor"))
            seen += read_until(process, b"line %d\n" % last)
        process.terminate()
        finish(process)
        whole = seen[:seen.rindex(b"\n") + 1].split()
        case.equal([int(n) for n in whole[1::2]], list(range(len(whole) // 2)), "lines in the output")


def test_a_drain_continues_when_the_supervisor_is_killed():
    with Node() as node:
        node.wait_ready()
        stubborn = job("stubborn", "/bin/sh", ["-c", "trap '' INT; while :; do sleep 0.1; done"], task={"KillTimeout": 3 * 10**9})
        node.run(stubborn)
        process = node.background("node", "drain", "-yes")
        read_until(process, b"is draining")
        node.wait_process("supervisor", other_than=node.kill("supervisor"))
        r = finish(process)
        case.equal(r.code, 0, r.err)
        case.contains(r.out, "is drained")
        case.equal([a["ClientStatus"] in ("complete", "failed") for a in node.allocs("stubborn")], [True])
        case.contains(node.drover("node", "status").out, "ineligible")
        node.drover("node", "drain", "-disable")
        case.contains(node.drover("node", "status").out, " eligible")


case.run(globals())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""drover job restart: in place and by replacement, in batches, with questions on a terminal."""
import os
import pty
import select
import subprocess

from lib import api, binary, case
from lib.fake_api import run_command


def env():
    return {"DROVER_ADDR": "unix://" + node.socket_path}


def drover(*words, code=0):
    r = run_command(words, env=env())
    case.equal(r.code, code, "drover %s: %s%s" % (" ".join(words), r.out, r.err))
    return r.out + r.err


def restarts(job="web", task="t"):
    """Returns the restarts of the task in each of the job's running allocations, oldest first."""
    return [a["TaskStates"][task]["Restarts"] for a in node.wait_running(job, COUNT[job])]


COUNT = {"web": 3, "two": 1}


def test_all_allocations_are_restarted_one_after_the_other():
    node.register(api.job("web", count=3))
    ids = [a["ID"] for a in node.wait_running("web", 3)]
    out = drover("job", "restart", "web")
    case.equal((out.count("Restarting the running tasks"), out.count("is running"), restarts()), (3, 3, [1, 1, 1]))
    case.contains(out, "3 of 3 allocation(s) restarted")
    case.equal("Batch" in out, False)
    case.equal([a["ID"] for a in node.wait_running("web", 3)], ids, "the same allocations")


def test_batches_of_a_number_or_a_share():
    out = drover("job", "restart", "-batch-size", "2", "-batch-wait", "1ms", "web")
    case.contains(out, "Batch 1 of 2: 2 allocation(s)")
    case.contains(out, "Batch 2 of 2: 1 allocation(s)")
    case.contains(out, "Waiting 1ms before the next batch")
    case.contains(drover("job", "restart", "-batch-size", "100%", "web"), "Batch 1 of 1: 3 allocation(s)")
    case.equal(restarts(), [3, 3, 3])


def test_allocations_are_replaced():
    before = {a["ID"] for a in node.wait_running("web", 3)}
    out = drover("job", "restart", "-reschedule", "-batch-size", "3", "web")
    case.equal(out.count("is replaced by"), 3)
    after = {a["ID"] for a in node.wait_running("web", 3)}
    case.equal(before & after, set())


def test_allocations_of_a_system_job_are_replaced():
    made = api.job("each")
    made["Job"]["Type"] = "system"
    del made["Job"]["TaskGroups"][0]["ReschedulePolicy"]
    node.register(made)
    before = node.wait_running("each")[0]["ID"]
    case.contains(drover("job", "restart", "-reschedule", "each"), "1 of 1 allocation(s) restarted")
    case.equal(node.wait_running("each")[0]["ID"] != before, True)
    made = api.job("once")
    made["Job"]["Type"] = "sysbatch"
    del made["Job"]["TaskGroups"][0]["ReschedulePolicy"], made["Job"]["TaskGroups"][0]["Update"]
    node.register(made)
    node.wait_running("once")
    case.contains(drover("job", "restart", "-reschedule", "once", code=1), "sysbatch")
    node.purge("each")
    node.purge("once")


def test_only_some_groups_and_tasks():
    job = api.job("two")
    job["Job"]["TaskGroups"][0]["Tasks"].append(api.task("u", "/bin/sleep", ["1000"]))
    job["Job"]["TaskGroups"][0]["Tasks"].append(api.task("first", "/bin/true", Lifecycle={"Hook": "prestart"}))
    node.register(job)
    node.wait_running("two")
    case.until(lambda: node.allocs("two")[0]["TaskStates"]["u"]["State"] == "running", case.LEAST_S, "the second task to run")
    drover("job", "restart", "-task", "u", "two")
    case.equal((restarts("two"), restarts("two", "u"), restarts("two", "first")), ([0], [1], [0]))
    drover("job", "restart", "-group", "g", "two")
    case.equal((restarts("two"), restarts("two", "u"), restarts("two", "first")), ([1], [2], [0]))
    drover("job", "restart", "-all-tasks", "two")
    case.equal((restarts("two"), restarts("two", "u"), restarts("two", "first")), ([2], [3], [1]))
    for words in (("-group", "h"), ("-task", "v")):
        case.equal(drover("job", "restart", *words, "two"), "No allocations to restart\n")
    case.contains(drover("job", "restart", "-verbose", "-task", "v", "two"), "it has none of these tasks")
    node.purge("two")


def test_wrong_flags_and_jobs_that_are_being_deployed():
    for words, part in ((("-batch-size", "0"), "-batch-size must be"), (("-batch-size", "1%x"), "-batch-size must be"),
                        (("-batch-wait", "soon"), "-batch-wait must be"), (("-batch-wait", "ask"), "needs a terminal"),
                        (("-on-error", "ask"), "needs a terminal"), (("-on-error", "run"), "must be ask or fail"),
                        (("-all-tasks", "-task", "t"), "exclude each other"), (("-reschedule", "-task", "t"), "exclude each other")):
        case.contains(drover("job", "restart", *words, "web", code=1), part)
    node.register(api.job("slow", group={"Update": {"MaxParallel": 1, "HealthCheck": "manual"}}))
    node.wait_running("slow")
    case.contains(drover("job", "restart", "slow", code=1), "of the job is running: wait for its end")
    node.purge("slow")


def test_a_failure_ends_the_restart_unless_yes_is_given():
    """The tasks cannot start again, because their command is gone."""
    path = node.base + "/program"

    def make():
        with open(path, "w", encoding="ascii", opener=lambda p, flags: os.open(p, flags, 0o755)) as f:
            f.write("#!/bin/sh\necho up\nexec sleep 1000\n")
    for flags, wanted in ((("-on-error", "fail"), 1), (("-yes",), 2)):
        make()
        node.register(api.job("broken", path, [], count=2))
        for alloc in node.wait_running("broken", 2):
            node.wait_said(alloc, b"up\n")
        os.unlink(path)
        out = drover("job", "restart", *flags, "broken", code=1)
        case.equal((out.count("drover: allocation"), out.count("Restarting the running")), (wanted, wanted), out)
        node.purge("broken")


def test_a_replacement_that_cannot_be_placed_is_reported():
    node.do("PUT", "/v1/node/%s/eligibility" % node.ask("/v1/nodes")[0]["ID"], {"Eligibility": "ineligible"})
    out = drover("job", "restart", "-reschedule", "-yes", "web", code=1)
    case.contains(out, "its replacement cannot be placed")
    case.equal(out.count("Replacing allocation"), 1, "the next would fail as well")
    node.do("PUT", "/v1/node/%s/eligibility" % node.ask("/v1/nodes")[0]["ID"], {"Eligibility": "eligible"})
    node.wait_running("web", 3)


def on_terminal(answers, *words):
    """Runs the command on a terminal and gives one answer to each question. Returns the exit code and the output."""
    master, slave = pty.openpty()
    p = subprocess.Popen([binary("drover"), *words], stdin=slave, stdout=slave, stderr=slave, env={**os.environ, **env()})
    os.close(slave)
    shown, answers = b"", list(answers)
    try:
        while select.select([master], [], [], case.patience(60))[0]:
            shown += os.read(master, 65536)
            if answers and shown.endswith(b"] "):
                os.write(master, answers.pop(0) + b"\n")
    except OSError:  # EIO: the command has ended
        pass
    os.close(master)
    return p.wait(60), shown.decode()


def test_questions_on_a_terminal():
    code, out = on_terminal([b"y", b"no"], "job", "restart", "-batch-wait", "ask", "web")
    case.equal((code, out.count("Restart the next batch?"), out.count("Restarting the running")), (0, 2, 2), out)
    case.contains(out, "is cancelled")
    code, out = on_terminal([b"what", b"1ms"], "job", "restart", "-batch-wait", "ask", "web")
    case.equal((code, out.count("Restart the next batch?"), out.count("Waiting 1ms")), (0, 2, 2), out)
    case.contains(out, '"what" is no answer')


with api.Node() as node:
    case.run(globals())

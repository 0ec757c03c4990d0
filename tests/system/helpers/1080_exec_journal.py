#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# takes: 40
"""The executor writes a task's output to the journal, to files, or to both, and loses nothing while the journal is away."""
import os

from lib import case, exe, journal, runs

FIELDS = {"log_job": "shop", "log_group": "web", "log_namespace": "default"}
JOURNALD, BOTH = {**FIELDS, "log_store": "LOG_STORE_JOURNALD"}, {**FIELDS, "log_store": "LOG_STORE_BOTH"}
COUNT = "i=0; while [ $i -lt %d ]; do echo line $i; i=$((i+1)); done"


def same(found, wanted, what):
    """Compares two long lists and names their first difference."""
    at = next((i for i, (a, b) in enumerate(zip(found, wanted)) if a != b), min(len(found), len(wanted)))
    case.equal((len(found), found[at:at + 3]), (len(wanted), wanted[at:at + 3]), "%s, from entry %d on" % (what, at))


def files(r, run):
    return sorted(f for f in os.listdir("%s/logs/%s" % (r.places.data, run.alloc)) if not f.startswith("."))


def blocked(pid):
    """Returns whether the process waits for room in its pipe."""
    try:
        with open("/proc/%d/wchan" % pid, encoding="ascii") as f:
            return "pipe" in f.read()
    except OSError:
        return False


def test_each_line_is_an_entry_with_the_tasks_fields():
    for driver in ("RAW_EXEC", "EXEC"):
        with journal.Journal() as j, runs.Runs() as r:
            run = r.start("/bin/sh", ["-c", "echo one; echo; echo '<3>bad'; printf 'no end'; echo err >&2"], driver=driver, **JOURNALD)
            case.equal(r.ended(run)["exit_code"], 0)
            case.equal(j.messages(), [b"one", b"", b"bad", b"no end"])
            case.equal(j.messages("stderr"), [b"err"])
            case.equal(files(r, run), [], "log files of a task whose logs are in the journal")
            own = {"SYSLOG_IDENTIFIER": b"web", "DROVER_ALLOC_ID": run.alloc.encode(), "DROVER_NAMESPACE": b"default", "DROVER_JOB": b"shop",
                   "DROVER_GROUP": b"web", "DROVER_TASK": b"web"}
            for e in j.entries:
                case.equal({k: v for k, v in e.items() if k not in ("MESSAGE", "PRIORITY", "DROVER_STREAM")}, own, "fields")
            case.equal([e["PRIORITY"] for e in j.entries if e["DROVER_STREAM"] == b"stdout"], [b"6", b"6", b"3", b"6"], "priorities")
            case.equal([e["PRIORITY"] for e in j.entries if e["DROVER_STREAM"] == b"stderr"], [b"4"], "priorities of stderr")


def test_the_journal_and_the_files_have_the_same():
    with journal.Journal() as j, runs.Runs() as r:
        run = r.start("sh", ["-c", COUNT % 300 + "; printf end"], **BOTH)
        r.ended(run)
        same(j.messages(), [b"line %d" % i for i in range(300)] + [b"end"], "the journal")
        case.equal(r.log(run), "".join("line %d\n" % i for i in range(300)) + "end")


def test_long_and_binary_lines_are_whole_or_marked():
    with journal.Journal() as j, runs.Runs() as r:
        script = "import os; os.write(1, b'a' * 16384 + b'\\n' + b'b' * 40000 + b'\\n\\0\\1=\\xff\\nlast\\n')"
        run = r.start("python3", ["-c", script], **JOURNALD)
        case.equal(r.ended(run)["exit_code"], 0)
        case.equal([len(m) for m in j.messages()], [16384, 16384, 16384, 40000 - 2 * 16384, 4, 4])
        case.equal([e.get("DROVER_PARTIAL") for e in j.entries], [None, b"1", b"1", None, None, None], "marks of lines that go on")
        case.equal(j.messages()[4:], [b"\0\1=\xff", b"last"])


def test_a_task_waits_for_a_journal_that_accepts_nothing_and_loses_no_line():
    """journald restarts: its socket stays, nobody reads from it for a while."""
    for store in (JOURNALD, BOTH):
        with journal.Journal() as j, runs.Runs() as r:
            j.stopped.set()
            run = r.start("sh", ["-c", COUNT % 20000], **store)
            case.until(lambda: blocked(r.record(run)["task_pid"]), 10, "the task to wait in a write")
            case.equal(r.record(run)["state"], exe.EXE_RUNNING, "state while the journal is full")
            j.stopped.clear()
            r.ended(run)
            same(j.messages(), [b"line %d" % i for i in range(20000)], "the journal")
            case.equal(files(r, run), ["web.stdout.0"] if store is BOTH else [])


def test_lines_go_into_files_while_the_journal_is_given_up_and_it_says_so():
    with journal.Journal() as j, runs.Runs() as r:
        j.stopped.set()
        run = r.start("sh", ["-c", COUNT % 20000 + "; mkfifo stop; echo full >&2; read x < stop; echo back"], **JOURNALD)
        case.until(lambda: "full" in r.log(run, "stderr"), 30, "the task to go on without the journal")
        j.stopped.clear()
        j.read()
        case.write("%s/alloc/%s/web/stop" % (r.places.data, run.alloc), "\n")
        r.ended(run)
        messages = j.messages()
        case.equal(messages[-1], b"back")
        first = messages.index(next(m for m in messages if m.startswith(b"drover: ")))
        same(messages[:first], [b"line %d" % i for i in range(first)], "lines before the gap")
        missed = 20000 - first
        case.contains(messages[first].decode(), "drover: %d lines of stdout before this one are only in the task's log files" % missed)
        same(r.log(run).splitlines(), ["line %d" % i for i in range(first, 20000)], "lines in the files")


def test_a_task_ends_although_the_journal_accepts_nothing():
    with journal.Journal() as j, runs.Runs() as r:
        j.stopped.set()
        run = r.start("sh", ["-c", COUNT % 1000], **JOURNALD)
        case.equal(r.ended(run)["exit_code"], 0)
        same([m.decode() for m in j.messages()] + r.log(run).splitlines(), ["line %d" % i for i in range(1000)], "journal and files")


def test_without_a_journal_the_output_is_in_files():
    with journal.Journal() as j, runs.Runs() as r:
        j.remove()
        run = r.start("echo", ["hello"], **JOURNALD)
        r.ended(run)
        case.equal(r.log(run), "hello\n")


def test_a_journal_that_is_replaced_is_not_waited_for():
    """A new socket has another inode; the executor cannot reach it from its chroot."""
    with journal.Journal() as j, runs.Runs() as r:
        run = r.start("sh", ["-c", "mkfifo stop; echo one; read x < stop; echo two"], **JOURNALD)
        case.until(lambda: j.messages() == [b"one"], 10, "the first line")
        j.remove()
        j.listen()
        case.write("%s/alloc/%s/web/stop" % (r.places.data, run.alloc), "\n")
        r.ended(run)
        case.equal((j.messages(), r.log(run)), ([b"one"], "two\n"))


def test_disabled_logs_write_nothing():
    with journal.Journal() as j, runs.Runs() as r:
        run = r.start("echo", ["hello"], logs_disabled=True, **BOTH)
        r.ended(run)
        case.equal((j.messages(), files(r, run)), ([], []))


case.run(globals())

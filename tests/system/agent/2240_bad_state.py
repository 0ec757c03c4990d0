#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A state.db that this build cannot use: the agent refuses to start with an error message, does not change the file, and no task is
stopped."""
import hashlib
import os
import signal
import sqlite3

from lib import agent, api, case


class Node(api.Node):
    """An agent whose task (.task) keeps running during all tests."""

    @property
    def state(self):
        return self.data + "/state"

    def crash(self):
        """Kills all processes except the executors and their tasks."""
        pids = [self.pid] + list(self.processes().values())
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.wait()
        agent.wait_gone(pids)

    def files(self):
        """Returns {name: (hash of the contents, owner, mode, time of change)}. Ignores an empty log, which SQLite creates even for
        reading."""
        found = {}
        for name in sorted(os.listdir(self.state)):
            st = os.stat(self.state + "/" + name)
            if name == "state.db-wal" and st.st_size == 0:
                continue
            with open(self.state + "/" + name, "rb") as f:
                found[name] = (hashlib.sha256(f.read()).hexdigest(), st.st_uid, st.st_mode, st.st_mtime_ns)
        return found

    def save(self):
        return {name: read(self.state + "/" + name) for name in os.listdir(self.state)}

    def bring_back(self, saved):
        for name in set(os.listdir(self.state)) - set(saved):
            os.unlink(self.state + "/" + name)
        for name, data in saved.items():
            known = os.path.exists(self.state + "/" + name)
            with open(self.state + "/" + name, "r+b" if known else "wb") as f:
                f.truncate(0)
                f.write(data)
            if not known:
                owner = os.stat(self.state)
                os.chown(self.state + "/" + name, owner.st_uid, owner.st_gid)

    def refuses(self, sentence):
        """Checks that the agent does not start with the current state, and does not change it."""
        before, lines = self.files(), len(self.log())
        self.start()
        case.equal(self.wait(), 78, "exit code")
        case.contains(self.log()[lines:], sentence)
        case.equal(self.files(), before, "the files after: " + sentence)
        case.equal(bool(agent.arguments(self.task)), True, "whether the task still runs")


def read(path):
    with open(path, "rb") as f:
        return f.read()


def write_sql(path, statements):
    """Runs SQL in a child that does not close the database, so that its writes stay in the WAL, as after SIGKILL."""
    pid = os.fork()
    if pid == 0:
        try:
            db = sqlite3.connect(path, isolation_level=None)
            db.execute("PRAGMA wal_autocheckpoint = 0")
            for statement in statements:
                db.execute(statement)
            os._exit(0)
        finally:
            os._exit(1)
    case.equal(os.waitpid(pid, 0)[1], 0, "write " + path)
    if os.path.exists(path + "-shm"):
        os.unlink(path + "-shm")


def version_of(node):
    return read(node.state + "/state.db")[60:64]


def test_a_newer_database_is_refused():
    write_sql(node.state + "/state.db", ["PRAGMA user_version = 4711"])
    case.equal(os.path.getsize(node.state + "/state.db-wal") > 0, True, "whether there is a WAL")
    node.refuses("state.db has schema version 4711, this drover knows up to ")


def test_a_newer_database_without_a_wal_is_refused():
    db = sqlite3.connect(node.state + "/state.db", isolation_level=None)
    db.execute("PRAGMA user_version = 4711")
    db.execute("PRAGMA journal_mode = DELETE")
    db.close()
    case.equal(sorted(os.listdir(node.state)), ["reserve", "state.db"])
    case.equal(version_of(node), (4711).to_bytes(4, "big"))
    node.refuses("start the newer drover that wrote it")


def test_a_database_of_another_program_is_refused():
    for name in os.listdir(node.state):
        os.unlink(node.state + "/" + name)
    db = sqlite3.connect(node.state + "/state.db")
    db.execute("CREATE TABLE songs (name TEXT)")
    db.commit()
    db.close()
    owner = os.stat(node.state)
    os.chown(node.state + "/state.db", owner.st_uid, owner.st_gid)
    node.refuses("state.db is not a database of drover; move it away to start without it")


def test_damaged_databases_are_refused():
    db = sqlite3.connect(node.state + "/state.db")
    page = db.execute("PRAGMA page_size").fetchone()[0]
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    whole = node.save()
    size = len(whole["state.db"])
    case.equal(size > 4 * page, True, "pages: %d bytes" % size)

    def cut(f):
        f.truncate(size // page // 2 * page)

    def no_head(f):
        f.write(os.urandom(100))

    def no_pages(f):
        f.seek(page)
        f.write(b"\xa5" * (size - page))

    def text(f):
        f.truncate(0)
        f.write(b"this is no database\n" * 1000)

    for damage, sentence in ((cut, "state.db"), (no_head, "file is not a database: move it away or bring back a copy"),
                             (no_pages, "state.db"), (text, "file is not a database: move it away")):
        with open(node.state + "/state.db", "r+b") as f:
            damage(f)
        print("    %s:" % damage.__name__, end=" ")
        lines = len(node.log())
        node.refuses(sentence)
        print([line for line in node.log()[lines:].splitlines() if "state.db" in line][0])
        case.contains(node.log()[lines:], "move it away or bring back a copy")
        node.bring_back(whole)


def test_a_restored_copy_of_the_database_works():
    node.start()
    node.wait_ready()
    case.equal([a["ID"] for a in node.wait_running("kept")], [kept["ID"]], "its alloc")
    case.equal(bool(agent.arguments(node.task)), True, "its task, which is the same process")
    node.purge("kept")
    case.equal(agent.arguments(node.task), [], "its task after it was stopped")
    case.until(lambda: node.ask("/v1/agent/leaks") == [], 10, "no leaks")


def pid_of_task(alloc):
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if b"NOMAD_ALLOC_ID=" + alloc["ID"].encode() in read("/proc/%s/environ" % pid).split(b"\0"):
                return int(pid)
        except OSError:
            pass
    return None


with Node() as node:
    node.register(api.job("kept"))
    kept = node.wait_running("kept")[0]
    node.task = case.until(lambda: pid_of_task(kept), 60, "its task")
    node.crash()
    good = node.save()
    for test in ("test_a_newer_database_is_refused", "test_a_newer_database_without_a_wal_is_refused", "test_a_database_of_another_program_is_refused", "test_damaged_databases_are_refused"):
        def each(run=globals()[test]):
            try:
                run()
            finally:
                node.bring_back(good)
        globals()[test] = each
    case.run(globals())

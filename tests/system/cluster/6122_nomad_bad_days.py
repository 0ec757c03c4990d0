#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# takes: 50
"""A whole agent and servers with problems: the servers have lost their data, most are unreachable, or they are slow; or the node has lost a
row."""
import collections
import contextlib
import os
import socket
import sqlite3
import types
import uuid

from lib import agent, case
from lib.cluster import beaten, job, node_of, processes_of, servers as cluster, task_of


def test_servers_that_have_lost_all_data():
    """Their index starts again from the beginning. New allocs run; an old alloc is stopped when two lists do not contain it, whether these
    are empty or not."""
    for version in ("1.6.10", "2.0.5"):
        for killed, placed in ((False, False), (True, True)):
            with cluster(version=version) as servers, node_of(servers) as node:
                me = servers.wait_node()["ID"]
                for turn in range(20):
                    servers.set_eligibility(me, turn % 2 == 1)
                old = servers.run_job(job("old"), me)[0]
                servers.wait_alloc(old, ["running"])
                servers.stop_server(0)
                node.wait_log("no server is reachable: ", 20)
                if killed:
                    node.kill("supervisor")
                servers.settings(nodes={}, allocs={}, jobs={}, deadlines={}, table_index={}, index=1)
                new = servers.run_job(job("new"), me)[0] if placed else None
                servers.start_server(0)
                servers.wait_node()
                if not placed:
                    node.wait_log("the servers list no allocations for this node", 60)
                new = new or servers.run_job(job("new"), me)[0]
                servers.wait_alloc(new, ["running"])
                case.until(lambda a=old: not processes_of(a), 30, "the unknown allocs to be stopped")
                task_of(new)
                log = node.log()
                case.contains(log.split("the servers have forgotten it")[0], "asking again after the next heartbeat")
                if placed:
                    case.contains(log, "1 allocations that run here are missing in the servers' list")


@contextlib.contextmanager
def deaf():
    """Yields the address of a server whose connection queue is full: packets to it are lost."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, contextlib.ExitStack() as held:
        while True:
            s = held.enter_context(socket.socket())
            s.settimeout(2)
            try:
                s.connect(full.getsockname())
            except TimeoutError:
                break
        yield "127.0.0.1:%d" % full.getsockname()[1]


def test_only_one_of_many_servers_is_reachable():
    """Of the other servers one is not running, one accepts connections and is silent, and one does not even accept."""
    with cluster(3) as servers, deaf() as lost:
        servers.set_leader(2)
        servers.connection_fault(0, "mute")
        servers.stop_server(1)
        with node_of(types.SimpleNamespace(addresses=[lost, *servers.addresses])) as node:
            me = servers.wait_node()["ID"]
            alloc = servers.run_job(job(), me)[0]
            servers.wait_alloc(alloc, ["running"])
            node.kill_launcher()
            known = servers.last_call()
            node.start()
            servers.wait_call("Node.Register", known)
            servers.stop_alloc(alloc)
            servers.wait_alloc(alloc, ["complete"])


def count_of_each():
    """Returns {alloc: number of processes}."""
    found = collections.Counter()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open("/proc/%s/environ" % pid, "rb") as f:
            found.update(w[15:].decode() for w in f.read().split(b"\0") if w.startswith(b"NOMAD_ALLOC_ID="))
    return found


def test_many_allocs_that_are_sent_slowly():
    """Each part of the list is sent late, and the supervisor is killed after the first part: each alloc runs once."""
    with cluster(grace=600) as servers, node_of(servers) as node:
        me = servers.wait_node()["ID"]
        known, slow = servers.last_call(), servers.fault("delay", "Alloc.GetAllocs", seconds=3)
        allocs = servers.run_job(job(group={"Count": 130}), me)
        servers.wait_call("Alloc.GetAllocs", known)
        beaten(servers)
        node.kill("supervisor")
        for alloc in allocs:
            servers.wait_alloc(alloc, ["running"])
        # A process that was just forked does not have its environment yet.
        case.until(lambda: len(count_of_each()) == len(allocs), 60, "each process to have its environment")
        case.equal(count_of_each(), dict.fromkeys(allocs, 1), "processes of each alloc")
        servers.clear(slow)


def test_a_node_that_cannot_read_a_row():
    """The row of one allocation is invalid: it fails, its processes are killed and it is not started again; the other keeps running."""
    with cluster() as servers, node_of(servers) as node:
        me = servers.wait_node()["ID"]
        lost, kept = (servers.run_job(job(name), me)[0] for name in ("lost", "kept"))
        for alloc in (lost, kept):
            servers.wait_alloc(alloc, ["running"])
        before, runs = task_of(lost), task_of(kept)
        node.kill_launcher()
        with contextlib.closing(sqlite3.connect(node.data + "/state/state.db", isolation_level=None)) as db:
            done = db.execute("UPDATE alloc SET json = '{' || json WHERE id = ?", (uuid.UUID(lost).bytes,))
            case.equal(done.rowcount, 1, "rows that were changed")
        node.start()
        found = servers.wait_alloc(lost, ["failed"])
        case.equal(found["ClientDescription"],
                   "Unable to add allocation due to error: its row in this node's state.db cannot be read")
        agent.wait_gone(before)
        node.wait_log("allocation %s cannot be read, so its tasks are killed and its row is kept: " % lost, 60)
        case.equal((processes_of(lost), task_of(kept), servers.alloc(kept)["ClientStatus"]), ([], runs, "running"))


case.run(globals())

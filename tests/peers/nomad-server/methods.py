# SPDX-License-Identifier: Apache-2.0
"""The table of methods, their exceptions, and the blocking query."""
import random
import time

METHODS = {}
MAX_QUERY_S = 300.0


class Method:
    """auth: checks the caller, a function of the context or None. write: needs a leader, whatever AllowStale says."""

    def __init__(self, name, takes, gives, fn, auth, write, since, until):
        self.name, self.takes, self.gives, self.fn, self.auth, self.write = name, takes, gives, fn, auth, write
        self.since, self.until = since, until

    def exists(self, version):
        return (self.since is None or version >= self.since) and (self.until is None or version < self.until)


class Failure(Exception):
    """An error whose text is sent in the answer's Error."""


def method(name, takes, gives, auth=None, write=False, since=None, until=None):
    def decorate(fn):
        METHODS[name] = Method(name, takes, gives, fn, auth, write, since, until)
        return fn
    return decorate


class Context:
    """One call: .args with all fields, the cluster, the server that received it, its connection, its caller."""

    def __init__(self, server, connection, name, args):
        self.server, self.connection, self.name, self.args = server, connection, name, args
        self.cluster = server.cluster
        self.caller = None

    def block(self, look, watched=None, table=None):
        """A blocking query: look() returns (index, answer); waits while the index is not above MinQueryIndex. With watched() it looks again only after that
        value has changed, as servers do, whose queries watch a part of a table. With a table it looks only after a change of that table."""
        cluster, wanted = self.cluster, self.args["MinQueryIndex"]
        ask = self.args["MaxQueryTime"] / 1e9
        limit = min(ask, MAX_QUERY_S) if ask > 0 else MAX_QUERY_S
        end = time.monotonic() + limit + random.uniform(0, limit / 16)
        def over():
            return time.monotonic() >= end or cluster.stopping or self.connection.closed
        with cluster.changed:
            changed = cluster.table_changed[table] if table else cluster.changed
            while True:
                index, found = look()
                seen = watched and watched()
                while not over() and wanted and index <= wanted:
                    changed.wait(max(0, end - time.monotonic()))
                    if not watched or watched() != seen:
                        break
                if over() or not wanted or index > wanted:
                    return {**found, "Index": index, "KnownLeader": cluster.leader is not None, "LastContact": 0}

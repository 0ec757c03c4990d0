# SPDX-License-Identifier: Apache-2.0
"""The state that the servers of a cluster share: tables, their index, the nodes' timers and connections, and the record of received calls.

There is no scheduler: tests place allocs. Everything else that a node can see changes as with real servers."""
import collections
import copy
import random
import threading
import time
import uuid

import gopack
import jobs
import schema
from asked import AskedStreams
from faults import Faults
from identity import Issuer

EVENTS_KEPT = 10  # status of a node
CALLS_KEPT = 20000


class Cluster:
    """.changed, a condition that each change of the tables and each call notifies, protects all members. Changes of a table notify .table_changed[table]
    too: a thread for each of thousands of blocking queries must not run for anything else."""

    def __init__(self, version="2.0.5", region="global", datacenter="dc1", ttl_s=10.0, ttl_jitter_s=10.0, grace_s=10.0):
        self.version_text, self.version = version, schema.version_of(version)
        self.region, self.datacenter = region, datacenter
        self.ttl_s, self.ttl_jitter_s, self.grace_s = ttl_s, ttl_jitter_s, grace_s
        lock = threading.RLock()
        self.changed = threading.Condition(lock)
        self.table_changed = collections.defaultdict(lambda: threading.Condition(lock))
        self.index = 1
        self.table_index = {}
        self.nodes, self.allocs, self.jobs, self.volumes, self.services, self.variables = {}, {}, {}, {}, {}, {}
        self.submissions = {}  # by (namespace, job, version)
        self.pools = {"default", "all"}
        self.deadlines = {}  # node id: time at which its heartbeat is missed
        self.connections = {}  # node id: connections that served one of its calls
        self.servers, self.leader = [], 0  # number of the leader; None if there is none
        self.advertised = None  # addresses for NodeUpdateResponse.Servers; None: those of the running servers
        self.faults = Faults()
        self.asked = AskedStreams(self)
        self.acl_enabled, self.tokens, self.policies, self.roles = False, {}, {}, {}
        self.oidc_issuer = None
        self.job_policies = {}  # name: (namespace, job) of policies for the workloads of a job
        self.introduction = "warn"
        self.identity_ttl_s = 24 * 3600.0
        self.clock_ahead_s = 0  # by how much the times in tokens are ahead of the machine's clock
        self.signs = None  # misbehavior: "garbage", "expired", "refuses", "others" or "behind" (does not know the alloc)
        self.calls, self.call_count = [], 0
        self.violations = []
        self.issuer = Issuer(self)
        self.stopping = False
        self.watch = threading.Thread(target=self._watch_heartbeats, daemon=True)
        self.watch.start()

    def at_least(self, *version):
        return self.version >= version

    # --- the index ---

    def bump(self, *tables):
        """Counts a raft write to these tables. Returns its index."""
        with self.changed:
            self.index += 1
            for table in tables:
                self.table_index[table] = self.index
                self.table_changed[table].notify_all()
            self.changed.notify_all()
            return self.index

    def wake_all(self):
        """Lets each blocking query find that its connection is closed, or that the cluster stops."""
        with self.changed:
            for condition in (self.changed, *self.table_changed.values()):
                condition.notify_all()

    def newest(self, table):
        """Returns the index of a table, never 0, with which a blocking query would return at once."""
        return max(1, self.table_index.get(table, 0))

    # --- the record ---

    def record(self, **call):
        with self.changed:
            self.call_count += 1
            call.update(number=self.call_count, at=time.time())
            self.calls.append(call)
            del self.calls[:-CALLS_KEPT]
            self.changed.notify_all()
            return call

    def violation(self, text):
        """Records a violation: something that would crash a real server, or that it would ignore or punish."""
        with self.changed:
            self.violations.append(text)
            self.changed.notify_all()

    def wait_calls(self, method=None, after=0, count=1, seconds=0):
        """Returns the answered calls of a method with a number above `after`; at the timeout those so far."""
        end = time.monotonic() + seconds
        with self.changed:
            while True:
                found = [c for c in self.calls if c["number"] > after and (method is None or c["method"] == method)
                         and c.get("done")]
                left = end - time.monotonic()
                if len(found) >= count or left <= 0:
                    return found
                self.changed.wait(left)

    # --- nodes ---

    def node(self, node_id):
        with self.changed:
            if node_id not in self.nodes:
                raise KeyError("there is no node %s" % node_id)
            return self.nodes[node_id]

    def node_event(self, node, message, subsystem="Cluster", details=None, index=None):
        node["Events"] = (node["Events"] or [])[-(EVENTS_KEPT - 1):] + [{
            "Message": message, "Subsystem": subsystem, "Details": details,
            "CreateIndex": self.index if index is None else index,
            "Timestamp": gopack.time_from_ns(time.time_ns())}]

    def arm(self, node_id):
        """Starts the timer of a node. Returns the TTL in ns."""
        with self.changed:
            ttl = self.ttl_s + random.uniform(0, self.ttl_jitter_s)
            self.deadlines[node_id] = time.monotonic() + ttl + self.grace_s
            self.changed.notify_all()
            return int(ttl * 1e9)

    def _watch_heartbeats(self):
        with self.changed:
            while not self.stopping:
                now = time.monotonic()
                for node_id, deadline in list(self.deadlines.items()):
                    if deadline <= now:
                        del self.deadlines[node_id]
                        self.miss(node_id)
                soonest = min(self.deadlines.values(), default=now + 3600)
                self.changed.wait(max(0.01, soonest - time.monotonic()))

    def miss(self, node_id):
        """A node missed its heartbeat: it becomes disconnected if one of its allocs may be disconnected, else down, and its allocs are
        lost."""
        with self.changed:
            node = self.nodes.get(node_id)
            if node is None or node["Status"] in ("down", "disconnected"):
                return
            self.deadlines.pop(node_id, None)
            live = [a for a in self.allocs_of(node_id) if a["DesiredStatus"] == "run" and not terminal(a)]
            kept = [a for a in live if jobs.lost_after(a, self.version)]
            index = self.bump("nodes")
            node.update(Status="disconnected" if kept and node["Status"] == "ready" else "down", ModifyIndex=index,
                        LastMissedHeartbeatIndex=index, StatusUpdatedAt=int(time.time()))
            self.node_event(node, "Node heartbeat missed")
            for alloc in live:
                if node["Status"] == "disconnected" and alloc in kept:
                    alloc["AllocStates"] = (alloc["AllocStates"] or []) + [{
                        "Field": 0, "Value": "unknown", "Time": gopack.time_from_ns(time.time_ns())}]
                    self.change_alloc(alloc, ClientStatus="unknown", ClientDescription="alloc is unknown since its "
                                      "node is disconnected")
                else:
                    self.change_alloc(alloc, ClientStatus="lost", DesiredStatus="stop",
                                      ClientDescription="alloc is lost since its node is down",
                                      DesiredDescription="alloc is lost since its node is down")

    def purge_node(self, node_id):
        """Removes a node, as `nomad node purge` or the servers' garbage collection."""
        with self.changed:
            self.node(node_id)
            del self.nodes[node_id]
            self.deadlines.pop(node_id, None)
            self.bump("nodes")

    def set_eligibility(self, node_id, eligible):
        with self.changed:
            node = self.node(node_id)
            node["SchedulingEligibility"] = "eligible" if eligible else "ineligible"
            node["ModifyIndex"] = self.bump("nodes")
            self.node_event(node, "Node marked as %s for scheduling" % ("eligible" if eligible else "ineligible"))

    def drain(self, node_id, strategy, mark_eligible=False, meta=None):
        """Starts a drain, or ends it with strategy None. Allocs are marked for migration and stopped one after the other."""
        with self.changed:
            node = self.node(node_id)
            node["DrainStrategy"] = strategy
            node["SchedulingEligibility"] = "eligible" if strategy is None and mark_eligible else "ineligible"
            node["ModifyIndex"] = self.bump("nodes")
            self.node_event(node, "Node drain strategy set" if strategy else "Node drain strategy removed", "Drain")
            now = gopack.time_from_ns(time.time_ns())
            if strategy is None:
                node["LastDrain"] = {**(node["LastDrain"] or {}), "Status": "canceled", "UpdatedAt": now}
                return
            node["LastDrain"] = {"StartedAt": now, "UpdatedAt": now, "Status": "draining", "Meta": meta,
                                 "AccessorID": "acls-disabled"}
            for alloc in self.allocs_of(node_id):
                if alloc["DesiredStatus"] == "run" and not terminal(alloc):
                    alloc["DesiredTransition"]["Migrate"] = True
                    alloc["ModifyIndex"] = self.bump("allocs")
                    self.stop_alloc(alloc["ID"], "alloc is being migrated")
            self.finish_drain(node)

    def finish_drain(self, node):
        """Ends the drain when no alloc runs any more."""
        if not node["DrainStrategy"] or any(not terminal(a) for a in self.allocs_of(node["ID"])):
            return
        node["DrainStrategy"] = None
        node["ModifyIndex"] = self.bump("nodes")
        node["LastDrain"].update(Status="complete", UpdatedAt=gopack.time_from_ns(time.time_ns()))
        self.node_event(node, "Node drain complete", "Drain")

    def connection_of(self, node_id):
        """Returns the newest open connection on which the node has made a call; KeyError with the servers' text."""
        with self.changed:
            live = [c for c in self.connections.get(node_id, ()) if not c.closed]
            if not live:
                raise KeyError("No path to node")
            return max(live, key=lambda c: c.established)

    # --- allocs ---

    def allocs_of(self, node_id):
        return [a for a in self.allocs.values() if a["NodeID"] == node_id]

    def alloc(self, alloc_id):
        with self.changed:
            if alloc_id not in self.allocs:
                raise KeyError('Unknown allocation "%s"' % alloc_id)
            return self.allocs[alloc_id]

    def register_job(self, job):
        """Registers a job with everything that servers fill in, or a new version of an existing job."""
        with self.changed:
            job = jobs.complete(job, self.region, self.version)
            key = (job["Namespace"], job["ID"])
            old = self.jobs.get(key)
            index = self.bump("jobs")
            job.update(Version=old["Version"] + 1 if old else 0, CreateIndex=old["CreateIndex"] if old else index,
                       ModifyIndex=index, JobModifyIndex=index, SubmitTime=time.time_ns())
            self.jobs[key] = job
            return job

    def place(self, job, node_id, groups=None, deployment=None, **fields):
        """Places allocs of the job on the node, Count for each group. fields are added to each. Returns their ids."""
        with self.changed:
            node = self.nodes.get(node_id, {"Name": ""})
            made = []
            for group in job["TaskGroups"]:
                if groups is not None and group["Name"] not in groups:
                    continue
                for number in range(group["Count"]):
                    alloc = jobs.allocation(job, group, number, node_id, node["Name"], self.allocs.values())
                    index = self.bump("allocs")
                    alloc.update(CreateIndex=index, ModifyIndex=index, AllocModifyIndex=index,
                                 DeploymentID=deployment or "", SigningKeyID=str(uuid.uuid4()))
                    alloc.update(fields)
                    if not self.at_least(1, 7):  # signed when the alloc is made; later versions sign them for the answer
                        alloc["SignedIdentities"] = self.issuer.tasks(alloc)
                    self.allocs[alloc["ID"]] = alloc
                    made.append(alloc["ID"])
            return made

    def change_alloc(self, alloc, **fields):
        """A change by the servers, which the node has to fetch."""
        with self.changed:
            alloc.update(fields)
            alloc["ModifyIndex"] = alloc["AllocModifyIndex"] = self.bump("allocs")
            alloc["ModifyTime"] = time.time_ns()

    def stop_alloc(self, alloc_id, why="alloc not needed due to job update", no_shutdown_delay=None):
        with self.changed:
            alloc = self.alloc(alloc_id)
            if no_shutdown_delay is not None:
                alloc["DesiredTransition"]["NoShutdownDelay"] = no_shutdown_delay
            self.change_alloc(alloc, DesiredStatus="stop", DesiredDescription=why)

    def update_alloc_job(self, alloc_id, job):
        """Updates an alloc in place."""
        with self.changed:
            alloc = self.alloc(alloc_id)
            group = [g for g in job["TaskGroups"] if g["Name"] == alloc["TaskGroup"]][0]
            self.change_alloc(alloc, Job=job, **jobs.resources(group, alloc, ()))

    def remove_alloc(self, alloc_id):
        """Removes an alloc, as the servers' garbage collection."""
        with self.changed:
            self.alloc(alloc_id)
            del self.allocs[alloc_id]
            self.bump("allocs")

    def snapshot(self, kind, key):
        """Returns a copy, for other modules."""
        with self.changed:
            return copy.deepcopy(getattr(self, kind)[key])

    # --- running servers ---

    def live_servers(self):
        return [s for s in self.servers if s.listening]

    def leader_address(self):
        if self.leader is None or not self.servers[self.leader].listening:
            return ""
        return self.servers[self.leader].address

    def close(self):
        with self.changed:
            self.stopping = True
            self.wake_all()
        for server in self.servers:
            server.stop()


def terminal(alloc):
    """Returns whether the client has reported a terminal status."""
    return alloc["ClientStatus"] in ("complete", "failed", "lost")

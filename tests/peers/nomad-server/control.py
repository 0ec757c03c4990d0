# SPDX-License-Identifier: Apache-2.0
"""The channel for commands of a test: one JSON object per line, {"id", "do", …} in, {"id", "ok"} or {"id", "error"} out.
Commands run concurrently. Bytes are {"$b64": text}, times RFC 3339."""
import base64
import json
import sys
import threading
import time
import traceback

import client_calls
import csi_methods
import gopack
import jobs
import netrpc
import schema
import yamux
from cluster import terminal
from methods import Failure

COMMANDS = {}


def command(fn):
    COMMANDS[fn.__name__] = fn
    return fn


def to_json(value):
    """Converts bytes to {"$b64"}. Text that is not UTF-8 stays a string with surrogates, which JSON escapes."""
    if isinstance(value, bytes):
        return {"$b64": base64.b64encode(value).decode()}
    raise TypeError(type(value).__name__)


def from_json(found):
    return base64.b64decode(found["$b64"]) if set(found) == {"$b64"} else found


class Control:
    def __init__(self, cluster):
        self.cluster = cluster
        self.streams = client_calls.Streams(cluster)
        self.write_lock = threading.Lock()

    def say(self, value):
        with self.cluster.changed:  # value may contain parts of the tables, which other threads change
            line = json.dumps(value, default=to_json)
        with self.write_lock:
            sys.stdout.write(line + "\n")
            sys.stdout.flush()

    def run(self, lines):
        """Executes commands until the end of input, when the test has ended."""
        for line in lines:
            if line.strip():
                threading.Thread(target=self._one, args=(line,), daemon=True).start()

    def _one(self, line):
        number = None
        try:
            asked = json.loads(line, object_hook=from_json)
            number, name = asked.pop("id", None), asked.pop("do")
            self.say({"id": number, "ok": COMMANDS[name](self, **asked)})
        except BrokenPipeError:
            pass
        except (netrpc.RpcError, Failure, EOFError, KeyError, yamux.Reset, yamux.Closed, TimeoutError, schema.Refused) as e:
            self.say({"id": number, "error": str(e.args[0] if e.args else e), "kind": type(e).__name__})
        except Exception as e:  # pylint: disable=broad-except  # an error in the command is reported to the test
            self.say({"id": number, "error": traceback.format_exc(), "kind": type(e).__name__})


# --- servers ---

@command
def stop_server(control, server, reset=False):
    control.cluster.servers[server].stop(reset)


@command
def start_server(control, server):
    control.cluster.servers[server].start()


@command
def drop(control, server=None, reset=False):
    """Closes connections; the servers keep listening."""
    for one in control.cluster.servers if server is None else [control.cluster.servers[server]]:
        one.drop(reset)


@command
def half_open(control, server, on=True):
    control.cluster.servers[server].set_half_open(on)


@command
def connection_fault(control, server, kind=None):
    """Sets a fault of new connections: refuse, mute, tls_close, tls_alert, tls_plain; None: none."""
    control.cluster.servers[server].fault = kind


@command
def session_fault(control, kind, server=None, on=True, hex=None):  # pylint: disable=redefined-builtin
    """Applies a fault to each open connection: ignores_pings, ignores_syns, withholds_window; frame: sends these raw bytes; go_away;
    ping."""
    answers = []
    for one in control.cluster.servers if server is None else [control.cluster.servers[server]]:
        for connection in list(one.connections):
            if not connection.session:
                continue
            connection.session.forgiven = kind != "ping"
            if kind == "frame":
                connection.session.send(hex, quiet=True)
            elif kind == "go_away":
                connection.session.go_away(0)
            elif kind == "ping":
                answers.append(connection.session.ping())
            else:
                setattr(connection.session, kind, on)
    return answers


@command
def set_leader(control, server):
    """Sets the number of the leader; None for no leader."""
    with control.cluster.changed:
        control.cluster.leader = server
        control.cluster.changed.notify_all()


@command
def settings(control, **values):
    """Sets attributes of the cluster: advertised, ttl_s, ttl_jitter_s, grace_s, introduction, identity_ttl_s, acl_enabled …"""
    with control.cluster.changed:
        for name, value in values.items():
            getattr(control.cluster, name)
            if name == "version":
                control.cluster.version_text, value = value, schema.version_of(value)
            setattr(control.cluster, name, value)
        control.cluster.changed.notify_all()


# --- faults and recorded calls ---

@command
def fault(control, kind, **params):
    return control.cluster.faults.add(kind, **params)


@command
def clear(control, number=None):
    control.cluster.faults.clear(number)


@command
def calls(control, method=None, after=0, count=1, seconds=0):
    return control.cluster.wait_calls(method, after, count, seconds)


@command
def unanswered(control, method):
    """Returns the calls of a method that are not answered yet, such as blocking queries."""
    cluster = control.cluster
    with cluster.changed:
        return [c for c in cluster.calls if c["method"] == method and not c["done"]]


@command
def blocking(control, method):
    """Returns the Path of each blocking query of a method that is not answered yet, sorted."""
    return sorted(c["args"]["Path"] for c in unanswered(control, method) if c["args"] and c["args"]["MinQueryIndex"] > 0)


@command
def violations(control, forget=False):
    with control.cluster.changed:
        found = list(control.cluster.violations)
        if forget:
            control.cluster.violations.clear()
        return found


@command
def connections(control):
    found = []
    for server in control.cluster.servers:
        for one in list(server.connections):
            session = one.session
            found.append({"number": one.number, "server": server.number, "nodes": sorted(one.nodes), "tls_name": one.tls_name,
                          "streams": len(session.streams) if session else 0, "bytes_in": one.transport.bytes_in if
                          one.transport else 0, "bytes_out": one.transport.bytes_out if one.transport else 0,
                          "pings_seen": session.pings_seen if session else 0, "resets": session.resets if session else []})
    return found


@command
def accepted(control):
    """Returns the number of TCP connections that each server has accepted."""
    return [s.accepted for s in control.cluster.servers]


# --- nodes ---

@command
def nodes(control):
    with control.cluster.changed:
        return control.cluster.nodes


@command
def node(control, node_id):
    with control.cluster.changed:
        return control.cluster.node(node_id)


@command
def purge_node(control, node_id):
    control.cluster.purge_node(node_id)


@command
def miss_heartbeat(control, node_id):
    """Lets the TTL of the node expire."""
    control.cluster.miss(node_id)


@command
def set_eligibility(control, node_id, eligible):
    control.cluster.set_eligibility(node_id, eligible)


@command
def drain(control, node_id, on=True, deadline_s=3600, mark_eligible=False):
    strategy = {"Deadline": int(deadline_s * 1e9), "IgnoreSystemJobs": False} if on else None
    control.cluster.drain(node_id, strategy, mark_eligible)


@command
def intro_token(control, name="", pool="default", ttl_s=300):
    return control.cluster.issuer.introduction(name, pool, ttl_s)


# --- jobs and allocs ---

@command
def register_job(control, job):
    found = control.cluster.register_job(job)
    return {"Namespace": found["Namespace"], "ID": found["ID"], "Version": found["Version"]}


@command
def run_job(control, job, node_id, groups=None, deployment=None, fields=None):
    """Registers the job and places its allocs on the node. Returns their ids."""
    registered = control.cluster.register_job(job)
    return control.cluster.place(registered, node_id, groups, deployment, **(fields or {}))


@command
def update_job(control, job, alloc_ids):
    """Registers a new version, and updates these allocs in place."""
    with control.cluster.changed:
        registered = control.cluster.register_job(job)
        for alloc_id in alloc_ids:
            control.cluster.update_alloc_job(alloc_id, registered)


@command
def stop_alloc(control, alloc_id, why="alloc not needed due to job update", no_shutdown_delay=None):
    control.cluster.stop_alloc(alloc_id, why, no_shutdown_delay)


@command
def change_alloc(control, alloc_id, fields):
    with control.cluster.changed:
        control.cluster.change_alloc(control.cluster.alloc(alloc_id), **fields)


@command
def remove_alloc(control, alloc_id):
    control.cluster.remove_alloc(alloc_id)


@command
def collect(control):
    """Removes allocs that have ended and are stopped, or whose job is purged, as `nomad system gc`. Returns their ids."""
    cluster = control.cluster
    with cluster.changed:
        found = [a["ID"] for a in cluster.allocs.values() if terminal(a) and
                 (a["DesiredStatus"] != "run" or (a["Namespace"], a["JobID"]) not in cluster.jobs)]
        for alloc_id in found:
            cluster.remove_alloc(alloc_id)
        return found


@command
def alloc(control, alloc_id):
    with control.cluster.changed:
        return control.cluster.alloc(alloc_id)


@command
def wait_alloc(control, alloc_id, status, seconds=30):
    """Waits until the alloc's ClientStatus is one of these, and returns it; TimeoutError."""
    end = time.monotonic() + seconds
    cluster = control.cluster
    with cluster.changed:
        while cluster.alloc(alloc_id)["ClientStatus"] not in status:
            left = end - time.monotonic()
            if left <= 0:
                raise TimeoutError("alloc %s is %s, not %s after %g s" % (
                    alloc_id, cluster.alloc(alloc_id)["ClientStatus"], status, seconds))
            cluster.changed.wait(left)
        return cluster.alloc(alloc_id)


# --- volumes, tokens, variables, services ---

@command
def register_volume(control, volume):
    return csi_methods.register(control.cluster, volume)


@command
def create_volume(control, volume):
    return csi_methods.create(control.cluster, volume)


@command
def delete_volume(control, volume_id, namespace="default"):
    csi_methods.delete(control.cluster, namespace, volume_id)


@command
def detach_volume(control, volume_id, node_id, namespace="default"):
    csi_methods.detach(control.cluster, namespace, volume_id, node_id)


@command
def give_volume(control, volume_id, alloc_id, node_id, namespace="default"):
    """Gives all write claims of a volume to an alloc of another node, as after the loss of a node."""
    cluster = control.cluster
    with cluster.changed:
        stored = cluster.volumes[(namespace, volume_id)]
        claim = next(iter(stored["WriteClaims"].values()))
        stored["WriteClaims"] = {alloc_id: {**claim, "AllocationID": alloc_id, "NodeID": node_id, "ExternalNodeID": node_id}}
        stored["ModifyIndex"] = cluster.bump("csi_volumes")


@command
def volume(control, volume_id, namespace="default"):
    """Returns None if there is none."""
    with control.cluster.changed:
        return csi_methods.find(control.cluster, namespace, volume_id)


@command
def add_token(control, secret, kind="client", policies=(), name="", expires=None, roles=()):
    """Creates an ACL token, and enables ACLs. expires: seconds since 1970; roles: their ids."""
    if expires is not None:
        expires = gopack.time_from_ns(int(expires * 1e9))
    control.cluster.acl_enabled = True
    control.cluster.tokens[secret] = jobs.filled("ACLToken", {
        "AccessorID": secret[::-1], "SecretID": secret, "Name": name, "Type": kind, "Policies": list(policies),
        "Roles": [{"ID": r, "Name": r} for r in roles], "ExpirationTime": expires, "CreateTime": gopack.time_from_ns(time.time_ns())})


@command
def delete_token(control, secret):
    del control.cluster.tokens[secret]


@command
def add_role(control, role_id, policies):
    control.cluster.roles[role_id] = {"ID": role_id, "Name": role_id, "Policies": [{"Name": p} for p in policies]}


@command
def add_policy(control, name, rules, job_id=None, namespace="default"):
    """job_id: the policy applies to the workloads of this job."""
    control.cluster.policies[name] = {"Name": name, "Rules": rules}
    if job_id:
        control.cluster.job_policies[name] = (namespace, job_id)


@command
def delete_policy(control, name):
    del control.cluster.policies[name]
    control.cluster.job_policies.pop(name, None)


@command
def workload_token(control, alloc_id, task):
    """Returns the JWT of a task's default identity."""
    return control.cluster.issuer.task(control.cluster.alloc(alloc_id), task)[0]


@command
def put_variable(control, path, items, namespace="default"):
    cluster = control.cluster
    with cluster.changed:
        index = cluster.bump("variables")
        old = cluster.variables.get((namespace, path), {"CreateIndex": index, "CreateTime": time.time_ns()})
        cluster.variables[(namespace, path)] = {**old, "Namespace": namespace, "Path": path, "Items": items,
                                                "ModifyIndex": index, "ModifyTime": time.time_ns()}


@command
def services(control):
    return list(control.cluster.services.values())


# --- requests to the node ---

@command
def call_node(control, node_id, method, request=None, timeout=30, raw=False):
    return client_calls.call(control.cluster, node_id, method, request or {}, timeout, raw)


@command
def open_stream(control, node_id, method, request=None, timeout=30):
    return control.streams.open(node_id, method, request or {}, timeout)


@command
def read_stream(control, stream, count=1, seconds=10):
    return control.streams.read(stream, count, seconds)


@command
def send_stream(control, stream, value):
    control.streams.send(stream, value)


@command
def close_stream(control, stream, reset=False):
    control.streams.close(stream, reset)


# --- streams opened by nodes: .calls() have their numbers as "stream" ---

@command
def say_asked(control, stream, values=(), raw=b""):
    """Sends objects, then bytes."""
    control.cluster.asked.open_ones[stream].stream.write(b"".join(gopack.pack(v) for v in values) + raw)


@command
def hear_asked(control, stream, count=1, seconds=10):
    """Returns {"objects": […], "over": None, "end" or "reset"}: so many objects, fewer at the end or after the timeout."""
    return control.cluster.asked.open_ones[stream].hear(count, seconds)


@command
def end_asked(control, stream, reset=False):
    one = control.cluster.asked.open_ones[stream].stream
    (one.reset if reset else one.close)()

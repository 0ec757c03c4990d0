# SPDX-License-Identifier: Apache-2.0
"""Starts and controls the servers of tests/peers/nomad-server.

    with nomad_server.Servers(3, version="1.6.10") as s:
        s.addresses                                     # for a client's configuration
        ids = s.run_job({"ID": "j", "TaskGroups": […]}, node_id)
        s.fault("delay", "Node.UpdateStatus", seconds=3, times=1)
        s.calls("Node.Register")                        # received calls, decoded
        s.call_node(node_id, "Allocations.Signal", {"AllocID": …, "Signal": "SIGHUP"})

At its end it fails if the client broke a rule that real servers enforce (.violations())."""
import base64
import json
import os
import queue
import subprocess
import sys
import threading

from . import ROOT, case

PEER = os.path.join(ROOT, "tests", "peers", "nomad-server")
if PEER not in sys.path:
    sys.path.append(PEER)


class Refusal(Exception):
    """A failed command with the text of its error; .kind is RpcError for an error from a node."""

    def __init__(self, text, kind):
        super().__init__(text)
        self.kind = kind


def _bytes_to_json(value):
    return {"$b64": base64.b64encode(value).decode()}


def _from_json(found):
    return base64.b64decode(found["$b64"]) if set(found) == {"$b64"} else found


def make_certificates(directory, region="global", names=("server", "client", "stranger")):
    """Makes a CA and a certificate for each name: "client" is client.<region>.nomad. Returns {name: (certificate, key)} with "ca" among the names.
    "stranger" has the client's name from another CA; "nobody" (if requested) has a name without a role."""
    def openssl(*args):
        subprocess.run(["openssl"] + list(args), cwd=directory, check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.PIPE)

    def authority(name):
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                "-subj", "/CN=" + name, "-keyout", name + ".key", "-out", name + ".pem")

    authority("ca")
    found = {"ca": (directory + "/ca.pem", directory + "/ca.key")}
    for name in names:
        signer = "ca"
        if name == "stranger":
            authority("other-ca")
            signer = "other-ca"
        role = {"stranger": "client", "nobody": "web"}.get(name, name)
        host = "%s.%s.nomad" % (role, region) if name != "nobody" else "www.example.org"
        with open("%s/%s.ext" % (directory, name), "w", encoding="ascii") as f:
            f.write("subjectAltName=DNS:%s,DNS:localhost,IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n" % host)
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=" + host,
                "-keyout", name + ".key", "-out", name + ".csr")
        openssl("x509", "-req", "-in", name + ".csr", "-CA", signer + ".pem", "-CAkey", signer + ".key",
                "-CAcreateserial", "-days", "2", "-extfile", name + ".ext", "-out", name + ".pem")
        found[name] = ("%s/%s.pem" % (directory, name), "%s/%s.key" % (directory, name))
    return found


class Servers:
    """Every command of the peer's control.py is a method here: s.stop_server(0), s.violations() …"""

    def __init__(self, count=1, version="2.0.5", certificates=None, args=(), listen=(), wrap=(), forgive=False):
        argv = list(wrap) + ["/usr/bin/python3", "-B", PEER, "--version", version]
        for address in listen:
            argv += ["--listen", address]
        if not listen:
            argv += ["--servers", str(count)]
        if certificates:
            argv += ["--ca", certificates["ca"][0], "--cert", certificates["server"][0], "--key",
                     certificates["server"][1]]
        self.forgive, self.count, self.lock, self.waiting = forgive, 0, threading.Lock(), {}
        self.process = subprocess.Popen(argv + list(args), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError("the servers did not start: exit code %s" % self.process.wait())
        self.addresses = json.loads(line)["addresses"]
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    @property
    def address(self):
        return self.addresses[0]

    @property
    def pid(self):
        """Returns a pid for SIGSTOP: all servers hang, but TCP connections stay."""
        return self.process.pid

    def _read(self):
        for line in self.process.stdout:
            answer = json.loads(line, object_hook=_from_json)
            with self.lock:
                waiting = self.waiting.pop(answer["id"], None)
            if waiting:
                waiting.put(answer)
        with self.lock:
            for waiting in self.waiting.values():
                waiting.put({"error": "the servers have ended", "kind": "EOFError"})

    def do(self, name, params, wait_s=60):
        """Sends a command and returns its answer. Refusal."""
        found = queue.Queue()
        with self.lock:
            self.count += 1
            number = self.count
            self.waiting[number] = found
            line = json.dumps({"id": number, "do": name, **params}, default=_bytes_to_json)
            self.process.stdin.write(line.encode() + b"\n")
            self.process.stdin.flush()
        try:
            answer = found.get(timeout=wait_s)
        except queue.Empty:
            raise AssertionError("the servers did not answer %r within %g s" % (name, wait_s)) from None
        if "error" in answer:
            raise Refusal(answer["error"], answer["kind"])
        return answer["ok"]

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)

        def ask(*args, **params):
            names = POSITIONAL.get(name, ())
            params.update(zip(names, args, strict=False))
            if len(args) > len(names):
                raise TypeError("%s takes %s" % (name, ", ".join(names) or "no positional arguments"))
            if name in WAITS:
                params[WAITS[name]] = case.patience(params.get(WAITS[name], 0))
            return self.do(name, params, params.get(WAITS.get(name, "seconds"), 0) + case.LEAST_S)
        return ask

    def wait_call(self, method, after=0, seconds=30, count=1):
        """Returns the answered calls of a method after the one with number `after`; fails if there are not `count` in time. Take `after` before
        the cause, or the resulting call may have arrived already."""
        seconds = case.patience(seconds)
        found = self.calls(method, after, count, seconds)
        if len(found) < count:
            seen = [c["method"] for c in self.calls()][-20:]
            raise AssertionError("%d calls of %s after %d s, expected %d; seen: %s" % (len(found), method, seconds, count, seen))
        return found

    def wait_node(self, status="ready", seconds=40, node_id=None):
        """Waits for a node of that status (and id) and returns it."""
        def look():
            for found in self.nodes().values():
                if found["Status"] == status and node_id in (None, found["ID"]):
                    return found
            return None
        return case.until(look, seconds, "a node that is " + status)

    def last_call(self):
        """Returns the number of the newest call, for `after`."""
        return max((c["number"] for c in self.calls()), default=0)

    def stop(self):
        """Ends the servers and everything that they hold."""
        if self.process.poll() is None:
            self.process.stdin.close()
            try:
                self.process.wait(case.LEAST_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.reader.join(case.LEAST_S)
        self.process.stdout.close()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        found = []
        try:
            if self.process.poll() is None:
                found = self.violations()
        finally:
            self.stop()
        if found:
            text = "the client broke rules:\n  " + "\n  ".join(found[:20])
            if kind is None and not self.forgive:
                raise AssertionError(text)
            print(text, flush=True)


# Commands that wait, with the argument that limits the time.
WAITS = {"wait_alloc": "seconds", "read_stream": "seconds", "hear_asked": "seconds", "call_node": "timeout", "open_stream": "timeout"}
# The order of the commands' positional arguments.
POSITIONAL = {
    "fault": ("kind", "method"), "clear": ("number",), "calls": ("method", "after", "count", "seconds"), "unanswered": ("method",), "blocking": ("method",),
    "violations": ("forget",), "stop_server": ("server",), "start_server": ("server",), "drop": ("server",),
    "half_open": ("server", "on"), "connection_fault": ("server", "kind"), "session_fault": ("kind", "server"),
    "set_leader": ("server",), "node": ("node_id",), "purge_node": ("node_id",), "miss_heartbeat": ("node_id",),
    "set_eligibility": ("node_id", "eligible"), "drain": ("node_id", "on"), "intro_token": ("name",),
    "register_job": ("job",), "run_job": ("job", "node_id"), "update_job": ("job", "alloc_ids"),
    "stop_alloc": ("alloc_id", "why"), "change_alloc": ("alloc_id", "fields"), "remove_alloc": ("alloc_id",),
    "alloc": ("alloc_id",), "wait_alloc": ("alloc_id", "status", "seconds"),
    "register_volume": ("volume",), "create_volume": ("volume",), "delete_volume": ("volume_id",),
    "detach_volume": ("volume_id", "node_id"), "give_volume": ("volume_id", "alloc_id", "node_id"),
    "volume": ("volume_id",), "add_token": ("secret", "kind", "policies"),
    "workload_token": ("alloc_id", "task"), "add_policy": ("name", "rules"), "delete_policy": ("name",), "add_role": ("role_id", "policies"), "delete_token": ("secret",), "put_variable": ("path", "items"),
    "call_node": ("node_id", "method", "request"), "open_stream": ("node_id", "method", "request"),
    "read_stream": ("stream", "count", "seconds"), "send_stream": ("stream", "value"), "close_stream": ("stream",),
    "say_asked": ("stream", "values", "raw"), "hear_asked": ("stream", "count", "seconds"), "end_asked": ("stream", "reset"),
}

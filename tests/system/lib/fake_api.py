# SPDX-License-Identifier: Apache-2.0
"""An agent's API with answers that the test chooses, on a unix socket whose path may have any length.

    with FakeApi() as api:
        api.json("GET", "/v1/jobs", [{"ID": "web"}])
        r = api.drover("job", "status")
"""
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time
import urllib.parse

from . import binary, case


class Request:
    """A request of the command: .method, .path, .query (a dict of strings), .headers (by lower-case name), .body (parsed, or None)."""

    def __init__(self, method, target, headers, body):
        parts = urllib.parse.urlsplit(target)
        self.method, self.path = method, urllib.parse.unquote(parts.path)
        self.query = {k: v[-1] for k, v in urllib.parse.parse_qs(parts.query, keep_blank_values=True).items()}
        self.body = json.loads(body) if body else None
        self.target, self.headers = target, headers


def answer(status, body, kind="application/json"):
    """Returns the bytes of a whole answer with a length."""
    head = "HTTP/1.1 %d X\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n" % (status, kind, len(body))
    return head.encode() + body


def chunked(pieces, status=200):
    """Returns the bytes of an answer in these chunks."""
    out = b"HTTP/1.1 %d X\r\nTransfer-Encoding: chunked\r\n\r\n" % status
    for piece in pieces:
        out += b"%x\r\n%s\r\n" % (len(piece), piece)
    return out + b"0\r\n\r\n"


class Result:
    """The result of a command. A sanitizer's report always fails the test, even if it expects exit code 1."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err
        if "runtime error: " in err or "Sanitizer" in err:
            raise AssertionError(err)


def run_command(words, env=None, stdin=None):
    """Runs drover with these words, without variables of this environment that choose an address."""
    clean = {k: v for k, v in os.environ.items() if k not in ("DROVER_ADDR", "NOMAD_ADDR", "DROVER_NAMESPACE", "NOMAD_NAMESPACE")}
    clean.update(env or {})
    r = subprocess.run([binary("drover")] + list(words), input=stdin, env=clean, stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, timeout=2 * case.LEAST_S, check=False)
    return Result(r.returncode, r.stdout.decode(), r.stderr.decode())


class FakeApi:
    """Routes are tried from the last added to the first. Each gets a Request and returns bytes, or writes to the socket itself."""

    def __init__(self, path=None):
        self.path = path or os.path.join(case.directory(), "s")
        self.routes, self.requests, self.lock = [], [], threading.Lock()
        self.listener = None

    def __enter__(self):
        self.listen()
        return self

    def __exit__(self, *_):
        self.close()

    def listen(self):
        """Binds by a short name, whatever the length of the path."""
        self.listener = socket.socket(socket.AF_UNIX)
        directory = os.open(os.path.dirname(self.path), os.O_PATH | os.O_DIRECTORY)
        try:
            self.listener.bind("/proc/self/fd/%d/%s" % (directory, os.path.basename(self.path)))
        finally:
            os.close(directory)
        self.listener.listen(64)
        threading.Thread(target=self._accept, args=(self.listener,), daemon=True).start()

    def close(self):
        """Stops answering, as while an agent is restarted."""
        if self.listener is None:
            return
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.listener = None
        os.unlink(self.path)

    def route(self, method, pattern, fn):
        """fn(request, connection) returns bytes to send, or None if it has sent everything itself. pattern must match the whole path."""
        with self.lock:
            self.routes.insert(0, (method, re.compile(pattern), fn))

    def raw(self, method, path, data):
        self.route(method, re.escape(path), lambda request, conn: data)

    def json(self, method, path, value, status=200):
        """value may be a function of the request."""
        def fn(request, conn):
            return answer(status, json.dumps(value(request) if callable(value) else value).encode())
        self.route(method, re.escape(path), fn)

    def text(self, method, path, status, text):
        self.raw(method, path, answer(status, text.encode(), "text/plain"))

    def asked(self, method, path):
        """Returns the requests for exactly this path."""
        with self.lock:
            return [r for r in self.requests if r.method == method and r.path == path]

    def drover(self, *words, **kwargs):
        """Runs the command against this API."""
        env = dict(kwargs.pop("env", {}), DROVER_ADDR="unix://" + self.path)
        return run_command(words, env=env, **kwargs)

    def start(self, *words):
        """Starts the command in the background. Returns a Popen with pipes."""
        env = dict(os.environ, DROVER_ADDR="unix://" + self.path)
        return subprocess.Popen([binary("drover")] + list(words), env=env, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)

    def _accept(self, listener):
        while True:
            try:
                conn, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(conn,), daemon=True).start()

    def _read(self, conn):
        data = b""
        while b"\r\n\r\n" not in data:
            more = conn.recv(65536)
            if not more:
                return None
            data += more
        head, body = data.split(b"\r\n\r\n", 1)
        lines = head.decode().split("\r\n")
        method, target, version = lines[0].split(" ")
        case.equal(version, "HTTP/1.1")
        headers = {k.lower(): v.strip() for k, v in (line.split(":", 1) for line in lines[1:])}
        while len(body) < int(headers.get("content-length", 0)):
            body += conn.recv(65536)
        return Request(method, target, headers, body)

    def _serve(self, conn):
        with conn:
            try:
                request = self._read(conn)
                if request is None:
                    return
                with self.lock:
                    self.requests.append(request)
                    routes = list(self.routes)
                for method, pattern, fn in routes:
                    if method == request.method and pattern.fullmatch(request.path):
                        data = fn(request, conn)
                        if data is not None:
                            conn.sendall(data)
                        return
                conn.sendall(answer(404, b"resource not found", "text/plain"))
            except (BrokenPipeError, ConnectionResetError):
                pass


def finish(process):
    """Waits for a Popen and returns a Result."""
    try:
        out, err = process.communicate(timeout=2 * case.LEAST_S)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.communicate()
        raise
    return Result(process.returncode, out.decode(), err.decode())


def read_until(process, part):
    """Returns what a Popen prints until the part has come."""
    seen = b""
    while part not in seen:
        more = os.read(process.stdout.fileno(), 65536)
        case.equal(more != b"", True, "the command ended after %r" % seen)
        seen += more
    return seen


# --- objects in the form of the API ---

NODE = "11111111-2222-3333-4444-555555555555"
EVAL = "eeeeeeee-0000-4000-8000-000000000001"


def event(kind, text, ago=0, **details):
    return {"Type": kind, "Time": time.time_ns() - int(ago * 1e9), "Message": "", "DisplayMessage": text, "Details": details}


def alloc(id_, job="web", status="running", desired="run", eval_id=EVAL, events=(), task="main", failed=False, **more):
    now = time.time_ns()
    made = {
        "ID": id_, "Namespace": "default", "EvalID": eval_id, "Name": job + ".group[0]", "NodeID": NODE,
        "NodeName": "here", "JobID": job, "JobType": "service", "JobVersion": 0, "TaskGroup": "group",
        "DesiredStatus": desired, "DesiredDescription": "", "ClientStatus": status, "ClientDescription": "",
        "TaskStates": {task: {
            "State": {"running": "running", "pending": "pending"}.get(status, "dead"), "Failed": failed, "Restarts": 0,
            "LastRestart": None, "StartedAt": None, "FinishedAt": None, "Events": list(events), "TaskHandle": None}},
        "AllocatedResources": {"Tasks": {task: {"Cpu": {"CpuShares": 100}, "Memory": {"MemoryMB": 64}}},
                               "Shared": {"DiskMB": 300}},
        "NextAllocation": "", "PreviousAllocation": "", "CreateIndex": 10, "ModifyIndex": 11,
        "CreateTime": now - 5 * 10**9, "ModifyTime": now - 4 * 10**9}
    made.update(more)
    return made


def evaluation(status="complete", **more):
    made = {"ID": EVAL, "Namespace": "default", "Priority": 50, "Type": "service", "TriggeredBy": "job-register",
            "JobID": "web", "Status": status, "StatusDescription": "", "BlockedEval": "", "FailedTGAllocs": None,
            "QueuedAllocations": {}}
    made.update(more)
    return made

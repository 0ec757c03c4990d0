# SPDX-License-Identifier: Apache-2.0
"""Real servers on loopback (the program argv[1]), its client as root, and jobs for them.

    with real.Server() as server, node_of(server) as node:
        server.wait_ready()
        server.run(real.sleeper("web"))
        server.wait("web", ["running"])
"""
import contextlib
import http.client
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.parse
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from lib import api, case  # noqa: E402

S = 10**9
# Blocks that the servers do not accept in groups of such jobs.
REFUSED = {"system": ("ReschedulePolicy",), "batch": ("Update",), "sysbatch": ("ReschedulePolicy", "Update")}
# Grace for heartbeats: long, so that a slow machine loses no node; and short, for tests that silence a node.
PATIENT, STRICT = ('heartbeat_grace = "%s"\n  min_heartbeat_ttl = "2s"' % grace for grace in ("300s", "3s"))
ADDRESSES = """
ports {{
  http = {ports[0]}
  rpc = {ports[1]}
  serf = {ports[2]}
}}
advertise {{
  http = "{ip}"
  rpc = "{ip}"
  serf = "{ip}"
}}
"""
SERVER = """
data_dir = "{dir}/data"
bind_addr = "{ip}"
name = "{name}"
disable_update_check = true
server {{
  enabled = true
  bootstrap_expect = {count}
  server_join {{
    retry_join = [{join}]
  }}
  {beats}
  {server}
}}
{more}
""" + ADDRESSES


def take_program():
    """Removes argv[1] from the arguments and returns it. Prints the program's version; ends the process if it is not such a program."""
    path = sys.argv.pop(1) if len(sys.argv) > 1 else ""
    if not os.access(path, os.X_OK) or os.path.isdir(path):
        print("this needs NOMAD=path/to/nomad, the server to test with: %r is no program" % path)
        sys.exit(2)
    print("with servers of " + version_of(path), flush=True)
    return os.path.abspath(path)


def version_of(path):
    """Returns the version of the program, such as v1.6.10."""
    return subprocess.run([path, "version"], stdout=subprocess.PIPE, check=True).stdout.decode().split()[1]


BINARY = take_program()
VERSION = version_of(BINARY)


def older_than(major, minor, version=VERSION):
    """Returns whether the servers are older than this version."""
    return tuple(int(x) for x in version[1:].split(".")[:2]) < (major, minor)


def free_ports(count):
    """Returns ports without a listener."""
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    found = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return found


class Server:
    """A real server and its API. server, more: lines for its configuration; others: servers of the same cluster."""

    def __init__(self, server="", more="", count=1, others=(), ip="127.0.0.1", beats=PATIENT):
        self.dir, self.binary = case.directory(), BINARY
        self.ports = free_ports(3)
        self.ip, self.address = ip, "%s:%d" % (ip, self.ports[1])
        self.addresses, self.token = [self.address], None
        join = ", ".join('"%s:%d"' % (o.ip, o.ports[2]) for o in others)
        with open(self.dir + "/server.hcl", "w", encoding="ascii") as f:
            f.write(SERVER.format(dir=self.dir, ip=ip, ports=self.ports, beats=beats, server=server, more=more, count=count,
                                  join=join, name="server%d" % self.ports[0]))
        self.process = None
        self.begin()

    def start(self):
        self.begin()
        self.wait_leader()

    def begin(self):
        with open(self.dir + "/log", "ab") as log:
            self.process = subprocess.Popen([self.binary, "agent", "-config", self.dir + "/server.hcl"], stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log)

    def wait_leader(self):
        case.until(self._leads, 60, "the server to lead")

    def _leads(self):
        if self.process.poll() is not None:
            with open(self.dir + "/log", encoding="utf-8") as f:
                raise AssertionError("the server ended:\n" + f.read()[-2000:])
        try:
            return self.ask("/v1/status/leader")
        except (OSError, http.client.HTTPException, AssertionError):
            return False

    def stop(self):
        """Kills the server; its data are on the disk."""
        self.process.kill()
        self.process.wait()

    def __enter__(self):
        self.wait_leader()
        return self

    def __exit__(self, *_):
        self.stop()
        shutil.rmtree(self.dir, ignore_errors=True)

    def request(self, method, path, body=None, headers=None):
        """Returns the JSON of an answer; AssertionError with the text of an error."""
        data = None if body is None else json.dumps(body).encode()
        asked = urllib.request.Request("http://%s:%d%s" % (self.ip, self.ports[0], path), data, method=method,
                                       headers={**({"X-Nomad-Token": self.token} if self.token else {}), **(headers or {})})
        try:
            with urllib.request.urlopen(asked, timeout=60) as answer:
                return json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as e:
            raise AssertionError("%s %s: %d %s" % (method, path, e.code, e.read().decode())) from e

    def ask(self, path):
        return self.request("GET", path)

    def do(self, path, body=None, method="PUT"):
        return self.request(method, path, body if body is not None else {})

    # --- nodes, jobs, allocs ---

    def wait_ready(self, status="ready"):
        def look():
            return [n for n in self.ask("/v1/nodes") if n["Status"] == status]
        return case.until(look, 40, "a node with status " + status)[0]["ID"]

    def run(self, made, **fields):
        """Registers a job of api.job()."""
        made["Job"].update(fields)
        for refused in REFUSED.get(made["Job"]["Type"], ()):
            made["Job"]["TaskGroups"][0].pop(refused, None)
        self.do("/v1/jobs", made)

    def allocs(self, job):
        """Returns the job's allocs, oldest first."""
        return sorted(self.ask("/v1/job/%s/allocations" % job), key=lambda a: a["CreateIndex"])

    def wait(self, job, wanted, seconds=40):
        """Waits until the job's allocs have these client statuses. Returns the allocs."""
        def look():
            found = self.allocs(job)
            return found if [a["ClientStatus"] for a in found] == wanted else None
        try:
            return case.until(look, seconds, "allocations of %s to be %s" % (job, wanted))
        except AssertionError as e:
            raise AssertionError("%s; they are %s" % (e, [a["ClientStatus"] for a in self.allocs(job)])) from None

    def purge(self, job):
        self.request("DELETE", "/v1/job/%s?purge=true" % urllib.parse.quote(job))


def sleeper(name, driver="raw_exec", **more):
    return api.job(name, "/bin/sleep", ["1000"], driver=driver, **more)


# --- commands and API clients at an agent ---

def pump(a, b):
    """Copies all bytes from a to b, until the end."""
    with contextlib.suppress(OSError):
        while part := a.recv(65536):
            b.sendall(part)
    with contextlib.suppress(OSError):
        b.shutdown(socket.SHUT_WR)


@contextlib.contextmanager
def tcp_door(node):
    """Makes the node's socket reachable over TCP, for commands that support only that. Yields the URL."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        def serve():
            with contextlib.suppress(OSError):
                while True:
                    outside, _ = listener.accept()
                    inside = node.connect()
                    for pair in ((outside, inside), (inside, outside)):
                        threading.Thread(target=pump, args=pair, daemon=True).start()
        threading.Thread(target=serve, daemon=True).start()
        yield "http://127.0.0.1:%d" % listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)


def sayer(url):
    """Returns a function that runs the servers' command at this address, checks that it succeeds, and returns its output."""
    def say(*args):
        done = subprocess.run([BINARY, *args], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=120,
                              env={**os.environ, "NOMAD_ADDR": url})
        text = done.stdout.decode()
        case.equal(done.returncode, 0, "%s: %s" % (" ".join(args), text))
        return text
    return say


def fetch(url):
    """Returns status and body."""
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as e:
        return e.code, e.read()

# SPDX-License-Identifier: Apache-2.0
"""The client of the servers' own program, run as root beside drover. Only in separate namespaces (isolated.py): its cgroups and mounts are
searched in all hierarchies and all mounts.

    with client.Original(server, "other") as other:
        server.wait_named("other")
"""
import contextlib
import http.client
import json
import os
import shutil
import signal
import subprocess
import urllib.error
import urllib.request

import real
from lib import case, helper

CONFIG = real.ADDRESSES + """
data_dir = "{dir}/data"
bind_addr = "127.0.0.1"
name = "{name}"
disable_update_check = true
client {{
  enabled = true
  servers = [{servers}]
  network_interface = "lo"
  options {{
    "fingerprint.denylist" = "env_aws,env_gce,env_azure,env_digitalocean,consul,vault"
    "env.denylist" = "TMPDIR"
  }}
  {client}
}}
plugin "raw_exec" {{
  config {{
    enabled = true
  }}
}}
{more}
"""


def cgroups():
    """Returns every directory of every hierarchy, deepest first."""
    points = []
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        for line in f:
            before, after = line.split(" - ", 1)
            if after.startswith("cgroup"):
                points.append(before.split(" ")[4])
    return [os.path.join(at, d) for point in points for at, below, _ in os.walk(point, topdown=False) for d in below]


class Original:
    """client: lines for its client block. more: other blocks. directory: for its data, removed at the end. env: more variables."""

    def __init__(self, servers, name="original", client="", directory=None, env=None, more=""):
        self.dir, self.name = directory or case.directory(), name
        self.ports = real.free_ports(3)
        os.mkdir(self.dir + "/tmp")  # the sockets of its plugins
        with open(self.dir + "/client.hcl", "w", encoding="ascii") as f:
            f.write(CONFIG.format(dir=self.dir, ip="127.0.0.1", name=name, ports=self.ports, client=client, more=more,
                                  servers=", ".join('"%s"' % a for a in servers.addresses)))
        self.before = set(cgroups())
        self.env = env or {}
        self.process = None
        self.start()

    def start(self):
        with open(self.dir + "/log", "ab") as log:
            self.process = subprocess.Popen([real.BINARY, "agent", "-config", self.dir + "/client.hcl"], stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log, env={
                                                **{k: v for k, v in os.environ.items() if not k.startswith("NOMAD_")},
                                                "TMPDIR": self.dir + "/tmp",
                                                "JAVA_TOOL_OPTIONS": "-XX:-UsePerfData",  # a file of a fingerprint, in /tmp
                                                **self.env})

    def get(self, path):
        """Returns the status of a GET (0 without an answer) and the body."""
        try:
            with urllib.request.urlopen("http://127.0.0.1:%d%s" % (self.ports[0], path), timeout=20) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as e:
            return e.code, e.read()
        except (OSError, http.client.HTTPException):
            return 0, b""

    def ask(self, path):
        status, body = self.get(path)
        case.equal(status, 200, "%s of %s: %s" % (path, self.name, body.decode()))
        return json.loads(body)

    def kill(self):
        """Kills the agent; its executors stay."""
        self.process.kill()
        self.process.wait()

    def processes(self):
        """Returns the pids of its agent, executors and log collectors: processes of its program below its data directory."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError), open("/proc/%s/environ" % pid, "rb") as f:
                if b"TMPDIR=" + self.dir.encode() + b"/tmp" in f.read().split(b"\0") and \
                        os.path.samefile("/proc/%s/exe" % pid, real.BINARY):
                    found.append(int(pid))
        return found

    def tasks(self):
        """Returns all its descendants."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError), open("/proc/%s/environ" % pid, "rb") as f:
                if self.dir.encode() + b"/data/alloc" in f.read():
                    found.append(int(pid))
        return found + self.grouped()

    def grouped(self):
        """Returns the processes in its cgroups: tasks with a root of their own name no path of the machine."""
        found = []
        for path in cgroups():
            if path not in self.before and "/nomad/" in path:
                with contextlib.suppress(OSError), open(path + "/cgroup.procs", encoding="ascii") as f:
                    found += [int(pid) for pid in f.read().split()]
        return found

    def log(self):
        with open(self.dir + "/log", encoding="utf-8", errors="replace") as f:
            return f.read()

    def end(self):
        """Ends all its processes and removes all that it made."""
        self.kill()
        while left := self.processes() + self.tasks():
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        with open("/proc/self/mountinfo", encoding="utf-8") as f:
            mounts = [line.split(" ")[4] for line in f]
        for point in reversed(mounts):
            if point.startswith(self.dir + "/"):
                helper.umount(point, 2)  # MNT_DETACH
        case.until(self._cgroups_gone, 20, "the cgroups of the original client to be empty")
        shutil.rmtree(self.dir)

    def _cgroups_gone(self):
        gone = True
        for path in cgroups():
            if path not in self.before and "nomad" in path:
                try:
                    os.rmdir(path)
                except OSError:
                    gone = False
        return gone

    def __enter__(self):
        return self

    def __exit__(self, kind, value, _):
        # case.run() ends the process from inside; the log is needed only after a failure.
        if kind is not None and not (kind is SystemExit and value.code == 0):
            print("--- log of the original client ---\n%s---" % self.log()[-3000:], flush=True)
        self.end()

# SPDX-License-Identifier: Apache-2.0
"""For tests of the completion: an agent with objects, and interactive shells.

    with objects() as api, Shell(api, "bash", "-i") as shell:
        shell.completed("drover job sto", "drover job stop ")
"""
import contextlib
import os
import pty
import select
import time

from . import ROOT, binary, case
from .fake_api import NODE, FakeApi, alloc

A1 = "aaaa1111-0000-4000-8000-000000000001"
B1 = "bbbb" + A1[4:]
SCRIPTS = ROOT + "/contrib/completion/"
JOB = {"ID": "web", "Status": "running", "Version": 1, "TaskGroups": [
    {"Name": "front", "Tasks": [{"Name": "nginx", "Driver": "exec"}, {"Name": "logs", "Driver": "exec"}]},
    {"Name": "back", "Tasks": [{"Name": "app", "Driver": "raw_exec"}]}],
    "ParameterizedJob": {"MetaRequired": ["size"], "MetaOptional": ["color"]}}




@contextlib.contextmanager
def objects():
    """An agent that knows some objects."""
    with FakeApi() as api:
        api.json("GET", "/v1/jobs", [JOB, {"ID": "db", "Status": "dead"}])
        api.json("GET", "/v1/job/web", JOB)
        api.json("GET", "/v1/job/web/versions", {"Versions": [
            {"Version": 1, "VersionTag": None}, {"Version": 0, "VersionTag": {"Name": "gold", "Description": "the good one"}}]})
        api.json("GET", "/v1/job/web/actions", [{"Name": "reload", "TaskName": "nginx"}])
        api.json("GET", "/v1/allocations", [alloc(A1, JobID="web", TaskGroup="front"), alloc(B1, job="db", status="failed")])
        api.json("GET", "/v1/allocation/" + A1, alloc(A1, TaskGroup="front", Job=JOB))
        api.json("GET", "/v1/client/fs/ls/" + A1, lambda r: {"/": [{"Name": "alloc", "IsDir": True}, {"Name": "note", "IsDir": False}],
                                                            "alloc/": [{"Name": "logs", "IsDir": True}]}[r.query["path"]])
        api.json("GET", "/v1/nodes", [{"ID": NODE, "Name": "here", "Status": "ready"}])
        api.json("GET", "/v1/namespaces", [{"Name": "default"}, {"Name": "prod", "Description": "real"}])
        api.json("GET", "/v1/evaluations", [{"ID": A1, "JobID": "web"}])
        api.json("GET", "/v1/deployments", [{"ID": "dddd" + A1[4:], "JobID": "web"}])
        api.json("GET", "/v1/deployment/dddd" + A1[4:], {"TaskGroups": {"front": {}}})
        api.json("GET", "/v1/services", [{"Namespace": "default", "Services": [{"ServiceName": "web", "Tags": []}]}])
        api.json("GET", "/v1/service/web", [{"ID": "_nomad-task-1", "Address": "10.0.0.1"}])
        api.json("GET", "/v1/volumes", [{"ID": "data", "PluginID": "csi-local"}])
        api.json("GET", "/v1/plugins", [{"ID": "csi-local", "Provider": "x"}])
        api.json("GET", "/v1/client/metadata", {"Meta": {"rack": "r1"}})
        yield api


def environment(api):
    path = os.path.dirname(binary("drover")) + ":" + os.environ["PATH"]
    return {**os.environ, "PATH": path, "DROVER_ADDR": "unix://" + (api.path if api else "/nowhere"), "HOME": case.directory(),
            "TERM": "xterm", "LC_ALL": "C.UTF-8"}


class Shell:
    """An interactive shell on a terminal, with the completion."""

    def __init__(self, api, *argv):
        directory, env = case.directory(), environment(api)
        self.shown = b""
        for path in (directory + "/my-job.hcl", env["HOME"] + "/in-home.hcl"):
            with open(path, "wb"):
                pass
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(directory)
            os.execvpe(argv[0], list(argv), env)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.fd)
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)

    def type(self, text):
        os.write(self.fd, text.encode())

    def wait(self, part):
        """Waits until the shell shows this, and returns everything since the last call."""
        deadline = time.monotonic() + case.patience(30)
        while part.encode() not in self.shown and time.monotonic() < deadline:
            if select.select([self.fd], [], [], 1)[0]:
                self.shown += os.read(self.fd, 65536)
        seen, self.shown = self.shown.decode(errors="replace"), b""
        case.contains(seen, part, "what the shell shows")
        return seen

    def completed(self, text, wanted):
        """Types the text and a tab, and checks the line that this makes: it is printed instead of run."""
        self.type(text + "\t")
        self.wait(text.split()[-1])
        self.type("END\x01print-it '\x05'\r")
        self.wait("<" + wanted + "END>")


def complete_lines(shell):
    """Completes lines, the same in bash and zsh."""
    shell.completed("drover job sto", "drover job stop ")
    shell.completed("drover job stop w", "drover job stop web ")
    shell.completed("drover alloc logs %s -task n" % A1, "drover alloc logs %s -task nginx " % A1)
    shell.completed("drover alloc logs %s -task=n" % A1, "drover alloc logs %s -task=nginx " % A1)
    shell.completed("drover alloc fs %s al" % A1, "drover alloc fs %s alloc/" % A1)
    shell.completed("drover job run my-jo", "drover job run my-job.hcl ")
    shell.completed("drover job run -var-file=my-jo", "drover job run -var-file=my-job.hcl ")
    shell.completed("drover job run ~/in-ho", "drover job run ~/in-home.hcl ")
    shell.type("drover job stop \t\t")
    seen = shell.wait("web")
    if "db" not in seen:
        shell.wait("db")
    shell.type("\x15")

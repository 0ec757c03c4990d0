# SPDX-License-Identifier: Apache-2.0
"""The socket `api.sock` in the secrets of a task, as a client in the task or root on the host uses it.

    door = task_api.Door(node, alloc)         # of a raw_exec task
    door.request("GET", "/v1/var/nomad/jobs/web", token=token)
"""
import http.client
import json
import os
import re
import socket

from . import ROOT, api, case

# Prints the answer to GET PATH for each argument PATH, as [status, body], with the task's token.
CLIENT = """
import http.client, json, os, socket, sys
for path in sys.argv[1:]:
    c = http.client.HTTPConnection("x", timeout=60)
    c.sock = socket.socket(socket.AF_UNIX)
    c.sock.connect(os.environ["NOMAD_UNIX_ADDR"][len("unix://"):])
    c.request("GET", path, headers={"Authorization": "Bearer " + os.environ["NOMAD_TOKEN"]})
    answer = c.getresponse()
    print(json.dumps([answer.status, answer.read().decode()]), flush=True)
"""


def client_script(*paths, then="sleep 1000"):
    """Returns a shell script that prints the answers to GETs of these paths."""
    return "python3 -c '%s' %s; %s" % (CLIENT, " ".join(paths), then)


class Connection(http.client.HTTPConnection):
    def __init__(self, door, timeout):
        super().__init__("localhost", timeout=timeout)
        self.door = door

    def connect(self):
        self.sock = self.door.connect()
        self.sock.settimeout(self.timeout)


class Door:
    def __init__(self, node, alloc, task="t"):
        self.path = "%s/alloc/%s/%s/secrets" % (node.data, alloc["ID"], task)

    def connect(self, wait=True):
        """Connects once. If the queue of the socket is full, it waits, or raises BlockingIOError. The caller closes the socket."""
        s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        s.setblocking(wait)
        directory = os.open(self.path, os.O_PATH | os.O_CLOEXEC)
        try:
            s.connect("/proc/self/fd/%d/api.sock" % directory)
        except OSError:
            s.close()
            raise
        finally:
            os.close(directory)
        return s

    def open(self, timeout=case.LEAST_S):
        """Returns a connection for several requests."""
        return Connection(self, timeout)

    def request(self, method, path, body=None, token=None, bearer=False, timeout=case.LEAST_S):
        c = self.open(timeout)
        try:
            headers = {} if token is None else {"Authorization": "Bearer " + token} if bearer else {"X-Nomad-Token": token}
            c.request(method, path, body if body is None or isinstance(body, bytes) else json.dumps(body).encode(), headers)
            return api.Answer(c.getresponse())
        finally:
            c.close()

    def status(self, *args, **kwargs):
        return self.request(*args, **kwargs).status


def token_of(node, alloc, task="t"):
    """Returns the token that the task printed first, as `token ...`."""
    def found():
        answer = node.request_logs(alloc, task)
        lines = [line for line in answer.body.decode().split("\n")[:-1] if line.startswith("token ")] if answer.status == 200 else []
        return lines and lines[0].split()[1]
    return case.until(found, case.LEAST_S, "the token of task " + task)


def job(name, script="echo token $NOMAD_TOKEN; exec sleep 1000", driver="raw_exec", **more):
    """A job whose task has the default identity as a variable, and prints it."""
    return api.job(name, "/bin/sh", ["-c", script], driver=driver, Identity={"Env": True}, **more)


def start(node, name, **more):
    """Starts the job; returns its alloc, the socket of its task, and the task's token."""
    node.register(job(name, **more))
    alloc = node.wait_running(name)[0]
    return alloc, Door(node, alloc), token_of(node, alloc)


def requests(methods, alloc, node, name, here=False):
    """Yields (method, path) of the API, for objects of another job, with its alloc's id, the node's id and the job's name. here: only requests that a node
    of a cluster answers itself; the others have their rights from servers."""
    with open(ROOT + "/supervisor/http/api_paths.def", encoding="utf-8") as f:
        for method, path, how in re.findall(r'^API_PATH\((\w+), *"([^"]+)",(.*?)\)$', f.read(), re.M | re.S):
            if method not in methods or (here and "NO_RPC" not in how and "HERE(" not in how and ".is_here" not in how):
                continue
            known = alloc if "alloc" in path or "/fs/" in path else node if "/node/" in path else name
            yield ("PUT" if method == "ANY" else method), re.sub(":id|:name", known, path).replace("*", "nomad/jobs/" + name)

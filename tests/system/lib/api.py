# SPDX-License-Identifier: Apache-2.0
"""The API of a whole agent, through its control socket.

    with api.Node() as node:
        node.register(api.job("web", "/bin/sleep", ["1000"]))
        node.wait_running("web")
"""
import http.client
import json
import time
import urllib.parse

from . import agent, case
from .fake_api import run_command


class Connection(http.client.HTTPConnection):
    def __init__(self, of, timeout):
        super().__init__("localhost", timeout=timeout)
        self.of = of

    def connect(self):
        self.sock = self.of.connect()
        self.sock.settimeout(self.timeout)


class Answer:
    def __init__(self, response):
        self.status, self.headers, self.body = response.status, response.headers, response.read()

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def text(self):
        return self.body.decode()


def task(name, command, args=(), driver="raw_exec", **more):
    made = {"Name": name, "Driver": driver, "Config": {"command": command, "args": list(args)}, "KillTimeout": 2 * 10**9,
            "Resources": {"CPU": 20, "MemoryMB": 20}}
    made.update(more)
    return made


def job(name, command="/bin/sleep", args=("1000",), count=1, driver="raw_exec", group=None, **more):
    """Returns a service job with one group `g` and one task `t`, which is neither restarted nor rescheduled. A new version replaces the old one at
    once."""
    made = {"Name": "g", "Count": count, "Tasks": [task("t", command, args, driver, **more)],
            "RestartPolicy": {"Attempts": 0, "Interval": 10**10, "Delay": 10**8, "Mode": "fail"},
            "ReschedulePolicy": {"Attempts": 0, "Unlimited": False},
            "Update": {"MaxParallel": 0}}
    made.update(group or {})
    return {"Job": {"ID": name, "Type": "service", "Datacenters": ["*"], "TaskGroups": [made]}}


DISK = "client { disk_free_mb = 1000000 }\n"


class Node(agent.Agent):
    """disk: measure the disk; otherwise the node has more disk than any test requests, on any machine. Each request has the ACL token `token`."""
    token = ""

    def __init__(self, args=(), disk=False, **kwargs):
        if not disk:
            args = [*args, *agent.config_args(DISK)]
        super().__init__(args, **kwargs)
        self.wait_ready()

    def replace_supervisor(self, seconds=20):
        """Kills the supervisor and waits until its successor is ready."""
        old = self.kill("supervisor")
        self.wait_process("supervisor", old, seconds)
        self.wait_ready()

    def __exit__(self, kind, value, tb):
        # case.run() ends the process from inside; the agent's log is needed only after a failure.
        passed = kind is SystemExit and value.code == 0
        return super().__exit__(None if passed else kind, value, tb)

    def request(self, method, path, body=None, timeout=case.LEAST_S, headers=None):
        c = Connection(self, timeout)
        try:
            data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
            c.request(method, path, data, {**({"X-Nomad-Token": self.token} if self.token else {}), **(headers or {})})
            return Answer(c.getresponse())
        finally:
            c.close()

    def ask(self, path, **query):
        """Returns the JSON of a GET that must succeed."""
        answer = self.request("GET", path + ("?" + urllib.parse.urlencode(query) if query else ""))
        case.equal(answer.status, 200, path + ": " + answer.text)
        return answer.json

    def do(self, method, path, body=None, headers=None):
        """Returns the JSON (or None) of a change that must succeed."""
        answer = self.request(method, path, body, **({"headers": headers} if headers else {}))
        case.equal(answer.status, 200, "%s %s: %s" % (method, path, answer.text))
        return answer.json if answer.body else None

    def refused(self, status, part, method, path, body=None):
        answer = self.request(method, path, body)
        case.equal((answer.status, part in answer.text), (status, True), "%s %s: %s" % (method, path, answer.text))
        case.equal(answer.headers["Content-Type"].startswith("text/plain"), True, "content type")

    def drover(self, *words, code=0, env=None, stdin=None):
        """Runs the command with these words. Returns its Result, whose code must be this."""
        r = run_command(words, env=dict(env or {}, DROVER_ADDR="unix://" + self.socket_path), stdin=stdin)
        case.equal(r.code, code, "drover %s: %s%s" % (" ".join(words), r.out, r.err))
        return r

    # --- jobs ---

    def register(self, made):
        return self.do("POST", "/v1/jobs", made)

    def allocs(self, name):
        """Returns the job's allocs, oldest first."""
        found = self.ask("/v1/job/%s/allocations" % name)
        return sorted(found, key=lambda a: a["CreateIndex"])

    def wait_allocs(self, name, states, seconds=20):
        """Waits until the job's allocs are this list of (index, desired, client), oldest first, and returns them."""
        seen = []

        def so():
            seen[:] = self.allocs(name)
            have = [(int(a["Name"][a["Name"].rindex("[") + 1:-1]), a["DesiredStatus"], a["ClientStatus"]) for a in seen]
            return sorted(have) == sorted(states)
        try:
            case.until(so, seconds, "allocations of " + name)
        except AssertionError as e:
            raise AssertionError("%s; they are %s\n%s" % (e, [(a["Name"], a["DesiredStatus"], a["ClientStatus"]) for a in
                                                              seen], self.log()[-3000:])) from None
        return seen

    def wait_running(self, name, count=1, seconds=20):
        """Waits until that many of its allocs run and no other alloc of it should run; returns them."""
        def running():
            wanted = [a for a in self.allocs(name) if a["DesiredStatus"] == "run"]
            return len(wanted) == count and all(a["ClientStatus"] == "running" for a in wanted) and wanted
        return case.until(running, seconds, "%d running allocations of %s" % (count, name))

    def evaluation(self, eval_id):
        return self.ask("/v1/evaluation/" + eval_id)

    def wait_evaluation(self, eval_id, status="complete", seconds=20):
        case.until(lambda: self.evaluation(eval_id)["Status"] == status, seconds, "evaluation to be " + status)
        return self.evaluation(eval_id)

    def purge(self, name, seconds=30):
        """Stops a job and waits until all its allocs are removed."""
        self.do("DELETE", "/v1/job/%s?purge=true" % name)
        case.until(lambda: not [a for a in self.ask("/v1/allocations") if a["JobID"] == name], seconds,
                   "allocations of %s to be gone" % name)

    def check_starts(self, rounds):
        """Starts tasks of each driver while another is stuck: one that waited for it would take 10 s."""
        took = []
        for i in range(rounds):
            for driver in ("exec", "raw_exec"):
                name = "other-%d-%s" % (i, driver.replace("_", "-"))
                began = time.monotonic()
                self.register(job(name, driver=driver))
                self.wait_running(name)
                took.append(time.monotonic() - began)
                self.purge(name)
        print("    starts beside it took at most %.0f ms" % (max(took) * 1000))
        assert min(took) < 8, "each start waited for it: %s" % took

    def wait_said(self, alloc, text, name="t"):
        """Waits until the task has written this to stdout. "running" does not imply it: a task runs before its first command has run, and an alloc
        before all its tasks run."""
        def is_there():
            answer = self.request_logs(alloc, name)
            return answer.status == 200 and text in answer.body
        case.until(is_there, case.LEAST_S, "%r of task %s" % (text, name))

    def request_logs(self, alloc, name="t", kind="stdout", **query):
        query = {"task": name, "type": kind, "plain": "true", **query}
        return self.request("GET", "/v1/client/fs/logs/%s?%s" % (alloc["ID"], urllib.parse.urlencode(query)))

    def logs(self, alloc, name="t", kind="stdout", **query):
        answer = self.request_logs(alloc, name, kind, **query)
        case.equal(answer.status, 200, answer.text)
        return answer.body

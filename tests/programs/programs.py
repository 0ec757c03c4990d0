# SPDX-License-Identifier: Apache-2.0
"""Programs that people run, from Debian's packages, as exec tasks of jobs/*.nomad.hcl. Each test talks to the program, fills it, restarts its
task, and finds the data again, in the root of the task. check.py runs them by drover, tests/nomad/check_programs.py by the original client."""
import contextlib
import hashlib
import json
import os
import socket
import subprocess
import urllib.error
import urllib.request

from lib import case

JOBS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "jobs")
SECONDS = 120
WORDS = "words that outlive a restart"
program = None  # set by the script: a context manager with a Program of this name


def run(*command, data=None):
    """Returns the output of a client program, or None if it failed."""
    done = subprocess.run(command, input=data, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, check=False)
    return done.stdout.decode() if done.returncode == 0 else None


def http(port, path="/", method="GET", data=None, **headers):
    """Returns the body of an answer, or None if there was no answer of success."""
    request = urllib.request.Request("http://127.0.0.1:%d%s" % (port, path), data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.read().decode()
    except (OSError, urllib.error.URLError):
        return None


class Program:
    """A running job of jobs/<name>.nomad.hcl. command: the program that registers it, with its environment. node has the methods of api.Node
    that are used below, and data, its data directory."""

    def __init__(self, node, command, env, name):
        self.node, self.name, self.restarts = node, name, 0
        done = subprocess.run([command, "job", "run", "-detach", "%s/%s.nomad.hcl" % (JOBS, name)], env={**os.environ, **env},
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        case.equal((done.returncode, name), (0, name), done.stdout.decode())
        self.alloc = node.wait_running(name, seconds=SECONDS)[0]

    def state(self):
        return self.node.ask("/v1/allocation/" + self.alloc["ID"])["TaskStates"][self.name]

    def until(self, condition, what):
        """Waits for what the program does; fails with its output if it ends instead."""
        def so():
            state = self.state()
            if state["State"] == "dead" or state["Restarts"] > self.restarts:
                raise AssertionError("%s ended while the test waited for %s: %s\n%s\n%s" % (
                    self.name, what, [e["DisplayMessage"] for e in state["Events"]], self.node.logs(self.alloc, self.name).decode()[-3000:],
                    self.node.logs(self.alloc, self.name, "stderr").decode()[-3000:]))
            return condition()
        return case.until(so, SECONDS, what)

    def restart(self):
        before = self.state()["StartedAt"]
        self.node.do("PUT", "/v1/client/allocation/%s/restart" % self.alloc["ID"], {"TaskName": self.name})
        self.restarts = case.until(lambda: (lambda s: s["State"] == "running" and s["StartedAt"] != before and s["Restarts"])(self.state()),
                                   SECONDS, "%s to be restarted" % self.name)


def keeps(name, ready, fill, find):
    """ready() and find() return a true value when the program answers and has its data."""
    with program(name) as p:
        p.until(ready, "%s to answer" % name)
        p.until(fill, "%s to take data" % name)
        p.until(find, "%s to have its data" % name)
        p.restart()
        p.until(find, "%s to have its data after a restart" % name)


def test_redis_saves_its_data_when_it_ends():
    def cli(*words):
        return run("redis-cli", "-p", "17001", *words)
    keeps("redis", lambda: cli("ping") == "PONG\n", lambda: cli("set", "key", WORDS) == "OK\n" and cli("bgsave"),
          lambda: cli("get", "key") == WORDS + "\n")


def test_postgresql():
    def sql(text):
        return run("psql", "-h", "127.0.0.1", "-p", "17002", "-U", "app", "-d", "postgres", "-Atc", text)
    keeps("postgres", lambda: sql("select 1") == "1\n", lambda: sql("create table t as select '%s' as words" % WORDS) is not None,
          lambda: sql("select words from t") == WORDS + "\n")


def test_mariadb():
    def sql(text):
        return run("mariadb", "--no-defaults", "-h", "127.0.0.1", "-P", "17003", "-u", "root", "-Ne", text)
    keeps("mariadb", lambda: sql("select 1") == "1\n", lambda: sql("create table test.t as select '%s' as words" % WORDS) is not None,
          lambda: sql("select words from test.t") == WORDS + "\n")


def test_nginx_serves_what_it_stored():
    keeps("nginx", lambda: run("curl", "-s", "http://127.0.0.1:17004/"), lambda: http(17004, "/files/page", "PUT", WORDS.encode()) is not None,
          lambda: http(17004, "/page") == WORDS)


def test_prometheus_keeps_its_samples():
    seen = {}

    def first():
        answer = http(17005, "/api/v1/query?query=min_over_time(timestamp(up)[1h:1s])")
        result = json.loads(answer)["data"]["result"] if answer else []
        return float(result[0]["value"][1]) if result else None

    def fill():
        seen["first"] = first()
        return seen["first"]
    keeps("prometheus", lambda: http(17005, "/-/ready"), fill, lambda: (first() or 9e99) <= seen["first"] + 1)


def test_node_exporter_sees_the_machine():
    def has(name):
        return any(line.startswith(name) for line in (http(17006, "/metrics") or "").splitlines())
    keeps("node-exporter", lambda: http(17006), lambda: has("node_cpu_seconds_total"), lambda: has("node_network_up") and has("node_load1 "))


def listens(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 5):
        return True
    return False


def test_rabbitmq_keeps_a_durable_queue():
    env = ["env", "HOME=" + case.directory(), "ERL_EPMD_PORT=17027", "RABBITMQ_NODENAME=mq@localhost"]
    with program("rabbitmq") as p:
        def ctl(*words):
            if not listens(17027):  # rabbitmqctl would start the daemon that the task starts, and leave it
                return None
            cookie = p.node.data + "/alloc/%s/rabbitmq/mq/.erlang.cookie" % p.alloc["ID"]
            with open(cookie, encoding="ascii") as f:
                return run(*env, "/usr/lib/rabbitmq/bin/rabbitmqctl", "--erlang-cookie", f.read().strip(), "-q", *words)
        cookie = p.node.data + "/alloc/%s/rabbitmq/mq/.erlang.cookie" % p.alloc["ID"]
        p.until(lambda: os.path.exists(cookie) and ctl("await_startup") is not None, "rabbitmq to answer")
        p.until(lambda: ctl("eval", 'rabbit_amqqueue:declare(rabbit_misc:r(<<"/">>, queue, <<"words">>), true, false, [], none, <<"test">>).'),
                "rabbitmq to make a queue")
        p.restart()
        p.until(lambda: ctl("await_startup") is not None and "words" in (ctl("list_queues", "name") or ""), "rabbitmq to have its queue")


def test_mosquitto_keeps_a_retained_message():
    client = ("-h", "127.0.0.1", "-p", "17008", "-t", "words")
    keeps("mosquitto", lambda: run("mosquitto_pub", *client, "-m", "first") is not None,
          lambda: run("mosquitto_pub", *client, "-r", "-m", WORDS) is not None,
          lambda: run("mosquitto_sub", *client, "-C", "1", "-W", "5") == WORDS + "\n")


def test_a_java_server():
    with program("java") as p:
        p.until(lambda: http(17009) is not None, "java to answer")
        if os.path.exists("/sys/fs/cgroup/cgroup.controllers"):  # with v1 a JVM wants more hierarchies than a task has
            case.equal(int(http(17009, "/memory")) <= 256 << 20, True, "the heap that Java derives from its limit, 256 MiB")
        case.equal(http(17009, "/", "PUT", WORDS.encode()), WORDS)
        p.restart()
        p.until(lambda: http(17009) == WORDS, "java to have its data")


def test_a_node_server():
    keeps("node", lambda: http(17010) is not None, lambda: http(17010, "/", "PUT", WORDS.encode()) is not None, lambda: http(17010) == WORDS)


def test_a_python_server():
    keeps("python", lambda: http(17011) is not None, lambda: http(17011, "/", "PUT", WORDS.encode()) is not None, lambda: http(17011) == WORDS)


def test_docker_registry_keeps_a_blob():
    digest = "sha256:" + hashlib.sha256(WORDS.encode()).hexdigest()

    def fill():
        request = urllib.request.Request("http://127.0.0.1:17012/v2/words/blobs/uploads/", b"", method="POST")
        with urllib.request.urlopen(request, timeout=20) as answer:
            place = answer.headers["Location"]
        path = place[place.index("/v2/"):]
        return http(17012, "%s&digest=%s" % (path, digest), "PUT", WORDS.encode(), **{"Content-Type": "application/octet-stream"}) is not None
    keeps("docker-registry", lambda: http(17012, "/v2/") is not None, fill, lambda: http(17012, "/v2/words/blobs/" + digest) == WORDS)


def test_restic_finds_its_repository_again():
    with program("restic") as p:
        def snapshots():
            path = p.node.data + "/alloc/%s/alloc/data/snapshots" % p.alloc["ID"]
            if not os.path.exists(path):
                return 0
            with open(path, encoding="utf-8") as f:
                return len(json.load(f))
        p.until(lambda: snapshots() == 1, "restic to make a snapshot")
        p.restart()
        p.until(lambda: snapshots() == 2, "restic to make another snapshot")

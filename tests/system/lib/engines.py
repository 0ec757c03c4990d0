# SPDX-License-Identifier: Apache-2.0
"""dockerd and podman, for comparisons: started for a test, each with a directory of its own.

    with engines.dockerd() as engine:
        engine.command = ["/bin/sleep", "1000"]
        engine.prepare(images.name(server, "a:1"))
        engine.run("bridge", 10)
"""
import concurrent.futures
import contextlib
import glob
import http.client
import json
import os
import socket
import subprocess

from . import case, helper

AT_ONCE = 8


class Unix(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=300)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Engine:
    """A daemon with Docker's API. left: what it leaves behind: a cgroup, and a directory that it mounts."""

    def __init__(self, name, argv, path, left, env=None):
        self.name, self.argv, self.path, self.left, self.env = name, argv, path, left, dict(os.environ, **(env or {}))
        self.log = open(case.directory() + "/log", "wb")
        self.ids, self.command, self.tty = [], [], False

    def call(self, method, path, body=None, ok=(200, 201, 204, 304)):
        with contextlib.closing(Unix(self.path)) as c:
            c.request(method, "/v1.40" + path, json.dumps(body) if body is not None else None, {"Content-Type": "application/json"})
            answer = c.getresponse()
            text = answer.read()
            assert answer.status in ok, "%s %s: %d %s" % (method, path, answer.status, text[:300])
            return text

    def start(self):
        self.process = subprocess.Popen(self.argv, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, env=self.env)

        def answers():
            try:
                return self.call("GET", "/containers/json") is not None
            except OSError:
                return False
        case.until(answers, 60, "%s to answer; see %s" % (self.name, self.log.name))

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.remove()
        self.process.terminate()
        self.process.wait()
        cgroup, directory = self.left
        for path in glob.glob("/sys/fs/cgroup/" + cgroup) + glob.glob("/sys/fs/cgroup/*/" + cgroup):
            subprocess.run(["find", path, "-depth", "-type", "d", "-exec", "rmdir", "{}", ";"], check=True)
        with contextlib.suppress(OSError):
            helper.umount(directory, 2)
        with contextlib.suppress(FileNotFoundError):
            os.unlink("/dev/shm/libpod_lock")

    def prepare(self, name):
        self.image = name
        case.contains(self.call("POST", "/images/create?fromImage=" + name).decode(), "", "the pull")

    def one(self, network, host=None, **more):
        """host, more: further members of HostConfig, and beside it."""
        text = self.call("POST", "/containers/create", {"Image": self.image, "Entrypoint": self.command[:1], "Cmd": self.command[1:], "Tty": self.tty, "HostConfig": {
            "NetworkMode": network, "Memory": 64 << 20, **(host or {})}, **more})
        self.ids.append(json.loads(text)["Id"])
        self.call("POST", "/containers/%s/start" % self.ids[-1])

    def run(self, network, count):
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(lambda _: self.one(network), range(count)))

    def stop(self):
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(lambda i: self.call("POST", "/containers/%s/stop" % i), self.ids))

    def output(self):
        """Returns what the last container has printed."""
        data, text = self.call("GET", "/containers/%s/logs?stdout=true&stderr=true" % self.ids[-1]), b""
        if self.tty:
            return data.decode()
        while data:  # frames: stream, three zeros, length
            size = int.from_bytes(data[4:8], "big")
            text, data = text + data[8:8 + size], data[8 + size:]
        return text.decode()

    def remove(self):
        for i in self.ids:
            self.call("DELETE", "/containers/%s?force=true" % i, ok=(200, 204, 404))
        self.ids.clear()

    def restart(self):
        self.process.terminate()
        self.process.wait()
        self.start()
        case.equal(len(json.loads(self.call("GET", "/containers/json"))), len(self.ids), "containers after a restart of %s" % self.name)


def dockerd(**more):
    """more: further settings of its configuration file, without their dashes."""
    top = case.directory()
    path = "/run/docker.sock"
    config = {"data-root": top, "exec-root": "/run/docker", "pidfile": "/run/docker.pid", "hosts": ["unix://" + path], "live-restore": True,
              **{name.replace("_", "-"): value for name, value in more.items()}}
    return Engine("dockerd", ["dockerd", "--config-file", case.write(top + ".json", json.dumps(config))], path, ("docker", top))


def podman():
    top = case.directory()
    path = "/run/podman.sock"
    case.write(top + ".conf", '[containers]\ndefault_ulimits = ["nofile=20000:20000", "nproc=20000:20000"]\n[engine]\nruntime = "runc"\nevents_logger = "file"\n')
    case.write(top + ".storage", '[storage]\ndriver = "overlay"\ngraphroot = "%s"\nrunroot = "/run/pods"\n' % top)
    case.write(top + ".registries", '[[registry]]\nlocation = "127.0.0.1"\ninsecure = true\n')
    return Engine("podman", ["podman", "system", "service", "-t", "0", "unix://" + path], path, ("libpod_parent", top + "/overlay"),
                  {"CONTAINERS_CONF": top + ".conf", "CONTAINERS_STORAGE_CONF": top + ".storage", "CONTAINERS_REGISTRIES_CONF": top + ".registries"})

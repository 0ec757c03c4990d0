# SPDX-License-Identifier: Apache-2.0
"""Starts a whole agent: the launcher and its processes.

    with agent.Agent() as a:                 # -dev, with its own data directory
        a.wait_ready()
        a.kill("mount-helper")
"""
import os
import re
import signal
import socket
import subprocess

from . import binary, case

LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d{4} ([a-z-]+): (error|warn|info|debug): .")  # of the log in the foreground
HELPERS = ("exec-helper", "mount-helper", "csi-helper", "heartbeat", "check-helper", "file-helper", "job-parser", "fetcher",
           "template-renderer", "listener")


def children(pid):
    """Returns the pids of the children of pid."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open("/proc/%s/stat" % name, encoding="utf-8", errors="replace") as f:
                text = f.read()
        except OSError:
            continue
        state, parent = text[text.rindex(")") + 2:].split(" ")[:2]
        if int(parent) == pid and state != "Z":
            found.append(int(name))
    return found


def arguments(pid):
    """Returns argv of a process, [] if it has ended."""
    try:
        with open("/proc/%d/cmdline" % pid, "rb") as f:
            return f.read().decode(errors="replace").split("\0")[:-1]
    except OSError:
        return []


def descriptors(pid):
    """Returns the targets of its descriptors, without those that are closed meanwhile."""
    found = []
    for fd in os.listdir("/proc/%d/fd" % pid):
        try:
            found.append(os.readlink("/proc/%d/fd/%s" % (pid, fd)))
        except FileNotFoundError:
            pass
    return found


def wait_gone(pids, seconds=10):
    """Waits until none of them has arguments any more: they have ended, or are zombies."""
    case.until(lambda: not any(arguments(pid) for pid in pids), seconds, "the end of pids %s" % pids)


def config_args(text):
    """Writes a file that the launcher accepts as configuration, and returns the arguments that name it."""
    path = case.directory() + "/agent.hcl"
    with open(path, "w", encoding="utf-8", opener=lambda p, flags: os.open(p, flags, 0o600)) as f:
        f.write(text)
    return ["-config", path]


class Processes(dict):
    """{name: pid} of an agent's processes at one moment."""

    def __init__(self, agent):
        super().__init__()
        self.agent = agent

    def __missing__(self, name):
        """Waits for a process that is just starting. KeyError if the launcher has ended, since then no process starts."""
        if self.agent.process.poll() is not None:
            raise KeyError(name)
        self[name] = self.agent.wait_process(name)
        return self[name]


class Agent:
    """.data, .pid, .log(). dev=False needs the users and /run/drover, which the test makes in its own namespace."""
    runtime_dir = "/run/drover"  # of an agent without -dev

    def __init__(self, args=(), dev=True, data=None, wrap=(), env=None, start=True, launcher=None):
        self.base = case.directory()
        self.data = data or self.base + "/data"
        self.log_path = self.base + "/agent.log"
        self.dev, self.args, self.wrap = dev, list(args), list(wrap)
        self.launcher = launcher or binary("launcher")
        self.env = {"PATH": os.environ["PATH"], **(env or {})}
        self.process = None
        if start:
            self.start()

    def start(self, pass_fds=(), preexec_fn=None, stderr=None):
        argv = self.wrap + [self.launcher] + ["-dev"] * self.dev + ["-data-dir", self.data] + self.args
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=stderr or log, env=self.env,
                                            pass_fds=pass_fds, preexec_fn=preexec_fn, start_new_session=True)
        self.pid = self.process.pid
        return self

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as f:
            return f.read()

    def wait_log(self, text, seconds=10, times=1):
        case.until(lambda: self.log().count(text) >= times, seconds, "%r in the agent's log" % text)

    def processes(self):
        """Returns {name: pid} of the launcher's children that are processes of the agent; [name] waits for one that is just starting."""
        found = Processes(self)
        for pid in children(self.pid):
            argv = arguments(pid)
            # Executors whose exec-helper has died are its children too.
            if len(argv) > 1 and argv[0].startswith("drover-") and argv[0] != "drover-executor":
                found[argv[0][len("drover-"):]] = pid
        return found

    def wait_process(self, name, other_than=0, seconds=10):
        """Waits until the process was restarted, and returns its new pid."""
        return case.until(lambda: self.processes().get(name, other_than) not in (other_than, 0) and
                          self.processes().get(name), seconds, "a new " + name)

    def kill(self, name, signo=signal.SIGKILL):
        """Kills a process, also one that is just starting. KeyError if the launcher has ended, since then no process starts."""
        def look():
            found = self.processes()
            return (found,) if name in found or self.process.poll() is not None else None
        pid = case.until(look, 10, "a " + name)[0][name]
        os.kill(pid, signo)
        return pid

    @property
    def socket_path(self):
        if "-socket" in self.args:
            return self.args[self.args.index("-socket") + 1]
        return (self.data + "/rt" if self.dev else self.runtime_dir) + "/drover.sock"

    def connect(self):
        """Connects to the control socket once, without retries. The caller closes the socket."""
        s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        directory = os.open(os.path.dirname(self.socket_path), os.O_PATH | os.O_CLOEXEC)
        try:
            s.connect("/proc/self/fd/%d/%s" % (directory, os.path.basename(self.socket_path)))
        except OSError:
            s.close()
            raise
        finally:
            os.close(directory)
        return s

    def get(self, path):
        """Returns status and body of GET path. Written by hand, because it tests the socket and not the API."""
        with self.connect() as s:
            s.settimeout(case.LEAST_S)
            s.sendall(("GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n" % path).encode())
            answer = b""
            while True:
                part = s.recv(65536)
                if not part:
                    break
                answer += part
        found = re.match(rb"HTTP/1\.[01] (\d+)", answer)
        return (int(found.group(1)) if found else 0), answer.partition(b"\r\n\r\n")[2]

    def wait_ready(self, seconds=20):
        """Waits until the API answers."""
        def answers():
            if self.process.poll() is not None:
                raise AssertionError("the agent ended with %d:\n%s" % (self.process.returncode, self.log()))
            try:
                return self.get("/v1/agent/health")[0] == 200
            except OSError:
                return False
        case.until(answers, seconds, "the agent to answer")
        return self

    def wait(self, seconds=30):
        """Returns the launcher's exit code, negative for a signal."""
        return self.process.wait(case.patience(seconds))

    def kill_launcher(self, seconds=10):
        """Kills the launcher with SIGKILL and waits until the others have ended: until then they still answer on the socket."""
        pids = list(self.processes().values())
        self.process.kill()
        self.wait()
        wait_gone(pids, seconds)

    def stop(self, signo=signal.SIGTERM, seconds=30):
        """Ends the agent; with -dev it drains."""
        if self.process.poll() is None:
            self.process.send_signal(signo)
        return self.wait(seconds)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        try:
            if self.process and self.process.poll() is None:
                self.process.send_signal(signal.SIGTERM)
                try:
                    self.wait()
                except subprocess.TimeoutExpired:
                    self.process.send_signal(signal.SIGTERM)  # skips the rest of the drain
                    self.wait()
        finally:
            if kind is not None:
                print("--- log of the agent ---\n%s---" % self.log(), flush=True)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# timeout: 1500
# takes: 86
"""Each process is killed a hundred times at random while tasks start, end and stop. No connection is refused."""
import http.server
import os
import random
import signal
import ssl
import threading
import time
import uuid

from lib import api, binary, case, crash, exe
from lib.nomad_server import make_certificates

TIMES = 100
VICTIMS = ("supervisor", "exec-helper", "mount-helper", "file-helper", "heartbeat", "csi-helper", "check-helper", "launcher", "executor")
# The least time between kills. With eight victims each process has run for about a second before it is killed again, so it is restarted
# at once.
GAP_S = 0.1


PREY = {"prey": "raw_exec", "prey-own": "exec"}


class Probe(threading.Thread):
    """Connects to the control socket every few milliseconds and never repeats a failed connect(2). Pauses while no launcher runs."""

    def __init__(self, node):
        super().__init__()
        self.node, self.refused, self.accepted, self.ending = node, [], 0, False
        self.may, self.resting = threading.Event(), threading.Event()
        self.may.set()

    def run(self):
        while not self.ending:
            if not self.may.is_set():
                self.resting.set()
                self.may.wait()
                self.resting.clear()
            try:
                self.node.connect().close()
                self.accepted += 1
            except OSError as e:
                self.refused.append(repr(e))
            time.sleep(0.004)

    def pause(self):
        self.resting.clear()  # of an earlier pause, if it has not noticed that yet
        self.may.clear()
        self.resting.wait(case.LEAST_S)


class Killer(threading.Thread):
    """Kills all processes in turn, in another order each round, until each has died TIMES times."""

    def __init__(self, node, probe):
        super().__init__()
        self.node, self.probe, self.error = node, probe, None
        self.prey_allocs = {a["ID"] for name in PREY for a in node.wait_running(name)}
        self.kills = dict.fromkeys(VICTIMS, 0)
        self.prey_kills = dict.fromkeys(self.prey_allocs, 0)
        self.choice = random.Random(1)
        self.gap_s = max(GAP_S, max(self.measure() for _ in range(3)) / 3)

    def measure(self):
        """Measures how long this machine needs to restart a killed supervisor: it must do some work before the next kill."""
        began = time.monotonic()
        killed = self.node.kill("supervisor")
        self.node.wait_process("supervisor", other_than=killed)
        self.node.request("GET", "/v1/agent/health")
        time.sleep(1)  # or the launcher would begin to wait between restarts
        return time.monotonic() - began - 1

    def kill(self, name):
        if name == "launcher":
            self.probe.pause()
            self.node.process.kill()
            self.node.wait()
            self.node.revive()
            case.until(lambda: os.path.exists(self.node.socket_path) and self.node.processes().get("supervisor"), 20,
                       "the launcher to run")
            self.probe.may.set()
        elif name == "executor":
            alloc, pid = case.until(self.prey, 20, "a run whose executor can be killed")
            os.kill(pid, signal.SIGKILL)
            self.prey_kills[alloc] += 1
        else:
            os.kill(self.node.wait_process(name, seconds=20), signal.SIGKILL)
        self.kills[name] += 1

    def prey(self):
        """Returns (alloc, executor) of a job whose executors are killed; the task dies with its executor, or soon after. Chooses only tasks
        that have recorded their start, so that each was started again after the last kill."""
        runs = [(str(uuid.UUID(bytes=r["alloc"])), r["executor_pid"]) for r in crash.records(self.node).values()
                if r and r["state"] == exe.EXE_RUNNING]
        runs = [(alloc, pid) for alloc, pid in runs if alloc in self.prey_allocs and
                len(crash.alloc_data(self.node, alloc, "starts")) > self.prey_kills[alloc]]
        return runs and self.choice.choice(runs)

    def run(self):
        try:
            for _ in range(TIMES):
                for name in self.choice.sample(VICTIMS, len(VICTIMS)):
                    time.sleep(self.choice.uniform(0, 2 * self.gap_s))
                    try:
                        self.kill(name)
                    except ProcessLookupError:  # the process has just ended with the supervisor
                        self.kill(name)
        except BaseException as e:
            self.error = e
            self.probe.may.set()


class Volumes(threading.Thread):
    """Creates and deletes volumes, so that csi-helper has work."""

    def __init__(self, node):
        super().__init__()
        self.node, self.ending, self.made, self.error = node, False, 0, None

    def wish(self, method, path, body, wanted):
        """Repeats the request while the plugin, which is restarted too, is not healthy."""
        case.until(lambda: self.node.request(method, path, body).status in wanted, 300, "%s %s" % (method, path))

    def run(self):
        volume = {"ID": "v", "Name": "v", "PluginID": "local", "RequestedCapacityMin": 1 << 20, "RequestedCapabilities": [
            {"AccessMode": "single-node-writer", "AttachmentMode": "file-system"}]}
        try:
            while not self.ending:
                self.wish("PUT", "/v1/volume/csi/v/create", {"Volumes": [volume]}, (200, 409))  # 409: the answer to an earlier request was lost
                self.wish("DELETE", "/v1/volume/csi/v/delete", None, (200, 404))
                self.made += 1
        except BaseException as e:
            self.error = e


class Healthy(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def serve_over_tls():
    """Runs an HTTPS server whose answers are always successful. Yields its port."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*make_certificates(case.directory(), names=("server",))["server"])
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Healthy)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    server.handle_error = lambda *_: None  # the client was killed
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_port


def checked_job(port):
    """Registers a job with https checks, one a second each at different times, so that check-helper runs and has work."""
    checks = [{"Name": "c%d" % i, "Type": "http", "Protocol": "https", "TLSSkipVerify": True, "Path": "/", "PortLabel": str(port),
               "Interval": 10**9, "Timeout": 60 * 10**9} for i in range(10)]
    return crash.job("checked", group={"Services": [
        {"Name": "checked", "PortLabel": str(port), "Provider": "nomad", "Address": "127.0.0.1", "Checks": checks}]})


def all_pass(node):
    """Waits until each of its checks has passed in a request that was made from now on."""
    path, now = "/v1/client/allocation/%s/checks" % node.allocs("checked")[0]["ID"], time.time()

    def so():
        found = list((node.ask(path) or {}).values())
        return len(found) == 10 and all(c["Status"] == "success" and c["Timestamp"] > now for c in found)
    case.until(so, 60, "all checks to pass")


def wait_all_running(node, jobs):
    for name, count in jobs.items():
        node.wait_running(name, count, 60)
    case.equal(crash.conflicts(node), [], "tasks that ran twice at a time")


def churn(node, killer, store):
    """Starts and stops jobs while processes are killed: some end with an exit code, some by a signal, and one has a volume."""
    node.register(crash.job("stays", 2))
    node.register(crash.job("stays-own", 2, "exec"))
    node.register(api.job("plugin", binary("csi-local"), ["-root", store], group={"RestartPolicy": crash.RESTART},
                          CSIPluginConfig={"ID": "local", "Type": "monolith", "MountDir": "/csi"}))
    started, codes = 0, 0
    while killer.is_alive():
        name = "comes-%d" % (started % 4)
        node.register(crash.job(name, 2, ("raw_exec", "exec")[started % 2]))
        case.until(lambda: [a for a in node.allocs(name) if a["ClientStatus"] == "running"] or not killer.is_alive(), 60, name)
        case.equal(crash.conflicts(node), [], "tasks that ran twice at a time")
        node.purge(name, 60)
        node.register(crash.job("ends", 1, then="exit 3", group={"RestartPolicy": dict(crash.RESTART, Attempts=0)}))
        case.until(lambda: [a["ClientStatus"] for a in node.allocs("ends")] == ["failed"], 60, "the task to end")
        codes += check_exit(node, "ends", 3)
        node.purge("ends", 60)
        started += 1
    return started, codes


def check_exit(node, name, code):
    """Checks the events of a task. Returns 1 if it ended by itself, with its exit code; 0 if its executor was killed instead."""
    events = node.ask("/v1/allocation/" + node.allocs(name)[0]["ID"])["TaskStates"]["t"]["Events"]
    ends = [(e["ExitCode"], e["Signal"], e["DisplayMessage"]) for e in events if e["Type"] == "Terminated"]
    case.equal([e[:2] for e in ends], [(code, 0)], "exit code: %s" % ends)
    case.equal(len([e for e in events if e["Type"] == "Started"]), 1, "starts")
    return 1


def test_each_process_is_killed_a_hundred_times():
    store = case.directory()
    with crash.Node() as node:
        for name, driver in PREY.items():
            node.register(crash.job(name, 1, driver))
        node.register(checked_job(serve_over_tls()))
        probe = Probe(node)
        killer = Killer(node, probe)
        volumes = Volumes(node)
        for thread in (probe, killer, volumes):
            thread.start()
        try:
            started, codes = churn(node, killer, store)
        finally:
            killer.join(900)
            probe.ending = volumes.ending = True
            probe.may.set()
            for thread in (probe, volumes):
                thread.join(600)
        for thread in (volumes, killer):
            if thread.error:
                raise thread.error
        print("    killed: %s; %.2f s between two kills" % (", ".join("%s %d" % pair for pair in killer.kills.items()), killer.gap_s))
        print("    %d jobs of two allocs and %d volumes came and went, %d exit codes were told, %d connections accepted" %
              (started, volumes.made, codes, probe.accepted))
        case.equal(probe.refused, [], "refused connections")
        case.equal(set(killer.kills.values()), {TIMES}, "number of kills")
        wait_all_running(node, {"stays": 2, "stays-own": 2, "plugin": 1, "checked": 1, **dict.fromkeys(PREY, 1)})
        starts = sum(len(crash.alloc_data(node, a, "starts")) for a in killer.prey_allocs)
        case.equal(sum(killer.prey_kills.values()), TIMES, "number of kills of executors")
        case.equal(starts >= TIMES, True, "whether %d starts are enough for the tasks whose executors were killed" % starts)
        all_pass(node)
        for name in ("stays", "stays-own", "checked"):
            for a in node.allocs(name):
                events = node.ask("/v1/allocation/" + a["ID"])["TaskStates"]["t"]["Events"]
                case.equal([e["Type"] for e in events if e["Type"] not in ("Received", "Task Setup", "Driver Failure")],
                           ["Started"], "events of a task that was not killed")
                case.equal(len(crash.alloc_data(node, a["ID"], "starts")), 1, "starts of that task")
        for name in ("stays", "stays-own", "plugin", "checked", *PREY):
            node.purge(name, 60)
        crash.wait_nothing_left(node)
        case.equal((crash.leaks(node), crash.unexplained(node)), ([], []), "leaks, and objects without a row")


case.run(globals())

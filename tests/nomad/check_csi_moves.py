#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A volume of csi-driver-host-path moves between two nodes and a client of the servers' own program: by drains, and when a node is lost and
comes back. In namespaces of its own:

    CSI_HOSTPATH=path tests/nomad/isolated.py tests/nomad/check_csi_moves.py PATH [test_…]…

One driver serves all nodes, through a relay on each, because it keeps its volumes to itself. It refuses to stage what is not attached or is
staged elsewhere, and to detach what is staged: so a call in the wrong order fails."""
import contextlib
import os
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from lib import api, case  # noqa: E402
from lib.cluster import processes_of  # noqa: E402
import csi_calls  # noqa: E402
import csi_life  # noqa: E402
import csi_nodes  # noqa: E402
import real  # noqa: E402
from hostpath_driver import HostPath  # noqa: E402
from real import S  # noqa: E402

MODE = {"AccessMode": "single-node-writer", "AttachmentMode": "file-system"}
NAMES = ("n1", "n2", "n3")
RELAY = """
import os, socket, sys, threading
def pump(a, b):
    try:
        while part := a.recv(65536):
            b.sendall(part)
        b.shutdown(socket.SHUT_WR)
    except OSError:
        pass
listener = socket.socket(socket.AF_UNIX)
listener.bind(os.environ["CSI_ENDPOINT"].replace("unix://", ""))
listener.listen()
while True:
    outside = listener.accept()[0]
    inside = socket.socket(socket.AF_UNIX)
    inside.connect(sys.argv[1])
    for pair in ((outside, inside), (inside, outside)):
        threading.Thread(target=pump, args=pair, daemon=True).start()
"""


class Moves:
    """Servers with three nodes, and the driver."""

    def __init__(self, server, agents, top):
        self.server, self.agents, self.top = server, agents, top
        self.ids = {n["Name"]: n["ID"] for n in server.ask("/v1/nodes")}
        self.log = csi_calls.Log(top + "/log", {}, HostPath.calls)

    def start_relays(self):
        for name, agent in self.agents.items():
            self.server.run(api.job("relay-" + name, "/usr/bin/python3", ["-c", RELAY, self.top + "/csi.sock"], CSIPluginConfig=agent.plugin(
                "shared"), group={"RestartPolicy": csi_life.AGAIN}), Type="system", Constraints=[
                    {"LTarget": "${node.unique.name}", "RTarget": name, "Operand": "="}])
        self.healthy(*NAMES)

    def healthy(self, *names):
        def look():
            try:
                found = self.server.ask("/v1/plugin/csi/shared")
            except AssertionError:
                return False
            return all(found[half].get(self.ids[n], {}).get("Healthy") for half in ("Controllers", "Nodes") for n in names)
        case.until(look, 120, "the driver to be healthy on " + " ".join(names))

    def only(self, *names):
        """Makes these nodes eligible, and no others."""
        for name, node in self.ids.items():
            self.server.do("/v1/node/%s/eligibility" % node, {"Eligibility": "eligible" if name in names else "ineligible"})

    def drain(self, name):
        self.server.do("/v1/node/%s/drain" % self.ids[name], {"DrainSpec": {"Deadline": 120 * S, "IgnoreSystemJobs": True}})
        case.until(lambda: self.server.ask("/v1/node/" + self.ids[name])["DrainStrategy"] is None, 150, "the end of the drain of " + name)

    def begin(self, name):
        """Creates a volume, and runs its writer on this node. Returns the writer's alloc."""
        self.server.do("/v1/volume/csi/data/create", {"Volumes": [{
            "ID": "data", "Name": "data", "PluginID": "shared", "RequestedCapacityMin": 1 << 20, "RequestedCapabilities": [MODE]}]})
        self.only(name)
        again = {"Unlimited": True, "Delay": 5 * S, "DelayFunction": "constant"}
        script = "echo $HERE >> /d/log; cat /d/log; exec sleep 1000"
        self.server.run(api.job("writer", "/bin/sh", ["-c", script], driver="exec", Env={"HERE": "${node.unique.name}"},
                                VolumeMounts=[{"Volume": "v", "Destination": "/d"}],
                                group={"ReschedulePolicy": again, "Volumes": {"v": {"Name": "v", "Type": "csi", "Source": "data", **MODE}}}))
        return self.wait_on(name, [name])

    def writers(self):
        return [a for a in self.server.allocs("writer") if a["ClientStatus"] == "running" and a["DesiredStatus"] == "run"]

    def wait_on(self, name, wrote):
        """Waits until the only writer is on this node and finds what its predecessors wrote. Returns its alloc."""
        def look():
            found = self.writers()
            return len(found) == 1 and found[0]["NodeName"] == name and found[0]["ID"]
        try:
            alloc = case.until(look, 240, "the writer to run on " + name)
        except AssertionError as e:
            said = [(a["NodeName"], a["ClientStatus"], a["ClientDescription"], [
                v["DisplayMessage"] for s in (a["TaskStates"] or {}).values() for v in s["Events"] or ()][-3:]) for a in self.server.allocs("writer")]
            raise AssertionError("%s: %s" % (e, said)) from None
        of = csi_life.Cluster(self.server)
        path = "/v1/client/fs/logs/%s?task=t&type=stdout&plain=true" % alloc
        case.until(lambda: of.text(path).split() == wrote, 60, "%s from the writer; it wrote %r" % (wrote, of.text(path)))
        return alloc

    def end(self):
        self.server.purge("writer")
        case.until(lambda: not self.server.ask("/v1/volume/csi/data")["WriteAllocs"], 120, "the claim to be released")
        case.until(lambda: not self.mounts(), 60, "the volume to be unmounted")
        # The servers give up a volume's attachment after its claim.
        case.until(self.delete, 120, "the volume to be deleted")
        self.only(*NAMES)
        self.healthy(*NAMES)

    def delete(self):
        try:
            self.server.request("DELETE", "/v1/volume/csi/data/delete")
            return True
        except AssertionError:
            return False

    def mounts(self):
        with open("/proc/self/mountinfo", encoding="utf-8") as f:
            return [line for line in f if "/per-alloc/" in line]

    def refused(self):
        """Returns what the driver refused."""
        return sorted({"%s: %s" % (s["Method"].rpartition("/")[2], s["Error"]) for s in self.log.said() if s["Error"]})


@contextlib.contextmanager
def moves(beats=real.PATIENT):
    top = case.directory()
    os.mkdir(top + "/state")
    with open(top + "/log", "wb") as log, csi_nodes.three(beats) as (server, agents):
        argv = [HostPath().versions()[-1], "-endpoint", "unix://%s/csi.sock" % top, "-statedir", top + "/state", "-nodeid", "shared", "-v=5",
                "-enable-attach", "-check-volume-lifecycle"]
        with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, umask=0) as process:
            try:
                case.until(lambda: os.path.exists(top + "/csi.sock"), 20, "the driver's socket")
                os.chmod(top + "/csi.sock", 0o777)
                made = Moves(server, agents, top)
                made.start_relays()
                yield made
                for name in NAMES:
                    server.purge("relay-" + name)
            finally:
                process.kill()
    shutil.rmtree("/run/mount", ignore_errors=True)


def test_drains_move_a_volume_between_all_nodes():
    with moves() as m:
        m.begin("n1")
        wrote = ["n1"]
        for left, entered in (("n1", "n2"), ("n2", "n3"), ("n3", "n2"), ("n2", "n1")):
            m.only(left, entered)
            m.healthy(left, entered)
            m.drain(left)
            wrote.append(entered)
            m.wait_on(entered, wrote)
            case.equal(len(m.mounts()), 1, "mounts of the volume")
        m.end()
        print("    refused by the driver: %s" % m.refused(), flush=True)


def test_a_lost_node_comes_back_and_lets_the_volume_go():
    with moves(real.STRICT) as m:
        for lost, other in (("n1", "n2"), ("n1", "n3"), ("n3", "n1")):
            first = m.begin(lost)
            m.only(lost, other)
            silent = m.agents[lost].silence()
            try:
                case.until(lambda n=lost: m.server.ask("/v1/node/" + m.ids[n])["Status"] == "down", 120, lost + " to be down")
                case.until(lambda a=first: m.server.ask("/v1/allocation/" + a)["ClientStatus"] == "lost", 60, "the writer to be lost")
            finally:
                os.kill(silent, signal.SIGCONT)
            case.until(lambda a=first: not processes_of(a), 120, "the lost writer to end")
            # The lost node's driver was stopped with the writer. It must come back there for the volume to be unmounted.
            m.wait_on(other, [lost, other])
            case.equal(len(m.mounts()), 1, "mounts of the volume")
            m.end()
            print("    %s lost, %s took over; refused by the driver: %s" % (lost, other, m.refused()), flush=True)


case.run(globals())

# SPDX-License-Identifier: Apache-2.0
"""The whole life of volumes of a CSI driver, as a table of steps that runs alone, on a node of real servers, and on their own client.

    place = csi_life.Place(csi_life.Alone(node), "n1", csi_nodes.Ours(node), hostpath_driver.HostPath())
    place.live()
    place.log.steps()

A driver is an object such as hostpath_driver.HostPath, whose members are described there."""
import json
import os
import time
import urllib.error
import urllib.parse
import urllib.request

from lib import api, case
from lib.cluster import processes_of
import csi_calls
from real import S

MIB = 1 << 20
MODE = "multi-node-multi-writer"
FILES = {"AccessMode": MODE, "AttachmentMode": "file-system"}
DEVICE = {"AccessMode": "single-node-writer", "AttachmentMode": "block-device"}
AGAIN = {"Attempts": 100, "Interval": 3600 * S, "Delay": S // 10, "Mode": "fail"}


class Alone:
    """An agent without servers."""

    def __init__(self, node):
        self.node = node

    def request(self, method, path, body=None, headers=None):
        return self.node.do(method, path, body, headers)

    def text(self, path):
        return self.node.request("GET", path).text


class Cluster:
    """Real servers."""

    def __init__(self, server):
        self.server = server

    def request(self, method, path, body=None, headers=None):
        return self.server.request(method, path, body, headers)

    def text(self, path):
        try:
            with urllib.request.urlopen("http://%s:%d%s" % (self.server.ip, self.server.ports[0], path), timeout=60) as answer:
                return answer.read().decode()
        except urllib.error.HTTPError as e:
            return e.read().decode()


class Place:
    """One node on which volumes are used, with a plugin of its own. what: Alone or Cluster. agent: of csi_nodes. driver: of the plugin."""

    def __init__(self, what, name, agent, driver):
        self.what, self.name, self.agent, self.driver = what, name, agent, driver
        self.top = case.directory()
        os.chmod(self.top, 0o777)
        os.makedirs(self.top + "/state")
        os.chmod(self.top + "/state", 0o777)
        self.plugin = "%s-%s" % (driver.prefix, name)
        self.log = csi_calls.Log(self.top + "/log", {"-" + name: "-NODE", '"%s"' % name: "NODE"}, driver.calls)
        os.chmod(self.top + "/log", 0o666)
        self.specs = {}  # the volumes, as they were created
        self.told = {}  # what each step found, to be compared

    # --- the API ---

    def ask(self, path):
        return self.what.request("GET", path)

    def do(self, path, body=None, method="PUT"):
        return self.what.request(method, path, body if body is not None or method == "DELETE" else {})

    def id(self, name):
        return "%s-%s" % (name, self.name)

    def run(self, made, *more):
        made["Job"]["Constraints"] = [{"LTarget": "${node.unique.name}", "RTarget": self.name, "Operand": "="}, *more]
        self.do("/v1/jobs", made)

    def allocs(self, job):
        return sorted(self.ask("/v1/job/%s/allocations" % self.id(job)), key=lambda a: a["CreateIndex"])

    def running(self, job, other_than=None):
        """Waits until exactly one alloc of the job is to run, and runs, and is not other_than, whose first replacement may fail. Returns its id."""
        def look():
            found = [a for a in self.allocs(job) if a["DesiredStatus"] == "run"]
            if found and all(a["ClientStatus"] == "failed" for a in found) and not other_than:
                raise AssertionError(self.id(job) + " failed")
            wanted = [a for a in found if a["ClientStatus"] not in ("failed", "complete")]
            return len(wanted) == 1 and wanted[0]["ClientStatus"] == "running" and wanted[0]["ID"] != other_than and wanted[0]["ID"]
        try:
            return case.until(look, 90, self.id(job) + " to run")
        except AssertionError as e:
            raise AssertionError("%s\n%s" % (e, "\n".join(self.why(a) for a in self.allocs(job)))) from None

    def why(self, alloc):
        states = self.ask("/v1/allocation/" + alloc["ID"])["TaskStates"] or {}
        return "%s %s %s: %s" % (alloc["ID"], alloc["ClientStatus"], alloc["ClientDescription"], [
            e["DisplayMessage"] for s in states.values() for e in s["Events"] or ()])

    def stop(self, job):
        self.do("/v1/job/%s?purge=true" % self.id(job), method="DELETE")
        case.until(lambda: all(a["ClientStatus"] in ("complete", "failed", "lost") for a in self.allocs_of_all(job)), 90,
                   "the end of " + self.id(job))

    def wait_end(self, job, alloc):
        case.until(lambda: [a["ClientStatus"] for a in self.allocs(job) if a["ID"] == alloc] in (["complete"], []), 90, "the end of " + alloc)

    def allocs_of_all(self, job):
        return [a for a in self.ask("/v1/allocations") if a["JobID"] == self.id(job)]

    def said(self, alloc):
        """Returns what the task wrote."""
        return self.what.text("/v1/client/fs/logs/%s?task=t&type=stdout&plain=true" % alloc)

    def wait_said(self, alloc, words):
        case.until(lambda: words in self.said(alloc).split(), 60, "%r from %s; it wrote %r" % (words, alloc, self.said(alloc)))

    # --- plugins and volumes ---

    def start_plugin(self, version=-1):
        """Registers the driver as a job, or its new version: one of driver.versions()."""
        script = self.driver.script(self.driver.versions()[version], self.name, self.top + "/state", self.log.path)
        before = [a["ID"] for a in self.allocs_of_all("plugin")]
        self.run(api.job(self.id("plugin"), "/bin/sh", ["-c", script], Env={"BEFORE": str(before)}, group={"RestartPolicy": AGAIN},
                         CSIPluginConfig=self.agent.plugin(self.plugin)))
        case.until(lambda: self.running("plugin") not in before, 60, "the driver to run")
        case.until(self.healthy, 90, "the driver to be healthy")

    def found(self):
        """Returns the plugin as the API shows it; nothing while it is unknown."""
        try:
            return self.ask("/v1/plugin/csi/" + self.plugin)
        except AssertionError:
            return None

    def healthy(self):
        """Returns whether the plugin's newest instance is the one in use."""
        found = self.found()
        newest = self.allocs("plugin")[-1]["ID"]
        halves = [info for kind in ("Controllers", "Nodes") for info in ((found or {}).get(kind) or {}).values()]
        return len(halves) == 2 and all(h["Healthy"] and h["AllocID"] == newest for h in halves)

    def make(self, name, capability=FILES, size=4 * MIB, **more):
        """Creates a volume. Returns what was answered."""
        self.specs[name] = {"ID": self.id(name), "Name": self.id(name), "PluginID": self.plugin, "RequestedCapacityMin": size,
                            "Secrets": self.driver.secrets, "RequestedCapabilities": [capability], **self.driver.volume, **more}
        return self.do("/v1/volume/csi/%s/create" % self.id(name), {"Volumes": [self.specs[name]]})["Volumes"][0]

    def expand(self, name, size):
        """Requests a larger volume. Servers of 1.6 keep the request's context instead of the volume's, so that the request must have it."""
        spec = self.specs[name]
        kept = {k: spec[k] for k in ("Parameters", "MountOptions", "RequestedCapacityMax") if k in spec}
        return self.make(name, spec["RequestedCapabilities"][0], size, Context=self.volume(name)["Context"], **kept)

    def volume(self, name):
        return self.ask("/v1/volume/csi/" + self.id(name))

    def use(self, job, volume, script, capability=FILES, read_only=False, options=None, instead=None):
        """Registers a job that uses the volume at /d, instead of its alloc before. Returns its alloc once it runs. The first one instead of
        another may fail: clients of 1.6 may unmount the volume once more for the old alloc while they mount it for the new one."""
        request = {"Name": "v", "Type": "csi", "Source": self.id(volume), "ReadOnly": read_only, **capability}
        if options:
            request["MountOptions"] = options
        self.run(api.job(self.id(job), "/bin/sh", ["-c", script + "; echo end; exec sleep 1000"], driver="exec",
                         VolumeMounts=[{"Volume": "v", "Destination": "/d", "ReadOnly": read_only}],
                         group={"RestartPolicy": AGAIN, "Volumes": {"v": request}, **({"ReschedulePolicy": {
                             "Unlimited": True, "Delay": 5 * S, "DelayFunction": "constant"}} if instead else {})}))
        alloc = self.running(job, instead)
        self.wait_said(alloc, "end")
        return alloc

    def free(self, *names):
        """Waits until nobody uses the volumes."""
        for name in names:
            case.until(lambda n=name: not self.volume(n)["WriteAllocs"] and not self.volume(n)["ReadAllocs"], 120,
                       "the claims of %s to be released" % self.id(name))

    def mounts(self):
        with open("/proc/self/mountinfo", encoding="utf-8") as f:
            return [line for line in f if "/%s/" % self.plugin in line and "/per-alloc/" in line]

    # --- the steps ---

    def live(self, may_fail=(), without=()):
        """Takes the steps, without these. may_fail: steps that this place may not be able to take; what they say is their outcome."""
        for name, step in STEPS:
            if name in without or name in self.driver.lacks:
                continue
            self.log.mark(name)
            began = time.monotonic()
            try:
                self.told[name] = step(self)
            except AssertionError as e:
                if name not in may_fail:
                    raise AssertionError("%s, step «%s»: %s" % (self.name, name, e)) from e
                self.told[name] = "failed: %s" % e
            print("      %-20s %6.2f s  %s" % (name, time.monotonic() - began, self.told[name]), flush=True)
        self.log.mark("after")


def create(p):
    made = p.make("data", RequestedCapacityMax=64 * MIB, **p.driver.first_volume)
    shown = [t["Segments"] for t in p.volume("data")["Topologies"] or () if t]  # servers before 2.1 add an empty one
    return made["Capacity"], made["Context"], shown == p.driver.topologies(p.name)


def register(p):
    """A volume that the driver has is deregistered, and registered by the driver's name for it."""
    made = p.volume("data")
    p.do("/v1/volume/csi/" + p.id("data"), method="DELETE")
    p.do("/v1/volume/csi/" + p.id("data"), {"Volumes": [dict(p.specs["data"], ExternalID=made["ExternalID"], Context=made["Context"])]})
    return made["ExternalID"] == p.volume("data")["ExternalID"]


WRITE = "echo $NOMAD_ALLOC_INDEX >> /d/log; cat /d/log"


def write(p):
    p.use("writer", "data", WRITE)
    return len(p.mounts())


def read(p):
    alloc = p.use("reader", "data", "cat /d/log; echo no >> /d/log || echo refused", read_only=True)
    return p.said(alloc).split(), len(p.mounts())


def options(p):
    """A second writer, with mount options of its own."""
    alloc = p.use("other", "data", WRITE, options=p.driver.options)
    return p.said(alloc).split()


def stop_second(p):
    for job in ("reader", "other"):
        if p.allocs_of_all(job):
            p.stop(job)
    case.until(lambda: len(p.mounts()) == 1, 90, "only the writer's mount to be left")
    case.until(lambda: (v := p.volume("data")) and len(v["WriteAllocs"]) == 1 and not v["ReadAllocs"], 90, "only the writer's claim to be left")


def expand_in_use(p):
    return p.expand("data", 8 * MIB)["Capacity"], p.volume("data")["Capacity"]


def restart(p):
    """The agent of the node is replaced; task and mount stay."""
    alloc = p.running("writer")
    pids, mounts = processes_of(alloc), len(p.mounts())
    p.agent.restart()
    case.equal((p.running("writer"), processes_of(alloc), len(p.mounts())), (alloc, pids, mounts), "alloc, processes and mounts")
    case.until(p.healthy, 90, "the driver to be healthy again")


def upgrade(p):
    """The driver is upgraded while a volume is in use."""
    alloc, old = p.running("writer"), p.running("plugin")
    p.start_plugin()
    p.wait_end("plugin", old)
    case.equal((p.running("writer"), len(p.mounts())), (alloc, 1), "the writer and its mount")


def replace(p):
    """A new version of the job: the volume is unmounted for the old alloc and mounted for the new one."""
    p.use("writer", "data", WRITE + "; : changed", instead=p.running("writer"))


def drain(p):
    """The node is drained of the user and of the driver, and is used again."""
    me, = [n["ID"] for n in p.ask("/v1/nodes") if n["Name"] == p.name]
    old = p.running("writer")
    p.do("/v1/node/%s/drain" % me, {"DrainSpec": {"Deadline": 120 * S}})
    case.until(lambda: not p.ask("/v1/node/" + me)["DrainStrategy"], 150, "the end of the drain")
    case.until(lambda: not p.mounts(), 60, "the volume to be unmounted")
    p.do("/v1/node/%s/eligibility" % me, {"Eligibility": "eligible"})
    case.until(lambda: p.allocs("plugin") and p.healthy(), 90, "the driver to be healthy again")
    p.running("writer", other_than=old)


def stop(p):
    p.stop("writer")
    p.free("data")
    case.until(lambda: not p.mounts(), 60, "the volume to be unmounted")


def expand_unused(p):
    return p.expand("data", 12 * MIB)["Capacity"]


def snapshots(p):
    taken, = p.do("/v1/volumes/snapshot", {"Snapshots": [{"SourceVolumeID": p.id("data"), "Name": p.id("then"), "Secrets": p.driver.secrets,
                                                          "Parameters": p.driver.snapshot}]})["Snapshots"]
    p.snapshot = taken["ID"]
    return taken["ExternalSourceVolumeID"] == p.volume("data")["ExternalID"]


def list_snapshots(p):
    return [k["ID"] == p.snapshot for k in p.ask("/v1/volumes/snapshot?plugin_id=" + p.plugin)["Snapshots"] or []]


def contents(p, name):
    """Returns what the volume stores, read by a job."""
    alloc = p.use("look", name, "cat /d/log")
    found = p.said(alloc).split()
    p.stop("look")
    p.free(name)
    return found


def from_snapshot(p):
    p.make("old", size=12 * MIB, SnapshotID=p.snapshot)
    return contents(p, "old")


def clone(p):
    p.make("copy", size=12 * MIB, CloneID=p.volume("data")["ExternalID"])
    return contents(p, "copy")


def delete_snapshot(p):
    p.what.request("DELETE", "/v1/volumes/snapshot?plugin_id=%s&snapshot_id=%s" % (p.plugin, urllib.parse.quote(p.snapshot)), headers={
        "X-Nomad-CSI-Secrets": ",".join("%s=%s" % item for item in p.driver.snapshot_secrets.items())})


def listing(p):
    listed = p.ask("/v1/volumes/external?plugin_id=" + p.plugin)["Volumes"]
    return sorted(v["ExternalID"] for v in listed) == sorted(p.volume(n)["ExternalID"] for n in ("data", "old", "copy"))


def block(p):
    p.make("disk", DEVICE)
    p.use("disk", "disk", "printf kept | dd of=/d conv=notrunc,fsync", DEVICE)
    p.stop("disk")
    p.free("disk")
    alloc = p.use("disk", "disk", "dd if=/d bs=4 count=1; echo", DEVICE)
    return p.said(alloc).split()


def expand_block(p):
    return p.expand("disk", 8 * MIB)["Capacity"]


def stop_block(p):
    p.stop("disk")
    p.free("disk")


def delete(p):
    for name in p.specs:
        p.do("/v1/volume/csi/%s/delete" % p.id(name), method="DELETE")


def list_all(p):
    return p.ask("/v1/volumes/external?plugin_id=" + p.plugin)["Volumes"] or []


def end(p):
    p.stop("plugin")
    case.until(lambda: not p.found(), 90, "the plugin to be unknown")
    case.equal(p.driver.left(p), [], "what the driver stores")


STEPS = [
    ("start", lambda p: p.start_plugin(0)),
    ("create", create),
    ("register", register),
    ("write", write),
    ("read", read),
    ("options", options),
    ("stop second users", stop_second),
    ("restart agent", restart),
    ("upgrade driver", upgrade),
    ("expand in use", expand_in_use),
    ("replace user", replace),
    ("drain", drain),
    ("stop", stop),
    ("expand unused", expand_unused),
    ("snapshot", snapshots),
    ("list snapshots", list_snapshots),
    ("from snapshot", from_snapshot),
    ("clone", clone),
    ("delete snapshot", delete_snapshot),
    ("list snapshots", list_snapshots),
    ("list", listing),
    ("block", block),
    ("expand block", expand_block),
    ("stop block", stop_block),
    ("delete", delete),
    ("list all", list_all),
    ("end", end),
]


def shown(steps):
    """Returns the calls of steps as lines."""
    return json.dumps({name: [str(c) for c in calls] for name, calls in steps.items()}, indent=1)

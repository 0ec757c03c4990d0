#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A CSI driver whose storage is in the network: csi-s3, which serves each staged volume by a FUSE process of its own, with an S3 server
on loopback. The whole life of volumes on an agent alone; check_csi_network_cluster.py has nodes of servers. In namespaces of its own:
tests/nomad/isolated.py runs it, for `make check-csi-network`; tests/nomad/s3_driver.py tells which programs the environment names.

    tests/nomad/isolated.py tests/nomad/check_csi_network.py [test_…]…"""
import collections
import contextlib
import os
import shutil
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from lib import api, case  # noqa: E402
from lib.agent import arguments  # noqa: E402
from lib.cluster import processes_of  # noqa: E402
import network_volumes  # noqa: E402
import s3_driver  # noqa: E402
from network_volumes import READS, WRITES  # noqa: E402

S = 10**9


class Bed:
    """An agent alone with the driver and its storage."""

    def __init__(self):
        self.storage, self.node, self.log = s3_driver.Storage(), api.Node(), case.directory() + "/calls"

    def __enter__(self):
        try:
            self.node.register(self.storage.plugin(self.log))
            self.wait_plugin()
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        return self

    def __exit__(self, kind, value, tb):
        if kind is not None and not (kind is SystemExit and value.code == 0):
            print("--- the driver ---\n%s" % "\n".join("%s %s" % c for c in self.calls()), flush=True)
        try:
            self.node.__exit__(kind, value, tb)
        finally:
            self.storage.__exit__()
            shutil.rmtree("/run/mount", ignore_errors=True)  # mount(8), which the driver calls, writes its notes there

    def calls(self):
        return [c for name in os.listdir(os.path.dirname(self.log)) for c in s3_driver.calls(self.log, name.split(".")[1])]

    def counts(self):
        """Returns {method: how often it was called}."""
        return dict(collections.Counter(m for m, _ in self.calls()))

    def stored(self, volume):
        """Returns {file: its text, None for a directory} of what the S3 server keeps of a volume."""
        top = "%s/data/%s" % (self.storage.dir, volume)
        found = {}
        for name in (n for n in os.listdir(top) if not n.startswith(".")):
            if os.path.isfile(top + "/" + name):
                with open(top + "/" + name, encoding="utf-8") as f:
                    found[name] = f.read()
            else:
                found[name] = None
        return found

    def plugin_is_healthy(self):
        answer = self.node.request("GET", "/v1/plugin/csi/s3")
        return answer.status == 200 and answer.json["NodesHealthy"] == 1 and answer.json["ControllersHealthy"] == 1

    def wait_plugin(self):
        case.until(self.plugin_is_healthy, 60, "the plugin to be healthy")

    def create(self, name, **more):
        self.node.do("PUT", "/v1/volume/csi/%s/create" % name, self.storage.volume(name, **more))
        return self.volume(name)

    def volume(self, name):
        return self.node.ask("/v1/volume/csi/" + name)

    def delete(self, name):
        self.node.do("DELETE", "/v1/volume/csi/%s/delete" % name)

    def run(self, name, *args, count=1, **more):
        """Registers a job of network_volumes.user(). Returns its running allocs."""
        self.node.register(network_volumes.user(name, *args, count=count, **more))
        return self.node.wait_running(name, count, 60)

    def said(self, alloc):
        answer = self.node.request_logs(alloc)
        return answer.text.splitlines() if answer.status == 200 else []

    def wait_data(self, alloc, *writers):
        """Waits until the alloc sees what these allocs have written."""
        wanted = {"data of " + w["ID"] for w in writers}
        case.until(lambda: wanted <= set(self.said(alloc)), 60, "the data of %d writers" % len(writers))

    def wait_unused(self, *names):
        """Waits until nothing of these volumes is mounted or claimed."""
        for name in names:
            case.until(lambda n=name: not self.volume(n)["WriteAllocs"] and not self.volume(n)["ReadAllocs"], 60, "no claims of " + name)
            case.equal(self.node.ask("/v1/volume/csi/%s/claims" % name), [], "claims of " + name)
            case.until(lambda n=name: not [m for m in network_volumes.fuse_mounts() if "/%s/" % n in m], 60, "no mounts of " + name)

    def release(self, volume, *jobs, seconds=60):
        for job in jobs:
            self.node.purge(job, seconds)
        self.wait_unused(volume)
        self.wait_nothing_mounted()

    def events(self, alloc):
        states = self.node.ask("/v1/allocation/" + alloc["ID"])["TaskStates"] or {}
        return " ".join(e["DisplayMessage"] for e in states.get("t", {}).get("Events", []))

    def wait_nothing_mounted(self):
        case.until(lambda: not network_volumes.fuse_mounts(), 60, "no mounts")
        case.until(lambda: not network_volumes.processes("geesefs"), 60, "no processes of the mounter")
        case.until(lambda: self.node.ask("/v1/agent/leaks") == [], 60, "no leaks")

    def end(self):
        """Stops the driver and checks that nothing is left."""
        self.node.purge("plugin", 60)
        case.until(lambda: self.node.request("GET", "/v1/plugin/csi/s3").status == 404, 60, "no plugin")
        case.until(lambda: not network_volumes.left(self.node.data), 60, "an empty directory csi/")
        case.equal(self.node.ask("/v1/agent/leaks"), [], "leaks")


@contextlib.contextmanager
def used(bed, name):
    """A volume with two writers and a reader, all of which see the data of both writers. Yields the writers and the reader."""
    bed.create(name)
    writers = bed.run("writer", name, WRITES, count=2)
    reader, = bed.run("reader", name, READS, readonly=True)
    for alloc in (*writers, reader):
        bed.wait_data(alloc, *writers)
    yield writers, reader
    bed.release(name, *(j["ID"] for j in bed.node.ask("/v1/jobs") if j["ID"] != "plugin"))
    bed.delete(name)


def test_a_life_alone():
    with Bed() as bed:
        with used(bed, "data") as (writers, reader):
            case.equal(bed.said(reader)[0], "read-only")
            made = bed.volume("data")
            case.equal((made["ExternalID"], made["Context"]["mounter"], len(made["WriteAllocs"]), len(made["ReadAllocs"])),
                       ("data", "geesefs", 2, 1))
            case.equal(len(network_volumes.fuse_mounts()), 4, "mounts: the staged one and one for each allocation")
            case.equal(bed.stored("data"), {w["ID"]: "data of %s\n" % w["ID"] for w in writers})
        case.equal(bed.counts(), {"CreateVolume": 1, "NodeStageVolume": 1, "NodePublishVolume": 3, "NodeUnpublishVolume": 3,
                                  "NodeUnstageVolume": 1, "DeleteVolume": 1})
        for method, request in bed.calls():
            if method in ("CreateVolume", "NodeStageVolume", "NodePublishVolume", "DeleteVolume"):
                for key, value in bed.storage.secrets().items():
                    case.contains(request, 'key:"%s" value:"%s"' % (key, value), method)
            if method in ("CreateVolume", "NodeStageVolume", "NodePublishVolume"):
                case.contains(request, 'mount_flags:"noatime" mount_flags:"sync"', method)
                case.contains(request, "mode:MULTI_NODE_MULTI_WRITER", method)
        case.equal(sum("readonly:true" in request for _, request in bed.calls()), 1, "calls for the reader")
        bed.end()


def test_a_volume_is_registered_again_and_keeps_its_data():
    with Bed() as bed:
        bed.create("data")
        first, = bed.run("writer", "data", WRITES)
        bed.wait_data(first, first)
        bed.release("data", "writer")
        bed.node.do("DELETE", "/v1/volume/csi/data")
        bed.node.refused(404, "bucket of volume with id none does not exist", "PUT", "/v1/volume/csi/again",
                         bed.storage.volume("again", ExternalID="none"))
        context = {"mounter": "geesefs", "options": s3_driver.OPTIONS}
        bed.node.do("PUT", "/v1/volume/csi/again", bed.storage.volume("again", ExternalID="data", Context=context))
        second, = bed.run("writer", "again", WRITES)
        bed.wait_data(second, first, second)
        bed.node.refused(409, 'plugin "s3" does not expand volumes', "PUT", "/v1/volume/csi/again/create",
                         bed.storage.volume("again", ExternalID="data", RequestedCapacityMin=4 << 20))
        bed.release("again", "writer")
        bed.delete("again")
        bed.end()


def test_updates_and_a_drain():
    with Bed() as bed:
        with used(bed, "data") as (writers, reader):
            more = bed.run("writer", "data", WRITES, count=2, Env={"CHANGED": "1"})
            case.equal({w["ID"] for w in more} & {w["ID"] for w in writers}, set())
            for alloc in (*more, reader):
                bed.wait_data(alloc, *writers, *more)
            me = "/v1/node/" + bed.node.ask("/v1/nodes")[0]["ID"]
            bed.node.do("PUT", me + "/drain", {"DrainSpec": {"Deadline": 300 * S}})
            case.until(lambda: bed.node.ask(me)["DrainStrategy"] is None, 90, "the end of the drain")
            bed.wait_unused("data")
            bed.wait_nothing_mounted()
            case.equal(bed.counts()["NodeUnstageVolume"], 1, "the driver was there until the end")
            bed.node.do("PUT", me + "/eligibility", {"Eligibility": "eligible"})
            bed.wait_plugin()
            for alloc in (*bed.node.wait_running("writer", 2, 60), *bed.node.wait_running("reader", 1, 60)):
                bed.wait_data(alloc, *writers, *more)
        bed.end()


def test_processes_of_the_agent_are_killed():
    with Bed() as bed:
        with used(bed, "data") as (writers, reader):
            tasks = {a["ID"]: processes_of(a["ID"])[:1] for a in (*writers, reader)}
            for name in ("supervisor", "csi-helper", "mount-helper"):
                if name == "supervisor":
                    bed.node.replace_supervisor()
                else:
                    bed.node.kill(name)
                extra, = bed.run("extra", "data", WRITES)
                bed.wait_data(extra, *writers, extra)
                bed.wait_data(reader, extra)
                bed.node.purge("extra", 60)
                for alloc, pids in tasks.items():
                    case.equal(processes_of(alloc)[:1], pids, "tasks after the kill of " + name)
            case.equal(bed.counts()["NodeStageVolume"], 1)
        bed.end()


def test_the_storage_refuses_and_fails():
    with Bed() as bed:
        answer = bed.node.request("PUT", "/v1/volume/csi/data/create", bed.storage.volume("data", secret="wrong" + s3_driver.SECRET))
        case.equal(answer.status, 500, answer.text)
        case.contains(answer.text, "CreateVolume of plugin s3")
        case.equal(s3_driver.SECRET in answer.text, False, "the secret in an error")
        bed.create("data")
        bed.storage.stop()
        bed.node.register(network_volumes.user("writer", "data", WRITES))
        alloc = case.until(lambda: bed.node.allocs("writer"), 60, "an alloc")[0]
        case.until(lambda: "NodeStageVolume of plugin s3 has not been answered yet" in bed.events(alloc), 60, "an event about the call")
        case.contains(bed.node.drover("alloc", "why", alloc["ID"]).out, "NodeStageVolume")
        bed.storage.start()
        alloc, = bed.node.wait_running("writer", 1, 150)
        bed.wait_data(alloc, alloc)
        bed.release("data", "writer")
        bed.delete("data")
        bed.end()


def test_processes_are_killed_while_the_driver_mounts():
    """The driver goes on with the call that was broken off, also while it works on the one that repeats it, and may mount the volume twice.
    It then waits in NodeUnstageVolume for the other mounter, and only the call after its timeout unmounts that."""
    with Bed() as bed:
        for killed in (("supervisor",), ("supervisor", "csi-helper")):
            bed.create("data")
            os.killpg(bed.storage.process.pid, signal.SIGSTOP)
            try:
                bed.node.register(network_volumes.user("writer", "data", WRITES))
                case.until(lambda: network_volumes.processes("geesefs"), 60, "a mounter")
                calls = bed.counts()["NodeStageVolume"]
                for name in killed:
                    bed.node.kill(name)
                bed.node.wait_ready()
                case.until(lambda: bed.counts()["NodeStageVolume"] > calls, 60, "the repeated call")
            finally:
                os.killpg(bed.storage.process.pid, signal.SIGCONT)
            alloc, = bed.node.wait_running("writer", 1, 150)
            bed.wait_data(alloc, alloc)
            print("    %s killed: %d mounts" % (" and ".join(killed), len(network_volumes.fuse_mounts())), flush=True)
            bed.release("data", "writer", seconds=400)
            bed.delete("data")
        bed.end()


def test_volumes_of_one_bucket():
    """The driver's ids of them contain a slash."""
    with Bed() as bed:
        parameters = {"mounter": "geesefs", "options": s3_driver.OPTIONS, "bucket": "shared"}
        for name in ("one", "two"):
            case.equal(bed.create(name, Parameters=parameters)["ExternalID"], "shared/" + name)
        one, = bed.run("w-one", "one", WRITES)
        two, = bed.run("w-two", "two", WRITES)
        bed.wait_data(one, one)
        bed.wait_data(two, two)
        bed.node.refused(409, "", "DELETE", "/v1/volume/csi/one/delete")
        bed.node.purge("w-one", 60)
        bed.wait_unused("one")
        bed.delete("one")
        case.equal((sorted(bed.stored("shared")), bed.stored("shared/two")), (["two"], {two["ID"]: "data of %s\n" % two["ID"]}))
        bed.node.refused(400, "CREATE_DELETE_SNAPSHOT", "PUT", "/v1/volumes/snapshot", {"Snapshots": [{"SourceVolumeID": "two", "Name": "s"}]})
        bed.release("two", "w-two")
        bed.delete("two")
        bed.end()


def test_the_driver_is_killed_while_volumes_are_in_use():
    """Its mounts end with it. They are made again, and the tasks are told and restarted. The jobs then end and begin as usual."""
    with Bed() as bed:
        with used(bed, "data") as (writers, reader):
            seen = [(alloc, len(bed.said(alloc))) for alloc in (*writers, reader)]
            os.kill(bed.storage.drivers()[0], signal.SIGKILL)
            case.until(lambda: not network_volumes.processes("geesefs"), 60, "the mounters to end")
            bed.wait_plugin()
            for alloc, lines in seen:
                case.until(lambda a=alloc: "was mounted again after it was lost" in bed.events(a), 120, "the task to be told")
                case.until(lambda a=alloc, n=lines: {"data of " + w["ID"] for w in writers} <= set(bed.said(a)[n:]), 120, "the data after it")
            for name in ("writer", "reader"):
                bed.node.purge(name, 120)
            bed.wait_unused("data")
            again, = bed.run("writer", "data", WRITES)
            bed.wait_data(again, *writers, again)
        bed.end()


def test_the_driver_is_upgraded_while_volumes_are_in_use():
    with Bed() as bed:
        with used(bed, "data") as (writers, reader):
            old = bed.node.wait_running("plugin")[0]["ID"]
            bed.node.register(bed.storage.plugin(bed.log, "2"))
            case.until(lambda: [a["ID"] for a in bed.node.wait_running("plugin", 1, 60)] != [old], 60, "the new instance")
            bed.wait_plugin()
            for name in ("writer", "reader"):
                bed.node.purge(name, 120)
            bed.wait_unused("data")
            again, = bed.run("writer", "data", WRITES)
            bed.wait_data(again, *writers, again)
        bed.end()


def test_no_secret_is_shown():
    with Bed() as bed:
        with used(bed, "data") as (writers, _):
            answer = bed.node.request("PUT", "/v1/volume/csi/other/create", bed.storage.volume("other", secret="x" + s3_driver.SECRET))
            texts = {"log": bed.node.log(), "error": answer.text}
            for path in ("volumes", "volume/csi/data", "volume/csi/data/claims", "plugin/csi/s3", "allocations", "allocation/" + writers[0]["ID"],
                         "jobs", "job/writer", "job/plugin", "nodes", "node/" + bed.node.ask("/v1/nodes")[0]["ID"], "agent/leaks",
                         "volumes/external?plugin_id=s3"):
                texts[path] = bed.node.request("GET", "/v1/" + path).text
            for words in ("volume status data", "volume status -verbose data", "volume status -json data", "volume claims data",
                          "plugin status s3", "alloc status " + writers[0]["ID"], "alloc why " + writers[0]["ID"]):
                done = bed.node.drover(*words.split())
                texts[words] = done.out + done.err
            for pid in bed.node.processes().values():
                texts["arguments of %d" % pid] = " ".join(arguments(pid))
            case.equal([name for name, text in texts.items() if s3_driver.SECRET in text or s3_driver.KEY in text], [])
            case.equal([name for name, text in texts.items() if not text], [], "without text")
        bed.end()
        case.equal(s3_driver.SECRET in bed.node.log(), False, "the secret in the log")


s3_driver.need()
case.run(globals())

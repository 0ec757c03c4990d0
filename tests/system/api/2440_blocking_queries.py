#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Queries that wait for an index: which changes end them, how long they wait, and their cost."""
import os
import resource
import signal
import threading
import time

from lib import api, case, told

NEVER = 10**15
NOBODY = "99999999-9999-4999-8999-999999999999"


def index_of(path):
    return int(node.request("GET", path).headers["X-Nomad-Index"])


class Waiting:
    """A query that waits for an index above the current one of its path."""
    def __init__(self, path, index=None):
        self.path, self.index, self.answer = path, index or index_of(path), None
        self.thread = threading.Thread(target=self.ask, daemon=True)
        self.thread.start()

    def ask(self):
        self.answer = node.request("GET", "%s%sindex=%d&wait=10m" % (self.path, "&" if "?" in self.path else "?",
                                                                     self.index), timeout=case.LEAST_S)

    def ended(self, until=lambda answer: True):
        """Returns the first answer for which `until` is true. An answer may arrive before the expected change: then it queries again."""
        while True:
            self.thread.join(2 * case.LEAST_S)
            case.equal(self.answer is not None, True, "an answer of " + self.path)
            index = int(self.answer.headers["X-Nomad-Index"])
            case.equal(index > self.index, True, "%s: index %d after %d" % (self.path, index, self.index))
            if until(self.answer):
                return self.answer
            self.__init__(self.path, index)


def test_queries_for_a_job_see_each_change_of_its_life():
    lists = [Waiting(p) for p in ("/v1/jobs", "/v1/allocations", "/v1/evaluations", "/v1/services")]
    missing = Waiting("/v1/job/web")
    case.equal(node.request("GET", "/v1/job/web").status, 404)
    made = api.job("web", group={"Services": [{"Name": "web", "Provider": "nomad"}]})
    evaluation = node.register(made)["EvalID"]
    lists[0].ended(lambda a: [j["ID"] for j in a.json] == ["web"])
    lists[1].ended(lambda a: [x["ClientStatus"] for x in a.json] == ["running"])
    lists[2].ended(lambda a: [x["Status"] for x in a.json] == ["complete"])
    lists[3].ended(lambda a: [s["ServiceName"] for n in a.json for s in n["Services"]] == ["web"])
    missing.ended(lambda a: a.status == 200)
    case.equal(node.evaluation(evaluation)["Status"], "complete")
    alloc = node.wait_running("web")[0]["ID"]
    ends = [Waiting(p) for p in ("/v1/allocation/" + alloc, "/v1/job/web", "/v1/job/web/allocations",
                                 "/v1/job/web/summary", "/v1/job/web/evaluations", "/v1/service/web",
                                 "/v1/node/%s/allocations" % node.ask("/v1/nodes")[0]["ID"])]
    node.do("DELETE", "/v1/job/web")
    ends[0].ended(lambda a: a.json["ClientStatus"] == "complete")
    ends[1].ended(lambda a: a.json["Status"] == "dead")
    ends[2].ended(lambda a: a.json[0]["ClientStatus"] == "complete")
    ends[3].ended(lambda a: a.json["Summary"]["g"]["Complete"] == 1)
    ends[4].ended(lambda a: "job-deregister" in [e["TriggeredBy"] for e in a.json])
    ends[5].ended(lambda a: a.json == [])
    ends[6].ended(lambda a: a.json[0]["ClientStatus"] == "complete")
    gone = Waiting("/v1/job/web")
    node.purge("web")
    gone.ended(lambda a: a.status == 404)


def test_queries_for_a_blocked_evaluation():
    cpu = node.ask("/v1/node/" + node.ask("/v1/nodes")[0]["ID"])["NodeResources"]["Cpu"]["CpuShares"]
    node.register(api.job("first", Resources={"CPU": cpu * 2 // 3, "MemoryMB": 20}))
    node.wait_running("first")
    node.register(api.job("second", Resources={"CPU": cpu * 2 // 3, "MemoryMB": 20}))
    blocked = [e for e in node.ask("/v1/job/second/evaluations") if e["Status"] == "blocked"][0]["ID"]
    waiting = [Waiting("/v1/evaluation/" + blocked), Waiting("/v1/job/second")]
    node.purge("first")
    waiting[0].ended(lambda a: a.json["Status"] == "complete")
    waiting[1].ended(lambda a: a.json["Status"] == "running")
    node.purge("second")


def test_queries_for_the_node():
    me = node.ask("/v1/nodes")[0]["ID"]
    waiting = [Waiting("/v1/nodes"), Waiting("/v1/node/" + me)]
    node.do("PUT", "/v1/node/%s/drain" % me, {"DrainSpec": {"Deadline": 10**9}})
    for w in waiting:
        w.ended(lambda a: "ineligible" in a.text)
    waiting = [Waiting("/v1/nodes"), Waiting("/v1/node/" + me)]
    node.do("PUT", "/v1/node/%s/drain" % me, {"DrainSpec": None, "MarkEligible": True})
    for w in waiting:
        w.ended(lambda a: '"eligible"' in a.text)


def test_queries_for_namespaces():
    waiting = [Waiting("/v1/namespaces"), Waiting("/v1/namespace/vol")]
    node.do("PUT", "/v1/namespace", {"Name": "vol"})
    waiting[0].ended(lambda a: [n["Name"] for n in a.json] == ["default", "vol"])
    waiting[1].ended(lambda a: a.status == 200)
    waiting = Waiting("/v1/namespaces")
    node.do("DELETE", "/v1/namespace/vol")
    waiting.ended(lambda a: [n["Name"] for n in a.json] == ["default"])


def test_queries_for_volumes():
    with told.plain(node, "p"):
        waiting = [Waiting("/v1/volumes?type=csi"), Waiting("/v1/volume/csi/data")]
        node.do("PUT", "/v1/volume/csi/data", told.volume("data", "p"))
        waiting[0].ended(lambda a: [v["ID"] for v in a.json] == ["data"])
        waiting[1].ended(lambda a: a.status == 200)
        waiting = Waiting("/v1/volume/csi/data")
        node.do("DELETE", "/v1/volume/csi/data")
        waiting.ended(lambda a: a.status == 404)


def test_a_query_without_a_change_ends_at_its_timeout():
    """When the time has passed, the answer has the current objects and the current index."""
    for path, status in (("/v1/jobs", 200), ("/v1/job/none", 404), ("/v1/allocation/" + NOBODY, 404), ("/v1/services", 200)):
        begun = time.monotonic()
        answer = node.request("GET", path + "?index=%d&wait=1200ms" % NEVER)
        case.equal((answer.status, time.monotonic() - begun >= 1.2), (status, True), path)
        case.equal(int(answer.headers["X-Nomad-Index"]) < NEVER, True, "the current index")
    case.equal(node.request("GET", "/v1/jobs?index=0&wait=10m").status, 200, "status with index 0, which does not wait")
    for query, text in (("index=x", "Invalid index"), ("index=-1", "Invalid index"), ("index=1x", "Invalid index"),
                        ("index=99999999999999999999999", "Invalid index"), ("index=1&wait=soon", "Invalid wait time")):
        node.refused(400, text, "GET", "/v1/jobs?" + query)


def fds():
    return len(os.listdir("/proc/%d/fd" % node.processes()["supervisor"]))


def cpu_ticks():
    with open("/proc/%d/stat" % node.processes()["supervisor"], encoding="utf-8") as f:
        return sum(int(n) for n in f.read().rpartition(")")[2].split()[11:13])


def hold(index, n=1000):
    held = []
    for _ in range(n):
        s = node.connect()
        s.settimeout(case.LEAST_S)
        s.sendall(b"GET /v1/jobs?index=%d&wait=10m HTTP/1.1\r\nHost: x\r\n\r\n" % index)
        held.append(s)
    return held


def is_full():
    with node.connect() as s:
        s.settimeout(case.LEAST_S)
        s.sendall(b"GET /v1/jobs?index=%d&wait=1ms HTTP/1.0\r\n\r\n" % NEVER)
        return b" 429 " in s.recv(4096).split(b"\r\n")[0]


def test_a_thousand_queries_wait_at_little_cost():
    before = fds()
    held = hold(NEVER)
    case.until(is_full, 60, "the 1001st to be refused")
    node.refused(429, "1000 blocking queries are already waiting", "GET", "/v1/jobs?index=%d" % NEVER)
    case.equal(node.ask("/v1/jobs"), [], "the jobs, by a query that does not wait")

    def is_quiet():
        ticks = cpu_ticks()
        time.sleep(3)
        return cpu_ticks() - ticks < 20
    case.until(is_quiet, 60, "three seconds that use less than 0.2 s of CPU time")
    for s in held:
        s.close()
    case.until(lambda: fds() <= before, 30, "the disconnected clients to be removed")
    held = hold(index_of("/v1/jobs"))
    case.until(is_full, 60, "a thousand to wait again")
    node.register(api.job("late", "/bin/true"))
    for s in held:
        case.contains(s.recv(65536), b"HTTP/1.1 200 ")
        s.close()
    node.purge("late")


def test_a_query_with_an_index_from_before_a_restart():
    """Indexes that the killed supervisor sent but did not store are not used again."""
    node.register(api.job("kept"))
    alloc = node.wait_running("kept")[0]["ID"]
    index = index_of("/v1/allocation/" + alloc)
    old = node.kill("supervisor")
    node.wait_process("supervisor", other_than=old)
    node.wait_ready()
    case.equal(Waiting("/v1/allocation/" + alloc, index).ended().json["ClientStatus"], "running")
    node.purge("kept")


def test_queries_end_with_the_agent():
    held = hold(NEVER, 20)
    case.equal(node.stop(signal.SIGTERM), 0, "exit code")
    for s in held:
        case.equal(s.recv(65536).startswith(b"HTTP/1.1 200"), False, "answers that report a change")
        s.close()


resource.setrlimit(resource.RLIMIT_NOFILE, (4096, max(4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1])))
with api.Node() as node:
    case.run(globals())

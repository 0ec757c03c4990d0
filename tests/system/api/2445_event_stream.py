#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# takes: 61
"""The event stream: the events of each change, topics, the start index, and the cost of a slow reader."""
import json
import os
import time
import urllib.parse

from lib import api, case


class Stream:
    """Reads the lines of /v1/event/stream."""
    def __init__(self, *topics, **query):
        self.c = api.Connection(node, case.LEAST_S)
        pairs = [("topic", t) for t in topics] + list(query.items())
        self.c.request("GET", "/v1/event/stream" + ("?" + urllib.parse.urlencode(pairs) if pairs else ""))
        self.answer = self.c.getresponse()
        case.equal((self.answer.status, self.answer.headers["Content-Type"]), (200, "application/json"))
        case.equal(self.line(), {}, "the first line")

    def line(self):
        return json.loads(self.answer.readline())

    def event(self):
        """Returns the next event, which must be the only one in its line."""
        while True:
            line = self.line()
            if line:
                case.equal((len(line["Events"]), line["Index"]), (1, line["Events"][0]["Index"]))
                return line["Events"][0]

    def until(self, what, condition):
        """Reads up to the first event that satisfies the condition. Returns it and all before."""
        seen, end = [], time.monotonic() + case.LEAST_S
        while time.monotonic() < end:
            seen.append(self.event())
            if condition(seen[-1]):
                return seen[-1], seen
        raise AssertionError("no event of %s in %s" % (what, [(e["Topic"], e["Type"]) for e in seen]))

    def close(self):
        self.answer.close()
        self.c.close()


def batch(name, **more):
    """Checks that the stream ends normally."""
    made = api.job(name, "/bin/true", **more)
    made["Job"]["Type"] = "batch"
    return made


def client_status(event):
    return event["Topic"] == "Allocation" and event["Payload"]["Allocation"]["ClientStatus"]


def index():
    return int(node.request("GET", "/v1/jobs").headers["X-Nomad-Index"])


def test_events_of_the_life_of_a_job():
    stream = Stream()
    evaluation = node.register(api.job("web", group={"Services": [{"Name": "web", "Provider": "nomad"}]}))["EvalID"]
    seen = {}

    def kinds(event):
        seen[event["Topic"]] = event
        return client_status(event) == "running" and len(seen) == 4
    last, before = stream.until("a service, a job, an evaluation and an alloc that runs", lambda e: kinds(e) or
                                (len(seen) == 4 and client_status(seen["Allocation"]) == "running"))
    alloc = node.wait_running("web")[0]["ID"]
    case.equal((seen["Job"]["Type"], seen["Job"]["Key"], seen["Job"]["Namespace"], seen["Job"]["Payload"]["Job"]["ID"]),
               ("JobRegistered", "web", "default", "web"))
    case.equal((seen["Evaluation"]["Type"], seen["Evaluation"]["Key"], seen["Evaluation"]["FilterKeys"],
                seen["Evaluation"]["Payload"]["Evaluation"]["Status"]), ("EvaluationUpdated", evaluation, ["web"], "complete"))
    case.equal((seen["Allocation"]["Key"], seen["Allocation"]["FilterKeys"]), (alloc, ["web"]))
    shown = seen["Allocation"]["Payload"]["Allocation"]
    case.equal((shown["Job"], shown["TaskStates"]["t"]["State"]), (None, "running"))
    case.equal((seen["Service"]["Type"], seen["Service"]["FilterKeys"], seen["Service"]["Payload"]["Service"]["AllocID"]),
               ("ServiceRegistration", ["web", "web"], alloc))
    indexes = [e["Index"] for e in before]
    case.equal(indexes, sorted(set(indexes)), "events, each in its own line, in order")
    node.do("DELETE", "/v1/job/web")
    stopped, later = stream.until("the end of the alloc", lambda e: client_status(e) == "complete")
    case.equal(stopped["Payload"]["Allocation"]["DesiredStatus"], "stop")
    types = {e["Type"] for e in later}
    case.equal({"JobDeregistered", "ServiceDeregistration"} <= types, True, str(types))
    stream.close()
    node.purge("web")


def test_events_are_filtered_by_topic_and_namespace():
    first = index()
    a = node.register(batch("a"))["EvalID"]
    node.register(batch("b"))
    other = batch("c")
    other["Job"]["Namespace"] = "other"
    node.do("PUT", "/v1/namespace", {"Name": "other"})
    node.register(other)
    node.wait_evaluation(a)
    ids = {name: node.ask("/v1/job/%s/allocations" % name, namespace=ns)[0]["ID"]
           for name, ns in (("a", "default"), ("b", "default"), ("c", "other"))}
    for name, ns in (("a", "default"), ("b", "default"), ("c", "other")):
        case.until(lambda: node.ask("/v1/job/%s/allocations" % name, namespace=ns)[0]["ClientStatus"] == "complete", 20,
                   "the end of " + name)

    def told(*topics, **query):
        """Registers a job, and returns the events of the stream from `first` up to that of this job."""
        stream = Stream(*topics, "Job:end", index=first, **query)
        node.register(batch("end"))
        _, seen = stream.until("job end", lambda e: e["Key"] == "end")
        stream.close()
        node.purge("end")
        return {(e["Topic"], e["Key"]) for e in seen if "end" not in [e["Key"]] + e["FilterKeys"]}
    case.equal(told("Job"), {("Job", "a"), ("Job", "b")})
    case.equal(told("Job:a"), {("Job", "a")})
    case.equal(told("Allocation:" + ids["a"]), {("Allocation", ids["a"])})
    case.equal(told("Allocation:b"), {("Allocation", ids["b"])}, "events of the job")
    case.equal(told("Evaluation:a", "Job:b") >= {("Evaluation", a), ("Job", "b")}, True)
    case.equal(("Job", "a") in told("*:a") and ("Evaluation", a) in told("*:a"), True)
    case.equal(told("Job", namespace="*"), {("Job", "a"), ("Job", "b"), ("Job", "c")})
    case.equal(told("Nothing"), set())
    node.refused(400, "Invalid key value pair", "GET", "/v1/event/stream?topic=a:b:c")
    node.refused(400, "Unable to parse index", "GET", "/v1/event/stream?index=soon")
    for name in ("a", "b"):
        node.purge(name)
    node.do("DELETE", "/v1/job/c?purge=true&namespace=other")


def test_a_stream_starts_at_an_index():
    """Each object that has changed since then has one event with its present state, also a removed one."""
    first = index()
    made = batch("changing", group={"Services": [{"Name": "s", "Provider": "nomad"}]})
    node.register(made)
    alloc = node.allocs("changing")[0]["ID"]
    case.until(lambda: node.ask("/v1/allocation/" + alloc)["ClientStatus"] == "complete", 20, "the end of the alloc")
    stream = Stream("Allocation", index=first)
    case.equal(client_status(stream.event()), "complete", "one event with the present state")
    stream.close()
    node.purge("changing")
    stream = Stream("Job", "Service", index=first)
    gone, seen = stream.until("the job", lambda e: e["Topic"] == "Job")
    case.equal((gone["Type"], gone["Payload"]["Job"]["ID"]), ("JobDeregistered", "changing"))
    seen += [stream.event()] if len(seen) < 2 else []
    case.equal([e["Type"] for e in seen if e["Topic"] == "Service"], ["ServiceDeregistration"])
    stream.close()
    later = Stream(index=10**15)
    node.register(batch("unheard"))
    node.purge("unheard")
    case.equal(later.line(), {}, "a heartbeat, because no object has that index yet")
    later.close()


def test_events_of_the_node():
    me = node.ask("/v1/nodes")[0]["ID"]
    stream = Stream("Node")
    node.do("PUT", "/v1/node/%s/drain" % me, {"DrainSpec": {"Deadline": 10**9}})
    found, _ = stream.until("the drain", lambda e: e["Payload"]["Node"]["SchedulingEligibility"] == "ineligible")
    case.equal((found["Key"], "SecretID" in found["Payload"]["Node"] and found["Payload"]["Node"]["SecretID"]), (me, False))
    node.do("PUT", "/v1/node/%s/drain" % me, {"DrainSpec": None, "MarkEligible": True})
    stream.until("the node that is eligible again", lambda e: e["Payload"]["Node"]["SchedulingEligibility"] == "eligible")
    stream.close()


def test_a_silent_stream_sends_heartbeats():
    stream = Stream("Job:none")
    begun = time.monotonic()
    case.equal([stream.line(), stream.line()], [{}, {}])
    case.equal(time.monotonic() - begun >= 15, True, "seconds between heartbeats")
    stream.close()


def fds():
    return len(os.listdir("/proc/%d/fd" % node.processes()["supervisor"]))


def test_a_reader_that_reads_nothing_is_disconnected():
    """Its connection is closed and delays nobody. When it connects again it gets all missed events."""
    before, first, deaf = fds(), index(), Stream()
    names = ["large-%d" % i for i in range(20)]
    for name in names:  # one or two megabytes: more than the socket buffers
        made = api.job(name, group={"Count": 0})
        made["Job"]["Meta"] = {"text": "x" * 100000}
        node.register(made)
    case.until(lambda: fds() <= before, 180, "the connection of the slow reader to be closed")
    deaf.close()
    back, jobs = Stream("Job", index=first), []

    def all_told(event):
        jobs.extend([event["Key"]] if event["Key"] in names else [])
        return len(jobs) == len(names)
    back.until("all jobs", all_told)
    case.equal(jobs, names, "each event once, in order")
    back.close()
    for name in names:
        node.purge(name)


with api.Node() as node:
    case.run(globals())

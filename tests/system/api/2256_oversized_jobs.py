#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# takes: 25
"""Jobs that would keep the agent busy for minutes or use gigabytes: registration, plan, validation, scaling and dispatch refuse each with
an error message. Jobs just below the limits are registered."""
import json

from lib import api, case

LIST, PARTS, TEXT, PLACED = 1000, 10000, 4096, 100000000
SMALL = {"CPU": 1, "MemoryMB": 10}
HUGE = {"CPU": 1, "MemoryMB": 10**9}  # more than any node has: all of the job's allocations wait


def made(name="big", count=1, resources=HUGE, **group):
    """Returns a job of one group with these fields; Tasks: fields of its only task."""
    more = group.pop("Task", {})
    tasks = [api.task("t", "/bin/sleep", ["1000"], Resources=resources, **more)]
    return api.job(name, count=count, group={"Tasks": tasks, **group})


ANY = {"LTarget": "a", "RTarget": "a"}  # a constraint that holds


def many(n, **item):
    return [dict(item) for _ in range(n)]


def named(n, **item):
    return [dict(item, Name="n%d" % i) for i in range(n)]


def of_whole_job(**fields):
    job = made()
    job["Job"].update(fields)
    return job


# Jobs that took minutes, gigabytes or both: the list that is too long, and a job with it.
LISTS = [
    ("ReservedPorts", made(Networks=[{"ReservedPorts": many(20000, Label="a", Value=1)}])),
    ("DynamicPorts", made(count=10000, Networks=[{"DynamicPorts": many(13000, Label="a")}])),
    ("Services", made(Services=many(20000, Name="a", Provider="nomad"))),
    ("Identities", made(Task={"Identities": named(20000)})),
    ("Actions", made(Task={"Actions": named(20000, Command="a")})),
    ("Constraints", made(count=10000, Constraints=many(200000))),
    ("Datacenters", of_whole_job(Datacenters=["a"] * 100000)),
    ("Tasks", made(Tasks=many(200000))),
    ("TaskGroups", of_whole_job(TaskGroups=many(200000))),
    ("MetaOptional", of_whole_job(Type="batch", ParameterizedJob={"MetaOptional": ["%x" % i for i in range(100000)]})),
    ("Affinities", made(Affinities=[{"LTarget": "%x" % i} for i in range(LIST + 1)])),
    ("Volumes", made(count=10000, Volumes={"v%d" % i: {
        "Type": "csi", "Source": "x", "PerAlloc": True, "AccessMode": "multi-node-multi-writer",
        "AttachmentMode": "file-system"} for i in range(LIST + 1)})),
]


def ask(path, job):
    return node.request("PUT", path, json.dumps(job, separators=(",", ":")).encode())


def refused(job, sentence):
    for path in ("/v1/jobs", "/v1/job/big/plan"):
        answer = ask(path, job)
        case.equal((answer.status, sentence in answer.text), (400, True), "%s: %s" % (path, answer.text[:300]))
    case.contains(ask("/v1/validate/job", job).json["Error"], sentence)


def test_lists_that_are_too_long():
    for name, job in LISTS:
        refused(job, "%s: the list has " % name)
    case.equal(node.ask("/v1/jobs"), [], "jobs")


def test_too_many_elements_in_all_lists_together():
    group = made()["Job"]["TaskGroups"][0]
    refused(of_whole_job(TaskGroups=[dict(group, Name="g%d" % i, Constraints=many(LIST, **ANY)) for i in range(10)]),
            "elements in all, but at most %d are allowed" % PARTS)


def test_too_many_volumes_of_a_group():
    """The agent tracks at most 64 volumes of an allocation."""
    refused(made(Volumes={"v%d" % i: {"Type": "host", "Source": "x"} for i in range(65)}), "a group can have at most 64 volumes")


def test_texts_that_are_too_long():
    """Each text would be copied for each element of another list, or for each allocation."""
    for name, job in (("Name", of_whole_job(Name="x" * 400000)),
                      ("Name", made(Services=[{"Name": "${JOB}" * 60000, "Provider": "nomad"}])),
                      ("OnUpdate", made(Services=[{"Name": "a", "OnUpdate": "x" * 500000, "Checks": many(LIST)}])),
                      ("HealthCheck", of_whole_job(Update={"HealthCheck": "x" * 500000})),
                      ("Label", made(count=5000, Networks=[{"ReservedPorts": [{"Label": "x" * 500000, "Value": 9, "IgnoreCollision": True}]}]))):
        refused(job, "%s: the text has " % name)
    refused(of_whole_job(Name="x" * 256), "the job's name has more than 255 bytes")
    refused(made(count=1000, Services=[{"Name": "a", "Provider": "nomad", "Tags": ["x" * 500000]}]), "at most %d bytes are allowed" % PLACED)


def test_a_periodic_time_that_never_occurs():
    """The search for a launch time is long if daylight saving skips the only hour: it is done once."""
    job = made(resources=SMALL)
    job["Job"].update(Type="batch", Periodic={"Specs": ["* * 2 ? 3 0L *"] * 100, "TimeZone": "Europe/Berlin"})
    answer = ask("/v1/jobs", job)
    case.equal((answer.status, answer.text.count("matches no future time")), (400, 1), answer.text)


def test_too_many_elements_of_all_allocations():
    """Also of a small job that is scaled."""
    refused(made(count=2000, Constraints=many(900, **ANY)), "at most %d bytes are allowed" % PLACED)
    job = made(count=1, Constraints=many(900, **ANY))
    node.register(job)
    node.refused(400, "at most %d bytes are allowed" % PLACED, "PUT", "/v1/job/big/scale", {"Count": 10000, "Target": {"Group": "g"}})
    case.equal(node.ask("/v1/job/big")["TaskGroups"][0]["Count"], 1)
    node.do("DELETE", "/v1/job/big?purge=true")


def test_jobs_just_below_the_limits_are_registered():
    """Just below the limits; and as many allocations of a small job as before."""
    for job in (made(count=1000, Constraints=many(LIST - 30, **ANY)), made(count=10000),
                made(Networks=[{"DynamicPorts": [{"Label": "p%d" % i} for i in range(LIST)]}]),
                made(Task={"Templates": [{"DestPath": "local/long", "EmbeddedTmpl": "x" * 100000}]})):
        node.register(job)
        node.do("DELETE", "/v1/job/big?purge=true")


def test_too_much_metadata_of_a_dispatch():
    job = made("parent", resources=SMALL)
    job["Job"].update(Type="batch", ParameterizedJob={"MetaOptional": ["%x" % i for i in range(LIST)]})
    node.register(job)
    node.refused(400, "unpermitted metadata keys", "PUT", "/v1/job/parent/dispatch", {"Meta": {"%x" % i: "" for i in range(80000)}})
    node.do("PUT", "/v1/job/parent/dispatch", {"Meta": {"%x" % i: "x" for i in range(LIST)}})


def test_error_messages_of_a_job_with_many_errors_are_bounded():
    """A job may have ten thousand errors: only the first are reported."""
    job = made(Services=many(LIST, Name="a", Provider="nomad"))
    answer = ask("/v1/jobs", job)
    case.equal(answer.status, 400)
    case.contains(answer.text, "two services have this name and the same port")


def test_the_supervisor_was_not_restarted_and_its_memory_is_bounded():
    with open("/proc/%d/status" % node.processes()["supervisor"], encoding="ascii") as f:
        peak = int(next(line for line in f if line.startswith("VmHWM")).split()[1])
    case.equal(node.processes()["supervisor"], supervisor, "the supervisor")
    case.equal(peak < 400 * 1024, True, "peak memory of the supervisor: %d kB" % peak)
    node.register(made("plain", resources=SMALL))
    node.wait_running("plain")
    node.purge("plain")


with api.Node() as node:
    supervisor = node.processes()["supervisor"]
    case.run(globals())

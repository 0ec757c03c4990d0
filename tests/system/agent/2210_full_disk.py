#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A full disk: changes are refused with an error message, tasks keep running, and nothing has to be repaired afterwards."""
import json
import os
import re
import select
import signal

from lib import api, case, helper


def fill(path):
    """Writes until no byte is free."""
    with open(path, "wb", buffering=0) as f:
        size = 1 << 20
        while size > 0:
            try:
                f.write(b"x" * size)
            except OSError:
                size //= 2


def sent_together(name):
    """Sends a change and a read that the agent handles in one turn. Returns the status of the change, and whether the read did not wait for it."""
    pid = node.kill("supervisor", signal.SIGSTOP)
    change, read = api.Connection(node, 60), api.Connection(node, 60)
    change.request("POST", "/v1/jobs", json.dumps(api.job(name)))
    read.request("GET", "/v1/agent/self")
    os.kill(pid, signal.SIGCONT)
    socks = [change.sock, read.sock]
    alone = select.select(socks, [], [], 60)[0] == [read.sock] and not select.select([change.sock], [], [], 0.2)[0]
    case.equal(read.getresponse().status, 200)
    answer = change.getresponse()
    case.equal((answer.status == 507, answer.status == 200), ("not stored yet" in (text := answer.read().decode()), answer.status != 507), text)
    for c in (change, read):
        c.close()
    return answer.status, alone


def test_a_read_does_not_wait_for_the_first_commit_that_fails():
    """A change waits a second for another try. The first changes may still find room in the file of the database."""
    def tried():
        fill(node.data + "/ballast")
        found = next(alone for status, alone in map(sent_together, ["soon-%d" % i for i in range(50)]) if status == 507)
        os.unlink(node.data + "/ballast")
        case.until(lambda: node.request("GET", "/v1/agent/health").status == 200, 10, "health")
        for j in node.ask("/v1/jobs"):
            if j["ID"] != "early":
                node.purge(j["ID"])
        return found
    case.equal(any(tried() for _ in range(5)), True, "whether the read was answered before the change")


def test_changes_are_refused_and_reads_answer():
    fill(node.data + "/ballast")

    def refused():
        answer = node.request("POST", "/v1/jobs", api.job("late"))
        case.equal(answer.status in (200, 507), True, "%d %s" % (answer.status, answer.text))
        return answer.status == 507 and answer
    case.contains(case.until(refused, 20, "a change to be refused").text, "full")
    case.equal([a["ClientStatus"] for a in node.allocs("early")], ["running"], "running allocations")
    for method in ("PUT", "DELETE"):
        case.equal(node.request(method, "/v1/var/kept", {"Items": {"k": "late"}}).status, 507)
    case.equal((node.ask("/v1/var/kept")["Items"], [v["Path"] for v in node.ask("/v1/vars")]), ({"k": "early"}, ["kept"]))
    answer = case.until(lambda: (a := node.request("GET", "/v1/agent/health")).status == 500 and a, 10, "bad health")
    case.contains(answer.json["client"]["message"], "full")
    found = [p["Text"] for p in node.ask("/v1/agent/problems") if p["Kind"] == "disk"]
    case.equal([bool(re.fullmatch("the disk of %s is (9[5-9]|100) %% full: 0 MiB are free" % node.data, t)) for t in found], [True], found)


def test_changes_are_accepted_again_when_space_is_free():
    os.unlink(node.data + "/ballast")
    case.until(lambda: node.request("GET", "/v1/agent/health").status == 200, 10, "health")
    node.register(api.job("late"))
    node.wait_running("late")
    case.equal(node.do("PUT", "/v1/var/kept", {"Items": {"k": "later"}})["Items"], {"k": "later"})
    node.kill("supervisor")
    node.wait_ready()
    case.equal([j["ID"] for j in node.ask("/v1/jobs")], ["early", "late"])
    case.equal([a["ClientStatus"] for a in node.allocs("early")], ["running"], "the allocation that ran before")
    case.equal(node.ask("/v1/var/kept")["Items"], {"k": "later"})
    node.purge("early")
    node.purge("late")
    case.equal(node.ask("/v1/agent/leaks"), [], "leaks")


top = case.directory() + "/small"
os.mkdir(top)
helper.mount("none", top, "tmpfs", 0, "size=24m")
try:
    with api.Node(data=top + "/data") as node:
        node.register(api.job("early"))
        node.wait_running("early")
        node.do("PUT", "/v1/var/kept", {"Items": {"k": "early"}})
        case.run(globals())
finally:
    helper.umount(top)

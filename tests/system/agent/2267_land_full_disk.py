#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A node whose disk is full lands and retires all the same, with the space that it keeps for that, and has it again after its next start."""
import concurrent.futures
import os
import signal
import subprocess

from lib import agent, api, case, helper
from lib.cluster import processes_of


def fill(path):
    """Writes until no byte is free."""
    with open(path, "wb", buffering=0) as f:
        size = 1 << 20
        while size > 0:
            try:
                f.write(b"x" * size)
            except OSError:
                size //= 2


def reserve():
    return os.path.getsize(node.data + "/state/reserve")


def begin(refusal=507):
    """Starts the agent with some allocations, and fills its disk until nothing can be changed any more. Returns the ids."""
    node.start()
    node.wait_ready()
    case.equal(reserve(), 4 << 20, "space that is kept")
    node.register(api.job("web", count=20))
    allocs = [a["ID"] for a in node.wait_running("web", 20)]
    fill(node.data + "/ballast")
    case.until(lambda: node.request("POST", "/v1/jobs", api.job("late")).status == refusal, 20, "a change to be refused")
    return allocs


def check_end(allocs):
    case.equal(node.wait(), 0, "the agent's end")
    case.equal([p for a in allocs for p in processes_of(a)], [], "processes of tasks")
    case.equal(reserve() < 4 << 20, True, "space was used")
    os.unlink(node.data + "/ballast")


def test_landing():
    allocs = begin()
    me = node.ask("/v1/nodes")[0]["ID"]
    case.equal(node.do("PUT", "/v1/agent/land", {"Deadline": 0})["State"], "landing")
    check_end(allocs)
    node.start()
    node.wait_ready()
    case.equal((node.ask("/v1/agent/departure")["State"], node.ask("/v1/nodes")[0]["ID"], reserve()), ("running", me, 4 << 20))
    case.equal({a["ID"]: a["ClientStatus"] for a in node.allocs("web") if a["ID"] in allocs}, {a: "complete" for a in allocs})
    node.purge("web")
    node.stop()


def test_a_landing_that_cannot_go_on():
    """Without the space that is kept, who waits for the end hears why it does not come; it comes when the disk has space again."""
    with open(node.data + "/first", "wb") as f:
        f.write(bytes(30 << 20))
    os.unlink(node.data + "/state/reserve")
    node.start()
    node.wait_ready()
    case.equal(reserve(), 0, "space that is kept")
    batch = api.job("slow")
    batch["Job"]["Type"] = "batch"
    for member in ("ReschedulePolicy", "Update"):
        batch["Job"]["TaskGroups"][0].pop(member)
    node.register(batch)
    alloc = node.wait_running("slow")[0]["ID"]
    case.equal(node.do("PUT", "/v1/agent/land", {"Deadline": 0})["State"], "landing")

    def hears_why():
        """Whether the request was waiting already when the disk became full; else it was refused at once."""
        with concurrent.futures.ThreadPoolExecutor() as pool:
            waiting = pool.submit(node.request, "PUT", "/v1/agent/land?wait=true", {"Deadline": 0})
            fill(node.data + "/ballast")
            case.until(lambda: node.request("POST", "/v1/jobs", api.job("late")).status == 507, 20, "a change to be refused")
            answer = waiting.result()
        node.refused(507, "the node stays landing, because that cannot be stored: ", "PUT", "/v1/agent/land", {"Deadline": 0})
        os.unlink(node.data + "/ballast")
        case.until(lambda: node.request("PUT", "/v1/agent/land", {"Deadline": 0}).status == 200, 20, "space")
        case.equal(answer.status, 507, answer.text)
        return "the node is landing, and goes on as soon as it can store that: " in answer.text
    case.until(hears_why, 120, "the answer of a request that waits")
    for pid in processes_of(alloc):
        os.kill(pid, signal.SIGKILL)
    case.equal(node.wait(), 0, "the agent's end")
    os.unlink(node.data + "/first")
    node.start()
    node.wait_ready()
    node.purge("slow")
    node.stop()


def test_landing_with_an_audit_log_on_the_disk():
    before = node
    with api.Node(agent.config_args("audit { enabled = true }"), data=top + "/audited") as globals()["node"]:
        node.stop()
        allocs = begin(refusal=500)
        answer = node.request("GET", "/v1/agent/health?deep=1", timeout=60)
        bad = [name for name, c in answer.json["components"].items() if c["state"] in ("failed", "hung")]
        case.equal((answer.status, bad, answer.json["components"]["audit"]["state"]), (503, ["disk"], "unknown"))
        case.equal(node.do("PUT", "/v1/agent/land", {"Deadline": 0})["State"], "landing")
        check_end(allocs)
        case.contains(node.log(), '"endpoint":"/v1/agent/land"')
    subprocess.run(["rm", "-r", top + "/audited"], check=True)
    globals()["node"] = before


def test_retiring_by_a_signal():
    allocs = begin()
    node.process.send_signal(signal.SIGUSR2)
    check_end(allocs)
    node.start()
    case.equal(node.wait(), 78, "a start of a node that is retired")


top = case.directory() + "/small"
os.mkdir(top)
helper.mount("none", top, "tmpfs", 0, "size=40m")
try:
    with api.Node(data=top + "/data") as node:
        node.stop()
        case.run(globals())
finally:
    helper.umount(top)

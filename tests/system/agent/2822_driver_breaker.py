#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# takes: 20
"""A driver that does not work on this node: after some failures in a row new starts wait, with the reason, until it works again."""
import os
import re

from lib import api, case, helper
from lib.watch import Watch

PATIENT = {"Attempts": 100, "Interval": 10**12, "Delay": 5 * 10**7, "Mode": "delay"}


def healthy():
    node_id = node.ask("/v1/nodes")[0]["ID"]
    found = node.ask("/v1/node/" + node_id)["Drivers"]["raw_exec"]
    return found["Healthy"], found["HealthDescription"]


def messages():
    return [e["Message"] for e in node.ask("/v1/node/" + node.ask("/v1/nodes")[0]["ID"])["Events"] or [] if e["Subsystem"] == "Driver"]


def events(name):
    return [e["DisplayMessage"] for e in node.allocs(name)[0]["TaskStates"]["t"]["Events"]]


def patient(name, command="/bin/sleep"):
    return api.job(name, command, group={"RestartPolicy": PATIENT})


def components():
    """Returns what a probe finds."""
    return node.request("GET", "/v1/agent/health?deep=1").json["components"]


def metric():
    """Returns {driver: value} of drover_driver_healthy."""
    return dict(re.findall(r'^drover_driver_healthy\{driver="(\w+)"\} (\S+)$', node.request("GET", "/v1/metrics?format=prometheus").text, re.M))


def test_tasks_that_are_wrong_stop_no_driver():
    for i in range(8):
        node.register(patient("wrong-%d" % i, "/does/not/exist"))
        case.until(lambda: node.allocs("wrong-%d" % i)[0]["ClientStatus"] == "failed", 30, "a failed start")
        node.purge("wrong-%d" % i)
    case.equal((healthy(), messages()), ((True, "Healthy"), []))


def test_a_driver_that_does_not_work_is_stopped_and_tried_again():
    node.register(patient("early"))
    node.wait_running("early")
    case.write(limit, "0")
    node.register(patient("late"))
    (_, why) = case.until(lambda: not (found := healthy())[0] and found, 60, "the driver to be unhealthy")
    case.contains(why, "start its task: make cgroup")
    with Watch(node):
        found = components()
    case.equal({n for n, c in found.items() if c["state"] != "ok"}, {"driver/exec", "driver/raw_exec"}, "what a probe says is bad")
    text = "driver raw_exec does not work on this node: " + why
    case.until(lambda: text in events("late"), 30, "the event of a start that waits")
    case.contains(node.drover("alloc", "why", node.allocs("late")[0]["ID"]).out, "Driver raw_exec does not work on this node: ")
    restarts = node.allocs("late")[0]["TaskStates"]["t"]["Restarts"]
    case.equal(metric()["raw_exec"], "0")
    # Nothing is placed for the driver, and what runs is not touched.
    node.register(patient("third"))
    case.contains(node.drover("job", "status", "third").out, "driver raw_exec is unhealthy")
    case.equal(node.allocs("third"), [], "allocations for a driver that does not work")
    case.equal([a["ClientStatus"] for a in node.allocs("early")], ["running"])
    case.equal(node.allocs("late")[0]["TaskStates"]["t"]["Restarts"], restarts, "restarts meanwhile")
    case.equal(messages(), ["Driver raw_exec is unhealthy: " + why])
    case.write(limit, "max")
    case.until(lambda: healthy()[0], 120, "the driver to be healthy")
    node.wait_running("late")
    node.wait_running("third")
    case.equal(({name: metric()[name] for name in ("exec", "raw_exec")}, messages()[1:]), ({"exec": "1", "raw_exec": "1"}, ["Driver raw_exec is healthy"]))
    for name in ("early", "late", "third"):
        node.purge(name)


def test_a_driver_that_cannot_be_probed_is_not_unhealthy():
    """While the disk is nearly full probes start no task, so none of them says that the driver does not work."""
    before, ballast = len(messages()), node.data + "/ballast"
    case.write(limit, "0")
    disk = os.statvfs(node.data)
    with open(ballast, "wb") as f:
        os.posix_fallocate(f.fileno(), 0, disk.f_bavail * disk.f_frsize - (8 << 20))
    node.register(patient("tried"))
    case.until(lambda: node.allocs("tried")[0]["TaskStates"]["t"]["Restarts"] >= 8, 60, "starts that failed")
    case.equal(components()["driver/raw_exec"]["message"], "not checked: a task needs disk")
    case.equal((healthy()[0], messages()[before:]), (True, []))
    os.unlink(ballast)
    case.until(lambda: not healthy()[0], 60, "the driver to be unhealthy")
    case.contains(healthy()[1], "start its task: make cgroup")
    case.write(limit, "max")
    node.wait_running("tried", seconds=60)
    node.purge("tried")


data = case.directory() + "/data"
os.mkdir(data)
helper.mount("tmpfs", data, "tmpfs", 0, "size=128m,mode=0711")
try:
    with api.Node(data=data) as node:
        with open(node.data + "/instance", encoding="ascii") as instance:
            limit = "%s/drover-%s/tasks/cgroup.max.descendants" % (helper.cgroup_trees()["v2"], instance.read().strip())
        if not os.path.exists(limit):
            case.skip("no limit of cgroups here")
        case.run(globals())
finally:
    helper.umount(data, 2)

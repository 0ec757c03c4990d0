#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# takes: 30
"""The driver docker does not work on this node: after some failures in a row new containers wait, with the reason, until a probe has started one."""
import os
import shutil

from lib import api, case, helper, images, web

PATIENT = {"Attempts": 100, "Interval": 10**12, "Delay": 5 * 10**7, "Mode": "delay"}
IMAGE = images.Image([images.tar(images.busybox("sh", "sleep"))], {"Env": ["PATH=/bin"]})


def container(name, command="/bin/sleep"):
    made = api.job(name, driver="docker", group={"RestartPolicy": PATIENT})
    made["Job"]["TaskGroups"][0]["Tasks"][0]["Config"] = {"image": images.name(server, "a:1"), "command": command, "args": ["1000"], "network_mode": "none"}
    return made


def this_node():
    return node.ask("/v1/node/" + node.ask("/v1/nodes")[0]["ID"])


def healthy(driver="docker"):
    return this_node()["Drivers"][driver]["Healthy"]


def messages():
    return [e["Message"] for e in this_node()["Events"] or [] if e["Subsystem"] == "Driver"]


def components():
    """Returns what a probe says of drivers."""
    found = node.request("GET", "/v1/agent/health?deep=1").json["components"]
    return {name[len("driver/"):]: c["state"] for name, c in found.items() if name.startswith("driver/")}


def test_images_that_are_wrong_stop_no_driver():
    node.register(container("wrong", "/does/not/exist"))
    case.until(lambda: node.allocs("wrong")[0]["ClientStatus"] == "failed", 60, "a failed start")
    node.purge("wrong")
    case.equal((healthy(), messages(), components()), (True, [], {"exec": "ok", "raw_exec": "ok"}))


def test_a_driver_that_does_not_work_is_stopped_and_tried_again():
    node.register(container("early"))
    early = node.wait_running("early", seconds=60)[0]
    case.write(limit, "0")
    node.register(container("late"))
    case.until(lambda: not healthy(), 60, "the driver to be unhealthy")
    why = this_node()["Drivers"]["docker"]["HealthDescription"]
    case.contains(why, "start its task: make cgroup")
    case.equal((messages(), healthy("podman"), healthy("raw_exec")), (["Driver docker is unhealthy: " + why], True, True))
    case.equal(components(), {"docker": "failed", "exec": "failed", "raw_exec": "failed"})
    node.register(container("third"))
    case.contains(node.drover("job", "status", "third").out, "driver docker is unhealthy")
    case.equal(node.allocs("third"), [], "allocations for a driver that does not work")
    node.replace_supervisor()
    case.equal((healthy(), node.ask("/v1/allocation/" + early["ID"])["ClientStatus"]), (False, "running"), "after a restart")
    case.write(limit, "max")
    case.until(healthy, 120, "the driver to be healthy")
    case.equal(messages()[1:], ["Driver docker is healthy"])
    for name in ("late", "third"):
        node.wait_running(name, seconds=60)
    case.equal(components(), {"exec": "ok", "raw_exec": "ok"})
    for name in ("early", "late", "third"):
        node.purge(name)
    left = [name for place in ("/alloc", "/logs") for name in os.listdir(node.data + place) if name[0] != "."]
    case.equal((node.ask("/v1/agent/leaks"), left), ([], []), "what is left")


if not shutil.which("skopeo") or not os.path.exists("/bin/busybox"):
    case.skip("no skopeo, or no busybox-static")
with web.Server(images.registry({"a": {"1": IMAGE}})) as server:
    with api.Node() as node:
        with open(node.data + "/instance", encoding="ascii") as instance:
            limit = "%s/drover-%s/tasks/cgroup.max.descendants" % (helper.cgroup_trees()["v2"], instance.read().strip())
        if not os.path.exists(limit):
            case.skip("no limit of cgroups here")
        case.run(globals())

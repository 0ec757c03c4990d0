#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# takes: 25
"""A driver that does not work on a node of servers: they get its health with the reason, and again when it works."""
import os

from lib import case, helper
from lib.cluster import displays, job, node_of, processes_of, servers as cluster

SKOPEO = "/usr/bin/skopeo"
PATIENT = {"Attempts": 100, "Interval": 10**12, "Delay": 5 * 10**7, "Mode": "delay"}


def limit_of(node):
    """Returns the limit on the number of the tasks' cgroups: without any, no task starts."""
    trees = helper.cgroup_trees()
    with open(node.data + "/instance", encoding="ascii") as f:
        path = "%s/drover-%s/tasks/cgroup.max.descendants" % (trees.get("v2"), f.read().strip())
    if not os.path.exists(path):
        case.skip("no limit of cgroups here")
    return path


def test_servers_get_the_health_of_a_driver():
    for version in ("2.0.5", "1.6.10"):
        with cluster(version=version) as servers, node_of(servers) as node:
            limit, me = limit_of(node), servers.wait_node()["ID"]

            def driver():
                found = servers.node(me)["Drivers"]["raw_exec"]
                return found["Detected"], found["Healthy"], found["HealthDescription"]

            def told():
                return [e["Message"] for e in servers.node(me)["Events"] or () if e["Subsystem"] == "Driver"]
            early = servers.run_job(job("early", group={"RestartPolicy": PATIENT}), me)[0]
            servers.wait_alloc(early, ["running"])
            pids = processes_of(early)
            case.equal(driver(), (True, True, "Healthy"))
            case.write(limit, "0")
            late = servers.run_job(job("late", group={"RestartPolicy": PATIENT}), me)[0]
            why = case.until(lambda: not (found := driver())[1] and found, 60, "the servers to have an unhealthy driver")[2]
            case.contains(why, "start its task: make cgroup")
            node_says = node.ask("/v1/node/" + me)["Drivers"]["raw_exec"]
            case.equal((node_says["Healthy"], node_says["HealthDescription"]), (False, why))
            case.until(lambda: told() == ["Driver raw_exec is unhealthy: " + why], 30, "the event")
            case.until(lambda: "driver raw_exec does not work on this node: " + why in displays(servers.alloc(late)), 30, "the reason for the wait")
            # The node is none the worse: it is ready, eligible, and its work goes on.
            shown = servers.node(me)
            case.equal((shown["Status"], shown["SchedulingEligibility"], shown["Drivers"]["exec"]["Healthy"]), ("ready", "eligible", True))
            case.equal(shown["Attributes"]["driver.raw_exec.unhealthy"], "1", "what makes it a node of another class")
            case.equal((servers.alloc(early)["ClientStatus"], processes_of(early)), ("running", pids))
            case.equal(servers.alloc(late)["ClientStatus"], "pending")
            case.write(limit, "max")  # the next probe of the driver finds that it works
            case.until(lambda: driver() == (True, True, "Healthy"), 120, "the servers to have a healthy driver")
            case.equal({name for name in servers.node(me)["Attributes"] if name.startswith("driver.raw_exec")}, {"driver.raw_exec"})
            servers.wait_alloc(late, ["running"])
            case.until(lambda: told()[1:] == ["Driver raw_exec is healthy"], 30, "the event")


def test_servers_place_nothing_for_a_driver_that_lacks_something():
    """The node registers without it, and has it as soon as skopeo is there."""
    if not os.path.exists(SKOPEO):
        case.skip("no skopeo")
    with helper.hidden(SKOPEO) as uncover, cluster() as servers, node_of(servers):
        me = servers.wait_node()["ID"]

        def driver():
            found = servers.node(me)
            return found["Drivers"]["docker"]["Healthy"], {name for name in found["Attributes"] if name in ("driver.docker", "driver.docker.unhealthy")}
        case.equal(driver(), (False, {"driver.docker.unhealthy"}))
        case.contains(servers.node(me)["Drivers"]["docker"]["HealthDescription"], "install the package skopeo")
        uncover()
        case.until(lambda: driver() == (True, {"driver.docker"}), 120, "the servers to have the driver")


case.run(globals())

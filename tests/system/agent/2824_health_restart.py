#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# takes: 30
"""What a probe or a driver's failed starts have said is bad stays so over a restart of the agent, and the event of its end comes after it."""
import os
import signal

from lib import api, case, helper

PATIENT = {"Attempts": 100, "Interval": 10**12, "Delay": 5 * 10**7, "Mode": "delay"}


def this_node():
    return node.ask("/v1/node/" + node.ask("/v1/nodes")[0]["ID"])


def messages(*subsystems):
    return [e["Message"] for e in this_node()["Events"] or [] if e["Subsystem"] in subsystems]


def probe():
    return node.request("GET", "/v1/agent/health?deep=1").status


def kill_all():
    node.kill_launcher()
    node.start()
    node.wait_ready()


def reload():
    old = node.processes()["supervisor"]
    node.process.send_signal(signal.SIGHUP)
    node.wait_process("supervisor", old)
    node.wait_ready()


def test_a_component_that_is_good_again_after_a_restart():
    ballast, wanted = node.data + "/ballast", []
    for restart in (node.replace_supervisor, reload, kill_all):
        disk = os.statvfs(node.data)
        with open(ballast, "wb") as f:
            os.posix_fallocate(f.fileno(), 0, disk.f_bavail * disk.f_frsize - (8 << 20))
        case.equal(probe(), 503)
        found = messages("Disk")
        case.equal((found[:-1], "disk has failed: " in found[-1]), (wanted, True), found)
        restart()
        case.equal((probe(), messages("Disk")), (503, found), "a probe after the restart, and events")
        restart()
        os.unlink(ballast)
        case.until(lambda: probe() == 200, 60, "a good probe")
        wanted = found + ["disk works again"]
        case.equal(messages("Disk"), wanted)
        case.equal((probe(), messages("Disk")), (200, wanted), "another probe")


def test_a_component_that_no_longer_exists():
    gone = case.directory()
    case.write(config, 'client {\n  host_volume "gone" { path = "%s" }\n}\n' % gone)
    reload()
    os.rmdir(gone)
    case.equal(probe(), 503)
    found = messages("Health")
    case.contains(found[-1], "host-volume/gone has failed: ")
    case.write(config, "")
    reload()
    case.until(lambda: probe() == 200, 60, "a good probe")
    case.equal(messages("Health"), found + ["host-volume/gone no longer exists"])


def test_a_driver_that_does_not_work_is_stopped_after_a_restart_too():
    if not os.path.exists(limit):
        case.skip("no limit of cgroups here")
    case.write(limit, "0")
    node.register(api.job("late", group={"RestartPolicy": PATIENT}))
    case.until(lambda: not this_node()["Drivers"]["raw_exec"]["Healthy"], 60, "the driver to be unhealthy")
    why, found = this_node()["Drivers"]["raw_exec"]["HealthDescription"], messages("Driver")
    case.equal(found, ["Driver raw_exec is unhealthy: " + why])
    for restart in (node.replace_supervisor, reload):
        restart()
        driver = this_node()["Drivers"]["raw_exec"]
        case.equal((driver["Healthy"], driver["HealthDescription"], messages("Driver")), (False, why, found))
    case.write(limit, "max")
    node.wait_running("late", seconds=120)
    case.equal((this_node()["Drivers"]["raw_exec"]["Healthy"], messages("Driver")), (True, found + ["Driver raw_exec is healthy"]))
    reload()
    case.equal(this_node()["Drivers"]["raw_exec"]["Healthy"], True)
    node.purge("late")


top = case.directory()
data, config = top + "/data", case.write(top + "/agent.hcl", "")
os.chmod(config, 0o600)
os.mkdir(data)
helper.mount("tmpfs", data, "tmpfs", 0, "size=128m,mode=0711")
try:
    with api.Node(["-config", config], data=data) as node:
        with open(node.data + "/instance", encoding="ascii") as instance:
            limit = "%s/drover-%s/tasks/cgroup.max.descendants" % (helper.cgroup_trees()["v2"], instance.read().strip())
        case.run(globals())
finally:
    helper.umount(data, 2)

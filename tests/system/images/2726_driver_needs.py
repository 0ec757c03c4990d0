#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# takes: 60
"""The drivers docker and podman on a machine that lacks what containers need: the node says so before the first start, and until it has it."""
import contextlib
import os
import shutil

from lib import api, case, helper, images, networks, service, web

SKOPEO, NAMESPACES = "/usr/bin/skopeo", "/proc/sys/user/max_user_namespaces"
NO_SKOPEO = "container images are fetched by skopeo, and there is no /usr/bin/skopeo: install the package skopeo"
NO_NAMESPACES = "containers need user namespaces, and user.max_user_namespaces is 0: set it with sysctl"
NO_IDS = "mount the task's directories: Invalid argument: the file system of the data directory must be able to map ids, as ext4, XFS and btrfs are"
PATIENT = {"Attempts": 100, "Interval": 10**12, "Delay": 5 * 10**7, "Mode": "delay"}
IMAGE = images.Image([images.tar(images.busybox("sh", "sleep"))], {"Env": ["PATH=/bin"], "Cmd": ["/bin/sleep", "1000"]})


def container(name, image="a:1", **config):
    made = api.job(name, driver="docker", group={"RestartPolicy": PATIENT})
    made["Job"]["TaskGroups"][0]["Tasks"][0]["Config"] = {"image": images.name(server, image), "network_mode": "none", **config}
    return made


def this_node(node):
    return node.ask("/v1/node/" + node.ask("/v1/nodes")[0]["ID"])


def driver(node, name="docker"):
    """Returns whether the driver is detected and healthy, and why."""
    found = this_node(node)["Drivers"][name]
    return found["Detected"], found["Healthy"], found["HealthDescription"]


def attributes(node, name="docker"):
    me, start = this_node(node), "driver." + name
    case.equal({k for k in me["Drivers"][name]["Attributes"] or {} if k.startswith(start)},
               {k for k in me["Attributes"] if k.startswith(start) and k != start + ".unhealthy"}, "attributes of the driver and of the node")
    return {k for k in me["Attributes"] if k.startswith(start)}


def messages(node, name="docker"):
    return [e["Message"] for e in this_node(node)["Events"] or [] if e["Message"].startswith("Driver %s is" % name)]


def probed(node, name="docker"):
    found = node.request("GET", "/v1/agent/health?deep=1").json["components"].get("driver/" + name)
    return found and (found["state"], found["message"])


def test_a_need_is_told_before_the_first_start_and_until_it_is_there():
    with helper.hidden(NAMESPACES, "0\n") as uncover_namespaces, helper.hidden(SKOPEO) as uncover_skopeo, api.Node() as node:
        for name in ("docker", "podman"):
            case.equal((driver(node, name), attributes(node, name)), ((False, False, NO_NAMESPACES), {"driver.%s.unhealthy" % name}))
        uncover_namespaces()
        case.until(lambda: driver(node) == (False, False, NO_SKOPEO), 60, "what else is missing")
        case.equal(probed(node), ("failed", NO_SKOPEO))
        node.register(container("job"))
        case.contains(node.drover("job", "status", "job").out, "missing driver docker: " + NO_SKOPEO)
        case.equal(node.allocs("job"), [], "allocations for a driver that cannot work")
        case.contains(node.drover("node", "status", "-self").out, NO_SKOPEO)
        node.replace_supervisor()
        case.equal(driver(node), (False, False, NO_SKOPEO), "after a restart")
        case.equal([node.log().count("Driver docker is unhealthy: " + why) for why in (NO_NAMESPACES, NO_SKOPEO)], [1, 1], "lines of the log")
        uncover_skopeo()
        node.wait_running("job", seconds=120)
        case.equal((driver(node), "driver.docker" in attributes(node), "driver.docker.unhealthy" in attributes(node)), ((True, True, "Healthy"), True, False))
        case.equal(messages(node), ["Driver docker is unhealthy: " + NO_NAMESPACES, "Driver docker is unhealthy: " + NO_SKOPEO, "Driver docker is healthy"])
        case.until(lambda: driver(node, "podman")[1], 120, "the other driver to be healthy")
        node.purge("job")


def test_a_need_that_is_removed_is_found_by_a_pull_and_by_a_probe():
    with api.Node() as node:
        case.equal((driver(node), probed(node), messages(node)), ((True, True, "Healthy"), None, []))
        node.register(container("early"))
        early = node.wait_running("early", seconds=60)[0]
        with helper.hidden(SKOPEO):
            case.equal((probed(node), driver(node), driver(node, "podman")), (("failed", NO_SKOPEO), (False, False, NO_SKOPEO), (False, False, NO_SKOPEO)))
            case.equal(node.ask("/v1/allocation/" + early["ID"])["ClientStatus"], "running", "a container that runs")
        case.until(lambda: driver(node)[1], 120, "the driver to be healthy")
        with helper.hidden(SKOPEO):
            node.register(container("late", "b:1"))
            case.until(lambda: not driver(node)[1], 60, "the driver to be unhealthy")
            late = node.allocs("late")[0]
            text = "driver docker does not work on this node: " + NO_SKOPEO
            case.until(lambda: text in [e["DisplayMessage"] for e in node.ask("/v1/allocation/" + late["ID"])["TaskStates"]["t"]["Events"]], 30, "the event of a start that waits")
        node.wait_running("late", seconds=120)
        node.purge("late")
        node.purge("early")


@contextlib.contextmanager
def overlay():
    """Yields a data directory on an overlayfs, which cannot map ids, on a tmpfs of 64 MiB."""
    base = case.directory()
    helper.mount("tmpfs", base, "tmpfs", 0, "size=64m,mode=0711")
    try:
        for name in ("lower", "upper", "work", "data"):
            os.mkdir(base + "/" + name)
        helper.mount("overlay", base + "/data", "overlay", 0, "lowerdir={0}/lower,upperdir={0}/upper,workdir={0}/work".format(base))
        yield base + "/data"
    finally:
        helper.umount(base + "/data", 2)
        helper.umount(base, 2)


def test_a_file_system_that_cannot_map_ids():
    """Only a start shows that. It is made at once, so no job is placed before."""
    with overlay() as data, api.Node(data=data) as node:
        case.equal(driver(node)[1], False, "healthy, before anything was tried")
        case.until(lambda: messages(node), 60, "the result of the start")
        case.contains(driver(node)[2], NO_IDS)
        node.register(container("job"))
        case.contains(node.drover("job", "status", "job").out, NO_IDS)
        case.equal((node.allocs("job"), driver(node, "exec")[1]), ([], True), "allocations; another driver")


def test_a_driver_that_cannot_be_tried_is_not_unhealthy():
    """As while the disk is nearly full: then no probe starts a task. Nobody is told of it."""
    with overlay() as data:
        disk = os.statvfs(data)
        with open(data + "/../ballast", "wb") as f:
            os.posix_fallocate(f.fileno(), 0, disk.f_bavail * disk.f_frsize - (12 << 20))
        with api.Node(data=data) as node:
            case.until(lambda: driver(node) == (True, True, "Healthy"), 60, "the driver to be healthy")
            case.equal((messages(node), "driver.docker" in attributes(node), "driver.docker.unhealthy" in attributes(node)), ([], True, False))


def test_what_the_operator_enabled_is_a_problem_of_the_node():
    with service.Users(), helper.hidden(SKOPEO) as uncover, service.Node('plugin "docker" { config { enabled = true } }\n') as node:
        case.equal((driver(node), attributes(node), driver(node, "podman")), ((True, False, NO_SKOPEO), {"driver.docker.unhealthy"}, (False, False, "disabled")))
        case.contains(node.drover("status").out, "driver docker: " + NO_SKOPEO)
        uncover()
        case.until(lambda: driver(node) == (True, True, "Healthy"), 120, "the driver to be healthy")


def test_networks_need_more():
    with helper.hidden("/usr/sbin/iptables"), api.Node() as node:
        (detected, healthy, why) = driver(node)
        case.equal((detected, healthy, "driver.docker.bridge_ip" in attributes(node)), (True, True, False))
        case.contains(why, "Healthy, but containers in a bridge network, which is their default, cannot start: there is no iptables in ")
        case.contains(why, ": install the package iptables; then reload the agent")
        node.register(container("bridge", network_mode="bridge"))
        case.contains(node.drover("job", "status", "bridge").out, "missing network bridge: this machine lacks CNI plugins or iptables")
        case.equal(node.allocs("bridge"), [])
        node.register(container("none"))
        node.wait_running("none", seconds=60)
        for name in ("bridge", "none"):
            node.purge(name)


if not shutil.which("skopeo") or not os.path.exists("/bin/busybox") or not networks.PLUGINS:
    case.skip("no skopeo, no busybox-static, or no CNI plugins")
with web.Server(images.registry({"a": {"1": IMAGE}, "b": {"1": IMAGE}})) as server:
    case.run(globals())

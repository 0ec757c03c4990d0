# SPDX-License-Identifier: Apache-2.0
# takes: 20
"""A CSI plugin as a privileged container: it serves volumes to exec tasks and to containers. Without the permission of the node it is refused."""
import os
import re
import shutil

from lib import agent, api, binary, case, images, volumes, web

SHELL = images.busybox("sh", "sleep", "cat", "echo", "id", "ls", "grep", "readlink", "touch")


PLUGIN = images.Image([images.tar(SHELL), images.tar(images.program(binary("csi-local"), "plugin/run"))],
                      {"Entrypoint": ["/plugin/run"], "Env": ["PATH=/bin", "LD_LIBRARY_PATH=/lib"]}, pack="")
BASE = images.Image([images.tar(SHELL)], {"Env": ["PATH=/bin"]})


class Node(volumes.Node):
    def register_plugin(self, args=(), **config):
        made = plugin_job(**config)
        made["Job"]["TaskGroups"][0]["Tasks"][0]["Config"]["args"] += args
        self.register(made)


def plugin_job(privileged=True, driver="docker"):
    made = api.job("csi-local", driver=driver)
    group = made["Job"]["TaskGroups"][0]
    group["Volumes"] = {"store": {"Name": "store", "Type": "host", "Source": "csi-local"}}
    group["Tasks"][0].update(
        Config={"image": images.name(server, "plugin:1"), "privileged": privileged, "network_mode": "host",
                "args": ["-root", "/store/volumes"]},
        VolumeMounts=[{"Volume": "store", "Destination": "/store"}], Resources={"CPU": 20, "MemoryMB": 200},
        CSIPluginConfig={"ID": "local", "Type": "monolith", "MountDir": "/csi", "HealthTimeout": 300 * 10**9})
    return made


def container(name, script, **config):
    made = api.job(name, driver="docker")
    made["Job"]["TaskGroups"][0]["Tasks"][0]["Config"] = {"image": images.name(server, "base:1"), "network_mode": "host", "command": "/bin/sh",
                                                        "args": ["-c", script + "; echo end; exec sleep 1000"], **config}
    return made


def said(made):
    name = made["Job"]["ID"]
    node.register(made)
    alloc = node.wait_running(name, seconds=60)[0]
    node.wait_said(alloc, b"end\n")
    text = node.logs(alloc).decode()
    node.purge(name)
    return text


def test_a_plugin_serves_a_volume_to_a_task_and_to_a_container():
    node.create("demo")
    case.contains(said(volumes.job("task", "demo", "echo from a task >/data/f; cat /data/f; echo end; sleep 1000")), "from a task\n")
    made = container("inside", "cat /data/f; id -u; echo more >>/data/f; cat /data/f")
    group = made["Job"]["TaskGroups"][0]
    group["Volumes"] = volumes.job("task", "demo", "")["Job"]["TaskGroups"][0]["Volumes"]
    group["Tasks"][0]["VolumeMounts"] = [{"Volume": "data", "Destination": "/data"}]
    case.equal(said(made), "from a task\n0\nfrom a task\nmore\nend\n", "what a container reads and writes")
    node.do("DELETE", "/v1/volume/csi/demo/delete")
    case.until(lambda: not node.published("demo"), 20, "no mount of the volume")


def test_volumes_outlive_a_restart_of_their_plugin():
    node.create("kept")
    node.register(volumes.job("user", "kept", "echo here >/data/f; while :; do cat /data/f; sleep 1; done"))
    alloc = node.wait_running("user")[0]
    node.wait_said(alloc, b"here\n")
    plugin = node.allocs("csi-local")[0]["ID"]
    node.do("PUT", "/v1/client/allocation/%s/restart" % plugin, {"TaskName": "t"})
    case.until(lambda: node.ask("/v1/allocation/" + plugin)["TaskStates"]["t"]["Restarts"] == 1 and node.plugin_is_healthy(), 60, "the plugin to be healthy again")
    case.equal(len(node.published("kept")), 1, "mounts of the volume")
    node.purge("user")
    node.do("DELETE", "/v1/volume/csi/kept/delete")
    case.until(lambda: not node.published("kept"), 20, "no mount of the volume")


def test_a_job_can_ask_for_such_a_node():
    attributes = node.ask("/v1/node/" + node.ask("/v1/nodes")[0]["ID"])["Attributes"]
    case.equal([attributes.get("driver.%s.privileged.enabled" % name) for name in ("docker", "podman")], ["1", None], "attributes")


def test_what_a_privileged_container_is():
    """It has no user namespace, all capabilities and the devices of the machine; its files on disk have the ids of containers nevertheless."""
    script = "cat /proc/self/uid_map; grep CapEff /proc/self/status; ls /dev; readlink /proc/self/ns/pid; touch /alloc/data/mine; readlink /proc/self/ns/user"
    node.register(container("privileged", script, privileged=True))
    alloc = node.wait_running("privileged", seconds=60)[0]
    node.wait_said(alloc, b"end\n")
    text = node.logs(alloc).decode()
    case.equal(text.split("\n")[0].split(), ["0", "0", "4294967295"], "the map of ids")
    with open("/proc/self/status", encoding="ascii") as f:
        case.contains(text, "CapEff:\t%s\n" % re.search(r"^CapBnd:\t(\w+)$", f.read(), re.M).group(1), "capabilities")
    case.equal(sorted(set(os.listdir("/dev")) - set(text.split())), [], "devices that the container does not have")
    case.contains(text, os.readlink("/proc/self/ns/user"), "the user namespace of the machine")
    assert os.readlink("/proc/self/ns/pid") not in text, text
    case.equal(os.stat("%s/alloc/%s/alloc/data/mine" % (node.data, alloc["ID"])).st_uid, images.ID_FILES, "owner of a file on disk")
    done = node.drover("alloc", "exec", alloc["ID"], "/bin/readlink", "/proc/self/ns/user")
    case.equal(done.out.strip(), os.readlink("/proc/self/ns/user"), "the user namespace of a session")
    node.purge("privileged")
    text = said(container("ordinary", "cat /proc/self/uid_map; readlink /proc/self/ns/user", privileged=False))
    assert os.readlink("/proc/self/ns/user") not in text, text


def test_what_is_refused():
    answer = node.request("PUT", "/v1/jobs", plugin_job(privileged=False))
    case.equal((answer.status, "a csi_plugin task in a container needs privileged = true in its config" in answer.text), (400, True), answer.text)
    answer = node.request("PUT", "/v1/jobs", plugin_job(driver="podman"))
    case.equal((answer.status, 'plugin "podman" { config { allow_privileged = true } }' in answer.text), (400, True), answer.text)
    with api.Node() as other:
        answer = other.request("PUT", "/v1/jobs", container("c", "", privileged=True))
        case.equal((answer.status, 'config.privileged is not allowed on this node: plugin "docker" { config { allow_privileged = true } }' in answer.text), (400, True), answer.text)


if not shutil.which("skopeo") or not os.path.exists("/bin/busybox"):
    case.skip("no skopeo, or no busybox-static")
with web.Server(images.registry({"plugin": {"1": PLUGIN}, "base": {"1": BASE}})) as server, \
        Node('plugin "docker" { config {\n enabled = true\n allow_privileged = true\n} }') as node:
    node.start_plugin()
    case.run(globals())
    node.purge("csi-local")
    case.until(lambda: node.ask("/v1/agent/leaks") == [], 20, "no leaks")

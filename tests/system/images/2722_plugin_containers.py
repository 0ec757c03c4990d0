# SPDX-License-Identifier: Apache-2.0
# takes: 20
"""CSI plugins as containers: a privileged one serves volumes to exec tasks and to containers, and is refused without the permission of the node. A
controller needs no privilege; hostile ones reach nothing."""
import os
import re
import shutil

from lib import agent, api, binary, build_dir, case, images, volumes, web

SHELL = images.busybox("sh", "sleep", "cat", "echo", "id", "ls", "grep", "readlink", "touch", "ln", "mkdir", "mkfifo", "nc", "seq")


PLUGIN = images.Image([images.tar(SHELL), images.tar(images.program(binary("csi-local"), "plugin/run"))],
                      {"Entrypoint": ["/plugin/run"], "Env": ["PATH=/bin", "LD_LIBRARY_PATH=/lib"]}, pack="")
BASE = images.Image([images.tar(SHELL)], {"Env": ["PATH=/bin"]})


class Node(volumes.Node):
    def register_plugin(self, args=(), **config):
        made = plugin_job(**config)
        made["Job"]["TaskGroups"][0]["Tasks"][0]["Config"]["args"] += args
        self.register(made)


def plugin_job(privileged=True, driver="docker", job="csi-local", plugin="local", kind="monolith", store="csi-local"):
    made = api.job(job, driver=driver)
    group = made["Job"]["TaskGroups"][0]
    group["Volumes"] = {"store": {"Name": "store", "Type": "host", "Source": store}}
    group["Tasks"][0].update(
        Config={"image": images.name(server, "plugin:1"), "privileged": privileged, "network_mode": "host",
                "args": ["-root", "/store/volumes", "-mode", kind]},
        VolumeMounts=[{"Volume": "store", "Destination": "/store"}], Resources={"CPU": 20, "MemoryMB": 200},
        CSIPluginConfig={"ID": plugin, "Type": kind, "MountDir": "/csi", "HealthTimeout": 300 * 10**9})
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


def counts(plugin):
    """Returns the healthy controllers and nodes of a plugin."""
    answer = node.request("GET", "/v1/plugin/csi/" + plugin)
    return (answer.json["ControllersHealthy"], answer.json["NodesHealthy"]) if answer.status == 200 else (0, 0)


def test_a_controller_needs_no_privilege():
    """It creates volumes, which the privileged container of the node mounts. Its socket belongs to no user of the machine."""
    for kind in ("controller", "node"):
        node.register(plugin_job(job="split-" + kind, plugin="split", kind=kind, privileged=kind == "node", store="private"))
    case.until(lambda: counts("split") == (1, 1), 60, "both halves of the plugin to be healthy")
    alloc = node.allocs("split-controller")[0]["ID"]
    at = "%s/csi/sock/%s" % (node.data, alloc)
    case.equal([os.stat(p).st_uid for p in (at, at + "/csi.sock")], [images.ID_FILES] * 2, "owners of its directory and socket")
    assert os.readlink("/proc/self/ns/user") not in node.drover("alloc", "exec", alloc, "/bin/readlink", "/proc/self/ns/user").out
    node.do("PUT", "/v1/client/allocation/%s/restart" % alloc, {"TaskName": "t"})
    case.until(lambda: node.ask("/v1/allocation/" + alloc)["TaskStates"]["t"]["Restarts"] == 1 and counts("split") == (1, 1), 60, "the new controller to be healthy")
    node.create("halved", PluginID="split")
    case.contains(said(volumes.job("task", "halved", "echo from a task >/data/f; cat /data/f; echo end; sleep 1000")), "from a task\n")
    node.do("DELETE", "/v1/volume/csi/halved/delete")
    case.until(lambda: not node.published("halved"), 20, "no mount of the volume")
    for kind in ("controller", "node"):
        node.purge("split-" + kind)


# What a controller puts in its directory, and what the agent says of it.
HOSTILE = {
    "link": ("ln -s /run/../etc/passwd /csi/csi.sock", "csi.sock: Too many levels of symbolic links"),
    "dir": ("mkdir /csi/csi.sock", "csi.sock is not a socket"),
    "fifo": ("mkfifo /csi/csi.sock", "csi.sock is not a socket"),
    "many": ("cd /csi; for i in $(seq 2000); do echo >$i; done; for i in $(seq 200); do mkdir d; cd d; done; echo >f", "the plugin does not listen at its CSI_ENDPOINT"),
}


def test_hostile_controllers_reach_nothing():
    """Each is told what is wrong with its socket, and what it made is removed with it."""
    for name, (script, _) in HOSTILE.items():
        made = container(name, "umask 0; echo x >/csi/x && ls -ln /csi; ln /proc/1/exe /csi/exe; " + script)
        made["Job"]["TaskGroups"][0]["Tasks"][0]["CSIPluginConfig"] = {"ID": "evil-" + name, "Type": "controller", "MountDir": "/csi", "HealthTimeout": 300 * 10**9}
        node.register(made)
    for name, (_, sentence) in HOSTILE.items():
        alloc = node.wait_running(name, seconds=60)[0]
        node.wait_said(alloc, b"end\n")
        case.until(lambda a=alloc, s=sentence: s in node.events(a["ID"]), 60, "what is wrong with %s" % name)
        at = "%s/csi/sock/%s" % (node.data, alloc["ID"])
        case.equal(os.stat(at).st_mode & 0o7777, 0o700, "mode of its directory")
        case.equal(os.listdir(at).count("exe"), 0, "links to files of other mounts")
        case.equal(counts("evil-" + name), (0, 0), name)
        node.purge(name)
        case.until(lambda p=at: not os.path.exists(p), 60, "its directory to be removed")
    case.until(lambda: os.listdir(node.data + "/csi/sock/.trash") == [], 60, "the trash to be removed: %s" % os.listdir(node.data + "/csi/sock"))


def test_a_volume_whose_file_system_cannot_map_ids():
    """A container is just another user there. An event says so."""
    if not os.path.exists("/dev/fuse"):
        return
    data = case.directory()
    os.chmod(data, 0o777)
    for name, mode in (("open", 0o644), ("closed", 0o600)):
        os.chmod(case.write(data + "/" + name, name + "\n"), mode)
    script = 'exec %s "$${CSI_ENDPOINT#unix://}" mounts=yes' % os.path.join(build_dir(), "tests", "csi_bad")
    node.register(api.job("fuse", "/bin/sh", ["-c", script], Env={"CSI_BAD_MOUNTER": "bindfs " + data}, CSIPluginConfig={"ID": "fuse", "Type": "monolith", "MountDir": "/csi"}))
    case.until(lambda: counts("fuse") == (1, 1), 60, "the plugin to be healthy")
    node.create("remote", PluginID="fuse")
    made = container("inside", "id -u; cat /data/open /data/closed; echo mine >/data/mine && cat /data/mine")
    made["Job"]["TaskGroups"][0]["Volumes"] = volumes.job("inside", "remote", "")["Job"]["TaskGroups"][0]["Volumes"]
    made["Job"]["TaskGroups"][0]["Tasks"][0]["VolumeMounts"] = [{"Volume": "data", "Destination": "/data"}]
    node.register(made)
    alloc = node.wait_running("inside", seconds=60)[0]
    node.wait_said(alloc, b"end\n")
    case.equal(node.logs(alloc).decode(), "0\nopen\nmine\nend\n", "what it may do")
    owner = os.stat(data + "/mine").st_uid
    assert owner >= images.ID_OWN, owner
    case.until(lambda: 'volume "data": FUSE cannot map ids, so all users of this container are other users of the volume, with uids from %d on' % owner in
               node.events(alloc["ID"]), 20, "the event")
    node.purge("inside")
    case.contains(said(volumes.job("task", "remote", "cat /data/mine; echo end; sleep 1000")), "mine\n")
    node.do("DELETE", "/v1/volume/csi/remote/delete")
    node.purge("fuse")


def test_a_job_can_ask_for_such_a_node():
    attributes = node.ask("/v1/node/" + node.ask("/v1/nodes")[0]["ID"])["Attributes"]
    case.equal([attributes.get("driver.%s.privileged.enabled" % name) for name in ("docker", "podman")], ["1", None], "attributes")


def test_what_a_privileged_container_is():
    """It has no user namespace, all capabilities and the devices of the machine; its files on disk have the ids of containers nevertheless."""
    script = "cat /proc/self/uid_map; grep CapEff /proc/self/status; ls /dev; readlink /proc/self/ns/pid; touch /alloc/data/mine; readlink /proc/self/ns/user"
    node.register(container("privileged", script, privileged=True, volumes=["/dev/null:/dev/null"]))
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
    case.equal((answer.status, "of type node or monolith has to mount: in a container it needs privileged = true in its config" in answer.text), (400, True), answer.text)
    answer = node.request("PUT", "/v1/jobs", plugin_job(driver="podman"))
    case.equal((answer.status, 'plugin "podman" { config { allow_privileged = true } }' in answer.text), (400, True), answer.text)
    with api.Node() as other:
        answer = other.request("PUT", "/v1/jobs", container("c", "", privileged=True))
        case.equal((answer.status, 'config.privileged is not allowed on this node: plugin "docker" { config { allow_privileged = true } }' in answer.text), (400, True), answer.text)


if not shutil.which("skopeo") or not os.path.exists("/bin/busybox"):
    case.skip("no skopeo, or no busybox-static")
private = case.directory()
os.chmod(private, 0o700)
os.mkdir(private + "/store")
with web.Server(images.registry({"plugin": {"1": PLUGIN}, "base": {"1": BASE}})) as server, \
        Node('plugin "docker" { config {\n enabled = true\n allow_privileged = true\n} }', 'host_volume "private" { path = "%s/store" }' % private) as node:
    node.start_plugin()
    case.run(globals())
    node.purge("csi-local")
    case.until(lambda: node.ask("/v1/agent/leaks") == [], 20, "no leaks")

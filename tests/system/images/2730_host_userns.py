# SPDX-License-Identifier: Apache-2.0
# takes: 30
"""Containers with userns_mode = "host": ids on volumes that cannot map them, sessions, a restart of the agent, and who may have them."""
import os
import shutil
import subprocess

from lib import agent, api, case, helper, images, web

SHELL = images.busybox("sh", "sleep", "cat", "echo", "id", "stat", "chown", "touch", "readlink", "grep")
BASE = images.Image([images.tar(SHELL)], {"Env": ["PATH=/bin"]})
UNMAPPED = "cannot map ids"


def container(name, script, driver="docker", volume=None, **config):
    made = api.job(name, driver=driver)
    group = made["Job"]["TaskGroups"][0]
    group["Tasks"][0]["Config"] = {"image": images.name(server, "base:1"), "network_mode": "none", "command": "/bin/sh",
                                   "args": ["-c", script + "; echo end; exec sleep 1000"], "userns_mode" if driver == "docker" else "userns": "host", **config}
    if volume:
        group["Volumes"] = {"data": {"Name": "data", "Type": "host", "Source": volume}}
        group["Tasks"][0]["VolumeMounts"] = [{"Volume": "data", "Destination": "/data"}]
    return made


def events(where, alloc_id):
    states = where.ask("/v1/allocation/" + alloc_id)["TaskStates"] or {}
    return "\n".join(x["DisplayMessage"] for x in states.get("t", {}).get("Events", []))


def started(made):
    node.register(made)
    alloc = node.wait_running(made["Job"]["ID"], seconds=60)[0]
    node.wait_said(alloc, b"end\n")
    return alloc, node.logs(alloc).decode()


def test_ids_on_a_volume_that_cannot_map_them():
    """They are those that the container gives: a server of NFS, or the process of a FUSE file system, sees them."""
    alloc, text = started(container("user", "cat /proc/self/uid_map; cd /data; touch mine; touch other && chown 5:6 other; stat -c '%u %g' mine other", volume="remote"))
    case.equal(text.split(), ["0", "0", "65536", "0", "0", "5", "6", "end"], "what it says")
    case.equal([(x.st_uid, x.st_gid) for x in (os.stat("%s/%s" % (data, n)) for n in ("mine", "other"))], [(0, 0), (5, 6)], "ids on the other side")
    assert UNMAPPED not in events(node, alloc["ID"]), events(node, alloc["ID"])
    node.purge("user")
    alloc, text = started(container("stranger", "touch /data/more", volume="remote", userns_mode=""))
    case.until(lambda: UNMAPPED in events(node, alloc["ID"]) and 'userns_mode = "host"' in events(node, alloc["ID"]), 20, "the event for an ordinary container")
    assert os.stat(data + "/more").st_uid >= images.ID_OWN
    node.purge("stranger")


def test_sessions_and_a_restart_of_the_agent():
    made = container("kept", "touch /alloc/data/mine")
    alloc, _ = started(made)
    at = "%s/alloc/%s/alloc/data/" % (node.data, alloc["ID"])
    case.equal(os.stat(at + "mine").st_uid, images.ID_FILES, "owner of a file on disk")
    for n in range(2):
        done = node.drover("alloc", "exec", alloc["ID"], "/bin/sh", "-c", "cat /proc/self/uid_map; cat /proc/1/comm; touch /alloc/data/s%d; grep CapEff /proc/self/status" % n)
        case.equal(done.out.split()[:4], ["0", "0", "65536", "sleep"], "a session: " + done.out + done.err)
        case.equal(done.out.split()[5], "%016x" % 0xa80405fb, "its capabilities")
        case.equal(os.stat(at + "s%d" % n).st_uid, images.ID_FILES, "owner of a file of a session")
        assert os.readlink("/proc/self/ns/user") not in node.drover("alloc", "exec", alloc["ID"], "/bin/readlink", "/proc/self/ns/user").out
        if n == 0:
            node.kill_launcher()
            node.start()
            node.wait_ready()
            node.wait_running("kept", seconds=60)
    case.equal(node.ask("/v1/allocation/" + alloc["ID"])["TaskStates"]["t"]["Restarts"], 0, "restarts")
    other, text = started(container("ordinary", "cat /proc/self/uid_map", userns_mode=""))
    case.equal(text.split(), ["0", str(images.ID_OWN), "65536", "end"], "the first range of ids is free: %s" % other["ID"])
    for name in ("ordinary", "kept"):
        node.purge(name)


def test_values_of_both_drivers():
    for name, made in (("podman", container("podman", "cat /proc/self/uid_map", driver="podman")),
                       ("variable", container("variable", "cat /proc/self/uid_map", userns_mode="${NOMAD_META_mode}"))):
        made["Job"]["Meta"] = {"mode": "host"}
        case.equal(started(made)[1].split(), ["0", "0", "65536", "end"], name)
        node.purge(name)


def test_a_job_can_ask_for_such_a_node():
    attributes = node.ask("/v1/node/" + node.ask("/v1/nodes")[0]["ID"])["Attributes"]
    case.equal([attributes.get("driver.%s.%s.enabled" % (name, what)) for name in ("docker", "podman") for what in ("host_userns", "privileged")], ["1", None, "1", None], "attributes")


def refused(where, made, why):
    answer = where.request("PUT", "/v1/jobs", made)
    case.equal((answer.status, why in answer.text), (400, True), answer.text)


def test_what_is_refused():
    refused(node, container("c", "", network_mode="host"), 'config.userns_mode = "host" is not possible with network_mode = "host"')
    refused(node, container("c", "", sysctl={"net.core.somaxconn": "7"}), '"net.core.somaxconn" cannot be set in a container with userns_mode = "host"')
    refused(node, container("c", "", userns_mode="other"), 'config.userns_mode = "other" is not supported')
    refused(node, container("c", "", driver="podman", userns="keep-id"), 'config.userns = "keep-id" is not supported')
    refused(node, container("c", "", cap_add=["SYS_ADMIN"]), "a container cannot have these capabilities: sys_admin")
    made = container("open", "", volume="open")
    made["Job"]["TaskGroups"][0]["RestartPolicy"] = {"Attempts": 0, "Mode": "fail"}
    node.register(made)
    case.until(lambda: any('host volume "open" must be read-only in a container' in events(node, a["ID"]) for a in node.allocs("open")), 60, "a volume that users of the machine reach")
    node.purge("open")


def test_without_the_permission_of_the_node():
    with api.Node(agent.config_args('plugin "docker" { config {\n enabled = true\n allow_privileged = true\n} }')) as other:
        refused(other, container("c", ""), 'config.userns_mode = "host" is not allowed on this node: plugin "docker" { config { allow_host_userns = true } }')
        refused(other, container("c", "", driver="podman"), 'config.userns = "host" is not allowed on this node: plugin "podman" { config { allow_host_userns = true } }')
        made = container("late", "", userns_mode="${NOMAD_META_mode}")
        made["Job"]["Meta"] = {"mode": "host"}
        made["Job"]["TaskGroups"][0]["RestartPolicy"] = {"Attempts": 0, "Mode": "fail"}
        other.register(made)
        case.until(lambda: any("is not allowed on this node" in events(other, a["ID"]) for a in other.allocs("late")), 60, "a value that comes from a variable")
        other.purge("late")
        made = container("both", "cat /proc/self/uid_map", privileged=True)
        other.register(made)
        alloc = other.wait_running("both", seconds=60)[0]
        other.wait_said(alloc, b"end\n")
        case.equal(other.logs(alloc).decode().split()[2], "4294967295", "a privileged container has the machine's ids anyway")
        other.purge("both")


if not shutil.which("skopeo") or not os.path.exists("/bin/busybox"):
    case.skip("no skopeo, or no busybox-static")
if not os.path.exists("/dev/fuse") or not shutil.which("bindfs"):
    case.skip("no FUSE, or no bindfs")
top, data = case.directory(), case.directory()
os.chmod(top, 0o700)
os.chmod(data, 0o777)
for place in ("remote", "open"):
    os.mkdir("%s/%s" % (top, place))
public = case.directory()
os.chmod(public, 0o755)
with subprocess.Popen(["bindfs", "-f", data, top + "/remote"]) as fuse:
    case.until(lambda: os.path.ismount(top + "/remote"), 20, "the FUSE file system")
    try:
        with web.Server(images.registry({"base": {"1": BASE}})) as server, \
                api.Node(agent.config_args("".join('plugin "%s" { config {\n enabled = true\n allow_host_userns = true\n} }\n' % x for x in ("docker", "podman")) +
                         'client {\n host_volume "remote" {\n path = "%s/remote"\n }\n host_volume "open" {\n path = "%s"\n }\n}' % (top, public))) as node:
            case.run(globals())
    finally:
        helper.umount(top + "/remote")

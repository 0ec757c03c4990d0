# SPDX-License-Identifier: Apache-2.0
# takes: 30
"""The key devices of the drivers docker and podman: what jobs may write, what the agent's configuration allows, and what users of a container can open."""
import os
import shutil

from lib import agent, api, case, devices, images, web

IMAGE = images.Image([images.tar(images.busybox("sh", "cat", "echo", "sleep", "stat", "ls"))], {"Env": ["PATH=/bin"]})
CONFIG = '''plugin "docker" {
  config {
    allow_host_userns = true
    allow_devices = ["/dev/sink", "/dev/many/*", "/dev/closed", "/dev/read[0-9]", "/dev/absent"]
  }
}
plugin "podman" {
  config {
    allow_devices = ["/dev/sin?", "/dev/many/one"]
    allow_privileged = true
  }
}'''
SHOW = "for f in %s; do echo $f; stat -c '%%F %%t:%%T %%a' $f; done"
SINK, ONE = "character special file 1:3 666", "character special file 1:5 666"


def container(name, script, driver="docker", meta=None, **config):
    made = api.job(name, driver=driver)
    config = {"image": images.name(server, "a:1"), "network_mode": "host", "command": "/bin/sh", "args": ["-c", script + "\necho end"], **config}
    made["Job"].update(Type="batch", Meta=meta)
    made["Job"]["TaskGroups"][0]["RestartPolicy"] = {"Attempts": 0, "Mode": "fail"}
    made["Job"]["TaskGroups"][0]["Tasks"][0]["Config"] = config
    return made


def ended(made, status="complete"):
    """Runs a job. Returns what it printed, and its events."""
    node.register(made)
    name = made["Job"]["ID"]
    alloc = node.wait_allocs(name, [(0, "run", status)], seconds=60)[0]
    text = node.logs(alloc).decode() if status == "complete" else ""
    events = "\n".join(e["DisplayMessage"] for e in node.ask("/v1/allocation/" + alloc["ID"])["TaskStates"]["t"]["Events"])
    node.purge(name)
    return text, events


def test_docker_s_blocks():
    for number, value in enumerate((
            [{"host_path": "/dev/sink"}, {"host_path": "/dev/many/one", "container_path": "/opt/new/one", "cgroup_permissions": "mrw"}],
            [{"host_path": "/dev/sink", "container_path": "/dev/sink", "cgroup_permissions": "rwm"}, {"host_path": "/dev/many/one", "container_path": "/opt/new/one", "cgroup_permissions": "rw"}])):
        text, events = ended(container("docker%d" % number, SHOW % "/dev/sink /opt/new/one" + "; echo x >/dev/sink; ls /dev", devices=value))
        case.contains(text, "/dev/sink\n%s\n/opt/new/one\n%s\n" % (SINK, ONE))
        assert "mode" not in events and "many" not in text, (text, events)
    text = ended(container("one", SHOW % "/dev/sink", devices={"host_path": "/dev/sink"}))[0]
    case.equal(text, "/dev/sink\n%s\nend\n" % SINK, "a single block")


def test_a_block_of_a_job_file():
    hcl = """job "file" {
      type = "batch"
      group "g" {
        task "t" {
          driver = "docker"
          config {
            image        = "%s"
            network_mode = "host"
            command      = "/bin/stat"
            args         = ["-c", "%%t:%%T", "/dev/sink", "/dev/x"]
            devices {
              host_path = "/dev/sink"
            }
            devices {
              host_path      = "/dev/many/one"
              container_path = "/dev/x"
            }
          }
        }
      }
    }""" % images.name(server, "a:1")
    case.equal(ended({"Job": node.do("POST", "/v1/jobs/parse", {"JobHCL": hcl})})[0], "1:3\n1:5\n")


def test_podman_s_texts():
    for number, (value, place, shown) in enumerate((("/dev/sink", "/dev/sink", SINK), ("/dev/sink:rw", "/dev/sink", SINK), ("/dev/many/one:/dev/x/y", "/dev/x/y", ONE),
                                                    ("/dev/sink:/dev/b:rwm", "/dev/b", SINK))):
        text = ended(container("podman%d" % number, SHOW % place, driver="podman", devices=[value]))[0]
        case.equal(text, "%s\n%s\nend\n" % (place, shown), value)


def test_links_and_directories():
    """As with Docker, a link stands for what it leads to, and a directory for the nodes in it."""
    text = ended(container("link", SHOW % "/dev/by-id/usb", devices=[{"host_path": "/dev/by-id/usb"}]))[0]
    case.equal(text, "/dev/by-id/usb\n%s\nend\n" % ONE)
    text = ended(container("directory", "ls /dev/many", devices=[{"host_path": "/dev/many"}]))[0]
    case.equal(text, "one\ntwo\nend\n")
    node.refused(400, 'config.devices: "/dev/by-id/other" ("/dev/other") is not allowed on this node: plugin "docker" { config { allow_devices = ["/dev/other"] } }',
                 "PUT", "/v1/jobs", container("no", "", devices=[{"host_path": "/dev/by-id/other"}]))


def test_modes():
    """Users of a container are others to a node."""
    rule = 'a rule of udev (KERNEL=="%s", MODE="0666") or privileged = true changes that'
    events = ended(container("closed", "echo started", devices=[{"host_path": "/dev/closed"}]), "failed")[1]
    case.contains(events, 'no user in the container can open "/dev/closed": its mode is 0660, and users of a container are others to it; ' + rule % "closed")
    text, events = ended(container("read", "echo x 2>/dev/null >/dev/read1 || echo not written; cat /dev/read1", devices=[{"host_path": "/dev/read1"}]))
    case.contains(events, 'every user in the container can only read "/dev/read1": its mode is 0644, and users of a container are others to it; ' + rule % "read1")
    case.equal(text, "not written\nend\n")
    os.chmod("/dev/many/two", 0o600)
    try:
        text, events = ended(container("some", "cat /dev/many/two 2>/dev/null || echo closed", devices=[{"host_path": "/dev/many"}]))
    finally:
        os.chmod("/dev/many/two", 0o666)
    case.equal(text, "closed\nend\n")
    case.contains(events, 'no user in the container can open "/dev/many/two": its mode is 0600')


def test_the_machine_s_ids():
    """Root of such a container owns the node of root."""
    script = "echo x >/dev/closed && echo written; stat -c '%u %a' /dev/closed"
    text, events = ended(container("ids", script, userns_mode="host", network_mode="none", devices=[{"host_path": "/dev/closed"}]))
    case.equal(text, "written\n0 660\nend\n")
    assert "its mode is" not in events, events


def test_what_a_start_finds():
    """A path with a variable is checked by the start, and so is whether there is such a device."""
    made = container("variable", SHOW % "/dev/x", devices=[{"host_path": "${NOMAD_META_device}", "container_path": "/dev/x"}], meta={"device": "/dev/sink"})
    case.equal(ended(made)[0], "/dev/x\n%s\nend\n" % SINK)
    made = container("refused", "echo started", devices=[{"host_path": "${NOMAD_META_device}"}], meta={"device": "/dev/other"})
    case.contains(ended(made, "failed")[1], 'config.devices: "/dev/other" is not allowed on this node')
    case.contains(ended(container("absent", "echo started", devices=[{"host_path": "/dev/absent"}]), "failed")[1], 'config.devices: this node has no "/dev/absent"')


def test_a_session_needs_no_device():
    """The path of a device may be gone while its task runs."""
    os.symlink("../many/one", "/dev/by-id/gone")
    node.register(container("session", "exec sleep 1000", devices=[{"host_path": "/dev/by-id/gone", "container_path": "/dev/x"}]))
    alloc = node.wait_running("session", seconds=60)[0]
    os.unlink("/dev/by-id/gone")
    case.equal(node.drover("alloc", "exec", alloc["ID"], "/bin/stat", "-c", "%t:%T", "/dev/x").out, "1:5\n")
    node.purge("session")


def test_a_privileged_container():
    """It has all devices, at their own places."""
    text = ended(container("all", SHOW % "/dev/other" + "; echo x >/dev/closed && echo written", driver="podman", privileged=True, devices=["/dev/other:r", "/dev/closed"]))[0]
    case.equal(text, "/dev/other\n%s\nwritten\nend\n" % ONE)
    case.equal(os.path.exists("/dev/new"), False)


def test_what_is_refused_at_once():
    for driver, value, why in (
            ("docker", [{"host_path": "/dev/other"}], 'task t: config.devices: "/dev/other" is not allowed on this node: plugin "docker" { config { allow_devices = ["/dev/other"] } } in the '
                                                      "agent's configuration allows it"),
            ("podman", ["/dev/many/two"], 'plugin "podman" { config { allow_devices = ["/dev/many/two"] } }'),
            ("docker", [{"host_path": "/dev/many/a/b"}], '"/dev/many/a/b" is not allowed on this node'),
            ("docker", [{"host_path": "/dev/sink", "cgroup_permissions": "r"}], 'config.devices: permissions "r" of "/dev/sink" are not supported: containers can read and write their devices'),
            ("docker", [{"host_path": "/dev/sink", "cgroup_permissions": "wm"}], 'permissions "wm"'), ("docker", [{"host_path": "/dev/sink", "cgroup_permissions": "rwx"}], 'permissions "rwx"'),
            ("podman", ["/dev/sink:r"], 'permissions "r"'), ("podman", ["/dev/sink:/dev/x:w"], 'permissions "w"'), ("podman", ["/dev/sink:x:rw"], 'permissions "x:rw"'),
            ("docker", [{"host_path": "/etc/passwd"}], '"/etc/passwd" is not the path of a device below /dev'), ("docker", [{"host_path": "/dev/../etc/passwd"}], "is not the path of a device"),
            ("docker", [{"host_path": "/dev//sink"}], "is not the path of a device"), ("docker", [{"host_path": "/dev/"}], "is not the path of a device"),
            ("docker", [{"host_path": "sink"}], "is not the path of a device"), ("docker", [{"container_path": "/dev/sink"}], "config.devices: host_path is missing"),
            ("docker", [{"host_path": "/dev/sink", "container_path": "x"}], 'config.devices: "x" is not an absolute path, for "/dev/sink"'),
            ("docker", [{"host_path": "/dev/sink", "container_path": "/"}], '"/" is not an absolute path'), ("docker", [{"host_path": "/dev/sink", "container_path": "/a/../b"}], "is not an absolute"),
            ("docker", [{"host_path": "/dev/file"}], '"/dev/file" is not the node of a device'), ("docker", [{"host_path": "/dev/fifo"}], '"/dev/fifo" is not the node of a device'),
            ("docker", [{"host_path": "/dev/empty"}], 'no device is in "/dev/empty"'),
            ("docker", [{"host_path": "/dev/sink", "path": "x"}], "does not know config.devices.path"), ("docker", "/dev/sink", "config.devices must be a block"),
            ("podman", [{"host_path": "/dev/sink"}], "config.devices[0] must be a string")):
        node.refused(400, why, "PUT", "/v1/jobs", container("refused", "", driver=driver, devices=value))
    node.refused(400, 'config.devices: "/dev/sink" cannot be "/dev/new" in a privileged container', "PUT", "/v1/jobs",
                 container("refused", "", driver="podman", privileged=True, devices=["/dev/sink:/dev/new"]))
    with api.Node() as other:
        for driver, value in (("docker", [{"host_path": "/dev/sink"}]), ("podman", ["/dev/sink"])):
            other.refused(400, '"/dev/sink" is not allowed on this node', "PUT", "/v1/jobs", container("refused", "", driver=driver, devices=value))


if not shutil.which("skopeo") or not os.path.exists("/bin/busybox"):
    case.skip("no skopeo, or no busybox-static")
with devices.own():
    devices.node("sink", devices.NULL)
    for open_node in ("many/one", "many/two", "many/deep/three", "other"):
        devices.node(open_node, devices.ZERO)
    devices.node("closed", devices.NULL, 0o660)
    devices.node("read1", devices.NULL, 0o644)
    os.symlink("one", "/dev/many/link")
    for directory in ("by-id", "empty"):
        os.mkdir("/dev/" + directory)
    os.symlink("../many/one", "/dev/by-id/usb")
    os.symlink("../other", "/dev/by-id/other")
    os.mkfifo("/dev/fifo")
    case.write("/dev/file", "")
    with web.Server(images.registry({"a": {"1": IMAGE}})) as server, api.Node(agent.config_args(CONFIG)) as node:
        case.run(globals())

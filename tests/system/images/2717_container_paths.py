# SPDX-License-Identifier: Apache-2.0
# takes: 30
"""Mounts of the config block of a container: directories and files of the task's own, and of the machine, which are in host volumes."""
import os
import shutil
import socket

from lib import agent, api, case, images, web

TOOLS = images.tar(images.busybox("sh", "cat", "echo", "sleep", "stat", "touch"))
ETC = images.tar([images.directory("etc"), images.directory("etc/app"), images.file("etc/app/app.conf", b"of the image\n")])
IMAGE = images.Image([TOOLS, ETC], {"Cmd": ["/bin/sh"], "Env": ["PATH=/bin"]})


def container(name, script=None, task=None, driver="docker", **config):
    made = api.job(name, driver=driver)
    if script is not None:
        config.update(command="/bin/sh", args=["-c", script + "\necho end; exec sleep 1000"])
    made["Job"]["TaskGroups"][0]["Tasks"][0].update(Config={"image": images.name(server, "a:1"), "network_mode": "host", **config}, **(task or {}))
    return made


def said(made):
    name = made["Job"]["ID"]
    node.register(made)
    alloc = node.wait_running(name, seconds=60)[0]
    node.wait_said(alloc, b"end\n")
    text = node.logs(alloc).decode()
    node.purge(name)
    return text


def failed(made):
    made["Job"]["Type"] = "batch"
    made["Job"]["TaskGroups"][0]["RestartPolicy"] = {"Attempts": 0, "Mode": "fail"}
    node.register(made)
    name = made["Job"]["ID"]
    alloc = node.wait_allocs(name, [(0, "run", "failed")], 60)[0]
    text = "\n".join(e["DisplayMessage"] for e in node.ask("/v1/allocation/" + alloc["ID"])["TaskStates"]["t"]["Events"])
    node.purge(name)
    return text


def test_a_directory_of_the_job_s_own():
    """A source that is in none of the task's three directories is a directory or a file of a template beside them, as with Nomad."""
    script = "cat /etc/app/app.conf; cat /kept/f || echo first >/kept/f; echo end; [ -e /local/once ] || { touch /local/once; exit 1; }; exec sleep 1000"
    made = container("own", None, {"Templates": [{"EmbeddedTmpl": "by a template\n", "DestPath": "custom/app.conf"}]}, command="/bin/sh", args=["-c", script],
                     volumes=["custom/app.conf:/etc/app/app.conf", "./data:/kept"])
    made["Job"]["TaskGroups"][0]["RestartPolicy"] = {"Attempts": 1, "Interval": 10**12, "Delay": 0, "Mode": "fail"}
    node.register(made)
    alloc = node.wait_running("own", seconds=60)[0]
    node.wait_said(alloc, b"first\nend\n")
    case.equal(node.logs(alloc).decode(), "by a template\nend\nby a template\nfirst\nend\n")
    node.purge("own")


def test_directories_and_files_of_the_machine():
    """A source that is a path of the machine is mounted by the rules of the host volume that has it."""
    script = "cat /data/there /one /ro/there; echo new >/data/sub/new; echo made >/made/f; echo x >/ro/x || echo read-only; stat -c '%u:%g' /data/there; cat /inner/there"
    text = said(container("host", script, volumes=["%s/v/:/data" % CLOSED, "%s/v/made/here:/made:rw,rshared" % CLOSED, "%s/v/there:/one:ro,cached" % CLOSED, "%s/v/sub:/data/sub/" % CLOSED],
                          mount=[{"type": "bind", "source": OPEN + "/v", "target": "/ro", "readonly": True, "bind_options": [{"propagation": "rslave"}]},
                                 {"type": "volume", "source": "closed", "target": "/inner"}]))
    case.equal(text, "of the machine\nof the machine\nopen\nread-only\n999:998\nof the machine\nend\n")
    with open(CLOSED + "/v/sub/new", encoding="ascii") as f, open(CLOSED + "/v/made/here/f", encoding="ascii") as g:
        case.equal((f.read(), g.read()), ("new\n", "made\n"))
    at = os.stat(CLOSED + "/v/made/here")
    case.equal((at.st_uid, at.st_gid, at.st_mode & 0o777), (0, 0, 0o755), "a directory that was missing")


def test_what_is_not_mounted_of_the_machine():
    """Neither a link that a task left on the way, nor a socket, nor what is missing where nothing may be made; nor a writable directory that others reach."""
    for source, options, why in (("link/secret", "ro", "a link is on the way to it"), ("link/secret", "rw", "a link is on the way to it"),
                                 ("socket", "ro", "it is neither a directory nor a file"), ("there/x", "rw", "Not a directory"),
                                 ("absent", "ro", "No such file or directory")):
        made = container("not", "echo started", volumes=["%s/v/%s:/x:%s" % (CLOSED, source, options)])
        case.contains(failed(made), "mount into the task (volume mount 1, at /x): " + why, source)
    case.contains(failed(container("open", "echo started", volumes=["%s/w:/x" % OPEN])), 'host volume "wide" must be read-only in a container', "a directory that others reach")


def test_the_node_says_that_it_has_them():
    attributes = node.ask("/v1/node/" + node.ask("/v1/nodes")[0]["ID"])["Attributes"]
    case.equal([attributes.get("driver.%s.volumes.enabled" % d) for d in ("docker", "podman")], ["1", None])


def test_what_is_refused_at_once():
    plugin, block = 'plugin "podman" { config { volumes { enabled = true } } }', 'client { host_volume "%s" { path = "%s"%s } }'
    for driver, config, why in (("docker", {"mount": [{"type": "bind", "source": "/etc/x", "target": "/host", "readonly": True}]},
                                 'config.mount: "/etc/x" is of the machine: the agent\'s configuration must have ' + block % ("etc-x", "/etc/x", " read_only = true")),
                                ("podman", {"volumes": [CLOSED + "/v/x:/x"]}, "must have " + plugin),
                                ("podman", {"volumes": ["/srv:/x"]}, "must have " + plugin + " and " + block % ("srv", "/srv", "")),
                                ("docker", {"volumes": [CLOSED + "/vv:/x"]}, "is of the machine"),
                                ("docker", {"volumes": [CLOSED + "/v/../w:/x"]}, 'has a component ".."'),
                                ("docker", {"volumes": [CLOSED + "/v:/"]}, 'cannot be mounted at "/"'),
                                ("docker", {"volumes": [OPEN + "/v:/x"]}, 'is in host_volume "open", which is read_only: mount it read-only'),
                                ("docker", {"volumes": ["/var/run/docker.sock:/x"]}, "is Docker's socket: drover's containers have no daemon"),
                                ("docker", {"volumes": ["/dev/net/tun:/x"]}, '"/dev/net/tun" is in the machine\'s /dev: use config.devices'),
                                ("docker", {"volumes": ["local/x:/x:nocopy"]}, 'option "nocopy" of'),
                                ("docker", {"mounts": {"type": "volume", "source": "name", "target": "/data"}}, 'must have client { host_volume "name" { path = "/srv/…" } }'),
                                ("docker", {"mounts": {"type": "volume", "target": "/data"}}, "config.mount: a volume without a source is not supported"),
                                ("docker", {"mounts": {"type": "volume", "source": "closed", "target": "/data", "volume_options": [{"driver_config": [{"name": "nfs"}]}]}},
                                 'type "volume" with a driver_config is not supported')):
        node.refused(400, why, "PUT", "/v1/jobs", container("refused", driver=driver, **config))


if not shutil.which("skopeo") or not os.path.exists("/bin/busybox"):
    case.skip("no skopeo, or no busybox-static")
TOP = case.directory()
CLOSED, OPEN = TOP + "/closed", TOP + "/open"
for made_dir in (CLOSED + "/v/sub", OPEN + "/v", OPEN + "/w"):
    os.makedirs(made_dir)
os.chmod(TOP, 0o755)
os.chmod(CLOSED, 0o700)
case.write(CLOSED + "/v/there", "of the machine\n")
os.chown(CLOSED + "/v/there", 999, 998)
case.write(OPEN + "/v/there", "open\n")
case.write(CLOSED + "/secret", "not for a container\n")
os.symlink("..", CLOSED + "/v/link")
socket.socket(socket.AF_UNIX).bind(CLOSED + "/v/socket")
CONFIG = 'plugin "docker" {\n config {\n volumes {\n enabled = true\n }\n }\n}\nclient {\n%s}\n' % "".join(
    'host_volume "%s" {\n path = "%s"\n read_only = %s\n}\n' % x for x in (("closed", CLOSED + "/v/", "false"), ("open", OPEN + "/v", "true"), ("wide", OPEN + "/w", "false")))
with web.Server(images.registry({"a": {"1": IMAGE}})) as server, api.Node(agent.config_args(CONFIG)) as node:
    case.run(globals())

# SPDX-License-Identifier: Apache-2.0
# takes: 45
"""What published jobs for Docker use together: files of templates that are mounted over files of the image, an image that a template names,
standard input that stays open, terminals, sizes with a unit."""
import glob
import os
import re
import shutil
import threading

from lib import agent, api, case, crash, helper, images, web
from lib.websocket import Exec

TOOLS = images.tar(images.busybox("sh", "cat", "echo", "sleep", "stat", "grep", "id", "tty", "head", "yes", "readlink", "touch"))
LIMITED = 'plugin "podman" { config {\n allow_caps = ["CHOWN", "NET_RAW"]\n pids_limit = 50\n image_pull_timeout = "7m"\n} }'
ETC = images.tar([images.directory("etc"), images.directory("etc/app"), images.file("etc/app/app.conf", b"of the image\n"),
                  images.file("etc/passwd", b"root:x:0:0:root:/root:/bin/sh\nweb:x:1000:1001:web:/home/web:/bin/sh\n"), images.file("etc/group", b"root:x:0:\nweb:x:1001:\n")])
IMAGE = images.Image([TOOLS, ETC], {"Cmd": ["/bin/sh"], "Env": ["PATH=/bin"]})

# Perl can make each system call: 0x5412 is TIOCSTI, 0x5420 TIOCPKT, 0x5423 TIOCSETD, 0x540e TIOCSCTTY, 0x5422 TIOCNOTTY, 112 setsid.
PERL = images.Image([TOOLS, ETC, images.tar(images.program("/usr/bin/perl", "usr/bin/perl"))], {"Env": ["PATH=/bin:/usr/bin", "LD_LIBRARY_PATH=/lib"]})
ENTRY = images.Image([TOOLS, ETC], {"Entrypoint": ["/bin/echo", "of the image"], "Cmd": ["/bin/cat", "/etc/group"], "Env": ["PATH=/bin"]})


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


def ended(made, status="complete"):
    """Runs a job once. Returns what it printed, and its events."""
    made["Job"]["Type"] = "batch"
    made["Job"]["TaskGroups"][0]["RestartPolicy"] = {"Attempts": 0, "Mode": "fail"}
    node.register(made)
    alloc = node.wait_allocs(made["Job"]["ID"], [(0, "run", status)], seconds=60)[0]
    text = node.logs(alloc).decode() if status == "complete" else ""
    said = "\n".join(e["DisplayMessage"] for e in node.ask("/v1/allocation/" + alloc["ID"])["TaskStates"]["t"]["Events"])
    node.purge(made["Job"]["ID"])
    return text, said


def test_a_rendered_file_is_mounted_over_one_of_the_image():
    templates = [{"EmbeddedTmpl": "by a template\n", "DestPath": "local/app.conf"}, {"EmbeddedTmpl": "new\n", "DestPath": "local/d/new.conf", "Perms": "0600"}]
    for user, owner in (("", "root"), ("web", "web")):
        text = said(container("files", "cat /etc/app/app.conf /etc/app/more/new.conf; stat -c '%U %G %a' /etc/app/app.conf /local/d/new.conf /local/d", {"Templates": templates, "User": user},
                              volumes=["local/app.conf:/etc/app/app.conf", "local/d/new.conf:/etc/app/more/new.conf"]))
        case.equal(text, "by a template\nnew\n" + "".join("%s %s %s\n" % (owner, owner, mode) for mode in ("644", "600", "755")) + "end\n")


def test_a_mounted_file_brings_the_user():
    """/etc/passwd is a mount, so the user is known only after it."""
    made = container("user", "id; stat -c '%u:%g' /local/x", {"Templates": [{"EmbeddedTmpl": "x", "DestPath": "local/x"}], "User": "new"},
                     volumes=["../alloc/data/passwd:/etc/passwd"])
    made["Job"]["TaskGroups"][0]["Tasks"].append(
        api.task("before", "/bin/sh", ["-c", "echo new:x:77:78::/:/bin/sh >$NOMAD_ALLOC_DIR/data/passwd"], Lifecycle={"Hook": "prestart"}))
    case.equal(said(made), "uid=77(new) gid=78 groups=78\n77:78\nend\n")


def texts(name):
    return [e["DisplayMessage"] for a in node.allocs(name) for e in (a["TaskStates"] or {}).get("t", {}).get("Events", [])]


def late(image, go):
    """Sends half of the image's second layer, and the rest when the event is set."""
    def answer(h):
        blob = image.blobs[1]
        h.send_response(200)
        h.send_header("Content-Length", str(len(blob)))
        h.end_headers()
        h.wfile.write(blob[:1 << 19])
        h.wfile.flush()
        go.wait(120)
        h.wfile.write(blob[1 << 19:])
    return answer


def test_a_pull_that_takes_too_long():
    """Earlier, its event named neither the setting nor the time."""
    image, go = images.Image([TOOLS, images.tar([images.file("noise", os.urandom(1 << 20))])]), threading.Event()
    with web.Server({**images.registry({"v": {"1": image}}), "/v2/v/blobs/" + images.digest(image.blobs[1]): late(image, go)}) as other:
        text = ended(container("slow", image=images.name(other, "v:1"), image_pull_timeout="2s"), "failed")[1]
        go.set()
    case.contains(text, "it was not fetched within image_pull_timeout (2s): ")
    case.contains(text, " MiB have arrived")


def test_what_latest_names_is_fetched_again():
    """With each start; if the registry is gone, the image that is here serves, and an event says so. Progress of a pull is told by events."""
    versions = [images.Image([TOOLS, images.tar([images.file("version", b"%d\n" % i), images.file("noise", os.urandom(1 << 20))])], {"Env": ["PATH=/bin"]}) for i in (1, 2)]
    go = threading.Event()
    with web.Server({**images.registry({"v": {"latest": versions[0]}}), "/v2/v/blobs/" + images.digest(versions[0].blobs[1]): late(versions[0], go)}) as other:
        where = images.name(other, "v")
        node.register(container("one", "cat /version", image=where))
        told = re.compile(r'Downloading "%s:latest": \d\.\d of \d\.\d MiB' % re.escape(where))
        case.until(lambda: node.request("GET", "/v1/job/one").status == 200 and any(map(told.match, texts("one"))), 60, "an event about the progress")
        case.contains(node.drover("image", "list").out, "pulling, ")
        go.set()
        alloc = node.wait_running("one", seconds=60)[0]
        node.wait_said(alloc, b"1\nend\n")
        other.files.update(images.registry({"v": {"latest": versions[1]}}))
        case.equal(said(container("two", "cat /version", image=where)), "2\nend\n", "the new image, beside a container of the old one")
    made = container("three", "cat /version", image=where)
    node.register(made)
    alloc = node.wait_running("three", seconds=60)[0]
    node.wait_said(alloc, b"2\nend\n")
    case.contains(" ".join(texts("three")), "The image that is here is used, because it could not be fetched again: ")
    made["Job"]["ID"] = made["Job"]["Name"] = "four"
    made["Job"]["TaskGroups"][0]["Tasks"][0]["Config"]["force_pull"] = True
    node.register(made)
    case.until(lambda: any("Failed to pull" in text for text in texts("four")), 60, "force_pull to fail")
    for name in ("one", "three", "four"):
        node.purge(name)


def test_an_image_of_a_hundred_layers():
    layers = [images.tar([images.file("f%d" % i, b"%d\n" % i), images.file("last", b"%d\n" % i)]) for i in range(99)]
    with web.Server(images.registry({"many": {"1": images.Image([TOOLS, *layers], {"Env": ["PATH=/bin"]})}})) as other:
        case.equal(said(container("many", "cat /f0 /f50 /f98 /last", image=images.name(other, "many:1"))), "0\n50\n98\n98\nend\n")


def test_a_template_names_the_image():
    """The name is known only after the templates are rendered."""
    text = images.name(server, "")
    made = container("named", "echo started", {"Templates": [{"EmbeddedTmpl": "NAME=%sa\nTAG=1\n" % text, "DestPath": "secrets/env", "Envvars": True}]}, image="${NAME}:${TAG}")
    case.equal(said(made), "started\nend\n")


def test_standard_input_stays_open():
    """As under Docker: a shell without arguments waits. A session can write to it."""
    made = container("open", interactive=True, task={"User": "web"})
    node.register(made)
    alloc = node.wait_running("open", seconds=60)[0]
    Exec(node, alloc["ID"], ["/bin/sh", "-c", "echo 'echo typed; echo end' >/proc/1/fd/0"]).end()
    node.wait_said(alloc, b"typed\nend\n")
    case.equal(node.ask("/v1/allocation/" + alloc["ID"])["ClientStatus"], "running")
    node.purge("open")


def test_a_terminal():
    """As under Docker: standard input, output and error are a terminal, which is /dev/console too; what it prints is stdout in the logs."""
    script = ("tty; for i in 0 1 2; do test -t $i && echo $i; done; stat -c '%F %u:%g %a' /dev/pts/0 /dev/console; echo console >/dev/console; "
              "echo controlling >/dev/tty; echo error >&2; echo $TERM; readlink /proc/self/fd/1")
    for driver, config, user, owner in (("docker", {"interactive": True}, "web", 1000), ("podman", {}, "", 0), ("docker", {"init": True}, "1000", 1000)):
        node.register(container("terminal", script, {"User": user}, driver=driver, tty=True, **config))
        alloc = node.wait_running("terminal", seconds=60)[0]
        node.wait_said(alloc, b"end\r\n")
        of = "character special file %d:5 620" % owner
        case.equal(node.logs(alloc).decode(), "".join(line + "\r\n" for line in ("/dev/pts/0", "0", "1", "2", of, of, "console", "controlling", "error", "xterm", "/dev/pts/0", "end")))
        case.equal(node.logs(alloc, kind="stderr"), b"")
        beside = Exec(node, alloc["ID"], ["/bin/sh", "-c", "tty; echo from a session >/dev/pts/0"], tty=True).end()[0].decode()
        case.equal(beside, "/dev/pts/1\r\n", "a session beside it")
        node.wait_said(alloc, b"end\r\nfrom a session\r\n")
        node.purge("terminal")


def test_a_shell_at_a_terminal_waits():
    node.register(container("open", tty=True))
    alloc = node.wait_running("open", seconds=60)[0]
    node.wait_said(alloc, b"# ")  # its prompt
    case.equal(node.ask("/v1/allocation/" + alloc["ID"])["ClientStatus"], "running")
    node.purge("open")


def test_a_terminal_is_read_to_its_end():
    for config in ({}, {"init": True}):
        text = ended(container("much", tty=True, command="/bin/sh", args=["-c", "yes 0123456789 | head -n 20000; echo end"], **config))[0]
        case.equal(text == "0123456789\r\n" * 20000 + "end\r\n", True, "%d bytes, which end with %r" % (len(text), text[-30:]))
    # Without logs, the terminal is read all the same, so that the program does not wait.
    made = container("much", tty=True, command="/bin/sh", args=["-c", "yes 0123456789 | head -n 20000; exit 7"], task={"LogConfig": {"Disabled": True}})
    made["Job"]["Type"] = "batch"
    made["Job"]["TaskGroups"][0]["RestartPolicy"] = {"Attempts": 0, "Mode": "fail"}
    node.register(made)
    alloc = node.wait_allocs("much", [(0, "run", "failed")], seconds=60)[0]
    case.contains(str(node.ask("/v1/allocation/" + alloc["ID"])["TaskStates"]["t"]["Events"]), "Exit Code: 7")
    case.equal([name for name in os.listdir("%s/alloc/%s/alloc/logs" % (node.data, alloc["ID"])) if ".std" in name], [], "log files")
    node.purge("much")


def test_a_program_that_misuses_its_terminal():
    """It gets no more than another one, its executor goes on reading what it prints, and ends it."""
    script = r"""
$| = 1;
for ([0x5412, "TIOCSTI"], [0x5420, "TIOCPKT"], [0x541d, "TIOCCONS"]) { my $v = pack("i", 1); print ioctl(STDIN, $_->[0], $v) ? "did" : "cannot", " $_->[1]\n"; }
for my $n (1..30) { my $v = pack("i", $n); ioctl(STDIN, 0x5423, $v); my $back = pack("i", 0); ioctl(STDIN, 0x5423, $back); }
for (1..200) { close STDIN; close STDOUT; close STDERR; sleep 1 if $_ == 1; open STDIN, "+</dev/console"; open STDOUT, ">&STDIN"; open STDERR, ">&STDIN"; }
print "opened again\n";
ioctl(STDIN, 0x5422, 0);
if (!fork) { syscall(112); ioctl(STDIN, 0x540e, 0); exit 0; }
wait;
open STDOUT, ">/dev/console"; open STDERR, ">/dev/console";
print STDOUT "hung up\n";
$SIG{TERM} = "IGNORE";
sleep 1 while ! -e "/alloc/data/go";
if (!fork) { syswrite STDERR, "flood\n" while 1; }
sleep 1000;
"""
    made = container("misuse", image=images.name(server, "p:1"), tty=True, command="/usr/bin/perl", args=["-e", script])
    made["Job"]["TaskGroups"][0]["Tasks"][0]["KillTimeout"] = 10**9
    made["Job"]["TaskGroups"][0]["Tasks"][0]["LogConfig"] = {"MaxFiles": 2, "MaxFileSizeMB": 1}
    node.register(made)
    alloc = node.wait_running("misuse", seconds=60)[0]
    node.wait_said(alloc, b"hung up\r\n")
    case.equal(node.logs(alloc).decode(), "".join("cannot %s\r\n" % name for name in ("TIOCSTI", "TIOCPKT", "TIOCCONS")) + "opened again\r\nhung up\r\n")
    Exec(node, alloc["ID"], ["/bin/touch", "/alloc/data/go"]).end()
    node.wait_said(alloc, b"flood\r\n")
    node.do("DELETE", "/v1/job/misuse")
    node.wait_allocs("misuse", [(0, "stop", "complete")], seconds=60)
    case.contains(str(node.ask("/v1/allocation/" + alloc["ID"])["TaskStates"]["t"]["Events"]), "Exit Code: 137, Signal: 9")
    node.purge("misuse")


def test_sizes_of_podman_have_units():
    script = "grep ' /dev/shm ' /proc/self/mounts"
    for size, there in (("8m", "size=8192k"), ("4194304", "size=4096k"), ("2MB", "size=2048k")):
        case.contains(said(container("shm", script, driver="podman", shm_size=size)), there)


def test_an_entrypoint_that_is_switched_off():
    """As under Docker, where "" alone also drops the image's Cmd. Earlier, it ended a start with "Bad message"."""
    image = images.name(server, "e:1")
    for driver, config, wanted in (("docker", {}, "of the image /bin/cat /etc/group\n"), ("docker", {"entrypoint": []}, "root:x:0:\nweb:x:1001:\n"),
                                   ("docker", {"entrypoint": [""], "command": "/bin/echo", "args": ["", "own"]}, " own\n"), ("docker", {"args": ["own"]}, "of the image own\n"),
                                   ("podman", {"entrypoint": "", "args": ["/bin/echo", "own"]}, "own\n"), ("docker", {"entrypoint": ["/bin/echo", "", "x"]}, " x\n")):
        case.equal(ended(container("entry", driver=driver, image=image, **config))[0], wanted, config)
    for config, why in (({"entrypoint": [""]}, "neither config.command nor the image says which program to run: set config.command"),
                        ({"entrypoint": ["", "/bin/echo"]}, 'the program to run is "": it is the first word of config.entrypoint, config.command or config.args'),
                        ({"entrypoint": [], "args": [""]}, 'the program to run is ""')):
        case.contains(ended(container("entry", image=image, **config), "failed")[1], why)


def test_what_a_failed_start_names():
    """Earlier, it named neither the command nor the key, but what the executor was given."""
    for config, why in (({"command": "sh -c id"}, 'run the command "sh -c id": the image has no such program, or not the interpreter of it; arguments belong in args'),
                        ({"command": "/etc/passwd"}, 'run the command "/etc/passwd": it is not a program that the task\'s user may execute'),
                        ({"group_add": ["nogroup7"]}, "prepare the container: config.group_add: nogroup7: the image has no such group in /etc/group"),
                        ({"ulimit": {"nofile": "2147483647"}}, "config.ulimit: nofile = 2147483647 is above the agent's own limit, which LimitNOFILE= of drover.service sets: "),
                        ({"sysctl": {"kernel.none": "1"}}, "config.sysctl: kernel.none=1: the kernel has no such value for the namespaces of this container"),
                        ({"volumes": ["alloc/data:/etc/passwd/x"]}, "config.volumes or config.mount: rw:/alloc/data:/etc/passwd/x: Not a directory")):
        case.contains(ended(container("named", **{"command": "/bin/sh", **config}), "failed")[1], why)


def test_hosts():
    """Earlier, host-gateway was written as it is, and what is no address, too; and names of the machine's file were missing in its network."""
    text = said(container("hosts", "cat /etc/hosts", {"Env": {"NAME": "there"}}, extra_hosts=["box:host-gateway", "${NAME}:2001:db8::1"], hostname="own"))
    with open("/etc/hosts", encoding="utf-8") as f:
        case.equal(text, f.read() + "\n127.0.1.1\town\n127.0.0.1\tbox\n2001:db8::1\tthere\nend\n")
    for entry in ("nocolon", "name:", "name:1.2.3", ":1.2.3.4", "two names:1.2.3.4", "name:1.2.3.4\n5.6.7.8 other", "name:gateway"):
        node.refused(400, 'task t: config.extra_hosts: "%s" is not NAME:ADDRESS, with an IP address or host-gateway' % entry.replace("\n", " "),
                     "PUT", "/v1/jobs", container("refused", extra_hosts=[entry]))
    case.contains(ended(container("hosts", network_mode="none", extra_hosts=["box:host-gateway"]), "failed")[1],
                  'config.extra_hosts: "box:host-gateway": the machine\'s address in this network is not known, only in networks of mode bridge and host: write the address')


def test_keys_inside_blocks():
    """Earlier, what was misspelt in a block was passed over."""
    tmpfs = {"type": "tmpfs", "target": "/x"}
    for driver, config, what in (("docker", {"mount": [{**tmpfs, "readonyl": True}]}, "does not know config.mount.readonyl"),
                                 ("docker", {"mount": [{**tmpfs, "readonly": True}]}, "config.mount: a tmpfs that is readonly would always be empty"),
                                 ("docker", {"mounts": [tmpfs, {**tmpfs, "tmpfs_options": [{"sizee": 1}]}]}, "does not know config.mounts.tmpfs_options.sizee"),
                                 ("docker", {"mount": {**tmpfs, "tmpfs_options": {"size": "1x"}}}, "config.mount.tmpfs_options.size must be a whole number"),
                                 ("docker", {"mount": {**tmpfs, "volume_options": {"driver_config": {"nam": "x"}}}}, "does not know config.mount.volume_options.driver_config.nam"),
                                 ("docker", {"auth": [{"username": "a", "passwrod": "b"}]}, "does not know config.auth.passwrod"),
                                 ("podman", {"auth": {"email": "x"}}, "driver podman does not know config.auth.email"),
                                 ("podman", {"auth": {"tls_verify": False}}, "config.auth.tls_verify is not supported: a registry without TLS must have insecure = true in"),
                                 ("docker", {"healthchecks": {"disabel": True}}, "does not know config.healthchecks.disabel"),
                                 ("docker", {"healthchecks": {"disable": "maybe"}}, "config.healthchecks.disable must be true or false"),
                                 ("docker", {"logging": {"x": 1}}, "does not know config.logging.x")):
        node.refused(400, what, "PUT", "/v1/jobs", container("refused", driver=driver, **config))
    text = said(container("blocks", "grep ' /x ' /proc/self/mounts", mount=[{**tmpfs, "tmpfs_options": [{"size": 4096, "mode": 448}]}], healthchecks=[{"disable": True}],
                          logging=[{"type": "json-file", "config": [{"max-size": "1m", "any name": "x"}]}], labels=[{"any": "name"}]))
    case.contains(text, "size=4k,mode=700")


def test_options_that_ask_for_what_there_is():
    text = said(container("options", "cat /data/f", {"Templates": [{"EmbeddedTmpl": "here\n", "DestPath": "local/d/f"}]}, volumes=["local/d:/data:ro,rprivate"],
                          security_opt=["apparmor=unconfined", "label:disable", "no-new-privileges=false"]))
    case.equal(text, "here\nend\n")


def test_a_hard_limit_of_cpu_time():
    made = container("limited", "echo here", {"Resources": {"CPU": 300, "MemoryMB": 50}}, cpu_hard_limit=True, cpu_cfs_period=100000)
    node.register(made)
    node.wait_running("limited", seconds=60)
    cpu = node.ask("/v1/nodes")[0]["ID"]
    cpu = node.ask("/v1/node/" + cpu)["NodeResources"]["Cpu"]
    wanted = str(300 * 100000 * cpu["TotalCpuCores"] // cpu["CpuShares"])
    trees, parent = helper.cgroup_trees(), "/drover-" + crash.instance(node)
    found = [f.read().split()[0] for f in map(open, glob.glob("%s%s/runs/*/cpu.cfs_quota_us" % (trees["cpu"], parent)) if "cpu" in trees else
                                              glob.glob("%s%s/tasks/*/cpu.max" % (trees["v2"], parent)))]
    case.contains(([wanted], []), found, "the quota of each 100 ms")  # []: the machine has no such limit
    node.purge("limited")
    for driver in ("docker", "podman"):
        answer = node.request("PUT", "/v1/jobs", container("refused", driver=driver, cpu_cfs_period=50000))
        case.equal((answer.status, "config.cpu_cfs_period must be 100000" in answer.text), (400, True), answer.text)


def test_the_configuration_limits_capabilities_and_processes():
    """What it does not allow is taken from Docker's default capabilities, too. It limits the containers of its driver only."""
    script = "grep CapBnd /proc/self/status; (i=0; while [ $i -lt 60 ]; do sleep 1000 & i=$((i+1)); done; echo all)"
    text = said(container("many", script, driver="docker", cap_drop=["ALL"], cap_add=["SETUID"]))
    case.equal(text, "CapBnd:\t%016x\nall\nend\n" % (1 << 7), "a container of docker")
    case.equal(said(container("few", script, driver="podman")), "CapBnd:\t%016x\nend\n" % (1 << 0), "a container of podman")
    made = container("more", "grep CapBnd /proc/self/status", driver="podman", cap_add=["NET_RAW"])
    case.equal(said(made).split()[1], "%016x" % (1 << 0 | 1 << 13), "the same with cap_add")
    for driver, config, why in (("podman", {"cap_add": ["SETUID", "net_raw"]}, "driver does not allow the following capabilities: setuid (task t); allow_caps in plugin"),
                                ("docker", {"cap_add": ["net_raw"]}, "driver does not allow the following capabilities: net_raw (task t); allow_caps in plugin"),
                                ("docker", {"cap_add": ["SYS_ADMIN"]}, "a container cannot have these capabilities: sys_admin"),
                                ("podman", {"pids_limit": 51}, "config.pids_limit must be at most 50, the pids_limit of plugin")):
        answer = node.request("PUT", "/v1/jobs", container("refused", driver=driver, **config))
        case.equal((answer.status, why in answer.text), (400, True), answer.text)
    attributes = node.ask("/v1/node/" + node.ask("/v1/nodes")[0]["ID"])["Attributes"]
    case.equal([attributes.get("driver.%s.%s" % name) for name in (("docker", "os_type"), ("docker", "pids.limit"), ("podman", "pids.limit"), ("docker", "version"))],
               ["linux", None, "50", None], "attributes")
    if os.path.exists("/usr/lib/cni/bridge"):
        case.equal(attributes["driver.docker.bridge_ip"], "172.26.64.1", "the machine's address for containers")


REFUSED = (
    ("docker", "volume_driver", "local", "use a volume block of the group"), ("docker", "cpuset_cpus", "0", "use `cores` in the task's resources"),
    ("docker", "network_aliases", ["a"], "it belongs to a network of Docker's"), ("docker", "ipv4_address", "10.0.0.1", "it belongs to a network of Docker's"),
    ("docker", "ipv6_address", "fd00::1", "it belongs to a network of Docker's"), ("docker", "mac_address", "02:00:00:00:00:01", "it belongs to a network of Docker's"),
    ("podman", "selinux_opts", ["disable"], "drover does not set SELinux labels"), ("podman", "apparmor_profile", "a", "drover does not set AppArmor profiles"),
    ("podman", "socket", "a", "there is no podman that has sockets"), ("podman", "memory_reservation", "1m", "use memory and memory_max in the task's resources"),
    ("podman", "memory_swap", "1m", "tasks do not swap"), ("podman", "memory_swappiness", 1, "tasks do not swap"))
CHOICES = (("docker", "pid_mode", "host"), ("docker", "ipc_mode", "host"), ("docker", "uts_mode", "host"), ("docker", "userns_mode", "private"), ("podman", "userns", "keep-id"),
           ("docker", "cgroupns", "host"), ("docker", "runtime", "nvidia"), ("docker", "isolation", "hyperv"))


def test_keys_without_effect():
    """Values that ask for what there is, and what other engines do for a daemon."""
    text = said(container("docker", "pwd", pid_mode="private", ipc_mode="shareable", uts_mode="", userns_mode="", cgroupns="private", runtime="runc", isolation="default",
                          labels={"a": "b"}, logging=[{"type": "journald", "config": [{"tag": "x"}]}], healthchecks=[{"disable": True}], container_exists_attempts=3,
                          auth_soft_fail=True, image_pull_timeout="7m"))
    case.equal(text, "/\nend\n")
    script = "pwd; echo x >/scratch/a && stat -f -c %T /scratch"
    text = said(container("podman", script, driver="podman", working_dir="/etc/app", tmpfs=["/scratch"], userns="auto", labels={"a": "b"}, logging=[{"driver": "nomad"}]))
    case.equal(text, "/etc/app\ntmpfs\nend\n")


def test_a_limit_of_memory_above_the_reserved():
    node.register(container("hard", "echo here", {"Resources": {"CPU": 100, "MemoryMB": 64}}, memory_hard_limit=96, volumes=["local/x:/x"]))
    node.wait_running("hard", seconds=60)
    trees, parent = helper.cgroup_trees(), "/drover-" + crash.instance(node)
    found = [f.read().strip() for f in map(open, glob.glob("%s%s/runs/*/memory.limit_in_bytes" % (trees["memory"], parent)) if "memory" in trees else
                                           glob.glob("%s%s/tasks/*/memory.max" % (trees["v2"], parent)))]
    case.equal(found, [str(96 << 20)], "the limit of the only container")
    case.equal([text for text in texts("hard") if "cannot map ids" in text], [], "events about a file system that can")
    node.purge("hard")
    node.refused(400, "config.memory_hard_limit must be at least 64, the memory of the task's resources",
                 "PUT", "/v1/jobs", container("low", task={"Resources": {"CPU": 100, "MemoryMB": 64}}, memory_hard_limit=32))


def test_what_is_refused_at_once():
    for driver, config, why in (("docker", {"mount": [{"type": "bind", "source": "/etc", "target": "/host"}]}, 'config.mount: "/etc" is of the machine'),
                                ("docker", {"mounts": {"type": "volume", "source": "name", "target": "/data"}}, 'config.mount: "name" is of the machine'),
                                ("docker", {"mount": [{"type": "tmpfs", "target": "data"}]}, 'target "data" is not an absolute path'),
                                *((driver, {key: value}, "config.%s is not supported: %s" % (key, why)) for driver, key, value, why in REFUSED),
                                *((driver, {key: value}, 'config.%s = "%s" is not supported: ' % (key, value)) for driver, key, value in CHOICES),
                                ("docker", {"storage_opt": {"size": "1G"}}, "config.storage_opt is not supported: what the container writes counts to the group's ephemeral_disk"),
                                ("docker", {"hostname": "a b"}, 'config.hostname: "a b" is not a name'), ("docker", {"hostname": "a" * 64}, "is not a name: it may have at most 63"),
                                ("docker", {"work_dir": "a"}, 'config.work_dir: "a" is not an absolute path'),
                                ("podman", {"working_dir": "a/b"}, 'config.working_dir: "a/b" is not an absolute path'),
                                ("podman", {"shm_size": "1x"}, 'config.shm_size: "1x" is not a size as in "512m"'),
                                ("podman", {"shm_size": "9999999t"}, "config.shm_size is out of range"),
                                ("docker", {"security_opt": ["apparmor=profile"]}, "drover sets no labels or AppArmor profiles")):
        answer = node.request("PUT", "/v1/jobs", container("refused", driver=driver, **config))
        case.equal((answer.status, why in answer.text), (400, True), answer.text)


if not shutil.which("skopeo") or not os.path.exists("/bin/busybox"):
    case.skip("no skopeo, or no busybox-static")
with web.Server(images.registry({"a": {"1": IMAGE}, "e": {"1": ENTRY}, "p": {"1": PERL}})) as server, api.Node(agent.config_args(LIMITED)) as node:
    case.run(globals())

# SPDX-License-Identifier: Apache-2.0
# takes: 60
"""The drivers docker and podman: what a container is, seen from inside and from outside."""
import glob
import os
import re
import shutil
import threading

from lib import api, case, images, traces, web
from lib.websocket import Exec

DOCKER_CAPS = 0x000000000_a80425fb & ~(1 << 13)  # Docker's, without NET_RAW
ETC = [images.directory("etc"), images.file("etc/passwd", b"root:x:0:0:root:/root:/bin/sh\nweb:x:1000:1001:web:/home/web:/bin/sh\n"),
       images.file("etc/group", b"root:x:0:\nstaff:x:50:web,other\nweb:x:1001:\n")]


TOOLS = images.tar(images.busybox("sh", "cat", "id", "ls", "mount", "sleep", "echo", "readlink", "stat", "env", "touch", "hostname", "pwd", "grep", "chmod", "chown", "ps",
                                  "true", "dd", "ln", "mkdir", "rm", "trap", "kill", "mknod"))
BASE = images.Image([TOOLS, images.tar(ETC)], {"Cmd": ["/bin/sh", "-c", "echo from the image; exec sleep 1000"], "Env": ["PATH=/bin", "FROM=image", "BOTH=image"],
                                                 "WorkingDir": "/made/here", "StopSignal": "SIGUSR1"})
USER = images.Image([TOOLS, images.tar(ETC)], {"Entrypoint": ["/bin/sh", "-c"], "Cmd": ["id"], "User": "web", "Env": ["PATH=/bin"]})


OUTSIDE, RAN = case.directory() + "/outside", "/var/tmp/drover-2710-ran"
HOSTILE = images.Image([TOOLS, images.tar(ETC + [images.link("way", "/../../.." + OUTSIDE)])], {
    "Volumes": {x: {} for x in ("/../../../../../etc", "/proc", "/way/volume", "../way", "")}, "WorkingDir": "/../../../..%s/made" % OUTSIDE,
    "Env": ["PATH=/bin", "HOME=/etc\nmore:x:0:0::/:/bin/sh", "NOMAD_ALLOC_DIR=/etc", "LD_PRELOAD=/bin/busybox", "no value", "=x"],
    "Labels": {"containerd.io/restart.loguri": "binary:///bin/touch?" + RAN, "io.kubernetes.cri-o.x": "$(touch %s)" % RAN}, "StopSignal": "9; touch " + RAN,
    "Healthcheck": {"Test": ["CMD-SHELL", "touch /alloc/ran"], "Interval": 1000000}, "OnBuild": ["RUN touch /alloc/ran"], "Shell": ["/bin/touch", "/alloc/ran"]})


NOWHERE = images.Image([TOOLS, images.tar(ETC + [
    images.link("etc/resolv.conf", "../run/resolve/stub.conf"), images.link("data", "/mnt/here/deep"), images.link("mnt", "srv/./mnt"), images.link("loop", "ring"),
    images.link("ring", "loop"), images.link("out", "/../../.." + OUTSIDE)])], {"Env": ["PATH=/bin"]})


def container(name, image="a:1", script=None, driver="docker", task=None, **config):
    """A job with one container, whose shell runs the script. It has the machine's network, because those of its own are tested in 2712."""
    config.setdefault("network_mode", "host")
    made = api.job(name, driver=driver)
    if script is not None:
        config.update(command="/bin/sh", args=["-c", script])
    made["Job"]["TaskGroups"][0]["Tasks"][0].update(Config={"image": images.name(server, image), **config}, **(task or {}))
    return made


def run(name, script, **more):
    """Runs a container until it has said "end", and returns what it said."""
    node.register(container(name, script=script + "\necho end; exec sleep 1000", **more))
    alloc = node.wait_running(name, seconds=60)[0]
    node.wait_said(alloc, b"end\n")
    said = node.logs(alloc).decode()
    node.purge(name)
    return said


def batch(made):
    made["Job"]["Type"] = "batch"
    made["Job"]["TaskGroups"][0]["RestartPolicy"] = {"Attempts": 0, "Mode": "fail"}
    return made


def events(alloc):
    return [e["DisplayMessage"] for e in node.ask("/v1/allocation/" + alloc["ID"])["TaskStates"]["t"]["Events"]]


def failed(made):
    """Returns the last events of a job whose task fails."""
    node.register(batch(made))
    alloc = node.wait_allocs(made["Job"]["ID"], [(0, "run", "failed")], seconds=60)[0]
    said = events(alloc)
    node.purge(made["Job"]["ID"])
    return "\n".join(said)


def test_a_container_runs_what_its_image_says():
    node.register(container("plain"))
    alloc = node.wait_running("plain", seconds=60)[0]
    node.wait_said(alloc, b"from the image\n")
    case.contains("\n".join(events(alloc)), "Downloading image", "events")
    node.purge("plain")


def test_inside():
    said = run("inside", "pwd; id; echo $$; env | grep -E '^(FROM|BOTH|HOME|NOMAD_(TASK|ALLOC|SECRETS)_DIR)=' ; grep -E '^(Cap|NoNew|Seccomp:)' /proc/self/status;"
               "cat /proc/self/uid_map; for n in mnt pid ipc uts user net cgroup; do readlink /proc/self/ns/$n; done", task={"Env": {"BOTH": "job"}})
    lines = said.splitlines()
    case.equal(lines[:3], ["/made/here", "uid=0(root) gid=0(root) groups=0(root)", "1"], "directory, user, pid")
    case.equal(sorted(lines[3:9]), ["BOTH=job", "FROM=image", "HOME=/root", "NOMAD_ALLOC_DIR=/alloc", "NOMAD_SECRETS_DIR=/secrets", "NOMAD_TASK_DIR=/local"], "environment")
    status = dict(re.findall(r"^(\w+):\t(\w+)$", said, re.M))
    case.equal([int(status["Cap" + x], 16) for x in ("Inh", "Prm", "Eff", "Bnd", "Amb")], [0, DOCKER_CAPS, DOCKER_CAPS, DOCKER_CAPS, 0], "capabilities")
    case.equal((status["NoNewPrivs"], status["Seccomp"]), ("0", "2"), "no_new_privs, filter")
    ids = re.search(r"^\s+0\s+(\d+)\s+65536$", said, re.M)
    assert ids and int(ids.group(1)) > images.ID_FIRST, said
    spaces = dict(re.findall(r"^(\w+):\[(\d+)\]$", said, re.M))
    same = [n for n in spaces if spaces[n] == re.search(r"\d+", os.readlink("/proc/self/ns/" + n)).group(0)]
    case.equal(same, ["net"], "namespaces of the machine")


def test_users_and_groups():
    said = run("users", "id; cat /proc/self/status | grep CapEff", image="u:1", entrypoint=[])
    case.contains(said, "uid=1000(web) gid=1001(web) groups=50(staff),1001(web)", "the image's user")
    case.contains(said, "CapEff:\t0000000000000000", "capabilities of a user")
    case.contains(run("numbers", "id", task={"User": "7:50"}, group_add=["web", "77"]), "uid=7 gid=50(staff) groups=50(staff),77,1001(web)", "numbers")
    case.contains(failed(container("nobody", task={"User": "absent"})), 'find user "absent": the image has no such user', "a user that the image does not have")


def test_files():
    """What a container writes is its own, and is gone with it; its directories are the task's."""
    said = run("files", "touch /new /local/l /alloc/a /alloc/data/a /alloc/tmp/a /secrets/s; chown 5:6 /local/l; stat -c '%n %u:%g %a' /local/l /alloc/data/a /secrets /local; cat /etc/hostname; hostname;"
               "cat /etc/hosts /etc/resolv.conf; touch /etc/passwd && echo writable", hostname="box", extra_hosts=["there:10.0.0.9"], dns_servers=["10.1.1.1"],
               dns_search_domains=["a.example", "b.example"], volumes=["local/data:/data:ro"])
    for part in ("/local/l 5:6 644\n", "/alloc/data/a 0:0 644\n", "\nbox\nbox\n", "10.0.0.9\tthere\n", "search a.example b.example\nnameserver 10.1.1.1\n", "writable"):
        case.contains(said, part, "files")


def test_links_that_lead_nowhere():
    """As with Docker, what they name is made, inside of the container's root."""
    said = run("links", "cat /run/resolve/stub.conf; readlink /etc/resolv.conf; touch /data/f; ls /srv/mnt/here/deep /local/d; ls -d %s" % OUTSIDE, image="l:1",
               dns_servers=["10.1.1.1"], volumes=["local/d:/data", "local/d:/out"])
    case.contains(said, "nameserver 10.1.1.1\n../run/resolve/stub.conf\n/local/d:\nf\n\n/srv/mnt/here/deep:\nf\n%s\n" % OUTSIDE, "what is there")
    case.equal(os.path.exists(OUTSIDE), False, "the directory of the machine")
    case.contains(failed(container("ring", image="l:1", script="true", volumes=["local/d:/loop"])), "Too many levels of symbolic links")


def test_mounts():
    said = run("mounts", "cat /proc/self/mounts; ls /dev; for p in /proc/sys/kernel/core_pattern /proc/sysrq-trigger /sys/kernel/uevent_helper; do echo x > $p && echo wrote $p; done;"
               "ls /sys/firmware /proc/scsi; cat /proc/kcore /proc/keys; touch /x && echo wrote root; touch /t/x && echo wrote t",
               readonly_rootfs=True, mount=[{"type": "tmpfs", "target": "/t", "tmpfs_options": [{"size": 100000}]}])
    assert "wrote /" not in said and "wrote root" not in said, said
    case.contains(said, "wrote t", "a tmpfs")
    mounted = {x.split()[1]: x.split() for x in said.splitlines() if len(x.split()) == 6}
    for path, kind in (("/", "overlay"), ("/proc", "proc"), ("/sys", "sysfs"), ("/dev", "tmpfs"), ("/dev/pts", "devpts"), ("/dev/shm", "tmpfs"), ("/dev/mqueue", "mqueue"),
                       ("/secrets", "tmpfs"), ("/t", "tmpfs")):
        case.equal(mounted[path][2], kind, "mount " + path)
    case.equal(mounted["/sys"][3].split(",")[0], "ro", "/sys")
    case.equal(mounted["/proc/sys"][3].split(",")[0], "ro", "/proc/sys")
    case.contains(said, "core\nfd\nfull\nmqueue\nnull\nptmx\npts\nrandom\nshm\nstderr\nstdin\nstdout\ntty\nurandom\nzero\n", "/dev")


def test_no_network():
    said = run("none", "ls /sys/class/net; cat /proc/net/dev", network_mode="none")
    case.equal([x.strip().split(":")[0] for x in said.splitlines() if ":" in x], ["lo"], "devices of the network")
    case.contains(said, "lo\n", "/sys/class/net")


def test_the_configuration_of_an_image_concerns_its_container_only():
    """CVE-2022-23648: paths of VOLUME; CVE-2026-53488: labels; CVE-2022-4318: lines in the value of HOME; WORKDIR, health checks, and the agent's own variables."""
    said = run("hostile", "pwd; cat /etc/passwd; echo is $NOMAD_ALLOC_DIR; ls /alloc /way; cat $HOME", image="h:1")
    lines = said.splitlines()
    case.equal(lines[0], OUTSIDE + "/made", "the working directory")
    case.equal((lines.count("root:x:0:0:root:/root:/bin/sh"), lines.count("more:x:0:0::/:/bin/sh"), "is /alloc" in lines), (1, 0, True), said)
    case.equal([x for x in ("ran", "shadow") if x in lines], [], said)
    case.equal((os.path.lexists(OUTSIDE), os.path.lexists(RAN)), (False, False), "what is on the machine")


def test_signals_and_sessions():
    node.register(container("signals", script="trap 'echo got USR1; exit 7' USR1; echo ready; while :; do sleep 1; done"))
    alloc = node.wait_running("signals", seconds=60)[0]
    node.wait_said(alloc, b"ready\n")
    session = Exec(node, alloc["ID"], ["/bin/sh", "-c", "id -u; echo $FROM; pwd; hostname; readlink /proc/1/exe; ls /proc | grep -c '^[0-9]'"])
    said = session.end()[0].decode()
    case.equal(said.splitlines()[:3], ["0", "image", "/made/here"], "a session")
    case.equal(said.splitlines()[4], "/bin/busybox", "pid 1 of a session")
    node.replace_supervisor()
    node.wait_running("signals")
    node.do("DELETE", "/v1/job/signals")
    alloc = node.wait_allocs("signals", [(0, "stop", "complete")], seconds=60)[0]
    node.wait_said(alloc, b"got USR1\n")
    case.contains("\n".join(events(alloc)), "Exit Code: 7", "the exit after the image's stop signal")
    node.purge("signals")


def test_what_a_container_cannot_have():
    for config, why in (({"privileged": True}, "config.privileged is not allowed on this node"), ({"colour": "red"}, "driver docker does not know config.colour"),
                        ({"network_mode": "my-net"}, "config.network_mode"), ({"volumes": ["/etc:/host"]}, '"/etc" is of the machine: the agent\'s configuration must have plugin "docker"'),
                        *[({"volumes": [x + ":/host"]}, "is not in the task's directories") for x in (
                            "local/..", "local/../secrets", "local/a/..", "../alloc/..", "..", "../../x", ".", "../other/local")],
                        ({"cap_add": ["sys_admin"]}, "cannot have these capabilities: sys_admin"), ({"security_opt": ["seccomp=unconfined"]}, "filter of system calls is always on"),
                        ({"readonly_rootfs": "perhaps"}, "must be true or false")):
        made = container("refused", **config)
        answer = node.request("PUT", "/v1/jobs", made)
        case.contains(answer.text, why, "the answer for %s" % config)


def of_containers():
    """Returns the pids of processes whose root has an id of a container."""
    found = []
    for path in glob.glob("/proc/[0-9]*/uid_map"):
        try:
            with open(path, encoding="ascii") as f:
                words = f.read().split()
        except OSError:
            continue
        if words and int(words[1]) > images.ID_FIRST:
            found.append(path)
    return found


def test_the_secrets_of_a_container_end_with_it():
    mark = os.urandom(16).hex()
    made = batch(container("ended", script="cat /secrets/v", task={"Templates": [{"EmbeddedTmpl": mark, "DestPath": "secrets/v"}]}))
    node.register(made)
    alloc = node.wait_allocs("ended", [(0, "run", "complete")], 60)[0]
    case.equal(node.logs(alloc).decode(), mark)
    case.equal(traces.in_files("%s/alloc/%s" % (node.data, alloc["ID"]), [mark.encode()]), [])
    node.purge("ended")


def test_slow_registries_of_one_job_do_not_delay_another():
    """Earlier a job whose registry never answered took all places of pulls for as long as its image_pull_timeout says."""
    go, paths = threading.Event(), ["/v2/slow/manifests/%d" % i for i in range(5)]

    def answer(handler):
        go.wait(300)
        handler.send_error(404)

    def asked():
        return sum(server.count(path) for path in paths)
    server.files.update(dict.fromkeys(paths, answer))
    tasks = [{**container("x", image="slow:%d" % i, image_pull_timeout="24h")["Job"]["TaskGroups"][0]["Tasks"][0], "Name": "t%d" % i} for i in range(5)]
    try:
        node.register(api.job("slow", group={"Tasks": tasks}))
        case.until(lambda: asked() == 2, 60, "the pulls of one job at once")
        before = server.count("/v2/b/manifests/1")
        run("quick", "true", image="b:1")
        case.equal((asked(), server.count("/v2/b/manifests/1") > before), (2, True), "pulls of the slow job, and that of the other")
    finally:
        go.set()
    node.purge("slow")


def test_nothing_is_left():
    case.until(lambda: not of_containers(), 20, "the end of all processes of containers")
    node.do("PUT", "/v1/system/gc")
    case.until(lambda: not glob.glob(node.data + "/alloc/*"), 20, "the end of their directories")


if not shutil.which("skopeo") or not os.path.exists("/bin/busybox"):
    case.skip("no skopeo, or no busybox-static")
with web.Server(images.registry({"a": {"1": BASE}, "b": {"1": BASE}, "u": {"1": USER}, "h": {"1": HOSTILE}, "l": {"1": NOWHERE}})) as server, api.Node() as node:
    case.run(globals())

# SPDX-License-Identifier: Apache-2.0
"""exec-helper and executor alone: containers, as their root sees them, and what that root cannot do."""
import errno
import os
import time
import uuid

from lib import case, exe, images, ipc, journal, runs
from lib.containers import CAPS, container, read, said


def test_a_container():
    with runs.Runs() as r:
        text = said(r, "id; echo $$ $(hostname) $(pwd); cat /proc/self/uid_map /proc/self/mounts; ls /proc/self/fd | grep -vc '^[012]$';"
                       "grep -E '^(Cap|NoNew|Seccomp:)' /proc/self/status; touch /x /local/x && chown 7:8 /local/x", env=["PATH=/bin"])
        lines = text.splitlines()
        case.equal(lines[:2] + [lines[2].split()], ["uid=0(root) gid=0(root) groups=0(root)", "1 box /", ["0", str(images.ID_OWN), "65536"]], "root of the container")
        mounts = {x.split()[1]: x.split() for x in lines if len(x.split()) == 6}
        for path, kind in (("/", "overlay"), ("/proc", "proc"), ("/sys", "sysfs"), ("/dev", "tmpfs"), ("/dev/pts", "devpts"), ("/dev/shm", "tmpfs"),
                           ("/dev/mqueue", "mqueue"), ("/secrets", "tmpfs")):
            case.equal(mounts[path][2], kind, "mount " + path)
        for path in ("/sys", "/proc/sys", "/proc/irq", "/alloc/logs", "/sys/fs/cgroup"):
            case.equal(mounts[path][3].split(",")[0], "ro", "mount " + path)
        for path in ("/proc/keys", "/sys/firmware"):
            case.equal(path in mounts, True, path + " is covered")
        caps = [int(x.split()[1], 16) for x in lines if x.startswith("Cap")]
        case.equal(caps, [0] + [int(CAPS, 16)] * 3 + [0], "capabilities")
        case.contains(text, "NoNewPrivs:\t0\nSeccomp:\t2\n", "filter")
        task = "%s/alloc/%s/web/" % (r.places.data, r.runs[0].alloc)
        at = os.stat(task + "local/x")
        case.equal((at.st_uid, at.st_gid), (images.ID_FILES + 7, images.ID_FILES + 8), "ids on disk")
        case.equal(os.stat(task + "private/upper/x").st_uid, images.ID_FILES, "what it wrote")


def test_in_the_network_of_the_machine():
    with runs.Runs() as r:
        text = said(r, "readlink /proc/self/ns/net; echo x > /sys/class/net/lo/ifalias || echo protected; ls /sys/class/net", net_mode="EXEC_NS_HOST")
        case.contains(text, os.readlink("/proc/%d/ns/net" % r.helper.pid) + "\n", "the network")
        case.contains(text, "protected", "/sys")


def test_a_restarted_task_has_a_new_root():
    with runs.Runs() as r:
        said(r, "mkdir -p /dir/sub; echo x > /dir/sub/f; chmod 0 /dir; rm /bin/nc; touch /local/kept", number=2)
        alloc = r.runs[0].alloc_id
        text = said(r, "ls /dir; ls -ln /bin/nc /local/kept", number=3, alloc=alloc)
        case.contains(text, "ls: /dir: No such file or directory", "what the first wrote")
        case.contains(text, "/bin/nc", "what the first removed")
        case.contains(text, " 0        0 ", "the owner of /local/kept for a container with other ids")


def test_a_container_that_made_a_deep_tree_can_be_restarted():
    """Earlier, a restart failed for ever after 256 nested directories."""
    with runs.Runs() as r:
        said(r, "n=0; while [ $n -lt 600 ]; do mkdir d && cd d || exit 1; n=$((n + 1)); done; chmod 0 .; mkdir -p /w/a/b; chmod 0 /w/a /w", env=["PATH=/bin"])
        case.equal(said(r, "ls -d /d /w; echo again", alloc=r.runs[0].alloc_id, number=3), "again\nls: /d: No such file or directory\nls: /w: No such file or directory\n", "a restart")


def test_users():
    with runs.Runs() as r:
        for user, wanted in (("web", "uid=1000(web) gid=1001(web) groups=50(staff),1001(web)"), ("1000", "uid=1000(web) gid=1001(web) groups=50(staff),1001(web)"),
                             ("7", "uid=7 gid=0(root) groups=0(root)"), ("7:staff", "uid=7 gid=50(staff) groups=50(staff)"), ("web:77", "uid=1000(web) gid=77 groups=77"),
                             ("", "uid=0(root) gid=0(root) groups=0(root)")):
            text = said(r, "id; grep -E 'CapEff' /proc/self/status; echo $HOME; echo x > /dev/stdout", user_inside=user)
            case.equal(sorted(text.splitlines()[0].split("groups=")[-1].split(",")), sorted(wanted.split("groups=")[-1].split(",")), "groups of %r: %s" % (user, text))
            case.equal(text.splitlines()[0].split(" groups")[0], wanted.split(" groups")[0], "user %r" % user)
            case.contains(text, "CapEff:\t%016x" % (0 if user else int(CAPS, 16)), "capabilities of %r" % user)
        for user in ("absent", "70000", "-1", "web:absent", "4294967295"):
            run = container(r, "true", user_inside=user)
            record = r.ended(run)
            case.equal((record["state"], record["step"], record["detail"]), (exe.EXE_FAILED, exe.EXE_STEP_CONTAINER, 1), "user %r" % user)


def test_sessions():
    with runs.Runs() as r:
        run = container(r, "echo ready; exec sleep 1000", user_inside="web")
        record = r.wait_state(run, exe.EXE_RUNNING)
        case.equal((record["driver"], record["id_range"]), (3, 2), "what a supervisor without its database must know")
        with r.session(run, "/bin/sh", ["-c", "id -u; hostname; grep -c . /proc/1/comm; ls /proc/self/fd; cat /proc/self/uid_map"], driver="EXEC_DRIVER_DOCKER", id_range=2,
                       user_inside="web", options=["hostname=box", "caps=" + CAPS]) as s:
            lines = s.read(1).decode().split()
            case.equal(s.wait_exited()["exit_code"], 0, "a session: %r" % lines)
        case.equal(lines, ["1000", "box", "1", "0", "1", "2", "3", "0", str(images.ID_OWN), "65536"], "what it said")
        case.equal(r.replace(run, {"token": b"sesame"}, driver="EXEC_DRIVER_DOCKER", id_range=2), 0, "a session that writes files")
        case.equal(read("/proc/%d/root/secrets/token" % record["task_pid"]), "sesame", "the file")


def test_a_container_has_only_sessions_of_its_driver():
    """A session of exec would run a program of the image as a user of the machine, and one of raw_exec as root."""
    with runs.Runs() as r:
        run = container(r, "exec sleep 1000")
        r.wait_state(run, exe.EXE_RUNNING)
        for driver in ("EXEC", "RAW_EXEC", "PODMAN"):
            e = case.raises(ipc.RequestError, r.session, run, "/bin/true", driver="EXEC_DRIVER_" + driver, **({"id_range": 2} if driver == "PODMAN" else {"user": ""}))
            case.contains(str(e), "the run is another driver's")
    with runs.Runs('plugin "docker" { config { enabled = true\n allow_privileged = true } }') as r:
        for privileged in (False, True):
            run = container(r, "exec sleep 1000", privileged=privileged)
            r.wait_state(run, exe.EXE_RUNNING)
            e = case.raises(ipc.RequestError, r.session, run, "/bin/true", driver="EXEC_DRIVER_DOCKER", id_range=2, privileged=not privileged)
            case.contains(str(e), "a session must be privileged if its container is, and only then")
            with r.session(run, "/bin/true", driver="EXEC_DRIVER_DOCKER", id_range=2, privileged=privileged) as s:
                case.equal(s.wait_exited()["exit_code"], 0, "a session of its kind")
            r.reap(run)


def test_a_container_that_stops_a_sessions_child_does_not_keep_its_executor():
    """Earlier, the executor waited for ever, as root. The child, which has a copy of the executor's memory and descriptors, shows nothing meanwhile."""
    look = ("for f in environ maps auxv; do read x < $p/$f && echo read $f; done; for f in root cwd; do [ -e $p/$f/. ] && echo entered $f; done;"
            "for f in $p/fd/*; do [ -e $f ] && echo saw $f; done; for f in mem oom_score_adj; do echo 5 > $p/$f && echo wrote $f; done")
    stopped = "read c < $p/comm && [ $c = drover-executor ] && read a b state c < $p/stat && [ $state = T ]"
    with runs.Runs() as r:
        run = container(r, "echo ready; while :; do kill -STOP -1; for p in /proc/[0-9]*; do kill -STOP -1; if %s; then echo looked; %s; fi; done; done 2> /dev/null" % (stopped, look))
        record = r.wait_state(run, exe.EXE_RUNNING)
        case.until(lambda: "ready" in r.log(run), 10, "its start")
        why = ""
        for _ in range(500):  # the child is not always stopped in time
            try:
                r.session(run, "/bin/true", driver="EXEC_DRIVER_DOCKER", id_range=2).close()
            except ipc.Error as e:
                why = str(e)
                break
        case.contains(why, "'step': %d, 'error': %d," % (exe.EXE_STEP_CLONE, errno.ETIMEDOUT), "how a stopped session ended")
        case.equal(r.record(run)["task_pid"], record["task_pid"], "the container")
        case.equal(set(r.log(run).splitlines()), {"ready", "looked"}, "what the container saw in the child")


def test_shared_directories_keep_their_owners():
    """Earlier, they were given to root of a container, who could then remove the files of other tasks in sticky directories."""
    with runs.Runs() as r:
        alloc = r.make_alloc()
        top = "%s/alloc/%s/alloc" % (r.places.data, uuid.UUID(bytes=alloc))
        for name, owner, mode in (("theirs", 4711, 0o644), ("open", 4711, 0o666)):
            case.write(top + "/" + name, "x\n")
            os.chown(top + "/" + name, owner, owner)
            os.chmod(top + "/" + name, mode)
        before = [(x.st_uid, x.st_gid, x.st_mode) for x in map(os.stat, (top, top + "/data", top + "/tmp"))]
        text = said(r, "cd /alloc; touch own data/own tmp/own && rm own; echo y >> open; stat -c '%u %g' . theirs; chmod 777 . || chown 0 . || chmod 666 theirs || rm -f theirs ||"
                       "mkdir data/sub && chmod 4755 data/own && echo end", alloc=alloc)
        case.contains(text, "65534 65534\n65534 65534\n", "users of the machine, inside")
        case.contains(text, "end\n", "what a container cannot do: " + text)
        case.equal([(x.st_uid, x.st_gid, x.st_mode) for x in map(os.stat, (top, top + "/data", top + "/tmp"))], before, "the directories")
        case.equal((sorted(os.listdir(top + "/data")), read(top + "/open"), os.path.exists(top + "/theirs")), (["own", "sub"], "x\ny\n", True), "what it wrote")
        case.equal(os.stat(top + "/data/own").st_uid, images.ID_FILES, "the owner of a set-user-id program, which is not that of layers")


def test_the_oom_killer_does_not_spare_containers():
    """Earlier, a container had the agent's score of -500 and could choose it again."""
    with runs.Runs() as r:
        try:
            with open("/proc/%d/oom_score_adj" % r.helper.pid, "w", encoding="ascii") as f:
                f.write("-500")
        except PermissionError:
            pass  # root without CAP_SYS_RESOURCE
        for score in (0, 700):
            run = container(r, "cat /proc/self/oom_score_adj; echo -1 > /proc/self/oom_score_adj || echo refused; exec sleep 1000", oom_score_adj=score)
            case.until(lambda: "refused" in r.log(run), 10, "its start: " + r.log(run))
            case.equal(r.log(run), "%d\nrefused\n" % score, "oom_score_adj of a container")
            with r.session(run, "/bin/cat", ["/proc/self/oom_score_adj"], driver="EXEC_DRIVER_DOCKER", id_range=2, oom_score_adj=score) as s:
                case.equal(s.read(1).decode(), "%d\n" % score, "oom_score_adj of a session")
                s.wait_exited()
            r.reap(run)


def test_a_container_is_root_on_a_volume_only_where_nobody_else_can_be():
    """Earlier, it could leave set-user-id programs of root for all users of the machine."""
    top = case.directory()
    os.chmod(top, 0o755)
    places = {"open": top, "closed": top + "/closed", "up": top + "/through", "link": top + "/closed/link", "group": top + "/group"}
    os.mkdir(places["closed"], 0o700)
    os.mkdir(top + "/up")
    os.symlink("closed/../up", places["up"])
    os.mkdir(places["group"], 0o710)
    os.symlink(top, places["link"])
    for place in places.values():
        os.makedirs(place + "/v", 0o755, exist_ok=True)
    os.chmod(top + "/closed", 0o700)
    files = top + "/v", top + "/closed/v"
    for at in files:
        for name, mode, owner in (("all", 0o644, 0), ("own", 0o600, 0), ("others", 0o600, 7)):
            with open(at + "/" + name, "w", encoding="ascii") as f:
                f.write("contents of %s\n" % name)
            os.chown(at + "/" + name, owner, owner)
            os.chmod(at + "/" + name, mode)
    hcl = "client {\n%s}\n" % "".join('host_volume "%s" {\n path = "%s/v"\n}\n' % x for x in places.items())
    look = "cd /v; cat all own others; stat -c '%u' others; touch mine && chown 5:6 mine && chmod 4755 mine && echo written"

    def volume(name, read_only=False):
        return {"mounts": [{"kind": "EXEC_MOUNT_HOST_VOLUME", "name": name, "read_only": read_only}], "dests": ["/v"]}

    with runs.Runs(hcl) as r:
        for name in places:
            if name != "closed":
                why = str(case.raises(ipc.RequestError, container, r, "true", **volume(name)))
                case.contains(why, 'host volume "%s" must be read-only in a container: all users of the machine can reach %s/v' % (name, places[name]))
        text = said(r, look, **volume("open", True))
        case.contains(text, "contents of all\n65534\n", "what others may read")
        for word in ("contents of own", "contents of others", "written"):
            case.equal(word in text, False, "%s: %s" % (word, text))
        case.contains(said(r, look, **volume("closed")), "contents of all\ncontents of own\ncontents of others\n7\nwritten\n", "root on a volume")
        at = os.stat(top + "/closed/v/mine")
        case.equal((at.st_uid, at.st_gid, at.st_mode & 0o7777), (5, 6, 0o4755), "a file on disk")
        # Parts of a volume: none is outside of it, whoever writes there, and nothing is made where nothing may be written.
        os.symlink("..", top + "/closed/v/up")
        os.symlink("/", top + "/v/root")

        def part(path, name="closed", read_only=False):
            return {"mounts": [{"kind": "EXEC_MOUNT_HOST_VOLUME", "name": name, "read_only": read_only, "path": path}], "dests": ["/v"]}
        case.contains(said(r, "touch /v/there; cat /v/../one", **{**part("new/a"), "mounts": part("new/a")["mounts"] + part("all", "open", True)["mounts"], "dests": ["/v", "/one"]}),
                      "contents of all\n", "a directory that was missing, and a file")
        case.equal(sorted(os.listdir(top + "/closed/v/new/a")), ["there"])
        for path, name, read_only in [(x, "closed", r_o) for x in ("..", "../v", "up", "up/v", "new/../..", "/etc", "all/x", "new/" + "x" * 256) for r_o in (False, True)] + \
                [("root", "open", True), ("root/etc", "open", True), ("missing", "open", True), ("missing", "closed", True)]:
            record = r.ended(container(r, "ls /v", **part(path, name, read_only)))
            case.equal((record["state"], record["step"]), (exe.EXE_FAILED, exe.EXE_STEP_MOUNT), "%s of %s: %d" % (path, name, record["error"]))
        case.equal([os.path.exists(x) for x in (top + "/v/missing", top + "/closed/v/missing", top + "/closed/new")], [False, False, False])
        # Earlier, a part could be below a directory that is closed to others.
        for at in files:
            os.makedirs(at + "/shut/in")
            for name in ("/shut/f", "/shut/in/f"):
                case.write(at + name, "contents of f\n")
                os.chmod(at + name, 0o644)
            os.chmod(at + "/shut", 0o750)
        for path in ("shut/f", "shut/in", "shut/in/f"):
            record = r.ended(container(r, "cat /v /v/f", **part(path, "open", True)))
            case.equal((record["state"], record["step"], record["error"]), (exe.EXE_FAILED, exe.EXE_STEP_MOUNT, errno.EACCES), path)
            case.contains(said(r, "cat /v /v/f; true", **part(path)), "contents of f\n", "of a volume that only root can enter: " + path)
        case.contains(str(case.raises(ipc.RequestError, r.start, "true", driver="EXEC", **part("shut/in", "open", True))), "only a container can have a part of a volume", "with exec")


def test_options():
    with runs.Runs() as r:
        text = said(r, "touch /x || echo read only; touch /local/y /tmp/mem/z; cat /etc/hosts; ulimit -n; cat /proc/sys/net/core/somaxconn; grep NoNew /proc/self/status; ls /data; ls /dev/shm; df /dev/shm",
                    options=["flag=read_only", "flag=no_new_privs", "etc=hosts:1.2.3.4 there\n", "limit=7:64:128", "sysctl=net.core.somaxconn=77", "tmpfs=65536:700:/tmp/mem",
                             "bind=ro:/local/data:/data", "shm=1048576"])
        for part in ("read only\n1.2.3.4 there\n64\n77\nNoNewPrivs:\t1\n",):
            case.contains(text, part, "options")
        for option in ("sysctl=kernel.core_pattern=x", "sysctl=../../x=1", "limit=99:1:1", "colour=red", "bind=rw:relative:/x", "etc=../x:y", "flag=other"):
            record = r.ended(container(r, "true", options=[option]))
            case.equal((record["state"], record["step"], record["detail"] & 0xff), (exe.EXE_FAILED, exe.EXE_STEP_CONTAINER, 8), option)


def test_sources_of_mounts_stay_in_the_tasks_directories():
    """Earlier, a link in `local` to /proc or to the root had them without their masks."""
    with runs.Runs() as r:
        alloc = r.make_alloc()
        top = "%s/alloc/%s/" % (r.places.data, uuid.UUID(bytes=alloc))
        case.contains(said(r, "touch /one/f; ls /local/a/b", options=["bind=rw:/local/a//b/:/one", "bind=ro:/alloc/data:/two", "bind=rw:/secrets:/three"], alloc=alloc), "f", "mounts")
        # Earlier, these were refused as another mount. They are read-only, whatever the option says.
        said(r, "true", alloc=alloc, number=3)
        text = said(r, "ls /logs; for f in /logs/new /logs/web.stdout.0 /one; do echo x > $f || echo protected; done", alloc=alloc, number=3,
                    options=["bind=rw:/alloc/logs:/logs", "bind=rw:/alloc/logs/web.stdout.0:/one"])
        case.contains(text, "web.stdout.0\n", "logs")
        case.equal(text.count("protected"), 3, text)
        case.contains(said(r, "cat /x/passwd; ls /made", options=["bind=rw:/etc:/x", "bind=rw:/custom/new:/made"], alloc=alloc), "root:x:0:0:", "of its root")
        for n, target in enumerate(("/proc", "/", "..", "../../proc", "a", "/local/a")):
            for at in (top + "web/local", top + "alloc/data"):
                os.symlink(target, "%s/l%d" % (at, n))
        sources = ["/%s/l%d%s" % (at, n, more) for at in ("local", "alloc/data") for n in range(6) for more in ("", "/sys")]
        for source in sources + ["/local/../proc", "/local/..", "/proc", "/proc/sys", "/sys/kernel", "/dev", "/etc/../proc", "/bin/echo/..", "/", "//", "local", "", "/alloc/logsx/../../proc", "/alloc/logs/absent", "/alloc//logs", "/local/" + "x" * 256]:
            record = r.ended(container(r, "ls /x; cat /x/kcore", options=["bind=rw:%s:/x" % source], alloc=alloc))
            case.equal((record["state"], record["step"], record["detail"] & 0xff), (exe.EXE_FAILED, exe.EXE_STEP_CONTAINER, 8), "source " + source)


def test_a_block_device_of_a_plugin_is_refused():
    """Earlier, the start failed with EBADF."""
    with runs.Runs() as r:
        alloc = r.make_alloc()
        mount = {"kind": "EXEC_MOUNT_CSI_VOLUME", "place": {"kind": "PLUGIN_NODE", "plugin": "p", "volume": "v", "usage": "u", "alloc": alloc}, "proof": {"is_block": True}}
        why = str(case.raises(ipc.RequestError, container, r, "true", alloc=alloc, mounts=[mount], dests=["/v"]))
        case.contains(why, 'volume "v" is a block device, which a container cannot have')


def test_an_init_process():
    with runs.Runs() as r:
        run = container(r, "echo $$; exit 5", options=["flag=init"])
        record = r.ended(run)
        case.equal((record["exit_code"], r.log(run)), (5, "2\n"), "exit code and pid below an init process")
        run = container(r, "trap 'echo caught; exit 3' TERM; echo ready; while :; do sleep 0.1; done", options=["flag=init"])
        case.until(lambda: "ready" in r.log(run), 10, "its start")
        with r.connect(run) as c:
            c.send(exe.EXE_STOP, signal=15, timeout_ms=5000)
        case.equal((r.ended(run)["exit_code"], r.log(run)), (3, "ready\ncaught\n"), "the signal")


def test_the_lease_of_a_container_that_floods_its_terminal():
    with runs.Runs() as r:
        r.places.make_lease(last_ok=time.clock_gettime_ns(time.CLOCK_BOOTTIME))
        run = container(r, "trap '' INT TERM HUP; while :; do echo flood; done", tty=True, lease_ms=300, kill_timeout_ms=100, log_max_files=2, log_max_bytes=65536)
        record = r.ended(run, seconds=60)
        case.equal((record["flags"] & (exe.EXE_END_LEASE | exe.EXE_END_KILLED), record["exit_signal"]), (exe.EXE_END_LEASE | exe.EXE_END_KILLED, 9))
        case.contains(r.log(run)[-4096:], "flood\r\nflood\r\n")


def test_lines_of_a_terminal_in_the_journal():
    with journal.Journal() as j, runs.Runs() as r:
        run = container(r, "echo one; echo; echo '<3>bad' >&2; printf end", tty=True, log_store="LOG_STORE_BOTH", log_job="shop")
        case.equal(r.ended(run)["exit_code"], 0)
        case.equal((j.messages(), j.messages("stderr")), ([b"one", b"", b"bad", b"end"], []))
        case.equal(r.log(run), "one\r\n\r\n<3>bad\r\nend")


def test_a_terminal_is_only_for_containers():
    with runs.Runs() as r:
        for driver in ("RAW_EXEC", "EXEC"):
            record = r.ended(r.start("/bin/true", driver=driver, tty=True))
            case.equal((record["state"], record["step"]), (exe.EXE_FAILED, exe.EXE_STEP_TERMINAL), "a run of " + driver)


def test_the_policy():
    with runs.Runs() as r:
        for number in (0, 1, 3838, 65535, 2**32 - 1):
            case.contains(str(case.raises(ipc.RequestError, container, r, "true", number=number)), "has no range of ids", "range %d" % number)
        for uid in (images.ID_FIRST, images.ID_OWN, 0x7ffdffff):
            for driver in ("EXEC", "RAW_EXEC"):
                case.contains(str(case.raises(ipc.RequestError, r.start, "true", driver=driver, user=str(uid))), "is of the ids of containers", "uid %d" % uid)
        case.equal(r.list(), [x for x in r.list() if x in [y.name for y in r.runs]], "runs after refusals")
        record = r.ended(r.start("/bin/sh", driver="DOCKER", id_range=2, n_layers=1, layers=[3]))
        case.equal((record["state"], record["step"], record["detail"]), (exe.EXE_FAILED, exe.EXE_STEP_LAYERS, 2), "a layer that is missing")
    with runs.Runs('plugin "docker" { config { enabled = false } }') as r:
        case.contains(str(case.raises(ipc.RequestError, container, r, "true")), "driver docker is not enabled", "a disabled driver")


def test_a_privileged_container_is_refused_without_the_setting():
    with runs.Runs() as r:
        alloc = r.make_alloc()
        why = str(case.raises(ipc.RequestError, container, r, "true", privileged=True))
        case.contains(why, "privileged containers are not allowed on this node")
        mount = {"kind": "EXEC_MOUNT_PLUGIN_SOCKET"}
        why = str(case.raises(ipc.RequestError, container, r, "true", alloc=alloc, csi_plugin="PLUGIN_NODE", plugin="p", mounts=[mount], dests=["/csi"]))
        case.contains(why, "a CSI plugin that mounts only if it is privileged")
        case.equal(r.list(), [], "runs after refusals")
    with runs.Runs('plugin "podman" { config { enabled = true\n allow_privileged = true } }') as r:
        why = str(case.raises(ipc.RequestError, container, r, "true", privileged=True))
        case.contains(why, "privileged containers are not allowed on this node", "the setting of another driver")
    with runs.Runs('plugin "docker" { config { enabled = true\n allow_privileged = true } }') as r:
        case.contains(said(r, "cat /proc/self/uid_map", privileged=True), "4294967295", "ids of the machine")
        assert "4294967295" not in said(r, "cat /proc/self/uid_map"), "an ordinary container has ids of the machine"
        case.equal(r.ended(container(r, "true", privileged=True))["id_range"], 0, "the range of ids in the record of a privileged container")


def test_what_is_left():
    with runs.Runs() as r:
        mounts = read("/proc/self/mountinfo")
        run = container(r, "touch /x; exec sleep 1000")
        r.wait_state(run, exe.EXE_RUNNING)
        case.equal(read("/proc/self/mountinfo"), mounts, "mounts of the machine while a container runs")
        r.reap(run)
        case.equal((r.list(), read("/proc/self/mountinfo")), ([], mounts), "what is left")


case.run(globals())

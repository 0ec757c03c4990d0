# SPDX-License-Identifier: Apache-2.0
# takes: 30
"""exec-helper and executor alone: containers whose user namespace has the machine's ids. Their uid 0 is uid 0 of the machine without its capabilities, and
much of /proc and /sys asks for that uid alone."""
import os
import time
import uuid

from lib import build_dir, case, exe, helper, images, ipc, runs
from lib.containers import CAPS, ETC, TOOLS, container, read, said

ALLOWED = 'plugin "docker" { config { enabled = true\n allow_host_userns = true } }'
OURS = {"host_ids": True, "number": 0, "net_mode": "EXEC_NS_PRIVATE"}
# An option of the spec with all capabilities, which a hostile supervisor may ask for.
MOST = "caps=ffffffffffffffff"


def session(**more):
    return {"driver": "EXEC_DRIVER_DOCKER", "host_ids": True, **more}


def failed(r, **more):
    """Returns how a container did not start."""
    record = r.ended(container(r, "true", **{**OURS, **more}))
    return exe.STATES[record["state"]], record["step"], record["detail"] & 0xff


def test_ids():
    """Its files on disk have the ids of containers; files of the machine's users belong to nobody in directories that tasks share."""
    with runs.Runs(ALLOWED) as r:
        alloc = r.make_alloc()
        top = "%s/alloc/%s/" % (r.places.data, uuid.UUID(bytes=alloc))
        for name, owner in (("zero", 0), ("user", 4711)):
            os.chown(case.write(top + "alloc/" + name, "x\n"), owner, owner)
            os.chmod(top + "alloc/" + name, 0o600)
        text = said(r, "cat /proc/self/uid_map /proc/self/gid_map; id; grep -E '^(Cap|NoNew|Seccomp:)' /proc/self/status; touch /x /local/x /alloc/data/x; chown 7:8 /local/x;"
                       "stat -c '%u %g' /alloc/zero /alloc/user /bin/busybox; cat /alloc/zero /alloc/user; rm -f /alloc/zero /alloc/user", alloc=alloc, env=["PATH=/bin"], **OURS)
        case.equal([x.split() for x in text.splitlines()[:2]], [["0", "0", "65536"]] * 2, "maps of ids")
        case.contains(text, "uid=0(root) gid=0(root) groups=0(root)\n", "its root")
        case.contains(text, "CapEff:\t%016x\nCapBnd:\t%016x\nCapAmb:\t%016x\nNoNewPrivs:\t0\nSeccomp:\t2\n" % (int(CAPS, 16), int(CAPS, 16), 0), "its privileges")
        case.contains(text, "65534 65534\n65534 65534\n0 0\n", "owners inside")
        case.equal((text.count("Permission denied"), sorted(os.listdir(top + "alloc"))), (2, ["data", "logs", "tmp", "user", "zero"]), text)
        for path, wanted in (("web/local/x", (7, 8)), ("web/private/upper/x", (0, 0)), ("alloc/data/x", (0, 0))):
            at = os.stat(top + path)
            case.equal((at.st_uid - images.ID_FILES, at.st_gid - images.ID_FILES), wanted, "ids on disk of " + path)
        text = said(r, "echo again; stat -c '%u %g' /alloc/data/x /local/x; echo end", alloc=alloc, number=5)
        case.contains(text, "again\n0 0\n7 8\nend\n", "the same files in an ordinary container")


def test_a_volume_that_cannot_map_ids_has_the_ids_that_the_container_gives():
    """An overlay, as NFS and FUSE, cannot; in an ordinary container all users are strangers there."""
    top = case.directory()
    for name in ("closed", "closed/v", "open", "lower", "upper", "work"):
        os.mkdir("%s/%s" % (top, name), 0o700 if name == "closed" else 0o755)
    os.chmod(top, 0o755)
    os.chown(case.write(top + "/lower/roots", "of root\n"), 0, 0)
    os.chmod(top + "/lower/roots", 0o600)
    helper.mount("overlay", top + "/closed/v", "overlay", 0, "lowerdir={0}/lower,upperdir={0}/upper,workdir={0}/work".format(top))
    hcl = "client {\n%s}\n" % "".join('host_volume "%s" {\n path = "%s/%s"\n}\n' % (name, top, path) for name, path in (("closed", "closed/v"), ("open", "open")))
    volume = {"mounts": [{"kind": "EXEC_MOUNT_HOST_VOLUME", "name": "closed"}], "dests": ["/v"]}
    try:
        with runs.Runs(ALLOWED + hcl) as r:
            script = "cat /v/roots; cd /v; touch zero five own; chown 5:6 five; chmod 4755 zero; stat -c '%u %g' zero five roots; echo end; exec sleep 1000"
            run = container(r, script, **OURS, **volume)
            case.until(lambda: "end\n" in r.log(run), 10, "its start: " + r.log(run, "stderr"))
            case.equal(r.log(run), "of root\n0 0\n5 6\n0 0\nend\n", "what it does there: " + r.log(run, "stderr"))
            case.equal([(x.st_uid, x.st_gid) for x in (os.stat("%s/closed/v/%s" % (top, n)) for n in ("zero", "five"))], [(0, 0), (5, 6)], "ids on disk")
            with r.connect(run) as c:
                case.equal(c.hello["detail"], 0, "volumes that could not be mapped")
            r.reap(run)
            run = container(r, "cat /v/roots; touch /v/other; echo end; exec sleep 1000", **volume)
            case.until(lambda: "end\n" in r.log(run), 10, "the start of an ordinary one")
            with r.connect(run) as c:
                case.equal((c.hello["detail"], r.log(run), os.path.exists(top + "/closed/v/other")), (1, "end\n", False), "an ordinary container")
            r.reap(run)
            mount = {"kind": "EXEC_MOUNT_HOST_VOLUME", "name": "open"}
            case.contains(str(case.raises(ipc.RequestError, container, r, "true", mounts=[mount], dests=["/v"], **OURS)), 'host volume "open" must be read-only in a container')
            os.mkdir(top + "/open/shut", 0o700)
            os.chmod(case.write(top + "/open/shut/roots", "of root\n"), 0o600)
            text = said(r, "touch /v/x; cat /v/roots", mounts=[{**mount, "read_only": True, "path": "shut"}], dests=["/v"], **OURS)
            case.contains(text, "of root\n", "a file of root: " + text)
            case.contains(text, "Read-only file system", "a write")
    finally:
        helper.umount(top + "/closed/v")


# Everything that root could open for writing, without writing, or change in another way. The shell opens a file for each line without a process.
OPEN = "find /proc/ /sys/ -type f 2> /dev/null | while read f; do { :; } 3>> $f && echo opened $f; done 2> /dev/null;"
CHANGE = [
    "echo '|/x' > /proc/sys/kernel/core_pattern", "echo 7 > /proc/sys/vm/swappiness", "echo 1 > /proc/sys/vm/drop_caches", "echo 7 > /proc/sys/net/core/somaxconn", "echo h > /proc/sysrq-trigger",
    "echo 99 > /proc/self/oom_score_adj", "echo x > /proc/self/comm", "echo x > /sys/kernel/uevent_helper", "echo 0 > /sys/kernel/mm/ksm/run", "echo 0 > /sys/fs/cgroup/cgroup.procs",
    "echo 1 > /sys/fs/cgroup/cgroup.freeze", "echo max > /sys/fs/cgroup/pids.max", "mkdir /sys/fs/cgroup/x", "chmod 777 /sys/kernel", "chmod 777 /proc/sys/kernel/core_pattern",
    "chmod 777 /sys/fs/cgroup/cgroup.procs", "chown 1 /sys/fs/cgroup", "touch -d 1999-01-01 /dev/null", "chmod 600 /dev/null", "[ -c /proc/self/fd/0 ] && chmod 600 /proc/self/fd/0", "chown 1 /dev/zero", "rm -f /dev/null", "mknod /local/x c 1 1",
    "mount -o remount,rw /proc", "mount -o remount,rw /sys", "mount -o remount,rw /sys/fs/cgroup", "mount -t proc x /mnt", "mount -t sysfs x /mnt", "mount -t cgroup2 x /mnt", "mount -t tmpfs x /mnt",
    "mount --bind /proc /mnt", "umount /proc", "umount /sys", "umount /sys/devices", "umount /sys/fs/cgroup", "umount /proc/sys", "umount /proc/keys", "unshare -U true", "unshare -m true",
    "unshare -C true", "unshare -Ur mount -t proc x /mnt", "cat /proc/kmsg /proc/kcore /proc/keys | grep -q .", "cat /proc/kpageflags | grep -q .", "cat /proc/vmallocinfo /proc/slabinfo | grep -q .",
    "ls /proc/tty/driver/*", "ls /sys/devices/virtual/dmi/*", "ls /sys/kernel/mm/page_idle/*", "[ -f /proc/sys/vm/stat_refresh ]",
    "ls /sys/devices | grep -v -q -e '^system$' -e '^virtual$'",
    "find /sys/kernel/debug /sys/kernel/tracing /sys/kernel/security -mindepth 1 | grep -q .", "echo -n 1 > /dev/kmsg && [ -c /dev/kmsg ]", "ls /dev/sda /dev/vda /dev/mem",
]
TRY = "".join("if (%s) > /dev/null 2>&1; then echo worked %d; fi\n" % (x, n) for n, x in enumerate(CHANGE)) + "echo end"
SETTINGS = ["/proc/sys/kernel/core_pattern", "/proc/sys/vm/swappiness", "/proc/sys/net/core/somaxconn"]


def nothing_worked(text, what):
    case.equal([CHANGE[int(x.split()[1])] if x.startswith("worked") else x for x in text.splitlines()], ["end"], what)


def test_uid_0_changes_nothing_of_the_machine():
    """Also with all capabilities that a supervisor may ask for, and in a session."""
    before, modes = [read(x) for x in SETTINGS], [os.stat("/dev/" + x).st_mode for x in ("null", "zero")]
    with runs.Runs(ALLOWED) as r:
        nothing_worked(said(r, TRY, seconds=60, env=["PATH=/bin"], **OURS), "what worked")
        nothing_worked(said(r, OPEN + TRY, seconds=60, env=["PATH=/bin"], options=[MOST], **OURS), "what worked with all capabilities")
        run = container(r, "grep CapBnd /proc/self/status; echo ready; exec sleep 1000", env=["PATH=/bin"], options=[MOST], **OURS)
        case.until(lambda: "ready" in r.log(run), 10, "its start")
        most = int(r.log(run).split()[1], 16)
        case.equal(most, int(CAPS, 16) | 1 << 13, "the most capabilities: Docker's and NET_RAW")
        with r.session(run, "/bin/sh", ["-c", TRY], env=["PATH=/bin"], options=[MOST], **session()) as s:
            nothing_worked(s.read(1).decode(), "what worked in a session")
            s.wait_exited()
        case.equal(r.replace(run, {"token": b"sesame"}, **session()), 0, "a session that writes files")
        case.equal(read("/proc/%d/root/secrets/token" % r.record(run)["task_pid"]), "sesame", "the file")
        r.reap(run)
    case.equal(([read(x) for x in SETTINGS], [os.stat("/dev/" + x).st_mode for x in ("null", "zero")]), (before, modes), "the machine")


def test_images_whose_proc_and_sys_are_links():
    """CVE-2019-16884, CVE-2023-28642: an image decides where /proc and /sys are."""
    ends = []
    with runs.Runs(ALLOWED) as r:
        for links in ({x: "k/" + x for x in ("proc", "sys", "dev", "alloc", "local", "secrets")}, {"proc": "sys"}, {"sys": "proc"}, {"dev": "proc"}, {"proc": "dev"}, {"dev": "sys"},
                      {"sys": "dev"}, {"proc": "dev/shm"}, {"sys": "dev/shm"}, {"proc": "sys/fs/cgroup"}, {"sys": "proc/1"}, {"alloc": "proc"}, {"secrets": "sys"}, {"proc": "/"}, {"sys": "/"}, {"proc": "."}):
            entries = [images.directory(x) for x in ("k", "etc", *{x.split("/")[0] for x in links.values()} - {"", "."})] + [images.link(*x) for x in links.items()]
            run = container(r, "echo began; if ! touch /proc/own 2> /dev/null; then %s; fi" % TRY, layers=(images.tar(entries), TOOLS), env=["PATH=/bin"], **OURS)
            record = r.ended(run, seconds=60)
            if record["state"] == exe.EXE_ENDED:
                text = r.log(run)
                case.equal(text.startswith("began\n"), True, text)
                if text != "began\n":  # else /proc is a file system of the own
                    nothing_worked(text[len("began\n"):], "what worked with %s" % links)
                ends.append(links)
    case.equal(len(ends[0]), 6, "the first of those that ran: %s" % ends)


def test_settings_of_the_kernel():
    """CVE-2022-0811: those of its own IPC can be set, and no others, whatever the supervisor asks for."""
    names = ("kernel.core_pattern=|/x", "vm.swappiness=1", "net.core.somaxconn=77", "net.ipv4.ip_forward=1", "kernel.shm_rmid_forced", "kernel.shmmax.=1", "user.max_user_namespaces=1", "fs.mqueue=1", "kernel.sem/../core_pattern=x")
    with runs.Runs(ALLOWED) as r:
        before = [read(x) for x in SETTINGS]
        for name in names:
            case.equal(failed(r, options=["sysctl=" + name]), ("failed", exe.EXE_STEP_CONTAINER, 8), name)
        case.equal(said(r, "cat /proc/sys/kernel/msgmax /proc/sys/fs/mqueue/msg_max", options=["sysctl=kernel.msgmax=4321", "sysctl=fs.mqueue.msg_max=7"], **OURS), "4321\n7\n", "its own")
        case.equal([read(x) for x in SETTINGS], before, "values of the machine")


def test_who_gets_such_a_container():
    """A hostile supervisor, without the policy or with that of another driver; and never with more than this privilege."""
    why = "containers with the machine's ids are not allowed on this node"
    for config in ("", ALLOWED.replace('"docker"', '"podman"'), ALLOWED.replace("allow_host_userns", "allow_privileged"), ALLOWED.replace("host_userns = true", "host_userns = false")):
        with runs.Runs(config) as r:
            case.contains(str(case.raises(ipc.RequestError, container, r, "true", **OURS)), why)
            case.equal(r.list(), [], "runs after a refusal with %r" % config)
            if "podman" not in config:
                run = container(r, "exec sleep 1000", net_mode="EXEC_NS_PRIVATE")
                r.wait_state(run, exe.EXE_RUNNING)
                case.contains(str(case.raises(ipc.RequestError, r.session, run, "/bin/true", **session(id_range=2))), why)
                r.reap(run)
    with runs.Runs(ALLOWED.replace("true }", "true\n allow_privileged = true }", 1)) as r:
        for more in ({"net_mode": "EXEC_NS_HOST"}, {"privileged": True}, {"net_mode": "EXEC_NS_HOST", "privileged": True}):
            case.contains(str(case.raises(ipc.RequestError, container, r, "true", **{**OURS, **more})), "cannot be privileged or in the network of the machine")
        for driver in ("EXEC", "RAW_EXEC", "PODMAN"):
            case.contains(str(case.raises(ipc.RequestError, r.start, "true", driver=driver, host_ids=True, net_mode="EXEC_NS_PRIVATE")), why)
        kinds = {"host_ids": OURS, "privileged": {"privileged": True}, "ordinary": {"net_mode": "EXEC_NS_PRIVATE"}}
        for kind, fields in kinds.items():
            run = container(r, "exec sleep 1000", **fields)
            record = r.wait_state(run, exe.EXE_RUNNING)
            case.equal(record["id_range"], {"host_ids": 1, "privileged": 0, "ordinary": 2}[kind], "what the record has for %s" % kind)
            for other in kinds:
                more = {"id_range": 2, **({other: True} if other != "ordinary" else {}), "driver": "EXEC_DRIVER_DOCKER", "net_mode": "EXEC_NS_PRIVATE"}
                if other == kind:
                    with r.session(run, "/bin/true", **more) as s:
                        case.equal(s.wait_exited()["exit_code"], 0, "a session of its kind")
                else:
                    case.contains(str(case.raises(ipc.RequestError, r.session, run, "/bin/true", **more)), "if its container ", "a session as %s in a container that is %s" % (other, kind))
            r.reap(run)


def test_the_executors_program_cannot_be_changed():
    """CVE-2019-5736: it belongs to uid 0 of the machine, and is the container's init process, and what a session can start."""
    program = build_dir() + "/drover-executor"
    with open(program, "rb") as f:
        before = f.read(), os.stat(program).st_mode
    change = ("echo looked; { :; } 6>> /proc/self/fd/5 && echo opened; for what in 'chmod 4777' 'chown 1' 'touch -d 1999-01-01'; do $what /proc/self/fd/5 && echo $what; done;"
              "ln /proc/self/fd/5 /local/x && echo linked")
    with runs.Runs(ALLOWED) as r:
        text = said(r, "echo $$; (exec 5< /proc/1/exe && %s) 2> /dev/null; echo end" % change, env=["PATH=/bin"], options=["flag=init"], **OURS)
        case.equal(text, "2\nend\n", "what root did to its init process, which is not dumpable")
        run = container(r, "echo ready; while :; do for p in /proc/[0-9]*; do [ $p = /proc/1 ] || (exec 5< $p/exe && read c < $p/comm && [ $c = exe ] && kill -9 ${p#/proc/} &&"
                           "until [ ! -e $p ]; do :; done && %s); done; done 2> /dev/null" % change, env=["PATH=/bin"], **OURS)
        case.until(lambda: "ready" in r.log(run), 10, "its start")
        until = time.monotonic() + 60
        while "looked" not in r.log(run) and time.monotonic() < until:
            try:
                with r.session(run, "/proc/self/exe", ["health-check", "/local", ""], **session()) as s:
                    s.wait_exited()
            except ipc.Error:
                pass  # it was killed before it began
        case.equal(set(r.log(run).splitlines()), {"ready", "looked"}, "what root did to the program of a session")
        r.reap(run)
    with open(program, "rb") as f:
        case.equal((f.read(), os.stat(program).st_mode) == before, True, "the executor's program")


def test_a_session_shows_nothing_of_the_machine():
    """Its child is uid 0 before it has joined the container, whose root has the same uid."""
    look = ("for f in environ maps auxv; do read x < $p/$f && echo read $f; done; for f in root cwd; do [ -e $p/$f/. ] && echo entered $f; done;"
            "for f in $p/fd/*; do [ -e $f ] && echo saw $f; done; for f in mem oom_score_adj clear_refs; do echo 5 > $p/$f && echo wrote $f; done")
    stopped = "read c < $p/comm && [ $c = drover-executor ] && read a b state c < $p/stat && [ $state = T ]"
    with runs.Runs(ALLOWED) as r:
        run = container(r, "echo ready; while :; do kill -STOP -1; for p in /proc/[0-9]*; do kill -STOP -1; if %s; then echo looked; %s; fi; done; done 2> /dev/null" % (stopped, look), **OURS)
        case.until(lambda: "ready" in r.log(run), 10, "its start")
        for _ in range(500):  # the child is not always stopped in time
            try:
                r.session(run, "/bin/true", **session()).close()
            except ipc.Error:
                break
        case.equal(set(r.log(run).splitlines()), {"ready", "looked"}, "what the container saw in the child")
        r.reap(run)


case.run(globals())

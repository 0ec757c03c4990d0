# SPDX-License-Identifier: Apache-2.0
"""Tasks of a whole agent, inspected from inside by a probe: their initial state, and files, devices and processes that they must not
reach."""
import errno
import json
import os
import re
import shutil
import uuid

from lib import agent, api, binary, build_dir, case, helper, runs, trace

MS_BIND = 4096
NOBODY = "65534"
# raw_exec as root is unrestricted, so its reach is not tested. Limits of an executor alone: 1000 and 1010.
AGENT_ENV = {"SECRET_OF_THE_AGENT": "sesame", "NOMAD_TOKEN": "sesame", "LD_PRELOAD": "", "NOTIFY_SOCKET": "/run/x", "LISTEN_PID": "1",
             "INVOCATION_ID": "sesame", "HOME": "/sesame"}


class Node(api.Node):
    """An agent with directories for the probe: /shared (chroot_env, with a mount below it), a host volume, the same read-only."""

    def __init__(self):
        self.top = case.directory()
        self.volume, self.shared = self.top + "/volume", self.top + "/shared"
        for path in (self.volume, self.volume + "/below", self.shared, self.shared + "/below"):
            os.mkdir(path)
            os.chmod(path, 0o777)
        for path in (self.volume, self.shared):
            helper.mount("below", path + "/below", "tmpfs", 0, "mode=0777")  # neither nosuid nor nodev
        for path in (self.volume, self.volume + "/below", self.shared, self.shared + "/below"):
            shutil.copy(build_dir() + "/tests/inside", path + "/inside")
            os.chmod(path + "/inside", 0o755)
            shutil.copy(build_dir() + "/tests/inside", path + "/suid")
            os.chmod(path + "/suid", 0o6755)
            os.mknod(path + "/null", 0o20666, os.makedev(1, 3))
            os.chmod(path + "/null", 0o666)
        hcl = self.top + "/agent.hcl"
        with open(hcl, "w", encoding="utf-8") as f:
            f.write('''client {
  host_volume "vol" { path = "%s" }
  host_volume "ro" { path = "%s" read_only = true }
  chroot_env { "/bin" = "/bin" "/lib" = "/lib" "/lib64" = "/lib64" "/usr" = "/usr" "/etc" = "/etc" "%s" = "/shared" }
}
plugin "exec" {
  config {
    allow_host_pid = true
  }
}
''' % (self.volume, self.volume, self.shared))
        os.chmod(hcl, 0o600)
        super().__init__(["-config", hcl], env=AGENT_ENV)

    def __exit__(self, *args):
        try:
            return super().__exit__(*args)
        finally:
            for path in (self.volume, self.shared):
                helper.umount(path + "/below")

    def probe(self, name, driver, tries=(), path="/vol/inside", **more):
        """Runs the probe as a task and purges it. Returns the probe's output; .alloc is its alloc."""
        made = api.job(name, path, list(tries), driver=driver, **more)
        group = made["Job"]["TaskGroups"][0]
        if driver == "exec":
            group["Volumes"] = {v: {"Name": v, "Type": "host", "Source": v, "ReadOnly": v == "ro"} for v in ("vol", "ro")}
            group["Tasks"][0]["VolumeMounts"] = [{"Volume": "vol", "Destination": "/vol"},
                                                 {"Volume": "ro", "Destination": "/ro", "ReadOnly": True},
                                                 {"Volume": "vol", "Destination": "/local/ro", "ReadOnly": True}]
        self.register(made)
        alloc = case.until(lambda: [a for a in self.allocs(name) if a["ClientStatus"] in ("complete", "failed")], 15, name)[0]
        text = self.logs(alloc)
        assert text, "%s\n%s\n%s" % (self.ask("/v1/allocation/" + alloc["ID"])["TaskStates"], self.logs(alloc, kind="stderr"), self.log())
        found = json.loads(text)
        found["alloc"] = alloc["ID"]
        self.purge(name)
        return found


def launchers_limits(pid):
    """Returns [(soft, hard)] as hexadecimal digits, in the order of their numbers."""
    order = ("Max cpu time", "Max file size", "Max data size", "Max stack size", "Max core file size", "Max resident set",
             "Max processes", "Max open files", "Max locked memory", "Max address space", "Max file locks", "Max pending signals",
             "Max msgqueue size", "Max nice priority", "Max realtime priority", "Max realtime timeout")
    with open("/proc/%d/limits" % pid, encoding="ascii") as f:
        text = f.read()
    found = []
    for name in order:
        words = re.search("^%s +(\\S+) +(\\S+)" % name, text, re.M).groups()
        found.append(["ffffffffffffffff" if w == "unlimited" else "%x" % int(w) for w in words])
    return found


def check_clean(node, p, uid):
    """Checks what is true for every task."""
    case.equal(sorted(fd for fd in p["fds"] if fd), ["0", "1", "2"], "descriptors")
    case.equal(p["fds"]["0"], "/dev/null", "stdin")
    case.equal([p["fds"][fd].startswith("pipe:") for fd in "12"], [True, True], "stdout and stderr are pipes")
    for name in ("SigBlk", "SigIgn", "SigCgt", "SigPnd", "ShdPnd"):
        case.equal(p["status"][name], "0" * 16, name)
    case.equal((p["umask"], p["nice"], p["oom_score_adj"]), ("022", 0, "0\n"), "umask, nice, oom_score_adj")
    case.equal((p["sid"], p["pgid"]), (p["pid"], p["pid"]), "session and process group")
    wanted = launchers_limits(node.pid)
    wanted[7][0] = wanted[7][1]  # open files
    case.equal(p["rlimits"], wanted, "rlimits")
    case.equal((p["stdout"], p["stderr"]), (0, 0), "errno of opening /dev/stdout and /dev/stderr")
    case.equal(p["status"]["Uid"].split(), [uid] * 4, "uid")
    case.equal(p["status"]["Gid"].split(), [uid] * 4, "gid")
    env = dict(e.split("=", 1) for e in p["env"])
    case.equal(sorted(n for n in env if not n.startswith("NOMAD_")), ["HOME", "LOGNAME", "PATH", "SHELL", "USER"], "environment")
    case.equal([e for e in p["env"] if "sesame" in e or e.startswith(("NOTIFY", "LISTEN", "LD_", "INVOCATION", "NOMAD_TOKEN"))], [],
               "variables of the agent")


def refused(p, *wanted):
    """Checks that every access failed with one of these errnos."""
    names = tuple(getattr(errno, w) for w in wanted)
    bad = {t: errno.errorcode.get(n, n) for t, n in p["tries"].items() if t and n not in names}
    case.equal(bad, {}, "accesses that were not refused with %s" % " or ".join(wanted))


def within_reach_of_root(node):
    """Returns accesses for the probe: files of the host that only tasks of root may open."""
    d = node.data
    paths = ["state", "state/state.db", "lock", "logs", "run", "rt/x", "csi/monolith", "rt/drover.sock"]
    return ["read:%s/%s" % (d, p) for p in paths[:-1]] + ["connect:%s/rt/drover.sock" % d, "write:%s/rt/lease" % d,
            "write:%s/instance" % d, "new:%s/alloc" % d, "read:/etc/shadow", "read:%s/agent.hcl" % node.top]


def test_raw_exec_as_root_is_not_restricted():
    with Node() as node:
        p = node.probe("rawroot", "raw_exec", path=node.volume + "/inside")
        check_clean(node, p, "0")
        case.equal(p["cwd"], "%s/alloc/%s/t" % (node.data, p["alloc"]), "cwd")
        status = trace.status(os.getpid())
        for name in ("CapPrm", "CapEff", "CapBnd", "CapInh", "CapAmb"):
            case.equal(p["status"][name], status[name], name + ": as of root")
        case.equal((p["status"]["NoNewPrivs"], p["status"]["Seccomp"], p["status"]["Groups"].split()), ("0", "0", ["0"]))
        check_keyring(p, 0)
        case.equal(p["ns"], {**{n: os.readlink("/proc/self/ns/" + n) for n in p["ns"] if n}, "": ""}, "the host's namespaces")


OLD = r"""printf '\177ELF\001\001\001\000\000\000\000\000\000\000\000\000\002\000\003\000\001\000\000\000\124\200\004\010\064\000\000\000' > local/old
printf '\000\000\000\000\000\000\000\000\064\000\040\000\001\000\000\000\000\000\000\000\001\000\000\000\000\000\000\000\000\200\004\010' >> local/old
printf '\000\200\004\010\140\000\000\000\140\000\000\000\005\000\000\000\000\020\000\000\270\001\000\000\000\273\007\000\000\000\315\200' >> local/old
chmod +x local/old; exec local/old
"""


def test_a_program_of_32_bits_is_named_in_the_event():
    if os.uname().machine != "x86_64":
        case.skip("not on x86_64")
    with Node() as node:
        ends = {}
        for driver in ("raw-exec", "exec"):
            node.register(api.job("old-" + driver, "/bin/sh", ["-c", OLD], driver=driver.replace("-", "_")))
            alloc = node.wait_allocs("old-" + driver, [(0, "run", "failed")])[0]
            ends[driver] = [e for e in node.ask("/v1/allocation/" + alloc["ID"])["TaskStates"]["t"]["Events"]
                            if e["Type"] == "Terminated"][0]
            node.purge("old-" + driver)
        if ends["raw-exec"]["ExitCode"] != 7:
            case.skip("this kernel does not run 32-bit programs")
        case.equal(ends["exec"]["Signal"], 31)
        case.contains(ends["exec"]["DisplayMessage"], 'Exit Message: "SIGSYS: killed by a system call filter')


def has_keys_left(uid):
    """Returns whether the user has less than half of the keys that the kernel permits. Tests of others share this number."""
    with open("/proc/key-users", encoding="ascii") as f:
        used, limit = next((line.split()[3].split("/") for line in f if line.strip().startswith("%d:" % uid)), (0, 1))
    return int(used) * 2 < int(limit)


def check_keyring(p, uid):
    """Checks that the task has its own session keyring, which belongs to its user unless that user may not have more keys."""
    case.equal(p["keyring_errno"], 0, "errno of keyctl")
    if not p["keyring_is"].startswith("keyring;%d;" % uid):
        case.equal((p["keyring_is"][:10], has_keys_left(uid)), ("keyring;0;", False), "owner of the keyring")
    own = helper.libc.syscall(250, 0, -3, 0)  # keyctl(KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING)
    assert p["keyring"] != own, "the keyring is that of the process that started the agent"
    case.contains(p["keyring_is"], ";_ses", "name of the keyring")


def test_raw_exec_as_nobody_has_only_the_access_of_its_user():
    with Node() as node:
        helpers = [node.wait_process(name) for name in ("supervisor", "exec-helper", "mount-helper", "file-helper", "heartbeat")]
        kills = ["kill:%d" % pid for pid in [node.pid, *helpers]]
        p = node.probe("rawuser", "raw_exec", within_reach_of_root(node) + kills + ["node:/tmp/inside.node"],
                       path=node.volume + "/inside", User="nobody")
        check_clean(node, p, NOBODY)
        refused(p, "EACCES", "EPERM")
        for name in ("CapPrm", "CapEff", "CapInh", "CapAmb"):
            case.equal(p["status"][name], "0" * 16, name)
        own = str(runs.group_of(uuid.UUID(p["alloc"]).bytes))
        case.equal(p["status"]["Groups"].split(), [NOBODY, own], "groups")
        check_keyring(p, 65534)


def test_exec_is_confined():
    with Node() as node:
        p = node.probe("confined", "exec")
        check_clean(node, p, NOBODY)
        case.equal(p["cwd"], "/", "cwd")
        case.equal([p["status"][n] for n in ("CapInh", "CapPrm", "CapEff", "CapAmb", "CapBnd")], ["0000000020000420"] * 5)
        case.equal([p["status"][n] for n in ("NoNewPrivs", "Seccomp", "Seccomp_filters")], ["1", "2", "1"])
        case.equal(p["keyring_errno"], errno.EPERM, "keyctl")
        case.equal(p["pid"], 2, "the parent pid, which is the executor")
        for name in ("mnt", "pid", "ipc", "cgroup"):
            assert p["ns"][name] != os.readlink("/proc/self/ns/" + name), name
        case.equal([line for line in p["cgroup"].splitlines() if not line.endswith(":/") and "/drover" in line], [],
                   "names of cgroups of the host that the task sees")


def test_exec_can_write_only_its_own_mounts():
    with Node() as node:
        p = node.probe("mounts", "exec")
        own = {"/", "/alloc", "/local", "/secrets", "/tmp", "/dev/shm", "/vol", "/vol/below"}
        found = {}
        for point, options, result in p["mounts"][:-1]:
            found[point] = result
            words = options.split(",")
            case.contains(words, "nosuid", point)
            # A mount of the template that is hidden by a mount of the task counts as the task's.
            if point in own:
                case.equal(result, 0, "making a file in " + point)
                continue
            if not point.startswith(("/dev/", "/proc")):
                case.equal("ro" in words, True, "whether %s is read-only: %s" % (point, options))
            if point in ("/etc/ssl/private", "/etc/drover", "/sys/firmware", "/sys/module", "/sys/devices/virtual/powercap"):  # the latter on a machine where drover is installed
                case.equal(result, errno.EACCES, "opening the mask " + point)
            elif result >= 0 and "ro" in words and not point.startswith("/proc"):
                case.equal(errno.errorcode.get(result), "EROFS", "making a file in " + point)
            elif result >= 0:
                case.contains(("EACCES", "ENOENT", "EROFS"), errno.errorcode.get(result, "nothing"), "making a file in " + point)
        for point in ("/shared", "/shared/below", "/ro", "/ro/below", "/local/ro", "/local/ro/below", "/alloc/logs", "/etc", "/usr"):
            case.equal(found[point], errno.EROFS, point)
        print("    %d mounts, each written into" % (len(p["mounts"]) - 1))


def test_exec_reaches_no_set_uid_programs_devices_or_secrets_of_the_host():
    with Node() as node:
        places = ("/vol", "/vol/below", "/ro", "/ro/below", "/local/ro/below", "/shared", "/shared/below")
        p = node.probe("suid", "exec", ["exec:%s/suid" % d for d in places])
        case.equal({t: r for t, r in p["tries"].items() if r}, {}, "set-user-id programs that gave root")
        p = node.probe("devices", "exec", ["%s:%s/null" % (how, d) for d in places for how in ("read", "write")] +
                       ["node:%s/n" % d for d in ("/tmp", "/vol", "/alloc/data", "/dev/shm")])
        refused(p, "EACCES", "EPERM", "EROFS")
        p = node.probe("secrets", "exec", ["read:/etc/shadow", "read:/etc/gshadow", "read:/etc/ssl/private", "write:/proc/sysrq-trigger",
                                           "write:/proc/sys/kernel/hostname", "write:/proc/sys/vm/drop_caches",
                                           "read:/proc/1/environ", "read:/proc/1/mem", "read:/proc/1/fd", "read:/proc/1/root/x",
                                           "write:/dev/console", "read:/dev/mem", "read:/dev/kmsg", "new:/proc", "new:/dev",
                                           "read:/sys/firmware", "read:/sys/kernel/debug/x", "write:/sys/kernel/uevent_helper", "read:/run", "read:/root"] +
                       [t for t in within_reach_of_root(node) if node.top in t or node.data in t])
        for name in ("read:/proc/kcore", "read:/proc/keys", "read:/proc/timer_list"):
            assert name not in p["tries"]
        # The mask is /dev/null: writes are discarded.
        case.contains((0, errno.ENOENT), p["tries"].pop("write:/proc/sysrq-trigger"), "writing into the mask of sysrq-trigger")
        refused(p, "EACCES", "EPERM", "EROFS", "ENOENT")
        p = node.probe("logs", "exec", ["read:/alloc/logs", "later:/alloc/logs/t.stdout.0"])
        case.equal(p["tries"], {"read:/alloc/logs": 0, "later:/alloc/logs/t.stdout.0": 0, "": 0}, "the logs")


def test_exec_cannot_signal_its_executor_or_the_agent():
    """The task has CAP_KILL, for its own processes of other users; its executor is pid 1, which no signal from inside the namespace can
    kill."""
    with Node() as node:
        with open(binary("executor"), "rb") as f:  # signals for which the sanitizer has a handler do reach it
            handled = (4, 7, 8, 11) if b"__asan_init" in f.read() else ()
        signals = " ".join(str(n) for n in range(1, 65) if n not in (32, 33) + handled)
        node.register(api.job("killer", "/bin/sh", ["-c", "for s in %s; do kill -$s 1; done; kill -9 -1; sleep 0.3; echo alive" % signals],
                              driver="exec"))
        alloc = node.wait_allocs("killer", [(0, "run", "failed")])[0]
        case.equal(node.logs(alloc), b"alive\n", "the task's output, which its executor writes")
        node.purge("killer")
        # In the host's pid namespace other processes are visible.
        node.register(api.job("victim"))
        node.wait_running("victim")
        pids = [node.pid] + [int(n) for n in os.listdir("/proc") if n.isdigit() and agent.arguments(int(n))[:1] in (
            ["drover-supervisor"], ["drover-executor"], ["drover-exec-helper"], ["/bin/sleep"])]
        assert len(pids) >= 5, pids
        p = node.probe("host", "exec", ["kill:%d" % pid for pid in pids], Config={
            "command": "/vol/inside", "args": ["kill:%d" % pid for pid in pids], "pid_mode": "host"})
        refused(p, "EPERM")
        case.equal(p["ns"]["pid"], os.readlink("/proc/self/ns/pid"), "pid namespace")
        node.purge("victim")


def test_a_task_cannot_replace_its_directories_by_links():
    """CVE-2026-6959: a task replaces its log directory by a link, and is started again."""
    with Node() as node:
        script = ("for d in /alloc/logs /alloc /local /secrets; do mv $d $d.2 2>&1 && echo moved $d; rmdir $d 2>&1 && echo gone $d; done;"
                  " ln -s /etc /local/link; rm -rf /tmp/x; ln -s /etc /tmp/x; echo end; exit 1")
        made = api.job("mover", "/bin/sh", ["-c", script], driver="exec", group={
            "RestartPolicy": {"Attempts": 2, "Interval": 6 * 10 ** 11, "Delay": 10 ** 8, "Mode": "fail"}})
        node.register(made)
        alloc = node.wait_allocs("mover", [(0, "run", "failed")])[0]
        text = node.logs(alloc).decode()
        case.equal(text.count("end\n"), 3, "starts of the task in\n" + text)
        case.equal([line for line in text.splitlines() if line.startswith(("moved", "gone"))], [], "directories that the task removed")
        node.purge("mover")
        # A link made on the host, as root in raw_exec or a plugin could: the next start fails with the reason, and the link is not
        # followed.
        victim = case.directory()
        waits = "while [ ! -e /alloc/data/go ]; do sleep 0.05; done; exit 1"
        made = api.job("linked", "/bin/sh", ["-c", waits], driver="exec", group={
            "RestartPolicy": {"Attempts": 3, "Interval": 6 * 10 ** 11, "Delay": 10 ** 8, "Mode": "fail"}})
        node.register(made)
        alloc = node.wait_running("linked")[0]
        logs = "%s/alloc/%s/alloc/logs" % (node.data, alloc["ID"])
        os.rename(logs, logs + ".old")
        os.symlink(victim, logs)
        with open("%s/alloc/%s/alloc/data/go" % (node.data, alloc["ID"]), "w", encoding="ascii"):
            pass
        node.wait_allocs("linked", [(0, "run", "failed")])
        events = json.dumps(node.ask("/v1/allocation/" + alloc["ID"])["TaskStates"])
        case.contains(events, "mount into the task")
        case.equal(os.listdir(victim), [], "the victim")
        node.purge("linked")


case.run(globals())

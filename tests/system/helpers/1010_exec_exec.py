# SPDX-License-Identifier: Apache-2.0
"""exec-helper and executor alone: the exec driver, as seen from inside a task."""
import ctypes
import errno
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import uuid

from lib import build_dir, case, exe, helper, ipc, runs

CAPS = {"chown": 0, "dac_override": 1, "fowner": 3, "kill": 5, "net_bind_service": 10, "net_raw": 13, "sys_admin": 21, "audit_write": 29}
AMBIENT = 1 << 5 | 1 << 10 | 1 << 29
HOST_MODES = 'plugin "exec" { config { allow_host_pid = true\n allow_host_ipc = true } }'


def sh(r, script, **kwargs):
    return r.output("sh", ["-c", script], driver="EXEC", **kwargs)


def test_a_task_runs_as_nobody_in_its_own_namespaces():
    with runs.Runs() as r:
        out = sh(r, "id -u; id -g; id -G; echo $HOME; pwd; echo $$; for n in mnt pid ipc cgroup net uts user; do"
                    " readlink /proc/self/ns/$n; done")
        words = out.split()
        case.equal(words[:3], ["65534", "65534", "65534"])
        case.equal(words[3:6], ["/nonexistent", "/", "2"], "home, cwd, pid")
        host = [os.readlink("/proc/%d/ns/%s" % (r.helper.pid, n)) for n in ("mnt", "pid", "ipc", "cgroup", "net", "uts", "user")]
        case.equal([a != b for a, b in zip(words[6:], host)], [True] * 4 + [False] * 3, "namespaces of its own")


def test_a_task_with_host_modes_stays_in_the_hosts_namespaces():
    with runs.Runs(HOST_MODES) as r:
        out = sh(r, "readlink /proc/self/ns/pid; readlink /proc/self/ns/ipc", pid_mode="EXEC_NS_HOST", ipc_mode="EXEC_NS_HOST")
        case.equal(out.split(), [os.readlink("/proc/%d/ns/%s" % (r.helper.pid, n)) for n in ("pid", "ipc")])


def test_host_modes_are_refused_unless_the_configuration_allows_them():
    """CVE-2026-14891: in the host's pid namespace a task can reach the host's root through /proc/PID/root of another process of its
    user."""
    for allowed in ("", "pid", "ipc"):
        config = allowed and 'plugin "exec" { config { allow_host_%s = true } }' % allowed
        with runs.Runs(config) as r:
            for mode in ("pid", "ipc"):
                for driver in ("EXEC", "RAW_EXEC"):
                    if mode == allowed:
                        continue
                    e = case.raises(ipc.RequestError, r.start, "true", driver=driver, **{mode + "_mode": "EXEC_NS_HOST"})
                    case.contains(str(e), '%s_mode "host" needs' % mode)
                    case.contains(str(e), "allow_host_%s = true" % mode)
            case.equal(r.list(), [], "runs after refusals")
            if allowed:
                case.equal(sh(r, "echo well", **{allowed + "_mode": "EXEC_NS_HOST"}), "well\n")


# Prints the errno of each system call that accesses another process (pid in argv[1]), then that of pidfd_send_signal.
REACH = """
import ctypes, os, sys
libc, pid = ctypes.CDLL(None, use_errno=True), int(sys.argv[1])
fd = os.pidfd_open(pid)
def call(*args):
    ctypes.set_errno(0)
    libc.syscall(*[ctypes.c_long(a) for a in args])
    return ctypes.get_errno()
for name, args in (("ptrace", (101, 16, pid, 0, 0)), ("process_vm_readv", (310, pid, 0, 0, 0, 0, 0)),
                   ("process_vm_writev", (311, pid, 0, 0, 0, 0, 0)), ("pidfd_getfd", (438, fd, 0, 0)),
                   ("process_madvise", (440, fd, 0, 0, 20, 0)), ("pidfd_send_signal", (424, fd, 0, 0, 0))):
    print(name, call(*args))
"""


def test_a_task_in_a_host_namespace_has_no_capability_and_a_narrower_filter():
    with runs.Runs(HOST_MODES) as r:
        other = r.start("sleep", ["1000"], driver="EXEC", secrets={"token": b"sesame"}, env=["MARK=1"])
        pid = r.wait_state(other, exe.EXE_RUNNING)["task_pid"]
        for modes in ({"pid_mode": "EXEC_NS_HOST"}, {"ipc_mode": "EXEC_NS_HOST"}):
            out = sh(r, "cat /proc/self/status", **modes)
            sets = re.findall(r"^Cap(?:Inh|Prm|Eff|Bnd|Amb):\t(\w+)$", out, re.M)
            case.equal([int(s, 16) for s in sets], [0] * 5, "capabilities with %s" % modes)
            for cap in CAPS.values():
                e = case.raises(ipc.RequestError, r.start, "true", driver="EXEC", cap_add=1 << cap, **modes)
                case.contains(str(e), "cap_add must be empty")
        out = sh(r, "kill -0 %d 2>&1; cat /proc/%d/environ /proc/%d/root/secrets/token 2>&1; ls /proc/%d/fd 2>&1; true"
                 % (r.helper.pid, pid, pid, r.helper.pid), pid_mode="EXEC_NS_HOST")
        case.equal(("MARK" in out, "sesame" in out, out.count("ermitted") >= 1), (False, False, True), out)
        # It may signal a process of its own user, but not trace it or read its memory, whatever capabilities that process has.
        plain = r.start("sleep", ["1000"], driver="EXEC", cap_drop=(1 << 41) - 1)
        pid = r.wait_state(plain, exe.EXE_RUNNING)["task_pid"]
        out = r.output("/usr/bin/python3", ["-c", REACH, str(pid)], driver="EXEC", pid_mode="EXEC_NS_HOST")
        case.equal(dict(line.split() for line in out.splitlines()), {
            "ptrace": "1", "process_vm_readv": "1", "process_vm_writev": "1", "pidfd_getfd": "1", "process_madvise": "1",
            "pidfd_send_signal": "0"})


def test_a_task_has_only_its_capabilities_a_filter_and_no_new_privs():
    with runs.Runs() as r:
        def status(**kwargs):
            return dict(re.findall(r"^(\w+):\t(\S+)$", sh(r, "cat /proc/self/status", **kwargs), re.M))
        s = status()
        case.equal([int(s[k], 16) for k in ("CapEff", "CapPrm", "CapInh", "CapAmb", "CapBnd")], [AMBIENT] * 5)
        case.equal((s["NoNewPrivs"], s["Seccomp"], s["Seccomp_filters"]), ("1", "2", "1"))
        s = status(cap_add=1 << CAPS["chown"], cap_drop=1 << CAPS["kill"])
        case.equal(int(s["CapAmb"], 16), (AMBIENT | 1) & ~(1 << CAPS["kill"]))
        case.equal(s["CapBnd"], s["CapAmb"])
        e = case.raises(ipc.RequestError, r.start, "true", driver="EXEC", cap_add=1 << CAPS["net_raw"])
        case.contains(str(e), "allow_caps does not have the capabilities of mask 0x2000")
    with runs.Runs("", dev=False) as r:
        for cap in ("chown", "dac_override", "fowner", "sys_admin"):
            case.raises(ipc.RequestError, r.start, "true", driver="EXEC", cap_add=1 << CAPS[cap])
        s = status(cap_drop=1 << CAPS["audit_write"], cap_add=1 << CAPS["kill"])
        case.equal([int(s[k], 16) for k in ("CapEff", "CapBnd")], [AMBIENT & ~(1 << CAPS["audit_write"])] * 2)


def test_the_filter_refuses_what_changes_the_machine():
    with runs.Runs() as r:
        out = sh(r, "unshare -U true 2>&1; unshare -m true 2>&1; mount -t tmpfs x /tmp 2>&1; chroot / true 2>&1; "
                    "keyctl show 2>&1; python3 -c 'import ctypes,os\n"
                    "l=ctypes.CDLL(None,use_errno=True)\n"
                    "for n in (321,323,425,250,103): print(n, l.syscall(n,0,0,0,0,0), ctypes.get_errno())\n"
                    "print(39, l.syscall(39) > 0)'; true")
        case.equal(len(re.findall("Operation not permitted", out)) >= 3, True, out)
        for number in (321, 323, 425, 250, 103):  # bpf, userfaultfd, io_uring_setup, keyctl, syslog
            case.contains(out, "%d -1 1\n" % number)
        case.contains(out, "39 True\n", "getpid, which the filter permits")


def test_system_calls_newer_than_the_filter_give_enosys():
    """System calls of newer kernels are not permitted until somebody has reviewed them: each number above the newest known one gives
    ENOSYS."""
    ask = "import ctypes; l = ctypes.CDLL(None, use_errno=True)\nfor n in range(%d, 600): l.syscall(n, -1, -1, -1, -1, -1); print(ctypes.get_errno())"
    newest = newest_call()
    mine = subprocess.run([sys.executable, "-c", ask % (newest + 1)], stdout=subprocess.PIPE, check=True).stdout.split()
    if set(mine) == {b"%d" % errno.ENOSYS}:
        case.skip("whether the kernel has no call above %d" % newest)
    with runs.Runs() as r:
        for fields in ({}, {"cap_add": 1 << CAPS["sys_admin"]}):
            out = r.output("/usr/bin/python3", ["-c", ask % (newest + 1)], driver="EXEC", **fields)
            case.equal(out.split(), ["%d" % errno.ENOSYS] * len(mine), "errno of calls above %d" % newest)


def newest_call():
    """The highest number of a system call that libseccomp knows."""
    lib = ctypes.CDLL("libseccomp.so.2")
    lib.seccomp_syscall_resolve_num_arch.restype = ctypes.c_char_p
    return max(n for n in range(1024) if lib.seccomp_syscall_resolve_num_arch(0, n))


# A 32-bit program: exit(7) by int 0x80.
OLD_CODE = b"\xb8\x01\0\0\0\xbb\x07\0\0\0\xcd\x80"
OLD_PROGRAM = struct.pack("<4sBBBxxxxxxxxxHHIIIIIHHHHHH", b"\x7fELF", 1, 1, 1, 2, 3, 1, 0x8048054, 52, 0, 0, 52, 32, 1, 0, 0, 0) + \
    struct.pack("<8I", 1, 0, 0x8048000, 0x8048000, 84 + len(OLD_CODE), 84 + len(OLD_CODE), 5, 4096) + OLD_CODE


def test_a_32_bit_program_is_killed_by_the_filter():
    if os.uname().machine != "x86_64":
        case.skip("not on x86_64")
    with runs.Runs() as r:
        alloc = r.make_alloc()
        path = "%s/alloc/%s/web/local/old" % (r.places.data, uuid.UUID(bytes=alloc))
        with open(path, "wb") as f:
            f.write(OLD_PROGRAM)
        os.chmod(path, 0o755)
        record = r.ended(r.start("old", alloc=alloc))
        if record["state"] == exe.EXE_FAILED or record["exit_signal"]:
            case.skip("this kernel does not run 32-bit programs")
        case.equal(record["exit_code"], 7)
        record = r.ended(r.start("old", alloc=alloc, driver="EXEC"))
        case.equal((record["exit_code"], record["exit_signal"]), (0, signal.SIGSYS))


def test_a_masked_file_that_is_replaced_is_masked_again():
    copy = case.directory() + "/etc"
    shutil.copytree("/etc", copy, symlinks=True, ignore_dangling_symlinks=True)
    helper.mount(copy, "/etc", flags=0x1000)  # MS_BIND, in this test's own namespace
    try:
        with runs.Runs() as r:
            def look():
                return sh(r, "wc -c < /etc/shadow; id -u", cap_add=1 << CAPS["dac_override"]).split()

            case.equal(look(), ["0", "65534"], "masked")
            with open("/etc/shadow.new", "w", encoding="ascii") as f:
                f.write("root:secret\n")
            os.rename("/etc/shadow.new", "/etc/shadow")  # as passwd(1) does
            case.raises(ipc.Error, look)  # exec-helper ends; the launcher starts another, which gets the request again
            r.restart()
            case.equal(look(), ["0", "65534"], "whether it is masked again")
    finally:
        helper.umount("/etc")


def test_a_mask_covers_the_target_of_links_in_its_path():
    copy = case.directory() + "/etc"
    shutil.copytree("/etc", copy, symlinks=True, ignore_dangling_symlinks=True)
    os.mkdir(copy + "/hidden")
    for name in ("shadow", "key"):
        with open(copy + "/hidden/" + name, "w", encoding="ascii") as f:
            f.write("a secret\n")
    shutil.rmtree(copy + "/ssl/private", ignore_errors=True)
    os.unlink(copy + "/shadow")
    os.symlink("/etc/hidden/shadow", copy + "/shadow")  # absolute: from the task's root
    os.symlink("../hidden", copy + "/ssl/private")
    look = "cat /etc/shadow /etc/hidden/shadow /etc/ssl/private/key /etc/hidden/key 2>&1; true"
    helper.mount(copy, "/etc", flags=0x1000)  # MS_BIND, in this test's own namespace
    try:
        with runs.Runs() as r:
            out = sh(r, look)
            case.equal((out.count("Permission denied"), "secret" in out), (4, False), out)
            # If the links change, their new target is masked at the next start.
            os.mkdir("/etc/elsewhere")
            os.rename("/etc/hidden/key", "/etc/elsewhere/key")
            os.unlink("/etc/ssl/private")
            os.symlink("../elsewhere", "/etc/ssl/private")
            case.raises(ipc.Error, sh, r, look)
            r.restart()
            case.contains(sh(r, "cat /etc/elsewhere/key 2>&1; true"), "Permission denied")
            # A loop has no target. As for a missing file, a new exec-helper masks a file that replaces it.
            os.unlink("/etc/shadow")
            os.symlink("shadow", "/etc/shadow")
            case.contains(sh(r, "cat /etc/shadow 2>&1; true"), "Too many levels of symbolic links")
            os.unlink("/etc/shadow")
            os.symlink("hidden/shadow", "/etc/shadow")
            with open("/etc/hidden/other", "w", encoding="ascii") as f:
                f.write("a secret\n")
            os.rename("/etc/hidden/other", "/etc/hidden/shadow")
            case.raises(ipc.Error, sh, r, look)
            r.restart()
            case.contains(sh(r, "cat /etc/hidden/shadow 2>&1; true"), "Permission denied")
    finally:
        helper.umount("/etc")


def test_a_mask_covers_its_file_wherever_chroot_env_shows_it():
    copy, outside = case.directory() + "/etc", case.directory()
    shutil.copytree("/etc", copy, symlinks=True, ignore_dangling_symlinks=True)
    os.mkdir(copy + "/hidden")
    for name in ("shadow", "hidden/key", "hidden/next"):
        with open("%s/%s" % (copy, name), "w", encoding="ascii") as f:
            f.write("a secret\n")
        os.chmod("%s/%s" % (copy, name), 0o644)
    os.symlink("/", outside + "/root")
    os.symlink("/etc/hidden/key", outside + "/key")
    helper.mount(copy, "/etc", flags=0x1000)  # MS_BIND, in this test's own namespace
    look = "cat /etc/hidden/key /x /conf/shadow /conf/hidden/key 2>&1; true"
    try:
        with runs.Runs('''tls { key_file = "%s/key" }
client { chroot_env {
  "/bin" = "/bin" "/lib" = "/lib" "/lib64" = "/lib64" "/usr" = "/usr" "/etc" = "/etc" "/etc/shadow" = "/x" "%s/root/etc" = "/conf" } }'''
                       % (outside, outside)) as r:
            out = sh(r, look)
            case.equal((out.count("Permission denied"), "secret" in out), (4, False), out)
            os.unlink(outside + "/key")
            os.symlink("/etc/hidden/next", outside + "/key")
            case.raises(ipc.Error, sh, r, look)
            r.restart()
            case.contains(sh(r, "cat /conf/hidden/next 2>&1; true"), "Permission denied")
            # A new file may get the inode number of the one that was removed.
            old = os.stat("/etc/hidden/next").st_ino
            os.unlink("/etc/hidden/next")
            for i in range(100):
                with open("/etc/hidden/%d" % i, "w", encoding="ascii") as f:
                    f.write("a secret\n")
                    os.fchmod(f.fileno(), 0o644)
                if os.stat(f.name).st_ino == old:
                    break
            os.rename(f.name, "/etc/hidden/next")  # another process may have got the number
            case.raises(ipc.Error, sh, r, look)
            r.restart()
            case.contains(sh(r, "cat /conf/hidden/next 2>&1; true"), "Permission denied")
    finally:
        helper.umount("/etc")


def test_masked_files_set_uid_programs_and_devices_are_out_of_reach():
    with runs.Runs() as r:
        out = sh(r, "cat /etc/shadow 2>&1; ls /etc/ssl/private 2>&1; cat /etc/gshadow 2>&1; ls /dev; cat /proc/kcore 2>/dev/null | wc -c;"
                    " echo x > /proc/sys/kernel/hostname; echo b > /proc/sysrq-trigger; mknod /tmp/n b 254 0 2>&1;"
                    " cp /bin/sh /tmp/s && chmod 4755 /tmp/s && stat -c %a /tmp/s; touch /x /etc/x /usr/x 2>&1; true")
        # Not every machine has /etc/ssl/private.
        refused = out.count("Permission denied") + ("'/etc/ssl/private': No such file" in out)
        case.equal(refused >= 3, True, out)
        case.equal("root:" in out, False, "shadow")
        case.contains(out, "\nfd\nfull\nnull\nptmx\npts\nrandom\nshm\nstderr\nstdin\nstdout\ntty\nurandom\nzero\n0\n")
        case.contains(out, "mknod: /tmp/n: Operation not permitted")
        case.equal(out.count("Read-only file system"), 2, out)
        for point in sh(r, "cut -d' ' -f5,6 /proc/self/mountinfo").splitlines():
            where, options = point.split()
            case.contains(options.split(","), "nosuid", where)
            if where not in ["/dev/" + n for n in ("null", "zero", "full", "random", "urandom", "tty", "pts")] + [
                    "/proc/keys", "/proc/timer_list", "/proc/kcore", "/proc/sysrq-trigger"]:
                case.contains(options.split(","), "nodev", where)


def test_a_task_sees_a_read_only_sys_and_its_own_cgroup():
    with runs.Runs() as r:
        out = sh(r, "ls /sys/class/net /sys/devices/system/cpu; cat /sys/firmware/x /sys/module/x /sys/devices/virtual/powercap/x 2>&1;"
                    " ls /sys/kernel/debug /sys/kernel/tracing /sys/kernel/security | grep -v :; cd /sys/fs/cgroup; echo own $(cat cgroup.procs);"
                    " echo limit $(cat memory.max); mkdir x 2>&1; sh -c 'echo 1 > cgroup.procs' 2>&1; true", memory_bytes=64 << 20)
        case.contains(out, "\nlo\n")
        case.contains(out, "cpu0\n")
        masked = [path for path in ("/sys/firmware", "/sys/module", "/sys/devices/virtual/powercap") if os.path.isdir(path)]
        case.equal(out.count("Permission denied"), len(masked), out)
        # Its own cgroup has only its own processes: the shell and cat.
        case.equal(len(re.search(r"^own (.*)$", out, re.M).group(1).split()), 2, out)
        if "memory" not in r.places.cgroup_dirs():
            case.contains(out, "limit %d\n" % (64 << 20))
        case.equal(out.count("Read-only file system"), 2, out)


def test_no_descriptor_at_any_stage_of_the_start_leads_out_of_the_root():
    with runs.Runs() as r:
        for number in range(3, 64):
            at = "/proc/self/fd/%d" % number
            record = r.ended(r.start("/bin/true", driver="EXEC", cwd=at))
            # 3 is the eventfd by which the child reports.
            case.equal((record["step"], record["error"]), (exe.EXE_STEP_CWD, errno.ENOTDIR if number == 3 else errno.ENOENT), at)
        for number in (16, 17, 18, 19):  # the roots of enum exe_fd
            at = "/proc/self/fd/%d/../../../../../../bin/true" % number
            record = r.ended(r.start(at, driver="EXEC"))
            case.equal((record["step"], record["error"]), (exe.EXE_STEP_COMMAND, 2), at)


def test_device_nodes_of_the_host_keep_their_modes():
    with runs.Runs() as r:
        before = os.stat("/dev/null").st_mode
        try:  # with the sticky bit, which has no effect on a device: the node belongs to the machine
            out = sh(r, "chmod 1666 /dev/null 2>&1; python3 -c 'import os; os.fchmod(0, 0o1666)' 2>&1; echo x > /dev/null && echo written",
                     cap_add=1 << CAPS["fowner"])
            after = os.stat("/dev/null").st_mode
        finally:
            os.chmod("/dev/null", before & 0o7777)
        case.equal(out.count("Read-only file system"), 2, out)
        case.contains(out, "written\n")
        case.equal(after, before, "mode")


def test_a_task_can_write_its_directories_and_open_stdout_again():
    with runs.Runs() as r:
        run = r.start("sh", ["-c", "echo to stdout > /dev/stdout; echo to stderr > /dev/stderr; while [ ! -s /alloc/logs/web.stdout.0 ]; do sleep 0.02; done; head -n 1 /alloc/logs/web.stdout.0;"
                             "touch /alloc/logs/x; touch /alloc/data/a /local/b /tmp/c /dev/shm/d /secrets/e; cat /secrets/token;"
                             "echo > /dev/null && tty; ls -d /mnt /home /root /var /run"],
                      driver="EXEC", secrets={"token": b"sesame\n"})
        r.ended(run)
        case.equal(r.log(run), "to stdout\nto stdout\nsesame\nnot a tty\n")
        err = r.log(run, "stderr")
        case.contains(err, "touch: cannot touch '/alloc/logs/x': Read-only file system")
        case.equal(err.count("No such file"), 5, err)
        base = "%s/alloc/%s" % (r.places.data, run.alloc)
        for path in ("alloc/data/a", "web/local/b", "web/tmp/c"):
            case.equal(os.stat(base + "/" + path).st_uid, 65534, path)


def test_signals_orphans_and_the_end_of_a_private_pid_namespace():
    with runs.Runs() as r:
        run = r.start("sleep", ["1000"], driver="EXEC")  # no handler: a pid 1 would ignore it
        with r.connect(run) as c:
            c.wait_state(exe.EXE_RUNNING)
            with open("/proc/%d/status" % c.hello["task_pid"], encoding="ascii") as f:
                case.contains(f.read(), "NSpid:\t%d\t2\n" % c.hello["task_pid"])
            c.send(exe.EXE_STOP, signal=signal.SIGINT, timeout_ms=5000)
            case.equal(c.wait_exited()["exit_signal"], signal.SIGINT)
        run = r.start("sh", ["-c", "(setsid sh -c 'sleep 0.1; exit 1' &) ; for i in $(seq 2000); do ls /proc > /tmp/l; "
                             "grep -c '^[0-9]' /tmp/l > /tmp/n; read n < /tmp/n; [ $n = 2 ] && break; sleep 0.05; done; echo $n"],
                      driver="EXEC")
        r.ended(run)
        case.equal(r.log(run), "2\n", "processes: sh, ls, no zombie; the executor is another user's")
        run = r.start("sleep", ["1000"], driver="EXEC")
        record = r.wait_state(run, exe.EXE_RUNNING)
        os.kill(record["executor_pid"], signal.SIGKILL)
        case.until(lambda: not os.path.exists("/proc/%d" % record["task_pid"]), 5, "end of the task with its executor")


def test_root_and_denied_users_and_the_agents_users_are_refused():
    with runs.Runs() as r:
        for user in ("root", "0"):
            e = case.raises(ipc.RequestError, r.start, "true", driver="EXEC", user=user)
            case.contains(str(e), 'running as user "root" is disallowed')
        for name in helper.USERS:
            for driver in ("EXEC", "RAW_EXEC"):
                e = case.raises(ipc.RequestError, r.start, "true", driver=driver, user=str(r.places.uid[name]))
                case.contains(str(e), "it is one of the agent's own")
        case.equal(r.list(), [])


def test_a_host_volume_is_mounted_where_the_template_has_no_directory():
    volume = case.directory()
    os.chmod(volume, 0o777)
    both = 'client { host_volume "v" { path = "%s" } host_volume "ro" { path = "%s" read_only = true } }'
    with runs.Runs(both % (volume, volume)) as r:
        out = sh(r, "echo 1 > /data/a; ls /; touch /x; cat /etc/hostname >/dev/null && cat /proc/self/mountinfo | wc -l; cat /local/v/a",
                 dests=["/data", "/local/v"], mounts=[{"kind": "EXEC_MOUNT_HOST_VOLUME", "name": "v"},
                                                      {"kind": "EXEC_MOUNT_HOST_VOLUME", "name": "ro", "read_only": True}])
        case.contains(out, "\ndata\ndev\n")
        case.equal(out.splitlines()[-1], "1")
        with open(volume + "/a", encoding="ascii") as f:
            case.equal(f.read(), "1\n")
        run = r.start("sh", ["-c", "touch /data/b; touch /y"], driver="EXEC", dests=["/data"],
                      mounts=[{"kind": "EXEC_MOUNT_HOST_VOLUME", "name": "v", "read_only": True}])
        r.ended(run)
        case.equal(r.log(run, "stderr").count("Read-only file system"), 1)
        for mount, text in (({"name": "other"}, 'host volume "other" is not configured'), ({"name": "ro"}, "is read-only")):
            e = case.raises(ipc.RequestError, r.start, "true", driver="EXEC", dests=["/d"],
                            mounts=[dict(mount, kind="EXEC_MOUNT_HOST_VOLUME")])
            case.contains(str(e), text)
        for dest, error in (("/", 22), ("/../x", 18), ("/bin/x", 40), ("/usr/none", 30), ("/etc/passwd", 20)):
            record = r.ended(r.start("true", driver="EXEC", dests=[dest], mounts=[{"kind": "EXEC_MOUNT_HOST_VOLUME", "name": "v"}]))
            case.equal((record["state"], record["step"]), (exe.EXE_FAILED, exe.EXE_STEP_MOUNT), dest)
            case.equal(record["error"], error, dest)


def test_a_host_volume_is_refused_if_another_user_can_change_its_path():
    """The owner of a directory of the path could replace it by a link to /etc, which the next start then mounted."""
    top = case.directory()

    def make(path, uid=0, mode=0o755, link=None):
        path = "%s/%s" % (top, path)
        if link:
            os.symlink(link, path)
        else:
            os.mkdir(path)
            os.chmod(path, mode)
        os.lchown(path, uid, uid)
        return path
    make("a")
    make("a/vol", 65534, 0o777)
    make("direct", link="a/vol")
    make("way", link=top + "/a")
    theirs = make("theirs", 65534)
    make("theirs/vol")
    make("theirs/link", 65534, link="/etc")
    shared = make("open", 0, 0o777)
    make("open/vol")
    make("sticky", 0, 0o1777)
    link = make("sticky/link", 65534, link="/etc")
    make("sticky/vol")
    stolen = make("sticky/theirs", 65534)
    make("in", link="theirs/vol")
    make("outer")
    make("outer/inner")
    make("outer2")
    make("outer2/inner")
    good = {"plain": "a/vol", "link": "direct", "way": "way/vol", "sticky": "sticky/vol", "outer": "outer", "under_a_reader": "outer2/inner"}
    bad = {"owner": ("theirs/vol", theirs), "link_there": ("theirs/link", theirs), "mode": ("open/vol", shared),
           "planted": ("sticky/link", link), "renamed": ("sticky/theirs", stolen), "by_a_link": ("in", theirs),
           "file": (None, "Not a directory"), "none": ("a/none", "No such file"),
           "inner": ("outer/inner", "is not configured on this node")}
    volumes = {name: "%s/%s" % (top, path) for name, path in good.items()}
    volumes.update({name: "%s/%s" % (top, path) if path else "/etc/passwd" for name, (path, _) in bad.items()})
    config = "client {\n%s}\n" % "".join('host_volume "%s" {\n path = "%s"\n}\n' % v for v in volumes.items())
    config += 'client {\n host_volume "outer2" {\n path = "%s/outer2"\n read_only = true\n}\n}\n' % top
    with runs.Runs(config) as r:
        for name in good:
            case.equal(sh(r, "ls -d /v", mounts=[{"kind": "EXEC_MOUNT_HOST_VOLUME", "name": name}], dests=["/v"]), "/v\n", name)
        for name, (_, text) in bad.items():
            e = case.raises(ipc.RequestError, r.start, "true", driver="EXEC", dests=["/v"],
                            mounts=[{"kind": "EXEC_MOUNT_HOST_VOLUME", "name": name}])
            case.contains(str(e), 'host volume "%s"' % name)
            case.contains(str(e), text, name)


def test_a_host_volume_that_does_not_answer_delays_no_other_start():
    if not os.path.exists("/dev/fuse"):
        case.skip("no /dev/fuse")
    point = case.directory()
    fuse = subprocess.Popen([build_dir() + "/tests/fuse_hang", point], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    try:
        case.equal(fuse.stdout.readline(), b"mounted\n", "fuse_hang")
        fuse.send_signal(signal.SIGSTOP)
        with runs.Runs('client {\n host_volume "stuck" {\n path = "%s"\n}\n}\n' % point) as r:
            case.equal(sh(r, "echo well"), "well\n")
    finally:
        fuse.kill()
        fuse.wait()
        helper.umount(point, 2)


def test_links_that_a_task_made_are_not_followed():
    with runs.Runs('client { host_volume "v" { path = "/var/tmp" } }') as r:
        for path, dests in (("alloc/logs", []), ("web/local", []), ("web/tmp", []), ("web/local/v", ["/local/v"])):
            alloc = r.make_alloc()
            at = "%s/alloc/%s/%s" % (r.places.data, uuid.UUID(bytes=alloc), path)
            if os.path.isdir(at):
                os.rmdir(at)
            os.symlink("/etc", at)
            mounts = [{"kind": "EXEC_MOUNT_HOST_VOLUME", "name": "v"}] * len(dests)
            record = r.ended(r.start("true", driver="EXEC", alloc=alloc, dests=dests, mounts=mounts))
            step = exe.EXE_STEP_DIRS if path in ("web/local", "web/tmp") else exe.EXE_STEP_MOUNT
            case.equal((record["state"], record["step"]), (exe.EXE_FAILED, step), path)
            case.contains((20, 40), record["error"], path)  # ENOTDIR, ELOOP


def test_without_a_template_only_exec_is_refused():
    # A template with a target below a link cannot be made.
    with runs.Runs('client { chroot_env { "/etc" = "/etc", "/usr" = "/etc/passwd/usr" } }') as r:
        e = case.raises(ipc.RequestError, r.start, "true", driver="EXEC")
        case.contains(str(e), "driver exec is not available: chroot_env: put /usr into the root")
        case.equal(r.output("echo", ["well"]), "well\n")


case.run(globals())

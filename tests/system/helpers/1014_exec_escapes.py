# SPDX-License-Identifier: Apache-2.0
# takes: 30
"""exec-helper and executor alone: what advisories of container engines were about, tried as uid 0 of a container (docs/advisories.md)."""
import errno
import os
import socket
import uuid

from lib import build_dir, case, exe, helper, images, ipc, runs
from lib.containers import CAPS, ETC, TOOLS, container, read, said

# Attacks that advisories of container runtimes describe; each attack must fail.
ESCAPES = [
    "echo '|/x' > /proc/sys/kernel/core_pattern", "echo c > /proc/sysrq-trigger", "echo 1 > /proc/sys/vm/drop_caches", "echo x > /sys/kernel/uevent_helper",
    "mkdir /cg && mount -t cgroup -o rdma cgroup /cg", "mkdir /cg2; mount -t cgroup2 none /cg2", "echo x > /sys/fs/cgroup/cgroup.procs", "mkdir /sys/fs/cgroup/x",
    "mount -o remount,rw /sys", "mount -o remount,rw /proc/sys", "umount /proc/keys", "umount /proc/sys", "mount -t proc proc /mnt", "mount --bind / /tmp", "unshare -U true",
    "unshare -m true", "mknod /disk b 254 0 && cat /disk", "mknod /kmem c 1 2 && cat /kmem", "cat /proc/kcore | grep -q .", "echo x > /proc/1/exe", "cat /proc/keys | grep .",
    "ls /proc/1/root/etc/shadow", "ip link set lo down", "echo -1000 > /proc/self/oom_score_adj", "hostname other",
    "cat /sys/devices/system/cpu/cpu[0-9]*/thermal_throttle/* | grep -q .", "cat /proc/interrupts /proc/timer_list | grep -q .", "find /sys/devices/virtual/powercap/ -name '*uj' | grep -q .",
    "echo x > /dev/full", "touch /sys/x", "echo 0 > /proc/sys/kernel/yama/ptrace_scope", "echo x > /proc/irq/default_smp_affinity",
]


def check(text, what):
    """What ATTEMPTS printed."""
    worked = [ESCAPES[int(x.split()[1])] for x in text.splitlines() if x.startswith("ESCAPED")]
    case.equal((worked, set(text.splitlines()) - {"end"}), ([], set()), "what worked " + what)


ATTEMPTS = "".join("if (%s) 2> /dev/null; then echo ESCAPED %d; fi\n" % (x, n) for n, x in enumerate(ESCAPES)) + "echo end"


def test_escapes():
    with runs.Runs() as r:
        for mode in ("EXEC_NS_PRIVATE", "EXEC_NS_HOST"):
            check(said(r, ATTEMPTS, net_mode=mode), "in " + mode)


def test_descriptors_of_the_machine():
    """CVE-2024-21626: a working directory that is a descriptor of the machine's, and a program that is one (CVE-2019-5736)."""
    with runs.Runs() as r:
        case.equal(said(r, "for f in /proc/self/fd/*; do readlink $f; done | grep -v -e pipe: -e /dev/null -e /proc -e socket:"
                           "; echo end"), "end\n", "descriptors of the first process")
        # Earlier, its stdin was /dev/null of the machine's /dev.
        case.equal(said(r, "set -- $(grep mnt_id /proc/self/fdinfo/0); grep -c \"^$2 .* /dev/null \" /proc/self/mountinfo"), "1\n", "mounts with its stdin")
        for fd in range(3, 40):
            run = container(r, "ls; pwd", cwd="/proc/self/fd/%d" % fd)
            record = r.ended(run)
            case.equal((record["state"], record["step"]), (exe.EXE_FAILED, exe.EXE_STEP_CWD), "the working directory /proc/self/fd/%d" % fd)


def test_links_in_images():
    """CVE-2019-19921 and others: mount points that lead elsewhere."""
    with runs.Runs() as r:
        for path in ("proc", "sys", "dev", "alloc", "secrets", "local"):
            for target in ("/", "/../../../../etc", "/proc/self/fd/10", "/proc/1/root", "/nowhere"):
                run = container(r, "echo reached", layers=(images.tar([images.link(path, target)]), ETC, TOOLS))
                record = r.ended(run)
                case.equal(record["state"] in (exe.EXE_FAILED, exe.EXE_ENDED), True, "%s -> %s" % (path, target))
        case.equal(os.path.ismount("/etc"), False, "a mount on the machine")


def program(name):
    with open(build_dir() + "/tests/" + name, "rb") as f:
        return images.tar([images.directory("bin"), images.file("bin/" + name, f.read(), mode=0o755)])


# A container's root may change its root directory, as under Docker, and its own init process: that is a process of its user.
HARMLESS = {"gain: may call chroot (it worked)", "gain: has other ids: uid 0, gid 0", "gain: reads the limits of process 1", "gain: sets the processors of process 1",
            "gain: sets the priority of process 1", "end"}


def test_walls():
    """The program that tries to escape from exec tasks, as root. Its init process is the executor's program: CVE-2019-5736."""
    with runs.Runs() as r:
        r.make_alloc("other")
        spaces = {x: os.readlink("/proc/self/ns/" + x) for x in ("mnt", "pid", "ipc", "uts", "user", "cgroup", "net")}
        own = " ".join("own:/" + x for x in ("bin", "etc", "tmp", "alloc", "local", "secrets", "dev"))
        paths = " ".join("path:" + x for x in (r.places.data, r.places.data + "/alloc", r.places.runtime, build_dir()))
        for mode, more in (("EXEC_NS_PRIVATE", set()), ("EXEC_NS_HOST", {"gain: is in the host's net namespace"})):
            text = said(r, "exec walls pid:1 %s %s %s" % (" ".join("ns:%s=%s" % x for x in spaces.items()), own, paths), layers=(program("walls"), ETC, TOOLS), net_mode=mode,
                        env=["PATH=/bin"], options=["flag=init"])
            case.equal(set(text.splitlines()), HARMLESS | more, "what root reaches")


def test_masks_hold_where_directories_are_links():
    """CVE-2019-16884, CVE-2023-28642, CVE-2025-31133: an image decides where /proc, /sys and /dev are."""
    ends = []
    with runs.Runs() as r:
        for links in ({x: "k/" + x for x in ("proc", "sys", "dev", "etc", "alloc", "local", "secrets")}, {"proc": "sys"}, {"sys": "proc"}, {"dev": "proc"}, {"proc": "dev"},
                      {"dev": "sys"}, {"sys": "dev"}, {"dev": "alloc"}, {"proc": "alloc"}, {"alloc": "proc"}, {"secrets": "sys"}, {"local": "dev"}, {"etc": "proc"}, {"etc": "dev"}):
            entries = [images.directory(x) for x in ("k", *links.values())] + [images.link(*x) for x in links.items()]
            run = container(r, ATTEMPTS, layers=(images.tar(entries), TOOLS), env=["PATH=/bin"])
            record = r.ended(run)
            if record["state"] == exe.EXE_ENDED:
                check(r.log(run), "with %s" % links)
                ends.append(links)
    case.equal(len(ends[0]), 7, "the first of those that ran: %s" % ends)


def test_nothing_is_mounted_on_the_root():
    """Earlier, an image with a link from /proc to / had it at "/..", where no mask covers it and /proc/sys can be written."""
    with runs.Runs() as r:
        def fails(what, links, options=()):
            run = container(r, "ls /..", layers=(images.tar([images.directory("k"), *(images.link(*x) for x in links)]), ETC, TOOLS), env=["PATH=/bin"], options=options)
            record = r.ended(run)
            case.equal((exe.STATES[record["state"]], record["error"], r.log(run)), ("failed", errno.ENOTUNIQ, ""), what)
        for name in ("proc", "sys", "dev", "alloc", "local", "secrets"):
            for target in ("/", ".", "k/..", "/../.."):
                fails("%s -> %s" % (name, target), [(name, target)])
        fails("two links", [("proc", "k/a"), ("k/a", "..")])
        for option in ("bind=rw:/local:/", "bind=ro:/local/x:/way", "tmpfs=0:700:/.", "tmpfs=0:700:/way"):
            fails(option, [("way", "/")], [option])


def test_nothing_is_made_outside_of_the_container():
    """CVE-2024-45310, CVE-2024-5154, CVE-2026-41579 and those of WORKDIR and VOLUME: paths of an image that lead to a directory of the machine."""
    outside = case.directory()
    case.write(outside + "/kept", "kept\n")
    os.chmod(outside, 0o777)
    target = "/../../../../../.." + outside
    there = images.tar([images.directory(outside[1:], mode=0o777)])
    more = {"cwd": "/way/cwd", "env": ["PATH=/bin"], "options": ["etc=hosts:x\n", "bind=rw:/local/d:/way/bind", "tmpfs=0:700:/way/tmpfs"]}
    with runs.Runs() as r:
        for name in ("way", "etc", "dev", "proc", "sys", "alloc", "local", "secrets"):
            for below in ((TOOLS,), (there, TOOLS)):
                alloc = r.make_alloc()
                links = [images.link(name, target)] + ([images.link("way", target)] if name != "way" else [])
                for _ in range(2):  # what the first has left is removed by the second
                    r.ended(container(r, "touch /way/made; ln -s %s /out; ln -s %s /local/out; rm -rf /way/kept; true" % (target, target), alloc=alloc,
                                      layers=(images.tar(links), *below), **more))
                case.equal((os.listdir(outside), read(outside + "/kept")), (["kept"], "kept\n"), "the directory of the machine, with a link at /" + name)


def test_mounts_while_another_container_exchanges_their_places():
    """CVE-2021-30465, CVE-2025-52881: the directories that containers of an allocation share have links at times."""
    outside = case.directory()
    with runs.Runs() as r:
        alloc = r.make_alloc("web", ("db",))
        swaps = "".join("ln -sfn %s /alloc/data/x; rm -f /alloc/data/x; mkdir /alloc/data/x; rm -rf /alloc/data/x; " % x for x in ("/", "/proc", "..", "/../../../.." + outside))
        first = container(r, "while :; do %s done 2> /dev/null" % swaps, alloc=alloc, env=["PATH=/bin"])
        r.wait_state(first, exe.EXE_RUNNING)
        before, ends = read("/proc/self/mountinfo"), set()
        for n in range(12):
            run = container(r, "[ -e /b/self ] || [ -e /b/bin ] && echo another directory; " + ATTEMPTS, alloc=alloc, task="db", number=3, env=["PATH=/bin"],
                            options=["bind=rw:/alloc/data/x:/b", "tmpfs=4096:700:/alloc/data/x/t", "bind=ro:/local:/alloc/data/x/l"] if n % 2 else ["tmpfs=4096:700:/alloc/data/x/self/t"])
            record = r.ended(run)
            ends.add(exe.STATES[record["state"]])
            check(r.log(run), "in start %d" % n)
        case.equal((read("/proc/self/mountinfo"), os.listdir(outside)), (before, []), "the machine")
        print("        ends: %s" % sorted(ends))


def test_the_executors_program_cannot_be_changed():
    """CVE-2019-5736: a session that starts "/proc/self/exe" executes the executor's program inside. It is a mount of its own, so its path is "/"."""
    with runs.Runs() as r:
        run = container(r, "until ls -l /proc/[0-9]*/exe 2> /dev/null | grep -q '> /$'; do :; done; for p in /proc/[0-9]*; do case $(readlink $p/exe) in /)"
                           "exec 5< $p/exe && echo opened; kill -9 ${p#/proc/}; until [ ! -e $p ]; do :; done; echo x > /proc/self/fd/5; chmod 777 /proc/self/fd/5;; esac; done; echo end", env=["PATH=/bin"])
        r.wait_state(run, exe.EXE_RUNNING)
        before = read_bytes(build_dir() + "/drover-executor")
        with r.session(run, "/proc/self/exe", ["health-check", "/local", ""], driver="EXEC_DRIVER_DOCKER", id_range=2) as s:
            s.wait_exited()
        r.ended(run)
        case.equal(r.log(run), "opened\nend\n", "what root of the container did")
        case.equal(r.log(run, "stderr").count("Read-only file system"), 2, r.log(run, "stderr"))
        case.equal(read_bytes(build_dir() + "/drover-executor") == before, True, "the executor's program")


def read_bytes(path):
    with open(path, "rb") as f:
        return f.read()


def test_a_session_shows_nothing_of_the_machine():
    """Earlier, /proc had the mounts and the sockets of the machine for the moment until a session's child had joined the container."""
    outside, name = case.directory(), "drover-test-" + uuid.uuid4().hex
    helper.mount("tmpfs", outside, "tmpfs", 0, "size=4k")
    try:
        with runs.Runs() as r, socket.socket(socket.AF_UNIX) as server:
            server.bind("\0" + name)
            run = container(r, "echo ready; while :; do for p in /proc/[0-9]*; do read c < $p/comm; if [ $c = drover-executor ]; then echo looked; for f in mountinfo net/unix; do while read x; do"
                               " case $x in *%s*|*%s*) echo \"saw $x\";; esac; done < $p/$f; done; fi; done; done 2> /dev/null" % (outside, name), net_mode="EXEC_NS_PRIVATE")
            case.until(lambda: "ready" in r.log(run), 10, "its start")
            for n in range(2000):
                r.session(run, "/bin/true", driver="EXEC_DRIVER_DOCKER", id_range=2).close()
                if n % 100 == 99 and r.log(run).count("looked") >= 100:
                    break
            case.equal(set(r.log(run).splitlines()), {"ready", "looked"}, "what the container saw")
            r.reap(run)
    finally:
        helper.umount(outside)


def test_files_of_sessions_follow_no_link():
    """CVE-2018-15664, CVE-2025-9566, CVE-2026-41568: links where a rendered file will be."""
    outside = case.directory()
    target = "/../../.." + outside
    with runs.Runs() as r:
        run = container(r, "echo root > /etc/f; ln -s /etc /local/dir; ln -s /etc/f /local/f; ln -s /etc/f /secrets/f; ln -s %s /local/out; ln -s %s/f /secrets/out; echo ready; exec sleep 1000"
                        % (target, target), env=["PATH=/bin"])
        case.until(lambda: "ready" in r.log(run), 10, "its start")
        for name in ("local/dir/f", "local/out/f"):
            case.contains(str(case.raises(ipc.Error, r.replace, run, {name: b"new"}, driver="EXEC_DRIVER_DOCKER", id_range=2)), "'step': %d, 'error': %d" % (exe.EXE_STEP_SECRETS, errno.ENOTDIR))
        for name in ("local/f", "f", "out"):
            case.equal(r.replace(run, {name: b"new"}, driver="EXEC_DRIVER_DOCKER", id_range=2), 0, "exit code for " + name)
        root = "/proc/%d/root" % r.record(run)["task_pid"]
        case.equal((read(root + "/etc/f"), read(root + "/local/f"), read(root + "/secrets/f"), read(root + "/secrets/out"), os.listdir(outside)), ("root\n", "new", "new", "new", []), "files")


def test_users_and_groups_that_are_no_such():
    """CVE-2024-40635, CVE-2026-46680: numbers that do not fit; CVE-2024-9676, CVE-2026-47262: files of users that are no files, or too large."""
    numbers = ("4294967296", "18446744073709551616", "65536", "00000000000", "4294967296:0", "0:4294967296")
    with runs.Runs() as r:
        def fails(what, user, entries):
            record = r.ended(container(r, "id", user_inside=user, layers=(images.tar([images.directory("etc"), *entries]), TOOLS)))
            case.equal((record["state"], record["step"], record["detail"]), (exe.EXE_FAILED, exe.EXE_STEP_CONTAINER, 1), what)
        roots = "".join("%s:x:0:0::/:/bin/sh\n" % x.split(":")[0] for x in numbers).encode()
        for user in numbers:
            fails("user " + user, user, [images.file("etc/" + x, b"0:x:0:0::/:\n" + roots) for x in ("passwd", "group")])
        for user in ("0x0", "+0", " 0", "-0", "0 "):
            fails("user %r" % user, user, [])
        for name in ("passwd", "group"):
            for kind, entry in (("directory", images.directory("etc/" + name)), ("device", images.link("etc/" + name, "/dev/zero")), ("link to the machine", images.link("etc/" + name, "/proc/self/fd/0")),
                                ("pipe", ("etc/" + name, None, {"type": b"6"})), ("huge", images.file("etc/" + name, b"x:x:1:\n" * (1 << 20)))):
                fails("%s as %s" % (kind, name), "x:x", [entry] + [images.file("etc/" + x, b"x:x:1:1::/:\n") for x in ("passwd", "group") if x != name])
        many = "".join("g%d:x:%d:x\n" % (n, n) for n in range(1000)).encode()
        fails("a thousand groups", "x", [images.file("etc/passwd", b"x:x:1:1::/:\n"), images.file("etc/group", many)])


def test_sessions_have_no_more_than_their_container():
    """CVE-2022-24769: inheritable capabilities; CVE-2022-36109: groups; CVE-2026-30892: the user 1."""
    look = "id; grep -E '^(Cap|NoNew|Seccomp:)' /proc/self/status; ls /proc/self/fd; pwd; cat /proc/self/oom_score_adj"
    with runs.Runs() as r:
        for user in (None, "1", "1:1", "web"):
            run = container(r, look + "; echo end; exec sleep 1000", user_inside=user, env=["PATH=/bin"])
            case.until(lambda run=run: "end\n" in r.log(run), 10, "its start")
            with r.session(run, "/bin/sh", ["-c", look + "; echo end"], driver="EXEC_DRIVER_DOCKER", id_range=2, user_inside=user, env=["PATH=/bin"], options=["caps=" + CAPS]) as s:
                text = s.read(1).decode()
                s.wait_exited()
            case.equal(text, r.log(run), "a session of user %s" % user)
            case.contains(text, "CapInh:\t%016x\n" % 0, "inheritable capabilities")
            case.contains(text, "CapAmb:\t%016x\n" % 0, "ambient capabilities")
            case.equal(text.startswith("uid=%s(" % {None: "0", "web": "1000"}.get(user, "1").split(":")[0]) or text.startswith("uid=1 "), True, text)
            r.reap(run)


def test_sysctls_of_the_machine():
    """CVE-2022-0532, CVE-2022-0811: in a namespace of the machine nothing can be set, and nowhere what is the machine's."""
    names = ("net.core.somaxconn=77", "net.ipv4.ip_forward=1", "kernel.core_pattern=|/x", "kernel.shm_rmid_forced=1+kernel.core_pattern=|/x", "kernel.hostname=x", "vm.swappiness=1")
    with runs.Runs() as r:
        before = [read("/proc/sys/" + x.split("=")[0].replace(".", "/")) for x in names]
        for name in names:
            record = r.ended(container(r, "true", options=["sysctl=" + name], net_mode="EXEC_NS_HOST"))
            case.equal((record["state"], record["detail"] & 0xff) == (exe.EXE_FAILED, 8) or name.startswith("kernel.hostname"), True, name)
        case.equal([read("/proc/sys/" + x.split("=")[0].replace(".", "/")) for x in names], before, "values of the machine")


def test_services_of_the_machine_see_a_stranger():
    """CVE-2020-15257: who is in the network of the machine reaches abstract sockets there, but root of a container is not root for their servers."""
    name = "drover-test-" + uuid.uuid4().hex
    with runs.Runs() as r, socket.socket(socket.AF_UNIX) as server:
        server.bind("\0" + name)
        server.listen()
        for mode, wanted in (("EXEC_NS_PRIVATE", False), ("EXEC_NS_HOST", True)):
            case.equal('"connect:@%s":0,' % name in said(r, "exec /bin/inside connect:@" + name, layers=(program("inside"), ETC, TOOLS), net_mode=mode), wanted, "whether it connects in " + mode)
        with server.accept()[0] as s:
            case.equal(int.from_bytes(s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)[4:8], "little"), images.ID_OWN, "the user that the server sees")


def test_device_nodes_of_the_machine():
    """They are the machine's, so root of a container can neither change nor replace them for others."""
    modes = [os.stat("/dev/" + x).st_mode for x in ("null", "zero", "tty")]
    with runs.Runs() as r:
        text = said(r, "for d in null zero tty; do for c in 'chmod 600' 'chown 1' 'rm -f' 'touch -d 1999-01-01'; do $c /dev/$d && echo did $c; done; done 2> /dev/null; mknod /dev/mine c 1 1 && echo did mknod;"
                       "mknod /local/mine c 1 1 && echo did mknod; mknod /zero c 0 0 && echo did zero; echo > /dev/null; echo end", env=["PATH=/bin"])
        case.equal([x for x in text.splitlines() if x == "end" or "did" in x], ["end"], text)
    case.equal([os.stat("/dev/" + x).st_mode for x in ("null", "zero", "tty")], modes, "modes")


case.run(globals())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares what a container sees under dockerd, podman and drover: the same image, the same program inside, a network of its own each, without a
terminal and with one. Each difference between dockerd and drover must be a row of the table "Inside a container" in docs/differences.md, and each row a difference.

    tests/nomad/isolated.py tests/engines/check_inside.py [-v]
"""
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from lib import agent, api, case, engines, images, networks, web  # noqa: E402
import table  # noqa: E402

COMMANDS = ("awk", "cat", "echo", "env", "grep", "hostname", "id", "ip", "ls", "mknod", "ping", "pwd", "readlink", "sed", "sh", "sleep", "sort", "stat", "su", "tr", "tty",
            "umask", "unshare", "mount", "chown", "touch", "wc", "dd", "chroot", "nc")
# Prints lines "SUBJECT|WHAT|VALUE".
PROGRAM = r"""
say() { echo "$1|$2|$(echo "$3" | tr '\n' ' ')"; }
works() { if sh -c "$2" >/dev/null 2>&1; then say works "$1" yes; else say works "$1" no; fi; }
awk '{ o = ""; n = split($6, f, ","); for (i = 1; i <= n; i++) if (f[i] ~ /^(ro|nosuid|nodev|noexec)$/) o = o f[i] " "; for (i = 7; $i != "-"; i++); print "mount|" $5 "|" $(i + 1) " " o }' /proc/self/mountinfo
env | sort | while IFS== read -r k v; do say env "$k" "$v"; done
grep -E '^(Cap|NoNewPrivs|Seccomp|Uid|Gid|Groups|Umask)' /proc/self/status | while IFS=: read -r k v; do say status "$k" "$v"; done
say ids uid_map "$(awk '{print $1, $3, ($2 > 0 ? "elsewhere" : "same")}' /proc/self/uid_map)"
awk 'NR > 1 { name = substr($0, 1, 25); sub(/ +$/, "", name); print "limit|" name "|" substr($0, 26, 42) }' /proc/self/limits | sed 's/  */ /g'
for d in /dev/* /dev/pts /dev/shm; do say dev "$d" "$(stat -c '%F %a %t:%T %u:%g' "$d") $(readlink "$d")"; done
for d in / /tmp /proc /sys /dev /etc /etc/hosts /etc/hostname /etc/resolv.conf /etc/mtab /run /var; do say file "$d" "$(stat -c '%F %a %u:%g' "$d" 2>&1)"; done
say file "entries of /" "$(ls -A /)"
for p in /proc/kcore /proc/keys /proc/latency_stats /proc/timer_list /proc/sched_debug /proc/scsi /proc/acpi /proc/asound /proc/bus/pci /proc/fs /proc/irq /proc/sysrq-trigger /proc/interrupts \
	/proc/kallsyms /proc/kmsg /proc/1/environ /proc/sys/kernel/core_pattern /proc/sys/kernel/hostname /proc/sys/net/ipv4/ip_forward /proc/sys/net/ipv4/ping_group_range \
	/proc/sys/net/ipv4/ip_unprivileged_port_start /sys/firmware /sys/fs/cgroup /sys/kernel/debug /sys/class/net /sys/devices/virtual/powercap /sys/kernel/uevent_helper; do
	if [ -d $p ]; then say kernel $p "directory, $(ls -A $p 2>/dev/null | grep -c .) entries" | sed 's/[2-9] entries\|[1-9][0-9]* entries/some entries/'; 
	else say kernel $p "$(if dd if=$p bs=64 count=1 2>/dev/null | wc -c | grep -qx 0; then echo empty or not readable; else echo readable; fi)"; fi
	[ -d $p ] || say kernel "$p, to write" "$(if ( : >>$p ) 2>/dev/null; then echo can be opened; else echo no; fi)"
done
say kernel cgroup "$(sed 's/.*:/:/' /proc/self/cgroup | sort -u)"
say kernel oom_score_adj "$(cat /proc/self/oom_score_adj)"
say process pid $$
say process "directory" "$(pwd)"
say process "command of pid 1" "$(tr '\0' ' ' </proc/1/cmdline | cut -c1-12 2>/dev/null || true)"
for n in mnt pid ipc uts user net cgroup time; do say namespace $n "$(if [ "$(readlink /proc/self/ns/$n)" = "$(eval echo \$HOST_$n)" ]; then echo of the machine; else echo its own; fi)"; done
for f in 0 1 2; do say process "descriptor $f" "$(readlink /proc/self/fd/$f | sed 's/[0-9][0-9]*/N/g')"; done
say process "other descriptors" "$(for f in /proc/$$/fd/*; do readlink $f; done | grep -vE '^(pipe:.*|/program|/dev/null|/proc/.*)$')"
say network links "$(ls /sys/class/net; )"
say network addresses "$(ip -o addr show | awk '{print $2, $3}' | sort -u)"
say network routes "$(ip route | sed 's/[0-9.]*\/[0-9]*/NET/; s/ via .* dev/ via ADDRESS dev/; s/ src .*/ src ADDRESS/')"
say network hostname "$(hostname | sed 's/[0-9a-f]/x/g')"
sed 's/[0-9a-f]\{12\}/NAME/; s/172\.[0-9.]*/ADDRESS/; s/\t/ /g' /etc/hosts | grep . | grep -v '^#' | while read -r a b; do say hosts "$a $b" there; done
grep -v '^#' /etc/resolv.conf | grep . | while read -r a b; do say resolv "$a" "$b"; done
works "root sets a file's owner" "touch /tmp/f && chown 5:6 /tmp/f"
works "root makes a device" "mknod /tmp/null c 1 3"
works "root mounts" "mount -t tmpfs none /tmp"
works "a user namespace" "unshare -U true"
works "root in a user namespace mounts" "unshare -Ur sh -c 'unshare -m mount -t tmpfs none /tmp'"
works "ping to itself" "ping -c 1 -W 1 127.0.0.1"
works "a user pings" "su user -c 'ping -c 1 -W 1 127.0.0.1'"
works "root writes to /" "touch /x"
works "root changes the network" "ip link set lo down"
works "chroot" "chroot / true"
works "a user writes to a terminal" "su user -c 'echo >/dev/tty'"
echo end
exec sleep 1000
"""


def image():
    etc = [images.directory("etc"), images.directory("work"), images.file("etc/passwd", b"root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000:user:/:/bin/sh\n"),
           images.file("etc/group", b"root:x:0:\nuser:x:1000:\n"), images.file("program", PROGRAM.encode(), mode=0o755)]
    spaces = ["HOST_%s=%s" % (n, os.readlink("/proc/self/ns/" + n)) for n in ("mnt", "pid", "ipc", "uts", "user", "net", "cgroup", "time")]
    return images.Image([images.tar(images.busybox(*COMMANDS, "cut", "true") + etc)], {"Env": ["PATH=/bin", *spaces], "Entrypoint": ["/bin/sh", "/program"], "WorkingDir": "/work"})


def parse(text):
    found = {}
    for line in text.splitlines():
        words = line.split("|", 2)
        if len(words) == 3:
            found[words[0] + " " + words[1]] = " ".join(words[2].split())
    return found


def under_engine(make, name, tty):
    with make() as engine:
        engine.command, engine.tty = ["/bin/sh", "/program"], tty
        engine.prepare(name)
        engine.run("bridge", 1)
        return parse(case.until(lambda: "\nend" in engine.output() and engine.output(), 60, "the program under " + engine.name))


def under_drover(name, tty):
    with api.Node(agent.config_args('plugin "docker" { config { } }\n')) as node:
        made = api.job("inside", driver="docker")
        made["Job"]["TaskGroups"][0]["Tasks"][0].update(Config={"image": name, "tty": tty}, Resources={"CPU": 10, "MemoryMB": 64})
        node.register(made)
        alloc = node.wait_running("inside", seconds=60)[0]
        node.wait_said(alloc, b"\nend")
        return parse(node.logs(alloc).decode())


def main():
    if not shutil.which("dockerd") or not shutil.which("skopeo") or not os.path.exists("/bin/busybox"):
        sys.exit("check-containers needs docker.io, skopeo and busybox-static")
    networks.need()
    cases = {}
    with web.Server(images.registry({"a": {"1": image()}})) as server:
        for tty in (False, True):
            name = images.name(server, "a:1")
            cases["with a terminal" if tty else "without a terminal"] = {
                "dockerd": under_engine(engines.dockerd, name, tty), "drover": under_drover(name, tty),
                "podman": under_engine(engines.podman, name, tty) if shutil.which("podman") else {}}
    sys.exit(table.report("Inside a container", cases))


main()

# SPDX-License-Identifier: Apache-2.0
"""Finds what a test has added to the machine: processes, mounts, cgroups, files. Uses no part of drover."""
import os

# Where drover could leave files outside of a test's own directory.
PLACES = ("/run", "/tmp", "/dev/shm", "/var/tmp", "/var/lib/drover", "/etc/drover", "/dev/mqueue")
PF_KTHREAD = 0x00200000


def processes(ignore=()):
    """Returns {pid: description} of all other processes in this pid namespace. Zombies count, because a parent forgot to wait for them."""
    found = {}
    mine = {os.getpid()} | set(ignore)
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) in mine:
            continue
        try:
            with open("/proc/%s/cmdline" % name, "rb") as f:
                command = f.read().replace(b"\0", b" ").decode(errors="replace").strip()
            with open("/proc/%s/stat" % name, encoding="utf-8", errors="replace") as f:
                stat = f.read()
            with open("/proc/%s/cgroup" % name, encoding="utf-8") as f:
                cgroup = f.read().split("\n")[-2]
        except OSError:
            continue
        if int(stat.rpartition(")")[2].split()[6]) & PF_KTHREAD:
            continue
        found[int(name)] = "%s %s [%s] cgroup %s" % (name, stat[stat.find("("):stat.rfind(")") + 1], command, cgroup)
    return found


def mounts():
    """Returns mount points of this namespace with source and type. A point with several mounts occurs once for each."""
    found = {}
    with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as f:
        for line in f:
            before, after = line.rstrip("\n").split(" - ", 1)
            words = before.split(" ")
            found[words[0] + " " + words[4]] = "%s (%s from %s)" % (words[4], *after.split(" ")[:2])
    return found


def cgroups():
    """Returns every directory of every mounted hierarchy."""
    found = {}
    for line in open("/proc/self/mountinfo", encoding="utf-8", errors="replace"):
        before, after = line.split(" - ", 1)
        if after.startswith("cgroup"):
            point = before.split(" ")[4]
            for at, directories, _ in os.walk(point):
                found.update({os.path.join(at, d): os.path.join(at, d) for d in directories})
    return found


def files(ignore=()):
    """Returns every path below PLACES, except those below one of `ignore` or the test's own directory."""
    ignore = set(ignore) | {os.environ.get("DROVER_TEST_DIR")}
    found = {}
    for place in PLACES:
        if os.path.exists(place):
            found[place] = place
        for at, directories, names in os.walk(place):
            directories[:] = [d for d in directories if os.path.join(at, d) not in ignore]
            found.update({os.path.join(at, n): os.path.join(at, n) for n in directories + names})
    return found


class Snapshot:
    def __init__(self, ignore_pids=(), ignore_paths=()):
        self.ignore_pids, self.ignore_paths = ignore_pids, ignore_paths
        self.found = {
            "process": processes(ignore_pids),
            "mount": mounts(),
            "cgroup": cgroups(),
            "file": files(ignore_paths),
        }

    def since(self):
        """Returns a sentence for each object that exists now and did not exist then."""
        now = Snapshot(self.ignore_pids, self.ignore_paths)
        return ["leaked %s: %s" % (kind, text) for kind, entries in now.found.items()
                for key, text in sorted(entries.items(), key=lambda e: str(e[0])) if key not in self.found[kind]]

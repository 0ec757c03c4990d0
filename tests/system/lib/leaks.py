# SPDX-License-Identifier: Apache-2.0
"""What is on the machine besides what was there before: processes, mounts, cgroups, files. No part of drover is asked."""
import os

# Where something of ours could lie outside of a test's own directory.
PLACES = ("/run", "/tmp", "/dev/shm", "/var/tmp", "/var/lib/drover", "/etc/drover", "/dev/mqueue")
PF_KTHREAD = 0x00200000


def processes(ignore=()):
    """{pid: what it is} of all others in this pid namespace; zombies too: somebody has forgotten to wait."""
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
    """Mount points of this namespace with source and type; a point that is mounted over is there more than once."""
    found = {}
    with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as f:
        for line in f:
            before, after = line.rstrip("\n").split(" - ", 1)
            words = before.split(" ")
            found[words[0] + " " + words[4]] = "%s (%s from %s)" % (words[4], *after.split(" ")[:2])
    return found


def cgroups():
    """Every directory of every hierarchy that is mounted."""
    found = {}
    for line in open("/proc/self/mountinfo", encoding="utf-8", errors="replace"):
        before, after = line.split(" - ", 1)
        if after.startswith("cgroup"):
            point = before.split(" ")[4]
            for at, directories, _ in os.walk(point):
                found.update({os.path.join(at, d): os.path.join(at, d) for d in directories})
    return found


def files(ignore=()):
    """Every path below PLACES, but those below one of `ignore` or the test's own directory."""
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
        """What is there now and was not then: a list of sentences."""
        now = Snapshot(self.ignore_pids, self.ignore_paths)
        return ["leaked %s: %s" % (kind, text) for kind, entries in now.found.items()
                for key, text in sorted(entries.items(), key=lambda e: str(e[0])) if key not in self.found[kind]]

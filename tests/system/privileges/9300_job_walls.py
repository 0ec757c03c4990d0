#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# timeout: 1200
# takes: 40
"""Jobs with all kinds of users, modes, capabilities and volumes, on an agent with the shipped policy. Each job that the policy accepts runs
tests/peers/walls.c, which tries to reach everything outside of its own allocation."""
import ctypes
import os
import random
import shutil
import socket
import subprocess

from lib import api, build_dir, case, helper, service
from lib.websocket import Exec

NOBODY = 65534
KEY = 0x77616c6c
MQ = "/walls"
# Name, uid, gid, other groups.
PEOPLE = (("plain", 64950, 64950, []), ("of-root", 64951, 0, []), ("member", 64952, 64952, ["drover"]),
          ("exec-member", 64953, 64953, ["drover-exec"]), ("of-drover", 64954, service.FIRST_ID, []),
          ("csi-member", 64955, 64955, ["drover-csi"]), ("checker", 64956, service.FIRST_ID + 4, []))
# The same users by number, and texts that might be parsed as root or as a user of the agent.
USERS = ["", "nobody", "plain", "of-root", "games", "65534", "12345", "64950", "4294967294",
         "root", "0", "00", "+0", "0x0", " 0", "-0", "4294967296", "4294967295", "-1", "nobody:root", "root ",
         *service.AGENT, *(str(service.FIRST_ID + i) for i in range(len(service.AGENT))),
         "member", "exec-member", "of-drover", "csi-member", "checker", "64952", "64954"]
CAPS = ["audit_control", "audit_read", "audit_write", "block_suspend", "bpf", "checkpoint_restore", "chown", "dac_override",
        "dac_read_search", "fowner", "fsetid", "ipc_lock", "ipc_owner", "kill", "lease", "linux_immutable", "mac_admin",
        "mac_override", "mknod", "net_admin", "net_bind_service", "net_broadcast", "net_raw", "perfmon", "setfcap", "setgid",
        "setpcap", "setuid", "sys_admin", "sys_boot", "sys_chroot", "sys_module", "sys_nice", "sys_pacct", "sys_ptrace",
        "sys_rawio", "sys_resource", "sys_time", "sys_tty_config", "syslog", "wake_alarm"]
COMMANDS = {"plain": ["/usr/games/walls"], "shell": ["/bin/sh", "-c", 'exec "$@"', "sh", "/usr/games/walls"],
            "session": ["/usr/bin/setsid", "-w", "/usr/games/walls"]}
BASE = {"user": "", "pid_mode": None, "ipc_mode": None, "cap_add": (), "cap_drop": (), "volumes": (), "command": "plain"}
CHOICES = {
    "user": USERS,
    "pid_mode": [None, "private", "host", "", "HOST"],
    "ipc_mode": [None, "private", "host"],
    "cap_add": [(), ("all",), ("CAP_KILL",), ("kill", "audit_write"), ("net_bind_service",), ("setuid", "setgid"),
                ("dac_override", "kill")] + [(c,) for c in CAPS],
    "cap_drop": [(), ("all",), ("kill",), ("kill", "audit_write", "net_bind_service")],
    "volumes": [(), ("vol",), ("ro",), ("vol", "ro")],
    "command": list(COMMANDS),
}
BATCH, PATIENCE = 12, 300  # few jobs at a time, and a long deadline in s: the tasks have the smallest share of a busy machine's processors
MIXED = 60  # random combinations, in addition to each choice alone
REFUSALS = ("does not allow the following capabilities", "is disallowed", "does not exist", "is not a user name",
            'must be "private" or "host"', "allow_host_pid", "allow_host_ipc")


def combinations():
    """Returns each choice alone, the most dangerous combinations, and random combinations, which are the same in each run."""
    made = [dict(BASE, **{field: value}) for field, values in CHOICES.items() for value in values]
    for user in ("nobody", "plain", "of-root"):
        for caps in ((), ("kill",), ("dac_override",), ("setuid", "setgid")):
            made += [dict(BASE, user=user, cap_add=caps, pid_mode="host"), dict(BASE, user=user, cap_add=caps, ipc_mode="host")]
    chance = random.Random(1)
    made += [{field: chance.choice(values) for field, values in CHOICES.items()} for _ in range(MIXED)]
    # Most random combinations are refused because of their user or capability, so add some with permitted ones.
    made += [dict({field: chance.choice(values) for field, values in CHOICES.items()}, user=chance.choice(USERS[:9]),
                  cap_add=chance.choice(CHOICES["cap_add"][:5]), pid_mode=chance.choice([None, "private"]),
                  ipc_mode=chance.choice([None, "private"])) for _ in range(MIXED // 2)]
    return [c for i, c in enumerate(made) if c not in made[:i]]


class Places:
    """Canaries on the host: files, sockets, ipc objects and processes of root and of the tasks' users. Each directory of the default
    chroot_env has a mount with files that only root may read. .seen: paths that no task may see."""

    covered = ("/etc/opt", "/usr/games", "/usr/share", "/usr/local", "/usr/include", "/usr/src")

    def __init__(self):
        self.top = case.directory()
        self.seen, self.sockets, self.mounted, self.processes, self.listeners = [], [], [], [], []

    def _write(self, path, uid=0, mode=0o600):
        with open(path, "w", encoding="ascii") as f:
            f.write("a canary\n")
        os.chown(path, uid, uid)
        os.chmod(path, mode)

    def _listen(self, path, mode):
        s = socket.socket(socket.AF_UNIX)
        at = os.open(os.path.dirname(path), os.O_PATH)
        s.bind("/proc/self/fd/%d/%s" % (at, os.path.basename(path)))
        os.close(at)
        os.chmod(path, mode)
        s.listen(64)
        self.listeners.append(s)

    def _fill(self, path):
        """Makes files of all kinds in a directory that only root may open."""
        self._write(path + "/canary")
        os.mkdir(path + "/closed", 0o700)
        self._write(path + "/closed/canary", mode=0o644)
        self._write(path + "/canary.set-user-id", mode=0o4700)
        self._listen(path + "/canary.socket", 0o600)
        os.mkfifo(path + "/canary.pipe", 0o600)
        os.mknod(path + "/canary.device", 0o20666, os.makedev(1, 5))
        os.mknod(path + "/canary.memory", 0o20666, os.makedev(1, 1))
        os.chmod(path + "/canary.memory", 0o666)

    def __enter__(self):
        os.makedirs("/run/systemd/resolve")
        os.makedirs("/run/resolvconf")
        for path in self.covered:
            helper.mount("walls", path, "tmpfs", 0, "mode=0755")
            self.mounted.append(path)
        for path in (*self.covered, "/run/systemd/resolve", "/run/resolvconf"):
            self._fill(path)
        shutil.copy(build_dir() + "/tests/walls", "/usr/games/walls")
        os.chmod("/usr/games/walls", 0o755)
        for name in ("vol", "ro"):
            os.mkdir("%s/%s" % (self.top, name))
            os.chmod("%s/%s" % (self.top, name), 0o777)
            self._fill("%s/%s" % (self.top, name))
        self._host()
        return self

    def _host(self):
        """Makes files and processes outside of all directories of tasks; some have mode 0666."""
        host = self.top + "/host"
        os.mkdir(host)
        self._listen(host + "/socket", 0o777)
        self.sockets.append(host + "/socket")
        for name, uid, mode in (("root", 0, 0o600), ("nobody", NOBODY, 0o600), ("plain", 64950, 0o600), ("all", 0, 0o666)):
            self._write(host + "/" + name, uid, mode)
            self.seen.append(host + "/" + name)
        for uid in (0, NOBODY, 64950, 12345):
            self.processes.append(subprocess.Popen(["/bin/sleep", "100000"], user=uid, group=uid, extra_groups=[], cwd=host))
        self.processes.append(subprocess.Popen([build_dir() + "/tests/walls", "make", "key:%d" % KEY, "mq:" + MQ],
                                               stdout=subprocess.PIPE))
        case.equal(self.processes[-1].stdout.readline(), b"made\n")

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()
        for s in self.listeners:
            s.close()
        libc = ctypes.CDLL(None, use_errno=True)
        libc.shmctl(libc.shmget(KEY, 0, 0), 0, None)
        libc.semctl(libc.semget(KEY, 0, 0), 0, 0)
        libc.msgctl(libc.msgget(KEY, 0), 0, None)
        libc.mq_unlink(MQ.encode())
        for path in self.mounted:
            helper.umount(path, 2)
        shutil.rmtree("/run/systemd")
        shutil.rmtree("/run/resolvconf")

    @property
    def config(self):
        return '''client {
  gc_max_allocs = 10000
  host_volume "vol" { path = "%s/vol" }
  host_volume "ro" { path = "%s/ro" read_only = true }
}
''' % (self.top, self.top)


NEIGHBOUR = """for d in /local /alloc/data /alloc/tmp /alloc /secrets /tmp /dev/shm; do echo canary > $d/canary; chmod 666 $d/canary; done
exec /usr/games/walls make key:%d mq:%s""" % (KEY + 1, MQ + "-neighbour")


def start_neighbours(node, places):
    """Runs a job of user nobody and one of user plain, and adds the paths of their files on the host to places."""
    for user in ("nobody", "plain"):
        name = "neighbour-" + user
        node.register(api.job(name, "/bin/sh", ["-c", NEIGHBOUR], driver="exec", User=user, Env={"CANARY": "yes"},
                              Resources={"CPU": 10, "MemoryMB": 10}))
        alloc = node.wait_running(name, seconds=60)[0]
        node.wait_said(alloc, b"made\n")
        at = "%s/alloc/%s" % (node.data, alloc["ID"])
        places.seen += [at, at + "/t/local/canary", at + "/t/secrets", at + "/alloc/data/canary"]
    places.seen += [node.data + "/state/state.db", node.data + "/run", node.data + "/logs", "/run/drover/lease"]
    places.sockets += ["/run/drover/drover.sock"] + ["/run/drover/x/" + n for n in os.listdir("/run/drover/x")]


def options(places, volumes):
    words = ["own:" + d for d in ("/alloc", "/local", "/secrets", "/tmp", "/private", "/dev/shm")]
    words += ["own:/mnt/" + v for v in volumes if v != "ro"]
    words += ["path:" + p for p in places.seen] + ["socket:" + p for p in places.sockets]
    words += ["ns:%s=%s" % (n, os.readlink("/proc/self/ns/" + n)) for n in ("mnt", "pid", "ipc", "cgroup")]
    words += ["key:%d" % KEY, "key:%d" % (KEY + 1), "mq:" + MQ, "mq:%s-neighbour" % MQ]
    return words + ["pid:%d" % (max(int(n) for n in os.listdir("/proc") if n.isdigit()) + 300)]


def job(name, c, words):
    command = COMMANDS[c["command"]]
    made = api.job(name, command[0], [*command[1:], *words], driver="exec", User=c["user"],
                   Resources={"CPU": 1, "MemoryMB": 50},
                   VolumeMounts=[{"Volume": v, "Destination": "/mnt/" + v} for v in c["volumes"]],
                   group={"Volumes": {v: {"Name": v, "Type": "host", "Source": v, "ReadOnly": v == "ro"} for v in c["volumes"]}})
    config = made["Job"]["TaskGroups"][0]["Tasks"][0]["Config"]
    config.update({field: c[field] for field in ("pid_mode", "ipc_mode") if c[field] is not None})
    config.update({field: list(c[field]) for field in ("cap_add", "cap_drop") if c[field]})
    made["Job"]["Type"] = "batch"
    return made


def outcome(node, name):
    """Returns (gains, None) of a job that ran, (None, message) of one that was refused."""
    alloc = case.until(lambda: [a for a in node.allocs(name) if a["ClientStatus"] in ("complete", "failed")], PATIENCE, name)[0]
    events = node.ask("/v1/allocation/" + alloc["ID"])["TaskStates"]["t"]["Events"]
    text = "\n".join(e["DisplayMessage"] for e in events)
    if "Started" not in [e["Type"] for e in events]:
        return None, text
    said = node.logs(alloc).decode(errors="replace").splitlines()
    if alloc["ClientStatus"] != "complete" or not said or said[-1] != "end" or any(s.startswith("failed") for s in said):
        said.append("gain: it ended as it should not: %s\n%s\n%s" % (text, said[-5:], node.logs(alloc, kind="stderr")))
    return [s[len("gain: "):] for s in said if s.startswith("gain: ")], None


def run_all(node, places, made):
    """Runs all jobs and prints a summary. Returns (combinations that ran, {combination: its gains})."""
    ran, gained, sentences = [], {}, set()
    for at in range(0, len(made), BATCH):
        registered = []
        for i, c in enumerate(made[at:at + BATCH], at):
            answer = node.request("POST", "/v1/jobs", job("walls-%d" % i, c, options(places, c["volumes"])))
            if answer.status == 200:
                registered.append(("walls-%d" % i, c))
            else:
                sentences.add((answer.text, str(c)))
        for name, c in registered:
            gains, sentence = outcome(node, name)
            if sentence:
                sentences.add((sentence, str(c)))
                continue
            ran.append(c)
            if gains:
                gained[str({k: v for k, v in c.items() if v != BASE[k]})] = gains
    strange = [s for s in sentences if not any(known in s[0] for known in REFUSALS)]
    case.equal(strange, [], "refusals with an unexpected reason")
    print("    %d combinations: %d ran, %d were refused" % (len(made), len(ran), len(made) - len(ran)))
    return ran, gained


def test_no_job_that_the_shipped_policy_accepts_reaches_beyond_its_allocation():
    with service.Users(PEOPLE), Places() as places, service.Node(places.config) as node:
        start_neighbours(node, places)
        before = node.processes()
        ran, gained = run_all(node, places, combinations())
        for c, gains in gained.items():
            print("    %s: %d gains\n        %s" % (c, len(gains), "\n        ".join(gains[:8])))
        # These must run, or the test would pass because everything is refused.
        for c in (BASE, dict(BASE, user="plain"), dict(BASE, user="12345"), dict(BASE, cap_add=("net_bind_service",)),
                  dict(BASE, volumes=("vol", "ro")), dict(BASE, cap_drop=("all",)), dict(BASE, command="session")):
            case.contains(ran, c, "combinations that ran")
        case.equal(len(gained), 0, "combinations that gained something")
        case.equal(node.processes(), before, "processes of the agent")
        case.equal([p.poll() for p in places.processes], [None] * len(places.processes), "whether processes of the host have ended")
        for user in ("nobody", "plain"):
            node.wait_running("neighbour-" + user)
            node.purge("neighbour-" + user)


def test_a_session_reaches_no_more_than_its_task():
    """Commands of `alloc exec`, with and without a terminal."""
    with service.Users(PEOPLE), Places() as places, service.Node(places.config) as node:
        start_neighbours(node, places)
        for user in ("nobody", "plain"):
            node.register(api.job("host-" + user, "/bin/sleep", ["100000"], driver="exec", User=user,
                                  Resources={"CPU": 10, "MemoryMB": 20}))
            alloc = node.wait_running("host-" + user, seconds=60)[0]
            for tty in (False, True):
                with Exec(node, alloc["ID"], ["/usr/games/walls", *options(places, ())], tty=tty) as session:
                    out, err, result = session.end()
                said = out.decode().splitlines()
                case.equal((said, err, result.get("exit_code", 0)), (["end"], b"", 0), "a session of %s, terminal: %s" % (user, tty))
            node.purge("host-" + user)
            node.purge("neighbour-" + user)


case.run(globals())

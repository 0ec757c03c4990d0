#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# takes: 30
"""Local users without a group or in the control socket's group, and the users of the agent's processes, try to access everything below the
data directory, the runtime directory and the cgroups of a working agent, and all of its processes and tasks. Root gives them the list of
all names."""
import collections
import ctypes
import json
import os
import re
import socket
import stat
import traceback

from lib import agent, api, case, crash, service, volumes
from lib.websocket import Exec

STRANGER = 54321
LINES = 40  # lines of a report
PLAIN = 64950
PTRACE_SEIZE, PTRACE_DETACH, PR_SET_DUMPABLE = 0x4206, 17, 4
SYS_PIDFD_GETFD = 438
CONFIG = '''plugin "exec" { config { allow_caps = ["audit_write", "kill", "net_bind_service", "sys_admin", "dac_override", "fowner", "chown"] } }
plugin "raw_exec" { config { enabled = true } }
'''
# A task that makes files with mode 0777 in each of its directories: the directories above must keep other users out.
TASK = """import os, socket, time
os.umask(0)
for d in %s:
    d = os.path.expandvars(d)
    os.mkdir(d + "/open")
    for at in (d, d + "/open"):
        with open(at + "/everybodys", "w") as f:
            f.write("a canary")
        s = socket.socket(socket.AF_UNIX)
        os.chdir(at)
        s.bind("socket")
        s.listen()
        globals().setdefault("kept", []).append(s)
print("made", flush=True)
time.sleep(100000)
"""
DIRS = ("$NOMAD_TASK_DIR", "$NOMAD_SECRETS_DIR", "$NOMAD_ALLOC_DIR/data", "$NOMAD_ALLOC_DIR/tmp", "$NOMAD_ALLOC_DIR")
libc = ctypes.CDLL(None, use_errno=True)


class Node(volumes.Node):
    """An agent as installed, with a plugin."""

    def __init__(self):
        super().__init__(CONFIG, dev=False)

    def __exit__(self, kind, value, tb):
        try:
            return super().__exit__(kind, value, tb)
        finally:
            service.remove(self)


def start_job(name, driver, user):
    dirs = DIRS + (("/tmp", "/data") if driver == "exec" else ())
    made = api.job(name, "/usr/bin/python3", ["-c", TASK % (dirs,)], driver=driver, User=user)
    group = made["Job"]["TaskGroups"][0]
    group["Services"] = [{"Name": "web", "PortLabel": "1", "Provider": "nomad", "Address": "127.0.0.1"}]
    if driver == "exec":
        group["Tasks"][0]["VolumeMounts"] = [{"Volume": "data", "Destination": "/data"}]
        group["Volumes"] = {"data": {"Name": "data", "Type": "csi", "Source": name, "AccessMode": "single-node-writer",
                                     "AttachmentMode": "file-system"}}
    node.register(made)
    alloc = node.wait_running(name, seconds=60)[0]
    node.wait_said(alloc, b"made\n")
    return alloc


def start_jobs():
    """Runs a job for each driver and kind of user. Returns {name: alloc}."""
    found = {}
    for driver, user in (("exec", ""), ("exec", "plain"), ("raw_exec", ""), ("raw_exec", "nobody"), ("raw_exec", "plain")):
        name = "%s-%s" % (driver.replace("_", "-"), user or "default")
        if driver == "exec":
            node.create(name)
        found[name] = start_job(name, driver, user)
    return found


# --- the lists that root makes ---

def all_paths():
    """Returns every path of the agent."""
    tops = [node.data, "/run/drover"]
    name = "drover-" + crash.instance(node)
    tops += [os.path.join(at, name) for at, dirs, _ in os.walk("/sys/fs/cgroup") if name in dirs]
    found = list(tops)
    for top in tops:
        for at, dirs, files in os.walk(top):
            found += [os.path.join(at, n) for n in dirs + files]
    return found


def all_pids():
    """Returns {pid: name} of the agent's processes, its executors and its tasks."""
    found = {node.pid: "launcher", **{pid: name for name, pid in node.processes().items()}}
    for pid in (int(n) for n in os.listdir("/proc") if n.isdigit()):
        try:
            with open("/proc/%d/cgroup" % pid, encoding="ascii") as f:
                if "/drover-" + crash.instance(node) in f.read():
                    found[pid] = " ".join(agent.arguments(pid)[:2])
        except OSError:
            pass
    return found


def listening(pids):
    """Returns {inode: name} of the network sockets and abstract sockets on which these processes listen."""
    inodes = {d[len("socket:["):-1] for pid in pids for d in agent.descriptors(pid) if d.startswith("socket:[")}
    found = {}
    with open("/proc/net/unix", encoding="ascii") as f:
        for words in (line.split() for line in f):
            if words[6:7] and words[6] in inodes and words[7:8] and words[7].startswith("@"):
                found[words[6]] = words[7]
    for name in ("tcp", "tcp6", "udp", "udp6"):
        with open("/proc/net/" + name, encoding="ascii") as f:
            for words in (line.split() for line in f):
                if words[9] in inodes and (words[3] == "0A" or name.startswith("udp")):
                    found[words[9]] = "%s %s" % (name, words[1])
    return found


# --- the attempts of a user ---

def works(fn, *args):
    try:
        fd = fn(*args)
    except OSError:
        return False
    if isinstance(fd, int) and fn is os.open:
        os.close(fd)
    return True


def connects(path):
    def once(kind):
        at = os.open(os.path.dirname(path), os.O_PATH | os.O_DIRECTORY)
        try:
            with socket.socket(socket.AF_UNIX, kind) as s:
                s.setblocking(False)
                s.connect("/proc/self/fd/%d/%s" % (at, os.path.basename(path)))
        except BlockingIOError:
            pass
        finally:
            os.close(at)
    return any(works(once, kind) for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET, socket.SOCK_DGRAM))


def plants(path):
    """Returns whether files can be created in the directory."""
    def once(make, remove):
        make(path + "/planted")
        remove(path + "/planted")
    return any(works(once, make, remove) for make, remove in (
        (lambda p: os.close(os.open(p, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)), os.unlink), (os.mkdir, os.rmdir),
        (lambda p: os.symlink("/etc", p), os.unlink), (lambda p: os.mkfifo(p, 0o600), os.unlink)))


def try_path(path, kind):
    """Returns the operations that are possible with a path."""
    flags = os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW
    tries = {"mode": lambda: works(os.chmod, path, 0o777), "owner": lambda: works(os.chown, path, os.getuid(), -1)}
    if stat.S_ISDIR(kind):
        tries.update(list=lambda: works(os.open, path, os.O_RDONLY | os.O_DIRECTORY), plant=lambda: plants(path))
    elif stat.S_ISSOCK(kind):
        tries.update(connect=lambda: connects(path))
    elif not stat.S_ISLNK(kind):
        tries.update(read=lambda: works(os.open, path, os.O_RDONLY | flags), write=lambda: works(os.open, path, os.O_WRONLY | flags))
    return ["%s %s" % (name, path) for name, fn in tries.items() if fn()]


def may_trace(pid):
    if libc.ptrace(PTRACE_SEIZE, pid, None, None) < 0:
        return False
    libc.ptrace(PTRACE_DETACH, pid, None, None)
    return True


def may_read_memory(pid):
    byte = ctypes.create_string_buffer(1)
    local = (ctypes.c_void_p * 2)(ctypes.addressof(byte), 1)
    remote = (ctypes.c_void_p * 2)(16, 1)
    ctypes.set_errno(0)
    return libc.process_vm_readv(pid, local, 1, remote, 1, 0) >= 0 or ctypes.get_errno() == 14  # EFAULT


def takes_descriptor(pid):
    pidfd = os.pidfd_open(pid)
    found = any(libc.syscall(SYS_PIDFD_GETFD, pidfd, fd, 0) >= 0 for fd in range(16))
    os.close(pidfd)
    return found


def try_process(pid, what):
    found = ["%s of %s" % (name, what) for name in ("environ", "mem", "maps", "auxv", "syscall", "stack", "io", "fd", "fdinfo",
                                                    "map_files") if works(os.open, "/proc/%d/%s" % (pid, name), os.O_RDONLY)]
    found += ["%s of %s" % (name, what) for name in ("root", "cwd", "exe", "ns/mnt", "ns/pid", "ns/net", "ns/user", "fd/0")
              if works(os.readlink, "/proc/%d/%s" % (pid, name)) or works(os.open, "/proc/%d/%s" % (pid, name), os.O_RDONLY)]
    found += ["%s of %s" % (name, what) for name in ("oom_score_adj", "clear_refs", "comm", "sched", "autogroup",
                                                     "uid_map") if works(os.open, "/proc/%d/%s" % (pid, name), os.O_WRONLY)]
    for name, done in (("signal to", lambda: works(os.kill, pid, 0)), ("trace of", lambda: may_trace(pid)),
                       ("memory of", lambda: may_read_memory(pid)), ("descriptors of", lambda: takes_descriptor(pid)),
                       ("processors of", lambda: works(os.sched_setaffinity, pid, {0})),
                       ("priority of", lambda: works(os.setpriority, os.PRIO_PROCESS, pid, 19))):
        if done():
            found.append("%s %s" % (name, what))
    return found


def walk(tops):
    """Returns the paths that the user finds without the list."""
    return [os.path.join(at, n) for top in tops for at, dirs, files in os.walk(top) for n in dirs + files]


def reached_by(uid, groups, paths, pids):
    """Returns all that a user without capabilities can do with these paths and processes, and the paths that the user finds."""
    kinds = []
    for path in paths:
        try:
            kinds.append((path, os.lstat(path).st_mode))
        except FileNotFoundError:
            pass
    others = {pid: what for pid, what in pids.items() if os.path.exists("/proc/%d" % pid) and os.stat("/proc/%d" % pid).st_uid != uid}
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups(groups)
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)  # or its own /proc/self/fd would belong to root
            found = [f for path, kind in kinds for f in try_path(path, kind)]
            found += [f for pid, what in others.items() for f in try_process(pid, what)]
            found += ["see " + p for p in walk([node.data, "/run/drover"])]
            with os.fdopen(theirs, "w") as f:
                json.dump(found, f)
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    os.close(theirs)
    with os.fdopen(ours) as f:
        said = f.read()
    case.equal(os.waitpid(child, 0)[1], 0, "exit code of the child of user %d" % uid)
    return json.loads(said)


def kinds(found):
    """Replaces ids, and counts equal lines."""
    counted = collections.Counter(re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{32}", "ID", text) for text in found)
    return ["%s (%d)" % pair for pair in sorted(counted.items())]


def public():
    """Returns patterns of what every user may do, each with its reason."""
    return ["read %s/instance" % node.data,  # names the cgroups of the agent, but gives no access
            "list /run/drover", "see /run/drover/[^/]*",  # the directory of the sockets, which have their own modes
            "read /run/drover/lease"]  # executors read it; it contains only the time of the last heartbeat


def of_the_group():
    """Returns what the control socket's group may do in addition. Its members have full access through the API anyway."""
    cgroups = "/sys/fs/cgroup/.*/?drover-" + crash.instance(node)
    return public() + [
        "connect /run/drover/drover.sock",
        "(list|see|read|connect) /run/drover/x(/.*)?",  # an executor closes connections of all users but drover and root: 1000
        "list /run/drover/netns",  # the ids of allocations with networks of their own
        "(list|see|read) %s/(logs|run)(/.*)?" % node.data,  # logs and records of runs
        "(list|read) %s(/.*)?" % cgroups,
        "write %s/(exec|tasks)/cpuset.cpus" % cgroups]  # the cores of runs; through the API these users can stop the runs anyway


def check_reach(who, uid, groups, allowed):
    extra = [f for f in reached_by(uid, groups, paths, pids) if not any(re.fullmatch(a, f) for a in allowed)]
    assert not extra, "%s reaches %d things:\n        %s" % (who, len(extra), "\n        ".join(kinds(extra)[:LINES]))


def test_a_local_user_reaches_nothing_of_a_working_agent():
    for name, alloc in allocs.items():  # the lists contain these, so the test is not empty
        assert any(alloc["ID"] in p and p.endswith("/open/everybodys") for p in paths), name
    for part in ("/csi.sock", "/drover.sock", "/t/secrets/everybodys", "/state/state.db", ".rec", "/t.stdout.0", "/cgroup.procs"):
        assert any(p.endswith(part) for p in paths), part
    print("    %d paths, %d processes" % (len(paths), len(pids)))
    check_reach("a stranger", STRANGER, [], public())


def test_users_of_the_agents_processes_reach_no_more():
    """An attacker in one of these processes has its user. Its descriptors: 2000; its capabilities: 9100; its filter: unit/filters."""
    for name, uid in ids.items():
        if name not in ("drover", "drover-exec", "drover-file", "drover-fetcher", "drover-images"):
            check_reach(name, uid, [], public())
    for name, own in (("drover-fetcher", node.data + "/alloc/.fetch"), ("drover-images", node.data + "/images/blobs")):
        mode = stat.S_IMODE(os.stat(own).st_mode)
        check_reach(name, ids[name], [], public() + ["(list|mode|owner|plant) " + own])
        os.chmod(own, mode)  # the attempt has opened it


def test_the_group_of_the_socket_reaches_it_and_the_logs():
    check_reach("a member of group drover", STRANGER, [ids["drover"]], of_the_group())


def test_an_attacker_in_the_supervisor_reaches_no_file_of_an_alloc_directly():
    check_reach("drover", ids["drover"], [], of_the_group() + [
        "(list|see|read|write|plant|mode|owner) %s/(state|audit)(/.*)?" % node.data])


def test_the_agent_listens_on_no_network_or_abstract_socket():
    case.equal(listening([pid for pid, what in pids.items() if not what.startswith("/")]), {})


def test_file_helper_can_open_only_the_directories_of_allocs():
    """Its root is the directory of all allocs. This and each of its other directories is a separate mount without a parent directory."""
    pid = node.wait_process("file-helper")
    names = set(os.listdir("/proc/%d/root" % pid))
    case.equal(names - {a["ID"] for a in node.ask("/v1/allocations")}, {".trash", ".fetch"}, "root of file-helper")
    for fd in os.listdir("/proc/%d/fd" % pid):
        at = "/proc/%d/fd/%s" % (pid, fd)
        if not os.path.isdir(at):
            try:
                name = os.readlink(at)
            except FileNotFoundError:  # closed after the list was read
                continue
            case.equal(re.match(r"socket:|/dev/null|/memfd:|%s$" % node.log_path, name) is not None, True, name)
            continue
        case.contains(("/", "/.trash", "/sock", "/sock/.trash"), os.readlink(at))
        for _ in range(3):
            at += "/.."
        top, above = os.stat(at), os.stat(at + "/..")
        case.equal((top.st_dev, top.st_ino), (above.st_dev, above.st_ino), "above " + at)
        data = {(st.st_dev, st.st_ino) for st in (os.stat("%s/%s" % (node.data, n)) for n in ("alloc", "logs", "csi")
                                                  if os.path.exists("%s/%s" % (node.data, n)))}
        case.contains(data, (top.st_dev, top.st_ino), "the top of " + at)


def test_an_executor_can_open_only_the_logs_and_the_volume_of_its_alloc():
    """Its root is the directory of the logs. Its descriptors lead to no other directory except the volume that it syncs at a lease stop."""
    harmless = re.compile(r"socket:|pipe:|anon_inode:|/dev/null|/memfd:|/data$|%s/run/[0-9a-f]{32}\.rec|/run/drover/lease|"
                          r"/sys/fs/cgroup/.*/(cgroup\.kill|cgroup\.events|memory\.oom_control|memory\.events)$" % node.data)
    found = [pid for pid, what in pids.items() if what.startswith("drover-executor")]
    case.equal(len(found) >= len(allocs), True, "executors")
    for pid in found:
        root = os.readlink("/proc/%d/root" % pid)
        case.equal(os.path.dirname(root), node.data + "/logs", "root of executor %d" % pid)
        strange = [d for d in agent.descriptors(pid) if not harmless.match(d) and not d.startswith(root + "/")]
        case.equal(strange, [], "descriptors of executor %d" % pid)


with service.Users([("plain", PLAIN, PLAIN, [])]), Node() as node:
    with open("/etc/passwd", encoding="ascii") as passwd:
        ids = {line.split(":")[0]: int(line.split(":")[2]) for line in passwd if line.startswith("drover")}
    node.start_plugin()
    allocs = start_jobs()
    with Exec(node, allocs["exec-plain"]["ID"], ["/bin/sleep", "1000"]):
        case.until(lambda: any(w == ["/bin/sleep", "1000"] for w in map(agent.arguments, all_pids())), 30, "the command of the session to run")
        paths, pids = all_paths(), all_pids()
        case.run(globals())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The effect of the exec driver's settings, in the agent's configuration and in jobs, as seen in /proc and cgroups."""
import math
import os
import pwd
import re
import signal
import subprocess

from lib import agent, api, case, crash, helper, trace
from lib.websocket import Exec

ALL_IDS = "for n in pid ipc; do readlink /proc/self/ns/$n; done; grep -E '^Cap(Bnd|Amb)' /proc/self/status; " \
          "echo seen $(ls /proc | grep -c '^[0-9]'); echo end; exec sleep 1000"
CAPS = {"chown": 0, "kill": 5, "net_bind_service": 10, "net_raw": 13, "audit_write": 29}


def bits(*names):
    return sum(1 << CAPS[n] for n in names)


def look(node, name, **config):
    """Runs an exec task with this driver configuration. Returns {namespace: id}, {capability set: bits}, and the number of processes that
    it sees."""
    made = api.job(name, driver="exec")
    made["Job"]["TaskGroups"][0]["Tasks"][0]["Config"] = {"command": "/bin/sh", "args": ["-c", ALL_IDS], **config}
    node.register(made)
    alloc = node.wait_running(name, seconds=60)[0]
    node.wait_said(alloc, b"end\n")
    said = node.logs(alloc).decode()
    node.purge(name)
    caps = {n: int(v, 16) for n, v in re.findall(r"^Cap(\w+):\t(\w+)$", said, re.M)}
    return dict(re.findall(r"^(pid|ipc):\[(\d+)\]$", said, re.M)), caps, int(re.search(r"seen (\d+)", said).group(1))


def wanting(name, **config):
    """Returns an exec job with this driver configuration."""
    made = api.job(name, driver="exec")
    made["Job"]["TaskGroups"][0]["Tasks"][0]["Config"].update(config)
    return made


def hosts(ns):
    return re.search(r"\d+", os.readlink("/proc/self/ns/" + ns)).group(0)


def last_sentence(node, name):
    alloc = node.wait_allocs(name, [(0, "run", "failed")], seconds=60)[0]
    return [e["DisplayMessage"] for e in node.ask("/v1/allocation/" + alloc["ID"])["TaskStates"]["t"]["Events"]]


def test_namespaces_and_capabilities_follow_the_job_and_the_configuration():
    with api.Node() as node:
        ns, caps, seen = look(node, "plain")
        case.equal((ns["pid"] == hosts("pid"), ns["ipc"] == hosts("ipc")), (False, False), "namespaces by default")
        case.equal((caps["Bnd"], caps["Amb"]), (bits("kill", "net_bind_service", "audit_write"),) * 2)
        # The shell and the subshell with ls and grep; not the executor, although that is pid 1 there.
        assert seen <= 4, seen
        for mode in ("pid", "ipc"):
            node.refused(400, 'config.%s_mode "host" is not allowed on this node: plugin "exec" { config { allow_host_%s = true } }'
                         % (mode, mode), "POST", "/v1/jobs", wanting("hosts", **{mode + "_mode": "host"}))
        plugin = wanting("plugin")
        plugin["Job"]["TaskGroups"][0]["Tasks"][0]["CSIPluginConfig"] = {"ID": "p", "Type": "node", "MountDir": "/csi"}
        node.register(plugin)
        case.contains("\n".join(last_sentence(node, "plugin")), 'it needs cap_add = ["sys_admin"]')
        node.purge("plugin")
        _, caps, _ = look(node, "caps", cap_add=["CHOWN"], cap_drop=["cap_kill"])
        case.equal(caps["Amb"], bits("net_bind_service", "audit_write", "chown"))
        case.equal(caps["Bnd"], caps["Amb"])
    text = ('plugin "exec" { config { default_pid_mode = "host"\n default_ipc_mode = "host"\n allow_host_pid = true\n '
            'allow_host_ipc = true\n allow_caps = ["audit_write", "net_raw"] } }')
    with api.Node(agent.config_args(text)) as node:
        ns, caps, seen = look(node, "hosts")
        case.equal((ns["pid"], ns["ipc"]), (hosts("pid"), hosts("ipc")), "namespaces by the default of the configuration")
        case.equal((caps["Bnd"], caps["Amb"]), (0, 0), "capabilities, which would affect other processes in a host namespace")
        assert seen <= 4, "it sees only %d processes in the host's namespace" % seen
        _, caps, _ = look(node, "half", pid_mode="private", ipc_mode="private")
        case.equal((caps["Bnd"], caps["Amb"]), (bits("audit_write"), bits("audit_write")), "capabilities that the configuration allows")
        ns, caps, _ = look(node, "private", pid_mode="private", ipc_mode="private", cap_add=["net_raw"], cap_drop=["all"])
        case.equal((ns["pid"] == hosts("pid"), ns["ipc"] == hosts("ipc")), (False, False), "namespaces that the task requests")
        case.equal((caps["Bnd"], caps["Amb"]), (bits("net_raw"), bits("net_raw")))
        plugin = wanting("plugin", cap_add=["sys_admin"])
        plugin["Job"]["TaskGroups"][0]["Tasks"][0]["CSIPluginConfig"] = {"ID": "p", "Type": "node", "MountDir": "/csi"}
        node.refused(400, "a csi_plugin task of type node or monolith has to mount: under exec that needs", "POST", "/v1/jobs", plugin)
        node.refused(400, "config.cap_add must be empty", "POST", "/v1/jobs", wanting("much", cap_add=["net_raw"]))
        modes = {"pid_mode": "private", "ipc_mode": "private"}
        node.refused(400, "driver does not allow the following capabilities: chown (task t); allow_caps in plugin",
                     "POST", "/v1/jobs", wanting("much", cap_add=["CAP_CHOWN", "net_raw"], **modes))
        node.refused(400, "driver does not allow the following capabilities: chown, dac_override,",
                     "POST", "/v1/jobs", wanting("much", cap_add=["all"], **modes))


def test_capabilities_can_be_written_in_several_forms():
    """semantics: ((what all have, as far as allowed) - cap_drop) + cap_add; "all", any case, with CAP_ or without."""
    with open("/proc/sys/kernel/cap_last_cap", encoding="ascii") as f:
        everything = (2 << int(f.read())) - 1
    have = bits("kill", "net_bind_service", "audit_write")
    with api.Node(agent.config_args('plugin "exec" { config { allow_caps = ["ALL"] } }')) as node:
        cases = [([], ["ALL"], 0), (["Cap_Chown"], ["CAP_KILL", "chown"], have & ~bits("kill") | bits("chown")),
                 (["KILL"], ["all"], bits("kill"))]
        if trace.status(os.getpid())["CapBnd"] == "%016x" % everything:  # in a container without some capability, "all" cannot be granted
            cases += [(["all"], [], everything), (["All"], ["all"], everything)]
        for number, (add, drop, wanted) in enumerate(cases):
            _, caps, _ = look(node, "caps%d" % number, cap_add=add, cap_drop=drop)
            case.equal((caps["Amb"], caps["Bnd"]), (wanted, wanted), "cap_add %s, cap_drop %s" % (add, drop))
        node.refused(400, 'there is no capability "cap_cap_chown"', "POST", "/v1/jobs", wanting("none", cap_add=["cap_cap_chown"]))


def limit(node, run, tree, v2, v1):
    """Returns a limit of the run's cgroup; None if this machine has no such controller."""
    trees = helper.cgroup_trees()
    parent = "/drover-" + crash.instance(node)
    path = "%s%s/runs/%s/%s" % (trees[tree], parent, run, v1) if tree in trees else "%s%s/tasks/%s/%s" % (trees["v2"], parent, run, v2)
    if not os.path.exists(path):
        return None
    with open(path, encoding="ascii") as f:
        text = f.read().strip()
    return math.inf if text == "max" else int(text)


def the_run(node):
    """Returns the only run of the agent."""
    return case.until(lambda: [n[:-4] for n in os.listdir(node.data + "/run") if n.endswith(".rec")], 60, "a run")[0]


def test_limits_of_memory_and_processes_are_set():
    with api.Node() as node:
        node.register(api.job("limits", "/bin/sh", ["-c", "echo $NOMAD_MEMORY_LIMIT $NOMAD_MEMORY_MAX_LIMIT; exec sleep 1000"],
                              driver="exec", Resources={"CPU": 20, "MemoryMB": 20, "MemoryMaxMB": 50}))
        node.wait_said(node.wait_running("limits", seconds=60)[0], b"20 50\n")
        run = the_run(node)
        case.contains((50 << 20, None), limit(node, run, "memory", "memory.max", "memory.limit_in_bytes"), "hard limit of memory")
        case.contains((20 << 20, None), limit(node, run, "memory", "memory.low", "memory.soft_limit_in_bytes"), "soft limit of memory")
        case.contains((0, None), limit(node, run, "memory", "memory.swap.max", "memory.swappiness"), "limit of swap")
        case.contains((20, 1, None), limit(node, run, "cpu", "cpu.weight", "cpu.shares"), "CPU weight")
        with open("/proc/sys/kernel/pid_max", encoding="ascii") as pids, open("/proc/sys/kernel/threads-max", encoding="ascii") as threads:
            most = min(int(pids.read()), int(threads.read()))
        case.contains((most * 15 // 100, None), limit(node, run, "pids", "pids.max", "pids.max"), "limit of processes")
        # All tasks together leave a quarter of the pids to other processes.
        case.contains((most * 75 // 100, None), limit(node, "..", "pids", "pids.max", "pids.max"), "limit of processes of all tasks")


def test_a_task_may_have_no_limit_of_memory():
    with api.Node() as node:
        node.register(api.job("unlimited", "/bin/sh", ["-c", "echo $NOMAD_MEMORY_LIMIT $NOMAD_MEMORY_MAX_LIMIT; exec sleep 1000"],
                              driver="exec", Resources={"CPU": 20, "MemoryMB": 20, "MemoryMaxMB": -1}))
        node.wait_said(node.wait_running("unlimited", seconds=60)[0], b"20 -1\n")
        run = the_run(node)
        hard = limit(node, run, "memory", "memory.max", "memory.limit_in_bytes")
        assert hard is None or hard > 1 << 60, hard  # cgroup v1 has no word for it
        case.contains((20 << 20, None), limit(node, run, "memory", "memory.low", "memory.soft_limit_in_bytes"), "soft limit of memory")


def test_a_local_user_cannot_read_the_cgroups_of_tasks():
    with api.Node() as node:
        node.register(api.job("hidden", driver="exec"))
        alloc = node.wait_running("hidden", seconds=60)[0]
        run = the_run(node)
        parents = [p for p in ("%s/drover-%s" % (root, crash.instance(node)) for root in helper.cgroup_trees().values()) if os.path.isdir(p)]
        places = [d for p in parents for d, _, _ in os.walk(p) if os.path.basename(d) == run]
        assert len(places) >= 1, parents
        found = subprocess.run(["find"] + parents + places, user=65534, group=65534, extra_groups=[], stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, check=False).stdout.decode().split()
        case.equal([p for p in found if p not in parents][:5], [], "the first paths that such a user can find")
        # The supervisor has no privileges either, but can read the counters.
        usage = node.ask("/v1/client/allocation/%s/stats" % alloc["ID"])
        assert usage["ResourceUsage"]["MemoryStats"]["Usage"] > 0, usage


WHO_AM_I = "grep -E '^(Uid|Gid|Groups|Cap...|NoNewPrivs|Seccomp|Seccomp_filters|CoreDumping|Umask|Sig...|Shd...):' /proc/self/status; " \
           "for n in mnt pid ipc net uts user time; do readlink /proc/self/ns/$n; done; readlink /proc/self/root; " \
           "cat /proc/self/oom_score_adj /proc/self/limits; ls /proc/self/fd | grep -cE '^[0-2]$'; ls /proc/self/fd | wc -l; echo end"


def test_a_session_has_the_user_and_privileges_of_its_task():
    """hashicorp/nomad#9210: a command in a task of user nobody ran as root."""
    with api.Node(agent.config_args('plugin "exec" { config { allow_host_pid = true\n allow_host_ipc = true } }')) as node:
        for number, (driver, user, config) in enumerate((("exec", None, {}), ("exec", "games", {"cap_add": ["chown"], "cap_drop": ["kill"]}),
                                                         ("exec", "games", {"pid_mode": "host", "ipc_mode": "host"}),
                                                         ("raw_exec", "nobody", {}), ("raw_exec", None, {}))):
            name = "who%d" % number
            made = api.job(name, driver=driver)
            task = made["Job"]["TaskGroups"][0]["Tasks"][0]
            task["Config"] = {"command": "/bin/sh", "args": ["-c", WHO_AM_I + "; exec sleep 1000"], **config}
            task["User"] = user or ""
            node.register(made)
            alloc = node.wait_running(name, seconds=60)[0]
            node.wait_said(alloc, b"end\n")
            with Exec(node, alloc["ID"], ["/bin/sh", "-c", WHO_AM_I]) as session:
                out, err, _ = session.end()
            said = node.logs(alloc).decode()
            case.equal((out.decode(), err), (said, b""), "a session in a task of %s as %s" % (driver, user))
            entry = pwd.getpwnam(user or ("nobody" if driver == "exec" else "root"))
            fields = dict(re.findall(r"^(\w+):\t(.*)$", said, re.M))
            case.equal((fields["Uid"].split(), fields["Gid"].split()), ([str(entry.pw_uid)] * 4, [str(entry.pw_gid)] * 4))
            if driver == "exec":
                case.equal((fields["NoNewPrivs"], fields["Seccomp"]), ("1", "2"))
                case.equal([int(fields[c], 16) for c in ("CapPrm", "CapEff", "CapInh")], [int(fields["CapAmb"], 16)] * 3)
            node.purge(name)


def test_exec_tasks_of_root_are_refused():
    with api.Node() as node:
        for user in ("root", "0"):
            node.register(api.job("root", driver="exec", User=user))
            case.contains("\n".join(last_sentence(node, "root")), 'running as user "root" is disallowed')
            node.purge("root")


def test_the_end_of_a_task_has_the_signal_and_its_sender():
    with api.Node() as node:
        trees = helper.cgroup_trees()
        if "memory" in trees or "memory" in open(trees["v2"] + "/cgroup.controllers", encoding="ascii").read():
            node.register(api.job("oom", "/usr/bin/tail", ["/dev/zero"], driver="exec"))
            events = last_sentence(node, "oom")
            case.contains(events, 'Exit Code: 137, Signal: 9, Exit Message: "OOM Killed"')
            alloc = node.allocs("oom")[0]
            ended = [e for e in node.ask("/v1/allocation/" + alloc["ID"])["TaskStates"]["t"]["Events"] if e["Type"] == "Terminated"][0]
            case.equal((ended["ExitCode"], ended["Signal"], ended["Details"]["oom_killed"]), (137, 9, "true"))
            node.purge("oom")
        node.register(api.job("killed", "/bin/sh", ["-c", "kill -KILL $$"], driver="raw_exec"))
        case.contains(last_sentence(node, "killed"), 'Exit Code: 137, Signal: 9, Exit Message: "SIGKILL, which this agent did not send; '
                      'the kernel counted no OOM kill"')
        node.purge("killed")
        # The signal of a stop by the agent needs no explanation in the event.
        node.register(api.job("stopped", "/bin/sh", ["-c", "trap '' INT; echo on; while :; do sleep 0.1; done"], KillTimeout=10**8))
        alloc = node.wait_running("stopped", seconds=60)[0]
        node.wait_said(alloc, b"on\n")
        node.do("DELETE", "/v1/job/stopped")
        node.wait_allocs("stopped", [(0, "stop", "complete")], seconds=60)
        events = node.ask("/v1/allocation/" + alloc["ID"])["TaskStates"]["t"]["Events"]
        case.contains([e["DisplayMessage"] for e in events], "Exit Code: %d, Signal: %d" % (128 + signal.SIGKILL, signal.SIGKILL))


case.run(globals())

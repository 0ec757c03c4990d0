#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# takes: 41
"""A hostile server of the cluster places jobs that the node must refuse, and requests files and processes that it must not reach. The
node's policy permits exec tasks of user nobody, one host volume and no raw_exec; the server must gain nothing else. docs/advisories.md
names the advisory of each test."""
import hashlib
import itertools
import os
import signal
import time
import uuid

from lib import api, case
from lib.cluster import beaten, job, node_of, processes_of, servers as cluster
from lib.nomad_server import Refusal

POLICY = '\nplugin "raw_exec" { config { enabled = false } }\nplugin "exec" { config { allow_caps = ["net_bind_service", "kill"] } }\n'
NOBODY = 65534
NOWHERE = "99999999-9999-4999-8999-999999999999"
# Names that must not become components of a path.
NAMES = ("..", ".", "../x", "../../../../etc/cron.d/x", "/etc", "a/b", "a/../b", "a\nb", "a\0b", ".hidden", "alloc", "x" * 200,
         "x" * 5000, "é/", "-", "a b", "$(id)", "%s%n")
number = itertools.count()


def made(task=None, group=None, config=None, **fields):
    """Returns a job of one exec task with these fields."""
    found = job("h%d" % next(number), "/bin/sh", ["-c", "id -u; exec sleep 1000"], driver="exec", group=group)
    t = found["TaskGroups"][0]["Tasks"][0]
    t["Config"].update(config or {})
    t.update(task or {})
    found.update(fields)
    return found


def place(jobs):
    """Places these jobs. Returns their allocs in the same order."""
    return [servers.run_job(j, me)[0] for j in jobs]


def said(alloc):
    """Returns the text of all its events."""
    return " | ".join([e["DisplayMessage"] for t in (alloc["TaskStates"] or {}).values() for e in t["Events"] or ()] +
                      [alloc["ClientDescription"] or ""])


def fail_all(cases, seconds=60):
    """cases: [(description, job, part of the message)]. Checks that each alloc fails with this message, and that its task never runs."""
    for (what, _, part), alloc in zip(cases, place([c[1] for c in cases])):
        found = servers.wait_alloc(alloc, ["failed"], seconds)
        case.contains(said(found), part, what)
        case.equal(any(e["Type"] == "Started" for t in (found["TaskStates"] or {}).values() for e in t["Events"] or ()), False,
                   what + ": whether it was started")
        case.equal(processes_of(alloc), [], what)


def tree():
    """Returns the contents of the places that must not be changed."""
    seen = {}
    for root in (outside, "/etc/cron.d", "/etc/systemd/system"):
        for directory, names, files in os.walk(root):
            for name in names + files:
                path = os.path.join(directory, name)
                status = os.lstat(path)
                seen[path] = (status.st_mode, status.st_uid, status.st_size, status.st_mtime_ns)
    for path in ("/etc/passwd", "/etc/shadow"):
        with open(path, "rb") as f:
            seen[path] = hashlib.sha256(f.read()).hexdigest()
    return seen


def all_is_well():
    """Checks that nothing outside was changed, that no process of the agent died, and that a normal job runs, as nobody."""
    case.equal(tree(), before, "contents of the places outside")
    now = node.processes()
    case.equal({n: now.get(n) for n in processes}, processes, "processes of the agent")
    alloc = place([made()])[0]
    servers.wait_alloc(alloc, ["running"], 60)
    case.until(lambda: node.request("GET", "/v1/client/fs/logs/%s?task=t&type=stdout&plain=true" % alloc).text == "%d\n" % NOBODY,
               30, "the output of the normal job")
    servers.stop_alloc(alloc)
    servers.wait_alloc(alloc, ["complete"], 60)
    case.equal(processes_of(good) != [], True, "the job that has run since the beginning")


def ask(method, **request):
    """Sends a request to the node. Returns "ok", or the node's error."""
    try:
        return servers.call_node(me, method, request) and "ok"
    except Refusal as e:
        return str(e)


# --- placed jobs ---

def test_a_disabled_driver_is_refused():
    """CVE-2019-15928. exec-helper refuses it too: 1050."""
    fail_all([("raw_exec", made({"Driver": "raw_exec"}), 'raw_exec'),
              ("a driver that does not exist", made({"Driver": "../raw_exec"}), "driver"),
              ("docker", made({"Driver": "docker", "Config": {"image": "x", "privileged": True}}), "docker"),
              ("docker with the machine's ids", made({"Driver": "docker", "Config": {"image": "x", "userns_mode": "host", "network_mode": "none"}}), "docker"),
              ("qemu", made({"Driver": "qemu", "Config": {"image_path": "/x", "args": ["-drive", "file=/etc/shadow"]}}), "qemu")])
    all_is_well()


def test_denied_users_are_refused():
    """CVE-2020-28348: root is denied by default. CVE-2020-27195: users are checked after interpolation."""
    own = [str(os.stat("/proc/%d" % processes[n]).st_uid) for n in ("supervisor", "heartbeat")]
    cases = [("user %r" % u, made({"User": u}), "") for u in ("root", "0", "00", "+0", "-1", "4294967296", "0x0", " root", "root\n",
                                                            "none-such", "../root", "ro\0ot", "x" * 300, *own)]
    cases.append(("an interpolated user", made({"User": "${NOMAD_META_who}", "Meta": {"who": "root"}}), ""))
    cases.append(("another way", made({"User": "${meta.who}", "Meta": {"who": "0"}}), ""))
    for (what, _, _), alloc in zip(cases, place([c[1] for c in cases])):
        found = servers.wait_alloc(alloc, ["failed"], 60)
        case.equal(len(said(found)) > 20, True, "%s: %s" % (what, said(found)))
        case.equal(processes_of(alloc), [], what)
    all_is_well()


def volume(source="data", kind="host", **more):
    return {"Volumes": {"v": {"Name": "v", "Type": kind, "Source": source, **more}}}


def mounts(destination="/v", name="v", **more):
    return {"VolumeMounts": [{"Volume": name, "Destination": destination, **more}]}


def test_host_volumes_outside_of_the_configuration_are_refused():
    """CVE-2026-14896: no string of a job is used as a path of the host."""
    fail_all([("source %r" % s, made(mounts(), volume(s)), "") for s in
              ("/etc", "../data", "data/..", "data/../../etc", "DATA", "data\0", "data ", "", "x" * 300)] +
             [("a writable mount of a read-only one", made(mounts(), volume("fixed")), "")])
    alloc = place([made(mounts("/v"), volume("fixed", ReadOnly=True), {"args": [
        "-c", "touch /v/x || echo refused; exec sleep 1000"]})])[0]
    servers.wait_alloc(alloc, ["running"], 60)
    case.until(lambda: "refused" in log_of(alloc), 30, "the write to the read-only volume to fail")
    servers.stop_alloc(alloc)
    all_is_well()


def log_of(alloc):
    return node.request("GET", "/v1/client/fs/logs/%s?task=t&type=stdout&plain=true" % alloc).text


def test_invalid_destinations_of_mounts_are_refused():
    fail_all([("destination %r" % d, made(mounts(d), volume()), "") for d in
              ("/", "/..", "/../../etc", "/v/../../..", "/etc/passwd", "a\0b", "")])
    all_is_well()


def test_names_that_look_like_paths_are_refused():
    """CVE-2026-7474, #27001 (a task named alloc), #26241."""
    cases = [("task %r" % n[:40], made({"Name": n}), "") for n in NAMES if n not in ("-", "a b", "é/", "%s%n", "$(id)")]
    for name in ("..", "../../../x", "/x", "a/b", "a\0b", "x" * 300):
        cases.append(("plugin %r" % name[:40], made({"CSIPluginConfig": {"ID": name, "Type": "monolith", "MountDir": "/csi"}}), ""))
        cases.append(("csi volume %r" % name[:40], made(mounts(), volume(
            name, "csi", AccessMode="single-node-writer", AttachmentMode="file-system")), ""))
    for (what, _, _), alloc in zip(cases, place([c[1] for c in cases])):
        found = servers.wait_alloc(alloc, ["failed"], 90)
        case.equal(len(said(found)) > 10, True, "%s: %r" % (what, said(found)))
        case.equal(processes_of(alloc), [], what)
    all_is_well()


def test_invalid_plugins_are_refused():
    fail_all([("mount_dir %r" % d, made({"CSIPluginConfig": {"ID": "p", "Type": "node", "MountDir": d}}), "") for d in
              ("/..", "/../../etc", "a\0b", "/" + "x" * 5000)])
    all_is_well()


def test_invalid_ids_of_allocs_are_ignored():
    """CVE-2026-7474: an id from the servers is used as a directory name only if it is a UUID."""
    ids = ["../../../../etc/cron.d", "/etc", "..", "", "x" * 300, "a\0b", good.upper(), good.replace("-", ""), "%s/../x" % good,
           "00000000-0000-0000-0000-000000000000"]
    index = servers.alloc(good)["AllocModifyIndex"]
    listed = {good: index, **{i: index + n + 1 for n, i in enumerate(ids)}}
    body = servers.alloc(good)
    since = servers.last_call()
    faults = [servers.fault("reply", "Node.GetClientAllocs", reply={"Allocs": listed}),
              servers.fault("reply", "Alloc.GetAllocs", reply={"Allocs": [
                  {**body, "ID": i, "AllocModifyIndex": listed[i]} for i in ids]})]
    servers.register_job(made())  # the list is requested again
    servers.change_alloc(good, {"ModifyTime": time.time_ns()})
    servers.wait_call("Alloc.GetAllocs", since, 60)
    beaten(servers, 3)
    for f in faults:
        servers.clear(f)
    known = {a["ID"] for a in node.ask("/v1/allocations")}
    case.equal([i for i in known if str(uuid.UUID(i)) != i], [], "allocs with odd ids")
    case.equal(sorted(n for n in os.listdir(node.data + "/alloc") if not n.startswith(".") and n not in known), [], "directories")
    all_is_well()


def test_invalid_variables_are_refused_or_left_out():
    """#24540: the environment starts empty; invalid names are refused or left out, and no variable reaches a helper."""
    odd = {"LD_PRELOAD": "/local/evil.so", "A\nB": "1", "A=B": "2", "": "3", "N": "a\0b", "PATH": "/local", "IFS": "x", "é": "4",
           "NOTIFY_SOCKET": "/run/x", "OK": "5\nX=6"}
    alloc = place([made({"Env": odd}, config={"args": ["-c", "/usr/bin/env -0 | /usr/bin/tr '\\0' ';'; exec /bin/sleep 1000"]})])[0]
    found = servers.wait_alloc(alloc, ["running", "failed"], 60)
    if found["ClientStatus"] == "running":
        case.until(lambda: "NOMAD_ALLOC_ID" in log_of(alloc), 30, "its environment")
        text = log_of(alloc)
        case.equal([w for w in ("CREDENTIALS", "X=6;", ";B=2") if ";" + w in text], [], text)
        servers.stop_alloc(alloc)
    else:
        case.equal(len(said(found)) > 10, True, said(found))
    fail_all([("an environment of 3 MB", made({"Env": {"V%d" % i: "x" * 30000 for i in range(100)}}), "")])
    all_is_well()


def test_capabilities_that_are_not_granted_are_refused():
    """CVE-2021-32575, CVE-2019-12618: the policy limits capabilities, whatever a job requests."""
    fail_all([("cap_add %r" % (c,), made(config={"cap_add": c}), "") for c in
              (["sys_admin"], ["ALL"], ["cap_sys_module"], ["net_raw"], ["net_bind_service", "sys_ptrace"], ["../x"], ["99"])])
    alloc = place([made(config={"cap_drop": ["all"], "args": ["-c", "grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status; exec sleep 1000"]})])[0]
    servers.wait_alloc(alloc, ["running"], 60)
    case.until(lambda: "Seccomp:" in log_of(alloc), 30, "its status")
    found = dict(line.split(":\t") for line in log_of(alloc).splitlines())
    case.equal((int(found["CapBnd"], 16), int(found["CapPrm"], 16), found["NoNewPrivs"], found["Seccomp"]), (0, 0, "1", "2"),
               str(found))
    servers.stop_alloc(alloc)
    all_is_well()


def test_invalid_modes_and_commands_are_refused():
    """CVE-2026-14891."""
    fail_all([("the host's processes", made(config={"pid_mode": "host"}), "allow_host_pid"),
              ("the host's ipc objects", made(config={"ipc_mode": "host"}), "allow_host_ipc"),
              ("pid_mode", made(config={"pid_mode": "container:x"}), "pid_mode"),
              ("ipc_mode", made(config={"ipc_mode": "shareable"}), "ipc_mode"),
              ("pid_mode host", made(config={"pid_mode": "host"}), "allow_host_pid"),
              ("ipc_mode host", made(config={"ipc_mode": "host"}), "allow_host_ipc"),
              ("a command that leads out", made(config={"command": "../../../../../../bin/none"}), ""),
              ("a command with NUL", made(config={"command": "/bin/sh\0x"}), ""),
              ("no command", made(config={"command": ""}), ""),
              ("a command that is a list", made(config={"command": ["/bin/sh"]}), ""),
              ("arguments with NUL", made(config={"args": ["-c", "id\0x"]}), ""),
              ("arguments of 4 MB", made(config={"args": ["x" * 100000] * 40}), "")])
    all_is_well()


def template(**fields):
    return made({"Templates": [{"DestPath": "local/x", "EmbeddedTmpl": "x", "ChangeMode": "noop", "Perms": "0644", **fields}]})


def test_templates_and_paths_of_artifacts_are_refused():
    """CVE-2024-1329, CVE-2025-8959, CVE-2024-3817 and similar ones: templates and artifacts stay in their allocation."""
    fail_all([("a destination of a template", template(DestPath="../../../../etc/cron.d/x"), "leads out of the allocation"),
              ("the directory of another task", template(DestPath="../other/local/x"), "in the task's directories"),
              ("an interpolated destination", template(DestPath="${NOMAD_META_p}/x") | {"Meta": {"p": "../../.."}}, "in the task's directories"),
              ("a destination with NUL", template(DestPath="local/\0x"), ""),
              ("a source of a template", template(SourcePath="/etc/shadow", EmbeddedTmpl=""), "it is neither in the task's local/ nor in"),
              ("a source outside", template(SourcePath="../../../../../../etc/shadow", EmbeddedTmpl=""), "it is neither in the task's local/ nor in"),
              ("a set-user-id file", template(Perms="4755"), "perms must be an octal number"),
              ("a user that does not exist", template(Uid=4294967296), "uid and gid must be"),
              ("a plugin", template(EmbeddedTmpl='{{ plugin "/bin/sh" "-c" "id" }}'), "plugin"),
              ("a written file", template(EmbeddedTmpl='{{ "x" | writeToFile "/etc/cron.d/x" "root" "root" "0644" }}'), "writeToFile"),
              ("a destination", made({"Artifacts": [{"GetterSource": "http://127.0.0.1:1/x", "RelativeDest": "../../.."}]}), "escapes alloc directory"),
              ("a destination with NUL", made({"Artifacts": [{"GetterSource": "http://127.0.0.1:1/x", "RelativeDest": "local/\0x"}]}), ""),
              ("the directory of another task", made({"Artifacts": [{"GetterSource": "http://127.0.0.1:1/x", "RelativeDest": "../x"}]}), ""),
              ("a source of the host", made({"Artifacts": [{"GetterSource": "/etc/shadow"}]}), "files of this machine"),
              ("a file url", made({"Artifacts": [{"GetterSource": "file:///etc/shadow", "GetterMode": "file", "RelativeDest": "local/x"}]}), "files of this machine"),
              ("an option of git", made({"Artifacts": [{"GetterSource": "git::--upload-pack=x", "RelativeDest": "../../.."}]}), ""),
              ("a secret of a provider", made({"Secrets": [{"Name": "x", "Provider": "../../../bin/sh", "Path": "x"}]}), ""),
              ("a payload", made({"DispatchPayload": {"File": "../../../etc/cron.d/x"}}), "")])
    all_is_well()


def test_data_of_another_node_is_not_fetched():
    """CVE-2024-7625, CVE-2024-6717: an archive with the data of another node's allocation could write outside. No archive is unpacked."""
    heartbeat = node.processes()["heartbeat"]
    sticky = {"EphemeralDisk": {"SizeMB": 10, "Sticky": True, "Migrate": True}}
    os.kill(heartbeat, signal.SIGSTOP)
    try:
        alloc = place([made(group=sticky, config={"args": ["-c", "find /alloc/data /local; echo end; exec sleep 1000"]})])[0]
        servers.change_alloc(alloc, {"PreviousAllocation": NOWHERE})
    finally:
        os.kill(heartbeat, signal.SIGCONT)
    servers.wait_alloc(alloc, ["running"], 60)
    case.until(lambda: "end" in log_of(alloc), 60, "files of the alloc")
    case.equal(servers.alloc(alloc)["PreviousAllocation"], NOWHERE, "its previous alloc")
    case.equal(log_of(alloc), "/alloc/data\n/local\nend\n")
    servers.stop_alloc(alloc)
    all_is_well()


def test_numbers_that_are_too_large_or_negative_are_refused():
    cases = [made({"Resources": {"CPU": -5, "MemoryMB": -1}}), made({"Resources": {"CPU": 2 ** 40, "MemoryMB": 2 ** 40}}),
             made({"LogConfig": {"MaxFiles": -1, "MaxFileSizeMB": -1}}), made({"LogConfig": {"MaxFiles": 2 ** 40, "MaxFileSizeMB": 2 ** 40}}),
             made({"KillTimeout": -1}), made({"KillTimeout": 2 ** 62}), made({"KillSignal": "SIGKILL; x"}), made({"KillSignal": "99999"}),
             made({"RestartPolicy": {"Attempts": -1, "Interval": -1, "Delay": -1, "Mode": "x"}}),
             made(Priority=2 ** 40), made(group={"Count": 1, "ShutdownDelay": -(2 ** 60)})]
    for n, alloc in enumerate(place(cases)):
        found = servers.wait_alloc(alloc, ["running", "failed", "complete"], 90)
        for pid in processes_of(alloc):
            case.equal(os.stat("/proc/%d" % pid).st_uid, NOBODY, "case %d, %s" % (n, said(found)))
        servers.stop_alloc(alloc)
    all_is_well()


# --- requests to the node ---

def test_files_outside_of_an_alloc_are_refused():
    """CVE-2022-24683, #24125: only files of the alloc's tasks can be read, by every kind of request."""
    other = place([made()])[0]
    servers.wait_alloc(other, ["running"], 60)
    links = {"l1": "/etc/shadow", "l2": "/proc/1/environ", "l3": "../../../%s" % other, "l4": "l4", "l5": "../secrets", "l6": "/"}
    local = "%s/alloc/%s/t/local" % (node.data, good)
    for name, target in links.items():
        os.symlink(target, "%s/%s" % (local, name))
    paths = ["..", "../..", "../%s" % other, "../%s/t/local" % other, "t/../../%s" % other, "t/secrets", "t/secrets/x", "t/private",
             "t/local/../secrets", "t/local/../private/x", "t/./private", "t//private", "alloc/../../../state/state.db",
             "../../state/state.db", "/../../../../etc/shadow", "t/local/\0/../..", "t/" + "x" * 300, "a/" * 3000,
             "../../secrets/%s/t" % other, "../../secrets/%s/t" % good, "T/../../x"] + ["t/local/" + n for n in links if n != "l6"]
    for path in paths:
        for method in ("FileSystem.List", "FileSystem.Stat"):
            found = ask(method, AllocID=good, Path=path)
            case.equal(found == "ok", False, "%s of %r" % (method, path[:60]))
            case.equal(len(found) > 5, True, found)
        for request in ({"Path": path}, {"Path": path, "Offset": -5}, {"Path": path, "Offset": 2 ** 62, "Origin": "end"}):
            frame = first_frame("FileSystem.Stream", AllocID=good, **request)
            case.equal(bool(frame and frame["Error"]), True, "%r: %s" % (path[:60], frame))
        answer = node.request("GET", "/v1/client/fs/cat/%s?path=%s" % (good, api.urllib.parse.quote(path)))
        case.equal(answer.status >= 400, True, "cat of %r: %d" % (path[:60], answer.status))
    servers.stop_alloc(other)
    all_is_well()


def first_frame(method, **request):
    stream = servers.open_stream(me, method, request)
    try:
        frames = servers.read_stream(stream, 1, 30)["frames"]
        return frames[0] if frames else None
    finally:
        servers.close_stream(stream)


def test_logs_outside_of_the_task_are_refused():
    other = place([made()])[0]
    servers.wait_alloc(other, ["running"], 60)
    for task in ("../%s/t" % other, "../../%s/alloc/logs/t" % other, "t/../t", "t\0", "", "..", "t.stdout.0", "/t", "x" * 5000):
        frame = first_frame("FileSystem.Logs", AllocID=good, Task=task, LogType="stdout")
        case.equal(bool(frame and frame["Error"]), True, "%r: %s" % (task[:60], frame))
    for kind in ("../../../etc/passwd", "stdout/../x", "stdout\0", "", "STDOUT", "stdin"):
        frame = first_frame("FileSystem.Logs", AllocID=good, Task="t", LogType=kind)
        case.equal(bool(frame and frame["Error"]), True, "%r: %s" % (kind, frame))
    servers.stop_alloc(other)
    all_is_well()


def test_invalid_signals_and_foreign_processes_are_refused():
    pids = processes_of(good)
    for request in ({"AllocID": NOWHERE, "Signal": "SIGKILL"}, {"AllocID": good, "Task": "../x", "Signal": "SIGKILL"},
                    {"AllocID": good, "Task": "1", "Signal": "SIGKILL"}, {"AllocID": good, "Task": "t", "Signal": "99"},
                    {"AllocID": good, "Task": "t", "Signal": "-9"}, {"AllocID": good, "Task": "t", "Signal": "SIGKILL 1"},
                    {"AllocID": good, "Task": "t", "Signal": "9\0"}, {"AllocID": "../" + good, "Signal": "SIGKILL"}, {"AllocID": "", "Signal": "SIGKILL"}):
        case.equal(ask("Allocations.Signal", **request) == "ok", False, str(request))
    for request in ({"AllocID": NOWHERE}, {"AllocID": good, "TaskName": "../t"}, {"AllocID": "x"}):
        case.equal(ask("Allocations.Restart", **request) == "ok", False, str(request))
    case.equal(processes_of(good), pids, "its processes")
    all_is_well()


def test_invalid_volumes_and_plugins_are_refused():
    for bad in ("..", "../../../etc", "/etc", "a\0b", "x" * 300, ""):
        for method, request in (
                ("CSI.NodeDetachVolume", {"PluginID": bad, "VolumeID": bad, "AllocID": bad, "NodeID": me, "ExternalID": bad}),
                ("CSI.NodeDetachVolume", {"PluginID": "p", "VolumeID": bad, "AllocID": good, "NodeID": me, "ExternalID": bad}),
                ("CSI.ControllerCreateVolume", {"PluginID": bad, "Name": bad, "ControllerNodeID": me}),
                ("CSI.ControllerDeleteVolume", {"PluginID": bad, "ExternalVolumeID": bad, "ControllerNodeID": me}),
                ("HostVolume.Create", {"ID": NOWHERE, "Name": bad, "PluginID": bad, "NodeID": me, "Parameters": {"x": bad}}),
                ("HostVolume.Register", {"ID": NOWHERE, "Name": bad, "HostPath": "/etc", "NodeID": me}),
                ("HostVolume.Delete", {"ID": NOWHERE, "Name": bad, "HostPath": "/etc", "PluginID": bad, "NodeID": me})):
            found = ask(method, **request)
            if method == "CSI.NodeDetachVolume" and found == "ok":
                continue  # detaching a volume that is not mounted succeeds
            case.equal(found == "ok", False, "%s %r" % (method, bad[:40]))
    all_is_well()


def test_invalid_metadata_is_refused():
    for meta in ({"../x": "1"}, {"a b": "1"}, {"": "1"}, {"x" * 5000: "1"}, {"a\0b": "1"}, {"a\nb": "1"}):
        case.equal(ask("NodeMeta.Apply", NodeID=me, Meta=meta) == "ok", False, repr(meta)[:60])
    all_is_well()


def test_unknown_methods_are_answered_with_an_error():
    for method in ("Agent.Profile", "Allocations.SetPauseState", "Nothing.There", "Allocations.", ".", "Allocations.Stats\0", "x" * 2000):
        case.equal(ask(method, AllocID=good) == "ok", False, method[:40])
    for method in ("Nothing.There", "FileSystem.List", "../x"):
        case.raises(Refusal, servers.open_stream, me, method, {})
    all_is_well()


def deep(depth):
    value = "x"
    for _ in range(depth):
        value = [value]
    return value


def test_malformed_requests_are_refused():
    """Whole requests with a wrong type in each field, deeply nested and large ones. The decoders alone are fuzzed in tests/fuzz."""
    for value in (7, -1, True, [], {}, [good], {"x": "y"}, deep(60), deep(400), "x" * 100000, 1.5):
        for method in ("Nothing.There", "FileSystem.Stat", "Allocations.Signal", "Allocations.Stats", "CSI.NodeDetachVolume"):
            request = dict.fromkeys(("AllocID", "NodeID", "Path", "Task", "Signal", "PluginID", "VolumeID", "ExternalID"), value)
            try:
                servers.call_node(me, method, request, raw=True)
                case.equal(method, "CSI.NodeDetachVolume", "answered %r" % str(value)[:40])  # no mount has such a name, so this is a success
            except Refusal as e:
                case.equal((e.kind, len(str(e)) > 0), ("RpcError", True), "%s of %r: %s" % (method, str(value)[:40], e))
    all_is_well()


def test_requests_that_are_too_large_are_refused():
    """The writer gets an error because the node stops reading, and does not block forever."""
    for method in ("FileSystem.Stat", "Nothing.There"):
        e = case.raises(Refusal, servers.call_node, me, method, {"AllocID": good, "Path": "x" * (4 << 20)}, raw=True)
        case.equal(e.kind, "Reset", str(e))
    e = case.raises(Refusal, servers.open_stream, me, "FileSystem.Logs", {"AllocID": good, "Task": "x" * (4 << 20)})
    case.equal(e.kind, "Reset", str(e))
    all_is_well()


# --- answers to the node ---

def test_a_hundred_thousand_unknown_allocs_do_not_disturb_the_node():
    """The node keeps sending heartbeats and keeps its allocs."""
    index = servers.alloc(good)["AllocModifyIndex"]
    listed = {good: index}
    for n in range(100000):
        listed["%08x-aaaa-4aaa-8aaa-aaaaaaaaaaaa" % n] = index + 1
    since = servers.last_call()
    listing = servers.fault("reply", "Node.GetClientAllocs", reply={"Allocs": listed})
    servers.change_alloc(good, {"ModifyTime": time.time_ns()})
    asked = servers.wait_call("Alloc.GetAllocs", since, 120)
    beaten(servers, 3)
    case.equal(asked is not None, True, "GetAllocs")
    servers.clear(listing)
    case.equal([a["ID"] for a in node.ask("/v1/allocations") if a["ID"].endswith("-aaaaaaaaaaaa")], [], "allocs")
    all_is_well()


# --- information about the node ---

def test_no_secret_is_shown():
    """CVE-2019-12741, CVE-2024-12678: neither the node's secret nor a token, on any path."""
    secret = servers.node(me)["SecretID"]
    paths = ["/v1/agent/self", "/v1/agent/servers", "/v1/agent/leaks", "/v1/nodes", "/v1/node/" + me, "/v1/node/%s/allocations" % me,
             "/v1/allocations", "/v1/allocation/" + good, "/v1/client/metadata", "/v1/client/stats",
             "/v1/client/allocation/%s/stats" % good]
    texts = [node.request("GET", p).text for p in paths]
    servers.stop_server(0)
    case.until(lambda: node.request("GET", "/v1/jobs").status == 503, 60, "the node to notice that the server is stopped")
    texts += [node.request("GET", p).text for p in paths]
    servers.start_server(0)
    case.until(lambda: node.request("GET", "/v1/jobs").status == 200, 60, "the server to be back")
    texts.append(node.log())
    for path, text in zip(paths + paths + ["the log"], texts):
        case.equal((secret in text, "eyJhbGciOi" in text), (False, False), path)
    all_is_well()


def test_no_answer_can_be_executed_by_a_browser():
    """CVE-2020-10944, #24489."""
    local = "%s/alloc/%s/t/local" % (node.data, good)
    with open(local + "/x.html", "w", encoding="ascii") as f:
        f.write("<html><script>alert(1)</script>")
    for path in ("/v1/client/fs/cat/%s?path=t/local/x.html", "/v1/client/fs/readat/%s?path=t/local/x.html&offset=0",
                 "/v1/client/fs/logs/%s?task=t&type=stdout&plain=true"):
        answer = node.request("GET", path % good)
        case.equal(answer.status, 200, path)
        kind = answer.headers["Content-Type"].split(";")[0]
        case.equal((kind in ("text/plain", "application/octet-stream"), answer.headers["X-Content-Type-Options"]), (True, "nosniff"),
                   "%s: %s" % (path, kind))


outside = case.directory()
shared = case.directory()
os.chmod(shared, 0o777)
os.mkdir(outside + "/d")
with open(outside + "/d/f", "w", encoding="ascii") as canary:
    canary.write("untouched")
VOLUMES = 'host_volume "data" { path = "%s" }\n  host_volume "fixed" {\n path = "%s"\n read_only = true\n}\n' % (shared, outside)
with cluster(grace=600, forgive=True) as servers, node_of(servers, VOLUMES, more=POLICY) as node:
    me = servers.wait_node()["ID"]
    good = place([made()])[0]
    servers.wait_alloc(good, ["running"], 60)
    processes = {n: p for n, p in node.processes().items() if n not in ("csi-helper", "network-helper")}
    before = tree()
    case.run(globals())

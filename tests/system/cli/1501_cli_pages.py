# SPDX-License-Identifier: Apache-2.0
"""The output of drover for fixed answers of an API: tables, JSON, prefixes, times, and hostile strings."""
import json
import os
import re
import subprocess

from lib import binary, case
from lib.fake_api import NODE, FakeApi, alloc, answer, event

A1 = "aaaa1111-0000-4000-8000-000000000001"
A2 = "aaaa2222-0000-4000-8000-000000000002"


def fill(api):
    """Adds the answers for a node with a plugin, a volume and two jobs."""
    stubs = [alloc(A1), alloc(A2, "db", "failed", failed=True, task="pg",
                              events=[event("Terminated", "Exit Code: 3", 30),
                                      event("Not Restarting", "Exceeded allowed attempts", 29)])]

    def listed(items):
        return lambda r: [i for i in items if i["ID"].startswith(r.query.get("prefix", ""))]
    full = dict(stubs[1], Job={"Version": 4, "TaskGroups": [{"Name": "group", "Volumes": {
        "data": {"Name": "data", "Type": "csi", "Source": "vol1", "ReadOnly": False,
                 "AccessMode": "single-node-writer", "AttachmentMode": "file-system"}}}]})
    api.json("GET", "/v1/allocations", listed(stubs))
    api.json("GET", "/v1/allocation/" + A1, stubs[0])
    api.json("GET", "/v1/allocation/" + A2, full)
    jobs = [{"ID": "web", "Name": "web", "Type": "service", "Priority": 50, "Status": "running", "SubmitTime": 10**18},
            {"ID": "web-2", "Name": "web-2", "Type": "service", "Priority": 50, "Status": "dead", "Stop": True},
            {"ID": "db", "Name": "db", "Type": "service", "Priority": 70, "Status": "running"}]
    api.json("GET", "/v1/jobs", listed(jobs))
    for job in jobs:
        api.json("GET", "/v1/job/" + job["ID"], dict(job, TaskGroups=[{"Name": "group", "Count": 2}]))
        api.json("GET", "/v1/job/%s/allocations" % job["ID"], [s for s in stubs if s["JobID"] == job["ID"]])
    node = {"ID": NODE, "Name": "here", "Datacenter": "dc1", "NodeClass": "", "Drain": False, "Status": "ready",
            "SchedulingEligibility": "eligible", "StatusUpdatedAt": 1700000000,
            "Drivers": {"exec": {"Detected": True, "Healthy": True, "HealthDescription": "Healthy"}},
            "NodeResources": {"Cpu": {"CpuShares": 4000}, "Memory": {"MemoryMB": 2048}},
            "Attributes": {"kernel.version": "6.1.0", "cpu.arch": "amd64"}, "Meta": {}, "DrainStrategy": None,
            "CSINodePlugins": {"local": {"PluginID": "local", "Healthy": True, "HealthDescription": "ready"}},
            "Events": [{"Message": "Node registered", "Subsystem": "Cluster", "Timestamp": "2026-01-02T03:04:05.5Z"}]}
    api.json("GET", "/v1/nodes", [node])
    api.json("GET", "/v1/node/" + NODE, node)
    volume = {"ID": "vol1", "Name": "vol1", "ExternalID": "x-1", "PluginID": "local", "Provider": "csi-local",
              "ProviderVersion": "1", "Capacity": 3 << 30, "Schedulable": True, "AccessMode": "single-node-writer",
              "AttachmentMode": "file-system", "CurrentReaders": 0, "CurrentWriters": 1, "ControllersHealthy": 1,
              "ControllersExpected": 1, "NodesHealthy": 1, "NodesExpected": 1, "ReadAllocs": {},
              "WriteAllocs": {A2: None}, "Allocations": [stubs[1]]}
    api.json("GET", "/v1/volumes", listed([volume]))
    api.json("GET", "/v1/volume/csi/vol1", volume)
    plugin = {"ID": "local", "Provider": "csi-local", "Version": "1", "ControllersHealthy": 1, "ControllersExpected": 1,
              "NodesHealthy": 1, "NodesExpected": 1, "Controllers": {NODE: {"Healthy": True, "AllocID": A1}},
              "Nodes": {NODE: {"Healthy": True, "AllocID": A1, "HealthDescription": "ready"}}, "Allocations": []}
    api.json("GET", "/v1/plugins", listed([plugin]))
    api.json("GET", "/v1/plugin/csi/local", plugin)
    api.json("GET", "/v1/agent/self", {"config": {"Version": {"Version": "0.1.0"}}, "stats": {"client": {"node_id": NODE}}})
    api.json("GET", "/v1/agent/health", {"client": {"ok": True, "message": "ok"}})
    api.json("GET", "/v1/agent/leaks", [])
    api.json("GET", "/v1/agent/problems", [])
    api.json("GET", "/v1/deployments", [])


def rows(text):
    return [line.split() for line in text.splitlines()]


PAGES = (["status"], ["job", "status"], ["job", "status", "db"], ["alloc", "status"], ["alloc", "status", A1],
         ["node", "status"], ["node", "status", "-self"], ["volume", "status"], ["volume", "status", "vol1"],
         ["plugin", "status"], ["plugin", "status", "local"], ["leaks"])


def test_mount_options_of_volumes_are_shown():
    """Each mount option is that of the job's volume block, or else that of the volume. With per_alloc the volume is that of the
    allocation's index."""
    with FakeApi() as api:
        fill(api)
        one = {"Name": "data", "Type": "csi", "Source": "vol1", "ReadOnly": False}
        host = {"Name": "h", "Type": "host", "Source": "vol1"}
        for number, (own, request, shown) in enumerate((
                ({"FSType": "ext4", "MountFlags": None}, None, "fs_type: ext4"),
                ({"FSType": "ext4", "MountFlags": ["[REDACTED]"]}, {"FSType": "xfs"}, "fs_type: xfs, flags: [REDACTED]"),
                ({"FSType": "", "MountFlags": []}, {"FSType": "xfs", "MountFlags": ["[REDACTED]"]}, "fs_type: xfs, flags: [REDACTED]"),
                (None, {"MountFlags": ["[REDACTED]"]}, "flags: [REDACTED]"))):
            volume = {"ID": "vol1[0]", "PluginID": "local", "Provider": "csi-local", "ProviderVersion": "1", "Schedulable": False,
                      "MountOptions": own, "ReadAllocs": {A2: None}, "CurrentReaders": 1, "CurrentWriters": 0}
            groups = [{"Name": "group", "Volumes": {"data": dict(one, PerAlloc=True, ReadOnly=True, MountOptions=request), "h": host}}]
            api.json("GET", "/v1/volume/csi/vol1[0]", volume)
            api.json("GET", "/v1/allocation/" + A2, alloc(A2, "db", "running", Job={"Version": number, "TaskGroups": groups}))
            api.json("GET", "/v1/volumes", [volume])
            for words in (("alloc", "status", "-verbose", A2), ("node", "status", NODE), ("volume", "status", "vol1[0]")):
                found = api.drover(*words).out
                line = [x for x in found.splitlines() if re.match("%s.*data " % A2[:8], x)]
                case.equal([re.split("  +", x.strip())[1:] for x in line],
                           [["data", "vol1[0]", "local", "csi-local 1", "false", "true", shown]], "%s\n%s" % (words, found))


def test_every_command_prints_without_escapes_in_a_pipe_and_as_json():
    with FakeApi() as api:
        fill(api)
        for words in PAGES:
            r = api.drover(*words)
            case.equal((r.code, r.err), (0, ""), words)
            case.equal("\x1b" in r.out or not r.out, False, words)
            case.equal([line for line in r.out.splitlines() if line != line.rstrip()], [], words)
            r = api.drover(*words, "-json")
            case.equal((r.code, r.err), (0, ""), words)
            json.loads(r.out)


def test_json_output_is_the_unchanged_answer():
    with FakeApi() as api:
        fill(api)
        case.equal(json.loads(api.drover("alloc", "status", "-json", A1).out)["ID"], A1)
        case.equal([j["ID"] for j in json.loads(api.drover("job", "status", "-json").out)], ["web", "web-2", "db"])
        big = {"n": 2**62 + 1, "text": "é\u0000", "list": [None, True, 1.5]}
        api.json("GET", "/v1/job/web", big)
        case.equal(json.loads(api.drover("job", "status", "-json", "web").out), big)


def test_tables_have_these_rows():
    with FakeApi() as api:
        fill(api)
        out = rows(api.drover("job", "status").out)
        case.equal(out[0], ["ID", "Type", "Priority", "Status", "Submitted"])
        case.equal(out[2][:5], ["web-2", "service", "50", "dead", "(stopped)"])
        out = api.drover("job", "status", "db").out
        case.contains(out, "group       2")
        case.contains(out, "Why                  = Exit Code: 3")
        case.equal(rows(api.drover("leaks").out), [["no", "leaks"]])
        out = api.drover("volume", "status", "vol1").out
        case.contains(out, "3.0 GiB")
        case.contains(out, "aaaa2222    write")
        case.contains(api.drover("node", "status", NODE[:6]).out, "Node registered")


def test_alloc_status_shows_events_newest_first_and_volumes():
    with FakeApi() as api:
        fill(api)
        out = api.drover("alloc", "status", A2[:8]).out
        case.contains(out, 'Task "pg" is dead and has failed')
        case.contains(out, "vol1")
        case.equal(out.index("Exceeded allowed attempts") < out.index("Exit Code: 3"), True)
        case.equal(bool(re.search(r"\b(3\ds|[1-9]m\d+s) ago", out)), True, "no age of an event in\n" + out)
        case.equal(A2[8:] in api.drover("alloc", "status").out, False, "short ids")


def test_verbose_has_whole_ids_and_exact_times():
    with FakeApi() as api:
        fill(api)
        api.json("GET", "/v1/agent/self", {"stats": {"client": {"node_id": NODE}, "processes": {"csi-helper": "pid 7"}}})
        case.contains(api.drover("status", "-verbose").out, "csi-helper           = pid 7")
        case.equal("csi-helper" in api.drover("status").out, False)
        out = api.drover("alloc", "status", "-verbose").out
        case.contains(out, A2)
        case.equal("ago" in out, False)
        case.contains(out, "Z")
        case.contains(api.drover("node", "status", "-verbose", "-self").out, "cpu.arch             = amd64")


def test_status_lists_problems_first():
    with FakeApi() as api:
        fill(api)
        api.json("GET", "/v1/agent/leaks", [{"Kind": "mount", "Name": "m", "Detail": "no row"}])
        api.text("GET", "/v1/agent/health", 500, "no known servers")
        api.json("GET", "/v1/plugins", [{"ID": "local", "NodesHealthy": 0, "NodesExpected": 1}])
        out = api.drover("status").out
        problems = [line for line in out.splitlines() if line.startswith("Problem: ")]
        case.equal(out.splitlines()[:4], problems)
        case.equal([p for p in problems if "db.group[0]) has failed: Exit Code: 3" in p] != [], True, problems)
        case.equal([p for p in problems if "no known servers" in p] != [], True, problems)
        case.equal([p for p in problems if "plugin local is not healthy" in p] != [], True, problems)
        case.equal([p for p in problems if "1 leak" in p] != [], True, problems)
        case.equal(len(json.loads(api.drover("status", "-json").out)["Problems"]), 4)


def test_a_page_of_many_allocations_shows_what_is_wrong_and_the_newest():
    with FakeApi() as api:
        fill(api)
        ids = ["%08x-0000-4000-8000-000000000001" % i for i in range(6000)]
        many = [alloc(x, CreateTime=i * 10**9) for i, x in enumerate(ids)]
        many[5] = alloc(ids[5], "db", "failed", failed=True, CreateTime=5 * 10**9)
        many[7] = alloc(ids[7], "db", "pending", CreateTime=7 * 10**9)
        api.json("GET", "/v1/allocations", many)
        api.json("GET", "/v1/job/web/allocations", many)
        api.json("GET", "/v1/volumes", [])
        for words in (["status"], ["node", "status", "-self"], ["job", "status", "web"]):
            out = api.drover(*words).out
            case.equal(len(out) < 8000, True, "%s: %d bytes" % (words, len(out)))
            shown = [line.split()[0] for line in out.splitlines() if re.match("[0-9a-f]{8}  ", line)]
            case.equal(shown, [ids[7][:8], ids[5][:8]] + [x[:8] for x in ids[:-19:-1]] if words != ["status"] else
                       [ids[7][:8]] + [x[:8] for x in ids[:-20:-1]], words)
            case.contains(out, "more: -verbose shows all, drover alloc status lists them")
            case.equal(api.drover(*words, "-verbose").out.count(".group[0]") >= 5998, True, words)
        case.contains(api.drover("status").out, "6000: 5998 running")
        case.equal(len(api.drover("alloc", "status").out.splitlines()), 6001)
        api.json("GET", "/v1/allocations", [alloc(x, "db", "failed", failed=True) for x in ids])
        out = api.drover("status").out
        case.equal(len(out) < 8000, True, out)
        case.contains(out, "5980 more problems")


def test_leaks_are_listed_and_give_exit_code_1():
    with FakeApi() as api:
        api.json("GET", "/v1/agent/leaks", [{"Kind": "cgroup", "Name": "tasks/ab", "Path": "/sys/x", "Detail": "no run"}])
        r = api.drover("leaks")
        case.equal((r.code, rows(r.out)[1]), (1, ["cgroup", "tasks/ab", "/sys/x", "no", "run"]))
        r = api.drover("leaks", "-json")
        case.equal((r.code, json.loads(r.out)[0]["Name"]), (1, "tasks/ab"))


def test_prefixes_and_names_are_resolved_unless_ambiguous():
    with FakeApi() as api:
        fill(api)
        case.contains(api.drover("alloc", "status", "aaaa1").out, A1)
        case.contains(api.drover("alloc", "status", A1[:11]).out, A1)
        case.contains(api.drover("alloc", "status", "db.group[0]").out, A2)
        case.contains(api.drover("node", "status", "here").out, NODE)
        case.contains(api.drover("job", "status", "web").out, "= web\n")
        case.contains(api.drover("job", "status", "web-").out, "= web-2\n")
        for words, parts in ((["alloc", "status", "aaaa"], ["prefix of 2 allocations", A1, A2, "db.group[0]"]),
                             (["job", "status", "we"], ["prefix of 2 jobs", "web-2"]),
                             (["alloc", "status", "a"], ["too short"]), (["alloc", "status", "ffff"], ["no allocation"]),
                             (["volume", "status", "nope"], ["no volume"]), (["plugin", "status", "l"], ["too short"])):
            r = api.drover(*words)
            case.equal((r.code, r.out), (1, ""), words)
            for part in parts:
                case.contains(r.err, part)


def test_destructive_commands_refuse_a_prefix_without_yes():
    with FakeApi() as api:
        fill(api)
        api.raw("DELETE", "/v1/volume/csi/vol1/delete", answer(200, b""))
        r = api.drover("volume", "delete", "vo")
        case.equal(r.code, 1)
        case.contains(r.err, 'is a prefix of volume "vol1"')
        case.equal(api.asked("DELETE", "/v1/volume/csi/vol1/delete"), [])
        case.equal(api.drover("job", "stop", "-purge", "web-").code, 1)
        r = api.drover("volume", "delete", "-yes", "vo")
        case.equal((r.code, r.out), (0, 'Volume "vol1" is deleted\n'))
        case.equal(len(api.asked("DELETE", "/v1/volume/csi/vol1/delete")), 1)


def test_ids_are_encoded_into_paths():
    with FakeApi() as api:
        name = "../a b?x=1#%/é"
        api.json("GET", "/v1/jobs", [{"ID": name}])
        api.json("GET", "/v1/job/" + name, {"ID": name, "TaskGroups": []})
        api.json("GET", "/v1/job/%s/allocations" % name, [])
        r = api.drover("job", "status", name)
        case.equal((r.code, r.err), (0, ""))
        case.contains(api.requests[-1].target, "..%2Fa%20b%3Fx%3D1%23%25%2F%C3%A9")


def test_terminal_escapes_are_not_printed():
    with FakeApi() as api:
        evil = "a\x1b]0;x\x07\x1b[2Jb\r\nc\u009b31m\t\x7f"
        api.json("GET", "/v1/jobs", [{"ID": evil, "Type": evil, "Status": evil}])
        api.json("GET", "/v1/allocation/" + A1, alloc(A1, events=[event(evil, evil)], ClientDescription=evil))
        api.text("GET", "/v1/nodes", 500, evil)
        for words in (["job", "status"], ["alloc", "status", A1], ["node", "status"]):
            r = api.drover(*words)
            for text in (r.out, r.err):
                case.equal([c for c in text if (ord(c) < 32 and c != "\n") or 127 <= ord(c) < 160], [], words)
        case.contains(r.err, "?]0;x??[2Jb")


def test_an_error_prints_the_agents_text_and_gives_exit_code_1():
    with FakeApi() as api:
        api.text("GET", "/v1/jobs", 403, "Permission denied")
        r = api.drover("job", "status")
        case.equal((r.code, r.out, r.err), (1, "", "drover: Permission denied\n"))
        api.text("GET", "/v1/jobs", 500, "long " * 400)
        case.equal(api.drover("job", "status").err.strip(), "drover: " + ("long " * 400).strip())
        api.text("GET", "/v1/jobs", 500, "")
        case.contains(api.drover("job", "status").err, "status 500")


def test_output_to_a_closed_pipe_or_a_full_disk():
    with FakeApi() as api:
        api.json("GET", "/v1/jobs", [{"ID": "job%d" % i} for i in range(20000)])
        env = dict(os.environ, DROVER_ADDR="unix://" + api.path)
        r = subprocess.run("%s job status | head -n 1" % binary("drover"), shell=True, env=env, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, check=False)
        case.equal((r.returncode, r.stderr), (0, b""))
        with open("/dev/full", "wb") as full:
            r = subprocess.run([binary("drover"), "job", "status"], env=env, stdout=full, stderr=subprocess.PIPE, check=False)
        case.equal(r.returncode, 1)
        case.contains(r.stderr.decode(), "No space left")


case.run(globals())

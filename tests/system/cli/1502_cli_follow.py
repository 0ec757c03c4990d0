# SPDX-License-Identifier: Apache-2.0
"""The requests that drover sends, and how it follows evaluations, allocations and drains to their end, also while the agent restarts."""
import json
import os

from lib import case
from lib.fake_api import EVAL, NODE, FakeApi, alloc, evaluation, event, finish

A1 = "aaaa1111-0000-4000-8000-000000000001"
A2 = "bbbb2222-0000-4000-8000-000000000002"
JOB = {"ID": "web", "TaskGroups": [{"Name": "group", "Count": 1}]}


def steps(*values):
    """Returns a route that answers one value after the other, then always the last."""
    left = list(values)
    return lambda request: left.pop(0) if len(left) > 1 else left[0]


def write(value):
    path = case.directory() + "/file.json"
    with open(path, "w", encoding="utf-8") as f:
        f.write(value if isinstance(value, str) else json.dumps(value))
    return path


def registering(api, *lists):
    api.json("POST", "/v1/jobs", {"EvalID": EVAL, "Warnings": ""})
    api.json("GET", "/v1/evaluation/" + EVAL, steps(evaluation("pending"), evaluation("pending"), evaluation()))
    api.json("GET", "/v1/job/web/allocations", steps(*lists))


def test_job_run_sends_the_job_and_follows_it_until_it_runs():
    for file, stdin in ((write({"Job": JOB, "EnforceIndex": True}), None), (write(JOB), None), ("-", json.dumps(JOB).encode())):
        with FakeApi() as api:
            received, started = event("Received", "Task received by client", 2), event("Started", "Task started by client", 1)
            registering(api, [], [alloc(A1, status="pending", events=[received])],
                        [alloc(A1, status="running", events=[received, started])])
            api.json("GET", "/v1/job/web/allocations", steps(
                [alloc(A1, status="pending", events=[received])], [alloc(A1, status="running", events=[received, started])]))
            r = api.drover("job", "run", file, stdin=stdin)
            case.equal((r.code, r.err), (0, ""), file)
            case.equal(api.asked("POST", "/v1/jobs")[0].body["Job"], JOB)
            lines = r.out.splitlines()
            case.equal([s for s in lines if "Received" in s] + [s for s in lines if "Started" in s],
                       ['    Allocation "aaaa1111" task "main": Received: Task received by client',
                        '    Allocation "aaaa1111" task "main": Started: Task started by client'])
            case.equal(lines[-1], '==> Job "web": 1 of 1 allocation(s) running')
            case.contains(r.out, 'Monitoring evaluation "eeeeeeee"')


def test_job_run_keeps_other_members_of_the_request():
    with FakeApi() as api:
        registering(api, [alloc(A1)])
        body = {"Job": JOB, "EnforceIndex": True, "JobModifyIndex": 7}
        api.drover("job", "run", write(body))
        source = {"Source": json.dumps(body), "Format": "json"}
        case.equal(api.asked("POST", "/v1/jobs")[0].body, {**body, "Submission": source})


def test_job_run_follows_only_allocations_of_its_own_evaluation():
    with FakeApi() as api:
        registering(api, [alloc(A1), alloc(A2, status="failed", eval_id="other", failed=True)])
        r = api.drover("job", "run", write(JOB))
        case.equal(r.code, 0)
        case.contains(r.out, "1 of 1")


def test_job_run_prints_why_an_allocation_failed_and_exits_with_1():
    events = [event("Received", "Task received by client", 3), event("Driver Failure", "no such file: /bin/nope", 2),
              event("Not Restarting", "Error was unrecoverable", 1)]
    for desired in ("run", "stop"):
        with FakeApi() as api:
            registering(api, [alloc(A1, status="failed", desired=desired, failed=True, events=events)])
            r = api.drover("job", "run", write(JOB))
            case.equal((r.code, r.err), (1, ""))
            case.contains(r.out, "Driver Failure: no such file: /bin/nope")
            case.contains(r.out, "drover alloc logs -stderr aaaa1111")
    many = [alloc("%08x-0000-4000-8000-000000000001" % i) for i in range(9)]
    many.append(alloc(A1, status="failed", failed=True, events=events))
    with FakeApi() as api:
        registering(api, many)
        r = api.drover("job", "run", write(JOB))
        case.equal(r.code, 1)
        case.equal(r.out.count("no such file"), 1)
        case.contains(r.out, "9 of 10 allocation(s) running, some failed")


def test_job_run_that_cannot_be_placed_prints_the_dimension_and_exits_with_2():
    with FakeApi() as api:
        registering(api, [])
        api.json("GET", "/v1/evaluation/" + EVAL, evaluation(BlockedEval="12345678-", FailedTGAllocs={"group": {
            "NodesEvaluated": 1, "CoalescedFailures": 2, "DimensionExhausted": {"memory": 1},
            "ConstraintFiltered": {"missing drivers \"docker\"": 1}}}))
        r = api.drover("job", "run", write(JOB))
        case.equal(r.code, 2)
        for part in ('Task Group "group" (failed to place 3', 'Dimension "memory" exhausted on 1', "missing drivers"):
            case.contains(r.out, part)
    for status in ("failed", "blocked", "canceled"):
        with FakeApi() as api:
            registering(api, [])
            api.json("GET", "/v1/evaluation/" + EVAL, evaluation(status, StatusDescription="no room"))
            r = api.drover("job", "run", write(JOB))
            case.equal(r.code, 2)
            case.contains(r.out, 'finished with status "%s": no room' % status)


def test_job_run_detached_and_as_json():
    with FakeApi() as api:
        registering(api, [alloc(A1)])
        r = api.drover("job", "run", "-detach", write(JOB))
        case.equal((r.code, r.out), (0, 'Job "web" is registered, evaluation %s\n' % EVAL))
        case.equal(api.asked("GET", "/v1/evaluation/" + EVAL), [])
        r = api.drover("job", "run", "-json", write(JOB))
        case.equal((r.code, json.loads(r.out)["EvalID"]), (0, EVAL))
        case.contains(r.err, "1 of 1")


def test_invalid_job_files_are_refused():
    with FakeApi() as api:
        for text, parts in (("", ["is empty"]), ('job "web" {', ["file.json:1:12: expected", "the end of the file"]),
                            ('{"Job": {\n  "ID": "x",,}}', ["file.json:2:"]), ("{}", ["holds no job"]), ("[1]", ["file.json:1:1: expected an attribute or a block"]),
                            ('{"ID": "a", "ID": "b"}', ["duplicate"]), ("{\0}", ["file.json:1"])):
            r = api.drover("job", "run", write(text))
            case.equal((r.code, r.out), (1, ""), text)
            for part in parts:
                case.contains(r.err, part)
        case.contains(api.drover("job", "run", "/nowhere").err, "open /nowhere: No such file")
        case.contains(api.drover("job", "run", "/").err, "Is a directory")
        case.equal(api.requests, [])
        api.text("POST", "/v1/jobs", 400, "unknown driver \"x\"")
        r = api.drover("job", "run", write(JOB))
        case.equal((r.code, r.err), (1, 'drover: unknown driver "x"\n'))


def test_job_stop_waits_until_every_allocation_has_ended():
    with FakeApi() as api:
        api.json("GET", "/v1/jobs", [{"ID": "web"}])
        api.json("DELETE", "/v1/job/web", {"EvalID": EVAL})
        api.text("GET", "/v1/evaluation/" + EVAL, 404, "eval not found")
        other = alloc(A2, job="db")
        api.json("GET", "/v1/allocations", steps([alloc(A1, desired="stop"), other], [alloc(A1, desired="stop"), other],
                                                 [alloc(A1, desired="stop", status="complete"), other]))
        r = api.drover("job", "stop", "-purge", "web")
        case.equal((r.code, r.err), (0, ""))
        case.equal(api.asked("DELETE", "/v1/job/web")[0].query["purge"], "true")
        case.contains(r.out, 'Allocation "aaaa1111" (web.group[0]) has ended: complete')
        case.contains(r.out, 'Job "web" is stopped and purged')
        r = api.drover("job", "stop", "web")
        case.equal((r.code, r.err), (1, "drover: eval not found\n"))
        case.equal(api.asked("DELETE", "/v1/job/web")[1].query["purge"], "false")
        r = api.drover("job", "stop", "-detach", "web")
        case.equal(r.code, 0)
        case.contains(r.out, "is being stopped")


def test_alloc_stop_waits_for_the_end_and_for_the_replacement():
    with FakeApi() as api:
        old, new = alloc(A1, eval_id="before"), alloc(A2)
        ended = dict(old, ClientStatus="complete", DesiredStatus="stop")
        # The allocation is requested once before the stop, then repeatedly.
        api.json("GET", "/v1/allocation/" + A1, steps(old, old, old, ended))
        api.json("GET", "/v1/allocations", [old])
        api.json("PUT", "/v1/allocation/%s/stop" % A1, {"EvalID": EVAL})
        api.json("GET", "/v1/evaluation/" + EVAL, evaluation())
        api.json("GET", "/v1/job/web/allocations", steps([ended, dict(new, ClientStatus="pending")], [ended, new]))
        r = api.drover("alloc", "stop", "aaaa")
        case.equal((r.code, r.err), (0, ""))
        case.equal(r.out.index('"aaaa1111" (web.group[0]) has ended') < r.out.index('"bbbb2222" is running'), True)
        r = api.drover("alloc", "stop", "-detach", A1)
        case.equal((r.code, r.out), (0, 'Allocation "aaaa1111" is being stopped, evaluation %s\n' % EVAL))


def draining(api, *allocs):
    api.json("GET", "/v1/agent/self", {"stats": {"client": {"node_id": NODE}}})
    api.json("POST", "/v1/node/%s/drain" % NODE, {"EvalIDs": [EVAL]})
    api.json("GET", "/v1/node/" + NODE, steps({"DrainStrategy": {"Deadline": 1}}, {"DrainStrategy": None}))
    api.json("GET", "/v1/allocations", steps(*allocs))
    api.json("GET", "/v1/volumes", [])


def test_node_drain_stops_all_and_waits():
    with FakeApi() as api:
        draining(api, [alloc(A1), alloc(A2)], [alloc(A1, status="complete"), alloc(A2)],
                 [alloc(A1, status="complete"), alloc(A2, status="failed")])
        r = api.drover("node", "drain", "-yes")
        case.equal((r.code, r.err), (0, ""))
        case.equal(api.asked("POST", "/v1/node/%s/drain" % NODE)[0].body,
                   {"DrainSpec": {"Deadline": 3600 * 10**9, "IgnoreSystemJobs": False}, "MarkEligible": False})
        case.contains(r.out, "is drained: 2 allocation(s) have ended")
        # All allocations had ended before the node reported the end of the drain, for which the command waits too.
        case.equal(len(api.asked("GET", "/v1/node/" + NODE)), 2)


def test_a_drain_names_the_volumes_that_stay_mounted():
    with FakeApi() as api:
        draining(api, [alloc(A1)], [alloc(A1, status="complete")])
        api.json("GET", "/v1/volumes", [{"ID": "data", "CurrentWriters": 1}, {"ID": "free", "CurrentWriters": 0}])
        api.json("GET", "/v1/volume/csi/data", {"ID": "data", "PluginID": "p", "Allocations": [
            alloc(A1, status="complete"), alloc(A2), alloc("cccc" + A1[4:], status="complete", NodeID="other")]})
        r = api.drover("node", "drain", "-yes")
        case.equal((r.code, r.err), (0, ""))
        case.equal([line for line in r.out.splitlines() if "claimed" in line],
                   ['==> Volume "data" is still mounted and claimed for allocation "aaaa1111": plugin p has not unmounted it yet'])


def test_node_drain_flags():
    wanted = {("-force",): {"Deadline": -1, "IgnoreSystemJobs": False},
              ("-no-deadline", "-ignore-system"): {"Deadline": 0, "IgnoreSystemJobs": True},
              ("-deadline", "1m30s"): {"Deadline": 90 * 10**9, "IgnoreSystemJobs": False}}
    for words, spec in wanted.items():
        with FakeApi() as api:
            draining(api, [alloc(A1, JobType="system")] if "-ignore-system" in words else [])
            case.equal(api.drover("node", "drain", "-enable", "-self", "-yes", *words).code, 0)
            case.equal(api.asked("POST", "/v1/node/%s/drain" % NODE)[0].body["DrainSpec"], spec)
    with FakeApi() as api:
        draining(api, [alloc(A1)])
        case.equal(api.drover("node", "drain", "-disable").code, 0)
        case.equal(api.asked("POST", "/v1/node/%s/drain" % NODE)[0].body, {"DrainSpec": None, "MarkEligible": True})
        case.equal(api.drover("node", "drain", "-yes", "-detach").code, 0)
        for words, part in (([], "add -yes"), (["-enable", "-disable"], "cannot be used together"), (["-force", "-no-deadline"], "cannot be used together"),
                            (["-yes", "-self", "other"], "two different nodes")):
            r = api.drover("node", "drain", *words)
            case.equal((r.code, r.out), (1, ""), words)
            case.contains(r.err, part)
        case.equal(len(api.asked("POST", "/v1/node/%s/drain" % NODE)), 2)


def test_a_task_name_that_is_not_utf8_is_refused_and_does_not_restart_all_tasks():
    with FakeApi() as api:
        api.json("PUT", "/v1/client/allocation/%s/restart" % A1, {})
        r = api.drover("alloc", "restart", A1, b"\xff")
        case.equal((r.code, r.out), (1, ""))
        case.contains(r.err, "an argument is not valid UTF-8")
        case.equal(api.asked("PUT", "/v1/client/allocation/%s/restart" % A1), [])


def test_a_dispatch_with_an_option_that_is_not_utf8_is_refused_and_sends_nothing():
    wanted = (((b"-id-prefix-template", b"\xff"), "-id-prefix-template is not UTF-8"),
              ((b"-meta", b"k=\xff"), "-meta k: its value is not UTF-8"), ((b"-meta", b"\xff=v"), "a key of -meta is not UTF-8"))
    with FakeApi() as api:
        api.json("GET", "/v1/jobs", [{"ID": "web"}])
        api.json("POST", "/v1/job/web/dispatch", {"DispatchedJobID": "web/dispatch-1", "EvalID": EVAL})
        for words, part in wanted:
            r = api.drover("job", "dispatch", "-detach", *words, "web")
            case.equal((r.code, r.out), (1, ""), words)
            case.contains(r.err, part)
        case.equal(api.asked("POST", "/v1/job/web/dispatch"), [])
        r = api.drover("job", "dispatch", "-detach", "-id-prefix-template", "\u00e9", "-meta", "k\u00e9=v", "web")
        case.equal((r.code, r.err), (0, ""))
        case.equal(api.asked("POST", "/v1/job/web/dispatch")[0].body, {"IdPrefixTemplate": "\u00e9", "Meta": {"k\u00e9": "v"}})


def test_a_waiting_command_survives_a_restart_of_the_agent():
    with FakeApi() as api:
        registering(api, [alloc(A1, status="pending")])
        process = api.start("job", "run", write(JOB))
        case.until(lambda: len(api.asked("GET", "/v1/job/web/allocations")) > 1, 10, "whether the command has ended")
        # The agent is stopped, then its socket closes every connection, then it is back.
        api.close()
        said = b""
        while b"drover: the connection to the agent was lost" not in said:
            more = os.read(process.stderr.fileno(), 4096)
            case.equal(more != b"", True, "the command ended after %r" % said)
            said += more
        api.json("GET", "/v1/job/web/allocations", [alloc(A1)])
        api.raw("GET", "/v1/job/web/allocations", b"")
        api.listen()
        seen = len(api.asked("GET", "/v1/job/web/allocations"))
        case.until(lambda: len(api.asked("GET", "/v1/job/web/allocations")) > seen, 10, "the command to repeat its request")
        api.json("GET", "/v1/job/web/allocations", [alloc(A1)])
        r = finish(process)
        case.equal(r.code, 0, r.err)
        case.contains(r.out, "1 of 1 allocation(s) running")
        case.equal(len(api.asked("POST", "/v1/jobs")), 1)


def test_a_change_is_never_sent_twice():
    with FakeApi() as api:
        api.raw("POST", "/v1/jobs", b"")
        r = api.drover("job", "run", write(JOB))
        case.equal(r.code, 1)
        case.contains(r.err, "without an answer")
        case.equal(len(api.asked("POST", "/v1/jobs")), 1)


def test_volume_create_takes_the_three_forms_of_a_volume():
    full = {"ID": "v", "Name": "v", "PluginID": "local", "RequestedCapacityMin": 10 << 30, "RequestedCapacityMax": 2 * 10**9,
            "RequestedCapabilities": [{"AccessMode": "single-node-writer", "AttachmentMode": "file-system"}],
            "MountOptions": {"FSType": "ext4", "MountFlags": ["noatime"]}, "Parameters": {"a": "b"}}
    spec = {"id": "v", "name": "v", "type": "csi", "plugin_id": "local", "capacity_min": "10GiB", "capacity_max": "2GB",
            "capability": [{"access_mode": "single-node-writer", "attachment_mode": "file-system"}],
            "mount_options": [{"fs_type": "ext4", "mount_flags": ["noatime"]}], "parameters": {"a": "b"}}
    for file in (spec, full, {"Volumes": [full]}):
        with FakeApi() as api:
            api.json("PUT", "/v1/volume/csi/v/create", lambda r: {"Volumes": [dict(r.body["Volumes"][0], ExternalID="x")]})
            r = api.drover("volume", "create", write(file))
            case.equal((r.code, r.out, r.err), (0, 'Volume "v" is created, external id x\n', ""))
            case.equal(api.asked("PUT", "/v1/volume/csi/v/create")[0].body, {"Volumes": [full]})


def test_invalid_volume_files_are_refused():
    with FakeApi() as api:
        for file, part in (({}, "holds no volume"), ({"Volumes": [{"Name": "x"}]}, "has no id")):
            r = api.drover("volume", "create", write(file))
            case.equal((r.code, r.out), (1, ""), file)
            case.contains(r.err, part)
        case.equal(api.requests, [])


def test_a_waiting_command_prints_progress_immediately():
    with FakeApi() as api:
        registering(api, [alloc(A1, status="pending", events=[event("Received", "Task received by client")])])
        process = api.start("job", "run", write(JOB))
        # In a pipe too, this line is printed while the command still waits.
        seen = b""
        while b"Received" not in seen:
            more = os.read(process.stdout.fileno(), 4096)
            case.equal(more != b"", True)
            seen += more
        case.equal(process.poll(), None)
        process.terminate()
        finish(process)


case.run(globals())

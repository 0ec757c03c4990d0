#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# takes: 120
"""A whole agent in a cluster: registration, allocs that are placed and stopped, and servers that send wrong lists."""
import os
import signal
import time

from lib import case, crash, helper, web
from lib.cluster import beaten, displays, events, job, node_of, processes_of, servers as cluster, task_of

S = 10**9


def run_one(servers):
    """Returns the ids of the node and of an alloc that runs on it."""
    me = servers.wait_node()["ID"]
    alloc = servers.run_job(job(), me)[0]
    servers.wait_alloc(alloc, ["running"])
    return me, alloc


def run(version):
    with cluster(version=version) as servers, node_of(servers) as node:
        me = servers.wait_node()
        case.equal((me["Name"], me["Datacenter"], me["NodePool"]), ("n1", "dc1", "default"))
        case.equal(me["Attributes"]["driver.raw_exec"], "1")
        case.equal(me["NodeResources"]["Networks"][0]["Mode"], "host")
        first, second = [servers.run_job(job(name), me["ID"])[0] for name in ("a", "b")]
        found = servers.wait_alloc(first, ["running"])
        case.equal(events(found), ["Received", "Task Setup", "Started"])
        case.equal(found["ClientDescription"], "Tasks are running")
        servers.wait_alloc(second, ["running"])
        task_of(first)
        servers.stop_alloc(first)
        found = servers.wait_alloc(first, ["complete"])
        case.equal(events(found)[3:], ["Killing", "Terminated", "Killed"])
        case.equal(found["TaskStates"]["t"]["State"], "dead")
        case.equal(processes_of(first), [], "processes")
        servers.remove_alloc(first)  # noticed with the next change, unless a list is being requested just now
        ended = servers.run_job(job("c", "/bin/sh", ["-c", "exit 3"], group={"Count": 1}), me["ID"])[0]
        found = servers.wait_alloc(ended, ["failed"])
        case.equal(found["TaskStates"]["t"]["Failed"], True)
        case.equal([e["ExitCode"] for e in found["TaskStates"]["t"]["Events"] if e["Type"] == "Terminated"], [3])
        case.until(lambda: not os.path.exists(node.data + "/alloc/" + first), 10, "the directory to be removed")
        case.until(lambda: sorted(a["ID"] for a in node.ask("/v1/allocations")) == sorted([second, ended]), 10, "its row to be removed")


def test_a_job_runs_and_stops_with_servers_of_1_6():
    run("1.6.10")


def test_a_job_runs_and_stops_with_servers_of_2_0():
    run("2.0.5")


def reported(servers, after):
    """Returns the ids of the allocs in the updates that were answered after that call."""
    return [a["ID"] for c in servers.calls("Node.UpdateAlloc", after) for a in c["args"]["Alloc"]]


def test_a_restart_does_not_send_updates_that_the_servers_have():
    """Servers that consider the node lost need an update to make it ready, so one alloc is reported."""
    with cluster(grace=600) as servers, node_of(servers) as node:
        me = servers.wait_node()["ID"]
        allocs = servers.run_job(job(group={"Count": 8}), me)
        ended = servers.run_job({**job("ends", "/bin/true", ()), "Type": "batch"}, me)[0]
        servers.wait_alloc(ended, ["complete"])
        for alloc in allocs:
            servers.wait_alloc(alloc, ["running"])
        for turn in range(2):
            beaten(servers, 3)  # updates of events follow those of a status within a second
            known = servers.last_call()
            os.kill(node.processes()["supervisor"], signal.SIGKILL)
            servers.wait_call("Node.Register", known)
            beaten(servers, 3)
            found = reported(servers, known)
            case.equal((len(found), ended in found), (1, False), "updates after restart %d: %s" % (turn, found))
        # What changed without an acknowledgement is sent.
        refused = servers.fault("error", "Node.UpdateAlloc", text="no")
        known = servers.last_call()
        os.kill(processes_of(allocs[-1])[0], signal.SIGKILL)
        node.wait_log("report the state of allocations: ", 30)
        os.kill(node.processes()["supervisor"], signal.SIGKILL)
        servers.wait_call("Node.Register", known)
        servers.clear(refused)
        case.until(lambda: "Terminated" in events(servers.alloc(allocs[-1])), 60, "the update of the task's end")


def test_features_that_this_node_lacks_fail_the_alloc_before_it_starts():
    with cluster() as servers, node_of(servers) as node:
        me = servers.wait_node()["ID"]
        # The node says so where servers do not filter by it.
        case.equal({k for k, v in servers.node(me)["Attributes"].items() if k.startswith("drover.") and v == "false"},
                   {"drover.propagation_mode"})
        cases = (
            ({"Templates": [{"EmbeddedTmpl": "x", "DestPath": "local/x", "Perms": "4755"}]}, 'task "t": template "local/x": perms must be an octal number'),
            ({"Vault": {"Role": "r", "Env": True}}, 'task "t": drover does not support Vault tokens yet'),
            ({"Consul": {"Cluster": "default", "Namespace": "n"}}, 'task "t": drover does not support Consul tokens yet'),
            ({"driver": "java"}, 'driver "java" is not available'),
            ({"group": {"Networks": [{"Mode": "weird"}]}}, 'group "g": network mode "weird" is unknown: use "host", "none", "bridge" or "cni/NAME"'),
            ({"group": {"Networks": [{"Mode": "host", "Hostname": "h"}]}}, 'group "g": a network with a hostname must have mode "bridge" or "cni/NAME"'),
            ({"VolumeMounts": [{"Volume": "v", "PropagationMode": "bidirectional"}]}, 'task "t": drover does not support volume mounts with propagation yet'),
            ({"VolumeMounts": [{"Volume": "v", "SELinuxLabel": "z"}]}, 'task "t": drover does not support volume mounts with a selinux_label yet'),
            ({"Resources": {"Devices": [{"Name": "gpu", "Count": 1}]}}, 'task "t": drover does not support devices yet'),
        )
        for number, (fields, text) in enumerate(cases):
            found = servers.wait_alloc(servers.run_job(job("lacks%d" % number, **fields), me)[0], ["failed"])
            case.contains(displays(found)[-1], text)
            case.equal(events(found), ["Received", "Setup Failure"])
            case.equal(os.path.exists("%s/alloc/%s" % (node.data, found["ID"])), False, "directories of the alloc")


def test_artifacts_of_a_task():
    for version in ("1.6.10", "2.0.5"):
        with web.Server({"/a": b"an artifact\n"}) as server, cluster(version=version) as servers, node_of(servers) as node:
            me = servers.wait_node()["ID"]
            good = {"GetterSource": server.url + "/${NOMAD_TASK_NAME}?x=secret", "GetterMode": "any", "RelativeDest": "local/",
                    "GetterOptions": {"filename": "name"}, "GetterHeaders": {"X-A": "b"}}
            server.files["/t"] = b"an artifact\n"
            alloc = servers.run_job(job("good", "/bin/sh", ["-c", "test -s local/name && exec sleep 1000"], Artifacts=[good]), me)[0]
            case.equal(events(servers.wait_alloc(alloc, ["running"])), ["Received", "Task Setup", "Downloading Artifacts", "Started"])
            case.equal((server.requests[-1][0], server.requests[-1][1]["X-A"]), ("/t?x=secret", "b"))
            bad = servers.wait_alloc(servers.run_job(job("bad", Artifacts=[{**good, "GetterSource": server.url + "/none?x=secret"}]), me)[0], ["failed"])
            case.equal(events(bad), ["Received", "Task Setup", "Downloading Artifacts", "Failed Artifact Download", "Not Restarting"])
            case.equal(displays(bad)[3], 'failed to download artifact "%s/none": the server answered with status 404' % server.url)
            case.equal("secret" in node.log(), False, "a secret in the log")


def introduce(node, token):
    """Writes the introduction token as an operator does, as root."""
    path = node.data + "/state/intro_token.jwt"
    with open(path + ".new", "w", encoding="ascii") as f:
        f.write(token + "\n")
    os.chmod(path + ".new", 0o644)
    os.rename(path + ".new", path)


def test_a_cluster_that_requires_an_introduction_token():
    with cluster() as servers:
        servers.settings(introduction="strict")
        with node_of(servers) as node:
            refused = "introduction token, store it in state/intro_token.jwt"
            node.wait_log(refused, 30)
            introduce(node, servers.intro_token("another"))
            node.wait_log(refused, 60, node.log().count(refused) + 2)  # one attempt may have begun before
            case.equal(servers.nodes(), {}, "nodes that are registered")
            introduce(node, servers.intro_token("n1"))
            me = servers.wait_node()["ID"]
            # When registered it has its own token, also after a restart of the process.
            os.unlink(node.data + "/state/intro_token.jwt")
            known = servers.last_call()
            node.kill("supervisor")
            servers.wait_call("Node.Register", known, 60)
            alloc = servers.run_job(job(), me)[0]
            servers.wait_alloc(alloc, ["running"])


def test_changes_of_the_node_are_sent_together():
    """A node that changes twenty times in a short time is registered only a few times, the last time with its final state."""
    with cluster() as servers, node_of(servers):
        me = servers.wait_node()["ID"]
        known, began = servers.last_call(), time.monotonic()
        for i in range(20):
            servers.call_node(me, "NodeMeta.Apply", {"NodeID": me, "Meta": {"turn": str(i)}})
        case.until(lambda: (servers.node(me)["Meta"] or {}).get("turn") == "19", 60, "the last change to arrive")
        found = len(servers.calls("Node.Register", known))
        # Registrations are at least five seconds apart, however slow the machine is.
        case.equal(1 <= found <= 1 + (time.monotonic() - began) // 5, True, "%d registrations" % found)


def test_failing_fingerprints_do_not_delay_the_node():
    """Fingerprints are independent: attributes that cannot be read are left out, the others are sent, and jobs run."""
    hidden = ("/etc/os-release", "/proc/cpuinfo", "/proc/cgroups")
    for path in hidden:
        helper.mount("/dev/null", path, flags=4096)  # MS_BIND
    try:
        with cluster() as servers, node_of(servers):
            me = servers.wait_node()
            case.equal([k for k in ("os.name", "cpu.modelname") if k in me["Attributes"]], [], "attributes that cannot be read")
            case.equal(me["Attributes"]["kernel.name"], "linux")
            case.equal(me["NodeResources"]["Memory"]["MemoryMB"] > 0, True)
            alloc = servers.run_job(job(), me["ID"])[0]
            servers.wait_alloc(alloc, ["running"])
    finally:
        for path in hidden:
            helper.umount(path, 2)


def test_an_older_index_or_an_empty_list_stops_no_alloc():
    with cluster() as servers, node_of(servers) as node:
        me, alloc = run_one(servers)
        pid = task_of(alloc)
        # A server that is behind, whose list does not have the alloc yet.
        beaten(servers)
        servers.fault("empty", "Node.GetClientAllocs", index=1)
        servers.drop()
        node.wait_log("with index 1 after", 30)
        beaten(servers, 2)
        case.equal(processes_of(alloc), pid, "after an older list")
        servers.clear()
        # A server that has lost its allocs: its list is empty once, and after the next beat a list has the alloc again.
        servers.fault("empty", "Node.GetClientAllocs", times=1, index=10**6)
        other = servers.run_job(job("k"), me)[0]
        node.wait_log("asking again after the next heartbeat", 30)
        beaten(servers, 2)
        case.equal(processes_of(alloc), pid, "after an empty list")
        # Confirmed by a second list: the servers have removed it.
        for gone in (other, alloc):
            servers.remove_alloc(gone)
        case.until(lambda: not processes_of(alloc), 30, "the alloc to be removed")


def test_a_purged_node_registers_again_and_keeps_its_allocs():
    for version in ("1.6.10", "2.0.5"):
        with cluster(version=version) as servers, node_of(servers):
            me = servers.wait_node()["ID"]
            alloc = servers.run_job(job(), me)[0]
            servers.wait_alloc(alloc, ["running"])
            pid = task_of(alloc)
            known = servers.last_call()
            servers.purge_node(me)
            servers.wait_call("Node.Register", known)
            case.equal(servers.wait_node()["ID"], me)
            case.equal(processes_of(alloc), pid, "processes of the task")


def test_a_server_that_disappears_during_an_answer():
    with cluster(3) as servers, node_of(servers):
        me = servers.wait_node()["ID"]
        for method in ("Node.GetClientAllocs", "Alloc.GetAllocs", "Node.UpdateAlloc"):
            servers.fault("vanish", method, times=1, after=40)
            alloc = servers.run_job(job("v" + method[-5:]), me)[0]
            servers.wait_alloc(alloc, ["running"], 40)
            task_of(alloc)


def test_many_changes_of_allocs_are_sent_in_one_call():
    with cluster() as servers, node_of(servers) as node:
        me = servers.wait_node()["ID"]
        silent = servers.fault("silent", "Node.UpdateAlloc")
        allocs = servers.run_job(job(group={"Count": 20}), me)

        case.until(lambda: all(processes_of(a) for a in allocs) and node.log().count("Started") == len(allocs), 60, "all tasks to run")
        servers.clear(silent)
        for alloc in allocs:
            servers.wait_alloc(alloc, ["running"])
        # The call that was not answered, and one with all changes since; a late beat causes another.
        case.equal(len(servers.calls("Node.UpdateAlloc")) <= 5, True, "%d calls" % len(servers.calls("Node.UpdateAlloc")))


def test_a_version_without_changes_of_tasks_keeps_the_processes():
    """The new restart policy applies from then on, also after a kill of the supervisor."""
    again = {"Attempts": 5, "Interval": 600 * S, "Delay": S // 10, "Mode": "fail"}
    for killed in (False, True):
        with cluster() as servers, node_of(servers) as node:
            me = servers.wait_node()["ID"]
            made = job()
            alloc = servers.run_job(made, me)[0]
            servers.wait_alloc(alloc, ["running"])
            pid, known = task_of(alloc), servers.last_call()
            made["TaskGroups"][0]["RestartPolicy"] = again
            servers.update_job(made, [alloc])
            servers.wait_call("Alloc.GetAllocs", known, 60)
            beaten(servers, 2)  # the second of these was requested after that answer had been processed
            case.equal(processes_of(alloc), pid, "processes of the task")
            if killed:
                known = servers.last_call()
                node.kill("supervisor")
                servers.wait_call("Node.Register", known, 60)
                case.equal(processes_of(alloc), pid, "processes of the task")
            os.kill(pid[0], signal.SIGKILL)
            case.until(lambda: processes_of(alloc) not in ([], pid), 60, "another process")
            found = case.until(lambda: [f for f in [servers.alloc(alloc)] if f["TaskStates"]["t"]["Restarts"] == 1 and
                                        f["ClientStatus"] == "running"], 60, "the servers to know of the restart")[0]
            case.equal(events(found), ["Received", "Task Setup", "Started", "Terminated", "Restarting", "Started"])


def test_a_killed_supervisor_recovers_its_allocs():
    with cluster() as servers, node_of(servers) as node:
        me, alloc = run_one(servers)
        pid, known = task_of(alloc), servers.last_call()
        os.kill(node.processes()["supervisor"], signal.SIGKILL)
        servers.wait_call("Node.Register", known)
        case.equal(processes_of(alloc), pid, "processes of the task")
        servers.stop_alloc(alloc)
        servers.wait_alloc(alloc, ["complete"])


def test_an_agent_that_is_stopping_starts_no_alloc():
    """The servers place replacements for the allocs that it stops, and might place them on this node."""
    with cluster() as servers, node_of(servers) as node:
        me = servers.wait_node()["ID"]
        slow = servers.run_job(job("slow", "/bin/sh", ["-c", "trap '' INT; while :; do sleep 0.1; done"], KillTimeout=5 * S), me)[0]
        servers.wait_alloc(slow, ["running"])
        node.process.send_signal(signal.SIGTERM)
        node.wait_log("stopping all allocations", 20)
        late = servers.run_job(job("late"), me)[0]
        case.equal(node.wait(60), 0)
        case.equal(servers.alloc(late)["ClientStatus"], "pending")
        case.equal(node.log().count("Task received by client"), 1, "number of allocs that were started")


def test_allocs_keep_running_and_restart_without_servers():
    with cluster() as servers, node_of(servers) as node:
        me, alloc = run_one(servers)
        pid = task_of(alloc)
        servers.stop_server(0)
        case.until(lambda: "no server" in node.log(), 20, "the link to be lost")
        os.kill(node.processes()["supervisor"], signal.SIGKILL)
        case.until(lambda: node.log().count("work comes from: nomad") == 2, 20, "the supervisor to be back")
        case.equal(processes_of(alloc), pid, "processes of the task")
        os.kill(pid[0], signal.SIGKILL)
        case.until(lambda: not processes_of(alloc), 10, "the task to end")
        servers.start_server(0)
        servers.wait_alloc(alloc, ["failed"])


def starts(alloc):
    """Returns when its task was started, in nanoseconds."""
    return [e["Time"] for e in (alloc["TaskStates"] or {"t": {"Events": []}})["t"]["Events"] if e["Type"] == "Started"]


def test_after_a_power_cut_allocs_without_a_lease_start_without_servers():
    again = {"RestartPolicy": {"Attempts": 5, "Interval": 600 * S, "Delay": S // 10, "Mode": "fail"}}
    with cluster(grace=600) as servers, node_of(servers) as node:
        me = servers.wait_node()["ID"]
        free = [servers.run_job(job("free" + d, driver=d, group=again), me)[0] for d in ("raw_exec", "exec")]
        leased = servers.run_job(job("leased", group={**again, "Disconnect": {"StopOnClientAfter": 3600 * S}}), me)[0]
        for alloc in (*free, leased):
            servers.wait_alloc(alloc, ["running"])
        servers.stop_server(0)
        case.until(lambda: "no server" in node.log(), 20, "the link to be lost")
        crash.cut_power(node)
        os.unlink(node.data + "/rt/lease")  # the lease page does not survive a boot
        case.equal([processes_of(a) for a in (*free, leased)], [[], [], []], "processes")
        node.start()
        for alloc in free:
            case.until(lambda a=alloc: len(processes_of(a)) == 1, 60, "an alloc without a lease to run")
        # An alloc with a lease waits for the first beat, and then runs like the others.
        case.equal(processes_of(leased), [], "status of the alloc with a lease")
        before = time.time_ns()
        servers.start_server(0)
        case.until(lambda: len(processes_of(leased)) == 1, 60, "the alloc with a lease to run")
        for alloc in (*free, leased):
            found = case.until(lambda a=alloc: [f for f in [servers.alloc(a)] if len(starts(f)) == 2 and f["ClientStatus"] == "running"],
                               60, "the servers to know of the second start")[0]
            case.equal(starts(found)[1] > before, alloc == leased, "whether it was started after the servers")
            case.contains(" ".join(displays(found)), "the machine was rebooted")
        case.equal([len(processes_of(a)) for a in (*free, leased)], [1, 1, 1], "processes")


def test_a_lease_expires_while_no_server_answers():
    fields = ({"StopAfterClientDisconnect": 10 * S}, {"Disconnect": {"StopOnClientAfter": 10 * S}})
    with cluster(grace=60) as servers, node_of(servers) as node:
        me = servers.wait_node()["ID"]
        leased = [servers.run_job(job("leased%d" % n, group=field), me)[0] for n, field in enumerate(fields)]
        once = job("batch", group=fields[1])
        once["Type"] = "batch"
        batch = servers.run_job(once, me)[0]
        free = servers.run_job(job("free"), me)[0]
        for alloc in (*leased, batch, free):
            servers.wait_alloc(alloc, ["running"])
        pid = task_of(free)
        servers.stop_server(0)
        for alloc in (*leased, batch):
            case.until(lambda a=alloc: not processes_of(a), 15, "the task to be stopped")
        case.equal(processes_of(free), pid, "processes of the task without a lease")
        servers.start_server(0)
        for alloc in leased:
            found = servers.wait_alloc(alloc, ["complete"])
            case.contains(" ".join(displays(found)), "stop_after_client_disconnect of 10s passed")
            case.equal((found["ClientDescription"], found["TaskStates"]["t"]["Failed"]),
                       ("Tasks were stopped: no heartbeat was answered in time", False))
        found = servers.wait_alloc(batch, ["failed"])  # complete would mean that its work is done
        case.contains(" ".join(displays(found)), "stop_after_client_disconnect of 10s passed")
        case.equal(processes_of(free), pid, "processes of the task without a lease")
        node.wait_log("stop_after_client_disconnect", 1)


def test_a_disconnected_node_reconnects_its_allocs():
    with cluster() as servers, node_of(servers) as node:
        me = servers.wait_node()["ID"]
        alloc = servers.run_job(job(group={"Disconnect": {"LostAfter": 3600 * S}}), me)[0]
        servers.wait_alloc(alloc, ["running"])
        pid = task_of(alloc)
        heartbeat = node.kill("heartbeat", signal.SIGSTOP)
        try:
            servers.wait_alloc(alloc, ["unknown"])
        finally:
            os.kill(heartbeat, signal.SIGCONT)
        servers.wait_alloc(alloc, ["running"])
        servers.wait_node()
        case.equal(processes_of(alloc), pid, "processes of the task")
        case.until(lambda: "Reconnected" in events(servers.alloc(alloc)), 10, "the event")


def test_a_task_gets_the_token_of_its_identity():
    with cluster() as servers, node_of(servers):
        me = servers.wait_node()["ID"]
        script = 'test -n "$NOMAD_TOKEN" && test "$(cat $NOMAD_SECRETS_DIR/nomad_token)" = "$NOMAD_TOKEN" && exit 7; exit 8'
        for driver in ("raw_exec", "exec"):
            made = job("token" + driver, "/bin/sh", ["-c", script], Identity={"Env": True, "File": True}, driver=driver)
            found = servers.wait_alloc(servers.run_job(made, me)[0], ["failed"])
            case.equal([e["ExitCode"] for e in found["TaskStates"]["t"]["Events"] if e["Type"] == "Terminated"], [7], driver)


def test_the_health_of_allocs_is_sent_for_deployments():
    with cluster() as servers, node_of(servers):
        me = servers.wait_node()["ID"]
        update = {"MaxParallel": 1, "HealthCheck": "task_states", "MinHealthyTime": S, "HealthyDeadline": 60 * S,
                  "ProgressDeadline": 600 * S}
        good = servers.run_job(job("good", group={"Update": update}), me, deployment="d" * 8 + "-1111-4111-8111-" + "1" * 12)[0]
        bad = servers.run_job(job("bad", "/bin/sh", ["-c", "exit 1"], group={"Update": update}), me,
                              deployment="d" * 8 + "-1111-4111-8111-" + "2" * 12)[0]

        # With manual health a failed alloc is still reported as unhealthy, but without an event.
        said = servers.run_job(job("said", "/bin/sh", ["-c", "exit 1"], group={"Update": {**update, "HealthCheck": "manual"}}), me,
                               deployment="d" * 8 + "-1111-4111-8111-" + "3" * 12)[0]

        def health(alloc):
            return (servers.alloc(alloc)["DeploymentStatus"] or {}).get("Healthy")
        case.until(lambda: health(good) is True, 20, "the good one to be healthy")
        case.until(lambda: health(bad) is False, 20, "the bad one to be unhealthy")
        case.equal(events(servers.alloc(bad))[-1], "Alloc Unhealthy")
        case.until(lambda: health(said) is False, 60, "the failed alloc with manual health to be unhealthy")
        case.equal("Alloc Unhealthy" in events(servers.alloc(said)), False, "events about its health")


case.run(globals())

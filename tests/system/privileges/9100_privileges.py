# SPDX-License-Identifier: Apache-2.0
"""The privileges of each process of a running agent: /proc/PID/status is compared with the table of PRIVSEP.md."""
import os
import re
import subprocess

from lib import ROOT, agent, api, build_dir, case, crash, holder, images, trace, volumes

COLUMNS = {"inheritable": "CapInh", "permitted": "CapPrm", "effective": "CapEff", "bounding": "CapBnd", "ambient": "CapAmb",
           "NoNewPrivs": "NoNewPrivs", "Seccomp": "Seccomp"}
ALARM = 37


def parse(text):
    """Returns {process: {column: value}} of the table."""
    rows = [[c.strip() for c in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    return {row[0]: dict(zip(rows[0][1:], row[1:])) for row in rows[2:]}


LISTENER = 'health {\n  address = "127.0.0.1:4648"\n}\n'


def documented():
    with open(ROOT + "/PRIVSEP.md", encoding="utf-8") as f:
        return parse(re.search(r"<!-- table:.*?-->\n(.*?)<!-- end of table", f.read(), re.S).group(1))


def own_ids(a):
    """Returns {process: (uid, gid)} from the arguments of exec-helper, which refuses these users for tasks."""
    words = dict(w[2:].split("=", 1) for w in agent.arguments(a.wait_process("exec-helper")) if "=" in w)
    names = ("supervisor", "executor", "csi-helper", "heartbeat", "check-helper", "file-helper", "job-parser", "fetcher",
             "template-renderer", "listener", "image-fetcher")
    return {name: (words["agent-uid-%d" % i],) * 2 for i, name in enumerate(names)}


def compare(name, pid, row, ids):
    """Compares a process with its row. ids: its expected (uid, gid). A process that has just been started may not have dropped its
    privileges yet."""
    def dropped():
        found = trace.status(pid)
        return (found["Seccomp"], found["CapEff"]) == (row["Seccomp"], full if row["effective"] == "full" else row["effective"])
    full = trace.status(os.getpid())["CapBnd"]
    case.until(dropped, 10, "%s (pid %d) to drop its privileges" % (name, pid))
    status = trace.status(pid)
    for column, field in COLUMNS.items():
        case.equal(status[field], full if row[column] == "full" else row[column], "%s (pid %d): %s" % (name, pid, field))
    case.equal(status["Uid"].split(), [str(ids[0])] * 4, name + ": Uid")
    case.equal(status["Gid"].split(), [str(ids[1])] * 4, name + ": Gid")
    if ids[0] not in (0, "0") or row["permitted"] != "full":
        case.equal(status["Groups"].split(), [], name + ": Groups")
    case.equal(status["Seccomp_filters"], row["Seccomp"].replace("2", "1"), name + ": filters")


def test_the_table_agrees_with_the_binaries():
    made = subprocess.run([ROOT + "/tools/privsep.sh", build_dir()], check=True, stdout=subprocess.PIPE, cwd=ROOT).stdout.decode()
    wanted, found = parse(made), documented()
    case.equal(sorted(found), sorted(wanted), "processes")
    for name, row in wanted.items():
        case.equal(found[name], row, name + ": run tools/privsep.sh -w")


def test_helpers_with_fixed_records_do_not_link_protobuf():
    for name in ("launcher", "exec-helper", "mount-helper", "file-helper", "job-parser", "fetcher", "template-renderer", "listener", "image-fetcher", "image-unpacker", "network-helper", "executor", "holder"):
        binary = "%s/drover-%s" % (build_dir(), name)
        with open(binary, "rb") as f:
            case.equal(re.findall(rb"libprotobuf\S*?|protobuf_c_\w+", f.read()), [], name)


def is_task(pid):
    with open("/proc/%d/cgroup" % pid, encoding="ascii") as f:
        return "/tasks/" in f.read()


def strangers(pids):
    """Returns the other processes of this pid namespace: not in pids, not tasks, not this test."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) not in pids and int(name) not in (1, os.getpid()):
            try:
                if not is_task(int(name)):
                    found.append((int(name), agent.arguments(int(name))))
            except OSError:
                pass  # it has ended
    return found


def executors(node):
    """Returns the pids of the agent's executors."""
    with open(node.data + "/instance", encoding="ascii") as f:
        pattern = "drover-%s/exec" % f.read().strip()
    found = []
    for name in os.listdir("/proc"):
        try:
            with open("/proc/%s/cgroup" % name, encoding="ascii") as f:
                if name.isdigit() and pattern in f.read() and trace.status(int(name))["Name"] == "drover-executor"[:15]:
                    found.append(int(name))
        except OSError:
            pass
    return found


def test_every_running_process_has_the_privileges_of_the_table():
    table = documented()
    with volumes.Node(LISTENER) as node:
        node.start_plugin()
        node.wait_process("listener")
        for driver in ("raw_exec", "exec"):
            node.register(api.job(driver.replace("_", "-"), driver=driver))
            node.wait_running(driver.replace("_", "-"))
        node.register(api.job("checked", group={"Services": [{
            "Name": "web", "PortLabel": "1", "Provider": "nomad", "Address": "127.0.0.1", "Checks": [{
                "Name": "c", "Type": "http", "Protocol": "https", "Path": "/", "Interval": 10**9, "Timeout": 10**9}]}]}))
        node.wait_process("check-helper")
        node.register(api.job("artifact", Artifacts=[{"GetterSource": "http://127.0.0.1:1/x"}]))
        node.wait_process("fetcher")
        node.drover("image", "pull", "127.0.0.1:1/x", code=1)
        node.wait_process("image-fetcher")
        node.register(api.job("alone", group={"Networks": [{"Mode": "none"}]}))
        node.wait_running("alone")
        node.wait_process("network-helper")
        node.register(api.job("rendered", Templates=[{"EmbeddedTmpl": "text", "DestPath": "local/text"}]))
        node.wait_running("rendered")
        node.wait_process("template-renderer")
        case.equal(node.do("POST", "/v1/jobs/parse", {"JobHCL": 'job "j" {\n}'})["ID"], "j", "job")
        running, ids = node.processes(), own_ids(node)
        others = {"launcher", "executor", "exec-helper-lookup", "heartbeat-resolver", "holder"}
        case.equal(sorted(running), sorted(set(table) - others), "processes")
        compare("launcher", node.pid, table["launcher"], (0, 0))
        for name, pid in running.items():
            compare(name, pid, table[name], ids.get(name, (0, 0)) if table[name]["uid"] != "mapped" else (images.ID_FIRST,) * 2)
        found = executors(node)
        case.equal(len(found), 6, "executors")
        for pid in found:
            compare("executor", pid, table["executor"], ids["executor"])
        known = {node.pid, *running.values(), *found}
        # Children of helpers run only for a moment; a process that is in no row would stay.
        case.until(lambda: not strangers(known), 10, "processes without a row to end: %s" % strangers(known))
        for name, (uid, _) in ids.items():
            print("    %-12s uid %s" % (name, uid))
        for job in ("alone", "artifact", "checked", "rendered", "raw-exec", "exec", "csi-local"):
            node.purge(job)


def is_lookup(pid):
    return agent.arguments(pid)[1:2] == ["--lookup"]


def holds(t, pid):
    """Stops exec-helper, and returns whether the child still exists: exec-helper may have killed it at its deadline just before."""
    if not is_lookup(pid):
        return False
    t.hold_root()
    if not is_lookup(pid):
        t.step(t.root)
        return False
    return True


def test_the_child_that_looks_up_a_user_has_the_privileges_of_the_table():
    table = documented()
    with api.Node() as node:
        exec_helper = node.wait_process("exec-helper")
        with trace.Trace(exec_helper, of=is_lookup) as t:
            # A traced look-up may miss its deadline: then the task is started again.
            node.register(api.job("who", driver="exec", User="games", group={"RestartPolicy": crash.RESTART}))
            # It calls alarm() after it has dropped its privileges, and before it calls NSS.
            child = t.until(lambda pid, call: call.nr == ALARM and holds(t, pid), 20)
            compare("exec-helper-lookup", child, table["exec-helper-lookup"], (65534, 65534))
            held = sorted(agent.descriptors(child))
            print("    descriptors of the child: %s" % held)
            case.equal(len(held), 3, "descriptors")
        node.wait_running("who")
        node.purge("who")


def test_the_child_that_looks_up_servers_has_the_privileges_of_the_table():
    table = documented()
    config = case.directory() + "/agent.hcl"
    with open(config, "w", encoding="ascii") as f:
        f.write('client {\n  servers = ["localhost:1"]\n}\n')
    with api.Node(args=["-config", config]) as node:
        heartbeat = node.wait_process("heartbeat")
        child = case.until(lambda: agent.children(heartbeat), 10, "the resolver to start")[0]
        compare("heartbeat-resolver", child, table["heartbeat-resolver"], own_ids(node)["heartbeat"])


def test_the_holder_has_the_privileges_of_the_table():
    with holder.Holder() as h:
        compare("holder", h.process.pid, documented()["holder"], h.ids)


case.run(globals())

#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Jobs of every kind during a power cut, and their state after the boot. Runs in: the guest, as root.

    outlives.py before       prepares everything, makes the last requests, and prints CUT NOW when all are acknowledged
    outlives.py after        prints `as if undisturbed` at the end if all tests pass
"""
import functools
import glob
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "system"))
from lib import api, case, volumes  # noqa: E402

S = 10**9
NOTES = "/var/lib/outlives"  # one file for the notes of each task, and one for values that are needed after the cut
EXAMPLES = os.path.join(os.path.dirname(os.path.dirname(HERE)), "contrib", "examples")
STORE = "/var/lib/store/volumes/volumes"
MARK, WRITERS = "written-by-a-task", 6
PATIENCE = 300  # the guest is emulated, and still boots during the first seconds
RESTART = {"Attempts": 0, "Interval": 10 * S, "Delay": S, "Mode": "fail"}  # a reboot is not a failure of the task
HEALTHY = {"MaxParallel": 1, "MinHealthyTime": S, "HealthyDeadline": 600 * S, "ProgressDeadline": 900 * S}
SERVER = r"""
import http.server, os
http.server.HTTPServer(("", int(os.environ["NOMAD_PORT_http"])), http.server.SimpleHTTPRequestHandler).serve_forever()
"""


class Node(api.Node):
    """The agent that the units run."""

    def __init__(self):  # neither started nor stopped by this test
        self.base, self.data, self.dev, self.args = NOTES, "/var/lib/drover", False, []

    def log(self):
        return subprocess.run(["journalctl", "-u", "drover.service", "-n", "200"], stdout=subprocess.PIPE, check=False,
                              encoding="utf-8").stdout

    def wait_ready(self, seconds=PATIENCE):
        def answers():
            try:
                return self.get("/v1/agent/health")[0] == 200
            except OSError:
                return False
        case.until(answers, seconds, "the agent to answer")


def said(name):
    """Returns the lines of a note."""
    try:
        with open("%s/%s" % (NOTES, name), encoding="utf-8") as f:
            return f.read().split()
    except FileNotFoundError:
        return []


def says(name, then, word="here"):
    """Returns a script that writes a note and syncs it before it continues."""
    return 'echo "%s" >> %s/%s; sync %s/%s; %s' % (word, NOTES, name, NOTES, name, then)


def shell(name, script, **more):
    return api.task(name, "/bin/sh", ["-c", script], **more)


def job(name, script, kind="service", **more):
    made = api.job(name, "/bin/sh", ["-c", script], **more)
    made["Job"]["Type"] = kind
    made["Job"]["TaskGroups"][0]["RestartPolicy"] = RESTART
    return made


def web():
    """Registers a service with a check, a prestart task and a sidecar."""
    made = api.job("web", group={
        "RestartPolicy": RESTART, "Update": {**HEALTHY, "HealthCheck": "checks"},
        "Networks": [{"DynamicPorts": [{"Label": "http"}]}],
        "Services": [{"Name": "web", "PortLabel": "http", "Provider": "nomad", "Checks": [
            {"Name": "answers", "Type": "http", "Path": "/", "Interval": S, "Timeout": 60 * S}]}],
        "Tasks": [shell("early", says("early", "true"), Lifecycle={"Hook": "prestart"}),
                  shell("side", says("side", "exec sleep 100000"), Lifecycle={"Hook": "prestart", "Sidecar": True}),
                  shell("main", says("main", "cd $NOMAD_TASK_DIR; exec python3 -c '%s'" % SERVER))]})
    return made


def rolls(version):
    made = job("rolls", says("rolls", "exec sleep 100000", version), count=3)
    made["Job"]["TaskGroups"][0]["Update"] = {**HEALTHY, "HealthCheck": "task_states"}
    return made


def leaver():
    """Registers a job with a volume that ignores its kill signal, and whose replacement waits."""
    made = volumes.job("leaver", "left", "trap '' INT; %s" % says("leaver", "while :; do sleep 1; done"), KillTimeout=1000 * S)
    group = made["Job"]["TaskGroups"][0]
    group["Tasks"][0]["Driver"] = "raw_exec"
    del group["Tasks"][0]["VolumeMounts"]
    group["Tasks"].append(shell("last", says("last", "true"), Lifecycle={"Hook": "poststop"}))
    return made


def each():
    made = job("each", says("each", "true", "$NOMAD_META_who"), kind="batch")
    made["Job"]["ParameterizedJob"] = {"MetaRequired": ["who"]}
    return made


def deployment(node, name, version):
    found = node.ask("/v1/job/%s/deployment" % name)
    return found and found["JobVersion"] == version and found["Status"]


def wait_deployed(node, name, version):
    case.until(lambda: deployment(node, name, version) == "successful", PATIENCE, "version %d of %s to be deployed" % (version, name))


def written():
    """Returns the lines that a job has written to its volume."""
    lines = 0
    for path in glob.glob(STORE + "/*/log"):
        with open(path, "rb") as f:
            lines += len(f.readlines())
    return lines


def writers():
    """Registers tasks that write to their volumes from their first moment on. A volume that is not mounted would be a directory."""
    made = volumes.job("writers", "w0", "while echo $NOMAD_ALLOC_ID >> /data/%s; do sleep 0.1; done" % MARK)
    group, = made["Job"]["TaskGroups"]
    made["Job"]["TaskGroups"] = [{**group, "Name": "g%d" % i, "RestartPolicy": RESTART, "Volumes": {"data": {
        **group["Volumes"]["data"], "Source": "w%d" % i}}} for i in range(WRITERS)]
    return made


def marked(below):
    return glob.glob(below + "/**/" + MARK, recursive=True)


def example(name):
    with open("%s/%s.json" % (EXAMPLES, name), encoding="utf-8") as f:
        return json.load(f)


def wait_said(name, n):
    case.until(lambda: len(said(name)) >= n, PATIENCE, "%d lines of %s" % (n, name))


def before(node):
    os.makedirs(NOTES)
    node.wait_ready()
    node.register(example("plugin"))
    case.until(lambda: volumes.Node.plugin_is_healthy(node), PATIENCE, "the plugin to be healthy")
    for name in ("demo", "left", *("w%d" % i for i in range(WRITERS))):
        volumes.Node.create(node, name)
    for made in (example("writer"), writers(), web(), rolls("v0"), leaver(), each(), job("done", says("done", "true"), kind="batch"),
                 job("goes-on", says("goes-on", '[ "$(wc -l < %s/goes-on)" = 1 ] || exit 0; exec sleep 100000' % NOTES), kind="batch")):
        node.register(made)
    wait_deployed(node, "web", 0)
    wait_deployed(node, "rolls", 0)
    for name, n in (("leaver", 1), ("goes-on", 1), ("rolls", 3)):
        wait_said(name, n)
    case.until(lambda: [a["ClientStatus"] for a in node.allocs("done")] == ["complete"], PATIENCE, "the batch job to be complete")
    case.until(lambda: written() >= 3, PATIENCE, "lines to be written to the volume")
    case.until(lambda: len(marked(STORE)) == WRITERS, PATIENCE, "all writers to write")
    with open(NOTES + "/allocs", "w", encoding="ascii") as f:
        json.dump({name: [a["ID"] for a in node.allocs(name)] for name in ("web", "done", "goes-on", "leaver", "writers")}, f)
    os.sync()
    node.register(rolls("v1"))
    node.do("DELETE", "/v1/job/leaver")
    node.do("PUT", "/v1/job/each/dispatch", {"Meta": {"who": "dispatched"}})
    node.register(job("late", says("late", "exec sleep 100000")))
    print("CUT NOW", flush=True)


# --- after the boot ---

def same_alloc(node, name, remembered):
    case.equal([a["ID"] for a in node.allocs(name)], remembered[name], "allocations of " + name)
    return node.ask("/v1/allocation/" + remembered[name][0])


def test_the_service_is_back(node, remembered):
    """It is the same alloc, since nothing failed. The prestart task has not run again."""
    def passes():
        found = node.ask("/v1/client/allocation/%s/checks" % remembered["web"][0]) or {}
        return [c["Status"] for c in found.values()] == ["success"]
    wait_said("main", 2)
    case.until(passes, PATIENCE, "the check to pass")
    alloc = same_alloc(node, "web", remembered)
    case.equal([len(said(name)) for name in ("early", "side", "main")], [1, 2, 2], "starts")
    case.equal([s["AllocID"] for s in node.ask("/v1/service/web")], remembered["web"], "allocs of the service")
    case.equal((deployment(node, "web", 0), alloc["DeploymentStatus"]["Healthy"]), ("successful", True))
    told = [e["DisplayMessage"] for e in alloc["TaskStates"]["main"]["Events"] if e["Type"] == "Terminated"]
    case.contains(" ".join(told), "the machine was rebooted")


def test_the_batch_jobs(node, remembered):
    """One had ended and does not run again; the other had not, and continues."""
    case.until(lambda: same_alloc(node, "goes-on", remembered)["ClientStatus"] == "complete", PATIENCE, "the end of goes-on")
    case.equal((len(said("goes-on")), said("done")), (2, ["here"]), "starts")
    case.equal(same_alloc(node, "done", remembered)["ClientStatus"], "complete")


def test_the_stop_is_finished(node, remembered):
    """The stopped task is not started again, its replacement runs, and its volume is free."""
    case.until(lambda: same_alloc(node, "leaver", remembered)["ClientStatus"] == "complete", PATIENCE, "the end of leaver")
    case.equal((len(said("leaver")), len(said("last"))), (1, 1), "starts")
    case.until(lambda: node.request("DELETE", "/v1/volume/csi/left/delete").status == 200, PATIENCE, "the volume to be free")


def test_the_deployment_goes_on(node, _remembered):
    wait_deployed(node, "rolls", 1)
    case.equal(sorted(a["JobVersion"] for a in node.wait_running("rolls", 3)), [1, 1, 1], "versions")


def test_what_was_asked_for_last(node, _remembered):
    wait_said("late", 1)
    node.wait_running("late")
    case.until(lambda: [j["Status"] for j in node.ask("/v1/jobs", prefix="each/")] == ["dead"], PATIENCE, "the end of the job")
    case.equal(set(said("each")), {"dispatched"}, "the payload of the child")


def test_the_volume(node, _remembered):
    """Its writer has found the earlier data."""
    def found():
        lines = [line.split() for a in node.allocs("writer") for line in node.logs(a, "write").decode().splitlines()]
        return [int(line[1]) for line in lines if line[:1] == ["found"] and line[1] != "0"]
    lines = case.until(found, PATIENCE, "the writer of the volume")
    case.until(lambda: written() > lines[0] >= 3, PATIENCE, "more lines than %s" % lines)


def test_no_task_has_written_beside_its_volume(node, remembered):
    """Each writer continues on its volume. The file system of the data directory, seen without what is mounted on it, has none of
    their files."""
    sizes = {path: os.path.getsize(path) for path in marked(STORE)}
    case.equal(len(sizes), WRITERS, "volumes of the writers")
    case.until(lambda: all(os.path.getsize(path) > size for path, size in sizes.items()), PATIENCE, "all writers to go on")
    case.equal(sorted(a["ID"] for a in node.allocs("writers")), sorted(remembered["writers"]), "allocations of the writers")
    below = "/run/below"
    os.mkdir(below)
    subprocess.run(["mount", "--bind", "/", below], check=True)
    case.equal(marked(below + node.data), [], "files on the root disk")
    case.equal(len(marked(below + STORE)), WRITERS, "files that the bind mount shows")
    subprocess.run(["umount", below], check=True)


def test_nothing_else_is_left(node, _remembered):
    r = subprocess.run(["drover", "leaks"], stdout=subprocess.PIPE, check=False, encoding="utf-8")
    case.equal((r.returncode, r.stdout), (0, "no leaks\n"), "drover leaks")
    for name in ("writer", "writers", "web", "rolls", "leaver", "each", "done", "goes-on", "late", "csi-local"):
        node.purge(name, PATIENCE)


def main():
    node = Node()
    if sys.argv[1] == "before":
        try:
            before(node)
        except AssertionError:
            print(node.log(), flush=True)
            raise
        return
    node.wait_ready()
    with open(NOTES + "/allocs", encoding="ascii") as f:
        remembered = json.load(f)
    tests = {name: functools.partial(fn, node, remembered) for name, fn in globals().items() if name.startswith("test_")}
    del sys.argv[1]  # arguments that case.run() would take as names of tests
    try:
        case.run(tests)
    except SystemExit as e:
        print(node.log() if e.code else "as if undisturbed: %d tests" % len(tests), flush=True)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""A process that crashes leaves no core dump: it would have the variables, tokens and outputs that the process worked on."""
import os
import resource
import signal

from lib import agent, api, case, trace

MARK = "Zq7paC0reDump"
TEXT = '{{ with nomadVar "nomad/jobs/secret" }}{{ .x }}{{ end }}'


def cores(at):
    return [name for name in os.listdir(at) if name.startswith("core")]


def leaves_core():
    """Crashes a process that may leave a core, and returns whether it did where this test looks."""
    where = case.directory()
    child = os.fork()
    if child == 0:
        os.chdir(where)
        os.kill(os.getpid(), signal.SIGSEGV)
        os._exit(1)
    return os.WCOREDUMP(os.waitpid(child, 0)[1]) and cores(where) != []


def crash(pid, what):
    """Crashes a process of the agent, once it has dropped its privileges, and looks where it would leave its core."""
    case.until(lambda: trace.status(pid)["CapBnd"] != trace.status(os.getpid())["CapBnd"] or trace.status(pid)["CapEff"] != trace.status(pid)["CapBnd"], 30, what + " to begin")
    at = os.open("/proc/%d/cwd" % pid, os.O_RDONLY | os.O_DIRECTORY)
    before = cores(at)
    os.kill(pid, signal.SIGSEGV)
    agent.wait_gone([pid], 30)
    case.equal(cores(at), before, "cores of " + what)
    os.close(at)


def executors():
    return [int(pid) for pid in os.listdir("/proc") if pid.isdigit() and (agent.arguments(int(pid)) or [""])[0] == "drover-executor"]


def start_all(driver):
    """Starts a task with a secret, and every helper that knows one."""
    node.register(api.job("secret", "/bin/sh", ["-c", "cat $NOMAD_SECRETS_DIR/v; exec sleep 1000"], driver=driver,
                          Templates=[{"EmbeddedTmpl": TEXT, "DestPath": "secrets/v"}]))
    node.wait_said(node.wait_running("secret")[0], MARK.encode())
    node.register(api.job("artifact", Artifacts=[{"GetterSource": "http://127.0.0.1:1/x"}]))
    node.do("POST", "/v1/jobs/parse", {"JobHCL": 'job "j" {\n}'})
    for name in ("fetcher", "job-parser", "template-renderer"):
        node.wait_process(name)


def test_no_crash_leaves_a_core():
    if not leaves_core():
        case.skip("this machine puts cores elsewhere, or makes none")
    node.do("PUT", "/v1/var/nomad/jobs/secret", {"Path": "nomad/jobs/secret", "Items": {"x": MARK}})
    for driver in ("exec", "raw_exec"):
        start_all(driver)
        found = executors()
        case.equal(len(found) > 0, True, "executors")
        for pid in found:
            # Of a process that leaves no core, the files in /proc belong to root.
            case.equal((trace.status(pid)["Uid"].split()[0] != "0", os.stat("/proc/%d/environ" % pid).st_uid), (True, 0), "executor of " + driver)
            if driver == "raw_exec":  # another one is process 1 of a namespace, which no such signal reaches
                crash(pid, "an executor of " + driver)
        for name, pid in sorted(node.processes().items()):
            if name == "supervisor":
                continue
            crash(pid, name)
            case.until(lambda: node.request("GET", "/v1/agent/self").status == 200, 30, "the agent")
        crash(node.wait_process("supervisor"), "supervisor")
        case.until(lambda: node.request("GET", "/v1/agent/self").status == 200, 30, "the agent")
        for job in ("artifact", "secret"):
            node.purge(job)


resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
with api.Node() as node:
    case.run(globals())

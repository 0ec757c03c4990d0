# SPDX-License-Identifier: Apache-2.0
"""A process that crashes leaves no core dump: it would have the variables, tokens and outputs that the process worked on. No file has them afterwards."""
import contextlib
import os
import re
import resource
import signal
import subprocess

from lib import agent, api, case, trace, traces

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
    wait_dropped(pid, what)
    at = os.open("/proc/%d/cwd" % pid, os.O_RDONLY | os.O_DIRECTORY)
    before = cores(at)
    os.kill(pid, signal.SIGSEGV)
    agent.wait_gone([pid], 30)
    case.equal(cores(at), before, "cores of " + what)
    os.close(at)


def is_refused(pid, uid):
    """Returns whether a process of this user, with all capabilities of root but SYS_PTRACE if that is root, may not look into another one's memory. Only
    root then may, and nobody gets a core dump of it: the kernel keeps one flag for both (PR_SET_DUMPABLE)."""
    if uid:
        return os.stat("/proc/%d/environ" % pid).st_uid == 0
    return subprocess.run(["setpriv", "--bounding-set", "-sys_ptrace", "readlink", "/proc/%d/exe" % pid], stdout=subprocess.DEVNULL, check=False).returncode != 0


def check_flag(pid, what):
    case.equal(is_refused(pid, int(trace.status(pid)["Uid"].split()[0])), True, what + " is not dumpable")


def test_the_flag_is_visible():
    """The checks below mean something: another process, of root or not, is found dumpable."""
    for words, uid in (([], 0), (["--reuid", "1", "--regid", "1", "--clear-groups"], 1)):
        with subprocess.Popen(["setpriv", *words, "--bounding-set", "-all", "sleep", "1000"]) as other:
            try:
                case.until(lambda: agent.arguments(other.pid)[:1] == ["sleep"], 20, "the program")
                case.equal(is_refused(other.pid, uid), False, "uid %d" % uid)
            finally:
                other.kill()


def executors():
    return [int(pid) for pid in os.listdir("/proc") if pid.isdigit() and (agent.arguments(int(pid)) or [""])[0] == "drover-executor"]


def start_all(driver):
    """Starts a task with a secret and a token, and every helper that knows one."""
    node.register(api.job("secret", "/bin/sh", ["-c", "cat $NOMAD_SECRETS_DIR/v; exec sleep 1000"], driver=driver,
                          Templates=[{"EmbeddedTmpl": TEXT, "DestPath": "secrets/v"}], Identity={"Env": True, "File": True}))
    node.wait_said(node.wait_running("secret")[0], MARK.encode())
    node.register(api.job("artifact", Artifacts=[{"GetterSource": "http://127.0.0.1:1/x"}]))
    node.do("POST", "/v1/jobs/parse", {"JobHCL": 'job "j" {\n}'})
    for name in ("fetcher", "job-parser", "template-renderer"):
        node.wait_process(name)


def wait_dropped(pid, what):
    case.until(lambda: trace.status(pid)["CapBnd"] != trace.status(os.getpid())["CapBnd"] or trace.status(pid)["CapEff"] != trace.status(pid)["CapBnd"], 30, what + " to begin")


def test_no_process_that_knows_secrets_can_leave_a_core():
    """Wherever this machine puts cores: also if they go to a program."""
    node.do("PUT", "/v1/var/nomad/jobs/secret", {"Path": "nomad/jobs/secret", "Items": {"x": MARK}})
    for driver in ("exec", "raw_exec"):
        start_all(driver)
        found = executors()
        case.equal(len(found) > 0, True, "executors")
        for pid in found:
            case.equal(trace.status(pid)["Uid"].split()[0] != "0", True, "executor of " + driver)
            check_flag(pid, "an executor of " + driver)
        for name, pid in sorted(node.processes().items()):
            wait_dropped(pid, name)
            check_flag(pid, name)
        for job in ("artifact", "secret"):
            node.purge(job)


def memory(pid):
    """Returns what a core dump of the process would have: the memory that it can write."""
    found = []
    with open("/proc/%d/maps" % pid, encoding="utf-8") as maps, open("/proc/%d/mem" % pid, "rb") as mem:
        for first, last in re.findall(r"^([0-9a-f]+)-([0-9a-f]+) rw", maps.read(), re.M):
            mem.seek(int(first, 16))
            with contextlib.suppress(OSError):  # not memory
                found.append(mem.read(int(last, 16) - int(first, 16)))
    return b"".join(found)


def test_no_crash_leaves_a_core():
    """The proof by crashes, where cores are files of the directory."""
    if not leaves_core():
        print("    this machine puts cores elsewhere, or makes none: nothing crashes")
        return
    node.do("PUT", "/v1/var/nomad/jobs/secret", {"Path": "nomad/jobs/secret", "Items": {"x": MARK}})
    start_all("raw_exec")
    secrets, = ["%s/alloc/%s/t/secrets" % (node.data, a["ID"]) for a in node.allocs("secret")]
    marks = [MARK.encode(), node.token.encode(), traces.read(secrets + "/nomad_token").split(b".")[-1]]
    case.equal(marks[2] in memory(node.processes()["supervisor"]), True, "whether a core of the supervisor would have the token of the task")
    for pid in executors():
        crash(pid, "an executor")  # one of exec is process 1 of a namespace, which no such signal reaches
    for name, pid in sorted(node.processes().items()):
        if name == "supervisor":
            continue
        crash(pid, name)
        case.until(lambda: node.request("GET", "/v1/agent/self").status == 200, 30, "the agent")
    crash(node.wait_process("supervisor"), "supervisor")
    case.until(lambda: node.request("GET", "/v1/agent/self").status == 200, 30, "the agent")
    # The task shows the variable, so it is in its log.
    found = [text for top in (node.base, "/run", "/tmp", "/dev/shm") for text in traces.in_files(top, marks, but=[secrets, node.data + "/logs"])]
    case.equal(found, [], "files with secrets")
    for job in ("artifact", "secret"):
        node.purge(job)


def test_a_crash_of_the_launcher_leaves_no_core():
    """Its environment has what the fetcher may get. No other process can look into one with all capabilities, so it crashes."""
    pids = list(node.processes().values())
    os.kill(node.pid, signal.SIGSEGV)
    status = os.waitpid(node.pid, 0)[1]
    case.equal((os.WTERMSIG(status), os.WCOREDUMP(status)), (signal.SIGSEGV, False))
    agent.wait_gone(pids, 30)
    node.process.returncode = -signal.SIGSEGV
    node.start()
    node.wait_ready()


resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
with api.Node(args=agent.config_args("acl { enabled = true }\n")) as node:
    node.token = node.do("POST", "/v1/acl/bootstrap")["SecretID"]
    case.run(globals())

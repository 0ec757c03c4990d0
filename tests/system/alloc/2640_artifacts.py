# SPDX-License-Identifier: Apache-2.0
"""Artifacts of a whole agent: where they are, when they are fetched, and what follows when one cannot be."""
import gzip
import io
import os
import signal
import subprocess
import tarfile
import threading

from lib import agent, api, build_dir, case, web

HELLO = b"hello\n"
WAIT = "exec sleep 1000"


def packed():
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as t:
        for name, text, mode in (("tool", b"#!/bin/sh\necho the tool runs\n", 0o755), ("data/a", b"1\n", 0o600)):
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(text), mode
            t.addfile(info, io.BytesIO(text))
    return gzip.compress(out.getvalue())


def late(h):
    """Answers when `go` is set."""
    started.set()
    h.send_response(200)
    h.send_header("Content-Length", "2000000")
    h.end_headers()
    h.wfile.write(b"x" * 1000000)
    h.wfile.flush()
    go.wait()
    h.wfile.write(b"x" * 1000000)


def slow(h):
    """Sends a byte now and then, until `go` is set."""
    h.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
    while not go.wait(0.2):
        h.wfile.write(b"x")
        h.wfile.flush()
    h.close_connection = True


def once(h):
    """Fails at the first request."""
    h.reply(HELLO, 200 if server.count(h.path) > 1 else 404)


go, started = threading.Event(), threading.Event()
FILES = {"/hello.txt": HELLO, "/other.txt": b"other\n", "/tool.tgz": packed(), "/late": late, "/slow": slow, "/big": b"x" * 11000000, "/once": once,
         "/headers": lambda h: h.reply(str(h.headers.get("X-Job")).encode())}


def artifact(path, **more):
    return {"GetterSource": server.url + path, **more}


def job(name, artifacts, script="", **more):
    return api.job(name, "/bin/sh", ["-c", script + WAIT], Artifacts=artifacts, **more)


def task_of(name):
    return node.allocs(name)[-1]["TaskStates"]["t"]


def events(name):
    return [(e["Type"], e["DisplayMessage"]) for e in task_of(name)["Events"]]


def failure(name):
    """Waits until the alloc has failed. Returns the message of the event Failed Artifact Download."""
    node.wait_allocs(name, [(0, "run", "failed")])
    found = [text for kind, text in events(name) if kind == "Failed Artifact Download"]
    case.equal(len(found), 1, "failures in %s" % events(name))
    return found[0]


def runs(name, artifacts, script, said, **more):
    node.register(job(name, artifacts, script, **more))
    case.until(lambda: node.allocs(name) and node.allocs(name)[0]["ClientStatus"] in ("running", "failed"), 30, "a start")
    case.equal([kind for kind, _ in events(name)][-1], "Started", "last of %s" % events(name))
    alloc = node.wait_running(name)[0]
    node.wait_said(alloc, said)
    return alloc


def test_the_fetcher_is_not_started_before_the_first_artifact():
    case.equal("fetcher" in node.processes(), False, "whether the fetcher runs")


def test_a_file_is_in_local_before_the_task_starts():
    for driver in ("exec", "raw_exec"):
        name = "file-" + driver.replace("_", "-")
        runs(name, [artifact("/hello.txt")], "cat local/hello.txt;", HELLO, driver=driver)
        case.equal([kind for kind, _ in events(name)], ["Received", "Task Setup", "Downloading Artifacts", "Started"])
        case.equal(events(name)[2][1], "Client is downloading artifacts")
        node.purge(name)


def test_destinations():
    for dest, path in (("", "local/hello.txt"), ("local/", "local/hello.txt"), ("local/a/b", "local/a/b/hello.txt"), ("/local/x", "local/x/hello.txt"),
                       ("${NOMAD_TASK_DIR}/y", "local/y/hello.txt"), ("new", "new/hello.txt"), (".", "hello.txt"), ("local/../tmp", "tmp/hello.txt"),
                       ("${NOMAD_ALLOC_DIR}/data", "$NOMAD_ALLOC_DIR/data/hello.txt"), ("../alloc/z", "$NOMAD_ALLOC_DIR/z/hello.txt"),
                       ("alloc/w", "$NOMAD_ALLOC_DIR/w/hello.txt"), ("local/${NOMAD_TASK_NAME}", "local/t/hello.txt")):
        for driver in ("exec", "raw_exec"):
            runs("dest", [artifact("/hello.txt", RelativeDest=dest)], 'cat "%s";' % path, HELLO, driver=driver)
            node.purge("dest")
    runs("dest", [artifact("/hello.txt", RelativeDest="local/name", GetterMode="file"), artifact("/other.txt", GetterMode="file")],
         "cat local/name local/other.txt;", HELLO + b"other\n")
    node.purge("dest")
    runs("dest", [artifact("/hello.txt?token=a/b", GetterMode="file")], "ls local;", b"hello.txt\n")
    node.purge("dest")


def test_destinations_that_are_refused():
    for dest in ("../../x", "local/../../../x"):
        node.refused(400, "leads out of the allocation", "POST", "/v1/jobs", job("bad", [artifact("/hello.txt", RelativeDest=dest)]))
    node.refused(400, "mode must be", "POST", "/v1/jobs", job("bad", [artifact("/hello.txt", GetterMode="x")]))
    node.refused(400, "source is missing", "POST", "/v1/jobs", job("bad", [{"GetterSource": ""}]))
    for dest, said in (("${NOMAD_META_up}", "escapes alloc directory"), ("../other/local", "must be in the task's directories"),
                       ("secrets/x", "no artifact can be in secrets/"), ("${NOMAD_SECRETS_DIR}", "no artifact can be in secrets/"),
                       ("../t/private", "no artifact can be in private/")):
        node.register(job("bad", [artifact("/hello.txt", RelativeDest=dest)], Meta={"up": "../../x"}, group={"RestartPolicy": {
            "Attempts": 3, "Interval": 10**12, "Delay": 10**7, "Mode": "fail"}}))
        case.contains(failure("bad"), said)
        case.equal(task_of("bad")["Restarts"], 0, "restarts, which cannot help")
        node.purge("bad")


def test_references_are_replaced():
    where = {"Meta": {"file": "hello"}}
    runs("refs", [artifact("/${NOMAD_META_file}.txt"), artifact("/headers", GetterHeaders={"X-Job": "${NOMAD_JOB_NAME}"}),
                  artifact("/other.txt", GetterOptions={"filename": "${NOMAD_TASK_NAME}.name"})],
         "cat local/hello.txt local/t.name local/headers; echo;", HELLO + b"other\nrefs\n", **where)
    node.purge("refs")


def test_an_archive_and_owners():
    """Files are drover's, so the task cannot change them; with chown they are its user's."""
    look = "local/tool; stat -c %U:%a local/tool local/data/a; echo more 2>/dev/null >>local/data/a && echo written;"
    for driver, user, mine in (("exec", "", b"nobody"), ("raw_exec", "games", b"games"), ("raw_exec", "root", b"root")):
        for chown in (False, True):
            node.register(job("tar", [artifact("/tool.tgz", Chown=chown)], look + " echo end;", driver=driver, User=user))
            alloc = node.wait_running("tar")[0]
            node.wait_said(alloc, b"end\n")
            owner = mine if chown else b"UNKNOWN"
            written = b"written\n" if chown or user == "root" else b""
            case.equal(node.logs(alloc), b"the tool runs\n%s:755\n%s:600\n%send\n" % (owner, owner, written), "%s %s %s" % (driver, user, chown))
            node.purge("tar")


def owners(driver, top):
    """Returns a command that shows names, owners and modes of all below top."""
    return "find %s -mindepth 1 -printf '%%P %%u:%%m\\n' | sort; " % top if driver == "raw_exec" else \
        "for f in $(find %s -mindepth 1 | sort); do stat -c '%%n %%U:%%a' $f; done | sed 's,^%s/,,'; " % (top, top)


def test_owners_in_the_shared_directory():
    """Only what waits for an owner gets one: what other tasks made there stays theirs, and links are not followed."""
    before = "cd $NOMAD_ALLOC_DIR; mkdir -p data/own; echo mine >data/own/f; ln -s /etc/hostname data/l; i=0; " \
        "while [ $i -lt 300 ]; do mkdir d && cd d || exit 1; i=$((i+1)); done; echo deep >f"
    for driver, user, mine in (("exec", "", "nobody"), ("raw_exec", "games", "games"), ("raw_exec", "root", "root")):
        node.register(api.job("shared", tasks=None, group={"Tasks": [
            api.task("before", "/bin/sh", ["-c", before], driver="raw_exec", User="mail", Lifecycle={"Hook": "prestart"}),
            api.task("t", "/bin/sh", ["-c", "cd $NOMAD_ALLOC_DIR/data; " + owners(driver, ".") + "echo more >>x/data/a && echo written; " + WAIT], driver=driver, User=user,
                     Artifacts=[artifact("/tool.tgz", Chown=True, RelativeDest="${NOMAD_ALLOC_DIR}/data/x"), artifact("/hello.txt", Chown=True, RelativeDest="../alloc/data"),
                                artifact("/other.txt", RelativeDest="../alloc/data")])]}))
        alloc = node.wait_running("shared")[0]
        node.wait_said(alloc, b"written\n")
        found = dict(line.rsplit(" ", 1) for line in node.logs(alloc).decode().split("\n") if ":" in line)
        case.equal({k.replace("./", ""): v.split(":")[0] for k, v in found.items()}, {
            "x": mine, "x/tool": mine, "x/data": mine, "x/data/a": mine, "hello.txt": mine, "other.txt": "UNKNOWN" if driver == "exec" else found["other.txt"].split(":")[0],
            "own": "mail", "own/f": "mail", "l": "mail"}, driver + user)
        case.equal(found["other.txt"].split(":")[0] in (mine, "mail"), False, "the owner of what has no chown")
        node.purge("shared")
    two = [api.task(name, "/bin/sh", ["-c", WAIT], driver="raw_exec", User=user, Artifacts=[artifact("/hello.txt", Chown=True, RelativeDest="../alloc/" + name)])
           for name, user in (("t", "games"), ("u", "mail"))]
    node.register(api.job("shared", tasks=None, group={"Tasks": two}))
    case.contains(failure("shared"), 'chown: task "u" has artifacts with chown in the shared directory, too, and another user')
    node.purge("shared")


def test_an_artifact_that_cannot_be_fetched():
    secret = "http://user:secret-1@127.0.0.1:%d/none?token=secret-2" % server.port
    node.register(job("none", [{"GetterSource": secret, "GetterOptions": {"x": "secret-3"}, "GetterHeaders": {"X": "secret-4"}}]))
    shown = "http://127.0.0.1:%d/none" % server.port
    case.equal(failure("none"), 'failed to download artifact "%s": the server answered with status 404' % shown)
    case.equal([kind for kind, _ in events("none")],
               ["Received", "Task Setup", "Downloading Artifacts", "Failed Artifact Download", "Not Restarting"])
    alloc = node.allocs("none")[0]["ID"]
    case.contains(node.drover("alloc", "why", alloc).out, "It could not be set up: failed to download artifact")
    case.contains(node.drover("alloc", "status", alloc).out, "the server answered with status 404")
    case.equal("secret-" in node.log() or "secret-" in node.drover("alloc", "status", "-verbose", alloc).out, False, "secrets in texts")
    node.purge("none")


def test_the_restart_policy_decides_and_what_is_there_is_not_fetched_again():
    before = server.count("/hello.txt")
    policy = {"RestartPolicy": {"Attempts": 3, "Interval": 10**12, "Delay": 10**7, "Mode": "fail"}}
    runs("again", [artifact("/hello.txt"), artifact("/once")], "cat local/hello.txt local/once;", HELLO * 2, group=policy)
    case.equal(task_of("again")["Restarts"], 1)
    case.equal((server.count("/hello.txt") - before, server.count("/once")), (1, 2), "requests")
    # Nor after a restart of the task, or of the supervisor.
    pid = node.ask("/v1/allocation/" + node.allocs("again")[0]["ID"])
    node.drover("alloc", "restart", pid["ID"])
    case.until(lambda: [kind for kind, _ in events("again")][-1] == "Started" and task_of("again")["Restarts"] == 2, 30, "a restart")
    node.replace_supervisor()
    case.until(lambda: node.request("PUT", "/v1/client/allocation/%s/restart" % pid["ID"], {}).status == 200, 30, "the task to be followed again")
    case.until(lambda: task_of("again")["Restarts"] == 3 and task_of("again")["State"] == "running", 30, "a restart")
    case.equal((server.count("/hello.txt") - before, server.count("/once")), (1, 2), "requests")
    node.purge("again")


def test_three_artifacts_are_fetched_at_once():
    seen, most, lock = [0], [0], threading.Lock()

    def slow(h):
        with lock:
            seen[0] += 1
            most[0] = max(most[0], seen[0])
            if seen[0] == 3:
                go.set()
        go.wait(5)
        with lock:
            seen[0] -= 1
        h.reply(HELLO)
    go.clear()
    for i in range(7):
        server.files["/slow%d" % i] = slow
    runs("many", [artifact("/slow%d" % i) for i in range(7)], "ls local;", b"slow6\n")
    case.equal(most[0], 3, "requests at once")
    node.purge("many")


def test_many_tasks_at_once():
    """More than the helpers' workers."""
    server.files["/large"] = b"x" * 3000000
    before = server.count("/large")
    node.register(job("crowd", [artifact("/large"), artifact("/hello.txt")], "wc -c <local/large;", group={"Count": 40}))
    for alloc in node.wait_running("crowd", 40, 60):
        node.wait_said(alloc, b"3000000\n")
    case.equal(server.count("/large") - before, 40, "requests")
    node.purge("crowd")


def test_each_task_gets_its_own_artifact():
    """Many artifacts with the same name at once, of two tasks in each alloc, and twice in each task."""
    def own(h):
        h.reply(h.path.encode() + b"\n")
    names = ["own%d" % i for i in range(12)]
    for name in names:
        for task in "tu":
            for i in range(2):
                server.files["/%s/%s/%d/file" % (name, task, i)] = own

    def task(name, one):
        artifacts = [artifact("/%s/%s/%d/file" % (name, one, i), RelativeDest="local/%d" % i) for i in range(2)]
        return api.task(one, "/bin/sh", ["-c", "cat local/0/file local/1/file; " + WAIT], Artifacts=artifacts)
    for name in names:
        node.register(api.job(name, tasks=None, group={"Tasks": [task(name, one) for one in "tu"]}))
    for name in names:
        alloc = node.wait_running(name, 1, 60)[0]
        for one in "tu":
            node.wait_said(alloc, ("/%s/%s/1/file\n" % (name, one)).encode(), one)  # the alloc runs as soon as one task does
            case.equal(node.logs(alloc, one).decode().splitlines(), ["/%s/%s/%d/file" % (name, one, i) for i in range(2)])
    for name in names:
        node.purge(name)


def test_slow_servers_of_one_job_do_not_delay_another():
    go.clear()
    before = server.count("/late")
    node.register(job("slow", [artifact("/late") for _ in range(3)], group={"Count": 10}))
    case.until(lambda: server.count("/late") - before == 8, 30, "the fetches of a job at once")
    for name in ("quick", "other"):
        runs(name, [artifact("/hello.txt")], "cat local/hello.txt;", HELLO)
    case.equal(server.count("/late") - before, 8, "fetches of the slow job at once")
    go.set()
    node.wait_running("slow", 10, 60)
    case.equal(server.count("/late") - before, 30, "all its fetches")
    for name in ("quick", "other", "slow"):
        node.purge(name)


def test_slow_servers_of_many_jobs_do_not_delay_another_for_ever():
    """They take all places, and each keeps its place for a minute at least."""
    go.clear()
    before = server.count("/slow")
    names = ["slow%d" % i for i in range(6)]
    for name in names:
        node.register(job(name, [artifact("/slow") for _ in range(3)], group={"Count": 3}))
    case.until(lambda: server.count("/slow") - before == 16, 30, "all places to be taken")
    node.register(job("quick", [artifact("/hello.txt")]))
    node.wait_running("quick", 1, 300)
    go.set()  # a task fails when all its fetches have ended

    def failed():
        return [e["DisplayMessage"] for name in names for a in node.allocs(name) for e in a["TaskStates"]["t"]["Events"] if e["Type"] == "Failed Artifact Download"]
    text = 'failed to download artifact "%s/slow": the server sends less than 16 KiB a second, while other artifacts wait' % server.url
    case.until(lambda: text in failed(), 60, "the failure of a slow one")
    for name in ("quick", *names):
        node.purge(name)


def test_a_task_that_is_stopped_ends_its_fetches():
    go.clear()
    started.clear()
    node.register(job("stopped", [artifact("/late")]))
    started.wait(60)
    fetcher = node.wait_process("fetcher")
    case.until(lambda: agent.children(fetcher), 10, "a worker")
    node.purge("stopped")
    case.until(lambda: not agent.children(fetcher), 10, "the worker to end")
    case.until(lambda: os.listdir(node.data + "/alloc/.fetch") == [], 10, "the staging directory to be removed")
    go.set()


def test_a_killed_fetcher_and_a_killed_supervisor():
    for victim in ("fetcher", "supervisor", "file-helper", "the fetcher's worker"):
        go.clear()
        started.clear()
        node.register(job("killed", [artifact("/hello.txt"), artifact("/late")], "wc -c <local/late;"))
        started.wait(60)
        case.equal([kind for kind, _ in events("killed")][-1], "Downloading Artifacts")
        if victim == "supervisor":
            node.replace_supervisor()
        elif victim == "the fetcher's worker":
            os.kill(case.until(lambda: agent.children(node.processes()["fetcher"]), 10, victim)[0], signal.SIGKILL)
        else:
            node.kill(victim, signal.SIGKILL)
        go.set()
        node.wait_said(node.wait_running("killed")[0], b"2000000\n")
        case.equal(task_of("killed")["Restarts"], 0, "restarts after the end of the " + victim)
        node.purge("killed")
        case.until(lambda: os.listdir(node.data + "/alloc/.fetch") == [], 10, "the staging directories to be removed")


def test_the_disk_of_the_group_is_a_limit():
    node.register(job("disk", [artifact("/big")], LogConfig={"MaxFiles": 1, "MaxFileSizeMB": 1}, group={"EphemeralDisk": {"SizeMB": 10}}))
    case.contains(failure("disk"), "the server sends more than the 10485760 bytes that are allowed")
    node.purge("disk")


def test_progress_is_told():
    """By an event, and where the job was started."""
    go.clear()
    path = case.write(case.directory() + "/j.hcl", """
job "slow" {
  group "g" {
    task "t" {
      driver = "raw_exec"
      config {
        command = "/bin/sleep"
        args    = ["1000"]
      }
      artifact {
        source = "%s/late"
      }
    }
  }
}
""" % server.url)
    text = 'Downloading "%s/late": 1.0 of 1.9 MiB' % server.url
    with subprocess.Popen([build_dir() + "/drover", "job", "run", path], env=dict(os.environ, DROVER_ADDR="unix://" + node.socket_path), stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True) as command:
        case.until(lambda: node.request("GET", "/v1/job/slow").status == 200 and node.allocs("slow"), 60, "the job")
        case.until(lambda: ("Downloading Artifacts", text) in events("slow"), 60, "progress")
        case.contains(node.drover("alloc", "why", node.allocs("slow")[0]["ID"]).out, "It waits for 1 of its artifacts.")
        go.set()
        node.wait_running("slow")
        case.contains(command.communicate(timeout=case.LEAST_S)[0], 'task "t": Downloading Artifacts: ' + text)
    node.purge("slow")


def test_job_files_with_artifacts():
    path = case.write(case.directory() + "/j.hcl", '''
job "hcl" {
  type = "batch"
  group "g" {
    task "t" {
      driver = "exec"
      config {
        command = "/bin/cat"
        args    = ["local/x/hello.txt"]
      }
      artifact {
        source      = "%s/hello.txt"
        destination = "local/x"
        options {
          checksum = "md5:b1946ac92492d2347c6235b4d2611184"
        }
      }
    }
  }
}
''' % server.url)
    case.contains(node.drover("job", "run", path).out, 'Downloading Artifacts: Client is downloading artifacts')
    node.wait_allocs("hcl", [(0, "run", "complete")])
    case.equal(node.logs(node.allocs("hcl")[0]), HELLO)
    node.purge("hcl")


def test_a_repository():
    server.files.update({"/r.git" + path: data for path, data in web.repository("of git\n").items()})
    runs("git", [{"GetterSource": "git::" + server.url + "/r.git", "RelativeDest": "local/r", "GetterOptions": {"ref": "main"}}], "cat local/r/a.txt;",
         b"of git\n")
    node.purge("git")


def test_an_idle_fetcher_ends():
    case.until(lambda: "fetcher" not in node.processes(), 120, "the fetcher, which has nothing to do, to end")
    case.equal(node.drover("leaks").out, "no leaks\n")


with web.Server(FILES) as server, api.Node() as node:
    try:
        case.run(globals())
    finally:
        go.set()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the command line program of real servers, which this starts on loopback, at agents' sockets: output, following, and commands inside
tasks. For `make check-nomad NOMAD=path`.

    tests/nomad/check_commands.py PATH [test_…]…"""
import contextlib
import fcntl
import json
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from lib import api, case  # noqa: E402
from lib.cluster import node_of  # noqa: E402
from lib.fake_api import run_command  # noqa: E402
import real  # noqa: E402
from real import BINARY, Server, fetch, sayer, sleeper, tcp_door  # noqa: E402

JOB = """
job "said" {
  group "g" {
    task "t" {
      driver = "raw_exec"
      config {
        command = "/bin/sleep"
        args    = ["1000"]
      }
    }
  }
}
"""
DISPATCHED = """
job "given" {
  type = "batch"
  parameterized {
    meta_optional = ["a"]
  }
  group "g" {
    task "t" {
      driver = "raw_exec"
      config {
        command = "/bin/true"
      }
    }
  }
}
"""


SOURCE = """
variable "text" {}
job "sourced" {
  type = "batch"
  group "g" {
    task "t" {
      driver = "raw_exec"
      config {
        command = "/bin/true"
      }
    }
  }
}
"""
VOLUME = """
id          = "kept"
name        = "kept"
type        = "csi"
plugin_id   = "none"
external_id = "x"
capability {
  access_mode     = "single-node-writer"
  attachment_mode = "file-system"
}
topology_request {
  required {
    topology { segments { rack = "R1" } }
  }
}
"""


def same(found, wanted, where):
    """Checks that the value is as the server shows it; empty members may be left out, as between nodes and servers."""
    if isinstance(found, dict) and isinstance(wanted, dict):
        for key in found.keys() | wanted.keys():
            if key in found or wanted[key]:
                same(found.get(key), wanted.get(key), where + "." + key)
    elif isinstance(found, list) and isinstance(wanted, list) and len(found) == len(wanted):
        for number, pair in enumerate(zip(found, wanted, strict=True)):
            same(*pair, "%s[%d]" % (where, number))
    elif found or wanted:
        case.equal(found, wanted, where)


def test_the_command_of_the_servers_at_the_agents_socket():
    """Forwarded answers are the same as those of the servers."""
    with tcp_door(node) as url:
        command_at(url)


def sources(say, of):
    """The source of a job that the command registers, and of one that drover's command does."""
    path, values = case.directory() + "/file.hcl", {"text": "50% of a+b é"}
    case.write(path, SOURCE)
    say("job", "run", "-detach", "-var", "text=" + values["text"], path)
    shows = not real.older_than(1, 8)
    if shows:
        case.equal(say("job", "inspect", "-hcl", "sourced"), SOURCE + "\n")
    first = of.ask("/v1/job/sourced/submission", version=0)
    case.equal((first["Source"], first["VariableFlags"]), (SOURCE, values))
    case.write(path, SOURCE.replace("/bin/true", "/bin/false"))
    of.drover("job", "run", "-detach", "-var", "text=" + values["text"], path)
    second = of.ask("/v1/job/sourced/submission", version=1)
    case.equal({**second, "Source": first["Source"]}, {**first, "Version": 1, "JobModifyIndex": second["JobModifyIndex"]})
    if shows:
        case.contains(say("job", "inspect", "-hcl", "-version", "1", "sourced"), "/bin/false")
    say("job", "stop", "-purge", "-detach", "sourced")


def volume_files(say, of):
    """The same file, read by the command and by drover's."""
    path = case.directory() + "/file.hcl"
    me = of.ask("/v1/agent/self")["stats"]["client"]["node_id"]
    case.write(path, VOLUME)
    for register in (say, of.drover):
        register("volume", "register", path)
        volume = of.ask("/v1/volume/csi/kept")
        case.equal((volume["ExternalID"], volume["RequestedCapabilities"]),
                   ("x", [{"AccessMode": "single-node-writer", "AttachmentMode": "file-system"}]))
        case.equal(volume["RequestedTopologies"]["Required"], [{"Segments": {"rack": "R1"}}])
        register("volume", "detach", "kept", me)
        say("volume", "deregister", "kept")


def command_at(url):
    say = sayer(url)
    sources(say, node)
    path = case.directory() + "/said.nomad"
    with open(path, "w", encoding="ascii") as f:
        f.write(JOB)
    case.contains(say("job", "run", path), 'finished with status "complete"')
    alloc, = server.wait("said", ["running"])
    case.contains(say("job", "status", "said"), alloc["ID"][:8])
    case.contains(say("job", "inspect", "said"), '"ID": "said"')
    case.contains(say("alloc", "status", alloc["ID"]), "Task started by client")
    case.contains(say("node", "status"), "ready")
    case.contains(say("node", "status", "-self"), alloc["ID"][:8])
    case.contains(say("status", "sai"), alloc["ID"][:8])  # which requests objects by prefix
    me = alloc["NodeID"]
    case.contains(say("node", "meta", "apply", "-node-id", me, "turn=7"), "")
    case.until(lambda: (server.ask("/v1/node/" + me)["Meta"] or {}).get("turn") == "7", 30, "the change to reach the servers")
    case.contains(say("node", "meta", "read", "-node-id", me), "turn = 7")
    say("node", "meta", "apply", "-node-id", me, "-unset", "turn")
    for words, part in ((("namespace", "list"), "default"), (("node", "pool", "list"), "default"), (("service", "list"), ""),
                        (("deployment", "list"), ""), (("volume", "status"), ""), (("plugin", "status"), ""),
                        (("server", "members"), "alive"), (("agent-info",), "client")):
        case.contains(say(*words), part, " ".join(words))
    case.contains(say("eval", "list"), "job-register")
    for shown in ("/v1/allocation/" + alloc["ID"], "/v1/job/said", "/v1/job/said/summary", "/v1/evaluation/" + alloc["EvalID"]):
        same(node.ask(shown), server.ask(shown), shown)
    case.equal(node.request("GET", "/v1/job/none").status, 404)
    case.equal(json.loads(say("var", "list", "-out", "json")), [])
    say("var", "put", "x/y/z", "k=v")
    case.contains(say("var", "get", "-out", "json", "x/y/z"), '"k": "v"')
    case.contains(say("var", "list"), "x/y/z")
    say("var", "purge", "x/y/z")
    case.contains(say("operator", "autopilot", "get-config"), "LastContactThreshold = 200ms")
    say("operator", "autopilot", "set-config", "-last-contact-threshold", "300ms")
    case.contains(say("operator", "autopilot", "get-config"), "LastContactThreshold = 300ms")
    say("operator", "scheduler", "set-config", "-preempt-batch-scheduler=true")
    case.contains(say("operator", "root", "keyring", "list"), "active")
    for words in (("namespace", "apply", "n1"), ("namespace", "delete", "n1"), ("system", "reconcile", "summaries")):
        say(*words)
    with open(path, "w", encoding="ascii") as f:
        f.write(DISPATCHED)
    say("job", "run", path)
    case.contains(say("job", "dispatch", "-detach", "-meta", "a=b", "given"), "Dispatched Job ID")
    say("job", "stop", "-purge", "-detach", "given")
    say("job", "stop", "-purge", "said")


LOCAL = """
job "alone" {
  group "g" {
    update {
      min_healthy_time = "1s"
    }
    network {
      port "p" {}
    }
    service {
      name     = "alone"
      port     = "p"
      provider = "nomad"
    }
    task "t" {
      driver = "raw_exec"
      config {
        command = "/bin/sh"
        args    = ["-c", "echo said; exec sleep 1000"]
      }
    }
  }
}
"""


def test_the_command_of_the_servers_at_an_agent_without_servers():
    """It understands all answers of the embedded server."""
    path = case.directory() + "/alone.nomad"
    with open(path, "w", encoding="ascii") as f:
        f.write(LOCAL)
    newer = () if real.older_than(1, 10) else (
        (("job", "tag", "apply", "-name", "gold", "-version", "1", "alone"), "tagged"),
        (("job", "history", "-p", "-diff-tag", "gold", "alone"), "gold"), (("job", "revert", "-detach", "alone", "gold"), ""),
        (("job", "tag", "unset", "-name", "gold", "alone"), "removed"), (("job", "stop", "alone"), "complete"),
        (("job", "start", "-detach", "alone"), "successful"))
    with api.Node() as alone, tcp_door(alone) as url:
        say, me = sayer(url), alone.ask("/v1/nodes")[0]["ID"]
        sources(say, alone)
        volume_files(say, alone)
        case.contains(say("job", "run", path), "successful")  # waits for the deployment
        alloc, = (a["ID"] for a in alone.wait_running("alone"))
        evaluation, deployment = (alone.ask("/v1/job/alone/" + k)[0]["ID"] for k in ("evaluations", "deployments"))
        for words, part in (
                (("status",), "alone"), (("job", "status", "alone"), alloc[:8]), (("job", "inspect", "alone"), '"ID": "alone"'),
                (("job", "history", "-p", "alone"), "Version"), (("job", "deployments", "alone"), "successful"),
                (("job", "allocs", "alone"), "running"), (("alloc", "status", alloc), "Task started by client"),
                (("alloc", "status", "-verbose", "-stats", alloc), "CPU Stats"), (("alloc", "logs", alloc), "said"),
                (("alloc", "fs", alloc), "alloc/"), (("alloc", "checks", alloc), ""), (("alloc", "exec", alloc, "echo", "in"), "in\n"),
                (("alloc", "signal", "-s", "SIGCONT", alloc), ""), (("alloc", "restart", alloc), ""), (("node", "status"), "ready"),
                (("node", "status", "-self"), "Allocated Resources"), (("node", "status", "-stats", "-verbose", me), "driver.raw_exec"),
                (("eval", "list"), evaluation[:8]), (("eval", "status", evaluation), "complete"),
                (("deployment", "list"), deployment[:8]), (("deployment", "status", deployment), "successful"),
                (("service", "list"), "alone"), (("service", "info", "alone"), alloc[:8]), (("volume", "status"), ""),
                (("plugin", "status"), ""), (("agent-info",), "client"), (("job", "scale", "-detach", "alone", "g", "2"), ""),
                (("job", "revert", "-detach", "alone", "0"), ""), *newer, (("job", "stop", "-purge", "alone"), "complete")):
            case.contains(say(*words), part, " ".join(words))


def drover(*words, code=0):
    """Returns the output of drover's own command, at the socket of the node."""
    done = run_command(words, env={"DROVER_ADDR": "unix://" + node.socket_path})
    case.equal(done.code, code, "drover %s: %s%s" % (" ".join(words), done.out, done.err))
    return done.out + done.err


def test_drovers_own_command_in_a_cluster():
    """Versions, tags, restarts, pages and servers, which the servers answer."""
    def running():
        return case.until(lambda: [a["ID"] for a in server.allocs("own") if (a["DesiredStatus"], a["ClientStatus"]) == ("run", "running")], 60,
                          "an allocation that runs")
    for number in range(2):
        server.run(sleeper("own", Env={"N": str(number)}))
        case.until(lambda n=number: server.ask("/v1/allocation/" + running()[0])["Job"]["Version"] == n, 60, "the version to run")
    case.contains(drover("job", "history", "-p", "own"), '"0" => "1"')
    if not real.older_than(1, 9):
        drover("job", "tag", "apply", "-name", "first", "-version", "0", "own")
        case.contains(drover("job", "history", "own"), "first")
        case.contains(drover("job", "history", "-p", "-diff-tag", "first", "-version", "1", "own"), '"0" => "1"')
        drover("job", "revert", "own", "first")
        case.equal(server.ask("/v1/job/own")["TaskGroups"][0]["Tasks"][0]["Env"], {"N": "0"})
        drover("job", "tag", "unset", "-name", "first", "own")
        case.contains(drover("job", "tag", "unset", "-name", "first", "own", code=1), "not found")
    before, = running()
    case.contains(drover("job", "restart", "own"), "1 of 1 allocation(s) restarted")
    case.equal(server.ask("/v1/allocation/" + before)["TaskStates"]["t"]["Restarts"], 1)
    case.contains(drover("job", "restart", "-reschedule", "own"), "is replaced by")
    drover("job", "stop", "own")
    case.contains(drover("job", "start", "own"), "1 of 1 allocation(s) running")
    index = server.ask("/v1/job/own")["JobModifyIndex"]
    case.contains(drover("job", "scale", "-check-index", str(index + 1), "own", "1", code=1), "has the modify index")
    drover("job", "scale", "-check-index", str(index), "own", "1")
    case.equal(drover("alloc", "logs", "-job", "own"), "")
    case.contains(drover("server", "members"), "alive")
    case.contains(drover("server", "members").splitlines()[1], "true")
    case.contains(drover("node", "config", "-servers"), server.ip)
    case.equal(drover("job", "status", "-quiet", "-filter", 'ID == "own"'), "own\n")
    case.contains(drover("eval", "list", "-per-page", "1", "-job", "own"), "-page-token")
    case.contains(drover("alloc", "status", "-filter", 'ClientStatus == "running" and JobID == "own"'), "own.g[0]")
    case.contains(drover("__complete", "job", "stop", "o"), "own\trunning")
    case.contains(drover("__complete", "job", "restart", "own", "-task", ""), "t\traw_exec")
    server.purge("own")
    server.run(sleeper("each"), Type="system")
    before, = (a["ID"] for a in server.wait("each", ["running"]))
    case.contains(drover("job", "restart", "-reschedule", "each"), "1 of 1 allocation(s) restarted")
    case.equal([a["ID"] == before for a in server.allocs("each") if a["ClientStatus"] == "running"], [False])
    server.purge("each")


def test_commands_inside_tasks():
    """Through the servers, at the agent's socket, after a restart of the supervisor, on a terminal."""
    at = "http://%s:%d" % (server.ip, server.ports[0])
    for driver in ("raw_exec", "exec"):
        server.run(sleeper("into" + driver, driver))
        alloc = server.wait("into" + driver, ["running"])[0]["ID"]
        with tcp_door(node) as url:
            for address in (at, url):
                exec_at(address, alloc)
        node.kill("supervisor")
        node.wait_log("recovered ", 20)
        case.until(lambda a=alloc: exec_in(at, a, ["true"])[0] == 0, 60, "a session of the next supervisor")
        server.purge("into" + driver)


def test_actions_inside_tasks():
    """Through the servers, and at the agent's socket."""
    if real.older_than(1, 7):
        return  # these servers have none
    server.run(sleeper("acting", Actions=[{"Name": "greet", "Command": "sh", "Args": ["-c", "cat; echo in $0; exit 3", "a b"]}]))
    alloc = server.wait("acting", ["running"])[0]["ID"]
    with tcp_door(node) as url:
        for address in ("http://%s:%d" % (server.ip, server.ports[0]), url):
            for words in (("action", "-job", "acting", "-alloc", alloc), ("job", "action", "-job", "acting", "-group", "g", "-task", "t")):
                done = subprocess.run([BINARY, *words, "greet"], input=b"x\n", capture_output=True, check=False, timeout=120,
                                      env={**os.environ, "NOMAD_ADDR": address})
                case.equal((done.returncode, done.stdout, done.stderr), (3, b"x\nin a b\n", b""), address)
    case.equal(node.ask("/v1/job/acting/actions"), server.ask("/v1/job/acting/actions"))
    server.purge("acting")


def exec_in(url, alloc, words, stdin=b"", flags=()):
    """Returns exit code, stdout and stderr."""
    done = subprocess.run([BINARY, "alloc", "exec", *flags, alloc, *words], input=stdin, capture_output=True, check=False,
                          timeout=120, env={**os.environ, "NOMAD_ADDR": url})
    return done.returncode, done.stdout, done.stderr


def exec_at(url, alloc):
    case.equal(exec_in(url, alloc, ["sh", "-c", "read x; echo $x $NOMAD_TASK_NAME; echo bad >&2; exit 7"], b"one\n"),
               (7, b"one t\n", b"bad\n"), url)
    case.equal(exec_in(url, alloc, ["cat"], b"unread", ["-i=false"]), (0, b"", b""), url)
    code, _, err = exec_in(url, alloc, ["no-such-thing"])
    case.equal((code, b"no-such-thing" in err), (127, True), "%s: %r" % (url, err))
    data = os.urandom(1 << 16) * 160
    code, out, err = exec_in(url, alloc, ["cat"], data)
    case.equal((code, out == data, err), (0, True, b""), "10 MB echoed by " + url)
    code, out = exec_on_terminal(url, alloc, ["sh", "-c", SIZED], b"word\r")
    case.equal((code, b":word:" in out), (5, True), "a terminal by %s: %r" % (url, out))
    code, _, err = exec_in(url, alloc, ["true"], flags=["-task", "x"])
    case.equal((code, b"x" in err), (1, True), "an unknown task by %s: %r" % (url, err))
    mark = "mark-%d" % os.getpid()
    script = "trap '' HUP; while :; do echo x; sleep 0.1; done"  # servers notice a disconnected user only when there is output
    client = subprocess.Popen([BINARY, "alloc", "exec", alloc, "sh", "-c", script, mark],
                              stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, env={**os.environ, "NOMAD_ADDR": url})
    case.until(lambda: [p for p in case.pids_with(mark) if p != client.pid], 30, "the command to run")
    client.kill()
    client.wait()
    client.stdin.close()
    case.until(lambda: not case.pids_with(mark), 30, "the end of a command whose client was killed, by " + url)


def follow(url, words, until, cause):
    """Reads the output of a command that follows, until it contains the text; calls cause() after the first output."""
    with subprocess.Popen([BINARY, *words], stdout=subprocess.PIPE, env={**os.environ, "NOMAD_ADDR": url}) as client:
        try:
            said, deadline = b"", case.patience(60)
            while until not in said and deadline > 0:
                if select.select([client.stdout], [], [], 1)[0]:
                    said += os.read(client.stdout.fileno(), 65536)
                    cause()
                deadline -= 1
        finally:
            client.kill()
    case.contains(said, until, " ".join(words))
    return said


def test_logs_and_files_are_followed():
    """Through the servers, and at the agent's socket: existing contents and new ones."""
    server.run(api.job("speaks", "/bin/sh", ["-c", "echo one; while [ ! -e local/go ]; do sleep 0.1; done; echo two; exec sleep 1000"]))
    alloc = server.wait("speaks", ["running"])[0]["ID"]
    local = "%s/alloc/%s/t/local/" % (node.data, alloc)
    with open(local + "grows", "w", encoding="ascii") as f:
        f.write("first\n")

    def more():
        with open(local + "grows", "a", encoding="ascii") as f:
            f.write("more\n")
    with tcp_door(node) as url:
        for number, address in enumerate(("http://%s:%d" % (server.ip, server.ports[0]), url)):
            said = follow(address, ("alloc", "logs", "-f", "-stdout", alloc), b"two\n", lambda: open(local + "go", "a").close())
            case.equal(said, b"one\ntwo\n", address)
            said = follow(address, ("alloc", "fs", "-f", alloc, "t/local/grows"), b"more\n" * (number + 1), more)
            case.equal(said.startswith(b"first\n"), True, said)
    server.purge("speaks")


@contextlib.contextmanager
def another_node(job, **task):
    """Yields (the other node, an alloc of the job on it, the URL of the first node's socket)."""
    with node_of(server, name="far") as far, tcp_door(node) as url:
        far_id = far.ask("/v1/agent/self")["stats"]["client"]["node_id"]
        case.until(lambda: any(n["ID"] == far_id and n["Status"] == "ready" for n in server.ask("/v1/nodes")), 40, "the other node to be ready")
        server.run(api.job(job, group={"Constraints": [{"LTarget": "${node.unique.id}", "RTarget": far_id, "Operand": "="}]}, **task))
        yield far_id, server.wait(job, ["running"])[0]["ID"], url
        server.purge(job)
        case.until(lambda: server.ask("/v1/job/%s/allocations" % job) in ([], None) or
                   all(a["ClientStatus"] == "complete" for a in server.allocs(job)), 40, "the job to end")
    server.do("/v1/node/%s/purge" % far_id)


def read_until(url, part, cause):
    """Reads a streaming answer until it contains the text; calls cause() again and again."""
    with urllib.request.urlopen(url, timeout=60) as answer:
        fd, seen = answer.fileno(), b""
        deadline = case.patience(60)
        while part not in seen and deadline > 0:
            cause()
            if select.select([fd], [], [], 1)[0]:
                seen += answer.read1(65536)
            deadline -= 1
        case.equal(part in seen, True, "%r in %r" % (part, seen[-3000:]))


def test_commands_inside_tasks_of_another_node():
    with another_node("farther", command="/bin/sleep", args=["1000"]) as (_, alloc, url):
        exec_at(url, alloc)


def test_files_logs_and_statistics_of_another_node():
    """Files, logs, statistics and the agent's log, which the servers fetch; and the servers' own events and logs."""
    script = "echo first; echo bad >&2; printf 0123456789 >local/file; exec sleep 1000"
    at_server = "http://%s:%d" % (server.ip, server.ports[0])
    with another_node("files", command="/bin/sh", args=["-c", script]) as (far_id, alloc, url):
        def say(*args):
            return subprocess.run([BINARY, *args], env={**os.environ, "NOMAD_ADDR": url}, check=False, timeout=120,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout.decode()
        case.until(lambda: say("alloc", "logs", alloc) == "first\n", 30, "the log")
        case.equal(say("alloc", "logs", "-stderr", alloc), "bad\n")
        case.until(lambda: say("alloc", "fs", alloc, "t/local/file") == "0123456789", 30, "the file")
        case.contains(say("alloc", "fs", alloc, "t"), "local/")
        case.contains(say("alloc", "fs", "-stat", alloc, "t/local/file"), "10 B")
        for path in ("cat/%s?path=t/local/file", "readat/%s?path=t/local/file&offset=3&limit=4", "ls/%s?path=t/local",
                     "stat/%s?path=t/local/file", "logs/%s?task=t&type=stdout&plain=true", "stream/%s?path=t/local/file&follow=false",
                     "stat/%s?path=none"):
            wanted, found = (fetch(u + "/v1/client/fs/" + path % alloc) for u in (at_server, url))
            if path[:2] in ("ls", "st") and found[0] == 200 and "stream" not in path:
                wanted, found = ((status, json.loads(body)) for status, body in (wanted, found))
            case.equal(found, wanted, path)
        # If the server puts the error into the body of a successful answer.
        for status, path in ((400, "cat/%s?path=none"), (400, "logs/%s?task=x&type=stdout"), (400, "stream/%s?path=t/secrets/x"),
                             (400, "cat/%s"), (400, "readat/%s?path=x"), (400, "logs/x?task=t&type=stdout"), (404, "ls/%s?path=none")):
            case.equal(fetch(url + "/v1/client/fs/" + path.replace("%s", alloc))[0], status, path)
        case.equal(json.loads(fetch(url + "/v1/agent/host?node_id=" + far_id)[1])["AgentID"], far_id)

        def provoke():
            server.do("/v1/client/allocation/%s/signal" % alloc, {"Signal": "SIGCONT", "Task": "t"})
        read_until(url + "/v1/agent/monitor?plain=true&log_level=debug&node_id=" + far_id, b"supervisor:", provoke)
        read_until(url + "/v1/agent/monitor?plain=true&log_level=debug&server_id=leader", b"request complete", provoke)
        if not real.older_than(1, 10):
            case.contains(fetch(url + "/v1/agent/monitor/export?service_name=drover&node_id=" + far_id)[1], b"journalctl")
        read_until(url + "/v1/event/stream?topic=Job:evented", b'"Topic":"Job"', lambda: server.run(sleeper("evented")))
        server.purge("evented")
        case.equal(fetch(url + "/v1/event/stream?topic=a:b:c")[0], 400)


SIZED = "until [ \"$(stty size)\" = '24 80' ]; do sleep 0.1; done; echo sized; read x; echo :$x:; exit 5"


def exec_on_terminal(url, alloc, words, typed):
    """Returns the exit code and the output."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    client = subprocess.Popen([BINARY, "alloc", "exec", alloc, *words], stdin=slave, stdout=slave, stderr=slave,
                              start_new_session=True, env={**os.environ, "NOMAD_ADDR": url},
                              preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
    os.close(slave)
    shown = b""
    with contextlib.suppress(OSError):  # EIO: the command has ended
        while select.select([master], [], [], 60)[0]:
            shown += os.read(master, 65536)
            if b"sized" in shown and typed:
                os.write(master, typed)
                typed = b""
    os.close(master)
    return client.wait(60), shown


with Server(more="enable_debug = true  # or nobody is told of hosts") as server, node_of(server) as node:
    server.wait_ready()
    case.run(globals())

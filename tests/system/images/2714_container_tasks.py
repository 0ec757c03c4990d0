# SPDX-License-Identifier: Apache-2.0
# takes: 60
"""What drover does for every task, done for containers by the same code: limits, usage, templates, artifacts, services, volumes, the lease, the
record of the exit, and a restart of the agent."""
import os
import re
import shutil
import signal
import socket
import subprocess

from lib import agent, api, case, images, web
from lib.websocket import Exec, Refused

S = 10**9
LIMIT_S = 8
USERS = [images.directory("etc"), images.file("etc/passwd", b"root:x:0:0:root:/root:/bin/sh\nweb:x:1000:1001:web:/home/web:/bin/sh\n"),
         images.file("etc/group", b"root:x:0:\nweb:x:1001:\n")]
IMAGE = images.Image([images.tar(images.busybox("sh", "cat", "dd", "echo", "httpd", "ls", "sleep", "stat", "touch") + USERS)], {"Env": ["PATH=/bin"]})


def container(name, script, group=None, task=None, **config):
    config = {"image": images.name(server, "a:1"), "command": "/bin/sh", "args": ["-c", script], "network_mode": "host", **config}
    made = api.job(name, driver="docker", group=group)
    made["Job"]["TaskGroups"][0]["Tasks"][0].update(Config=config, **(task or {}))
    return made


def once(made):
    made["Job"]["Type"] = "batch"
    made["Job"]["TaskGroups"][0].update(RestartPolicy={"Attempts": 0, "Mode": "fail"}, ReschedulePolicy={"Attempts": 0, "Unlimited": False})
    return made


def state(alloc):
    return node.ask("/v1/allocation/" + alloc["ID"])["TaskStates"]["t"]


def events(alloc):
    return "\n".join("%s: %s" % (e["Type"], e["DisplayMessage"]) for e in state(alloc)["Events"])


def start(made):
    node.register(made)
    return node.wait_running(made["Job"]["ID"], seconds=60)[0]


def pids(alloc):
    """Returns the processes of a task, as the machine sees them."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/environ" % pid, "rb") as f:
                if b"NOMAD_ALLOC_ID=" + alloc["ID"].encode() in f.read().split(b"\0"):
                    found.append(int(pid))
        except OSError:
            pass
    return found


def session(alloc, script):
    """Returns what the script says in a session; None: there can be none yet."""
    try:
        return Exec(node, alloc["ID"], ["/bin/sh", "-c", script]).end()[0].decode()
    except Refused:
        return None


def test_too_much_memory():
    node.register(once(container("memory", "exec dd if=/dev/zero of=/dev/null bs=200M count=1", task={"Resources": {"CPU": 100, "MemoryMB": 32}})))
    alloc = node.wait_allocs("memory", [(0, "run", "failed")], 60)[0]
    case.contains(events(alloc), "OOM Killed", "what ended it")
    node.purge("memory")


def test_usage():
    alloc = start(container("usage", "while :; do :; done", task={"Resources": {"CPU": 100, "MemoryMB": 64}}))

    def burns():
        found = node.ask("/v1/client/allocation/%s/stats" % alloc["ID"])["Tasks"]["t"]["ResourceUsage"]
        return found["CpuStats"]["Percent"] > 1 and found["MemoryStats"]["RSS"] > 0
    case.until(burns, 30, "its usage")
    node.purge("usage")


def test_templates_change_a_running_container():
    node.do("PUT", "/v1/var/nomad/jobs/changes", {"Path": "nomad/jobs/changes", "Items": {"v": "first"}})
    value = '{{ with nomadVar "nomad/jobs/changes" }}{{ .v }}{{ end }}'
    script = "trap 'echo \"got $(cat /local/v)\"' HUP; echo \"is $(cat /local/v) $V\"; stat -c %u /local/v; while :; do sleep 0.1; done"
    templates = [{"EmbeddedTmpl": value, "DestPath": "local/v", "ChangeMode": "signal", "ChangeSignal": "SIGHUP", "Splay": 0},
                 {"EmbeddedTmpl": "V=by-env", "DestPath": "secrets/env", "Envvars": True, "ChangeMode": "noop"}]
    alloc = start(container("changes", script, task={"Templates": templates, "User": "web"}))
    node.wait_said(alloc, b"is first by-env\n")
    node.do("PUT", "/v1/var/nomad/jobs/changes", {"Path": "nomad/jobs/changes", "Items": {"v": "second"}})
    node.wait_said(alloc, b"got second\n")
    node.purge("changes")


def can_connect(pid, user):
    """Returns whether this user of the task's container may open the socket of its API."""
    words = ["nsenter", "--user", "--setuid", str(user), "--setgid", str(user), "-t", str(pid), "python3", "-c",
             "import socket; socket.socket(socket.AF_UNIX).connect('api.sock')"]
    r = subprocess.run(words, cwd="/proc/%d/root/secrets" % pid, stderr=subprocess.PIPE, check=False)
    return r.returncode == 0 or (case.contains(r.stderr.decode(), "PermissionError"), False)[1]


def test_identities_and_the_task_api():
    """A token in the environment and in a file, and the socket of the agent's API: all the user's of the image."""
    script = "stat -c '%n %F %a %U' /secrets/api.sock /secrets/nomad_token; [ $(cat /secrets/nomad_token) = $NOMAD_TOKEN ] && echo same; echo $NOMAD_UNIX_ADDR; echo end; exec sleep 1000"
    alloc = start(container("whoami", script, task={"Identity": {"Name": "default", "Env": True, "File": True}, "User": "web"}))
    node.wait_said(alloc, b"end\n")
    case.equal(node.logs(alloc).decode(), "/secrets/api.sock socket 600 web\n/secrets/nomad_token regular file 600 web\nsame\nunix:///secrets/api.sock\nend\n")
    pid, token = pids(alloc)[0], session(alloc, "cat /secrets/nomad_token")
    with socket.socket(socket.AF_UNIX) as s:
        s.connect("/proc/%d/root/secrets/api.sock" % pid)
        s.sendall(b"GET /v1/var/nomad/jobs/whoami HTTP/1.0\r\nX-Nomad-Token: %s\r\n\r\n" % token.encode())
        answer = b"".join(iter(lambda: s.recv(65536), b""))
    case.contains(answer.decode(), "404 ")
    node.do("PUT", "/v1/var/nomad/jobs/whoami", {"Path": "nomad/jobs/whoami", "Items": {"v": "for this job"}})
    with socket.socket(socket.AF_UNIX) as s:
        s.connect("/proc/%d/root/secrets/api.sock" % pid)
        s.sendall(b"GET /v1/var/nomad/jobs/whoami HTTP/1.0\r\nX-Nomad-Token: %s\r\n\r\n" % token.encode())
        answer = b"".join(iter(lambda: s.recv(65536), b""))
    case.contains(answer.decode(), "for this job")
    case.equal([can_connect(pid, user) for user in (1000, 0, 1001)], [True, True, False], "the user of the task, root of the container, another user of it")
    node.purge("whoami")


def test_artifacts_belong_to_root_of_the_container():
    """As with Docker, so that what starts as root can change them."""
    source = "http://127.0.0.1:%d/blob" % server.port
    alloc = start(container("artifact", "cat /local/d/blob; stat -c ' %U' /local/d/blob; echo more >>/local/d/blob && touch /local/d/new && echo changed; exec sleep 1000",
                            task={"Artifacts": [{"GetterSource": source, "RelativeDest": "local/d"}]}))
    node.wait_said(alloc, b"fetched root\nchanged\n")
    node.purge("artifact")


def test_files_and_sessions():
    alloc = start(container("looks", "touch /inside; echo from the container > /local/f; echo done; exec sleep 1000"))
    node.wait_said(alloc, b"done\n")
    said = node.request("GET", "/v1/client/fs/cat/%s?path=t/local/f" % alloc["ID"])
    case.equal(said.text, "from the container\n")
    case.equal(session(alloc, "ls /inside"), "/inside\n")
    node.purge("looks")


def test_the_kill_timeout():
    alloc = start(container("deaf", "trap '' TERM; echo deaf; while :; do sleep 0.1; done", task={"KillTimeout": S}))
    node.wait_said(alloc, b"deaf\n")
    node.do("DELETE", "/v1/job/deaf")
    node.wait_allocs("deaf", [(0, "stop", "complete")], 60)
    case.contains(events(alloc), "Exit Code: 137, Signal: 9")
    case.equal(pids(alloc), [])
    node.purge("deaf")


def test_exits_while_the_agent_is_dead():
    """The record has the exit of each, whatever was alive."""
    scripts = {"code": "exit 7", "signal": "kill -9 $$; sleep 1000", "zero": "exit 0"}
    made = {name: once(container(name, "until [ -e /alloc/data/go ]; do sleep 0.1; done; " + script)) for name, script in scripts.items()}
    allocs = {name: start(job) for name, job in made.items()}
    dead = [node.pid] + [pid for name, pid in node.processes().items() if name != "executor"]
    for pid in dead:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # it ended with the launcher
    node.wait()
    agent.wait_gone(dead)
    for alloc in allocs.values():
        case.write("%s/alloc/%s/alloc/data/go" % (node.data, alloc["ID"]), "")
    case.until(lambda: not any(map(pids, (allocs["code"], allocs["zero"]))), 20, "the end of two")
    os.kill(next(pid for pid in pids(allocs["signal"])), signal.SIGKILL)
    case.until(lambda: not pids(allocs["signal"]), 20, "the end of the third")
    node.start()
    node.wait_ready()
    for name, end in (("code", "Exit Code: 7"), ("signal", "Exit Code: 137, Signal: 9"), ("zero", "Exit Code: 0")):
        case.until(lambda a=allocs[name]: state(a)["State"] == "dead", 60, "the end of " + name)
        case.contains(events(allocs[name]), end)
        case.equal(state(allocs[name])["Failed"], name != "zero")
        node.purge(name)


def test_the_lease_ends_a_container_when_only_executors_are_left():
    alloc = start(container("leased", "trap '' TERM; while :; do sleep 0.1; done", group={"StopAfterClientDisconnect": LIMIT_S * S}, task={"KillTimeout": S}))
    free = start(container("free", "exec sleep 1000"))
    kept = pids(free)
    dead = [node.pid] + [pid for name, pid in node.processes().items() if name != "executor"]
    for pid in dead:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    node.wait()
    agent.wait_gone(dead)
    case.until(lambda: not pids(alloc), 30, "the end of the container with a lease")
    case.equal(pids(free), kept, "the container without one")
    node.start()
    node.wait_ready()
    case.until(lambda: node.ask("/v1/allocation/" + alloc["ID"])["ClientStatus"] == "lost", 30, "the news")
    case.contains(events(alloc), "stop_after_client_disconnect of %ds passed" % LIMIT_S)
    node.wait_running("free")
    case.equal(pids(free), kept)
    case.until(lambda: session(free, "echo here") == "here\n", 20, "a session after the restart")
    for name in ("leased", "free"):
        node.purge(name)
    case.equal(node.ask("/v1/agent/leaks"), [])


def test_a_host_volume():
    """Files keep their ids, and the start is refused where another user of the machine could use what the container's root leaves there."""
    script = "touch /v/by-root; cat /v/there; stat -c '%u %n' /v/there; echo end; exec sleep 1000"
    volumes = {"VolumeMounts": [{"Volume": "v", "Destination": "/v"}]}
    for source, why in (("closed", None), ("open", "must be read-only in a container")):
        made = container("volume", script, group={"Volumes": {"v": {"Name": "v", "Type": "host", "Source": source}}}, task=volumes)
        if why:
            node.register(once(made))
            alloc = node.wait_allocs("volume", [(0, "run", "failed")], 60)[0]
            case.contains(events(alloc), why)
        else:
            alloc = start(made)
            node.wait_said(alloc, b"end\n")
            case.equal(node.logs(alloc).decode(), "of the host\n999 /v/there\nend\n")
            case.equal(os.stat(PLACE + "/closed/v/by-root").st_uid, 0)
        node.purge("volume")


if not shutil.which("skopeo") or not os.path.exists("/bin/busybox"):
    case.skip("no skopeo, or no busybox-static")
PLACE = case.directory()
for kind, bits in (("closed", 0o700), ("open", 0o755)):
    os.makedirs("%s/%s/v" % (PLACE, kind))
    os.chmod("%s/%s" % (PLACE, kind), bits)
case.write(PLACE + "/closed/v/there", "of the host\n")
os.chown(PLACE + "/closed/v/there", 999, 999)
CLIENT = "\n".join('host_volume "%s" { path = "%s/%s/v" }' % (kind, PLACE, kind) for kind in ("closed", "open"))
with web.Server({**images.registry({"a": {"1": IMAGE}}), "/blob": b"fetched"}) as server, api.Node(agent.config_args("client {\n%s\n}\n" % CLIENT)) as node:
    case.run(globals())

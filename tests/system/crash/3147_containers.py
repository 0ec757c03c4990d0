# SPDX-License-Identifier: Apache-2.0
# timeout: 600
# takes: 34
"""A process dies at each step of the set-up of a container and of its network. In the end the container runs, every failure has its sentence, its
neighbour noticed nothing, and nothing is left."""
import contextlib
import glob
import os
import random
import shutil
import signal
import subprocess
import time

from lib import agent, case
from lib.crash_page import page
from lib import crash, images, networks, web

IMAGE = images.Image([images.tar(images.busybox("sh", "sleep", "httpd")), images.tar([images.directory("www"), images.file("www/index.html", b"served")])],
                     {"Env": ["PATH=/bin"]})
OTHER = images.Image([images.tar(images.busybox("sh", "sleep")), images.tar([images.file("big", os.urandom(3000000))])], {"Env": ["PATH=/bin"]})
OF_EXECUTOR = [p for p in crash.POINTS if p.startswith("EXE_") and p != "EXE_TASK_BEFORE_RENAME"]
# In the child of a container, whose executor waits for it meanwhile.
OF_CHILD = [p for p in OF_EXECUTOR if p.startswith(("EXE_CONTAINER_", "EXE_TASK_")) and
            not p.startswith(("EXE_CONTAINER_AFTER_IDS", "EXE_CONTAINER_AFTER_LAYERS", "EXE_CONTAINER_AFTER_CLONE", "EXE_CONTAINER_AFTER_MAPS"))]
OF_NETWORK = [p for p in crash.POINTS if p.startswith("NET_")]
MAKING = ("NET_AFTER_NAME", "NET_BEFORE_RENAME", "NET_AFTER_ADD", "NET_AFTER_MAKE", "NET_AFTER_NAMESPACE")
# DROVER_STORM_S: how long processes are killed at random.
SECONDS = int(os.environ.get("DROVER_STORM_S", "15"))
VICTIMS = ("exec-helper", "network-helper", "image-fetcher", "image-unpacker", "supervisor", "launcher")
died = {}


def job(name, script, mode, port=None, **task):
    made = networks.job(name, mode, ports=[{"Label": "http", "Value": port, "To": 80}] if port else (), driver="docker", KillTimeout=10**7, **task)
    group = made["Job"]["TaskGroups"][0]
    group["RestartPolicy"] = crash.RESTART
    group["Tasks"][0]["Config"] = {"image": images.name(server, "a:1"), "command": "/bin/sh", "args": ["-c", script],
                                   **({} if mode == "bridge" else {"network_mode": "none"})}
    return made


def of_containers():
    """Returns the processes whose user namespace is one of a container, or of its mounts."""
    found = []
    for path in glob.glob("/proc/[0-9]*/uid_map"):
        try:
            with open(path, encoding="ascii") as f:
                words = f.readline().split()
        except OSError:
            continue
        if words and images.ID_FIRST < int(words[1]) < 2**31:  # the image-unpacker has ID_FIRST itself
            found.append(path)
    return sorted(found)


def machine():
    """Returns what the machine has of containers and of networks."""
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        mounts = sorted(line.split(" ")[4] for line in f)
    return {"processes": of_containers(), "objects": sorted(crash.left(node)), "mounts": mounts, "links": networks.links("veth"), "addresses": networks.addresses(),
            "rules": sorted(line for line in networks.run("iptables-save").splitlines() if line.startswith("-A")),
            "namespaces": networks.names(node), "layers": images.layers(node), "leaks": crash.leaks(node)}


def served():
    r = subprocess.run(["curl", "-sS", "-m", "10", "--noproxy", "*", "http://%s/" % neighbour[1]], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return r.stdout == b"served"


def find_neighbour():
    alloc = node.wait_running("neighbour", seconds=60)[0]
    state = node.ask("/v1/allocation/" + alloc["ID"])
    return alloc["ID"], state["NetworkStatus"]["Address"], state["TaskStates"]["t"]["Restarts"]


def check_nothing_left():
    def same():
        seen.clear()
        seen.update(machine())
        return seen == before
    seen = {}
    try:
        case.until(same, 30, "nothing to be left")
    except AssertionError as e:
        raise AssertionError("%s: %s" % (e, {k: (v, before[k]) for k, v in seen.items() if v != before[k]})) from None
    case.equal((find_neighbour(), served()), (neighbour, True), "the neighbour")
    case.equal(crash.unexplained(node), [], "objects without a row")


def failures():
    """Returns the sentences of the failed starts of the victim."""
    return [e["DisplayMessage"] for alloc in node.allocs("victim") for task in (node.ask("/v1/allocation/" + alloc["ID"])["TaskStates"] or {}).values()
            for e in task["Events"] if e["Type"] in ("Driver Failure", "Terminated", "Setup Failure", "Not Restarting")]


def cycle(point, mode, kill=None, skip=0):
    """Starts and stops a container while a process dies at the point; or waits there until kill() has ended others."""
    what = "%s after %d passes%s" % (point, skip, " with its parent" if kill else "")
    making = point not in OF_NETWORK or point in MAKING
    script = "exit 0" if point in ("EXE_BEFORE_EXIT_RECORD", "EXE_AFTER_EXIT_RECORD") else "exec sleep 1000"

    def wait_reached():
        if not kill:
            case.until(lambda: not page.armed(), 30, "a process to die")
            return
        case.until(page.holds, 30, "a process to wait at the point")
        kill()
        page.disarm()
    try:
        if making:
            page.arm(point, skip, hold=bool(kill))
        node.register(job("victim", script, mode, 18080 if mode == "bridge" else None))
        if making:
            wait_reached()
        if script == "exit 0":
            case.until(failures, 30, "the end of the task")
        elif making and mode == "bridge" and not kill:
            case.until(lambda: [a["ClientStatus"] for a in node.allocs("victim")] in (["failed"], ["running"]), 60, "the victim to run or to fail")
        else:
            node.wait_running("victim", seconds=60)
        if point == "NET_AFTER_CHECK":
            page.arm(point, skip, hold=bool(kill))
            node.replace_supervisor()
            wait_reached()
            node.wait_running("victim", seconds=60)
        said = failures()
        if [a["ClientStatus"] for a in node.allocs("victim")] == ["failed"]:
            case.contains("\n".join(said), "failed to configure networking for alloc: make the network: worker process")
        case.equal([s for s in said if len(s) < 10], [], "failures without a sentence")
        sentences.update(said)
        if not making and point != "NET_AFTER_CHECK":
            page.arm(point, skip, hold=bool(kill))
        node.request("DELETE", "/v1/job/victim?purge=true")
        if not making and point != "NET_AFTER_CHECK":
            wait_reached()
        node.purge("victim", 60)
        check_nothing_left()
        died[point] = died.get(point, 0) + 1
    except AssertionError as e:
        raise AssertionError("%s: %s" % (what, e)) from None
    finally:
        page.disarm()
        node.purge("victim", 60)


def kill_executor():
    for pid in set(crash.executors(node)) - executors:
        os.kill(pid, signal.SIGKILL)


def kill_network_helper():
    agent.wait_gone([node.kill("network-helper")])


def test_the_executor_of_a_container_dies_at_each_step():
    for point in OF_EXECUTOR:
        cycle(point, "none")


def test_the_executor_dies_while_its_child_is_at_each_step():
    for point in OF_CHILD:
        cycle(point, "none", kill_executor)


def test_a_worker_of_network_helper_dies_at_each_step():
    for point in OF_NETWORK:
        cycle(point, "bridge")
    for point in ("NET_AFTER_ADD", "NET_AFTER_DEL"):
        cycle(point, "bridge", skip=2)  # after the firewall plugin, in ADD


def test_network_helper_dies_at_each_step():
    for point in OF_NETWORK:
        cycle(point, "bridge", kill_network_helper)


def strike(victim):
    """Kills a process, if it runs at this moment."""
    if victim == "launcher":
        node.process.kill()
        node.wait()
        node.revive()
        return
    with contextlib.suppress(ProcessLookupError, KeyError):
        os.kill(node.processes()[victim], signal.SIGKILL)


def test_processes_die_at_any_time():
    """While the victim's image is pulled, and while the victim starts, runs, restarts and stops."""
    choice, end, cycles = random.Random(16), time.monotonic() + SECONDS, 0
    name = images.name(server, "b:1")
    while time.monotonic() < end:
        cycles += 1
        victim, step = choice.choice(VICTIMS), choice.randrange(4)
        made = job("victim", "exec sleep 1000", "bridge", 18080)
        made["Job"]["TaskGroups"][0]["Tasks"][0]["Config"]["image"] = name

        def at(number):
            if number == step:
                time.sleep(choice.random() * 0.5)
                strike(victim)
        try:
            node.request("DELETE", "/v1/agent/images?name=" + name)
            node.register(made)
            at(0)

            def settled():
                node.revive()
                return [a["ClientStatus"] for a in node.allocs("victim")] in (["running"], ["failed"])
            case.until(settled, 60, "the victim to run or to fail")
            alloc = node.allocs("victim")[0]
            at(1)
            if alloc["ClientStatus"] == "running":
                node.request("PUT", "/v1/client/allocation/%s/restart" % alloc["ID"], {"TaskName": "t"})
                at(2)
            else:
                case.equal(bool(failures()), True, "the reason of the failure")
            node.request("DELETE", "/v1/job/victim?purge=true")
            at(3)
            node.purge("victim", 60)
            node.request("DELETE", "/v1/agent/images?name=" + name)
            check_nothing_left()
        except AssertionError as e:
            raise AssertionError("kill of %s at step %d of cycle %d: %s" % (victim, step, cycles, e)) from None
        finally:
            node.purge("victim", 60)
    print("    %d cycles" % cycles)


def test_each_point_was_reached():
    print("    sentences: %s" % sorted(sentences))
    for point, times in died.items():
        print("    %-28s killed %3d times" % (point, times))
    case.equal([p for p in OF_EXECUTOR + OF_NETWORK if not died.get(p)], [], "points at which no process died")


if not shutil.which("skopeo") or not os.path.exists("/bin/busybox"):
    case.skip("no skopeo, or no busybox-static")
networks.need()
sentences = set()
with web.Server(images.registry({"a": {"1": IMAGE}, "b": {"1": OTHER}})) as server, crash.Node(env=page.env) as node:
    node.register(job("neighbour", "exec httpd -f -p 80 -h /www", "bridge", 18081))
    neighbour = find_neighbour()
    case.until(served, 30, "the neighbour to answer")
    executors = set(crash.executors(node))
    case.until(lambda: crash.leaks(node) == [], 10, "no leaks")
    case.until(lambda: len(of_containers()) == 1, 10, "the neighbour's process for the request to end")
    before = machine()
    case.run(globals())

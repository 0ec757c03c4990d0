#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reserved cores: the task runs on them, and no other task of the agent does until it ends."""
import os
import re
import subprocess

from lib import agent, api, binary, case, crash, helper

WORDS = 'echo "cores=$NOMAD_CPU_CORES limit=$NOMAD_CPU_LIMIT"; grep Cpus_allowed_list /proc/self/status; echo "pid=$$"; exec sleep 1000'


def numbers(text):
    """Returns {0, 1, 5} for "0-1,5"."""
    found = set()
    for part in text.split(","):
        low, _, high = part.partition("-")
        found.update(range(int(low), int(high or low) + 1))
    return found


def allowed(status):
    return numbers(re.search(r"Cpus_allowed_list:\s*(\S+)", status).group(1))


def of_process(pid):
    with open("/proc/%d/status" % pid, encoding="ascii") as f:
        return allowed(f.read())


def start(node, name, driver, **resources):
    """Runs an alloc of one task with these resources. Returns it and the output of the task."""
    node.register(api.job(name, "/bin/sh", ["-c", WORDS], driver=driver, Resources={"MemoryMB": 20, **resources}))
    alloc = node.wait_running(name, seconds=60)[0]
    node.wait_said(alloc, b"pid=")
    return alloc, node.logs(alloc).decode()


def own_cores(node, alloc):
    return node.ask("/v1/allocation/" + alloc["ID"])["AllocatedResources"]["Tasks"]["t"]["Cpu"]


def cpus(node):
    return node.ask("/v1/node/" + node.ask("/v1/nodes")[0]["ID"])["NodeResources"]["Cpu"]


def drover(node, *words):
    done = subprocess.run([binary("drover"), *words], env={**os.environ, "DROVER_ADDR": "unix://" + node.socket_path},
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=case.LEAST_S, check=False)
    case.equal((done.returncode, done.stderr), (0, ""))
    return done.stdout


def test_reserved_cores_are_removed_from_the_shared_ones_until_the_task_ends():
    with api.Node() as node:
        all_cores = set(cpus(node)["ReservableCpuCores"] or [])
        if len(all_cores) < 2:
            case.skip("there is only one core, or no cpuset controller")
        case.equal(all_cores, os.sched_getaffinity(0), "cores that can be reserved")
        shares = int(re.search(r"pid=(\d+)", start(node, "shares", "raw_exec", CPU=20)[1]).group(1))
        case.equal(of_process(shares), all_cores, "cores of a task while none is reserved")

        owner, said = start(node, "owner", "exec", Cores=1)
        given = own_cores(node, owner)
        own = set(given["ReservedCores"])
        case.equal((len(own), own <= all_cores), (1, True), "the cores of the alloc")
        case.equal(said.splitlines()[0], "cores=%d limit=%d" % (min(own), given["CpuShares"]))
        case.equal(given["CpuShares"], cpus(node)["CpuShares"] // len(all_cores), "MHz of one core")
        case.equal(allowed(said), own, "cores of the owner")
        case.equal(of_process(shares), all_cores - own, "cores of the task that ran before")
        late = start(node, "late", "exec", CPU=20)[1]
        case.equal(allowed(late), all_cores - own, "cores of a task that started later")
        inside = drover(node, "alloc", "exec", owner["ID"], "grep", "Cpus_allowed_list", "/proc/self/status")
        case.equal(allowed(inside), own, "cores of a session in the owner's task")

        # A job that requests all cores cannot be placed.
        answer = node.register(api.job("wide", driver="raw_exec", Resources={"MemoryMB": 20, "Cores": len(all_cores)}))
        wants = node.wait_evaluation(answer["EvalID"], seconds=60)["FailedTGAllocs"]["g"]
        case.equal((wants["DimensionExhausted"], node.allocs("wide")), ({"cores": 1}, []))
        node.purge("wide")

        # Cores stay reserved while no supervisor runs, and the next supervisor knows it.
        old = node.processes()["supervisor"]
        node.kill("supervisor")
        node.wait_process("supervisor", old, 60)
        node.wait_ready(60)
        node.wait_running("owner", seconds=60)
        case.equal((of_process(shares), set(own_cores(node, owner)["ReservedCores"])), (all_cores - own, own))
        node.purge("owner")
        case.until(lambda: of_process(shares) == all_cores, 60, "the core to be shared again")
        again = own_cores(node, start(node, "again", "raw_exec", Cores=1)[0])["ReservedCores"]
        case.equal(of_process(shares), all_cores - set(again), "cores of the other task with another owner")


def test_the_shared_cores_are_the_only_cgroup_files_that_the_supervisor_may_write():
    with crash.Node() as node:
        name, found = "drover-" + crash.instance(node), set()
        for at in (path + "/" + name for path in helper.cgroup_trees().values()):
            for place, _, files in os.walk(at):
                for path in (os.path.join(place, f) for f in (".", *files)):
                    st = os.stat(path)
                    if st.st_mode & 0o2 or (st.st_gid and st.st_mode & 0o20):
                        found.add(os.path.relpath(path, at))
        case.equal(found - {"exec/cpuset.cpus", "tasks/cpuset.cpus"}, set())
        case.equal(bool(found), cpus(node)["ReservableCpuCores"] is not None, "whether there are such files")


def test_cores_reserved_in_the_configuration_are_not_given_to_tasks():
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        case.skip("there is only one core")
    with api.Node(agent.config_args('client { reserved { cores = "%d" } }\n' % cores[0])) as node:
        if cpus(node)["ReservableCpuCores"] is None:
            case.skip("no cpuset controller")
        case.equal(cpus(node)["ReservableCpuCores"], cores[1:])
        given = own_cores(node, start(node, "owner", "exec", Cores=1)[0])
        case.equal(given["ReservedCores"], [cores[1]], "the reserved core, since the first is kept for the machine")
        answer = node.register(api.job("more", Resources={"MemoryMB": 20, "Cores": len(cores) - 1}))
        wants = node.wait_evaluation(answer["EvalID"], seconds=60)["FailedTGAllocs"]["g"]
        case.equal(wants["DimensionExhausted"], {"cores": 1})


case.run(globals())

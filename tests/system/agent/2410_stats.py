#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The resource usage of the machine, of an alloc and of its tasks, in the API and the command."""
import os
import subprocess

from lib import api, case
import lib

BURN = "x = b'x' * (50 << 20)\nwhile True: pass"
MB = 1 << 20


def burner(name, driver):
    made = api.job(name, "/usr/bin/python3", ["-c", BURN], driver=driver)
    made["Job"]["TaskGroups"][0]["Tasks"][0]["Resources"] = {"CPU": 100, "MemoryMB": 200}
    return made


def usage(alloc, **query):
    return node.ask("/v1/client/allocation/%s/stats" % alloc, **query)


def burns(driver):
    name = "burn-" + driver
    node.register(burner(name, driver))
    alloc = node.wait_running(name)[0]["ID"]

    def both():
        found = usage(alloc)
        task = found["Tasks"]["t"]["ResourceUsage"]
        return task["CpuStats"]["Percent"] > 1 and task["MemoryStats"]["RSS"] > 50 * MB and \
            all(one["CpuStats"]["Percent"] > 1 for one in found["Tasks"]["t"]["Pids"].values()) and found
    found = case.until(both, 20, "the usage of a task that uses CPU and memory")
    task = found["Tasks"]["t"]
    cpu, memory = task["ResourceUsage"]["CpuStats"], task["ResourceUsage"]["MemoryStats"]
    # At most one core. The clocks are read one after the other, so the values do not match exactly.
    case.equal(cpu["Percent"] < 1000 and cpu["UserMode"] <= 2 * cpu["Percent"] + 20, True, str(cpu))
    case.equal(cpu["TotalTicks"] > 0, True, "ticks")
    case.equal(memory["RSS"] < 200 * MB, True, str(memory))
    case.equal({"User Mode", "System Mode", "Percent"} <= set(cpu["Measured"]), True, str(cpu))
    case.contains(memory["Measured"], "RSS")
    if "Usage" in memory["Measured"]:
        case.equal(memory["Usage"] >= memory["RSS"], True, str(memory))
        case.equal(memory["MaxUsage"] >= memory["Usage"] or "Max Usage" not in memory["Measured"], True, str(memory))
    case.equal(found["ResourceUsage"]["MemoryStats"]["RSS"], memory["RSS"], "the usage of the alloc, which has one task")
    case.equal(found["Timestamp"], task["Timestamp"])
    (pid, one), = task["Pids"].items()
    with open("/proc/%s/cmdline" % pid) as f:
        case.contains(f.read(), "50 << 20")
    case.equal(one["MemoryStats"]["RSS"] > 50 * MB and one["CpuStats"]["Percent"] > 1, True, str(one))
    case.equal(list(usage(alloc, task="t")["Tasks"]), ["t"])
    command = subprocess.run([lib.binary("drover"), "alloc", "stats", alloc], capture_output=True, text=True,
                             env={**os.environ, "DROVER_ADDR": "unix://" + node.socket_path}, timeout=case.LEAST_S)
    case.equal(command.returncode, 0, command.stderr)
    case.contains(command.stdout, "MiB")
    node.purge(name)


def test_the_usage_of_a_raw_exec_task():
    burns("raw_exec")


def test_the_usage_of_an_exec_task():
    burns("exec")


def test_an_ended_task_uses_nothing_and_an_unknown_one_is_an_error():
    node.register(api.job("short", "/bin/false", ()))
    alloc = case.until(lambda: [a for a in node.allocs("short") if a["ClientStatus"] == "failed"], 20, "the end of the alloc")[0]["ID"]
    found = usage(alloc)
    case.equal((found["Tasks"], found["ResourceUsage"]["MemoryStats"]["RSS"]), ({}, 0))
    path = "/v1/client/allocation/%s/stats"
    node.refused(404, "Unknown allocation", "GET", path % "00000000-0000-0000-0000-000000000000")
    node.refused(404, "Unknown allocation", "GET", path % "x")
    node.refused(404, 'has no task "other"', "GET", path % alloc + "?task=other")
    node.purge("short")


def uptime():
    with open("/proc/uptime") as f:
        return float(f.read().split()[0])


def test_the_usage_of_the_host():
    before = uptime()
    # The kernel's idle time may decrease by a tick: then the values are read again.
    found = case.until(lambda: (f := node.ask("/v1/client/stats")) and
                       all(95 < core["Idle"] + core["TotalPercent"] < 105 for core in f["CPU"]) and f, 10, "shares with a sum of 100 %")
    with open("/proc/meminfo") as f:
        total = int(f.readline().split()[1]) * 1024
    case.equal(found["Memory"]["Total"], total)
    case.equal(0 < found["Memory"]["Used"] < total and 0 < found["Memory"]["Available"] <= total, True, "memory")
    case.equal([c["CPU"] for c in found["CPU"]], ["cpu%d" % n for n in sorted(os.sched_getaffinity(0))])
    case.equal(before - 1 <= found["Uptime"] <= uptime() + 1, True, "uptime")
    space = os.statvfs(node.data)
    case.equal(found["AllocDirStats"]["Size"], space.f_blocks * space.f_frsize)
    case.equal(len({d["Device"] for d in found["DiskStats"]}), len(found["DiskStats"]), "whether each device is listed once")
    command = subprocess.run([lib.binary("drover"), "node", "status", "-self", "-stats"], capture_output=True,
                             text=True, env={**os.environ, "DROVER_ADDR": "unix://" + node.socket_path}, timeout=case.LEAST_S)
    case.equal(command.returncode, 0, command.stderr)
    case.contains(command.stdout, "cpu0")
    node.refused(404, "Unknown node", "GET", "/v1/client/stats?node_id=00000000-0000-0000-0000-000000000000")


def test_the_facts_of_the_host():
    """Facts for debugging. They contain no variable of the launcher's environment."""
    found = node.ask("/v1/agent/host")
    case.contains(found["OS"], " ".join((os.uname().release, os.uname().sysname)))
    with open("/etc/hosts", encoding="utf-8") as f:
        case.equal(found["Hosts"], f.read())
    case.equal([(a["type"] in ("IPv4", "IPv6"), a["address"] == a["string"] != "") for a in found["Network"]],
               [(True, True)] * len(found["Network"]))
    case.equal(found["Network"] != [], True, "addresses")
    case.equal("SECRET" in str(found), False, str(found["Environment"]))
    for place, disk in found["Disk"].items():
        space = os.statvfs(place)
        case.equal(disk["DiskMB"], space.f_blocks * space.f_frsize >> 20, place)
    whole = node.ask("/v1/agent/host", node_id=node.ask("/v1/agent/self")["stats"]["client"]["node_id"])
    case.equal((whole["AgentID"], whole["HostData"]["OS"]), (node.ask("/v1/nodes")[0]["ID"], found["OS"]))
    node.refused(404, "Unknown node", "GET", "/v1/agent/host?node_id=00000000-0000-0000-0000-000000000000")
    node.refused(400, "no servers", "GET", "/v1/agent/host?server_id=leader")


with api.Node(env={"SECRET_WORD": "SECRET"}) as node:
    case.run(globals())

# SPDX-License-Identifier: Apache-2.0
"""Networks of allocations: an agent in a network namespace with the real CNI plugins.

    need()  # skips where this machine cannot have them
    with api.Node() as node:
        node.register(job("web", "bridge", dynamic=[{"Label": "http", "To": 8080}]))
"""
import atexit
import ctypes
import json
import os
import subprocess

from . import api, case, helper

PLUGINS = "/usr/lib/cni"
libc = ctypes.CDLL(None, use_errno=True)


def run(*words, code=0):
    """Returns the output of a command that must end with this code."""
    r = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    case.equal(r.returncode, code, "%s: %s" % (" ".join(words), r.stdout.decode()))
    return r.stdout.decode()


def works(*words):
    return subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0


def need():
    """Prepares this test's network namespace, which tests/run made, and a /run of its own, where plugins keep addresses. The node's address is
    198.18.0.1, and the default route makes it so."""
    if not os.access(PLUGINS + "/bridge", os.X_OK):
        case.skip("the CNI plugins are not installed: apt-get install containernetworking-plugins")
    for name in ("iptables", "ip"):
        if not works(name, "-V"):
            case.skip("%s is not installed" % name)
    if libc.mount(b"tmpfs", b"/run", b"tmpfs", 0, b"mode=755") < 0:
        raise OSError(ctypes.get_errno(), "mount /run")
    atexit.register(libc.umount2, b"/run", 2)  # MNT_DETACH
    if not works("ip", "link", "add", "probe", "type", "bridge"):
        case.skip("this kernel has no bridges")
    run("ip", "link", "del", "probe")
    if not works("iptables", "-w", "-t", "nat", "-A", "POSTROUTING", "-m", "comment", "--comment", "probe", "-j", "MASQUERADE"):
        case.skip("this kernel has no netfilter with nat")
    run("iptables", "-w", "-t", "nat", "-F", "POSTROUTING")
    run("ip", "link", "set", "lo", "up")
    run("ip", "link", "add", "uplink", "type", "veth", "peer", "name", "uplink2")
    run("ip", "addr", "add", "198.18.0.1/24", "dev", "uplink")
    run("ip", "link", "set", "uplink", "up")
    run("ip", "link", "set", "uplink2", "up")
    run("ip", "route", "add", "default", "via", "198.18.0.254")


def ask_resolved():
    """Has this test's machine ask systemd-resolved, which asks 192.0.2.53 itself. Call it before the agent starts, after need()."""
    os.makedirs("/run/systemd/resolve")
    case.write("/run/systemd/resolve/resolv.conf", "nameserver 192.0.2.53\n")
    helper.mount(case.write(case.directory() + "/resolv.conf", "search a.example\nnameserver 127.0.0.53\n"), "/etc/resolv.conf", None, 4096)  # MS_BIND
    atexit.register(helper.umount, "/etc/resolv.conf", 2)


def job(name, mode, command="/bin/sleep", args=("1000",), ports=(), dynamic=(), network=None, services=(), **more):
    return api.job(name, command, args, group={"Services": list(services), "Networks": [
        {"Mode": mode, "ReservedPorts": list(ports), "DynamicPorts": list(dynamic), **(network or {})}]}, **more)


def waiting_job(name, mode, path, **more):
    """A job whose task fails and then waits for its restart. After a restart of the agent it runs at once, and goes on if the path exists."""
    made = job(name, mode, "/bin/sh", ["-c", "[ -e %s ] && exec sleep 1000; exit 1" % path], **more)
    made["Job"]["TaskGroups"][0]["RestartPolicy"] = {"Attempts": 1, "Interval": 7200 * 10**9, "Delay": 3000 * 10**9, "Mode": "fail"}
    return made


def wait_waiting(node, name):
    """Returns its allocation."""
    return case.until(lambda: [a for a in node.ask("/v1/allocations") if a["JobID"] == name and "Restarting" in json.dumps(a["TaskStates"])],
                      60, "a task that waits for its restart")[0]


def links(kind):
    """Returns the names of this namespace's links of a kind: "bridge" or "veth"."""
    text = subprocess.run(["ip", "-j", "-d", "link"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout
    return sorted(one["ifname"] for one in json.loads(text) if one.get("linkinfo", {}).get("info_kind") == kind)


def addresses():
    """Returns the addresses that host-local has given out on the bridge."""
    try:
        return sorted(n for n in os.listdir("/run/cni/nomad") if n[0].isdigit())
    except FileNotFoundError:
        return []


def rules(of):
    """Returns the lines of iptables-save that name an allocation or an address."""
    return [line for line in run("iptables-save").splitlines() if of in line]


def names(node):
    """Returns what the agent keeps of networks."""
    return sorted(os.listdir(node.data + "/rt/netns"))

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# timeout: 600
# takes: 60
"""network-helper and the supervisor are killed before and after each plugin of a network, in ADD and in DEL: nothing is left, and others are unharmed.

cni_path begins with scripts that run the plugins of Debian, and wait where the test wants to kill a process."""
import itertools
import os
import socket

from lib import agent, api, case, networks

SCRIPT = """#!/bin/sh
input=$(cat)
stop() {
  [ "$(cat %(dir)s/want 2>/dev/null)" = "$CNI_COMMAND %(name)s $1" ] || return
  mv %(dir)s/want %(dir)s/reached
  while [ -e %(dir)s/reached ]; do sleep 0.02; done
}
stop before
output=$(printf '%%s' "$input" | %(plugins)s/%(name)s)
code=$?
stop after
[ "$CNI_COMMAND" = CHECK ] && echo "$CNI_CONTAINERID %(name)s $code" >>%(dir)s/checked
printf '%%s' "$output"
exit $code
"""
NAMES = ("loopback", "bridge", "host-local", "firewall", "portmap")
PORT = [{"Label": "http", "Value": 18080, "To": 80}]


def make_plugins():
    base = case.directory()
    for name in NAMES:
        case.write(base + "/" + name, SCRIPT % {"dir": base, "name": name, "plugins": networks.PLUGINS})
        os.chmod(base + "/" + name, 0o755)
    return base


def state():
    return networks.addresses(), len(networks.links("veth")), networks.rules("--dport"), networks.rules("172.26."), sorted(os.listdir(node.data + "/rt/netns"))


def reach(command, name, when, act):
    """Has the scripts wait at this step of what act() begins."""
    case.write(plugins + "/want", "%s %s %s" % (command, name, when))
    act()
    case.until(lambda: os.path.exists(plugins + "/reached"), 30, "%s of %s" % (command, name))


def kill(process, at_once):
    """at_once: the plugin may go on before the process has ended."""
    if process == "supervisor":
        node.replace_supervisor()
    else:
        pid = node.kill(process)
        if not at_once:
            agent.wait_gone([pid])
    os.unlink(plugins + "/reached")


def answers():
    try:
        with socket.create_connection((bystander[1], 8080), 10):
            return True
    except OSError:
        return False


def check_bystander():
    alloc = node.wait_running("bystander")[0]
    case.equal((alloc["ID"], node.ask("/v1/allocation/" + alloc["ID"])["NetworkStatus"]["Address"]), bystander)
    case.equal(answers(), True, "the bystander answers")


def check_nothing_left(what):
    case.until(lambda: state() == before, 60, "nothing to be left after " + what)
    case.equal([one for one in node.ask("/v1/agent/leaks") if one["Kind"] in ("network", "unknown")], [], what)
    check_bystander()


def try_step(process, command, name, when, at_once=False):
    what = "kill of %s %s %s of %s" % (process, when, command, name)

    def register():
        node.register(networks.job("victim", "bridge", ports=PORT))

    def stop():
        node.do("DELETE", "/v1/job/victim?purge=true")
    if command == "ADD":
        reach(command, name, when, register)
        kill(process, at_once)
        alloc = node.wait_running("victim", seconds=90)[0]
    else:
        register()
        alloc = node.wait_running("victim", seconds=60)[0]
        reach(command, name, when, stop)
        kill(process, at_once)
    if command == "ADD":
        # It has one address, its port is published once, and one namespace is its own.
        address = node.ask("/v1/allocation/" + alloc["ID"])["NetworkStatus"]["Address"]
        case.equal(networks.addresses(), sorted([address, bystander[1]]), what)
        case.equal(len([r for r in networks.rules("--dport 18080") if "-p tcp" in r and "DNAT" in r]), 1, what)
        node.purge("victim", 90)
    case.until(lambda: not [a for a in node.ask("/v1/allocations") if a["JobID"] == "victim"], 90, "the end of the victim: " + what)
    check_nothing_left(what)


def test_network_helper_is_killed_at_each_step_of_add():
    for name, when in (*((name, "before") for name in NAMES), ("host-local", "after"), ("portmap", "after")):
        try_step("network-helper", "ADD", name, when)


def test_network_helper_is_killed_at_each_step_of_del():
    for name, when in (*((name, "before") for name in NAMES), ("host-local", "after"), ("loopback", "after")):
        try_step("network-helper", "DEL", name, when)
    # And at any moment between the end of the last plugin and that of the namespace.
    for _ in range(3):
        try_step("network-helper", "DEL", "loopback", "after", at_once=True)


def checked(alloc):
    with open(plugins + "/checked", encoding="ascii") as f:
        return "".join(line for line in f if line.startswith(alloc["ID"]))


def replace():
    node.replace_supervisor()


def test_a_process_is_killed_during_a_check():
    """The network stays as it is, and no fault is reported."""
    node.register(networks.job("victim", "bridge", ports=PORT))
    alloc = node.wait_running("victim", seconds=60)[0]
    made = node.ask("/v1/allocation/" + alloc["ID"])["NetworkStatus"]
    for process, name, when in (("network-helper", "bridge", "before"), ("network-helper", "host-local", "after"), ("supervisor", "firewall", "before")):
        reach("CHECK", name, when, replace)
        open(plugins + "/checked", "w", encoding="ascii").close()
        kill(process, False)
        case.until(lambda: checked(alloc).endswith("firewall 0\n"), 60, "the end of its check after a kill of %s %s %s" % (process, when, name))
        case.equal(node.wait_running("victim")[0]["ID"], alloc["ID"])
    now = node.ask("/v1/allocation/" + alloc["ID"])
    case.equal((now["NetworkStatus"], "failed its check" in str(now["TaskStates"])), (made, False))
    node.purge("victim", 90)
    check_nothing_left("kills in CHECK")


def test_a_process_is_killed_while_a_broken_network_is_made_again():
    for process, command, name, when in (("network-helper", "DEL", "portmap", "after"), ("supervisor", "DEL", "bridge", "before"), ("network-helper", "ADD", "bridge", "before"),
                                         ("supervisor", "ADD", "portmap", "after")):
        node.register(networks.waiting_job("victim", "bridge", plugins + "/go", ports=PORT))
        alloc = networks.wait_waiting(node, "victim")
        case.write(plugins + "/go", "")
        inside = "%s/rt/netns/%s" % (node.data, alloc["ID"])
        networks.run("iptables", "-w", "-D", "CNI-FORWARD", "1")  # to the administrator's chain: the plugin firewall misses it
        reach(command, name, when, replace)
        kill(process, False)

        def whole(alloc=alloc, inside=inside):
            status = node.ask("/v1/allocation/" + alloc["ID"])["NetworkStatus"]
            return os.path.exists(inside) and networks.addresses() == sorted([status["Address"], bystander[1]]) and \
                status["Address"] in networks.run("nsenter", "--net=" + inside, "ip", "-o", "-4", "addr") and networks.rules("--dport 18080")
        case.until(whole, 60, "a new network after a kill of %s %s %s of %s" % (process, when, command, name))
        node.wait_running("victim")
        node.purge("victim", 90)
        os.unlink(plugins + "/go")
        check_nothing_left("a kill while a network is made again")


def test_the_supervisor_is_killed_during_add_and_del():
    for command, when in itertools.product(("ADD", "DEL"), ("before", "after")):
        try_step("supervisor", command, "bridge", when)


networks.need()
plugins = make_plugins()
with api.Node(agent.config_args('client {\n cni_path = "%s:%s"\n}\n' % (plugins, networks.PLUGINS))) as node:
    node.register(networks.job("bystander", "bridge", "/usr/bin/python3", ["-m", "http.server", "8080"]))
    first = node.wait_running("bystander", seconds=60)[0]
    bystander = (first["ID"], node.ask("/v1/allocation/" + first["ID"])["NetworkStatus"]["Address"])
    case.until(answers, 60, "the bystander to answer")
    before = state()
    case.run(globals())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# timeout: 600
"""Networks of allocations, with the CNI plugins of Debian: bridge and none, with the drivers exec and raw_exec; their ports, and what is left of them."""
import json
import os
import re
import shutil
import subprocess

from lib import agent, api, build_dir, case, exposition, helper, networks

SHOW = "ip -o -4 addr show; env | grep ^NOMAD_ | sort; echo end; sleep 1000"
SERVE = '''import http.server, os
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(("served " + self.client_address[0]).encode())
http.server.HTTPServer(("0.0.0.0", int(os.environ["NOMAD_PORT_http"])), H).serve_forever()'''


def get(address, port):
    r = subprocess.run(["curl", "-sS", "-m", "10", "--noproxy", "*", "http://%s:%d/" % (address, port)], stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT, check=False)
    return r.stdout.decode()


def said(node, alloc):
    node.wait_said(alloc, b"end\n")
    return node.logs(alloc).decode()


def metric(name):
    return exposition.parse(node.request("GET", "/v1/metrics?format=prometheus").text)["drover_networks_" + name].one()


def host_namespace():
    return os.stat("/proc/self/ns/net").st_ino


def test_each_driver_joins_the_network_of_its_allocation():
    seen = set()
    for driver in ("raw-exec", "exec"):
        node.register(networks.job("web-" + driver, "bridge", "/bin/sh", ["-c", SHOW], driver=driver.replace("-", "_"),
                                   ports=[{"Label": "static", "Value": 18080}], dynamic=[{"Label": "http", "To": 8080}, {"Label": "same", "To": -1}]))
        alloc = node.wait_running("web-" + driver)[0]
        text = said(node, alloc)
        address = re.search(r"eth0 +inet (172\.26\.\d+\.\d+)/20", text).group(1)
        seen.add(address)
        env = dict(line.split("=", 1) for line in text.splitlines() if line.startswith("NOMAD_"))
        case.equal((env["NOMAD_PORT_http"], env["NOMAD_ALLOC_PORT_http"], env["NOMAD_IP_http"]), ("8080", "8080", "198.18.0.1"))
        case.equal((env["NOMAD_ALLOC_IP_http"], env["NOMAD_ALLOC_INTERFACE_http"], env["NOMAD_ALLOC_ADDR_http"]), (address, "eth0", address + ":8080"))
        case.equal((env["NOMAD_PORT_static"], env["NOMAD_HOST_PORT_static"], env["NOMAD_ADDR_static"]), ("18080", "18080", "198.18.0.1:18080"))
        case.equal(env["NOMAD_PORT_same"], env["NOMAD_HOST_PORT_same"])
        whole = node.ask("/v1/allocation/" + alloc["ID"])
        case.equal((whole["NetworkStatus"]["Address"], whole["NetworkStatus"]["InterfaceName"]), (address, "eth0"))
        case.contains(node.drover("alloc", "status", alloc["ID"]).out, address)
        inside = node.drover("alloc", "exec", alloc["ID"], "/bin/sh", "-c", "readlink /proc/self/ns/net; ip -o addr show dev lo").out
        case.equal("[%d]" % host_namespace() in inside, False, "a session is in the host's network: " + inside)
        case.contains(inside, "127.0.0.1/8")
        node.purge("web-" + driver)
    case.equal(len(seen), 2, "host-local gives the next address")


def test_name_servers():
    """A dns block replaces what it names; without one, only a network of its own needs another file, if the machine asks systemd-resolved.
    The task has its stdin in any case."""
    show = "cat /etc/resolv.conf; echo x >/etc/resolv.conf; readlink /proc/$$/fd/0; echo end; exec sleep 1000"
    with open("/etc/resolv.conf", encoding="ascii") as f:
        machines = f.read()
    dns = {"DNS": {"Servers": ["192.0.2.1", "${NOMAD_META_second}"], "Options": ["ndots:2"]}}
    for mode, network, wanted in (("host", dns, "search a.example\nnameserver 192.0.2.1\nnameserver 192.0.2.2\noptions ndots:2\n"), ("host", {}, machines),
                                  ("bridge", {}, "nameserver 192.0.2.53\n"), ("bridge", {"DNS": {"Searches": ["b.example"]}}, "search b.example\nnameserver 192.0.2.53\n")):
        made = networks.job("dns", mode, "/bin/sh", ["-c", show], driver="exec", network=network)
        made["Job"]["Meta"] = {"second": "192.0.2.2"}
        node.register(made)
        alloc = node.wait_running("dns")[0]
        node.wait_said(alloc, b"end\n")
        case.equal(node.logs(alloc).decode(), wanted + "/dev/null\nend\n", mode)
        case.equal(node.drover("alloc", "exec", alloc["ID"], "/bin/cat", "/etc/resolv.conf").out, wanted, "a session")
        node.purge("dns")
    for network, why in (({"DNS": {"Servers": ["a b"]}}, 'network: dns: "a b" must not have spaces'), ({"Hostname": "web"}, "the group's network has a hostname: only containers can have it"),
                         ({"Hostname": "-x"}, 'network: hostname "-x" is not a name')):
        made = networks.job("dns", "bridge", driver="exec", network=network)
        made["Job"]["TaskGroups"][0]["RestartPolicy"] = {"Attempts": 0, "Mode": "fail"}
        node.register({"Job": {**made["Job"], "Type": "batch"}})
        alloc = node.wait_allocs("dns", [(0, "run", "failed")])[0]
        case.contains("\n".join(e["DisplayMessage"] for e in node.ask("/v1/allocation/" + alloc["ID"])["TaskStates"]["t"]["Events"]), why)
        node.purge("dns")


def test_ports_are_reached_at_the_host_and_inside():
    node.register(networks.job("serve", "bridge", "/usr/bin/python3", ["-c", SERVE], dynamic=[{"Label": "http", "To": 8080}]))
    alloc = node.wait_running("serve")[0]
    whole = node.ask("/v1/allocation/" + alloc["ID"])
    port, inside = whole["AllocatedResources"]["Shared"]["Ports"][0]["Value"], whole["NetworkStatus"]["Address"]
    for where in (("198.18.0.1", port), (inside, 8080)):
        case.until(lambda at=where: get(*at).startswith("served "), 20, "an answer at %s:%d" % where)
    # The port was given at one address.
    case.equal(get("127.0.0.1", port).startswith("served"), False)
    # Another allocation reaches it by its address, and by the host's port.
    fetch = "for a in %s:8080 198.18.0.1:%d; do curl -sS -m 10 --noproxy '*' http://$a/; echo; done; echo end; sleep 1000" % (inside, port)
    node.register(networks.job("other", "bridge", "/bin/sh", ["-c", fetch]))
    text = said(node, node.wait_running("other")[0])
    case.equal(text.count("served 172.26."), 2, text)
    node.purge("other")
    node.purge("serve")
    case.equal(get("198.18.0.1", port).startswith("served"), False)


def test_without_a_network_there_is_only_loopback():
    for driver in ("raw-exec", "exec"):
        node.register(networks.job("alone-" + driver, "none", "/bin/sh", ["-c", SHOW], driver=driver.replace("-", "_")))
        text = said(node, node.wait_running("alone-" + driver)[0])
        case.equal(re.findall(r"^\d+: (\S+) +inet (\S+)", text, re.M), [("lo", "127.0.0.1/8")])
        node.purge("alone-" + driver)


def test_nothing_is_left_and_nothing_else_is_touched():
    case.equal((networks.links("veth"), networks.addresses(), networks.names(node)), (["uplink", "uplink2"], [], []))
    case.equal((networks.rules("172.26."), networks.rules("--dport")), ([], []))
    mine = [line for line in FOREIGN if line.startswith("-A")]
    now = networks.run("iptables-save").splitlines()
    case.equal([line for line in mine if line not in now], [])
    case.equal(len(mine), 2)


def test_a_restart_of_the_agent_keeps_the_network():
    node.register(networks.job("kept", "bridge", "/usr/bin/python3", ["-c", SERVE], dynamic=[{"Label": "http", "To": 8080}]))
    node.register(networks.job("bare", "none"))
    alloc, bare = node.wait_running("kept")[0], node.wait_running("bare")[0]
    whole = node.ask("/v1/allocation/" + alloc["ID"])
    port = whole["AllocatedResources"]["Shared"]["Ports"][0]["Value"]
    case.until(lambda: get("198.18.0.1", port).startswith("served "), 20, "an answer")
    node.replace_supervisor()
    case.equal([a["ID"] for a in node.wait_running("kept")], [alloc["ID"]])
    case.equal(node.ask("/v1/allocation/" + alloc["ID"])["NetworkStatus"], whole["NetworkStatus"])
    case.contains(get("198.18.0.1", port), "served ")
    # Debian's plugins have checked it, and find a fault when there is one.
    case.equal(check_events(alloc), [])
    networks.run("nsenter", "--net=%s/rt/netns/%s" % (node.data, alloc["ID"]), "ip", "link", "del", "eth0")
    node.replace_supervisor()
    case.until(lambda: check_events(alloc), 30, "an event about the check")
    case.contains(check_events(alloc)[0], "CNI plugin bridge failed in CHECK")
    case.equal(check_events(bare), [], "a network without plugins")
    node.purge("bare")
    node.purge("kept")
    case.equal((networks.addresses(), networks.names(node)), ([], []))


def check_events(alloc):
    """Returns the sentences about checks of its network."""
    events = node.ask("/v1/allocation/" + alloc["ID"])["TaskStates"]["t"]["Events"]
    return [e["DisplayMessage"] for e in events if "failed its check" in e["DisplayMessage"]]


def calls(alloc):
    with open(CALLS, encoding="ascii") as f:
        return [line.split(" ", 2)[1:] for line in f.read().splitlines() if line.startswith(alloc["ID"])]


def commands(alloc):
    return [command for command, _ in calls(alloc)]


def test_a_network_that_fails_its_check_is_made_again_if_no_task_runs():
    node.register(networks.job("runs", "cni/lan"))
    runs = node.wait_running("runs")[0]
    node.replace_supervisor()
    case.until(lambda: commands(runs) == ["ADD", "CHECK"], 30, "a check")
    case.equal(check_events(runs), [])
    node.register(networks.waiting_job("waits", "cni/lan", LAN + ".go"))
    waits = networks.wait_waiting(node, "waits")
    before = node.ask("/v1/allocation/" + runs["ID"])
    for name in (".broken", ".go"):
        case.write(LAN + name, "")
    node.replace_supervisor()
    case.until(lambda: commands(runs)[2:] == ["CHECK"] and commands(waits) == ["ADD", "CHECK", "DEL", "ADD"], 30, "the checks")
    node.wait_running("waits")
    why = "network: it failed its check after a restart of the agent: CNI plugin lan failed in CHECK with exit code 4: the cable is cut; "
    case.until(lambda: check_events(runs) and check_events(waits), 20, "events")
    case.equal(check_events(runs), [why + "running tasks keep it as it is; a new allocation has a new one (`drover alloc stop`)"])
    case.equal(check_events(waits), [why + "it is made again"])
    after = node.ask("/v1/allocation/" + runs["ID"])
    case.equal((after["NetworkStatus"], after["ClientStatus"], after["TaskStates"]["t"]["Restarts"]), (before["NetworkStatus"], "running", 0))
    # An allocation ends while its network is being checked: its removal waits for the check.
    os.unlink(LAN + ".broken")
    case.write(LAN + ".slow", "")
    node.replace_supervisor()
    case.until(lambda: commands(runs)[-1] == "CHECK" and os.path.exists(LAN + ".reached"), 30, "a check")
    node.do("DELETE", "/v1/job/runs")
    node.wait_allocs("runs", [(0, "stop", "complete")])
    case.equal((commands(runs)[-1], runs["ID"] in networks.names(node)), ("CHECK", True))
    os.unlink(LAN + ".slow")
    for name in ("runs", "waits"):
        node.purge(name)
    case.until(lambda: networks.names(node) == [], 30, "the removal of the networks")
    case.equal((commands(runs)[-2:], commands(waits)[-1]), (["CHECK", "DEL"], "DEL"))


def test_an_unknown_cni_network_fails_with_a_sentence():
    before = metric("failed_makes_total")
    node.register(networks.job("far", "cni/far"))
    alloc = node.wait_allocs("far", [(0, "run", "failed")])[0]
    events = node.ask("/v1/allocation/" + alloc["ID"])["TaskStates"]["t"]["Events"]
    case.contains(json.dumps(events), "has no CNI network")
    case.equal(metric("failed_makes_total") > before, True, "whether the failure was counted")
    node.purge("far")
    case.equal(networks.names(node), [])


def test_plugins_get_the_arguments_of_the_job_and_what_it_is():
    """A job cannot set what drover says itself. What would be taken for another argument is left out, or refused."""
    args = {"vlan": "7 of ${NOMAD_GROUP_NAME}", "NOMAD_JOB_ID": "other"}
    made = networks.job("a;IP=1", "cni/lan", network={"CNI": {"Args": args}})
    node.register(made)
    alloc = node.wait_running("a;IP=1")[0]
    node.replace_supervisor()  # the later call has the same arguments
    node.wait_running("a;IP=1")
    case.until(lambda: len(calls(alloc)) == 2, 30, "the check")
    node.purge("a%3BIP=1")
    case.until(lambda: networks.names(node) == [], 30, "the removal of the network")
    wanted = sorted(["IgnoreUnknown=true", "vlan=7 of g", "NOMAD_REGION=global", "NOMAD_NAMESPACE=default", "NOMAD_GROUP_NAME=g", "NOMAD_ALLOC_ID=" + alloc["ID"]])
    case.equal([(command, sorted(text.split(";"))) for command, text in calls(alloc)], [(command, wanted) for command in ("ADD", "CHECK", "DEL")], "calls")
    for bad in ({"a": "b;IP=c"}, {"a=b": "c"}, {"": "c"}):
        node.refused(400, "cannot be passed to CNI plugins", "POST", "/v1/jobs", networks.job("bad", "cni/lan", network={"CNI": {"Args": bad}}))
    # The value of a variable is known only on the node, so the job is accepted and its allocation fails.
    made = networks.job("late", "cni/lan", network={"CNI": {"Args": {"a": "${NOMAD_META_x}"}}})
    made["Job"]["Meta"] = {"x": "b;IP=c"}
    node.register(made)
    alloc = node.wait_allocs("late", [(0, "run", "failed")])[0]
    case.contains(json.dumps(node.ask("/v1/allocation/" + alloc["ID"])["TaskStates"]["t"]["Events"]), "cannot be passed to CNI plugins")
    node.purge("late")


def network_leaks():
    return [(one["Name"], one["Detail"]) for one in node.ask("/v1/agent/leaks") if one["Kind"] == "network"]


def test_a_network_that_cannot_be_removed_does_not_keep_its_allocation_for_ever():
    ids, before, failed = [], metric("on_node"), metric("failed_removals_total")
    for name in ("plain", "torn"):
        node.register(networks.job(name, "cni/lan"))
        ids.append(node.wait_running(name)[0]["ID"])
    case.equal((network_leaks(), metric("on_node"), metric("failed_removals_total")), ([], before + 2, failed))
    os.rename(LAN, LAN + ".away")
    damaged = node.data + "/rt/netns/" + ids[1] + ".json"
    case.write(damaged, "{")
    # An allocation ends without its plugin, and an event has the reason.
    node.do("DELETE", "/v1/job/plain")
    node.wait_allocs("plain", [(0, "stop", "complete")])
    case.until(lambda: network_leaks() == [(ids[0], "the network of an allocation that has ended")], 20, "the leak")
    events = json.dumps(node.ask("/v1/allocation/" + ids[0])["TaskStates"]["t"]["Events"])
    case.contains(events, 'CNI plugin \\"lan\\" is not in')
    for name in ("plain", "torn"):
        node.do("DELETE", "/v1/job/%s?purge=true" % name)
    case.until(lambda: not node.ask("/v1/allocations"), 120, "the end of both allocations")
    case.equal((metric("on_node"), metric("failed_removals_total") - failed >= 6), (before, True), "metrics: each network was tried three times")
    log = node.log()
    for alloc, why in zip(ids, ('CNI plugin "lan" is not in', "is damaged, so no CNI plugin can be called")):
        case.contains(log, "allocation %.8s is removed, but a network of it stays, after 3 tries: " % alloc)
        case.contains(log, why)
    case.equal(sorted(network_leaks()), sorted((one, "the network of an unknown allocation") for one in ids))
    # The operator brings the plugin back and removes the damaged file.
    os.rename(LAN + ".away", LAN)
    os.unlink(damaged)
    node.replace_supervisor()
    case.until(lambda: network_leaks() == [], 30, "the removal at the start")
    case.equal(networks.names(node), [])


def test_cleanup_removes_networks_of_an_agent_that_is_dead():
    """With their rules and addresses, which only the plugins know; what cannot be removed keeps its record, which says where the plugins are."""
    before = networks.run("iptables-save").splitlines(), networks.addresses()
    elsewhere = case.directory() + "/plugins"
    os.mkdir(elsewhere)
    for name in ("bridge", "host-local", "loopback", "firewall", "portmap"):
        shutil.copy(networks.PLUGINS + "/" + name, elsewhere)
    helper.mount(case.directory(), networks.PLUGINS, None, 4096)  # MS_BIND; plugins are nowhere else
    try:
        clean_up_after(api.Node(agent.config_args('client {\n cni_path = "%s"\n}\n' % elsewhere)), before, elsewhere)
    finally:
        helper.umount(networks.PLUGINS, 2)  # MNT_DETACH


def clean_up_after(other, before, plugins):
    other.__enter__()
    other.register(networks.job("left", "bridge", ports=[{"Label": "static", "Value": 18090}]))
    alloc = other.wait_running("left")[0]["ID"]
    case.contains("\n".join(networks.run("iptables-save").splitlines()), "18090")
    other.kill_launcher()
    command = [build_dir() + "/drover", "cleanup", "-kill", "-json", "-data-dir", other.data]
    record = "%s/rt/netns/%s.json" % (other.data, alloc)

    def cleanup(*more):
        r = subprocess.run(command + list(more), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        return r.returncode, {(row["Kind"], row["Name"]): (row["Result"], row["Detail"]) for row in json.loads(r.stdout)}

    def listed():
        """A process that was just forked when the launcher was killed may have its lock for another moment."""
        _, rows = cleanup("-dry-run")
        if ("network", alloc) not in rows:
            print("    not listed yet: %s" % rows)
        return rows if ("network", alloc) in rows else None
    case.equal(case.until(listed, 30, "the network in the list")[("network", alloc)], ("would be removed", ""))
    os.rename(record, record + ".away")
    case.write(record, "{")
    code, rows = cleanup()
    case.equal((code, rows[("network", alloc)][0], rows[("runtime directory", other.data + "/rt")][0]), (1, "failed", "kept"), rows)
    case.contains(rows[("network", alloc)][1], "is damaged, so no CNI plugin can be called")
    os.rename(record + ".away", record)
    os.rename(plugins, plugins + ".away")
    code, rows = cleanup()
    case.equal((code, rows[("network", alloc)][0]), (1, "failed"), rows)
    case.contains(rows[("network", alloc)][1], plugins)
    os.rename(plugins + ".away", plugins)
    code, rows = cleanup()
    case.equal((code, rows[("network", alloc)][0], rows[("runtime directory", other.data + "/rt")][0]), (0, "removed", "removed"), rows)
    after = networks.run("iptables-save").splitlines(), networks.addresses()
    case.equal([line for line in after[0] if alloc in line or "18090" in line], [], "rules of the network")
    case.equal(after[1], before[1], "addresses that are in use")


LAN_SCRIPT = """#!/bin/sh
echo "$CNI_CONTAINERID $CNI_COMMAND $CNI_ARGS" >>CALLS
while [ $CNI_COMMAND = CHECK ] && [ -e $0.slow ]; do : >$0.reached; sleep 0.05; done
[ $CNI_COMMAND = CHECK ] && [ -e $0.broken ] && { echo '{"code":100,"msg":"the cable is cut"}'; exit 4; }
[ $CNI_COMMAND = DEL ] || echo '{"cniVersion":"1.0.0","interfaces":[{"name":"eth0","sandbox":"x"}],"ips":[{"address":"192.0.2.7/24","interface":0}]}'
"""
networks.need()
networks.run("iptables", "-w", "-A", "INPUT", "-s", "203.0.113.7/32", "-j", "DROP")
networks.run("iptables", "-w", "-t", "nat", "-A", "PREROUTING", "-d", "203.0.113.8/32", "-j", "ACCEPT")
FOREIGN = networks.run("iptables-save").splitlines()
networks.ask_resolved()
CNI = case.directory()
LAN = CNI + "/lan"
CALLS = CNI + "/calls"
case.write(LAN, LAN_SCRIPT.replace("CALLS", CALLS).replace("$0", LAN))
os.chmod(LAN, 0o755)
case.write(CNI + "/lan.conf", '{"cniVersion":"1.0.0","name":"lan","type":"lan"}')
SETTINGS = 'client {\n cni_path = "%s:%s"\n cni_config_dir = "%s"\n}\n' % (networks.PLUGINS, CNI, CNI)
with api.Node(agent.config_args(SETTINGS)) as node:
    case.run(globals())

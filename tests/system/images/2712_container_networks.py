#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# takes: 90
"""Containers in the network of their group, with the CNI plugins of Debian."""
import os
import re
import shutil
import socket
import subprocess
import uuid

from lib import agent, api, build_dir, case, exposition, images, networks, web
from lib.websocket import Exec

TOOLS = ("sh", "cat", "ls", "ip", "sed", "httpd", "sleep", "echo", "readlink", "hostname", "grep", "env")
WHERE = "readlink /proc/self/ns/net; hostname; ls /sys/class/net; grep -o '[a-z0-9]*:' /proc/net/dev; env | grep NOMAD_; "

IPV6 = 'client { bridge_network_subnet_ipv6 = "fd00:a110:c8::/120" }'
TCP, UDP = socket.SOCK_STREAM, socket.SOCK_DGRAM
CAPS = '\nplugin "docker" { config { allow_caps = ["CHOWN", "NET_RAW"] } }\n'


def image():
    entries = [images.directory("etc"), images.directory("www"), images.file("www/index.html", b"served by a container"),
               images.file("etc/passwd", b"root:x:0:0:root:/:/bin/sh\nweb:x:1000:1000:web:/:/bin/sh\n"), images.file("etc/group", b"root:x:0:\nweb:x:1000:\n")]
    with open(build_dir() + "/tests/walls", "rb") as f:
        entries.append(images.file("bin/walls", f.read(), mode=0o755))
    return images.Image([images.tar(images.busybox(*TOOLS) + entries)], {"Env": ["PATH=/bin"]})


def container(name, script, driver="docker", user=None, **config):
    return api.task(name, None, driver=driver, User=user, Config={"image": images.name(server, "a:1"), "command": "/bin/sh",
                                                                  "args": ["-c", script + "echo end; exec sleep 1000"], **config})


def register(name, tasks, ports=(), mode="bridge"):
    made = networks.job(name, mode, ports=list(ports))
    made["Job"]["TaskGroups"][0]["Tasks"] = tasks
    node.register(made)


def said(alloc, task):
    node.wait_said(alloc, b"end\n", task)
    return node.logs(alloc, task).decode()


def restart(alloc, task):
    """A task is not known to run until a new supervisor has found its executor."""
    case.until(lambda: node.request("PUT", "/v1/client/allocation/%s/restart" % alloc["ID"], {"TaskName": task}).status == 200, 20, "the restart")


def links(text):
    """Returns what /sys and /proc have; the /sys of the machine is not of the namespace of this test."""
    return re.findall(r"^(?:eth0|lo)$", text, re.M), sorted(re.findall(r"^(eth0|lo|uplink):$", text, re.M))


def curl(address):
    r = subprocess.run(["curl", "-sS", "-m", "10", "--noproxy", "*", "http://%s/" % address], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return r.stdout.decode()


def test_containers_and_other_tasks_share_the_network_of_their_group():
    # A user without privileges serves port 80, as in Docker.
    fetch = "until curl -sS -m 5 --noproxy '*' http://127.0.0.1/; do sleep 0.1; done; readlink /proc/self/ns/net; echo end; exec sleep 1000"
    register("web", [container("server", WHERE + "httpd -p 80 -h /www; ", user="web"), container("other", WHERE, driver="podman"),
                     api.task("client", "/bin/sh", ["-c", fetch])], [{"Label": "http", "Value": 18080, "To": 80}])
    alloc = node.wait_running("web", seconds=60)[0]
    texts = [said(alloc, task) for task in ("server", "other", "client")]
    spaces = [re.search(r"net:\[\d+\]", text).group(0) for text in texts]
    case.equal(len(set(spaces)), 1, "one network: %s" % spaces)
    case.equal(spaces[0] == os.readlink("/proc/self/ns/net"), False, "it is the machine's")
    case.contains(texts[2], "served by a container", "the other task")
    for text in texts[:2]:
        case.equal(links(text), (["eth0", "lo"], ["eth0", "lo"]), text)
        case.contains(text, "\n%s\n" % alloc["ID"].replace("-", "")[:12], "the name")
        case.contains(text, "NOMAD_PORT_http=80\n")
    address = node.ask("/v1/allocation/" + alloc["ID"])["NetworkStatus"]["Address"]
    for at in ("198.18.0.1:18080", address):
        case.equal(curl(at), "served by a container", at)
    inside = Exec(node, alloc["ID"], ["/bin/sh", "-c", "readlink /proc/self/ns/net; ls /sys/class/net"], task="server").end()[0].decode()
    case.equal(inside, "%s\neth0\nlo\n" % spaces[0], "a session")
    node.replace_supervisor()
    node.wait_running("web")
    case.equal(curl("198.18.0.1:18080"), "served by a container")
    node.purge("web")


def test_root_of_a_container_cannot_change_the_network():
    script = ("for c in 'link set eth0 down' 'link add dummy0 type dummy' 'addr add 10.9.9.9/8 dev eth0' 'route del default'; do ip $c && echo did: $c; done; "
              "echo 1 >/proc/sys/net/ipv4/ip_forward && echo did: forward; ls -d /sys/class/net/eth0; walls | grep socket | sed s/gain/did/; ")
    register("change", [container("t", script, cap_add=["net_raw"])])
    text = said(node.wait_running("change", seconds=60)[0], "t")
    case.equal(("did:" in text, "/sys/class/net/eth0" in text), (False, True), text)
    node.purge("change")


def test_network_mode_comes_before_the_network_of_the_group():
    register("modes", [container("host", WHERE, network_mode="host"), container("none", WHERE, network_mode="none"), container("group", WHERE)])
    alloc = node.wait_running("modes", seconds=60)[0]
    seen = {task: links(said(alloc, task)) for task in ("host", "none", "group")}
    case.equal((seen["none"], seen["group"], seen["host"][1]), ((["lo"], ["lo"]), (["eth0", "lo"], ["eth0", "lo"]), ["lo", "uplink"]), seen)
    node.purge("modes")
    for mode in ("${attr.kernel.name}", "container:x", "my-net"):
        made = networks.job("refused", "bridge")
        made["Job"]["TaskGroups"][0]["Tasks"] = [container("t", "", network_mode=mode)]
        node.refused(400, 'config.network_mode = "%s" is not supported: a container has its group\'s network' % mode, "POST", "/v1/jobs", made)


def test_names_and_addresses():
    """A container finds its own name at its address, and the name servers that its network, or else itself, says."""
    script = "hostname; cat /etc/hosts /etc/resolv.conf; echo is $(ip -o -4 addr show dev eth0) $(ip route); "
    dns = {"Servers": ["192.0.2.1"], "Searches": ["${NOMAD_JOB_NAME}.example"]}
    for mode, network, config, wanted in (("bridge", {"Hostname": "${NOMAD_JOB_NAME}-box", "DNS": dns}, {"dns_servers": ["192.0.2.7"]}, ("names-box", "search names.example\nnameserver 192.0.2.1\n")),
                                          ("bridge", {"Hostname": "box"}, {"hostname": "mine", "dns_servers": ["192.0.2.7"]}, ("mine", "nameserver 192.0.2.7\n")),
                                          ("host", {}, {"hostname": "own"}, ("own", "nameserver 192.0.2.53\n"))):
        made = networks.job("names", mode, network=network)
        made["Job"]["TaskGroups"][0]["Tasks"] = [container("t", script, extra_hosts=["machine:host-gateway"], **config)]
        node.register(made)
        alloc = node.wait_running("names", seconds=60)[0]
        for text in (said(alloc, "t"), Exec(node, alloc["ID"], ["/bin/sh", "-c", script], task="t").end()[0].decode()):
            address = re.search(r"inet (172[.\d]+)/", text).group(1)
            case.equal(text.splitlines()[0], wanted[0])
            case.contains(text, "\n%s\t%s\n" % (address, wanted[0]))
            case.contains(text, "\n" + wanted[1])
            case.contains(text, "\n%s\tmachine\n" % re.search(r"default via (\S+)", text).group(1))
        node.replace_supervisor()  # which asks for the network again
        node.wait_running("names")
        restart(alloc, "t")
        case.until(lambda: node.logs(alloc, "t").decode().count("end\n") == 2, 60, "its second start")
        case.contains(node.logs(alloc, "t").decode().split("end\n")[1], "\n%s\t%s\n" % (address, wanted[0]))
        node.purge("names")


def test_settings_of_networks():
    """The network's settings, over which a container's root has no privilege. Earlier, such a container did not start."""
    script = "cd /proc/sys/net; cat core/somaxconn ipv4/tcp_fin_timeout ../kernel/shm_rmid_forced; "
    machine = networks.run("cat", "/proc/sys/net/core/somaxconn")
    config = {"sysctl": [{"net.core.somaxconn": "16384", "net.ipv4.tcp_fin_timeout": 33, "kernel.shm_rmid_forced": "1"}]}
    for mode, more in (("host", []), ("bridge", [container("other", "", driver="podman", sysctl={"net.core.somaxconn": "16384", "net.ipv4.tcp_fin_timeout": "33"})])):
        register("set", [container("t", script, **config)] + more, mode=mode)
        alloc = node.wait_running("set", seconds=60)[0]
        case.equal(said(alloc, "t"), "16384\n33\n1\nend\n")
        node.replace_supervisor()
        node.wait_running("set")
        restart(alloc, "t")
        case.until(lambda: node.logs(alloc, "t").decode() == "16384\n33\n1\nend\n" * 2, 60, "its second start")  # pylint: disable=cell-var-from-loop
        node.purge("set")
    case.equal(networks.run("cat", "/proc/sys/net/core/somaxconn"), machine)
    for tasks, why in (([container("t", "", sysctl={"net.core.absent": "1"})], 'config.sysctl of a task: set net.core.absent = "1" in its network, where not every setting of the machine'),
                       ([container(t, "", sysctl={"net.core.somaxconn": value}) for t, value in (("t", "1"), ("u", "12"))],
                        'task u: config.sysctl: "net.core.somaxconn" has another value in another task of the group')):
        register("set", tasks, mode="bridge")
        node.wait_allocs("set", [(0, "run", "failed")], seconds=60)
        alloc = node.allocs("set")[0]
        case.contains("\n".join(e["DisplayMessage"] for e in node.ask("/v1/allocation/" + alloc["ID"])["TaskStates"]["t"]["Events"]), why)
        node.purge("set")
    for more, why in (({"sysctl": {"net.ipv4.conf.eth0.rp_filter": "1"}}, '"net.ipv4.conf.eth0.rp_filter" cannot be set: jobs can set net.core.*, net.unix.*'),
                      ({"sysctl": {"net.core.somaxconn": "${attr.x}"}}, 'the value of "net.core.somaxconn" cannot have a variable'),
                      ({"sysctl": {"net.core.somaxconn": "1\n2"}}, 'the value of "net.core.somaxconn" is not one line'),
                      ({"sysctl": {"net.core.somaxconn": "1"}, "network_mode": "host"}, '"net.core.somaxconn" would be for the whole machine with network_mode = "host"')):
        made = networks.job("refused", "host")
        made["Job"]["TaskGroups"][0]["Tasks"] = [container("t", "", **more)]
        node.refused(400, "config.sysctl: " + why, "POST", "/v1/jobs", made)


def netns():
    """Returns the names of the namespaces that are there."""
    return {name for name in networks.names(node) if not name.endswith(".json")}


def test_containers_of_a_group_without_network_have_their_own():
    """As with Docker: each one has its own, and what it publishes is what `ports` and `port_map` name."""
    serve = WHERE + "cat /etc/resolv.conf; httpd -p 80 -h /www; "
    tasks = [container("a", serve, ports=["web"]), container("b", serve, port_map=[{"other": 80}], network_mode="bridge"),
             api.task("host", "/bin/sh", ["-c", WHERE.replace("hostname; ", "") + "echo end; exec sleep 1000"], driver="raw_exec")]
    register("own", tasks, [{"Label": "web", "Value": 18081, "To": 80}, {"Label": "other", "Value": 18082}, {"Label": "closed", "Value": 18083, "To": 80}], mode="host")
    alloc = node.wait_running("own", seconds=60)[0]
    texts = {task: said(alloc, task) for task in ("a", "b", "host")}
    spaces = {task: re.search(r"net:\[\d+\]", text).group(0) for task, text in texts.items()}
    case.equal((len(set(spaces.values())), spaces["host"]), (3, os.readlink("/proc/self/ns/net")), spaces)
    case.equal([links(texts[task]) for task in "ab"], [(["eth0", "lo"], ["eth0", "lo"])] * 2)
    case.equal(texts["a"].split("NOMAD_PORT_web=")[1].split()[0], "80", "the port inside by `to`")
    case.equal(texts["b"].split("NOMAD_PORT_other=")[1].split()[0], "80", "the port inside by port_map")
    case.contains(texts["a"], "nameserver 192.0.2.53", "the servers that systemd-resolved asks")
    for port in (18081, 18082):
        case.equal(curl("198.18.0.1:%d" % port), "served by a container", "port %d" % port)
    case.contains(curl("198.18.0.1:18083"), "connect to server", "a port that no container names")
    case.equal(len(netns()), 2)
    case.equal(node.ask("/v1/agent/leaks"), [])
    node.replace_supervisor()
    node.wait_running("own")
    case.equal(curl("198.18.0.1:18081"), "served by a container", "after a restart of the supervisor")
    case.equal((len(netns()), node.ask("/v1/agent/leaks")), (2, []))
    # A task that starts again keeps its network, and so its address.
    before = networks.addresses()
    restart(alloc, "a")
    case.until(lambda: node.ask("/v1/allocation/" + alloc["ID"])["TaskStates"]["a"]["Restarts"] == 1, 60, "a restart")
    case.until(lambda: curl("198.18.0.1:18081") == "served by a container", 60, "its port")
    case.equal(networks.addresses(), before)
    node.purge("own")
    case.until(lambda: netns() == set(), 60, "the end of the networks")


def test_a_network_that_cannot_be_removed_keeps_no_other():
    register("stuck", [container(task, WHERE, ports=[task]) for task in "ab"], [{"Label": "a", "Value": 18081}, {"Label": "b", "Value": 18082}], mode="host")
    alloc = node.wait_running("stuck", seconds=60)[0]
    said(alloc, "a")
    of_a = str(uuid.uuid5(uuid.UUID(alloc["ID"]), "a"))
    case.contains(netns(), of_a)
    path = "%s/rt/netns/%s.json" % (node.data, of_a)
    with open(path, encoding="utf-8") as f:
        text = f.read()
    case.write(path, "damaged")
    node.do("DELETE", "/v1/job/stuck")
    node.wait_allocs("stuck", [(0, "stop", "complete")], seconds=60)
    case.until(lambda: netns() == {of_a}, 60, "the end of the other network")
    case.equal([(leak["Kind"], leak["Name"]) for leak in node.ask("/v1/agent/leaks")], [("network", of_a)])
    case.write(path, text)
    node.purge("stuck", seconds=90)
    case.equal((netns(), node.ask("/v1/agent/leaks")), (set(), []))


def service(name, port, checks=(), **more):
    return {"Name": name, "PortLabel": port, "Provider": "nomad", "Checks": list(checks), **more}


def check(port="", **more):
    return {"Name": "c", "Type": "http", "Path": "/", "PortLabel": port, "Interval": 10**9, "Timeout": 20 * 10**9, "AddressMode": "driver", **more}


def registered(names):
    found = {name: node.ask("/v1/service/" + name) for name in names}
    return {name: [(one["Address"], one["Port"]) for one in found[name]] for name in names}


def test_services_and_checks_at_the_address_of_a_container():
    """address_mode "driver" is the address of the container's own network and the port inside; "auto" is the same where the driver advertises it."""
    serve = "httpd -p $PORT -h /www; "
    of_a = [service("label", "web", [check(), check("80", Name="number")], AddressMode="driver"), service("number", "80", AddressMode="driver"),
            service("alone", "", AddressMode="driver"), service("host", "web", [check(AddressMode="")])]
    tasks = [{**container("a", serve, ports=["web"]), "Services": of_a, "Env": {"PORT": "80"}},
             {**container("b", serve, "podman", port_map=[{"map": 8080}]), "Services": [service("podman", "map", [check()])], "Env": {"PORT": "8080"}},
             {**container("c", serve, advertise_ipv6_address=True), "Services": [service("six", "web", [check()])], "Env": {"PORT": "[::]:80"}}]
    register("driver", tasks, [{"Label": "web", "Value": 18081, "To": 80}, {"Label": "map", "Value": 18082}], mode="host")
    alloc = node.wait_running("driver", seconds=60)[0]
    states = node.ask("/v1/allocation/" + alloc["ID"])["TaskStates"]
    a, b = states["a"]["Address"], states["b"]["Address"]
    six = states["c"]["AddressIPv6"]
    case.equal(sorted([a, b, states["c"]["Address"]]), networks.addresses(), "what CNI gave out")
    case.equal(re.match(r"fd00:a110:c8::\w+$", six) is None, False, six)
    wanted = {"label": [(a, 80)], "number": [(a, 80)], "alone": [(a, 0)], "host": [("198.18.0.1", 18081)], "podman": [(b, 8080)], "six": [(six, 80)]}

    def passes():
        checks = (node.ask("/v1/client/allocation/%s/checks" % alloc["ID"]) or {}).values()
        return len(checks) == 5 and all(one["Status"] == "success" for one in checks)

    def is_all_there(when):
        case.until(lambda: registered(wanted) == wanted, 60, "the services %s; they are %r" % (when, registered(wanted)))
        case.until(passes, 60, "the checks %s to pass" % when)
    is_all_there("at first")
    shown = node.drover("alloc", "status", alloc["ID"]).out
    for address in (a, b, six):
        case.contains(shown, address)
    node.replace_supervisor()
    node.wait_running("driver")
    is_all_there("after a restart of the supervisor")
    restart(alloc, "a")
    case.until(lambda: node.ask("/v1/allocation/" + alloc["ID"])["TaskStates"]["a"]["Restarts"] == 1, 60, "a restart")
    is_all_there("after a restart of the task")
    node.do("DELETE", "/v1/job/driver")
    node.wait_allocs("driver", [(0, "stop", "complete")], seconds=60)
    case.until(lambda: netns() == set(), 60, "the end of the networks")
    case.equal({"Address" in s for s in node.ask("/v1/allocation/" + alloc["ID"])["TaskStates"].values()}, {False}, "an address after its network")
    node.purge("driver")


def test_address_mode_driver_without_a_network_of_the_driver():
    needs = 'address_mode "driver" needs a container with a network of its own'
    by_driver, by_check = service("s", "80", AddressMode="driver"), service("s", "80", [check()])
    for task, mode, group, why in ((api.task("t", "/bin/sh", driver="exec"), "host", [], needs), (api.task("t", "/bin/sh", driver="raw_exec"), "host", [], needs),
                                   (container("t", ""), "bridge", [], needs), (container("t", "", network_mode="host"), "host", [], needs),
                                   (container("t", ""), "host", [by_driver], "only a service of a task"),
                                   (container("t", ""), "host", [by_check], "only a service of a task"),
                                   (container("t", "", advertise_ipv6_address="${attr.kernel.name}"), "host", [], "write true or false as it is")):
        for of_task in ([by_driver], [by_check]):
            made = networks.job("refused", mode, services=group)
            made["Job"]["TaskGroups"][0]["Tasks"] = [{**task, "Services": [] if group else of_task}]
            node.refused(400, why, "POST", "/v1/jobs", made)


def test_ports_that_cannot_be_published():
    for tasks, why in (([container("t", "", ports=["nothing"])], 'task t: config.ports: the group\'s network has no port "nothing"'),
                       ([container("t", "", port_map=[{"web": 80}], network_mode="host")], "config.port_map needs a network of the task's own"),
                       ([container("s", "", ports=["web"]), container("t", "", ports=["web"])], 'task t: port "web" is published by another network of the group')):
        made = networks.job("bad", "host", ports=[{"Label": "web", "Value": 18081}])
        made["Job"]["TaskGroups"][0]["Tasks"] = tasks
        made["Job"]["Type"] = "batch"
        made["Job"]["TaskGroups"][0]["RestartPolicy"] = {"Attempts": 0, "Mode": "fail"}
        node.register(made)
        alloc = node.wait_allocs("bad", [(0, "run", "failed")], seconds=60)[0]
        events = node.ask("/v1/allocation/" + alloc["ID"])["TaskStates"]["t"]["Events"]
        case.contains("\n".join(e["DisplayMessage"] for e in events), why)
        node.purge("bad")


def bound(kind, address, port, only_ipv6=0):
    """Returns a socket of the machine at this address, which listens if it is of tcp."""
    s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, kind)
    if s.family == socket.AF_INET6:
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, only_ipv6)
    if kind == TCP:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((address, port))
    if kind == TCP:
        s.listen()
    return s


def register_port(port, mode, **more):
    """Registers the job `taken`, whose container would publish the port; it is tried again after 5 seconds."""
    made = networks.job("taken", mode, ports=[{"Label": "web", "Value": port, "To": 80}])
    group = made["Job"]["TaskGroups"][0]
    group["Tasks"] = [container("t", "httpd -p 80 -h /www; ", **more)]
    group["RestartPolicy"] = {"Attempts": 0, "Mode": "fail"}
    group["ReschedulePolicy"] = {"Delay": 5 * 10**9, "DelayFunction": "constant", "Unlimited": True}
    node.register(made)


def wait_taken(status):
    """Waits until an allocation of the job with this status has an event about the port. Returns its id and the event's sentence."""
    def found():
        for a in node.allocs("taken"):
            events = node.ask("/v1/allocation/" + a["ID"])["TaskStates"].get("t", {}).get("Events", [])
            told = [e["DisplayMessage"] for e in events if "is in use" in e["DisplayMessage"]]
            if a["ClientStatus"] == status and told:
                return a["ID"], told[-1]
        return None
    return case.until(found, 60, "an allocation that is %s, with a sentence about the port" % status)


def failed_makes():
    return exposition.parse(node.request("GET", "/v1/metrics?format=prometheus").text)["drover_networks_failed_makes_total"].one()


def test_a_port_that_a_program_of_the_machine_has_is_not_taken_from_it():
    """Earlier, the container got the program's connections: with the static port 22 those to sshd."""
    before = failed_makes()
    for kind, address, port, mode in ((TCP, "0.0.0.0", 22, "bridge"), (TCP, "198.18.0.1", 18080, "host"), (TCP, "::", 18080, "bridge"), (UDP, "0.0.0.0", 18080, "host")):
        with bound(kind, address, port):
            register_port(port, mode, **({"ports": ["web"]} if mode == "host" else {}))
            wanted = 'port "web" (%d/%s at 198.18.0.1) is in use: a program of this machine, with uid 0, has it at %s and would lose its traffic; stop that program' % (
                port, "tcp" if kind == TCP else "udp", "[::]" if address == "::" else address)
            waiting, sentence = wait_taken("pending")
            case.contains(sentence, "failed to configure networking for alloc: " + wanted)
            case.equal((netns(), networks.rules("--dport")), (set(), []), "of a network that was not made")
            fails = port == 22
            if fails:
                case.contains(wait_taken("failed")[1], "failed to configure networking for alloc: " + wanted)
                case.equal(failed_makes() > before, True, "whether the failure was counted")
        # The program has ended.
        runs = case.until(lambda: [a for a in node.allocs("taken") if a["ClientStatus"] == "running"], 60, "the job to run")[0]
        if not fails and runs["ID"] != waiting:
            case.contains(wait_taken("failed")[1], "is in use")  # on a slow machine its ten attempts were over
        case.until(lambda at=port: curl("198.18.0.1:%d" % at) == "served by a container", 20, "the port")
        node.purge("taken")


def test_an_allocation_that_waits_for_a_port_can_be_stopped():
    with bound(TCP, "0.0.0.0", 18080):
        register_port(18080, "bridge")
        wait_taken("pending")
        node.purge("taken")
    case.equal((netns(), networks.rules("--dport")), (set(), []), "of a network that was not made")


def test_sockets_that_have_another_port_or_address_do_not_matter():
    """Those of IPv6 alone, at another address, of clients, and what is left of connections."""
    server = bound(TCP, "198.18.0.1", 18080)
    near = socket.create_connection(server.getsockname())
    far = server.accept()[0]
    server.close()
    far.close()  # first, so that its end of the connection is in TIME_WAIT
    case.equal(near.recv(1), b"")
    near.close()
    case.contains(networks.run("ss", "-tan", "state", "time-wait"), "198.18.0.1:18080")
    with bound(TCP, "127.0.0.1", 18080), bound(UDP, "127.0.0.1", 18080), bound(TCP, "::", 18080, 1), bound(TCP, "0.0.0.0", 18081), bound(UDP, "198.18.0.1", 18080) as client:
        client.connect(("198.18.0.254", 53))
        register_port(18080, "bridge")
        node.wait_running("taken", seconds=60)
        case.until(lambda: curl("198.18.0.1:18080") == "served by a container", 20, "the port")
    node.purge("taken")


def test_a_network_that_exists_keeps_its_ports():
    """A program of the machine may bind a port that is published. Neither a restart of the agent nor of a task fails by it."""
    go = case.directory() + "/go"
    register_port(18080, "bridge")
    runs = node.wait_running("taken", seconds=60)[0]
    node.register(networks.waiting_job("waits", "bridge", go, ports=[{"Label": "web", "Value": 18082}]))
    networks.wait_waiting(node, "waits")
    case.write(go, "")
    with bound(TCP, "0.0.0.0", 18080), bound(TCP, "0.0.0.0", 18082):
        node.replace_supervisor()
        case.equal([a["ID"] for a in node.wait_running("taken")], [runs["ID"]])
        node.wait_running("waits")
        restart(runs, "t")
        case.until(lambda: node.ask("/v1/allocation/" + runs["ID"])["TaskStates"]["t"]["Restarts"] == 1, 60, "a restart")
        case.until(lambda: curl("198.18.0.1:18080") == "served by a container", 60, "its port")
    for name in ("taken", "waits"):
        node.purge(name)


def test_nothing_is_left():
    case.equal((networks.links("veth"), networks.addresses(), networks.names(node), networks.rules("--dport")), (["uplink", "uplink2"], [], [], []))


if not shutil.which("skopeo") or not os.path.exists("/bin/busybox"):
    case.skip("no skopeo, or no busybox-static")
networks.need()
networks.ask_resolved()
with web.Server(images.registry({"a": {"1": image()}})) as server, api.Node(agent.config_args(IPV6 + CAPS)) as node:
    case.run(globals())

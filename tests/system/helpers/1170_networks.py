#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""network-helper alone: with the plugins of Debian, and with plugins that hang, lie, print without end and crash."""
import contextlib
import json
import os
import re
import shutil
import socket
import sys
import uuid

from lib import case, helper, ipc, networks

FIND = "until pgrep -f '^sleep %s' >/dev/null; do sleep 0.05; done; echo found >>$DIR/calls"
GOOD = '{"cniVersion":"1.0.0","interfaces":[{"name":"eth0","sandbox":"x"}],"ips":[{"address":"192.0.2.7/24","interface":0}]}'


def request(h, name, fields):
    """Returns the contents of the answer's descriptor."""
    answer = h.ipc.answer(h.ipc.send(name, fields))
    return b"".join(helper.memfd_read(fd) for fd in answer.fds)


def make(h, alloc, kind="NET_KIND_BRIDGE", name="", ports=(), args="", sysctls=""):
    return json.loads(request(h, "NET_NETWORK_MAKE_REQ", {"alloc": alloc, "name": name, "args": args, "sysctls": sysctls, "kind": kind, "ports": list(ports)}))


def drop(h, alloc):
    request(h, "NET_NETWORK_DROP_REQ", {"alloc": alloc})


def check(h, alloc):
    """Returns the sentence about a fault; "": there is none."""
    try:
        request(h, "NET_NETWORK_CHECK_REQ", {"alloc": alloc})
    except ipc.RequestError as e:
        return str(e)
    return ""


def names(places):
    return sorted(os.listdir(places.runtime + "/netns"))


def program(path, script, mode=0o755):
    case.write(path, "#!/bin/sh\n" + script + "\n")
    os.chmod(path, mode)


@contextlib.contextmanager
def plugin(script, config='{"cniVersion":"1.0.0","name":"%s","type":"bad"}', mode=0o755, others=(), more=""):
    """A helper whose only CNI network is `lan`, of the plugin `bad` with this script. others: {path below the first directory of cni_path: mode}
    of what else is there; the second directory is `more` in it. more: further settings of client { }."""
    base = case.directory()
    os.makedirs(base + "/bin/more")
    os.makedirs(base + "/conf")
    case.write(base + "/conf/10-lan.conf", config % "lan")
    program(base + "/bin/bad", "DIR=%s\necho $CNI_COMMAND >>$DIR/calls\n%s" % (base, script), mode)
    for name, bits in dict(others).items():
        if os.path.isdir(base + "/bin/" + name):
            os.chmod(base + "/bin/" + name, bits)
        else:
            program(base + "/bin/" + name, ":", bits)
    with helper.Places() as places:
        settings = 'client {\n cni_path = "%s/bin:%s/bin/more:%s/none"\n cni_config_dir = "%s/conf"\n %s\n}\n' % (base, base, base, base, more)
        with helper.Helper("network-helper", places, settings) as h:
            h.base, h.settings = base, settings
            h.calls = lambda: open(base + "/calls", encoding="ascii").read().split() if os.path.exists(base + "/calls") else []
            yield h, places


def fails(h, places, part):
    alloc = uuid.uuid4().bytes
    e = case.raises(ipc.RequestError, make, h, alloc, "NET_KIND_CNI", "lan")
    case.contains(str(e), part)
    return alloc


def test_a_bridge_is_made_once_and_removed():
    with helper.Places() as places, helper.Helper("network-helper", places) as h:
        alloc = uuid.uuid4().bytes
        port = {"host_ip": "198.18.0.1", "host_port": 18080, "inside_port": 80}
        first = make(h, alloc, ports=[port])
        address = first["ips"][0]["address"].partition("/")[0]
        case.equal((networks.addresses(), len(networks.links("veth"))), ([address], 3))
        case.contains(" ".join(networks.rules("--dport")), "-d 198.18.0.1/32 -p tcp -m tcp --dport 18080")
        inside = networks.run("nsenter", "--net=%s/netns/%s" % (places.runtime, uuid.UUID(bytes=alloc)), "ip", "-6", "-o", "addr")
        case.equal(re.findall(r"inet6 (\S+)", inside), ["::1/128"], "CVE-2024-32473: IPv6, which is not configured")
        case.equal(make(h, alloc, ports=[port]), first, "a repeated request")
        case.equal(names(places), [str(uuid.UUID(bytes=alloc)), str(uuid.UUID(bytes=alloc)) + ".json"])
        drop(h, alloc)
        drop(h, alloc)
        case.equal((networks.addresses(), networks.links("veth"), names(places), networks.rules(address)), ([], ["uplink", "uplink2"], [], []))


def send_to_loopback(places, alloc):
    """Whether a user without privileges in the network reaches what listens at 127.0.0.1 of the host only."""
    send = ("import os, socket, sys; os.setuid(12345); s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM);"
            "s.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b'eth0'); s.sendto(b'x', ('127.0.0.1', int(sys.argv[1])));"
            "s.sendto(b'y', (sys.argv[2], int(sys.argv[3])))")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as closed, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as opened:
        closed.bind(("127.0.0.1", 0))
        opened.bind(("198.18.0.1", 0))
        opened.settimeout(20)
        networks.run("nsenter", "--net=%s/netns/%s" % (places.runtime, uuid.UUID(bytes=alloc)), sys.executable, "-c", send,
                     str(closed.getsockname()[1]), *map(str, opened.getsockname()))
        case.equal(opened.recv(1), b"y", "what a service of the host gets after that")
        try:
            return closed.recv(1, socket.MSG_DONTWAIT) == b"x"
        except BlockingIOError:
            return False


def test_services_at_the_loopback_address_of_the_host_are_not_reached():
    """CVE-2020-8558. Earlier, they could be sent packets, once a port was published."""
    with helper.Places() as places, helper.Helper("network-helper", places) as h:
        port = {"host_ip": "198.18.0.1", "host_port": 18080, "inside_port": 80}
        allocs = [uuid.uuid4().bytes for _ in range(2)]
        for alloc in allocs:
            make(h, alloc, ports=[port])
            case.equal(send_to_loopback(places, alloc), False, "whether it is reached")
            port = dict(port, host_port=18081)
        # A port of the host's loopback address needs what portmap does.
        local = uuid.uuid4().bytes
        make(h, local, ports=[dict(port, host_ip="127.0.0.1", host_port=18082)])
        make(h, allocs[0], ports=[port])
        case.equal(networks.run("cat", "/proc/sys/net/ipv4/conf/nomad/route_localnet"), "1\n", "with a port at 127.0.0.1")
        for alloc in (local, *allocs):
            drop(h, alloc)


def test_the_plugins_of_debian_are_listed():
    with helper.Places() as places, helper.Helper("network-helper", places) as h:
        plugins = json.loads(request(h, "NET_PLUGIN_LIST_REQ", {}))["plugins"]
        for name in ("bridge", "firewall", "host-local", "loopback", "portmap"):
            case.contains(plugins[name], "CNI %s plugin" % name)
            case.contains(plugins[name], "1.0.0")


def test_the_plugins_of_debian_find_faults():
    """portmap's CHECK takes each port for a fault before 1.3.0, so it is not called then."""
    with helper.Places() as places, helper.Helper("network-helper", places) as h:
        alloc = uuid.uuid4().bytes
        case.equal(check(h, alloc), "", "a network that is not made")
        made = make(h, alloc, ports=[{"host_ip": "198.18.0.1", "host_port": 18080, "inside_port": 80}])
        case.equal(check(h, alloc), "")
        rule = ["CNI-FORWARD", "-m", "comment", "--comment", "CNI firewall plugin admin overrides", "-j", "NOMAD-ADMIN"]
        networks.run("iptables", "-w", "-D", *rule)
        case.contains(check(h, alloc), "CNI plugin firewall failed in CHECK with exit code 1: expected CNI-FORWARD rule")
        networks.run("iptables", "-w", "-I", *rule)
        case.equal(check(h, alloc), "")
        networks.run("nsenter", "--net=%s/netns/%s" % (places.runtime, uuid.UUID(bytes=alloc)), "ip", "link", "del", "eth0")
        case.contains(check(h, alloc), "CNI plugin bridge failed in CHECK")
        case.equal(make(h, alloc), made, "a check changes nothing")
        drop(h, alloc)
        case.equal(names(places), [])


def test_a_namespace_without_plugins():
    with helper.Places() as places, helper.Helper("network-helper", places) as h:
        alloc = uuid.uuid4().bytes
        case.equal(make(h, alloc, "NET_KIND_LOOPBACK"), {})
        at = places.runtime + "/netns/" + str(uuid.UUID(bytes=alloc))
        case.contains(networks.run("nsenter", "--net=" + at, "ip", "-o", "addr"), "127.0.0.1/8")
        # Users without privileges can use each port, and ping: root of a container is one.
        read = ["cat", "/proc/sys/net/ipv4/ip_unprivileged_port_start", "/proc/sys/net/ipv4/ping_group_range"]
        case.equal(networks.run("nsenter", "--net=" + at, *read).split(), ["0", "0", "2147483647"])
        case.equal(networks.run(*read).split() == ["0", "0", "2147483647"], False, "the host's namespace")
        drop(h, alloc)
        case.equal(names(places), [])


def test_settings_of_a_namespace():
    with helper.Places() as places, helper.Helper("network-helper", places) as h:
        def read(name):
            return networks.run("nsenter", "--net=%s/netns/%s" % (places.runtime, uuid.UUID(bytes=alloc)), "cat", "/proc/sys/" + name).split()

        alloc, before = uuid.uuid4().bytes, networks.run("cat", "/proc/sys/net/core/somaxconn")
        wanted = "net.core.somaxconn=77\nnet.ipv4.ip_local_port_range=2000 3000\nnet.ipv4.ip_unprivileged_port_start=80\nnet.ipv6.conf.default.disable_ipv6=1\n"
        make(h, alloc, "NET_KIND_LOOPBACK", sysctls=wanted)
        for name, value in (("net/core/somaxconn", ["77"]), ("net/ipv4/ip_local_port_range", ["2000", "3000"]), ("net/ipv4/ip_unprivileged_port_start", ["80"]),
                            ("net/ipv6/conf/default/disable_ipv6", ["1"])):
            case.equal(read(name), value, name)
        case.equal(networks.run("cat", "/proc/sys/net/core/somaxconn"), before, "the machine's")
        make(h, alloc, "NET_KIND_LOOPBACK", sysctls=wanted)
        drop(h, alloc)
        for line in ("kernel.domainname=x", "net.ipv4.conf.eth0.rp_filter=1", "net.ipv4.conf.all.proxy_arp=1", "net.ipv6.conf.default.proxy_ndp=1", "net.ipv4.ip_nonlocal_bind=1",
                     "net.ipv4.tcp_congestion_control=x", "net.core..somaxconn=1", "net.core.\\x=1", "net.core.a/../x=1", "net.core.somaxconn=1\n=", "=1"):
            why = str(case.raises(ipc.RequestError, make, h, alloc, "NET_KIND_LOOPBACK", sysctls=line))
            case.contains(why, "in its network, where not every setting of the machine exists: ")
            case.contains(why, "Operation not permitted", line)
        for line, why in (("net.core.absent=1", 'net.core.absent = "1" in its network, where not every setting of the machine exists: No such file'), ("net.core.somaxconn=x", "Invalid argument")):
            case.contains(str(case.raises(ipc.RequestError, make, h, alloc, "NET_KIND_LOOPBACK", sysctls="net.core.somaxconn=78\n%s\n" % line)), why)
        case.equal(names(places), [], "what is left")


def test_a_killed_helper_loses_nothing():
    with helper.Places() as places:
        allocs = [uuid.uuid4().bytes for _ in range(4)]
        for alloc in allocs:
            with helper.Helper("network-helper", places) as h:
                h.ipc.send("NET_NETWORK_MAKE_REQ", {"alloc": alloc, "name": "", "args": "", "sysctls": "", "kind": "NET_KIND_BRIDGE", "ports": []})
                case.until(lambda: len(networks.links("veth")) > 2, 20, "a link")
                h.kill()
                h.wait()
            with helper.Helper("network-helper", places) as h:
                case.contains(json.dumps(make(h, alloc)), "172.26.")
                drop(h, alloc)
            case.equal((networks.addresses(), networks.links("veth"), names(places)), ([], ["uplink", "uplink2"], []))


def test_plugins_are_looked_for_in_cni_path_only():
    """Earlier, without any of its directories, the plugin was looked for in the root directory, where /bin is."""
    with plugin(":", '{"cniVersion":"1.0.0","name":"%s","type":"bin"}') as (h, places):
        shutil.rmtree(h.base + "/bin")
        fails(h, places, 'CNI plugin "bin" is not in ')


def test_plugins_that_misbehave():
    for script, part in (("echo not json", "no JSON object"), ("echo '[1]'", "no JSON object"), ("yes x", "printed more than 1 MiB"),
                         ("kill -SEGV $$", "was ended by signal 11"), ("exit 3", "failed in ADD with exit code 3: it gave no reason"),
                         ("echo \"bad\033[31mly\" >&2; exit 1", "exit code 1: bad [31mly"),
                         ("printf '{\"code\":7,\"msg\":\"no\\\\nroom\",\"details\":\"of <x>\"}'; exit 1", "no room: of <x>"), (":", "printed no result")):
        with plugin("[ $CNI_COMMAND = DEL ] && exit 0\n" + script) as (h, places):
            fails(h, places, part)
            case.equal((names(places), h.calls()[0], h.calls()[-1]), ([], "ADD", "DEL"), script)


def test_a_plugin_that_hangs_is_killed_with_all_that_it_started():
    mark = "1009.%d" % os.getpid()  # of no other test's processes
    hang = "(setsid sleep %s &) ; sleep %s" % (mark, mark)
    with plugin("[ $CNI_COMMAND = DEL ] && exit 0\n" + hang) as (h, places), plugin("[ $CNI_COMMAND = CHECK ] || { echo '%s'; exit; }\n%s" % (GOOD, hang)) as (other, _):
        alloc = uuid.uuid4().bytes
        make(other, alloc, "NET_KIND_CNI", "lan")
        check = other.ipc.send("NET_NETWORK_CHECK_REQ", {"alloc": alloc})
        fails(h, places, "did not end in time, and was killed")
        case.contains(str(case.raises(ipc.RequestError, other.ipc.answer, check)), "did not end in time, and was killed")
        case.equal((case.pids_with(mark), names(places)), ([], []))
        drop(other, alloc)
    # What it leaves running is killed when it ends.
    with plugin("(setsid sleep %s &)\n%s\necho '%s'" % (mark, FIND % mark, GOOD)) as (h, places):
        alloc = uuid.uuid4().bytes
        case.equal(make(h, alloc, "NET_KIND_CNI", "lan")["ips"][0]["address"], "192.0.2.7/24")
        case.equal((h.calls(), case.pids_with(mark)), (["ADD", "found"], []))
        drop(h, alloc)


def test_a_plugin_knows_what_to_remove_after_another_has_failed():
    """Earlier, plugins such as firewall, which find the address to remove in the result of those before them, left their rules."""
    two = '{"cniVersion":"1.0.0","name":"%s","plugins":[{"type":"bad"},{"type":"bad"}]}'
    script = """input=$(cat); case $CNI_COMMAND$input in ADD*prevResult*) exit 3;; DEL*prevResult*192.0.2.7*) echo told >>$DIR/dels;; DEL*) echo not told >>$DIR/dels;;
    *) echo '%s';; esac""" % GOOD
    with plugin(script, two) as (h, places):
        fails(h, places, "failed in ADD with exit code 3")
        with open(h.base + "/dels", encoding="ascii") as f:
            case.equal(set(f.read().splitlines()), {"told"}, "the previous result of DEL")
        case.equal(names(places), [])


def test_a_removal_that_fails_is_tried_again():
    with plugin("[ $CNI_COMMAND = DEL ] && [ ! -e $DIR/may ] && exit 5\necho '%s'" % GOOD) as (h, places):
        alloc = uuid.uuid4().bytes
        make(h, alloc, "NET_KIND_CNI", "lan")
        case.contains(str(case.raises(ipc.RequestError, drop, h, alloc)), "failed in DEL with exit code 5")
        case.equal(len(names(places)), 2)
        open(h.base + "/may", "w", encoding="ascii").close()
        drop(h, alloc)
        case.equal(names(places), [])


def test_a_plugin_that_closes_its_output_early_is_waited_for():
    with plugin("echo '%s'\nexec >&- 2>&-\nsleep 1\necho late $CNI_COMMAND >>$DIR/calls" % GOOD) as (h, places):
        alloc = uuid.uuid4().bytes
        case.equal(make(h, alloc, "NET_KIND_CNI", "lan")["ips"][0]["address"], "192.0.2.7/24")
        drop(h, alloc)
        case.equal((h.calls(), names(places)), (["ADD", "late", "ADD", "DEL", "late", "DEL"], []))


def test_the_arguments_of_plugins_are_the_same_for_each_call():
    config = '{"cniVersion":"1.0.0","name":"%s","type":"bad","capabilities":{"portMappings":true}}'
    with plugin("echo $CNI_COMMAND $CNI_ARGS >>$DIR/args; cat >$DIR/$CNI_COMMAND; echo '%s'" % GOOD, config) as (h, places):
        alloc = uuid.uuid4().bytes
        made = make(h, alloc, "NET_KIND_CNI", "lan", args="IgnoreUnknown=true;a=b c", ports=[{"host_ip": "", "host_port": 18080, "inside_port": 80}])
        with helper.Helper("network-helper", places, h.settings) as later:
            case.equal(check(later, alloc), "")
            drop(later, alloc)
        with open(h.base + "/args", encoding="ascii") as f:
            case.equal(f.read().splitlines(), [command + " IgnoreUnknown=true;a=b c" for command in ("ADD", "CHECK", "DEL")], "arguments, also of a later helper")
        said = {}
        for command in ("ADD", "CHECK", "DEL"):
            with open(h.base + "/" + command, encoding="ascii") as f:
                said[command] = json.load(f)
        case.equal([said[command].pop("prevResult", None) for command in said], [None, made, made], "the result of ADD")
        case.equal((said["CHECK"], said["DEL"], len(said["ADD"]["runtimeConfig"]["portMappings"])), (said["ADD"], said["ADD"], 2), "configuration and capabilities")


def test_a_check_that_fails_has_the_sentence_of_its_plugin():
    three = '{"cniVersion":"0.4.0","name":"%s","plugins":[{"type":"bad"},{"type":"other"},{"type":"bad"}]}'
    good = "CHECK=$CNI_COMMAND; [ $CNI_COMMAND = CHECK ] || { echo '%s'; exit; }\n" % GOOD
    for script, part in (("exit 3", "CNI plugin bad failed in CHECK with exit code 3: it gave no reason"), ("kill -SEGV $$", "was ended by signal 11 in CHECK"),
                         ("yes x", "printed more than 1 MiB"), ("printf '{\"code\":100,\"msg\":\"no route\"}'; exit 1", "exit code 1: no route"),
                         ("echo not json", ""), ("echo '[1]'", "")):  # only the exit code counts, as in DEL
        with plugin(good + script, three, others={"other": 0o755}) as (h, places):
            program(h.base + "/bin/other", "[ $CNI_COMMAND = CHECK ] && echo other >>%s/calls\necho '%s'" % (h.base, GOOD))
            alloc = uuid.uuid4().bytes
            make(h, alloc, "NET_KIND_CNI", "lan")
            found = check(h, alloc)
            case.contains(found, part)
            case.equal((found == "", h.calls()[2:]), (part == "", ["CHECK"] if part else ["CHECK", "other", "CHECK"]), script)
            if part:
                continue
            # A plugin that is removed later is a fault, too.
            os.unlink(h.base + "/bin/other")
            case.contains(check(h, alloc), 'CNI plugin "other" is not in ')


def test_a_network_is_checked_only_if_its_configuration_can_be():
    for version, more, wanted in (("0.3.1", "", ["ADD"]), ("0.4.0", "", ["ADD", "CHECK"]), ("1.1.0", "", ["ADD", "CHECK"]), ("1.0.0", '"disableCheck":true,', ["ADD"]),
                                  ("1.0.0", '"disableCheck":"true",', ["ADD"]), ("1.0.0", '"disableCheck":false,', ["ADD", "CHECK"])):
        with plugin("echo '%s'" % GOOD, '{"cniVersion":"' + version + '",' + more + '"name":"%s","plugins":[{"type":"bad"}]}') as (h, places):
            alloc = uuid.uuid4().bytes
            make(h, alloc, "NET_KIND_CNI", "lan")
            case.equal((check(h, alloc), h.calls()), ("", wanted), (version, more))
            drop(h, alloc)


def test_a_removal_that_failed_leaves_no_network_that_counts_as_made():
    with plugin("[ $CNI_COMMAND = DEL ] && [ ! -e $DIR/may ] && exit 5\necho '%s'" % GOOD) as (h, places):
        alloc = uuid.uuid4().bytes
        make(h, alloc, "NET_KIND_CNI", "lan")
        case.contains(str(case.raises(ipc.RequestError, drop, h, alloc)), "failed in DEL")
        case.equal(check(h, alloc), "", "it is not checked")
        case.contains(str(case.raises(ipc.RequestError, make, h, alloc, "NET_KIND_CNI", "lan")), "failed in DEL")
        open(h.base + "/may", "w", encoding="ascii").close()
        make(h, alloc, "NET_KIND_CNI", "lan")
        case.equal(h.calls(), ["ADD", "DEL", "DEL", "DEL", "ADD"])
        drop(h, alloc)


def test_reserved_ports_of_the_host_are_refused():
    with plugin("echo '%s'" % GOOD, more='reserved { reserved_ports = "22,18080-18090" }') as (h, places):
        alloc = uuid.uuid4().bytes
        port = {"host_ip": "198.18.0.1", "host_port": 18091, "inside_port": 22}
        for taken in (22, 18080, 18090):
            e = case.raises(ipc.RequestError, make, h, alloc, "NET_KIND_CNI", "lan", [port, dict(port, host_port=taken)])
            case.contains(str(e), "port %d of this host is in client { reserved { reserved_ports } }" % taken)
        case.equal((h.calls(), names(places)), ([], []))
        make(h, alloc, "NET_KIND_CNI", "lan", [port])
        drop(h, alloc)


def test_a_damaged_file_says_what_to_do():
    with plugin("echo '%s'" % GOOD) as (h, places):
        alloc = uuid.uuid4().bytes
        make(h, alloc, "NET_KIND_CNI", "lan")
        path = places.runtime + "/netns/%s.json" % uuid.UUID(bytes=alloc)
        case.write(path, '{"config":{')
        case.contains(str(case.raises(ipc.RequestError, drop, h, alloc)), path + " is damaged, so no CNI plugin can be called: remove")
        os.unlink(path)
        drop(h, alloc)
        case.equal((h.calls(), names(places)), (["ADD"], []))


def test_only_roots_plugins_and_configurations_are_used():
    with plugin("echo '%s'" % GOOD, mode=0o777) as (h, places):
        fails(h, places, "bad")
        case.equal((h.calls(), names(places)), ([], []))
    with plugin("echo '%s'" % GOOD, config='{"cniVersion":"1.0.0","name":"%s","type":"../../bin/sh"}') as (h, places):
        fails(h, places, "its plugin 1 has no valid type")


def test_plugins_that_plugins_call_are_roots_too():
    ipam, delegate = '"type":"bad","ipam":{"type":"addresses"}}', '"type":"bad","delegate":{"of":[{"type":"other"},{"type":"text/plain"}]}}'
    config = '{"cniVersion":"1.0.0","name":"%s",'
    for part, others, sentence in ((ipam, {}, 'CNI plugin "addresses" is not in'), (ipam, {"addresses": 0o775}, "/bin/addresses can be written by others"),
                                   (ipam, {"addresses": 0o755, "more/addresses": 0o757}, "/bin/more/addresses can be written by others"),
                                   (delegate, {"other": 0o757}, "/bin/other can be written by others"), (ipam, {"addresses": 0o755, "more": 0o757}, "/bin/more can be written by others"),
                                   ('"type":"bad","ipam":{"type":"../bin/bad"}}', {}, "is not the name of a CNI plugin")):
        with plugin("echo '%s'" % GOOD, config + part, others=others) as (h, places):
            fails(h, places, sentence)
            case.equal((h.calls(), names(places)), ([], []), sentence)
    # A "type" elsewhere need not be a plugin. Plugins look for programs only where users cannot put any.
    with plugin("echo $PATH $CNI_PATH >>$DIR/paths; echo '%s'" % GOOD, config + delegate) as (h, places):
        alloc = uuid.uuid4().bytes
        make(h, alloc, "NET_KIND_CNI", "lan")
        drop(h, alloc)
        with open(h.base + "/paths", encoding="ascii") as f:
            case.equal(set(f.read().splitlines()), {"/usr/sbin:/usr/bin:/sbin:/bin %s/bin:%s/bin/more" % (h.base, h.base)})


networks.need()
case.run(globals())

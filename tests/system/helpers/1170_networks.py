#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""network-helper alone: with the plugins of Debian, and with plugins that hang, lie, print without end and crash."""
import contextlib
import json
import os
import uuid

from lib import case, helper, ipc, networks

GOOD = '{"cniVersion":"1.0.0","interfaces":[{"name":"eth0","sandbox":"x"}],"ips":[{"address":"192.0.2.7/24","interface":0}]}'


def request(h, name, fields):
    answer = h.ipc.answer(h.ipc.send(name, fields))
    return answer.memfd() if hasattr(answer, "memfd") else read(answer)


def read(answer):
    if not answer.fds:
        return b""
    fd = answer.fds[0]
    try:
        return os.pread(fd, 1 << 21, 0)
    finally:
        os.close(fd)


def make(h, alloc, kind="NET_KIND_BRIDGE", name="", ports=()):
    return json.loads(request(h, "NET_NETWORK_MAKE_REQ", {"alloc": alloc, "name": name, "kind": kind, "ports": list(ports)}))


def drop(h, alloc):
    request(h, "NET_NETWORK_DROP_REQ", {"alloc": alloc})


def names(places):
    return sorted(os.listdir(places.runtime + "/netns"))


@contextlib.contextmanager
def plugin(script, config='{"cniVersion":"1.0.0","name":"%s","type":"bad"}', mode=0o755):
    """A helper whose only CNI network is `lan`, of a plugin with this script."""
    base = case.directory()
    os.makedirs(base + "/bin")
    os.makedirs(base + "/conf")
    case.write(base + "/conf/10-lan.conf", config % "lan")
    case.write(base + "/bin/bad", "#!/bin/sh\nDIR=%s\necho $CNI_COMMAND >>$DIR/calls\n%s\n" % (base, script))
    os.chmod(base + "/bin/bad", mode)
    with helper.Places() as places:
        with helper.Helper("network-helper", places, 'client {\n cni_path = "%s/bin"\n cni_config_dir = "%s/conf"\n}\n' % (base, base)) as h:
            h.base = base
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
        case.equal(make(h, alloc, ports=[port]), first, "a repeated request")
        case.equal(names(places), [str(uuid.UUID(bytes=alloc)), str(uuid.UUID(bytes=alloc)) + ".json"])
        drop(h, alloc)
        drop(h, alloc)
        case.equal((networks.addresses(), networks.links("veth"), names(places), networks.rules(address)), ([], ["uplink", "uplink2"], [], []))


def test_a_namespace_without_plugins():
    with helper.Places() as places, helper.Helper("network-helper", places) as h:
        alloc = uuid.uuid4().bytes
        case.equal(make(h, alloc, "NET_KIND_LOOPBACK"), {})
        at = places.runtime + "/netns/" + str(uuid.UUID(bytes=alloc))
        case.contains(networks.run("nsenter", "--net=" + at, "ip", "-o", "addr"), "127.0.0.1/8")
        drop(h, alloc)
        case.equal(names(places), [])


def test_a_killed_helper_loses_nothing():
    with helper.Places() as places:
        allocs = [uuid.uuid4().bytes for _ in range(4)]
        for alloc in allocs:
            with helper.Helper("network-helper", places) as h:
                h.ipc.send("NET_NETWORK_MAKE_REQ", {"alloc": alloc, "name": "", "kind": "NET_KIND_BRIDGE", "ports": []})
                case.until(lambda: len(networks.links("veth")) > 2, 20, "a link")
                h.kill()
                h.wait()
            with helper.Helper("network-helper", places) as h:
                case.contains(json.dumps(make(h, alloc)), "172.26.")
                drop(h, alloc)
            case.equal((networks.addresses(), networks.links("veth"), names(places)), ([], ["uplink", "uplink2"], []))


def test_plugins_that_misbehave():
    for script, part in (("echo not json", "no JSON object"), ("echo '[1]'", "no JSON object"), ("yes x", "printed more than 1 MiB"),
                         ("kill -SEGV $$", "was ended by signal 11"), ("exit 3", "failed in ADD with exit code 3: it gave no reason"),
                         ("echo \"bad\033[31mly\" >&2; exit 1", "exit code 1: bad [31mly"),
                         ("printf '{\"code\":7,\"msg\":\"no\\\\nroom\",\"details\":\"of <x>\"}'; exit 1", "no room: of <x>"), (":", "printed no result")):
        with plugin("[ $CNI_COMMAND = DEL ] && exit 0\n" + script) as (h, places):
            fails(h, places, part)
            case.equal((names(places), h.calls()[0], h.calls()[-1]), ([], "ADD", "DEL"), script)


def test_a_plugin_that_hangs_is_killed_with_all_that_it_started():
    with plugin("[ $CNI_COMMAND = DEL ] && exit 0\n(setsid sleep 1009 &) ; sleep 1009") as (h, places):
        fails(h, places, "did not end in time, and was killed")
        case.equal((networks.works("pgrep", "-f", "^sleep 1009"), names(places)), (False, []))
    # What it leaves running is killed when it ends.
    with plugin("(setsid sleep 1010 &)\necho '%s'" % GOOD) as (h, places):
        alloc = uuid.uuid4().bytes
        case.equal(make(h, alloc, "NET_KIND_CNI", "lan")["ips"][0]["address"], "192.0.2.7/24")
        case.equal(networks.works("pgrep", "-f", "^sleep 1010"), False)
        drop(h, alloc)


def test_a_removal_that_fails_is_tried_again():
    with plugin("[ $CNI_COMMAND = DEL ] && [ ! -e $DIR/may ] && exit 5\necho '%s'" % GOOD) as (h, places):
        alloc = uuid.uuid4().bytes
        make(h, alloc, "NET_KIND_CNI", "lan")
        case.contains(str(case.raises(ipc.RequestError, drop, h, alloc)), "failed in DEL with exit code 5")
        case.equal(len(names(places)), 2)
        open(h.base + "/may", "w", encoding="ascii").close()
        drop(h, alloc)
        case.equal(names(places), [])


def test_only_roots_plugins_and_configurations_are_used():
    with plugin("echo '%s'" % GOOD, mode=0o777) as (h, places):
        fails(h, places, "bad")
        case.equal((h.calls(), names(places)), ([], []))
    with plugin("echo '%s'" % GOOD, config='{"cniVersion":"1.0.0","name":"%s","type":"../../bin/sh"}') as (h, places):
        fails(h, places, "its plugin 1 has no valid type")


networks.need()
case.run(globals())

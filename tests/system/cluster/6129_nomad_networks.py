#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The CNI plugins and networks that a node reports to servers, which place jobs by them. The plugins are scripts of this test."""
import os

from lib import case
from lib.cluster import node_of
from lib.cluster import servers as cluster

DEBIAN = "CNI firewall plugin version unknown\\nCNI protocol versions supported: 0.4.0, 1.0.0"
PLUGINS = {"bridge": ("echo CNI bridge plugin v1.9.1 >&2", 0o755), "firewall": ("printf '%s' >&2" % DEBIAN, 0o755), "suffix": ("echo a 1. 1.x 2.1-rc.1+b 3.0", 0o755),
           "called": ("[ -z \"$CNI_COMMAND$CNI_NETNS\" ] && [ $# = 0 ] && echo 4.0.0", 0o755), "silent": (":", 0o755), "broken": ("echo v5.0.0; exit 1", 0o755),
           "slow": ("echo v6.0.0; sleep 1000", 0o755), "loose": ("echo v7.0.0", 0o777), "text": ("echo v8.0.0", 0o644),
           **{name: (":", 0o755) for name in ("loopback", "host-local", "portmap")}}  # without them the node has no bridge
PREFIX = "plugins.cni.version."


def versions(node):
    return {name[len(PREFIX):]: value for name, value in node["Attributes"].items() if name.startswith(PREFIX)}


def test_plugins_and_networks():
    base = case.directory()
    os.makedirs(base + "/conf")
    for name, (script, mode) in PLUGINS.items():
        case.write(base + "/" + name, "#!/bin/sh\n%s\n" % script)
        os.chmod(base + "/" + name, mode)
    for name, text in (("10.conf", '{"cniVersion":"1.0.0","name":"lan","type":"bridge"}'), ("20.conf", "{"), ("40.conf", '{"cniVersion":"1.0.0","name":"wrong"}'),
                       ("30.conflist", '{"cniVersion":"0.4.0","name":"storage","plugins":[{"type":"bridge"},{"type":"firewall"}]}')):
        case.write(base + "/conf/" + name, text)
    client = 'cni_path = "%s"\n cni_config_dir = "%s/conf"\n' % (base, base)
    with cluster() as servers, node_of(servers, client):
        me = servers.wait_node()["ID"]
        case.until(lambda: versions(servers.node(me)), 30, "the versions of plugins")
        me = servers.node(me)
        case.equal(versions(me), {"bridge": "v1.9.1", "firewall": "1.0.0", "suffix": "2.1-rc.1+b", "called": "4.0.0"})
        for kind in ("Networks", "NodeNetworks"):
            case.equal([n["Mode"] for n in me["NodeResources"][kind]], ["host", "bridge", "cni/lan", "cni/storage"], kind)


def test_a_node_without_plugins_reports_none():
    with cluster() as servers, node_of(servers, 'cni_path = "/nowhere"\n') as node:
        me = servers.wait_node()
        case.equal((versions(me), [n["Mode"] for n in me["NodeResources"]["NodeNetworks"]], "network-helper" in node.processes()), ({}, ["host"], False))


case.run(globals())

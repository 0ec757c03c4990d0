# SPDX-License-Identifier: Apache-2.0
"""Status.*: methods that need no token."""
from methods import method


@method("Status.Ping", "any", "Empty")
def ping(ctx):
    return {}


@method("Status.Leader", "GenericRequest", "str")
def leader(ctx):
    return ctx.cluster.leader_address()


@method("Status.Peers", "GenericRequest", "[]str")
def peers(ctx):
    return [s.address for s in ctx.cluster.live_servers()]


@method("Status.Members", "GenericRequest", "ServerMembersResponse")
def members(ctx):
    cluster = ctx.cluster
    found = []
    for server in cluster.servers:
        host, _, port = server.address.rpartition(":")
        tags = {"role": "nomad", "region": cluster.region, "dc": cluster.datacenter, "build": cluster.version_text,
                "port": port, "id": server.id, "rpc_addr": host, "raft_vsn": "3", "vsn": "1", "revision": "",
                "expect": str(len(cluster.servers))}
        if len(cluster.servers) == 1:
            tags["bootstrap"] = "1"
        found.append({"Name": "%s.%s" % (server.name, cluster.region), "Addr": bytes(int(p) for p in host.split(".")),
                      "Port": int(port), "Tags": tags, "Status": "alive" if server.listening else "failed",
                      "ProtocolMin": 1, "ProtocolMax": 5, "ProtocolCur": 2, "DelegateMin": 2, "DelegateMax": 5,
                      "DelegateCur": 4})
    return {"ServerName": ctx.server.name, "ServerRegion": cluster.region, "ServerDC": cluster.datacenter,
            "Members": found}

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# takes: 40
"""Services and checks of allocs in a cluster: registered at the servers, removed again, and their effect on health."""
import os
import socket

from lib import case
from lib.cluster import displays, events, job, node_of, servers as cluster

S = 10**9
# A port without a listener: the kernel assigns no port below 1024.
CLOSED = "1"


def service(name, port="8080", checks=(), **more):
    return {"Name": name, "PortLabel": port, "Provider": "nomad", "Checks": list(checks), "Tags": [], **more}


def check(name, **more):
    return {"Name": name, "Type": "tcp", "Interval": S, "Timeout": S, **more}


def names(servers):
    return sorted(s["ServiceName"] for s in servers.services())


def sent_services(servers, known):
    """Returns the services of all registrations after the call `known`, as they were on the wire."""
    return [s for c in servers.calls("ServiceRegistration.Upsert", known) for s in c["args"]["Services"]]


def run(version):
    with cluster(version=version) as servers, node_of(servers) as node:
        me = servers.wait_node()["ID"]
        known = servers.last_call()
        group = [service("g%d" % n, Tags=["${NOMAD_GROUP_NAME}", "x"]) for n in range(3)]
        alloc = servers.run_job(job("web", group={"Services": group}, Services=[service("of-task", Tags=None)]), me)[0]
        servers.wait_alloc(alloc, ["running"])
        case.until(lambda: names(servers) == ["g0", "g1", "g2", "of-task"], 30, "the services to be registered")
        sent = [[s["ServiceName"] for s in c["args"]["Services"]] for c in servers.calls("ServiceRegistration.Upsert", known)]
        case.equal(sorted(sent[0]), ["g0", "g1", "g2"], "services of the group in one call")
        case.equal([s["Tags"] for s in sent_services(servers, known) if s["ServiceName"] == "of-task"], [[]], "tags of a service without any")
        found = next(s for s in servers.services() if s["ServiceName"] == "g0")
        address = servers.node(me)["NodeResources"]["Networks"][0]["IP"]
        case.equal((found["ID"], found["Address"], found["Port"], found["Tags"], found["NodeID"], found["JobID"]),
                   ("_nomad-task-%s-group-g-g0-8080" % alloc, address, 8080, ["g", "x"], me, "web"))
        # The servers lose the node and its services: both are registered again.
        known = servers.last_call()
        servers.purge_node(me)
        servers.wait_call("ServiceRegistration.Upsert", known)
        case.until(lambda: names(servers) == ["g0", "g1", "g2", "of-task"], 30, "the services to be back")
        # The removal fails, the agent is killed meanwhile, and the next one completes it.
        servers.fault("error", "ServiceRegistration.DeleteByID", text="rpc error: leadership lost")
        servers.stop_alloc(alloc)
        servers.wait_alloc(alloc, ["complete"])
        case.equal(names(servers), ["g0", "g1", "g2", "of-task"], "services while the servers refuse the removal")
        known = servers.last_call()
        node.kill("supervisor")
        servers.wait_call("Node.Register", known)
        servers.clear()
        case.until(lambda: names(servers) == [], 90, "the services to be removed")


def test_services_are_registered_and_removed_with_servers_of_1_6():
    run("1.6.10")


def test_services_are_registered_and_removed_with_servers_of_2_0():
    run("2.0.5")


def test_health_follows_the_checks():
    update = {"MaxParallel": 1, "HealthCheck": "checks", "MinHealthyTime": S, "HealthyDeadline": 20 * S, "ProgressDeadline": 60 * S}
    deployments = ["d" * 8 + "-1111-4111-8111-" + str(n) * 12 for n in range(3)]
    # The test itself listens, at a port that the kernel assigned: no other process has it, and it does not have to start in time.
    with cluster() as servers, node_of(servers), socket.create_server(("", 0), backlog=1024) as listens:
        me = servers.wait_node()["ID"]

        def begin(number, name, checks, port, **more):
            made = job(name, "/bin/sleep", ["1000"], group={"Update": dict(update, **more), "Services": [service(name, port, checks)]})
            return servers.run_job(made, me, deployment=deployments[number])[0]

        def health(alloc):
            return (servers.alloc(alloc)["DeploymentStatus"] or {}).get("Healthy")
        good = begin(0, "good", [check("listens")], str(listens.getsockname()[1]), HealthyDeadline=100 * S)
        mute = begin(1, "mute", [check("listens"), check("ready", OnUpdate="ignore")], CLOSED)
        late = begin(2, "late", [check("ready", OnUpdate="ignore")], CLOSED, HealthyDeadline=100 * S)
        for alloc in (good, late):
            case.until(lambda a=alloc: health(a) is True, 90, "the allocation to be healthy")
        case.until(lambda: health(mute) is False, 60, "the allocation with a failing check to be unhealthy")
        found = servers.alloc(mute)
        case.equal(events(found)[-1], "Alloc Unhealthy")
        case.contains(displays(found)[-1], 'Only 1 out of 2 checks registered and passing: check "listens" of service mute: dial tcp')
        results = servers.call_node(me, "Allocations.Checks", {"AllocID": mute})["Results"]
        case.equal(sorted((r["Check"], r["Mode"], r["Status"]) for r in results.values()),
                   [("listens", "healthiness", "failure"), ("ready", "readiness", "failure")])
        case.equal([k == r["ID"] for k, r in results.items()], [True, True])
        results = servers.call_node(me, "Allocations.Checks", {"AllocID": good})["Results"]
        case.equal([(r["Output"], r["Group"], r["Service"]) for r in results.values()], [("nomad: tcp ok", "good.g[0]", "good")])


def test_services_that_need_consul_fail_the_alloc_before_it_starts():
    with cluster() as servers, node_of(servers) as node:
        me = servers.wait_node()["ID"]
        services = [service("web", Provider="consul")]
        found = servers.wait_alloc(servers.run_job(job("lacks", group={"Services": services}), me)[0], ["failed"])
        case.contains(displays(found)[-1], 'drover does not support services of provider "consul"')
        case.equal(os.path.exists("%s/alloc/%s" % (node.data, found["ID"])), False, "directories of the alloc")


case.run(globals())

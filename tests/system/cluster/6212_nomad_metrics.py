#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Metrics of a node with servers: the link to them, and the labels of the node in its cluster."""
from lib import case, exposition
from lib.cluster import job, node_of, servers as cluster


def test_the_link_is_measured():
    with cluster(version="2.0.5") as servers, node_of(servers) as node:
        me = servers.wait_node()["ID"]
        alloc = servers.run_job(job("web", "/bin/sleep", ["1000"]), me)[0]
        servers.wait_alloc(alloc, ["running"])

        def families():
            answer = node.request("GET", "/v1/metrics?format=prometheus")
            case.equal(answer.status, 200, answer.text)
            return exposition.parse(answer.text)
        case.until(lambda: sum(v for name, _, v in getattr(families().get("drover_link_heartbeat_seconds"), "samples", [])
                               if name.endswith("_count")) > 0, 60, "a measured heartbeat")
        found = families()
        case.equal((found["drover_link_connected"].one(), found["drover_link_connections_total"].one()), (1, 1))
        for name in ("calls_total", "sent_bytes_total", "received_bytes_total"):
            case.equal(found["drover_link_" + name].one() > 0, True, name)
        case.equal(found["drover_link_failed_heartbeats_total"].one(), 0)
        labels = found["nomad_client_tasks_running"].samples[0][1]
        case.equal((labels["node_id"], labels["node_status"]), (me, "ready"))
        case.equal(found["nomad_client_allocs_running"].value(alloc_id=alloc, task="t"), 1)


def test_promtool_finds_nothing_wrong():
    """Also while no server is in use, when some metrics of the link have no value."""
    with cluster(version="2.0.5") as servers, node_of(servers) as node:
        servers.wait_node()

        def scrape():
            answer = node.request("GET", "/v1/metrics?format=prometheus")
            case.equal(answer.status, 200, answer.text)
            return answer.text
        text = case.until(lambda: "drover_link_heartbeat_seconds_count" in (found := scrape()) and found, 60, "a measured heartbeat")
        assert "drover_link_clock_ahead_seconds" in exposition.parse(text), text
        exposition.check(text)
        servers.stop_server(0)
        node.wait_log("no server is reachable", 30)
        text = scrape()
        case.equal(exposition.parse(text)["drover_link_connected"].one(), 0)
        exposition.check(text)


case.run(globals())

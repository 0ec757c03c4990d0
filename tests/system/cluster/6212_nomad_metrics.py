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


def link_numbers(text):
    """Returns {metric: number} of the link, from the format of Prometheus; of a histogram how many it has and their sum."""
    found = {}
    for name, family in exposition.parse(text).items():
        if name.startswith("drover_link_"):
            found.update({sample: value for sample, labels, value in family.samples if "le" not in labels})
    return found


def link_numbers_of_json(found):
    """Returns the same from the JSON."""
    numbers = {one["Name"]: one["Value"] for one in found["Gauges"]}
    numbers.update({one["Name"]: one["Sum"] for one in found["Counters"]})
    for one in found["Samples"]:
        numbers.update({one["Name"] + "_count": one["Count"], one["Name"] + "_sum": one["Sum"]})
    return {name.replace(".", "_"): value for name, value in numbers.items() if name.startswith("drover.link.")}


def check_same_numbers(node):
    """All formats and the command have the same numbers of the link, if no call or heartbeat comes between."""
    seen = []

    def same():
        seen[:] = [link_numbers(node.request("GET", "/v1/metrics?format=prometheus").text),
                   link_numbers_of_json(node.ask("/v1/metrics")), link_numbers(node.drover("operator", "metrics", "-format=prometheus").out)]
        return len(seen[0]) >= 8 and seen[0] == seen[1] == seen[2]
    try:
        case.until(same, 30, "the same numbers of the link")
    except AssertionError as e:
        raise AssertionError("%s: %s" % (e, seen)) from None
    return seen[0]


def test_all_pages_say_the_same_of_the_link():
    """A server that is not reachable is shown as such in each of them, and the node is healthy all the same."""
    with cluster(version="2.0.5") as servers, node_of(servers) as node:
        me = servers.wait_node()["ID"]
        servers.wait_alloc(servers.run_job(job("web", "/bin/sleep", ["1000"]), me)[0], ["running"])
        case.until(lambda: "drover_link_heartbeat_seconds_count" in link_numbers(node.request("GET", "/v1/metrics?format=prometheus").text), 60,
                   "a measured heartbeat")

        def pages():
            """Returns whether a server is in use, as each page says it; whether the node is healthy; and what the table of the probe says."""
            health, line = node.request("GET", "/v1/agent/health?deep=1").json, node.drover("probe").out
            return ([bool(check_same_numbers(node)["drover_link_connected"]), node.ask("/v1/agent/self")["stats"]["client"]["server"] != "",
                     health["servers"]["state"] == "ok", "stalled since" not in line], health["client"]["ok"])
        case.equal(pages(), ([True] * 4, True))
        numbers = check_same_numbers(node)
        case.equal(numbers["drover_link_connections_total"], 1)
        servers.stop_server(0)
        node.wait_log("no server is reachable", 30)
        case.until(lambda: pages() == ([False] * 4, True), 30, "a node that is stalled, in all pages")
        lost = check_same_numbers(node)
        case.equal([name for name, value in lost.items() if name.endswith("_total") and value < numbers[name]], [], "counters that went back")


case.run(globals())

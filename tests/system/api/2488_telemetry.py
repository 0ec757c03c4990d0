#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The telemetry block of the configuration decides what /v1/metrics has."""
import re
import socket
import sqlite3

from lib import agent, api, case, exposition


# Metrics whose values do not change by themselves.
STEADY = ("nomad.client.tasks.running.", "nomad.client.allocated.cpu.", "nomad.client.allocated.memory.", "nomad.client.unallocated.memory.",
          "nomad.client.allocs.memory.allocated.web.", "nomad.client.host.memory.total.", "drover.process.up.", "drover.state.failed_commits_total")


def scraped(node):
    """Returns {name of a line for statsd: value} of the gauges and counters of a scrape. In that name the values of labels follow the metric's."""
    found = node.ask("/v1/metrics")
    return {".".join([one["Name"], *(re.sub("[: |@]", "_", text) for text in one["Labels"].values())]): one.get("Value", one.get("Sum"))
            for one in found["Gauges"] + found["Counters"]}


def families(node):
    answer = node.request("GET", "/v1/metrics?format=prometheus")
    case.equal(answer.status, 200, answer.text)
    return exposition.parse(answer.text)


def parts(found):
    """Returns which parts of the metrics there are."""
    return {part for part in ("nomad_client_host_", "nomad_client_allocs_", "nomad_client_tasks_", "drover_")
            if any(name.startswith(part) for name in found)}


def with_telemetry(text):
    node = api.Node(args=agent.config_args("telemetry { %s }\n" % text))
    node.register(api.job("web", Meta={"team": "a", "zone": "b"}))
    node.wait_running("web")
    return node


def test_what_is_published():
    with with_telemetry("publish_node_metrics = false publish_allocation_metrics = false") as node:
        case.equal(parts(families(node)), {"nomad_client_tasks_", "drover_"})


def test_the_longest_prefix_decides():
    with with_telemetry('prefix_filter = ["-nomad.client", "+nomad.client.tasks", "-drover", "-nomad.client.tasks.dead"]') as node:
        case.equal(set(families(node)), {"nomad_client_tasks_pending", "nomad_client_tasks_running"})
    with with_telemetry('filter_default = false prefix_filter = ["+nomad.client.host"]') as node:
        case.equal(parts(families(node)), {"nomad_client_host_"})


def test_labels():
    with with_telemetry('disable_hostname = true include_alloc_metadata_in_metrics = true allowed_metadata_keys_in_metrics = ["zone"]') as node:
        labels = families(node)["nomad_client_allocs_running"].samples[0][1]
        case.equal((labels.get("host"), labels.get("team"), labels.get("zone")), (None, None, "b"))
    with with_telemetry('use_node_name = true } name = "n7" client {') as node:
        case.equal(families(node)["nomad_client_tasks_running"].samples[0][1]["host"], "n7")


def test_tasks_that_ended_long_ago_have_no_metrics():
    """They still count."""
    with with_telemetry("") as node:
        made = api.job("two")
        made["Job"]["TaskGroups"][0]["Tasks"].append(api.task("once", "/bin/true", [], Lifecycle={"Hook": "prestart"}))
        node.register(made)
        node.wait_running("two")
        case.until(lambda: (found := families(node).get("nomad_client_allocs_complete")) and found.values(task="once") == [1], 30, "the end of the first task")
        node.kill_launcher()
        db = sqlite3.connect(node.data + "/state/state.db")
        (text,) = db.execute("SELECT json FROM alloc WHERE job = 'two'").fetchone()
        db.execute("UPDATE alloc SET json = ? WHERE job = 'two'", (re.sub('("FinishedAt":")[^"]*', r"\g<1>2024-01-01T00:00:00Z", text),))
        db.commit()
        db.close()
        node.start()
        node.wait_ready()
        node.wait_running("two")
        found = families(node)
        case.equal((found["nomad_client_tasks_running"].one(), found["nomad_client_tasks_dead"].one()), (2, 1))
        case.equal({(labels["job"], labels["task"]) for _, labels, _ in found["drover_task_restarts_total"].samples}, {("web", "t"), ("two", "t")})


def test_prometheus_can_be_disabled():
    with with_telemetry("prometheus_metrics = false") as node:
        node.refused(415, "Prometheus is not enabled", "GET", "/v1/metrics?format=prometheus")
        case.equal(len(node.ask("/v1/metrics")["Gauges"]) > 5, True)


def test_metrics_are_sent_to_statsd():
    """Each packet has whole lines, and the values are those of a scrape."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(60)
        with with_telemetry('statsd_address = "127.0.0.1:%d" collection_interval = "1s" disable_hostname = true' % server.getsockname()[1]) as node:
            me, alloc, found = node.ask("/v1/nodes")[0]["ID"], node.allocs("web")[0]["ID"], {}
            running = "nomad.client.tasks.running.%s.dc1.none.default.ready.eligible" % me

            def receive():
                packet = server.recv(65536).decode()
                case.equal((len(packet) <= 1432, packet.endswith("\n")), (True, True), packet)
                for line in packet.splitlines():
                    m = re.fullmatch(r"([^:|@ ]+):(-?[0-9.e+-]+)\|g", line)
                    assert m, line
                    found[m[1]] = float(m[2])
                return found.get(running) == 1 and "drover.agent.turn_seconds.count" in found
            case.until(receive, 60, "the running task")
            case.until(lambda: receive() and any(name.startswith("nomad.client.allocs.memory.rss.web.g." + alloc) for name in found), 60, "its memory")
            compared = {}

            def same():
                """Compares what two scrapes have alike with what was sent between them."""
                before = scraped(node)
                server.setblocking(False)
                try:
                    while server.recv(65536):
                        pass
                except BlockingIOError:
                    server.settimeout(60)
                found.clear()
                for _ in range(2):  # from one line of the running task to the next: each line
                    found.pop(running, None)
                    while running not in found:
                        receive()
                after = scraped(node)
                compared.clear()
                compared.update({name: (value, found.get(name)) for name, value in before.items() if after.get(name) == value})
                return all(one == other for one, other in compared.values())
            try:
                case.until(same, 60, "the values of a scrape")
            except AssertionError as e:
                raise AssertionError("%s: %s" % (e, {name: pair for name, pair in compared.items() if pair[0] != pair[1]})) from None
            print("    %d values are those of a scrape" % len(compared))
            case.equal([part for part in STEADY if not any(name.startswith(part) for name in compared)], [], "values that were not compared")


case.run(globals())

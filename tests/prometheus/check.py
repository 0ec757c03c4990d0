#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prometheus reads the metrics of an agent with 1,000 allocations, and the rules of contrib/prometheus fire. In namespaces of its own:
tests/nomad/isolated.py runs it, for `make check-prometheus`.

    tests/nomad/isolated.py tests/prometheus/check.py DIRECTORY [test_…]…

DIRECTORY has the programs prometheus and promtool. Prometheus reads from the agent's listener, health { address }."""
import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.parse
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from lib import ROOT, agent, api, case  # noqa: E402

PROGRAMS = sys.argv.pop(1)
RULES = ROOT + "/contrib/prometheus/drover-alerts.yml"
TESTS = ROOT + "/contrib/prometheus/drover-alerts-test.yml"
N = int(os.environ.get("PROMETHEUS_ALLOCS", "1000"))
INTERVAL = "1s"  # of probes
CONFIG = """global:
  scrape_interval: 1s
  evaluation_interval: 1s
rule_files: ["%s"]
scrape_configs:
- job_name: drover
  metrics_path: /v1/metrics
  params: {format: [prometheus]}
  static_configs:
  - targets: ["127.0.0.1:%d"]
"""


def promtool(*words, data=None):
    done = subprocess.run([PROGRAMS + "/promtool", *words], input=data, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    case.equal((done.returncode, done.stdout.decode() if done.returncode else ""), (0, ""), "promtool " + " ".join(words))


class Prometheus:
    """A server on a free port."""

    def __init__(self, rules=RULES, port=None):
        base = case.directory()
        with socket.create_server(("127.0.0.1", 0)) as s:
            self.address = "127.0.0.1:%d" % s.getsockname()[1]
        with open(base + "/prometheus.yml", "w", encoding="ascii") as f:
            f.write(CONFIG % (rules, port or PORT))
        with open(base + "/log", "w", encoding="ascii") as log:
            self.process = subprocess.Popen([PROGRAMS + "/prometheus", "--config.file=%s/prometheus.yml" % base, "--storage.tsdb.path=%s/data" % base,
                                             "--web.listen-address=" + self.address], stdout=log, stderr=log)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def ask(self, path, **query):
        with urllib.request.urlopen("http://%s/api/v1/%s?%s" % (self.address, path, urllib.parse.urlencode(query)), timeout=60) as answer:
            return json.load(answer)["data"]

    def query(self, expression):
        """Returns the values, or [] while the server starts."""
        try:
            return [float(r["value"][1]) for r in self.ask("query", query=expression)["result"]]
        except OSError:
            return []

    def firing(self):
        return {a["labels"]["alertname"] for a in self.alerts()}

    def alerts(self):
        return [a for a in self.ask("alerts")["alerts"] if a["state"] == "firing"]

    def failed_components(self):
        return {a["labels"]["component"] for a in self.alerts() if a["labels"]["alertname"] == "DroverProbeFailed"}


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def probe():
    return node.request("GET", "/v1/agent/health?deep=1", timeout=120).status


def test_each_rule_fires_when_it_must_and_not_before():
    promtool("check", "rules", RULES)
    promtool("test", "rules", TESTS)
    alerts = re.findall(r"^  - alert: (\w+)$", read(RULES), re.M)
    tests = read(TESTS)
    case.equal(re.findall(r"^    alertname: (\w+)\n    exp_alerts:$", tests, re.M), alerts, "alerts that a test lets fire, in the order of the rules")
    silent = set(re.findall(r"^  - \{eval_time: \w+, alertname: (\w+)\}$", tests, re.M))
    case.equal([a for a in alerts if a not in silent], [], "alerts without a time at which they must not fire")


def test_the_rules_and_the_dashboard_use_metrics_that_exist():
    known = set(re.findall(r"^\| `(\w+)` \|", read(ROOT + "/docs/metrics.md"), re.M))
    for path in (RULES, os.path.dirname(RULES) + "/drover-dashboard.json"):
        used = set(re.findall(r"\b(?:nomad|drover)_[a-z_]*[a-z]\b", read(path)))
        used = {re.sub("_(bucket|sum|count)$", "", name) for name in used}
        case.equal(used - known, set(), path)


def test_prometheus_reads_an_agent_with_many_allocations():
    node.register(api.job("many", count=N))
    node.wait_running("many", N, seconds=900)
    with Prometheus() as prometheus:
        case.until(lambda: prometheus.query("up") == [1.0], 60, "Prometheus to read the agent")
        case.until(lambda: prometheus.query("sum(nomad_client_tasks_running)") == [float(N)], 60, "the tasks")
        case.equal(prometheus.query("count(nomad_client_allocs_memory_rss)"), [float(N)])
        case.equal(prometheus.query('count(drover_task_cpu_seconds_total{exported_job="many"})'), [float(N)])
        case.equal(prometheus.query("scrape_duration_seconds > 10"), [], "duration of a scrape")
        target = prometheus.ask("targets")["activeTargets"][0]
        case.equal((target["health"], target["lastError"]), ("up", ""))
        case.equal(prometheus.firing(), set(), "alerts of an agent that is well")
        for _ in range(5):
            pid = node.kill("file-helper")
            node.wait_process("file-helper", pid)
            case.until(lambda: prometheus.query("drover_process_up{process='file-helper'}") == [1.0], 30, "file-helper to be up again")
        case.until(lambda: "DroverHelperRestarts" in prometheus.firing(), 60, "the alert")
        pid = node.kill("heartbeat", signal.SIGSTOP)
        case.equal(probe(), 503)
        os.kill(pid, signal.SIGCONT)
        case.until(lambda: prometheus.failed_components() == {"helper/heartbeat"}, 60, "the alert for the failed probe")
        case.until(lambda: probe() == 200, 60, "a good probe")
        case.until(lambda: prometheus.failed_components() == set(), 60, "the end of the alert")


def test_the_alert_for_a_probe_at_an_interval():
    """Nobody asks for a probe: the agent repeats it by itself, Prometheus reads its result, and the alert fires."""
    before, at = globals()["node"], PORT + 1
    with api.Node(agent.config_args('health { address = "127.0.0.1:%d" interval = "%s" }\n' % (at, INTERVAL))) as globals()["node"], Prometheus(port=at) as prometheus:
        case.until(lambda: prometheus.query('drover_probe_healthy{component="helper/heartbeat"}') == [1.0], 60, "the first probe")
        case.equal(prometheus.firing(), set(), "alerts of an agent that is well")
        pid = node.kill("heartbeat", signal.SIGSTOP)
        try:
            case.until(lambda: prometheus.failed_components() == {"helper/heartbeat"}, 120, "the alert for the failed probe")
            case.equal([a["annotations"]["summary"] for a in prometheus.alerts() if a["labels"]["alertname"] == "DroverProbeFailed"],
                       ["127.0.0.1:%d: the probe of component helper/heartbeat fails" % at])
        finally:
            os.kill(pid, signal.SIGCONT)
        case.until(lambda: prometheus.failed_components() == set(), 120, "the end of the alert")
    globals()["node"] = before


def test_promtool_finds_nothing_wrong_in_an_agent_that_has_worked():
    answer = node.request("GET", "/v1/metrics?format=prometheus")
    promtool("check", "metrics", data=answer.body)


PORT = 4648
LARGE = """client { cpu_total_compute = 1000000 memory_total_mb = 1000000 }
health { address = "127.0.0.1:%d" }
""" % PORT
with api.Node(agent.config_args(LARGE)) as node:
    case.run(globals())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# timeout: 900
# takes: 45
"""Plugins that are not healthy: every code at every call of a fingerprint, as csi_codes.def says; and the health_timeout, after which the plugin's task
is restarted as its restart policy says."""
import os

from lib import api, build_dir, case, csi_walk, volumes

SECOND = 10**9
table = csi_walk.Table()
ELSEWHERE = {"NodeGetVolumeStats", "ControllerGetVolume", "GetVolumeGroupSnapshot", "GetCapacity"}  # asked about volumes
PROBES = ("Probe", "GetPluginInfo", "GetPluginCapabilities", "NodeGetInfo", "NodeGetCapabilities", "ControllerGetCapabilities",
          "GroupControllerGetCapabilities")


class Sick:
    """A plugin job, healthy or not; its rules are a file."""

    def __init__(self, name, rules, script='exec "$@"', health_timeout=600, **restart):
        self.name, self.base = name, case.directory()
        self.log = self.base + "/log"
        self.say(rules)
        words = [os.path.join(build_dir(), "tests", "csi_bad"), "log=" + self.log, "rules=" + self.base + "/rules", "group=yes"]
        script = 'bad=$1; shift; set -- "$bad" "$${CSI_ENDPOINT#unix://}" "$@"; ' + script
        made = api.job("plugin-" + name, "/bin/sh", ["-c", script, "csi_bad", *words], CSIPluginConfig={
            "ID": name, "Type": "monolith", "MountDir": "/csi", "HealthTimeout": health_timeout * SECOND})
        made["Job"]["TaskGroups"][0]["RestartPolicy"].update(restart)
        node.register(made)

    def say(self, rules):
        for file, text in (("rules", rules), ("log", "")):
            case.write(self.base + "/new", text)
            os.rename(self.base + "/new", self.base + "/" + file)

    def methods(self):
        with open(self.log, encoding="utf-8") as f:
            return [line.split(" ")[0] for line in f.read().splitlines()]

    def alloc(self):
        return node.allocs("plugin-" + self.name)[-1]

    def events(self):
        return node.events(self.alloc()["ID"])

    def is_healthy(self):
        answer = node.request("GET", "/v1/plugin/csi/" + self.name)
        return answer.status == 200 and answer.json["NodesHealthy"] == 1

    def task(self):
        return node.ask("/v1/allocation/" + self.alloc()["ID"])["TaskStates"]["t"]


def expected(call, plugin, status):
    """What is asked again periodically is repeated once, and never waited for. A channel whose probe fails so is lost, and opened again."""
    if call == "Probe" and table.codes[status] == "Unavailable":
        return "probe the plugin: UNAVAILABLE: as commanded"
    return table.sentence(call, status, plugin)


def longest_row(methods, call):
    best = row = 0
    for method in methods:
        row = row + 1 if method == call else 0
        best = max(best, row)
    return best


def check_tries(plugin, call, status):
    """After Unavailable csi-helper probes the channel between two tries."""
    if table.codes[status] == "Unavailable":
        return
    tries, what = table.bad_answers(call, status), "tries of %s after %s" % (call, table.codes[status])
    case.until(lambda: longest_row(plugin.methods(), call) >= tries, 30, what)
    case.equal(longest_row(plugin.methods(), call), tries, what)


def test_a_plugin_that_is_healthy_after_its_restart_stays():
    case.until(csi_walk.slowly(later.is_healthy), 60, "the plugin to be healthy")
    case.equal(later.task()["Restarts"] >= 1, True, "restarts")
    case.contains(later.events(), "did not become healthy before configured 2s health timeout")
    later.say("Probe=status:9")  # asked after 30 s; see below


def test_every_code_at_every_call_of_a_fingerprint():
    # Probe's channel must be open, so GetPluginInfo fails first there.
    plugins = {call: Sick(call.lower(), "GetPluginInfo=status:2" if call == "Probe" else call + "=status:2") for call in PROBES}
    case.until(lambda: "GetPluginInfo" in plugins["Probe"].methods(), 30, "the channel of the plugin for Probe")
    for status in sorted(table.codes, key=lambda status: table.codes[status] == "Unavailable"):
        for call, plugin in plugins.items():
            plugin.say("%s=status:%d" % (call, status))
        for call, plugin in plugins.items():
            said = expected(call, plugin.name, status)
            case.until(csi_walk.slowly(lambda: said in plugin.events()), 60, "the event of %s: %s" % (call, said))
            if call != "Probe":
                check_tries(plugin, call, status)
    for plugin in plugins.values():
        plugin.say("")
    for plugin in plugins.values():
        case.until(csi_walk.slowly(plugin.is_healthy), 60, "plugin %s to be healthy" % plugin.name)
        case.equal(plugin.task()["Restarts"], 0, "restarts before the health_timeout")
        node.purge("plugin-" + plugin.name)


def test_every_call_of_a_fingerprint_was_walked():
    case.equal(sorted(table.once - set(PROBES) - ELSEWHERE), [], "calls of csi_codes.def")


def test_a_plugin_is_restarted_after_its_health_timeout_and_then_fails():
    case.until(lambda: never.alloc()["ClientStatus"] == "failed", 60, "the plugin to fail")
    print("    " + never.events().replace("\n", "\n    "))
    case.equal(never.task()["Restarts"], 1, "restarts")
    said = "CSI plugin did not become healthy before configured 2s health timeout"
    case.equal(never.events().count("Restart Signaled: " + said), 2, "the sentence for both instances")
    case.equal(never.events().count("Plugin became unhealthy: Error: CSI plugin failed probe: "), 2, "the cause for both instances")
    node.purge("plugin-never")


def test_a_plugin_that_was_healthy_is_not_restarted_for_its_health():
    restarts = later.task()["Restarts"]
    case.until(csi_walk.slowly(lambda: "Plugin became unhealthy: Error: Probe of plugin later: the plugin is not healthy" in later.events()), 60,
               "the event")
    before = later.methods().count("Probe")
    case.until(lambda: later.methods().count("Probe") > before, 60, "another probe, after the health_timeout")
    case.equal((later.task()["Restarts"], later.alloc()["ClientStatus"]), (restarts, "running"), "restarts while it is unhealthy")
    later.say("")
    case.until(csi_walk.slowly(later.is_healthy), 60, "the plugin to be healthy again")
    node.purge("plugin-later")


def test_no_leaks_are_left():
    case.until(lambda: node.ask("/v1/agent/leaks") == [], 30, "no leaks")


with volumes.Node() as node:
    never = Sick("never", "Probe=hang", health_timeout=2, Attempts=1, Interval=3600 * SECOND)
    later = Sick("later", "", 'if mkdir "$${NOMAD_ALLOC_DIR}/second" 2>/dev/null; then exec sleep 1000; else exec "$@"; fi', health_timeout=2,
                 Attempts=100, Interval=3600 * SECOND)
    case.run(globals())

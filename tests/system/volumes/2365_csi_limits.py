#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# timeout: 600
# takes: 30
"""More calls and plugins than csi-helper serves at once: a call beyond the limit waits for its turn, and is neither lost nor counted as a failed try;
a plugin beyond the limit is told why it waits, and gets its turn when another one ends."""
import concurrent.futures
import os
import re

from lib import ROOT, api, build_dir, case, csi_walk, volumes

with open(ROOT + "/csi-helper/csi.h", encoding="utf-8") as f:
    LIMIT = {name: int(value) for name, value in re.findall(r"^#define CSI_(\w+)_MAX\s+(\d+)$", f.read(), re.M)}
CALLS, CHANNELS = LIMIT["CALLS"], LIMIT["CHANNELS"]
MORE = 44


def list_volumes(i):
    return node.request("GET", "/v1/volumes/external?plugin_id=bad&next_token=t%d" % i, timeout=300)


def calls():
    return sum(len(plugin.calls("ListVolumes", "t%d" % i)) for i in range(CALLS + MORE))


def test_calls_beyond_the_limit_wait_for_their_turn():
    plugin.say(["ListVolumes=held"])
    with concurrent.futures.ThreadPoolExecutor(CALLS + MORE) as pool:
        answers = [pool.submit(list_volumes, i) for i in range(CALLS)]
        case.until(lambda: calls() == CALLS, 60, "as many calls as there may be")
        answers += [pool.submit(list_volumes, CALLS + i) for i in range(MORE)]
        case.until(lambda: open_requests() >= CALLS + MORE, 60, "the other requests")
        case.equal(calls(), CALLS, "calls at the same time")
        case.equal([a for a in answers if a.done()], [], "requests that were answered meanwhile")
        with open(plugin.state + "/release", "w", encoding="utf-8"):
            pass
        for answer in answers:
            case.equal(answer.result(300).status, 200, answer.result().text)
    case.equal(calls(), CALLS + MORE, "calls in all: each was made once")


def open_requests():
    """Returns how many connections the control socket has."""
    with open("/proc/net/unix", encoding="utf-8") as f:
        return len([line for line in f if line.rstrip().endswith("drover.sock") and line.split()[5] == "03"])


def test_a_plugin_beyond_the_limit_says_why_it_waits():
    """One channel belongs to the plugin of the other test."""
    script = 'exec %s "$${CSI_ENDPOINT#unix://}"' % os.path.join(build_dir(), "tests", "csi_bad")
    made = api.job("plugin-many", "/bin/sh", ["-c", script], count=CHANNELS, CSIPluginConfig={
        "ID": "many", "Type": "node", "MountDir": "/csi", "HealthTimeout": 600 * 10**9})
    made["Job"]["TaskGroups"][0]["Tasks"][0]["Resources"] = {"CPU": 1, "MemoryMB": 10}
    node.register(made)
    case.until(csi_walk.slowly(lambda: len(healthy()) == CHANNELS - 1), 120, "as many plugins as there may be")
    waiting, = {a["ID"] for a in node.allocs("plugin-many")} - healthy()
    said = "%d channels to plugins are open, which is the limit" % CHANNELS
    case.until(lambda: said in node.events(waiting), 30, "the reason")
    line, = [text for text in node.events(waiting).splitlines() if said in text]
    print("    " + line)
    case.equal("no gRPC server answers" in line, False, "whether the event blames the plugin")
    plugin.purge()
    case.until(csi_walk.slowly(lambda: waiting in healthy()), 60, "its turn")
    node.purge("plugin-many")


def healthy():
    answer = node.request("GET", "/v1/plugin/csi/many")
    if answer.status != 200:
        return set()
    return {a["ID"] for a in node.allocs("plugin-many") if "Plugin became healthy" in node.events(a["ID"])}


def test_no_leaks_are_left():
    case.until(lambda: node.ask("/v1/agent/leaks") == [], 30, "no leaks")


with volumes.Node() as node:
    plugin = csi_walk.Plugin(node)
    case.run(globals())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# timeout: 900
# takes: 60
"""Every code at every call of csi_codes.def. The expected tries, their spacing and the sentence are read from that file. The plugin answers a call
with the code as often as the table says that drover tries; then it answers well: fewer tries would fail again later, and more would hide the
failure."""
import os
import threading
import traceback

from lib import case, csi_walk, volumes

REFUSED = (3, 9, 11, 12)  # NodeExpandVolume: the specification has the caller change something, or not repeat it
# After ResourceExhausted the plugin's volumes are not placed for a while, so it has a plugin of its own.
EXHAUSTED = 8
table = csi_walk.Table()


class Walk:
    """A plugin, and the volumes whose calls it answers with these codes."""

    def __init__(self, name, codes):
        self.codes, self.error = codes, None
        self.plugin = csi_walk.Plugin(node, name)
        self.life = csi_walk.Life(node, self.plugin)

    def name(self, group, status):
        return "%s-%s-%d" % (self.plugin.name, group, status)

    def run(self):
        try:
            for step in csi_walk.STEPS:
                self.walk_step(step)
            self.life.forget_users([self.name(group, status) for group in "abc" for status in self.codes])
            case.equal(os.listdir(self.plugin.state), [], "what the plugin has in the end")
        except BaseException:  # the thread's owner reports it
            self.error = traceback.format_exc()

    def walk_step(self, step):
        rules, made = [], {}
        for group, (call, how) in step.items():
            for status in self.codes:
                name = self.name(group, status)
                made.setdefault(how, []).append((name, call, status))
                if call:
                    rules.append("%s/%s=%s" % (call, name, rule(call, status)))
        self.plugin.say(rules)
        for how, rows in made.items():
            outcomes = getattr(self.life, how)([name for name, _, _ in rows])
            again = []
            for name, call, status in rows:
                if call:
                    self.check_row(call, status, name, outcomes[name], again)
                else:
                    case.equal(outcomes[name][0] in (True, None), True, "%s %s: %s" % (how, name, outcomes[name][1]))
            if how == "grow" and len(self.codes) > 1:
                self.check_refused_expansions()
            if again and how != "leave":
                for name, outcome in getattr(self.life, how)(again).items():
                    case.equal(outcome[0], True, "%s %s again: %s" % (how, name, outcome[1]))

    def check_row(self, call, status, name, outcome, again):
        """outcome: of the call that got bad answers. again: gets the name, if the call has failed and is made once more."""
        went_well, text = outcome
        what = "%s of %s answered with %s" % (call, name, table.codes[status])
        times = self.plugin.calls(call, name)
        if table.ends_well(call, status):
            case.equal(went_well in (True, None), True, what + ": " + text)
        else:
            case.equal(went_well in (False, None), True, what + ": whether it failed")
            case.contains(text, table.sentence(call, status, self.plugin.name), what)
            again.append(name)
        tries = table.bad_answers(call, status) + (table.verdict(call, status) == "PENDING")
        case.equal(len(times) >= tries, True, "%s: %d tries" % (what, len(times)))
        for i in range(1, tries):
            case.equal(times[i] - times[i - 1] >= table.backoff_ms * 2 ** (i - 1), True, "%s: tries at %s" % (what, times))

    def check_refused_expansions(self):
        """What the plugin refuses is not repeated by itself. The codes that are retried failed later, so that the others' next round would have
        come."""
        def count(status):
            return len(self.plugin.calls("NodeExpandVolume", self.name("b", status)))
        retried = [status for status in self.codes if table.verdict("NodeExpandVolume", status) == "RETRY"]
        case.until(csi_walk.slowly(lambda: all(count(status) > table.tries_max for status in retried)), 60, "the next round of those that are retried")
        for status in REFUSED:
            case.equal(count(status), 1, "NodeExpandVolume after %s" % table.codes[status])


def rule(call, status):
    """What was done already is answered with NotFound by a plugin that has done it."""
    return "first:%d:%s:%d" % (table.bad_answers(call, status), "lost" if table.verdict(call, status) == "DONE" else "status", status)


def test_every_code_at_every_call():
    walks.extend([Walk("bad", [status for status in table.codes if status != EXHAUSTED]), Walk("full", [EXHAUSTED])])
    threads = [threading.Thread(target=walk.run) for walk in walks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    case.equal([print(walk.error) for walk in walks if walk.error], [], "walks that failed")


def test_every_code_at_get_capacity():
    plugin = walks[0].plugin
    for status, code in table.codes.items():
        plugin.say(["GetCapacity=" + rule("GetCapacity", status)])
        page = node.ask("/v1/plugin/csi/" + plugin.name, refresh="true")
        if not table.ends_well("GetCapacity", status):
            case.contains(page.get("CapacityError") or "", table.sentence("GetCapacity", status, plugin.name), code)
            page = node.ask("/v1/plugin/csi/" + plugin.name, refresh="true")
        case.equal(bool(page.get("CapacityError")), False, "GetCapacity after %s" % code)


def test_every_code_at_controller_get_volume():
    plugin = walks[0].plugin
    node.do("PUT", "/v1/volume/csi/seen/create", walks[0].life.volume("seen"))
    for status, code in table.codes.items():
        plugin.say(["ControllerGetVolume=" + rule("ControllerGetVolume", status)])
        found = node.ask("/v1/volume/csi/seen", refresh="true")["AtController"]
        if not table.ends_well("ControllerGetVolume", status):
            case.contains(found.get("Error") or "", table.sentence("ControllerGetVolume", status, plugin.name), code)
            found = node.ask("/v1/volume/csi/seen", refresh="true")["AtController"]
        case.equal(bool(found.get("Error")), False, "ControllerGetVolume after %s" % code)
    node.do("DELETE", "/v1/volume/csi/seen/delete")


def test_every_code_at_get_volume_group_snapshot():
    plugin = walks[0].plugin
    path = "/v1/volumes/group-snapshot?plugin_id=%s&group_snapshot_id=g&snapshot_id=g" % plugin.name
    for status, code in table.codes.items():
        plugin.say(["GetVolumeGroupSnapshot=" + rule("GetVolumeGroupSnapshot", status)])
        answer = node.request("GET", path)
        if not table.ends_well("GetVolumeGroupSnapshot", status):
            case.equal(answer.status >= 400, True, code)
            case.contains(answer.text, table.sentence("GetVolumeGroupSnapshot", status, plugin.name), code)
            answer = node.request("GET", path)
        case.equal(answer.status, 200, "GetVolumeGroupSnapshot after %s: %s" % (code, answer.text))


def test_every_call_was_walked():
    walked = {call for step in csi_walk.STEPS for call, _ in step.values()} | {"GetCapacity"}
    case.equal(sorted(set(table.calls) - table.once - walked), [], "calls of csi_codes.def that no step makes")


def test_nothing_is_left():
    case.equal(node.ask("/v1/volumes", type="csi"), [], "volumes")
    for walk in walks:
        walk.plugin.purge()
    case.until(lambda: node.ask("/v1/agent/leaks") == [], 30, "no leaks")


walks = []
with volumes.Node(client="gc_max_allocs = 1000") as node:
    case.run(globals())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# timeout: 900
# takes: 60
"""Each CSI call to a plugin that is silent, is not understood, closes the connection, ends before or after the effect, is slower than its answer, says
that it has done what it has not, or is not idempotent. Each fault has its own plugin, whose volumes live from creation to deletion; all live at the
same time. With CSI_WALK=all every call is met by each length of silence; otherwise some by one try only."""
import os
import threading
import traceback

from lib import case, csi_walk, volumes

TIMEOUT_MS = 3000
ALL = os.environ.get("CSI_WALK") == "all"
UNAVAILABLE, ALREADY_EXISTS = 14, 6
table = csi_walk.Table()


def make(life, how, name):
    return getattr(life, how)([name])[name]


def well(what, outcome):
    case.equal(outcome[0] in (True, None), True, what + ": " + outcome[1])


class Fault:
    """A plugin, and a volume of each group. rule(call, how) is its behaviour for one call of this step."""
    restart, words, one_by_one = {}, (), False

    def __init__(self, node, name):
        self.plugin = csi_walk.Plugin(node, name, self.words, **self.restart)
        self.life = csi_walk.Life(node, self.plugin)
        self.error = None

    def name(self, group):
        return "%s-%s" % (self.plugin.name, group)

    def rules(self, step):
        return ["%s/%s=%s" % (call, self.name(group), self.rule(call, how)) for group, (call, how) in step.items() if call]

    def check(self, call, how, name, outcome):
        """By default the call was repeated, and went well."""
        what = "%s of %s" % (call, name)
        well(what, outcome)
        case.equal(len(self.plugin.calls(call, name)) >= 2, True, what + ": whether it was repeated")

    def walk(self):
        for step in csi_walk.STEPS:
            self.plugin.say(self.rules(step))
            made = {}
            for group, (call, how) in step.items():
                made.setdefault((how, group if self.one_by_one else ""), {})[self.name(group)] = call
            for (how, _), rows in made.items():
                for name, outcome in getattr(self.life, how)(list(rows)).items():
                    if rows[name]:
                        self.check(rows[name], how, name, outcome)
                    else:
                        well("%s of %s" % (how, name), outcome)
        self.life.forget_users([self.name(group) for group in "abc"])
        left = [file for file in os.listdir(self.plugin.state) if not file.startswith("died:")]
        case.equal(left, [], "what plugin %s has in the end" % self.plugin.name)

    def run(self):
        try:
            self.walk()
        except BaseException:  # the thread's owner reports it
            self.error = traceback.format_exc()


class Silent(Fault):
    """No answer to all tries of a call; to the first only in steps that take no part in mounts."""

    def tries(self, how):
        return table.tries_max if ALL or how in ("use", "leave") else 1

    def rule(self, call, how):
        return "first:%d:hang" % self.tries(how)

    def check(self, call, how, name, outcome):
        if self.tries(how) == 1:
            super().check(call, how, name, outcome)
            return
        what = "%s of %s" % (call, name)
        verdict, meaning = table.origins["DEADLINE"]
        case.equal(verdict, "RETRY", "what follows silence")
        case.equal(outcome[0] in (False, None), True, what + ": whether it failed")
        case.contains(outcome[1], "%s of plugin %s (tried %d times): %s: rpc error: code = DeadlineExceeded desc = no answer within %d ms" % (
            call, self.plugin.name, table.tries_max, meaning, TIMEOUT_MS), what)
        times = self.plugin.calls(call, name)
        for i in range(1, table.tries_max):
            case.equal(times[i] - times[i - 1] >= TIMEOUT_MS // 2, True, "%s: tries at %s" % (what, times))
        if outcome[0] is False:
            well(what + " again", make(self.life, how, name))


class Unreadable(Fault):
    """Takes effect, and answers with what is no message: it is not known whether the call did anything."""
    behaviour, origin, desc = "garbage", "INVALID", "the plugin's answer cannot be used: "

    def rule(self, call, how):
        return "first:1:" + self.behaviour

    def check(self, call, how, name, outcome):
        what = "%s of %s" % (call, name)
        verdict, meaning = table.origins[self.origin]
        case.equal((verdict, outcome[0] in (False, None)), ("FINAL", True), what + ": " + outcome[1])
        case.contains(outcome[1], "%s of plugin %s: %s: rpc error: code = Internal desc = %s" % (call, self.plugin.name, meaning, self.desc), what)
        if outcome[0] is False:
            well(what + " again", make(self.life, how, name))


class TooLarge(Unreadable):
    behaviour, origin, desc = "huge:4300000", "TOO_LARGE", "its answer is larger than 4096 KiB"


class Drops(Fault):
    """Closes the connection during the first try. Once in each step, the next connection is not served, as while a process ends."""
    one_by_one = True

    def rules(self, step):
        return [*super().rules(step), "Probe=first:1:status:%d" % UNAVAILABLE]

    def rule(self, call, how):
        return "first:1:drop"


class Dies(Fault):
    """Ends during the first try, before the effect. The next instance gets the second."""
    one_by_one = True
    restart = {"Attempts": 100, "Interval": 3600 * 10**9, "Delay": 10**8}

    def rule(self, call, how):
        return "die"


class Killed(Dies):
    """Ends after the effect, before the answer."""

    def rule(self, call, how):
        return "killed"


class Late(Fault):
    """Says that it is unavailable, and takes effect later. Meanwhile it says that it is busy with the volume."""

    def rule(self, call, how):
        return "first:1:late:700"


class Strict(Fault):
    """Takes effect, says that it is unavailable, and refuses what it has done already: a call that undoes something finds it undone. What makes
    something fails, and is undone before the next try, which drover does for mounts and attachments and an operator does for the rest."""
    words = ("strict=yes",)

    def rule(self, call, how):
        return "first:1:lost:%d" % UNAVAILABLE

    def check(self, call, how, name, outcome):
        kind = {"CreateVolume": "volume", "CreateSnapshot": "snapshot", "CreateVolumeGroupSnapshot": "group"}.get(call)
        if not kind and call not in ("NodeStageVolume", "NodePublishVolume", "ControllerPublishVolume"):
            super().check(call, how, name, outcome)
            return
        what = "%s of %s" % (call, name)
        case.equal((outcome[0], table.verdict(call, ALREADY_EXISTS)), (False, "FINAL"), what + ": " + outcome[1])
        case.contains(outcome[1], "%s of plugin %s (tried 2 times): %s: rpc error: code = AlreadyExists desc = not idempotent" % (
            call, self.plugin.name, table.rows[call, ALREADY_EXISTS][2]), what)
        if kind:
            os.unlink("%s/%s:%s" % (self.plugin.state, kind, name))
        well(what + " again", make(self.life, how, name))


class Lies(Fault):
    """Says that it has mounted or unmounted what it has not."""
    TOLD = {"NodePublishVolume": "said that it is mounted, but", "NodeUnpublishVolume": "drover has unmounted it",
            "NodeUnstageVolume": "drover has unmounted it"}

    def rule(self, call, how):
        return "first:1:lies" if call in self.TOLD else "ok"

    def check(self, call, how, name, outcome):
        what = "%s of %s" % (call, name)
        if call in self.TOLD:
            case.contains(outcome[1], self.TOLD[call], what)
        if outcome[0] is False:
            well(what + " again", make(self.life, how, name))
        # The plugin still believes that it has what it has not undone.
        if call in ("NodeUnpublishVolume", "NodeUnstageVolume"):
            kind = "published" if call == "NodeUnpublishVolume" else "staged"
            os.unlink("%s/%s:%s" % (self.plugin.state, kind, name))


def test_every_fault_at_every_call():
    kinds = (Unreadable, TooLarge, Drops, Dies, Killed, Late, Strict, Lies)
    faults.append(Silent(hasty, "silent"))
    faults.extend(kind(node, kind.__name__.lower()) for kind in kinds)
    threads = [threading.Thread(target=fault.run) for fault in faults]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for fault in faults:
        print("    %-10s %s" % (fault.plugin.name, "failed:\n" + fault.error if fault.error else "ok"))
    case.equal([fault.plugin.name for fault in faults if fault.error], [], "plugins whose volumes did not live as they should")


def test_nothing_is_left():
    for fault in faults:
        fault.plugin.purge()
    for agent in (node, hasty):
        case.equal(agent.ask("/v1/volumes", type="csi"), [], "volumes")
        case.until(lambda: agent.ask("/v1/agent/leaks") == [], 30, "no leaks")


faults = []
# Only silence is given up soon: on a slow machine other answers may take as long.
with volumes.Node(client="gc_max_allocs = 1000") as node, volumes.Node(client='csi_call_timeout = "%dms"' % TIMEOUT_MS) as hasty:
    case.run(globals())

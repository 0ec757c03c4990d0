#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# timeout: 900
# takes: 60
"""Every code at every call of csi_codes.def. The expected tries, their spacing and the sentence are read from that file. The plugin answers a call with
the code as often as the table says that drover tries; then it answers well: fewer tries would fail again later, and more would hide the failure."""
import os

from lib import case, csi_walk, volumes

REFUSED = (3, 9, 11, 12)  # NodeExpandVolume: the specification has the caller change something, or not repeat it
table = csi_walk.Table()


def check_row(call, status, name, outcome, again):
    """outcome: of the call that got bad answers. again: makes the call once more, where it had failed."""
    went_well, text = outcome
    what = "%s of %s answered with %s" % (call, name, table.codes[status])
    times = plugin.calls(call, name)
    bad = table.bad_answers(call, status)
    if table.ends_well(call, status):
        case.equal(went_well in (True, None), True, what + ": " + text)
    else:
        case.equal(went_well in (False, None), True, what + ": whether it failed")
        case.contains(text, table.sentence(call, status, "bad"), what)
        again.append(name)
    tries = bad + (table.verdict(call, status) == "PENDING")
    case.equal(len(times) >= tries, True, "%s: %d tries" % (what, len(times)))
    for i in range(1, tries):
        case.equal(times[i] - times[i - 1] >= table.backoff_ms * 2 ** (i - 1), True, "%s: waits between tries: %s" % (what, times))


def behaviour(call, status):
    """What was done already is answered with NotFound by a plugin that has done it."""
    return "lost" if table.verdict(call, status) == "DONE" else "status"


def check_refused_expansions():
    """What the plugin refuses is not repeated by itself. The codes that are retried failed later, so that the others' next round would have come."""
    def count(status):
        return len(plugin.calls("NodeExpandVolume", "b-%d" % status))
    retried = [status for status in table.codes if table.verdict("NodeExpandVolume", status) == "RETRY"]
    case.until(csi_walk.slowly(lambda: all(count(status) > table.tries_max for status in retried)), 60, "the next round of those that are retried")
    for status in REFUSED:
        case.equal(count(status), 1, "NodeExpandVolume after %s" % table.codes[status])


def walk_step(step):
    rules, made = [], {}
    for group, (call, how) in step.items():
        for status in table.codes:
            name = "%s-%d" % (group, status)
            made.setdefault(how, []).append((name, call, status))
            if call:
                rules.append("%s/%s=first:%d:%s:%d" % (call, name, table.bad_answers(call, status), behaviour(call, status), status))
    plugin.say(rules)
    for how, rows in made.items():
        outcomes = getattr(life, how)([name for name, _, _ in rows])
        again = []
        for name, call, status in rows:
            if call:
                check_row(call, status, name, outcomes[name], again)
            else:
                case.equal(outcomes[name][0] in (True, None), True, "%s %s: %s" % (how, name, outcomes[name][1]))
        if how == "grow":
            check_refused_expansions()
        if again and how != "leave":
            for name, outcome in getattr(life, how)(again).items():
                case.equal(outcome[0], True, "%s %s again: %s" % (how, name, outcome[1]))


def test_every_code_at_every_call():
    for step in csi_walk.STEPS:
        walk_step(step)
        print("    walked: %s" % ", ".join(call for call, _ in step.values() if call), flush=True)


def test_every_call_was_walked():
    walked = {call for step in csi_walk.STEPS for call, _ in step.values()}
    case.equal(sorted(set(table.calls) - table.once - walked), [], "calls of csi_codes.def that no step makes")


def test_nothing_is_left():
    life.forget_users(["%s-%d" % (group, status) for group in "abc" for status in table.codes])
    case.equal(os.listdir(plugin.state), [], "what the plugin has")
    case.equal(node.ask("/v1/volumes", type="csi"), [], "volumes")
    plugin.purge()
    case.until(lambda: node.ask("/v1/agent/leaks") == [], 30, "no leaks")


with volumes.Node() as node:
    plugin = csi_walk.Plugin(node)
    life = csi_walk.Life(node, plugin)
    case.run(globals())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests csi-driver-host-path, alone and with real servers, and compares the calls that it gets with those of the servers' own client.
In namespaces of its own:

    CSI_HOSTPATH=path CSI_HOSTPATH_OLD=path tests/nomad/isolated.py tests/nomad/check_csi.py PATH [test_…]…

PATH is the servers' program. CSI_HOSTPATH_OLD is an older version of the driver, which is upgraded in use."""
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from lib import agent, api, case  # noqa: E402
import csi_calls  # noqa: E402
import csi_life  # noqa: E402
import csi_nodes  # noqa: E402

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "differences.md")
ATTACH = ("-enable-attach", "-check-volume-lifecycle", "-attach-limit=3")
# What servers and the original client cannot do with this driver. Servers take a request without mount options for a change of them; the client
# has a staging path for each kind of use, and the driver permits one.
SERVERS_FAIL = ("expand block",)
ORIGINAL_FAILS = ("read", *SERVERS_FAIL)


def alone(*options, without=()):
    """Lives the whole life, without these steps, on an agent without servers. Returns the place."""
    with api.Node(args=agent.config_args('name = "n1"\n')) as node:
        place = csi_life.Place(csi_life.Alone(node), "n1", csi_nodes.Ours(node), options)
        place.live(without=without)
        case.until(lambda: node.ask("/v1/agent/leaks") == [], 20, "no leaks")
    shutil.rmtree("/run/mount", ignore_errors=True)  # mount(8), which drivers call, writes its notes there
    return place


def compare(theirs, ours, what):
    """Checks that the driver was called in the same way, and prints what is different on purpose."""
    rows = csi_calls.differences(theirs.log.steps(), ours.log.steps())
    left = csi_calls.unexplained(rows, csi_calls.explained(TABLE))
    for row in rows:
        print("    %s %s: %s" % ("  " if row not in left else "!!", what, " | ".join(row)), flush=True)
    for name, found in theirs.told.items():
        if found != ours.told[name]:
            print("       %s: step «%s»: theirs %s, ours %s" % (what, name, found, ours.told[name]), flush=True)
    if left:
        print("    theirs %s\n    ours %s" % (csi_life.shown(theirs.log.steps()), csi_life.shown(ours.log.steps())), flush=True)
    return left


def in_a_cluster(*options, without=()):
    """As alone(), on three nodes, one after the other. Returns the places."""
    with csi_nodes.three() as (server, agents):
        places = {n: csi_life.Place(csi_life.Cluster(server), n, agents[n], options) for n in ("n1", "n2", "n3")}
        for name, place in places.items():
            print("    on " + name, flush=True)
            place.live(may_fail=ORIGINAL_FAILS if name == "n3" else SERVERS_FAIL, without=without)
    return places


def both(*options, without=()):
    single = alone(*options, without=without)
    places = in_a_cluster(*options, without=without)
    wrong = compare(places["n3"], places["n1"], "in a cluster") + compare(places["n1"], places["n2"], "the second node") + \
        compare(places["n3"], single, "alone")
    case.equal(wrong, [], "differences without a reason in " + TABLE)


def test_the_whole_life_alone():
    """With ATTACH the driver refuses to stage what is not attached, to detach what is staged, and to delete what is attached."""
    alone()
    alone(*ATTACH)


def test_the_whole_life():
    both()


def test_the_whole_life_with_attachments():
    """Without a reader beside the writer: servers ask to attach the volume to the node once more, read-only, and the driver refuses that while
    it is attached for writing."""
    both(*ATTACH, without=("read",))


case.run(globals())

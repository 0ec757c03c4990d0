# SPDX-License-Identifier: Apache-2.0
"""Lets a CSI driver live the whole life of csi_life.py alone, on two nodes of real servers and on their own client, and compares the calls that
it sees there.

    csi_both.both(hostpath_driver.HostPath())
"""
import contextlib
import os
import shutil

from lib import agent, api, case
import csi_calls
import csi_life
import csi_nodes

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "differences.md")


@contextlib.contextmanager
def single(driver):
    """An agent without servers. Yields the agent and its place, and checks that no volume is left."""
    with api.Node(args=agent.config_args('name = "n1"\n')) as node:
        yield node, csi_life.Place(csi_life.Alone(node), "n1", csi_nodes.Ours(node), driver)
        case.until(lambda: node.ask("/v1/agent/leaks") == [], 20, "no leaks")
    shutil.rmtree("/run/mount", ignore_errors=True)  # mount(8), which drivers call, writes its notes there


def alone(driver, without=()):
    """Lives the whole life, without these steps, on an agent without servers. Returns the place."""
    with single(driver) as (_, place):
        place.live(without=without)
    return place


def compare(theirs, ours, what):
    """Checks that the driver was called in the same way, and prints what is different on purpose."""
    rows = csi_calls.differences(theirs.log.steps(), ours.log.steps())
    left = csi_calls.unexplained(rows, csi_calls.explained(TABLE, ours.driver.name))
    for row in rows:
        print("    %s %s: %s" % ("  " if row not in left else "!!", what, " | ".join(row)), flush=True)
    for name, found in theirs.told.items():
        if found != ours.told[name]:
            print("       %s: step «%s»: theirs %s, ours %s" % (what, name, found, ours.told[name]), flush=True)
    if left:
        print("    theirs %s\n    ours %s" % (csi_life.shown(theirs.log.steps()), csi_life.shown(ours.log.steps())), flush=True)
    return left


def in_a_cluster(driver, without=(), servers_fail=(), original_fails=()):
    """As alone(), on three nodes, one after the other. The steps that servers or the original client cannot take may fail. Returns the places."""
    with csi_nodes.three() as (server, agents):
        places = {n: csi_life.Place(csi_life.Cluster(server), n, agents[n], driver) for n in ("n1", "n2", "n3")}
        for name, place in places.items():
            print("    on " + name, flush=True)
            place.live(may_fail=(*servers_fail, *(original_fails if name == "n3" else ())), without=without)
    return places


def both(driver, without=(), servers_fail=(), original_fails=()):
    """Lives the whole life alone and in a cluster. Any difference between the calls that the driver sees must have a reason in TABLE."""
    single = alone(driver, without=without)
    places = in_a_cluster(driver, without, servers_fail, original_fails)
    wrong = compare(places["n3"], places["n1"], "in a cluster") + compare(places["n1"], places["n2"], "the second node") + \
        compare(places["n3"], single, "alone")
    case.equal(wrong, [], "differences without a reason in " + TABLE)

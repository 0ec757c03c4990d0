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
import csi_life  # noqa: E402


def alone(*options):
    """Lives the whole life on an agent without servers. Returns the place."""
    with api.Node(args=agent.config_args('name = "n1"\n')) as node:
        place = csi_life.Place(csi_life.Alone(node), "n1", node.replace_supervisor, options)
        place.live()
        case.until(lambda: node.ask("/v1/agent/leaks") == [], 20, "no leaks")
    shutil.rmtree("/run/mount", ignore_errors=True)  # mount(8), which drivers call, writes its notes there
    return place


def test_the_whole_life_alone():
    place = alone()
    print('CALLS', csi_life.shown(place.log.steps()), place.told, place.log.periodic())


def test_the_whole_life_with_attachments_alone():
    """The driver refuses to stage what is not attached, to detach what is staged, and to delete what is attached."""
    place = alone("-enable-attach", "-check-volume-lifecycle", "-attach-limit=3")
    print('CALLS', csi_life.shown(place.log.steps()), place.told, place.log.periodic())


case.run(globals())

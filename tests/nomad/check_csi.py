#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests csi-driver-host-path, alone and with real servers, and compares the calls that it gets with those of the servers' own client.
In namespaces of its own:

    CSI_HOSTPATH=path CSI_HOSTPATH_OLD=path tests/nomad/isolated.py tests/nomad/check_csi.py PATH [test_…]…

PATH is the servers' program. CSI_HOSTPATH_OLD is an older version of the driver, which is upgraded in use."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from lib import case  # noqa: E402
import csi_both  # noqa: E402
from hostpath_driver import ATTACH, HostPath  # noqa: E402

# What servers and the original client cannot do with this driver. Servers take a request without mount options for a change of them; the client
# has a staging path for each kind of use, and the driver permits one.
FAILS = {"servers_fail": ["expand block"], "original_fails": ["read"]}


def test_the_whole_life_alone():
    """With ATTACH the driver refuses to stage what is not attached, to detach what is staged, and to delete what is attached."""
    csi_both.alone(HostPath())
    csi_both.alone(HostPath(*ATTACH))


def test_the_whole_life():
    csi_both.both(HostPath(), **FAILS)


def test_the_whole_life_with_attachments():
    """Without a reader beside the writer: servers ask to attach the volume to the node once more, read-only, and the driver refuses that while
    it is attached for writing."""
    csi_both.both(HostPath(*ATTACH), without=["read"], **FAILS)


case.run(globals())

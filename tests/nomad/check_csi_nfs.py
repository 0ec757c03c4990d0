#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests csi-driver-nfs with an NFS server on loopback, as check_csi.py tests csi-driver-host-path. In namespaces of its own:

    CSI_NFS=path CSI_NFS_OLD=path NFS_MOUNT=path tests/nomad/isolated.py tests/nomad/check_csi_nfs.py PATH [test_…]…

PATH is the servers' program; nfs_driver.py tells which the others are."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from lib import case  # noqa: E402
import csi_both  # noqa: E402
import network_volumes  # noqa: E402
import nfs_driver  # noqa: E402
from real import S  # noqa: E402


def mounted(place, step):
    """Returns the options of the mounts that the driver made in this step."""
    return sorted(c.request["options"] for c in place.log.steps()[step] if c.method == "mount/nfs")


def test_the_whole_life_alone():
    with nfs_driver.Storage() as storage:
        place = csi_both.alone(nfs_driver.Nfs(storage))
        case.equal(mounted(place, "write"), ["nfsvers=3,soft,noatime"], "the volume's mount options")
        case.equal(mounted(place, "read"), ["nfsvers=3,soft,noatime,ro"], "of a reader")
        case.equal(mounted(place, "options"), ["nfsvers=3,nodev,noexec,rsize=65536"], "of the request")
        case.equal(set(mounted(place, "snapshot")), {"nfsvers=3,retrans=3"}, "the parameters of a snapshot")
        case.equal(mounted(place, "delete snapshot"), ["timeo=78"], "the secrets of the request")
        case.equal(set(mounted(place, "delete")), {"nfsvers=3,soft,timeo=77"}, "the volumes' secrets")


def test_the_server_is_gone_and_comes_back():
    """Nothing of the agent hangs meanwhile. What is stopped ends after it, and what is started begins."""
    with nfs_driver.Storage() as storage, csi_both.single(nfs_driver.Nfs(storage)) as (node, place):
        place.start_plugin()
        for name in ("data", "other"):
            place.make(name)
        writer = place.use("writer", "data", "(while echo line >> /d/log; do sleep 0.1; done)& echo begun")
        storage.stop()
        node.do("DELETE", "/v1/job/writer-n1")
        again = {"Unlimited": True, "Delay": 5 * S, "DelayFunction": "constant"}
        place.run(network_volumes.user("late-n1", "other-n1", "exec sleep 1000", group={"ReschedulePolicy": again}))
        late = case.until(lambda: place.allocs("late"), 60, "an allocation")[0]
        case.until(lambda: "mount.nfs: Failed to mount" in node.drover("alloc", "why", late["ID"]).out, 60, "the driver's words")
        for _ in range(20):
            case.equal(node.request("GET", "/v1/agent/health").status, 200)
            node.drover("volume", "status", "data-n1")
        storage.start()
        place.running("late", other_than=late["ID"])
        case.until(lambda: node.ask("/v1/allocation/" + writer)["ClientStatus"] == "complete", 120, "the end of the writer")
        place.stop("late")
        place.free("data", "other")
        case.until(lambda: not place.mounts(), 60, "no mounts")
        for name in ("data", "other"):
            node.do("DELETE", "/v1/volume/csi/%s-n1/delete" % name)
        place.stop("plugin")
        case.equal(place.driver.left(place), [], "what the driver stores")


def test_the_whole_life():
    with nfs_driver.Storage() as storage:
        csi_both.both(nfs_driver.Nfs(storage))


nfs_driver.need()
case.run(globals())

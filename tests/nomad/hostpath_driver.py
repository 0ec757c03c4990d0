# SPDX-License-Identifier: Apache-2.0
"""csi-driver-host-path, as csi_life.py needs it. The environment names the programs: CSI_HOSTPATH, and CSI_HOSTPATH_OLD, the version that
is upgraded."""
import json
import os
import re

from lib import case

ATTACH = ("-enable-attach", "-check-volume-lifecycle", "-attach-limit=3")


class HostPath:
    """options: of the driver's command line."""
    name = "csi-driver-host-path"  # in docs/differences.md
    prefix = "hp"  # of the plugin's id
    secrets = {"user": "joe", "key": "s3cr3t"}  # of volumes and snapshots
    volume = {}  # what each request for a volume has
    first_volume = {"Parameters": {"kind": "slow", "colour": "blue"}, "MountOptions": {"FSType": "ext4", "MountFlags": ["noatime"]}}
    options = {"FSType": "ext4", "MountFlags": ["nodev", "noexec"]}  # mount options of a claim
    snapshot = {"depth": "full"}  # parameters of snapshots
    snapshot_secrets = secrets  # for their removal; no commas
    lacks = ()  # steps that need what the driver cannot do

    def __init__(self, *options):
        self.cli = " ".join(options)

    def versions(self):
        """Returns the driver's programs, the older one first."""
        found = [os.path.abspath(os.environ[n]) for n in ("CSI_HOSTPATH_OLD", "CSI_HOSTPATH") if os.environ.get(n)]
        if not os.environ.get("CSI_HOSTPATH"):
            case.skip("CSI_HOSTPATH=path/to/hostpathplugin is not set")
        return found

    def script(self, program, node, state, log):
        """Returns the command line of the plugin's task. What it makes must be writable for all, because tasks are not root."""
        return "umask 0; exec %s -endpoint $CSI_ENDPOINT -statedir %s -nodeid %s -capacity slow=100Mi -v=5 %s 2>>%s" % (
            program, state, node, self.cli, log)

    @staticmethod
    def calls(text):
        """Returns the calls in a part of the log."""
        return [json.loads(part) for part in re.findall(r"gRPCCall: (\{.*\})$", text, re.M)]

    def topologies(self, node):
        return [{"topology.hostpath.csi/node": node}]

    def left(self, place):
        """Returns the names of the volumes and snapshots that the driver still stores for this place."""
        return [f for f in os.listdir(place.top + "/state") if f != "state.json"]

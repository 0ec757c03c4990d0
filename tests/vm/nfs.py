# SPDX-License-Identifier: Apache-2.0
"""The whole life of volumes of csi-driver-nfs, with a server on loopback: nfs_life.py, which runs in the guest. The machines that build
drover often have a kernel without NFS. DROVER_CSI_NFS and DROVER_CSI_NFS_OLD are two versions of its program nfsplugin, which must be
static; without them this is left out."""
import os
import re

import machine

SECONDS = 3600
MAIN = """#!/bin/bash
cd /root/in
cp -a installed/. /
systemd-sysusers && systemd-tmpfiles --create && systemctl daemon-reload
modprobe nfsd
mkdir -p /etc/drover /srv/nfs /var/lib/driver
chmod 0777 /srv/nfs
install -m 0755 nfsplugin nfsplugin-old /var/lib/driver/
echo '/srv/nfs 127.0.0.1(rw,no_root_squash,no_subtree_check,fsid=0,insecure)' >/etc/exports
systemctl start nfs-server
exportfs -ra
cat >/etc/drover/agent.hcl <<'END'
plugin "raw_exec" {
  config { enabled = true }
}
client {
  disk_free_mb = 1000000
}
END
systemctl start drover.socket drover.service
DROVER_BUILD=/root/in/build python3 -B tree/tests/vm/nfs_life.py
"""


def programs():
    """Returns the programs by their names in the guest, or None."""
    found = {"nfsplugin": os.environ.get("DROVER_CSI_NFS"), "nfsplugin-old": os.environ.get("DROVER_CSI_NFS_OLD")}
    return found if all(found.values()) else None


def run(build, payload):
    """Returns whether the whole life was as it should be."""
    with machine.Machine(build, {**payload, **programs()}) as m:
        m.wait(SECONDS)
        return bool(re.search(r"^the whole life: [1-9]\d* tests$", m.log, re.M))

# SPDX-License-Identifier: Apache-2.0
"""The whole life of volumes of csi-driver-nfs, with a server on loopback: nfs_life.py, which runs in the guest, and the driver in containers:
nfs_containers.py. The machines that build drover often have a kernel without NFS. DROVER_CSI_NFS and DROVER_CSI_NFS_OLD are two versions of
its program nfsplugin, which must be static; without the former this is left out, and without the latter only containers are tested."""
import os
import re
import subprocess

import machine

SECONDS = 3600
MAIN = """#!/bin/bash
cd /root/in
cp -a installed/. /
systemd-sysusers && systemd-tmpfiles --create && systemctl daemon-reload
modprobe nfsd
mkdir -p /etc/drover /srv/nfs /var/lib/driver
chmod 0777 /srv/nfs
install -m 0755 nfsplugin* /var/lib/driver/
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
[ ! -e nfsplugin-old ] || DROVER_BUILD=/root/in/build python3 -B tree/tests/vm/nfs_life.py
cp -an containers/. /
install -d -o 1000 -g 1000 /srv/nfs/squash
mount --bind /srv/nfs/squash /srv/nfs/squash # a mount point has an export of its own
echo '/srv/nfs/squash 127.0.0.1(rw,all_squash,anonuid=1000,anongid=1000,no_subtree_check,fsid=1,insecure)' >>/etc/exports
exportfs -ra
cat >>/etc/drover/agent.hcl <<'END'
plugin "docker" {
  config {
    enabled = true
    allow_privileged = true
  }
}
END
systemctl restart drover.service
DROVER_BUILD=/root/in/build python3 -B tree/tests/vm/nfs_containers.py
"""
# What containers need, from this machine; the guest has the same libraries.
NEEDS = ("/usr/bin/skopeo", "/usr/bin/busybox")


def programs():
    """Returns the programs by their names in the guest, or None."""
    found = {"nfsplugin": os.environ.get("DROVER_CSI_NFS"), "nfsplugin-old": os.environ.get("DROVER_CSI_NFS_OLD")}
    return {name: path for name, path in found.items() if path} if found["nfsplugin"] else None


def containers():
    """Returns files of this machine by their names in the guest."""
    found = {path: path for path in NEEDS}
    for path in NEEDS:
        listed = subprocess.run(["ldd", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False).stdout.decode()
        found.update({"/usr" + p.removeprefix("/usr"): os.path.realpath(p) for p in re.findall(r"=> (/\S+)", listed)})
    found["/etc/containers/policy.json"] = b'{"default": [{"type": "insecureAcceptAnything"}]}'
    return {"containers" + name: source for name, source in found.items()}


def run(build, payload):
    """Returns whether all tests passed."""
    found = programs()
    with machine.Machine(build, {**payload, **found, **containers()}, memory=2048) as m:
        m.wait(SECONDS)
        done = re.findall(r"^(the whole life|in containers): [1-9]\d* tests$", m.log, re.M)
        return sorted(done) == ["in containers"] + ["the whole life"] * ("nfsplugin-old" in found)

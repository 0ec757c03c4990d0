# SPDX-License-Identifier: Apache-2.0
"""Jobs that use volumes which several nodes may write, and what is left of such volumes on a machine: for tests of CSI drivers of network storage
whose mounts are FUSE processes (s3_driver.py, nfs_driver.py)."""
import os

from lib import api

CAPABILITY = {"AccessMode": "multi-node-multi-writer", "AttachmentMode": "file-system"}
# Writes a file with the alloc's id, synchronously, and then says which files there are, whenever that changes.
WRITES = """echo data of $NOMAD_ALLOC_ID | dd of=/d/$NOMAD_ALLOC_ID conv=fsync status=none || exit 1
while :; do
  now=$(cat /d/* 2>&1); [ "$now" = "$was" ] || echo "$now"; was=$now; sleep 0.2
done"""
READS = """if echo x 2>/dev/null > /d/x; then echo wrote; else echo read-only; fi
while :; do
  now=$(cat /d/* 2>&1); [ "$now" = "$was" ] || echo "$now"; was=$now; sleep 0.2
done"""
AGAIN = {"Attempts": 100, "Interval": 3600 * 10**9, "Delay": 10**8, "Mode": "fail"}


def user(name, volume, script, driver="exec", count=1, readonly=False, options=None, group=None, **more):
    """Returns a job whose tasks have the volume at /d. options: mount options of the request."""
    claim = {"Name": "v", "Type": "csi", "Source": volume, "ReadOnly": readonly, "MountOptions": options, **CAPABILITY}
    return api.job(name, "/bin/sh", ["-c", script], driver=driver, count=count,
                   VolumeMounts=[{"Volume": "v", "Destination": "/d", "ReadOnly": readonly}],
                   group={"RestartPolicy": AGAIN, "Volumes": {"v": claim}, **(group or {})}, **more)


def fuse_mounts():
    """Returns the mount points of the driver's file systems."""
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        return [line.split(" ")[4] for line in f if " - fuse" in line]


def left(data):
    """Returns files, sockets and directories of volumes and plugins below an agent's data directory; it keeps a directory for each type."""
    top = data + "/csi"
    kept = [os.path.join(top, name) for name in ("node", "controller", "monolith", "sock", "sock/.trash")]
    return [p for at, dirs, files in os.walk(top) for p in (os.path.join(at, f) for f in dirs + files) if p not in kept]


def processes(name):
    """Returns the pids of the processes of this program."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/cmdline" % pid, "rb") as f:
                if os.path.basename(f.read().split(b"\0")[0]) == name.encode():
                    found.append(int(pid))
        except OSError:
            pass
    return found


def count_calls(log):
    """Returns how many calls, also those of fingerprints, a driver has written to its log."""
    with open(log, encoding="utf-8", errors="replace") as f:
        return f.read().count("GRPC call: ")

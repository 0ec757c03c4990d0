# SPDX-License-Identifier: Apache-2.0
"""The CSI driver of S3 storage, an S3 server for it, and what the driver has logged.

The programs come from the environment:
  CSI_S3     the driver csi-s3; it finds its mounter, geesefs, by PATH
  GEESEFS    that mounter
  S3_SERVER  a command line for sh that serves S3 at 127.0.0.1:$S3_PORT, with its data in $S3_DIR, to the user $S3_KEY with the password
             $S3_SECRET"""
import os
import re
import shutil
import signal
import socket
import subprocess

from lib import api, case
from network_volumes import AGAIN, CAPABILITY, processes

NAMES = ("CSI_S3", "GEESEFS", "S3_SERVER")
KEY, SECRET = "AKIDEXAMPLEOFTESTS", "wJalrXUtnFEMIK7MDENGbPxRfiCYzEXAMPLE"
PLUGIN, SECRETS = "s3", (KEY, SECRET)
MOUNTS_END = True  # with the driver
OPTIONS = "--no-systemd --memory-limit 200 --dir-mode 0777 --file-mode 0666 --stat-cache-ttl 1s"


def need():
    """Ends the process if a program is missing."""
    missing = [n for n in NAMES if not os.environ.get(n)]
    if missing:
        case.skip("not set: " + ", ".join(missing))


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Storage:
    """The S3 server."""

    def __init__(self):
        self.dir, self.port, self.process = case.directory(), free_port(), None
        os.mkdir(self.dir + "/data")
        self.start()

    def start(self):
        with open(self.dir + "/log", "ab") as log:
            self.process = subprocess.Popen(["/bin/sh", "-c", "exec " + os.environ["S3_SERVER"]], stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, start_new_session=True, env={
                                                **os.environ, "S3_PORT": str(self.port), "S3_DIR": self.dir + "/data", "S3_KEY": KEY,
                                                "S3_SECRET": SECRET})
        case.until(self._answers, 60, "the S3 server to answer")

    def _answers(self):
        if self.process.poll() is not None:
            with open(self.dir + "/log", encoding="utf-8") as f:
                raise AssertionError("the S3 server ended:\n" + f.read()[-2000:])
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", self.port)) == 0

    def stop(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def secrets(self, secret=SECRET):
        return {"accessKeyID": KEY, "secretAccessKey": secret, "endpoint": "http://127.0.0.1:%d" % self.port, "region": "us-east-1"}

    def volume(self, name, secret=SECRET, **more):
        """Returns a request that creates this volume."""
        return {"Volumes": [{
            "ID": name, "Name": name, "PluginID": "s3", "RequestedCapacityMin": 1 << 20, "RequestedCapabilities": [CAPABILITY],
            "Secrets": self.secrets(secret), "Parameters": {"mounter": "geesefs", "options": OPTIONS},
            "MountOptions": {"MountFlags": ["noatime", "sync"]}, **more}]}

    def plugin(self, log, version="1", job="plugin", base="", **more):
        """Returns a job of the driver, which logs its calls in this file. Its node id is the node's name. base: where it mounts volumes, if the
        client does not know."""
        script = 'exec "$0" --endpoint "$CSI_ENDPOINT" --nodeid "$NODE_ID" -v 5 2>>"$LOG.$NODE_ID"'
        return api.job(job, "/bin/sh", ["-c", script, os.environ["CSI_S3"]], Env={
            "PATH": os.path.dirname(os.environ["GEESEFS"]) + ":/usr/sbin:/usr/bin:/sbin:/bin", "LOG": log, "VERSION": version,
            "NODE_ID": "${node.unique.name}"}, Resources={"CPU": 100, "MemoryMB": 600},
            CSIPluginConfig={"ID": "s3", "Type": "monolith", "MountDir": "/csi", "StagePublishBaseDir": base}, group={"RestartPolicy": AGAIN, **more})

    def drivers(self):
        """Returns the pids of the driver."""
        return processes(os.path.basename(os.environ["CSI_S3"]))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
        shutil.rmtree(self.dir, ignore_errors=True)


def calls(log, node):
    """Returns [(method, request)] from the driver's log, without the calls of fingerprints. A request is prototext in one line; what the
    driver's library varies at random, the spaces, is removed."""
    path = "%s.%s" % (log, node)
    found = []
    if not os.path.exists(path):
        return found
    with open(path, encoding="utf-8", errors="replace") as f:
        for line in f:
            method = re.search(r"GRPC call: /csi\.v1\.(\w+/\w+)$", line)
            request = re.search(r"GRPC request: (.*)$", line)
            if method:
                found.append([method.group(1).split("/")[1], None])
            elif request and found and found[-1][1] is None:
                found[-1][1] = re.sub(r"\s+", " ", request.group(1)).strip()
    quiet = re.compile("Probe|Get.*|NodeGet.*|ControllerGet.*")
    return [(m, r or "") for m, r in found if not quiet.fullmatch(m)]


def methods(log, node):
    return [m for m, _ in calls(log, node)]

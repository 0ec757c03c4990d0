# SPDX-License-Identifier: Apache-2.0
"""csi-driver-nfs, as csi_life.py needs it, with an NFS server of its own on loopback, on a kernel without NFS. Only in separate namespaces
(isolated.py), because the server has fixed ports.

    with nfs_driver.Storage() as storage:
        csi_both.both(nfs_driver.Nfs(storage))

The programs come from the environment:
  CSI_NFS      the driver; CSI_NFS_OLD is an older version, which is upgraded
  NFS_MOUNT    fuse-nfs, which serves a mount of an NFS export by a process
The server is Debian's nfs-ganesha with nfs-ganesha-vfs and rpcbind. The driver's mount(8) is a script that lets a process of the test call
NFS_MOUNT, outside of the driver's cgroup: as a mount of the kernel, it outlives the driver. NFS_MOUNT gets the options that every file system has;
those of NFS itself are only checked. What is mounted is written to the driver's log, as the call mount/nfs."""
import contextlib
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import threading

from lib import api, case
from network_volumes import AGAIN, CAPABILITY, processes

NAMES = ("CSI_NFS", "NFS_MOUNT")
PLUGIN, SECRETS = "nfs", ("timeo=77",)
MOUNTS_END = False  # with the driver
SERVER = ("/usr/bin/ganesha.nfsd", "/sbin/rpcbind")
CONFIG = """
NFS_CORE_PARAM {{
  Protocols = 3, 4; NFS_Port = 2049; MNT_Port = 20048; mount_path_pseudo = true; fsid_device = true;
  Enable_NLM = false; Enable_RQUOTA = false; Enable_UDP = false;
}}
NFSv4 {{ Graceless = true; RecoveryBackend = fs; RecoveryRoot = {dir}/recovery; }}
EXPORT {{
  Export_Id = 1; Path = {dir}/data; Pseudo = /; Access_Type = RW; Squash = No_Root_Squash; SecType = sys;
  Protocols = 3, 4; Transports = TCP; FSAL {{ Name = VFS; }}
}}
"""
MOUNT = """#!/usr/bin/python3
import json, os, socket, sys
if sys.argv[1:3] != ["-t", "nfs"]:
    os.execv("/bin/mount", ["mount", *sys.argv[1:]])
with socket.socket(socket.AF_UNIX) as s:
    s.connect(os.path.dirname(sys.argv[0]) + "/socket")
    s.sendall(json.dumps([os.environ["LOG"], *sys.argv[3:]]).encode())
    s.shutdown(socket.SHUT_WR)
    said = s.makefile().read()
sys.exit("mount.nfs: " + said if said else 0)
"""
# The members that every request for a volume has. When the driver deletes a volume, it mounts the export once more, with the options
# in this secret.
VOLUME = {"Parameters": {"server": "127.0.0.1", "share": "/"}, "MountOptions": {"MountFlags": ["nfsvers=3", "soft"]},
          "Secrets": {"mountOptions": "nfsvers=3,soft,timeo=77"}}
GENERIC = {"ro", "rw", "nodev", "noexec", "nosuid", "noatime", "sync"}
OF_NFS = re.compile(r"(nfsvers=3|soft|hard|nolock|(timeo|retrans|rsize|wsize|actimeo)=\d+)")


def need():
    """Ends the process if a program is missing."""
    missing = [n for n in NAMES if not os.environ.get(n)]
    if missing:
        case.skip("not set: " + ", ".join(missing))
    missing = [p for p in SERVER if not os.path.exists(p)]
    if missing:
        case.skip("not installed: %s (nfs-ganesha-vfs, rpcbind)" % ", ".join(missing))


class Mounter:
    """The server of the scripts mount(8), one process of NFS_MOUNT for each mount."""

    def __init__(self, directory):
        self.dir = directory
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(directory + "/socket")
        self.listener.listen()
        os.chmod(case.write(directory + "/mount", MOUNT), 0o755)
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self._answer, args=[self.listener.accept()[0]], daemon=True).start()

    def _answer(self, peer):
        with peer:
            pid, _, _ = struct.unpack("3i", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
            log, *arguments = json.loads(peer.makefile().read())
            options = arguments.pop(1).split(",") if arguments[0] == "-o" else []
            source, target = arguments[-2:]
            said = self.mount(pid, source, target, options)
            with open(log, "a", encoding="utf-8") as f:
                f.write("mount: %s\n" % json.dumps({"Method": "mount/nfs", "Error": said, "Request": {
                    "source": source, "target_path": target, "options": ",".join(options)}}))
            peer.sendall(said.encode())

    def mount(self, pid, source, target, options):
        """Mounts a directory of the server in the mount namespace of this process. Returns why that failed, or nothing."""
        wrong = [o for o in options if o not in GENERIC and not OF_NFS.fullmatch(o)]
        if wrong:
            return "an incorrect mount option was specified: " + wrong[0]
        server, path = source.split(":", 1)
        shown = ",".join([source] + [o for o in options if o in GENERIC])
        done = subprocess.run(["nsenter", "--mount=/proc/%d/ns/mnt" % pid, os.environ["NFS_MOUNT"], "-n", "nfs://%s%s?version=3" % (server, path),
                               "-m", target, "-f", shown, "-s", "nfs", "-a", "-t", "0", "-p", "0", "-T", "0", "-E", "0"],
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
        return done.stderr.decode() or "exit code %d" % done.returncode if done.returncode else ""


class Storage:
    """The NFS server. dir/data is what it exports as /."""

    def __init__(self):
        self.dir, self.processes = case.directory(), []
        os.chmod(self.dir, 0o755)
        for name in ("data", "recovery"):
            os.mkdir("%s/%s" % (self.dir, name))
        self.mounter = Mounter(self.dir)
        case.write(self.dir + "/config", CONFIG.format(dir=self.dir))
        self._run("rpcbind", "-f")
        case.until(lambda: self._listens(111), 20, "rpcbind to listen")
        self.start()

    def _run(self, *argv):
        with open(self.dir + "/log." + argv[0], "ab") as log:
            self.processes.append(subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log))

    @staticmethod
    def _listens(port):
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", port)) == 0

    def start(self):
        self._run("ganesha.nfsd", "-F", "-f", self.dir + "/config", "-L", "/dev/stdout", "-p", self.dir + "/pid", "-N", "EVENT")
        case.until(lambda: self._listens(2049), 60, "the NFS server to listen")

    def stop(self):
        """Kills the NFS server; its data are on the disk."""
        server = self.processes.pop()
        server.kill()
        server.wait()

    def programs(self):
        """Returns the driver's programs, the older one first."""
        return [os.path.abspath(os.environ[n]) for n in ("CSI_NFS_OLD", "CSI_NFS") if os.environ.get(n)]

    def script(self, program, node, state, log):
        """Returns the command line of a plugin's task."""
        return ("umask 0; export PATH=%s:/usr/sbin:/usr/bin:/sbin:/bin LOG=%s; exec %s --endpoint=$CSI_ENDPOINT --nodeid=%s --v=5 "
                "--working-mount-dir=%s --mount-permissions=0777 2>>%s" % (self.dir, log, program, node, state, log))

    def plugin(self, log, version="1", job="plugin", base="", **more):
        """As s3_driver.Storage.plugin(). Version 1 is the older program."""
        name = "${node.unique.name}"
        script = self.script(self.programs()[0 if version == "1" else -1], name, "$NOMAD_TASK_DIR", "%s.%s" % (log, name))
        return api.job(job, "/bin/sh", ["-c", script], Env={"VERSION": version}, group={"RestartPolicy": AGAIN, **more}, CSIPluginConfig={
            "ID": PLUGIN, "Type": "monolith", "MountDir": "/csi", "StagePublishBaseDir": base})

    def drivers(self):
        """Returns the pids of the driver."""
        return [pid for program in set(self.programs()) for pid in processes(os.path.basename(program))]

    def volume(self, name, **more):
        """Returns a request that creates this volume."""
        return {"Volumes": [{"ID": name, "Name": name, "PluginID": PLUGIN, "RequestedCapacityMin": 1 << 20, "RequestedCapabilities": [CAPABILITY],
                             **VOLUME, **more}]}

    def stored(self):
        return sorted(os.listdir(self.dir + "/data"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.mounter.listener.close()
        for process in self.processes:
            process.kill()
            process.wait()
        shutil.rmtree(self.dir, ignore_errors=True)
        shutil.rmtree("/run/ganesha", ignore_errors=True)
        for name in ("/run/rpcbind.sock", "/run/rpcbind.lock"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name)


def read_calls(text):
    """Returns the calls in a part of the driver's log, as csi_calls.py needs them. Of calls at the same time, what is logged first is taken for
    that of the call that began first."""
    found, asked, answered = [], [], []
    for what, said in re.findall(r"(?:\] |^)(GRPC call|GRPC request|GRPC error|GRPC response|mount): (.*)$", text, re.M):
        if what == "mount":
            found.append(json.loads(said))
        elif what == "GRPC call":
            found.append({"Method": said, "Request": {}, "Error": ""})
            asked.append(found[-1])
            answered.append(found[-1])
        elif what == "GRPC request" and asked:
            asked.pop(0)["Request"] = json.loads(said)
        elif answered:
            answered.pop(0)["Error"] = said if what == "GRPC error" else ""
    return found


class Nfs:
    """The driver with this storage. Its members are those of hostpath_driver.HostPath."""
    name, prefix = "csi-driver-nfs", "nfs"
    secrets, volume = VOLUME["Secrets"], VOLUME
    first_volume = {"MountOptions": {"MountFlags": ["nfsvers=3", "soft", "noatime"]}}
    options = {"MountFlags": ["nfsvers=3", "nodev", "noexec", "rsize=65536"]}
    snapshot = {"mountOptions": "nfsvers=3,retrans=3"}
    snapshot_secrets = {"mountOptions": "timeo=78"}
    lacks = ("list snapshots", "list", "list all", "block", "expand block", "stop block")

    calls = staticmethod(read_calls)

    def __init__(self, storage):
        self.storage, self.versions, self.script = storage, storage.programs, storage.script

    def topologies(self, _):
        return []

    def left(self, place):
        return os.listdir(place.top + "/state") + [n for n in self.storage.stored() if n.endswith("-" + place.name)]

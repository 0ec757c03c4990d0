# SPDX-License-Identifier: Apache-2.0
"""drover-csi-local with real mounts, called through csi-helper. It runs as nobody with the capabilities that its README names.

    with csi_local.Node(["-attach"]) as node:
        volume = node.create("data")
        ...
    csi_local.PLACES.remove()
"""
import os
import shutil
import subprocess

from . import case, csi, helper

MS_SHARED = 1 << 20
NOBODY = 65534
# Gives the plugin its own mount namespace with shared mounts, so that its mounts appear on the host; then runs it as nobody with two
# capabilities.
CAPS = "+sys_admin,+dac_override"
WRAP = ("unshare", "--mount", "--propagation", "unchanged", "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
        "--no-new-privs", "--bounding-set=-all," + CAPS, "--inh-caps=-all," + CAPS, "--ambient-caps=-all," + CAPS)

PLACES = helper.Places()
WRITER = {"mount": {}, "access_mode": {"mode": "SINGLE_NODE_WRITER"}}


class Node:
    """A plugin and a csi-helper with directories as mount-helper makes them: owned by root, mode 0700, a shared mount."""

    def __init__(self, flags=(), wrap=WRAP, node_id="node-1"):
        self.flags, self.wrap, self.node_id = list(flags), wrap, node_id
        self.base = case.directory()
        self.kept, self.pub = self.base + "/kept", self.base + "/pub"
        os.mkdir(self.kept)
        os.chown(self.kept, NOBODY, NOBODY)
        os.mkdir(self.pub, 0o700)
        self.helper = helper.Helper("csi-helper", PLACES)
        self.plugin, self.channel = None, 0
        helper.mount(self.pub, self.pub, flags=4096)  # MS_BIND
        try:
            helper.mount(None, self.pub, flags=MS_SHARED)
            self.start_plugin()
        except BaseException:
            self.close()
            raise

    def start_plugin(self):
        self.plugin = csi.local(self.kept, self.node_id, self.wrap, self.flags)
        self.channel += 1
        csi.open_channel(self.helper, self.plugin, self.channel)

    def restart_plugin(self):
        self.plugin.kill()
        self.helper.ipc.call("CSI_PLUGIN_CLOSE_REQ", {"channel": self.channel})
        self.start_plugin()

    def call(self, method, **request):
        """Returns (status, message, answer)."""
        return csi.call(self.helper, self.channel, method, request)

    def ok(self, method, **request):
        status, message, answer = self.call(method, **request)
        case.equal(status, csi.OK, "%s: %s" % (method, message))
        return answer

    def fails(self, wanted, text, method, **request):
        status, message, _ = self.call(method, **request)
        case.equal(status, wanted, "%s: %s" % (method, message))
        case.contains(message, text, method)

    def create(self, name, **more):
        request = {"volume_capabilities": [WRITER], **more}
        return self.ok("create_volume", name=name, **request)["volume"]["volume_id"]

    def staging(self, volume):
        path = "%s/staging-%s" % (self.pub, volume)
        os.makedirs(path, 0o700, exist_ok=True)
        return path

    def stage(self, volume, **more):
        request = {"volume_capability": WRITER, **more}
        return self.call("node_stage_volume", volume_id=volume, staging_target_path=self.staging(volume), **request)

    def publish(self, volume, name, **more):
        request = {"volume_capability": WRITER, **more}
        return self.call("node_publish_volume", volume_id=volume, staging_target_path=self.staging(volume),
                         target_path=self.pub + "/" + name, **request)

    def stage_and_publish(self, volume, name, **more):
        """Stages and publishes a volume. Returns the path that a task would get."""
        case.equal(self.stage(volume)[:2], (csi.OK, ""), "stage")
        case.equal(self.publish(volume, name, **more)[:2], (csi.OK, ""), "publish")
        return self.pub + "/" + name

    def unpublish(self, volume, name):
        return self.call("node_unpublish_volume", volume_id=volume, target_path=self.pub + "/" + name)

    def unstage(self, volume):
        return self.call("node_unstage_volume", volume_id=volume, staging_target_path=self.staging(volume))

    def unpublish_and_unstage(self, volume, *names):
        for name in names:
            case.equal(self.unpublish(volume, name)[:2], (csi.OK, ""), "unpublish")
        case.equal(self.unstage(volume)[:2], (csi.OK, ""), "unstage")

    def mounts(self):
        """Returns {mount point: options} below pub, as the host sees them."""
        found = {}
        with open("/proc/self/mountinfo", encoding="utf-8") as f:
            for line in f:
                words = line.split(" ")
                if words[4].startswith(self.pub + "/"):
                    found.setdefault(words[4], []).append(words[5].split(","))
        return found

    def loops(self):
        """Returns the loop devices of the node's volumes, by the file that each is attached to."""
        found = {}
        for name in os.listdir("/sys/block"):
            try:
                with open("/sys/block/%s/loop/backing_file" % name, encoding="utf-8") as f:
                    volume = os.path.basename(f.read().strip())
            except OSError:
                continue
            # Only the last component is reliable: the plugin's mount namespace may be gone.
            if os.path.exists(self.kept + "/volumes/volumes/" + volume):
                found.setdefault(volume, []).append(name)
        return found

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is not None:
            print(self.plugin.log())
        self.close()

    def close(self):
        if self.plugin:
            self.plugin.stop()
        self.helper.close()
        for point in list(self.mounts()):
            helper.umount(point, 2)
        for device in sum(self.loops().values(), []):  # of a test that failed
            subprocess.run(["losetup", "-d", "/dev/" + device], check=True)
        helper.umount(self.pub, 2)
        shutil.rmtree(self.base)


def mode(access_mode, **mount):
    return {"mount": mount, "access_mode": {"mode": access_mode}}


def block(access_mode="SINGLE_NODE_WRITER"):
    return {"block": {}, "access_mode": {"mode": access_mode}}


def pairs(**values):
    return [{"key": key, "value": value} for key, value in values.items()]

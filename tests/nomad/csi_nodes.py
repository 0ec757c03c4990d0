# SPDX-License-Identifier: Apache-2.0
"""Two nodes and a client of the servers' own program, for tests of CSI drivers.

    with csi_nodes.three() as (server, agents):
        agents["n3"].restart()
"""
import contextlib
import os
import shutil
import signal

import alike
import client
import real
from lib import case
from lib.cluster import node_of


class Ours:
    """An agent."""

    def __init__(self, node):
        self.node = node

    def restart(self):
        self.node.replace_supervisor()

    def silence(self):
        """Stops its heartbeats. Returns the pid that is to be continued."""
        return self.node.kill("heartbeat", signal.SIGSTOP)

    def plugin(self, name):
        """Returns the block of a plugin's task."""
        return {"ID": name, "Type": "monolith", "MountDir": "/csi"}


class Theirs:
    """As Ours, for the original client."""

    def __init__(self, original):
        self.original = original

    def restart(self):
        self.original.kill()
        self.original.start()
        case.until(lambda: self.original.get("/v1/agent/self")[0] == 200, 60, "the original client")

    def silence(self):
        os.kill(self.original.process.pid, signal.SIGSTOP)
        return self.original.process.pid

    def plugin(self, name):
        """A task of raw_exec sees the machine's paths, and the client must be told so."""
        return {"ID": name, "Type": "monolith", "MountDir": "/csi",
                "StagePublishBaseDir": "%s/data/client/csi/monolith/%s" % (self.original.dir, name)}


def chroot():
    """Returns the lines of the original client's configuration for exec tasks: only what their scripts need."""
    paths = {p: "/bin/sh" if p.endswith("dash") else p for p in (*alike.CHROOT, "/usr/bin/cat", "/usr/bin/dd")}
    return "chroot_env {\n%s\n}" % "\n".join('"%s" = "%s"' % item for item in paths.items())


@contextlib.contextmanager
def three(beats=real.PATIENT):
    """n1 and n2 are ours, n3 is the original client."""
    with real.Server(beats=beats) as server, node_of(server, name="n1") as one, node_of(server, name="n2") as two, \
            client.Original(server, "n3", chroot()) as original:
        case.until(lambda: {n["Name"] for n in server.ask("/v1/nodes") if n["Status"] == "ready"} == {"n1", "n2", "n3"}, 120, "three nodes")
        yield server, {"n1": Ours(one), "n2": Ours(two), "n3": Theirs(original)}
    shutil.rmtree("/run/mount", ignore_errors=True)  # mount(8), which drivers call, writes its notes there

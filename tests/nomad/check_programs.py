#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the jobs of tests/programs by a client of the servers' own program, so that a job that only one of the two can run is found. Needs
their packages (tests/programs/packages.sh). In namespaces of its own: tests/nomad/isolated.py runs it, for `make check-programs NOMAD=path`.

    tests/nomad/isolated.py tests/nomad/check_programs.py PATH [test_…]…"""
import contextlib
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "system"), os.path.join(HERE, "..", "programs")]
from lib import case  # noqa: E402
import client  # noqa: E402
import programs  # noqa: E402
import real  # noqa: E402


# Directories that the programs need. The client links their files into the root of each task, which takes a file system in common: so its data
# are not in the directory of the test, which is a mount of its own.
ROOT = ["/bin", "/etc", "/lib64", "/sbin", *("/%slib/x86_64-linux-gnu" % usr for usr in ("", "usr/")), "/usr/bin", "/usr/sbin", "/run/resolvconf",
        *("/usr/lib/" + name for name in ("erlang", "jvm", "locale", "mysql", "postgresql", "python3", "python3.11", "rabbitmq")),
        *("/usr/share/" + name for name in ("mariadb", "mysql", "postgresql", "postgresql-common", "nodejs", "zoneinfo"))]


class Node:
    """The original client, with the methods of api.Node that programs.py uses."""

    def __init__(self, server, original):
        self.server, self.data = server, original.dir + "/data"
        self.ask = server.ask

    def wait_running(self, name, seconds):
        return self.server.wait(name, ["running"], seconds)

    def do(self, _, path, body):
        return self.server.do(path, body)

    def logs(self, alloc, name, kind="stdout"):
        return real.fetch("http://127.0.0.1:%d/v1/client/fs/logs/%s?task=%s&type=%s&plain=true" % (
            self.server.ports[0], alloc["ID"], name, kind))[1]

    def purge(self, name):
        self.server.request("DELETE", "/v1/job/" + name)
        self.server.wait(name, ["complete"], programs.SECONDS)
        self.server.purge(name)


@contextlib.contextmanager
def by_the_original(name):
    yield programs.Program(node, real.BINARY, {"NOMAD_ADDR": "http://127.0.0.1:%d" % server.ports[0]}, name)
    node.purge(name)


programs.program = by_the_original
chroot = "chroot_env {\n%s\n}\n" % "\n".join('"%s" = "%s"' % (p, p) for p in ROOT if os.path.exists(p))
with real.Server() as server, client.Original(server, client=chroot, directory=tempfile.mkdtemp(prefix="dt-", dir="/var/lib")) as original:
    server.wait_ready()
    node = Node(server, original)
    case.run(vars(programs))

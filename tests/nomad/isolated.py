#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a script as tests/run runs a system test: in separate namespaces and cgroups; it fails if it leaves something behind.

    tests/nomad/isolated.py SCRIPT [ARGUMENT...]

Directories of programs that an argument or one of PROGRAMS names stay visible, also below /tmp and the others that are empty for it."""
import argparse
import importlib.machinery
import importlib.util
import os
import shutil
import signal
import sys
import tempfile

# Variables of the environment.
PROGRAMS = ("NOMAD_NEXT", "CNI_PLUGINS", "CSI_DRIVER", "CSI_HOSTPATH", "CSI_HOSTPATH_OLD", "CSI_NFS", "CSI_NFS_OLD", "NFS_MOUNT", "CSI_S3", "GEESEFS", "S3_SERVER")
HERE = os.path.dirname(os.path.abspath(__file__))
loader = importlib.machinery.SourceFileLoader("runner", os.path.join(HERE, "..", "run"))
runner = importlib.util.module_from_spec(importlib.util.spec_from_loader("runner", loader))
sys.dont_write_bytecode = True
loader.exec_module(runner)


def programs(words):
    """Returns the directories of the words that are paths of programs."""
    paths = [os.path.realpath(w) for w in words if "/" in w]
    return {os.path.dirname(p) for p in paths if os.path.isfile(p) and os.access(p, os.X_OK)}


def main():
    if os.geteuid() != 0:
        print("%s needs root: it starts agents" % sys.argv[0], file=sys.stderr)
        return 1
    words = sys.argv[2:] + " ".join(os.environ.get(name, "") for name in PROGRAMS).split()
    directory = tempfile.mkdtemp(prefix="dt-", dir="/var/tmp")
    os.chmod(directory, 0o755)
    signal.signal(signal.SIGTERM, runner.stop)
    signal.signal(signal.SIGINT, runner.stop)
    try:
        test = runner.System(os.path.abspath(sys.argv[1]), sys.argv[2:], programs(words))
        test.timeout = 24 * 3600
        return test.run(directory, 1, argparse.Namespace(slower=1))
    finally:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())

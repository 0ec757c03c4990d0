# SPDX-License-Identifier: Apache-2.0
"""Shared code of the system tests. Python 3 of Debian 12, standard library only."""
import os

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))


def build_dir():
    """Returns the directory of the binaries: $DROVER_BUILD, else build/ of this tree."""
    return os.path.abspath(os.environ.get("DROVER_BUILD", os.path.join(ROOT, "build")))


def binary(name):
    """Returns the path of a process's binary: binary("exec-helper"), binary("drover")."""
    return os.path.join(build_dir(), name if name == "drover" else "drover-" + name)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the programs of programs.py by drover. In namespaces of its own: tests/nomad/isolated.py runs it, for `make check-programs`.

    tests/nomad/isolated.py tests/programs/check.py [test_…]…"""
import contextlib
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
import programs  # noqa: E402
from lib import api, binary, case  # noqa: E402


@contextlib.contextmanager
def by_drover(name):
    with api.Node() as node:
        yield programs.Program(node, binary("drover"), {"DROVER_ADDR": "unix://" + node.socket_path}, name)
        node.purge(name, seconds=programs.SECONDS)


programs.program = by_drover
case.run(vars(programs))

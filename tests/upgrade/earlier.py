# SPDX-License-Identifier: Apache-2.0
"""Starts the agent of an earlier build as installed, and upgrades it. The first argument of the script is the earlier launcher.

    with service.Users(), api.Node(dev=False, launcher=earlier.install_earlier()) as node:
        earlier.upgrade(node)
        …
        service.remove(node)"""
import os
import shutil
import sys

from lib import build_dir, case

BUILD = os.path.dirname(os.path.abspath(sys.argv.pop(1)))


def replace(source, target):
    """Replaces a program by rename: running processes keep the old file."""
    shutil.copy(source, target + ".new")
    os.rename(target + ".new", target)


def install(build, directory):
    """Replaces all programs in a directory, as a package manager does."""
    names = [n for n in os.listdir(build) if n == "drover" or (n.startswith("drover-") and not n.endswith(".a"))]
    for name in set(os.listdir(directory)) - set(names):
        os.unlink(os.path.join(directory, name))
    for name in names:
        replace(os.path.join(build, name), os.path.join(directory, name))


def install_earlier():
    """Returns the path of the launcher in a new directory with the earlier programs."""
    directory = case.directory()
    install(BUILD, directory)
    return directory + "/drover-launcher"


def upgrade(node, meanwhile=lambda: None):
    """Stops the agent, but not its tasks, calls meanwhile(), and starts the programs of this tree on the same data."""
    case.equal(node.stop(), 0, "exit code of the earlier launcher")
    meanwhile()
    install(build_dir(), os.path.dirname(node.launcher))
    node.start()
    node.wait_ready()

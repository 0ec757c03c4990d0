# SPDX-License-Identifier: Apache-2.0
"""Loop devices, for volumes that are block devices."""
import os
import shutil
import subprocess

from . import case


def usable():
    return shutil.which("losetup") is not None and subprocess.run(["losetup", "-f"], stdout=subprocess.DEVNULL, check=False).returncode == 0


class Loop:
    """A block device of one MiB; .path is its node, .number its st_rdev, .file what it stores."""

    def __init__(self):
        self.file = case.directory() + "/disk"
        with open(self.file, "wb") as f:
            f.truncate(1 << 20)
        try:
            made = subprocess.run(["losetup", "-f", "--show", self.file], stdout=subprocess.PIPE, check=True)
        except (OSError, subprocess.CalledProcessError):
            case.skip("no loop devices")
        self.path = made.stdout.decode().strip()
        # A device that is detached while it is open is freed when it is closed, also if this process is killed.
        self.fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        subprocess.run(["losetup", "-d", self.path], check=True)
        self.number = os.stat(self.path).st_rdev

    def start(self):
        """Returns the first bytes that are stored, up to a zero."""
        os.fsync(self.fd)  # the kernel itself writes what it has only when nobody has the device open
        with open(self.file, "rb") as f:
            return f.read(512).split(b"\0")[0]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.fd)

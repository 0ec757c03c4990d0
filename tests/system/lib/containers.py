# SPDX-License-Identifier: Apache-2.0
"""Starts containers through exec-helper alone, on the runs.Runs of a test.

    with runs.Runs() as r:
        said(r, "id")
"""
import hashlib
import io
import os
import tarfile

from . import case, exe, images

CAPS = "a80405fb"


def tools():
    with open("/bin/busybox", "rb") as f:
        entries = [images.directory("bin"), images.file("bin/busybox", f.read(), mode=0o755), images.directory("tmp", mode=0o1777)]
    return images.tar(entries + [images.link("bin/" + x, "busybox") for x in (
        "sh", "cat", "id", "ls", "mount", "sleep", "echo", "readlink", "stat", "env", "touch", "hostname", "pwd", "grep", "chmod", "chown", "ps", "true",
        "ln", "mkdir", "rm", "kill", "mknod", "unshare", "chroot", "find", "sed", "umount", "ip", "nc")])


if not os.path.exists("/bin/busybox"):
    case.skip("no busybox-static")
TOOLS = tools()
ETC = images.tar([images.directory("etc"), images.file("etc/passwd", b"root:x:0:0:root:/root:/bin/sh\nweb:x:1000:1001:web:/home/web:/bin/sh\n"),
                  images.file("etc/group", b"root:x:0:\nstaff:x:50:web,other\nweb:x:1001:\n"), images.file("bin/suid", b"", mode=0o4755)])


def unpack(r, layer):
    """Puts a layer into the store, as the image-unpacker does. Returns its digest."""
    digest = hashlib.sha256(layer).digest()
    at = "%s/images/layers/%s" % (r.places.data, digest.hex())
    if not os.path.exists(at):
        with tarfile.open(fileobj=io.BytesIO(layer)) as t:
            t.extractall(at)
            os.chmod(at, 0o755)
            for top, dirs, files in os.walk(at):
                for name in [".", *dirs, *files]:
                    path = os.path.join(top, name)
                    mode = os.lstat(path).st_mode & 0o7777
                    os.lchown(path, images.ID_FIRST, images.ID_FIRST)
                    if not os.path.islink(path):
                        os.chmod(path, mode)
    return digest


def container(r, script, layers=(ETC, TOOLS), options=(), number=2, **more):
    """Starts a container with these layers, from the highest, whose shell runs the script."""
    digests = [unpack(r, x) for x in layers]
    bits = int.from_bytes(b"".join(digests), "little")
    return r.start("/bin/sh", ["-c", script], driver="DOCKER", id_range=number, n_layers=len(digests), options=["hostname=box", "caps=" + CAPS, *options],
                   layers=[n for n in range(bits.bit_length()) if bits >> n & 1], **more)


def said(r, script, seconds=10, **more):
    run = container(r, script, **more)
    record = r.ended(run, seconds=seconds)
    text = r.log(run) + r.log(run, "stderr")
    case.equal((exe.STATES[record["state"]], record["step"], record["error"], record["detail"]), ("ended", 0, 0, 0), "the start: " + text)
    return text


def read(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read()

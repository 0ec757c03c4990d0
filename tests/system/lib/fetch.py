# SPDX-License-Identifier: Apache-2.0
"""The fetcher alone, as the supervisor uses it.

    with fetch.Fetcher() as f:
        tree = f.get("http://127.0.0.1:8000/a.txt")   # {path: contents}, "" is the artifact itself if it is a file
"""
import json
import os
import shutil

from . import helper

SPEC = {"mode": "any", "options": {}, "headers": {}, "insecure": False, "max_bytes": 1 << 30, "max_unpacked": 1 << 30, "max_files": 4096,
        "http_ms": 60000, "git_ms": 60000, "s3_ms": 60000}


def tree_of(path):
    """Returns {relative path: contents, ("link", target) or None for a directory}."""
    if os.path.islink(path):
        return {"": ("link", os.readlink(path))}
    if os.path.isfile(path):
        with open(path, "rb") as f:
            return {"": f.read()}
    found = {}
    for name in sorted(os.listdir(path)):
        at = os.path.join(path, name)
        if os.path.isdir(at) and not os.path.islink(at):
            found[name] = None
        found.update({(name + "/" + inner).rstrip("/"): value for inner, value in tree_of(at).items()})
    return found


class Fetcher:
    def __init__(self, config="", env=None, uids=None):
        self.places = helper.Places(uids=uids)
        self.start = lambda: helper.Helper("fetcher", self.places, config=config, env=env)
        self.helper = self.start()
        self.ipc = self.helper.ipc

    def restart(self):
        self.helper.close()
        self.helper = self.start()
        self.ipc = self.helper.ipc

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.helper.close()
        self.places.remove()

    def path(self, staging):
        return "%s/alloc/.fetch/%s" % (self.places.data, staging.hex())

    def send(self, source, staging=None, timeout_ms=60000, spec=None, **more):
        """Sends the request. Returns the id of the staging directory."""
        staging = staging or os.urandom(16)
        text = json.dumps({"source": source, **SPEC, **more} if spec is None else spec).encode()
        fd = helper.memfd_sealed(text)
        self.ipc.send("FET_ARTIFACT_GET_REQ", {"staging": staging, "timeout_ms": timeout_ms}, fds=[fd])
        os.close(fd)
        return staging

    def wait(self):
        """Returns the fields of the reply, or the text of the error."""
        packet = self.ipc.recv()
        return packet.fields["text"] if packet.name == "IPC_ERROR_REP" else packet.fields

    def get(self, source, keep=False, **more):
        """Returns the tree of the artifact, or the text of the error."""
        staging = self.send(source, **more)
        answer = self.wait()
        if isinstance(answer, dict):
            answer = tree_of(self.path(staging) + "/out")
        if not keep:
            shutil.rmtree(self.path(staging), ignore_errors=True)
        return answer

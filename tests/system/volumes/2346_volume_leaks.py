# SPDX-License-Identifier: Apache-2.0
"""`drover leaks` names what is left of volumes and plugins, and what is missing of them."""
import os
import uuid

from lib import case, helper, volumes


def leaks():
    return sorted((one["Kind"], one["Name"]) for one in node.ask("/v1/agent/leaks"))


def test_a_volume_that_someone_else_unmounted_is_named():
    node.create("demo")
    node.register(volumes.job("user", "demo", "sleep 1000"))
    node.wait_running("user")
    case.equal(leaks(), [], "leaks of a running job")
    (path,) = node.published("demo")
    helper.umount(path)
    case.equal(leaks(), [("volume", os.path.relpath(path, node.data))], "leaks")
    case.contains(node.drover("leaks", code=1).out, "a published volume that is not mounted any more", "the command")
    node.purge("user")
    case.equal(leaks(), [], "leaks after the job")


def test_what_no_row_knows_is_named():
    alloc, root = str(uuid.uuid4()), node.data + "/csi/monolith/local"
    made = ["/staging/half", "/staging/v/rw", "/per-alloc/%s/v/rw" % alloc]
    for path in made:
        os.makedirs(root + path)
    os.mkdir(node.data + "/csi/sock/" + alloc)
    os.mkdir(node.data + "/csi/node/unknown")
    helper.mount("v", root + "/staging/v/rw", "tmpfs")
    case.equal(leaks(), sorted([("csi-dir", "monolith/local" + path) for path in made] + [
        ("csi-dir", "node/unknown"), ("csi-socket", alloc), ("mount", "csi/monolith/local/staging/v/rw")]), "leaks")
    helper.umount(root + "/staging/v/rw")
    for path in [root + p for p in (*made, "/staging/v", "/per-alloc/%s/v" % alloc, "/per-alloc/" + alloc, "/per-alloc", "/staging")] + [
            node.data + "/csi/sock/" + alloc, node.data + "/csi/node/unknown"]:
        os.rmdir(path)
    case.equal(leaks(), [], "leaks")


with volumes.Node() as node:
    node.start_plugin()
    case.run(globals())

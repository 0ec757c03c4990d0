# SPDX-License-Identifier: Apache-2.0
"""`drover leaks` names what is left of volumes and plugins, and what is missing of them."""
import os
import uuid

from lib import case, helper, volumes


def leaks():
    return sorted((one["Kind"], one["Name"]) for one in node.ask("/v1/agent/leaks"))


def test_a_volume_that_someone_else_unmounted_is_none_when_it_is_mounted_again():
    node.create("demo")
    node.register(volumes.job("user", "demo", "sleep 1000"))
    node.wait_running("user")
    case.equal(leaks(), [], "leaks of a running job")
    (path,) = node.published("demo")
    helper.umount(path)
    case.until(lambda: node.published("demo") == [path], 30, "the volume to be mounted again")
    case.until(lambda: leaks() == [], 30, "no leaks")
    node.purge("user")
    case.equal(leaks(), [], "leaks after the job")


def test_what_no_row_knows_is_named():
    alloc, root = str(uuid.uuid4()), node.data + "/csi/monolith/local"
    made = ["/staging/half", "/staging/v/rw", "/per-alloc/%s/v/rw" % alloc]
    for path in made:
        os.makedirs(root + path)
    os.mkdir(node.data + "/csi/sock/" + alloc)
    os.mkdir(node.data + "/csi/node/unknown")
    helper.mount("v", node.data + "/csi/node/unknown", "tmpfs")
    case.equal(leaks(), sorted([("csi-dir", "monolith/local" + path) for path in made] + [
        ("csi-dir", "node/unknown"), ("csi-socket", alloc), ("mount", "csi/node/unknown")]), "leaks")
    helper.umount(node.data + "/csi/node/unknown")
    for path in [root + p for p in (*made, "/staging/v", "/per-alloc/%s/v" % alloc, "/per-alloc/" + alloc, "/per-alloc", "/staging")] + [
            node.data + "/csi/sock/" + alloc, node.data + "/csi/node/unknown"]:
        os.rmdir(path)
    case.equal(leaks(), [], "leaks")


with volumes.Node() as node:
    node.start_plugin()
    case.run(globals())

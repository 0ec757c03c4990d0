# SPDX-License-Identifier: Apache-2.0
# takes: 10
"""A whole agent: a volume whose id, encoded, is too long for the name of a directory is mounted, used and released like any other."""
import os

from lib import case, volumes

IDS = ["_" * 128, "_" * 127 + "-", "_" * 42 + "xx" + "y" * 84]


def per_alloc(node):
    """Returns the names of volumes' directories below the plugin's root."""
    root = node.data + "/csi/monolith/local/per-alloc"
    return sorted({v for a in (os.listdir(root) if os.path.exists(root) else ()) for v in os.listdir(root + "/" + a)})


def test_long_ids_are_mounted_and_released():
    with volumes.Node() as node:
        node.start_plugin()
        for n, name in enumerate(IDS):
            node.create(name)
            node.register(volumes.job("user-%d" % n, name, "echo %d > /data/who; cat /data/who; sleep 1000" % n))
        for n in range(len(IDS)):
            (alloc,) = node.wait_running("user-%d" % n)
            case.until(lambda: node.logs(alloc) == b"%d\n" % n, 10, "the volume's data")
        found = per_alloc(node)
        case.equal((len(found), max(len(v) for v in found) <= 128), (len(IDS), True), "directories %r" % found)
        node.replace_supervisor()
        for n, name in enumerate(IDS):
            node.purge("user-%d" % n)
            claims = node.ask("/v1/volume/csi/" + name)
            case.until(lambda: not node.ask("/v1/volume/csi/" + name)["WriteAllocs"], 10, "the claim to go: %r" % claims)
        case.equal(per_alloc(node), [], "directories")
        for name in IDS:
            node.do("DELETE", "/v1/volume/csi/%s/delete" % name)
        node.purge("csi-local")
        case.equal(node.ask("/v1/agent/leaks"), [], "leaks")


case.run(globals())

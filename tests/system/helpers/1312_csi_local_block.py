# SPDX-License-Identifier: Apache-2.0
"""Block volumes of drover-csi-local: loop devices of files."""
import fcntl
import os
import stat
import struct

from lib import case, csi, csi_local
from lib.csi_local import WRITER, block

BLKGETSIZE64 = 0x80081272
WRITES, READS = {"volume_capability": block()}, {"volume_capability": block("MULTI_NODE_READER_ONLY")}
SIZE = 4 << 20
BYTES = 1  # VolumeUsage.Unit

if not os.path.exists("/dev/loop-control"):
    case.skip("this machine has no loop devices")


def size_of(path):
    fd = os.open(path, os.O_RDONLY)
    try:
        return struct.unpack("Q", fcntl.ioctl(fd, BLKGETSIZE64, bytes(8)))[0]
    finally:
        os.close(fd)


def write_at(path, at, data):
    fd = os.open(path, os.O_WRONLY)
    try:
        os.pwrite(fd, data, at)
        os.fsync(fd)
    finally:
        os.close(fd)


def read_at(path, at, size):
    fd = os.open(path, os.O_RDONLY)
    try:
        return os.pread(fd, size, at)
    finally:
        os.close(fd)


def create(node, name, size=SIZE, **more):
    return node.create(name, volume_capabilities=[block()], capacity_range={"required_bytes": size}, **more)


def start(node, volume, name):
    case.equal(node.stage(volume, **WRITES)[:2], (csi.OK, ""), "stage")
    case.equal(node.publish(volume, name, **WRITES)[:2], (csi.OK, ""), "publish")
    return node.pub + "/" + name


def test_a_block_volume_is_a_device_that_keeps_its_data():
    with csi_local.Node() as node:
        volume = create(node, "v", 5000)
        case.equal(node.ok("controller_get_volume", volume_id=volume)["volume"]["capacity_bytes"], 8192, "rounded up")
        for _ in range(2):
            path = start(node, volume, "t")
        if not stat.S_ISBLK(os.stat(path).st_mode):
            raise AssertionError("the target is no block device")
        case.equal((size_of(path), os.listdir(node.staging(volume))), (8192, []), "size, and the staging directory")
        case.equal({k: len(v) for k, v in node.loops().items()}, {volume: 1}, "loop devices after repeated calls")
        write_at(path, 4096, b"kept")
        usage = node.ok("node_get_volume_stats", volume_id=volume, volume_path=path)["usage"]
        case.equal([(u["unit"], u["total"]) for u in usage], [(BYTES, 8192)], "usage")
        node.fails(csi.FAILED_PRECONDITION, "in use", "delete_volume", volume_id=volume)
        for _ in range(2):
            node.unpublish_and_unstage(volume, "t")
        case.equal((os.path.exists(path), node.mounts()), (False, {}), "target and mounts")
        case.until(lambda: not node.loops(), 10, "no loop device")
        path = start(node, volume, "t2")
        case.equal(read_at(path, 4096, 4), b"kept", "data")
        node.unpublish_and_unstage(volume, "t2")
        node.ok("delete_volume", volume_id=volume)


def test_a_restarted_plugin_finds_the_device_again():
    with csi_local.Node() as node:
        volume = create(node, "v")
        path = start(node, volume, "t")
        before = node.loops()
        node.restart_plugin()
        start(node, volume, "t")
        case.equal(node.publish(volume, "u", **WRITES)[0], csi.OK, "a second target")
        case.equal((node.loops(), os.stat(path).st_rdev), (before, os.stat(node.pub + "/u").st_rdev), "devices")
        node.restart_plugin()
        node.unpublish_and_unstage(volume, "t", "u")
        case.until(lambda: not node.loops(), 10, "no loop device")


def test_a_block_volume_that_is_read_only_cannot_be_written():
    with csi_local.Node() as node:
        volume = create(node, "v")
        path = start(node, volume, "w")
        write_at(path, 0, b"data")
        case.equal(node.publish(volume, "r", readonly=True, **WRITES)[0], csi.OK, "publish read-only")
        case.equal(read_at(node.pub + "/r", 0, 4), b"data", "what a reader sees")
        case.raises(PermissionError, write_at, node.pub + "/r", 0, b"x")
        case.equal(node.publish(volume, "w", readonly=True, **WRITES)[0], csi.ALREADY_EXISTS, "another way")
        node.unpublish_and_unstage(volume, "w", "r")
        case.equal(node.stage(volume, **READS)[0], csi.OK, "stage for a reader")
        case.equal(node.publish(volume, "r", **READS)[0], csi.OK, "publish for a reader")
        case.raises(PermissionError, write_at, node.pub + "/r", 0, b"x")
        node.unpublish_and_unstage(volume, "r")
        case.until(lambda: not node.loops(), 10, "no loop device")


def test_a_block_volume_grows_in_use():
    with csi_local.Node() as node:
        volume = create(node, "v")
        wanted = {"required_bytes": 2 * SIZE}
        path = start(node, volume, "t")
        answer = node.ok("controller_expand_volume", volume_id=volume, capacity_range=wanted, volume_capability=block())
        case.equal((answer["capacity_bytes"], answer["node_expansion_required"]), (2 * SIZE, True), "the controller's answer")
        case.equal(size_of(path), SIZE, "the device before the node's part")
        for _ in range(2):
            case.equal(node.ok("node_expand_volume", volume_id=volume, volume_path=path,
                               capacity_range=wanted)["capacity_bytes"], 2 * SIZE, "the node's answer")
        case.equal(size_of(path), 2 * SIZE, "the device")
        node.fails(csi.OUT_OF_RANGE, "the controller must expand it first", "node_expand_volume", volume_id=volume, volume_path=path,
                   capacity_range={"required_bytes": 3 * SIZE})
        node.unpublish_and_unstage(volume, "t")
        answer = node.ok("controller_expand_volume", volume_id=volume, capacity_range={"required_bytes": 3 * SIZE})
        case.equal((answer["capacity_bytes"], answer["node_expansion_required"]), (3 * SIZE, False), "not in use")
        case.equal(size_of(start(node, volume, "t")), 3 * SIZE, "the device of the next start")
        node.unpublish_and_unstage(volume, "t")


def test_copies_have_what_was_written_to_the_device():
    with csi_local.Node() as node:
        volume = create(node, "v")
        path = start(node, volume, "t")
        fd = os.open(path, os.O_WRONLY)
        os.pwrite(fd, b"not synced", 1 << 20)
        snapshot = node.ok("create_snapshot", name="s", source_volume_id=volume)["snapshot"]
        os.close(fd)
        write_at(path, 1 << 20, b"written over")
        copy = create(node, "copy", 2 * SIZE, volume_content_source={"snapshot": {"snapshot_id": snapshot["snapshot_id"]}})
        node.fails(csi.OUT_OF_RANGE, "needs", "create_volume", name="small", volume_capabilities=[block()],
                   capacity_range={"limit_bytes": SIZE // 2},
                   volume_content_source={"snapshot": {"snapshot_id": snapshot["snapshot_id"]}})
        node.fails(csi.INVALID_ARGUMENT, "must also be a block device", "create_volume", name="d", volume_capabilities=[WRITER],
                   volume_content_source={"volume": {"volume_id": volume}})
        there = start(node, copy, "c")
        case.equal((read_at(there, 1 << 20, 10), size_of(there)), (b"not synced", 2 * SIZE), "the copy")
        node.unpublish_and_unstage(copy, "c")
        node.unpublish_and_unstage(volume, "t")


def test_a_volume_is_used_as_what_it_was_made():
    with csi_local.Node() as node:
        device, directory = create(node, "device"), node.create("directory")
        for volume, capability, text in ((device, WRITER, "is a block device"), (directory, block(), "is a directory")):
            status, message, _ = node.stage(volume, volume_capability=capability)
            case.equal(status, csi.FAILED_PRECONDITION, message)
            case.contains(message, text, "message")
            found = node.ok("validate_volume_capabilities", volume_id=volume, volume_capabilities=[capability])
            case.equal(found["confirmed"], None, "confirmation")
        node.fails(csi.ALREADY_EXISTS, "exists as a directory", "create_volume", name="directory", volume_capabilities=[block()])


try:
    case.run(globals())
finally:
    csi_local.PLACES.remove()

# SPDX-License-Identifier: Apache-2.0
"""drover-csi-local with real mounts, called through csi-helper. It runs as nobody with the capabilities that its README names."""
import os
import random
import subprocess
import time

from lib import binary, case, csi, helper
from lib.csi_local import Node, PLACES, WRAP, WRITER


def test_data_is_kept_until_the_volume_is_deleted():
    with Node() as node:
        volume = node.create("data", capacity_range={"required_bytes": 1 << 20})
        path = node.stage_and_publish(volume, "t1")
        with open(path + "/file", "w", encoding="ascii") as f:
            f.write("kept")
        options = node.mounts()
        case.equal(sorted(options), sorted([path, node.staging(volume)]), "mounts that the host sees")
        for opts in options.values():
            case.equal(len(opts), 1, "mounts at one place")
            for word in ("rw", "nosuid", "nodev"):
                case.contains(opts[0], word, "options")
        node.unpublish_and_unstage(volume, "t1")
        case.equal((node.mounts(), os.path.exists(path)), ({}, False), "mounts that are left")
        node.restart_plugin()
        path = node.stage_and_publish(volume, "t2")
        with open(path + "/file", encoding="ascii") as f:
            case.equal(f.read(), "kept", "data after a restart")
        case.equal(os.stat(path).st_mode & 0o7777, 0o777, "mode of the volume's directory")
        node.unpublish_and_unstage(volume, "t2")
        node.ok("delete_volume", volume_id=volume)
        node.fails(csi.NOT_FOUND, "does not exist", "node_stage_volume", volume_id=volume,
                   staging_target_path=node.staging(volume), volume_capability=WRITER)
        case.until(lambda: not os.listdir(node.kept + "/volumes/trash"), 5, "an empty trash")
        case.equal([os.listdir(node.kept + "/volumes/" + d) for d in ("meta", "volumes")], [[], []], "directories that are left")


def test_every_request_can_be_repeated():
    with Node() as node:
        volume = node.create("again")
        case.equal(node.create("again"), volume, "create by the same name")
        for _ in range(2):
            path = node.stage_and_publish(volume, "t")
        case.equal({len(v) for v in node.mounts().values()}, {1}, "mounts at one place after two publishes")
        node.restart_plugin()
        node.stage_and_publish(volume, "t")
        case.equal({len(v) for v in node.mounts().values()}, {1}, "mounts at one place after a restart")
        for _ in range(2):
            node.unpublish_and_unstage(volume, "t")
        case.equal(node.mounts(), {}, "mounts")
        if os.path.exists(path):
            raise AssertionError("whether the target still exists")
        for _ in range(2):
            node.ok("delete_volume", volume_id=volume)


def test_a_read_only_volume_cannot_be_written():
    with Node() as node:
        volume = node.create("ro")
        rw = node.stage_and_publish(volume, "rw")
        ro = node.stage_and_publish(volume, "ro", readonly=True)
        with open(rw + "/x", "w", encoding="ascii") as f:
            f.write("1")
        e = case.raises(OSError, open, ro + "/y", "w")
        case.equal(e.errno, 30, "EROFS")
        case.equal(os.listdir(ro), ["x"], "files of the same volume")
        status, message, _ = node.publish(volume, "ro")
        case.equal(status, csi.ALREADY_EXISTS, message)
        flagged = {"mount": {"mount_flags": ["ro", "noexec"]}, "access_mode": {"mode": "MULTI_NODE_MULTI_WRITER"}}
        path = node.stage_and_publish(volume, "flags", volume_capability=flagged)
        options = node.mounts()[path][0]
        for word in ("ro", "noexec", "nosuid"):
            case.contains(options, word, "mount flags")
        node.unpublish_and_unstage(volume, "rw", "ro", "flags")


def test_a_volume_in_use_is_not_deleted():
    # A server may call DeleteVolume before it has checked whether the volume is in use.
    with Node() as node:
        volume = node.create("used")
        path = node.stage_and_publish(volume, "t")
        with open(path + "/precious", "w", encoding="ascii"):
            pass
        for _ in range(2):
            node.fails(csi.FAILED_PRECONDITION, "in use", "delete_volume", volume_id=volume)
            node.restart_plugin()
        case.equal(node.unpublish(volume, "t")[0], csi.OK, "unpublish")
        node.fails(csi.FAILED_PRECONDITION, "in use", "delete_volume", volume_id=volume)  # still staged
        case.equal(node.publish(volume, "t")[0], csi.OK, "publish again")
        case.equal(os.listdir(path), ["precious"], "files after the refused deletes")
        node.unpublish_and_unstage(volume, "t")
        node.ok("delete_volume", volume_id=volume)


def test_a_busy_target_stays_mounted_and_can_be_tried_again():
    with Node() as node:
        volume = node.create("busy")
        path = node.stage_and_publish(volume, "t")
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        status, message, _ = node.unpublish(volume, "t")
        case.equal(status, csi.INTERNAL, message)
        case.contains(message, "busy", "the error message")
        os.close(fd)
        node.unpublish_and_unstage(volume, "t")


def test_a_foreign_mount_at_the_target_is_left_alone():
    with Node() as node:
        volume = node.create("foreign")
        case.equal(node.stage(volume)[0], csi.OK, "stage")
        os.mkdir(node.pub + "/t")
        helper.mount("none", node.pub + "/t", "tmpfs")
        for status, message, _ in (node.publish(volume, "t"), node.unpublish(volume, "t")):
            case.equal(status, csi.INTERNAL, message)
            case.contains(message, "something else is mounted", "the error message")
        case.equal(len(node.mounts()[node.pub + "/t"]), 1, "contents of the mount that the plugin did not make")
        helper.umount(node.pub + "/t")
        node.unpublish_and_unstage(volume)
        # A link in place of the target is not followed.
        os.rmdir(node.pub + "/t")
        os.symlink("/tmp", node.pub + "/t")
        node.stage(volume)
        case.equal(node.publish(volume, "t")[0], csi.INTERNAL, "a link as target")
        os.unlink(node.pub + "/t")
        node.unpublish_and_unstage(volume)


def test_wrong_requests_have_the_codes_of_the_specification():
    with Node() as node:
        volume = node.create("codes", capacity_range={"required_bytes": 1000})
        bad, staging, target = csi.INVALID_ARGUMENT, node.staging(volume), node.pub + "/t"
        block = {"block": {}, "access_mode": {"mode": "SINGLE_NODE_WRITER"}}
        for status, text, method, request in (
                (bad, "name of the volume is missing", "create_volume", {"volume_capabilities": [WRITER]}),
                (bad, "longer than 128", "create_volume", {"name": "x" * 129, "volume_capabilities": [WRITER]}),
                (bad, "control characters", "create_volume", {"name": "a\nb", "volume_capabilities": [WRITER]}),
                (bad, "capabilities are missing", "create_volume", {"name": "n"}),
                (bad, "not both", "create_volume", {"name": "n", "volume_capabilities": [WRITER, block]}),
                (bad, "access mode", "create_volume", {"name": "n", "volume_capabilities": [{"mount": {}}]}),
                (bad, "access type", "create_volume",
                 {"name": "n", "volume_capabilities": [{"access_mode": {"mode": "SINGLE_NODE_WRITER"}}]}),
                (bad, "file system type 'ext4'", "create_volume",
                 {"name": "n", "volume_capabilities": [dict(WRITER, mount={"fs_type": "ext4"})]}),
                (bad, "parameter 'x'", "create_volume",
                 {"name": "n", "volume_capabilities": [WRITER], "parameters": [{"key": "x", "value": "y"}]}),
                (csi.NOT_FOUND, "volume 'v' does not exist", "create_volume",
                 {"name": "n", "volume_capabilities": [WRITER], "volume_content_source": {"volume": {"volume_id": "v"}}}),
                (csi.OUT_OF_RANGE, "above the limit", "create_volume",
                 {"name": "n", "volume_capabilities": [WRITER], "capacity_range": {"required_bytes": 2, "limit_bytes": 1}}),
                (csi.ALREADY_EXISTS, "another capacity", "create_volume",
                 {"name": "codes", "volume_capabilities": [WRITER], "capacity_range": {"required_bytes": 2000}}),
                (bad, "volume id is missing", "delete_volume", {}),
                (bad, "volume id is missing", "node_stage_volume",
                 {"staging_target_path": staging, "volume_capability": WRITER}),
                (bad, "staging path is missing", "node_stage_volume", {"volume_id": volume, "volume_capability": WRITER}),
                (bad, "capability is missing", "node_stage_volume", {"volume_id": volume, "staging_target_path": staging}),
                (bad, "not an absolute path", "node_stage_volume",
                 {"volume_id": volume, "staging_target_path": "a/../b", "volume_capability": WRITER}),
                (csi.NOT_FOUND, "volume '../meta' does not exist", "node_stage_volume",
                 {"volume_id": "../meta", "staging_target_path": staging, "volume_capability": WRITER}),
                (bad, "mount flag 'suid'", "node_stage_volume",
                 {"volume_id": volume, "staging_target_path": staging,
                  "volume_capability": dict(WRITER, mount={"mount_flags": ["suid"]})}),
                (bad, "target path is missing", "node_publish_volume",
                 {"volume_id": volume, "staging_target_path": staging, "volume_capability": WRITER}),
                (csi.FAILED_PRECONDITION, "staging path is missing", "node_publish_volume",
                 {"volume_id": volume, "target_path": target, "volume_capability": WRITER}),
                (csi.FAILED_PRECONDITION, "not staged", "node_publish_volume",
                 {"volume_id": volume, "target_path": target, "staging_target_path": staging, "volume_capability": WRITER}),
                (csi.NOT_FOUND, "does not exist", "node_publish_volume",
                 {"volume_id": "0" * 32, "target_path": target, "staging_target_path": staging,
                  "volume_capability": WRITER}),
                (bad, "volume id is missing", "node_unpublish_volume", {"target_path": target}),
                (bad, "target path is missing", "node_unpublish_volume", {"volume_id": volume}),
                (csi.NOT_FOUND, "does not exist", "node_unpublish_volume", {"volume_id": "x", "target_path": target}),
                (bad, "volume id is missing", "node_unstage_volume", {"staging_target_path": staging}),
                (bad, "staging path is missing", "node_unstage_volume", {"volume_id": volume})):
            node.fails(status, text, method, **request)
        case.equal(node.mounts(), {}, "mounts")
        case.equal(len(os.listdir(node.kept + "/volumes/volumes")), 1, "volumes")


def test_a_second_plugin_waits_for_the_first():
    with Node() as node:
        first = node.plugin
        second = subprocess.Popen(
            [binary("csi-local"), "-root", node.kept + "/volumes", "-endpoint", node.kept + "/other.sock"],
            stderr=subprocess.PIPE)
        try:
            time.sleep(0.3)  # time for the second plugin to start: nothing shows that it waits
            case.equal(os.path.exists(node.kept + "/other.sock"), False, "whether a second plugin serves")
            first.kill()
            case.until(lambda: os.path.exists(node.kept + "/other.sock"), 5, "the second plugin to take over")
            second.terminate()
            case.equal(second.wait(case.LEAST_S), 0, "exit status on SIGTERM")
            case.equal(os.path.exists(node.kept + "/other.sock"), False, "its socket afterwards")
        finally:
            second.kill()
            second.wait()
            second.stderr.close()


def test_after_kills_at_random_repeated_requests_complete():
    # Each round kills the plugin (SIGKILL) during a sequence of calls, starts it again, and repeats the sequence to its end.
    random.seed(os.environ.get("DROVER_SEED", "1"))
    with Node() as node:
        for i in range(40):
            name = "v%d" % i
            serials = []

            def send(method, **request):
                serials.append(csi.send_call(node.helper, node.channel, method, request))

            volume = node.create(name)
            staging, target = node.staging(volume), node.pub + "/" + name
            send("node_stage_volume", volume_id=volume, staging_target_path=staging, volume_capability=WRITER)
            send("node_publish_volume", volume_id=volume, staging_target_path=staging, target_path=target,
                 volume_capability=WRITER)
            send("node_unpublish_volume", volume_id=volume, target_path=target)
            send("create_volume", name=name + "b", volume_capabilities=[WRITER])
            time.sleep(random.uniform(0, 0.004))
            node.plugin.kill()
            for _ in serials:
                node.helper.ipc.recv()
            node.helper.ipc.call("CSI_PLUGIN_CLOSE_REQ", {"channel": node.channel})
            node.start_plugin()
            case.equal(node.create(name), volume, "data of the other volume")
            node.stage_and_publish(volume, name)
            case.equal({len(v) for v in node.mounts().values()}, {1}, "mounts at one place")
            node.unpublish_and_unstage(volume, name)
            node.ok("delete_volume", volume_id=volume)
            node.ok("delete_volume", volume_id=node.create(name + "b"))
            case.equal(node.mounts(), {}, "mounts")
        kept = node.kept + "/volumes/"
        case.until(lambda: not os.listdir(kept + "trash"), 5, "an empty trash")
        case.equal([set(os.listdir(kept + d)) - {".new"} for d in ("meta", "volumes")], [set(), set()], "directories that are left")


def test_operations_that_a_crash_interrupted_are_completed():
    with Node() as node:
        kept = node.kept + "/volumes/"
        deleted, stays = node.create("deleted"), node.create("stays")
        node.plugin.kill()
        os.rename(kept + "volumes/" + deleted, kept + "trash/" + deleted)  # a deletion after its first step
        unfinished, foreign = "0" * 32, "1" * 32
        os.mkdir(kept + "volumes/" + unfinished)  # a creation before its last step
        os.makedirs(kept + "volumes/" + foreign + "/data")  # not made by the plugin: never removed
        node.start_plugin()
        case.until(lambda: not os.listdir(kept + "trash"), 5, "an empty trash")
        case.equal(os.listdir(kept + "meta"), [stays], "volumes")
        case.equal(sorted(os.listdir(kept + "volumes")), sorted([foreign, stays]), "directories")
        if node.create("deleted") == deleted:
            raise AssertionError("whether the deleted volume exists")


def test_a_damaged_record_stops_it_and_removes_nothing():
    with Node() as node:
        volume = node.create("damaged")
        path = node.stage_and_publish(volume, "t")
        with open(path + "/x", "w", encoding="ascii"):
            pass
        node.unpublish_and_unstage(volume, "t")
        node.plugin.kill()
        record = node.kept + "/volumes/meta/" + volume
        with open(record, "r+b") as f:
            good = f.read()
            f.seek(0)
            f.write(b"\xff\xff")
        e = case.raises(AssertionError, csi.local, node.kept, "n", WRAP)
        case.contains(str(e), "the record of volume %s is damaged" % volume, "why it ended")
        case.equal(os.listdir(node.kept + "/volumes/volumes/" + volume), ["x"], "the data")
        with open(record, "wb") as f:
            f.write(good)
        node.start_plugin()
        case.equal(node.create("damaged"), volume, "with the record restored")


try:
    case.run(globals())
finally:
    PLACES.remove()

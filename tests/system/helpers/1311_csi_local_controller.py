# SPDX-License-Identifier: Apache-2.0
"""What the controller of drover-csi-local does beside making volumes: snapshots, clones, groups, attachment, lists, topology, limits."""
import os

from lib import case, csi, csi_local
from lib.csi_local import WRITER, mode, pairs

CHOWN = tuple(w.replace("+dac_override", "+dac_override,+chown,+fowner") for w in csi_local.WRAP)
READER = mode("MULTI_NODE_READER_ONLY")


def source(**of):
    return {"volume_content_source": of}


def test_snapshots_and_clones_are_independent_copies():
    with csi_local.Node(wrap=CHOWN) as node:
        volume = node.create("origin", capacity_range={"required_bytes": 5000})
        path = node.stage_and_publish(volume, "t")
        os.makedirs(path + "/d/e")
        with open(path + "/d/e/file", "w", encoding="ascii") as f:
            f.write("first")
        os.chown(path + "/d/e/file", 1234, 1235)
        os.chmod(path + "/d/e/file", 0o4751)
        os.setxattr(path + "/d", "user.colour", b"red")
        os.symlink("d/e/file", path + "/link")
        os.mkfifo(path + "/fifo", 0o640)
        with open(path + "/sparse", "wb") as f:
            f.truncate(1 << 30)
            f.seek(1 << 29)
            f.write(b"middle")
        made = node.ok("create_snapshot", name="s1", source_volume_id=volume)["snapshot"]
        case.equal((made["source_volume_id"], made["size_bytes"], made["ready_to_use"]), (volume, 5000, True))
        case.equal(node.ok("create_snapshot", name="s1", source_volume_id=volume)["snapshot"], made, "the repeated answer")
        with open(path + "/d/e/file", "w", encoding="ascii") as f:
            f.write("second")
        copies = {"first": node.create("from-snapshot", **source(snapshot={"snapshot_id": made["snapshot_id"]})),
                  "second": node.create("from-volume", **source(volume={"volume_id": volume}))}
        case.equal(node.create("from-volume", **source(volume={"volume_id": volume})), copies["second"], "create by the same name")
        node.fails(csi.ALREADY_EXISTS, "another source", "create_volume", name="from-volume", volume_capabilities=[WRITER])
        node.unpublish_and_unstage(volume, "t")
        node.ok("delete_volume", volume_id=volume)
        node.ok("delete_snapshot", snapshot_id=made["snapshot_id"])
        node.restart_plugin()
        for text, copy in copies.items():
            path = node.stage_and_publish(copy, "t-" + text)
            with open(path + "/d/e/file", encoding="ascii") as f:
                case.equal(f.read(), text, "contents")
            st = os.stat(path + "/d/e/file")
            case.equal(os.readlink(path + "/link"), "d/e/file", "link")
            case.equal(os.getxattr(path + "/d", "user.colour"), b"red", "attribute")
            case.equal(os.stat(path + "/fifo").st_mode & 0o777, 0o640, "mode of the fifo")
            if text == "first":
                case.equal((st.st_uid, st.st_gid, st.st_mode & 0o7777), (1234, 1235, 0o4751), "owner and mode")
            sparse = os.stat(path + "/sparse")
            if sparse.st_size != 1 << 30 or sparse.st_blocks * 512 > 1 << 20:
                raise AssertionError("the copy has %d bytes in %d blocks" % (sparse.st_size, sparse.st_blocks))
            with open(path + "/sparse", "rb") as f:
                f.seek(1 << 29)
                case.equal(f.read(6), b"middle", "data between holes")
            node.unpublish_and_unstage(copy, "t-" + text)
        found = node.ok("list_volumes")["entries"]
        case.equal(sorted(kind for e in found for kind, value in e["volume"]["content_source"].items() if value),
                   ["snapshot", "volume"], "sources")
        case.equal({e["volume"]["capacity_bytes"] for e in found}, {5000}, "capacities of copies")


def test_a_copy_without_the_right_to_give_files_away_fails_and_leaves_nothing():
    with csi_local.Node() as node:
        volume = node.create("owned")
        path = node.stage_and_publish(volume, "t")
        with open(path + "/x", "w", encoding="ascii"):
            pass  # root's: the plugin is nobody, without CAP_CHOWN
        node.fails(csi.INTERNAL, "Operation not permitted", "create_snapshot", name="s", source_volume_id=volume)
        node.fails(csi.INTERNAL, "copy volume", "create_volume", name="c", volume_capabilities=[WRITER],
                   **source(volume={"volume_id": volume}))
        case.equal([os.listdir(node.kept + "/volumes/" + d) for d in ("snapshot-meta", "snapshots")], [[], []], "snapshots")
        case.equal(os.listdir(node.kept + "/volumes/meta"), [volume], "volumes")
        node.unpublish_and_unstage(volume, "t")


def test_interrupted_copies_are_removed_at_the_next_start():
    with csi_local.Node() as node:
        volume = node.create("v")
        snapshot = node.ok("create_snapshot", name="s", source_volume_id=volume)["snapshot"]["snapshot_id"]
        group = node.ok("create_volume_group_snapshot", name="g", source_volume_ids=[volume])["group_snapshot"]
        node.plugin.kill()
        kept = node.kept + "/volumes/"
        with open(kept + "snapshot-meta/" + snapshot, "ab") as f:
            f.write(b"\x40\x01")  # field 8: unfinished
        os.unlink(kept + "groups/" + group["group_snapshot_id"])  # what a creation is before its last step
        node.start_plugin()
        case.equal(node.ok("list_snapshots")["entries"], [], "snapshots")
        case.until(lambda: not os.listdir(kept + "trash") and not os.listdir(kept + "snapshots"), 10, "no data of snapshots")


def test_snapshots_are_listed_by_pages_and_filters():
    with csi_local.Node() as node:
        volumes = [node.create("v%d" % i) for i in range(2)]
        made = [node.ok("create_snapshot", name="s%d" % i, source_volume_id=volumes[i % 2])["snapshot"]["snapshot_id"]
                for i in range(5)]
        found, token = [], ""
        while True:
            page = node.ok("list_snapshots", max_entries=2, starting_token=token)
            found += [e["snapshot"]["snapshot_id"] for e in page["entries"]]
            token = page["next_token"]
            if not token:
                break
        case.equal(found, sorted(made), "snapshots on three pages")
        page = node.ok("list_snapshots", max_entries=2, source_volume_id=volumes[0])
        rest = node.ok("list_snapshots", starting_token=page["next_token"], source_volume_id=volumes[0])
        case.equal([e["snapshot"]["snapshot_id"] for e in page["entries"] + rest["entries"]],
                   sorted(made[i] for i in (0, 2, 4)), "of one volume")
        case.equal([e["snapshot"]["source_volume_id"] for e in node.ok("list_snapshots", snapshot_id=made[1])["entries"]],
                   [volumes[1]], "one snapshot")
        case.equal(node.ok("list_snapshots", snapshot_id="x")["entries"], [], "one that does not exist")
        node.fails(csi.ABORTED, "token", "list_snapshots", starting_token="x")
        node.fails(csi.ALREADY_EXISTS, "of another volume", "create_snapshot", name="s0", source_volume_id=volumes[1])
        node.fails(csi.NOT_FOUND, "does not exist", "create_snapshot", name="n", source_volume_id="0" * 32)
        node.fails(csi.INVALID_ARGUMENT, "source volume id is missing", "create_snapshot", name="n")
        node.fails(csi.INVALID_ARGUMENT, "snapshot id is missing", "delete_snapshot")
        node.ok("delete_snapshot", snapshot_id="x")


def test_a_group_of_snapshots_lives_and_dies_together():
    with csi_local.Node() as node:
        volumes = [node.create("v%d" % i) for i in range(3)]
        group = node.ok("create_volume_group_snapshot", name="g", source_volume_ids=volumes)["group_snapshot"]
        again = node.ok("create_volume_group_snapshot", name="g", source_volume_ids=volumes[::-1])["group_snapshot"]
        case.equal(again, group, "the same group, volumes in another order")
        case.equal([s["source_volume_id"] for s in group["snapshots"]], volumes, "sources")
        case.equal({s["group_snapshot_id"] for s in group["snapshots"]}, {group["group_snapshot_id"]}, "group of each")
        case.equal(len({str(s["creation_time"]) for s in group["snapshots"]}), 1, "moments")
        ids = [s["snapshot_id"] for s in group["snapshots"]]
        node.fails(csi.INVALID_ARGUMENT, "belongs to the group", "delete_snapshot", snapshot_id=ids[0])
        node.fails(csi.ALREADY_EXISTS, "of other volumes", "create_volume_group_snapshot", name="g", source_volume_ids=volumes[:2])
        node.fails(csi.INVALID_ARGUMENT, "named twice", "create_volume_group_snapshot", name="h", source_volume_ids=volumes[:1] * 2)
        node.fails(csi.NOT_FOUND, "does not exist", "create_volume_group_snapshot", name="h", source_volume_ids=[volumes[0], "x"])
        case.equal(len(node.ok("list_snapshots")["entries"]), 3, "snapshots after the failure")
        of = {"group_snapshot_id": group["group_snapshot_id"]}
        case.equal(node.ok("get_volume_group_snapshot", snapshot_ids=ids, **of)["group_snapshot"], group, "the group")
        node.fails(csi.INVALID_ARGUMENT, "not those of group", "delete_volume_group_snapshot", snapshot_ids=ids[:2], **of)
        for _ in range(2):
            node.ok("delete_volume_group_snapshot", snapshot_ids=ids, **of)
        node.fails(csi.NOT_FOUND, "does not exist", "get_volume_group_snapshot", snapshot_ids=ids, **of)
        case.equal(node.ok("list_snapshots")["entries"], [], "snapshots")


def test_an_attached_volume_needs_its_publish_context():
    with csi_local.Node(["-attach", "-max-volumes", "2"]) as node:
        volume = node.create("a")
        where = {"volume_id": volume, "node_id": "node-1"}
        status, message, _ = node.stage(volume)
        case.equal((status, message), (csi.FAILED_PRECONDITION, "volume %s is not attached to this node" % volume))
        attach = dict(where, volume_capability=WRITER)
        context = node.ok("controller_publish_volume", **attach)["publish_context"]
        case.equal(node.ok("controller_publish_volume", **attach)["publish_context"], context, "the repeated answer")
        node.fails(csi.ALREADY_EXISTS, "in another way", "controller_publish_volume", readonly=True, **attach)
        node.fails(csi.NOT_FOUND, "node 'x' does not exist", "controller_publish_volume", **dict(attach, node_id="x"))
        node.fails(csi.NOT_FOUND, "does not exist", "controller_publish_volume", **dict(attach, volume_id="x"))
        case.equal(node.stage(volume)[0], csi.FAILED_PRECONDITION, "stage without the context")
        case.equal(node.stage(volume, publish_context=context)[0], csi.OK, "stage")
        case.equal(node.publish(volume, "t")[0], csi.FAILED_PRECONDITION, "publish without the context")
        case.equal(node.publish(volume, "t", publish_context=context)[0], csi.OK, "publish")
        case.equal(node.ok("controller_get_volume", volume_id=volume)["status"]["published_node_ids"], ["node-1"], "nodes")
        node.fails(csi.FAILED_PRECONDITION, "is attached to node node-1", "delete_volume", volume_id=volume)
        node.unpublish_and_unstage(volume, "t")
        for _ in range(2):
            node.ok("controller_unpublish_volume", **where)
        # A context of an earlier attachment is not valid any more.
        node.ok("controller_publish_volume", readonly=True, **attach)
        case.equal(node.stage(volume, publish_context=context)[0], csi.FAILED_PRECONDITION, "stage with the old context")
        node.ok("controller_unpublish_volume", volume_id=volume)
        for name in ("b", "c"):
            node.ok("controller_publish_volume", volume_id=node.create(name), node_id="node-1", volume_capability=WRITER)
        node.fails(csi.RESOURCE_EXHAUSTED, "has the 2 volumes", "controller_publish_volume", **attach)
        node.ok("controller_unpublish_volume", volume_id="x", node_id="node-1")
        node.ok("delete_volume", volume_id=volume)


def test_a_second_node_gets_a_volume_only_as_its_mode_permits():
    with csi_local.Node(["-attach"]) as node, \
            csi.local(node.kept, "node-2", node.wrap, ["-mode", "node", "-attach"], "second.sock"):
        def attach(volume, capability, node_id, **more):
            return node.call("controller_publish_volume", volume_id=volume, node_id=node_id, volume_capability=capability, **more)[:2]

        volume = node.create("v")
        for first, second, wanted in (
                (WRITER, WRITER, csi.FAILED_PRECONDITION), (READER, READER, csi.OK),
                (mode("MULTI_NODE_MULTI_WRITER"), mode("MULTI_NODE_MULTI_WRITER"), csi.OK), (READER, WRITER, csi.FAILED_PRECONDITION),
                (mode("MULTI_NODE_SINGLE_WRITER"), mode("MULTI_NODE_SINGLE_WRITER"), csi.FAILED_PRECONDITION)):
            case.equal(attach(volume, first, "node-1")[0], csi.OK, "the first node")
            status, message = attach(volume, second, "node-2")
            case.equal(status, wanted, message)
            if wanted != csi.OK:
                case.contains(message, "attached to node node-1", "message")
            node.ok("controller_unpublish_volume", volume_id=volume)
        case.equal(attach(volume, mode("MULTI_NODE_SINGLE_WRITER"), "node-1")[0], csi.OK, "a writer")
        case.equal(attach(volume, mode("MULTI_NODE_SINGLE_WRITER"), "node-2", readonly=True)[0], csi.OK, "and a reader")
        case.equal(node.ok("list_volumes")["entries"][0]["status"]["published_node_ids"], ["node-1", "node-2"], "nodes")
        case.equal(node.call("controller_publish_volume", volume_id=volume, node_id="node-1",
                             volume_capability=mode("MULTI_NODE_SINGLE_WRITER"))[0], csi.OK, "repeated")


def test_topology_and_capacity_limit_what_is_made():
    with csi_local.Node(["-topology", "zone=a,rack=7", "-capacity", "10000"]) as node:
        here, there = {"segments": pairs(zone="a")}, {"segments": pairs(zone="b")}
        info = node.ok("node_get_info")
        case.equal({s["key"]: s["value"] for s in info["accessible_topology"]["segments"]}, {"zone": "a", "rack": "7"}, "segments")
        made = node.ok("create_volume", name="v", volume_capabilities=[WRITER], capacity_range={"required_bytes": 6000},
                       accessibility_requirements={"requisite": [there, here], "preferred": [there]})["volume"]
        case.equal([t["segments"] for t in made["accessible_topology"]], [pairs(zone="a")], "topology of the volume")
        node.fails(csi.RESOURCE_EXHAUSTED, "no node has", "create_volume", name="w", volume_capabilities=[WRITER],
                   accessibility_requirements={"requisite": [there]})
        case.equal(node.ok("get_capacity")["available_capacity"], 4000, "capacity left")
        case.equal(node.ok("get_capacity", accessible_topology=there)["available_capacity"], 0, "capacity elsewhere")
        node.fails(csi.RESOURCE_EXHAUSTED, "no capacity for 5000 bytes more", "create_volume", name="w", volume_capabilities=[WRITER],
                   capacity_range={"required_bytes": 5000})
        node.fails(csi.RESOURCE_EXHAUSTED, "no capacity", "controller_expand_volume", volume_id=made["volume_id"],
                   capacity_range={"required_bytes": 10001})
        case.equal(node.ok("controller_expand_volume", volume_id=made["volume_id"],
                           capacity_range={"required_bytes": 10000})["capacity_bytes"], 10000, "expanded")
        node.stage_and_publish(made["volume_id"], "t")
        node.unpublish_and_unstage(made["volume_id"], "t")
        node.flags[1] = "zone=c"
        node.restart_plugin()
        status, message, _ = node.stage(made["volume_id"])
        case.equal(status, csi.FAILED_PRECONDITION, message)
        case.contains(message, "not accessible from the topology of this node", "message")


def test_mutable_parameters_change_a_volume():
    with csi_local.Node() as node:
        volume = node.create("v", mutable_parameters=pairs(label="gold"))

        def condition():
            found = node.ok("controller_get_volume", volume_id=volume)["status"]["volume_condition"]
            return found["abnormal"], found["message"]

        case.equal(condition(), (False, "the volume is normal"))
        node.ok("controller_modify_volume", volume_id=volume, mutable_parameters=pairs(abnormal="the disk smells"))
        node.restart_plugin()
        case.equal(condition(), (True, "the disk smells"))
        case.equal(node.ok("list_volumes")["entries"][0]["status"]["volume_condition"]["abnormal"], True, "in the list")
        node.ok("controller_modify_volume", volume_id=volume, mutable_parameters=pairs(abnormal="", label="x"))
        case.equal(condition()[0], False)
        node.fails(csi.INVALID_ARGUMENT, "unknown mutable parameter 'colour'", "controller_modify_volume", volume_id=volume,
                   mutable_parameters=pairs(label="y", colour="red"))
        node.fails(csi.NOT_FOUND, "does not exist", "controller_modify_volume", volume_id="x")


def test_the_volume_context_must_come_back_unchanged():
    with csi_local.Node() as node:
        context = [{"key": "k%d" % i, "value": "välue %d\n" % i} for i in range(60)]
        made = node.ok("create_volume", name="v", volume_capabilities=[WRITER],
                       parameters=[dict(e, key="context." + e["key"]) for e in context])["volume"]
        case.equal(made["volume_context"], context, "the context")
        status, message, _ = node.stage(made["volume_id"])
        case.equal(status, csi.INVALID_ARGUMENT, message)
        wrong = context[:-1] + [{"key": "k59", "value": "x"}]
        status, message, _ = node.stage(made["volume_id"], volume_context=wrong)
        case.contains(message, "the entry 'k59' of the volume context", "message")
        found = node.ok("validate_volume_capabilities", volume_id=made["volume_id"], volume_capabilities=[WRITER], volume_context=wrong)
        case.equal(found["confirmed"], None, "confirmation")
        case.equal(node.stage(made["volume_id"], volume_context=context[::-1])[0], csi.OK, "stage")
        case.equal(node.unstage(made["volume_id"])[0], csi.OK, "unstage")
        node.fails(csi.ALREADY_EXISTS, "other parameters", "create_volume", name="v", volume_capabilities=[WRITER])


try:
    case.run(globals())
finally:
    csi_local.PLACES.remove()

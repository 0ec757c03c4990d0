# SPDX-License-Identifier: Apache-2.0
"""Calls to drover-csi-local at the same time, its access modes on a node, its statistics, and its flags."""
import hashlib
import json
import os
import subprocess

from lib import binary, case, csi, csi_local, helper
from lib.csi_local import WRITER, mode, pairs

BYTES, INODES = 1, 2  # VolumeUsage.Unit


def send_stage(node, volume):
    return csi.send_call(node.helper, node.channel, "node_stage_volume", {
        "volume_id": volume, "staging_target_path": node.staging(volume), "volume_capability": WRITER})


def test_a_second_call_for_a_volume_is_aborted_and_other_volumes_go_on():
    # The second call for the first volume is sent at once after the first one, so that a slow machine does not end the
    # first one before the second one arrives. Which of the two arrives first is up to gRPC.
    with csi_local.Node(["-delay", "3000"]) as node:
        volumes = [node.create("v%d" % i) for i in range(20)]
        same = {send_stage(node, volumes[0]) for _ in range(2)}
        calls = same | {send_stage(node, v) for v in volumes[1:]}
        answers = [node.helper.ipc.recv(60) for _ in range(21)]
        case.equal(answers[0].serial in same, True, "the first answer is the refusal, so the others were in progress")
        case.equal((answers[0]["grpc_status"], answers[0]["grpc_message"]),
                   (csi.ABORTED, "another call for %s is in progress" % volumes[0]))
        case.equal({a.serial: a["grpc_status"] for a in answers[1:]}, {serial: csi.OK for serial in calls - {answers[0].serial}}, "the others")
        node.flags = []
        node.restart_plugin()
        for v in volumes:
            case.equal(node.unstage(v)[0], csi.OK, "unstage")


def test_access_modes_hold_on_one_node():
    with csi_local.Node() as node:
        single, reader = {"volume_capability": mode("SINGLE_NODE_SINGLE_WRITER")}, {"volume_capability": mode("SINGLE_NODE_READER_ONLY")}
        volume = node.create("v")
        case.equal(node.stage(volume, **single)[0], csi.OK, "stage")
        for _ in range(2):
            case.equal(node.publish(volume, "t", **single)[0], csi.OK, "publish")
        for capability in (single, {}):
            status, message, _ = node.publish(volume, "u", **capability)
            case.equal(status, csi.FAILED_PRECONDITION, message)
            case.contains(message, "has a single writer, on %s/t" % node.pub, "message")
        case.equal(node.stage(volume, **reader)[0], csi.ALREADY_EXISTS, "stage in another mode")
        node.unpublish_and_unstage(volume, "t")
        case.equal(node.stage(volume, **reader)[0], csi.OK, "stage for a reader")
        case.equal(node.publish(volume, "r", **reader)[0], csi.OK, "publish for a reader")
        case.contains(node.mounts()[node.pub + "/r"][0], "ro", "options")
        node.unpublish_and_unstage(volume, "r")


def test_statistics_are_of_a_mounted_volume():
    with csi_local.Node() as node:
        volume = node.create("v")
        path = node.stage_and_publish(volume, "t")
        found = node.ok("node_get_volume_stats", volume_id=volume, volume_path=path)
        fs = os.statvfs(path)
        units = {u["unit"]: u for u in found["usage"]}
        case.equal((units[BYTES]["total"], units[INODES]["total"]), (fs.f_blocks * fs.f_frsize, fs.f_files), "totals")
        for u in units.values():
            if not 0 < u["available"] <= u["total"] or not 0 < u["used"] < u["total"]:
                raise AssertionError("usage: %r" % u)
        case.equal(found["volume_condition"]["abnormal"], False, "condition")
        node.ok("node_get_volume_stats", volume_id=volume, volume_path=node.staging(volume))
        for text, where in (("is not mounted on", "/x"), ("is not mounted on", "some/path")):
            node.fails(csi.NOT_FOUND, text, "node_get_volume_stats", volume_id=volume, volume_path=where)
        helper.umount(path)
        node.fails(csi.NOT_FOUND, "is not mounted on", "node_get_volume_stats", volume_id=volume, volume_path=path)
        node.fails(csi.INVALID_ARGUMENT, "volume path is missing", "node_get_volume_stats", volume_id=volume)
        node.fails(csi.INVALID_ARGUMENT, "volume id is missing", "node_get_volume_stats", volume_path=path)
        node.unpublish_and_unstage(volume, "t")


def test_node_expansion_is_required_on_request():
    with csi_local.Node(["-node-expand"]) as node:
        volume = node.create("v")
        path = node.stage_and_publish(volume, "t")
        wanted = {"required_bytes": 1000}
        answer = node.ok("controller_expand_volume", volume_id=volume, capacity_range=wanted)
        case.equal((answer["capacity_bytes"], answer["node_expansion_required"]), (1000, True))
        case.equal(node.ok("node_expand_volume", volume_id=volume, volume_path=path, capacity_range=wanted)["capacity_bytes"], 1000)
        node.unpublish_and_unstage(volume, "t")


def test_required_secrets_must_arrive():
    digest = hashlib.sha1("pä ss".encode()).hexdigest()
    with csi_local.Node(["-require-secret", "token=" + digest, "-log-calls", "/proc/self/fd/2"]) as node:
        good, wrong = {"secrets": [{"key": "token", "value": "pä ss"}]}, {"secrets": pairs(token="hidden-guess")}
        node.fails(16, "the secret 'token' is missing", "create_volume", name="v", volume_capabilities=[WRITER])
        node.fails(16, "wrong value", "create_volume", name="v", volume_capabilities=[WRITER], **wrong)
        volume = node.create("v", **good)
        case.equal(node.stage(volume, **wrong)[0], 16, "stage with a wrong secret")
        case.equal(node.stage(volume, **good)[0], csi.OK, "stage")
        case.equal(node.publish(volume, "t")[0], 16, "publish without it")
        case.equal(node.publish(volume, "t", **good)[0], csi.OK, "publish")
        node.unpublish_and_unstage(volume, "t")  # these calls have no secrets
        node.ok("delete_volume", volume_id=volume, **good)
        for value in ("pä ss", "hidden-guess"):
            case.equal(value in node.plugin.log(), False, "a secret in a log")


def test_calls_are_logged_without_values_of_secrets_and_contexts():
    with csi_local.Node(["-attach"]) as node:
        log = node.kept + "/calls"
        node.flags += ["-log-calls", log]
        node.restart_plugin()
        volume = node.create("v", parameters=[{"key": "context.k", "value": "in context"}], secrets=pairs(b="hidden", a="hidden"),
                             capacity_range={"required_bytes": 77})
        node.ok("controller_publish_volume", volume_id=volume, node_id="node-1", readonly=True, volume_context=pairs(k="in context"),
                volume_capability=mode("MULTI_NODE_READER_ONLY", mount_flags=["noatime"]), secrets=pairs(a="hidden"))
        node.call("node_publish_volume", volume_id=volume, target_path="/x", publish_context=pairs(z="hidden"))
        with open(log, encoding="utf-8") as f:
            text = f.read()
        case.equal("hidden" in text, False, "values in the log")
        lines = [json.loads(line) for line in text.splitlines()]
        for line in lines:
            case.equal(isinstance(line.pop("ms"), int), True, "how long it took")
        found = {line.pop("method"): line for line in lines}
        case.equal(found["CreateVolume"], {"status": 0, "request": {
            "name": "v", "parameters": {"context.k": "in context"}, "secrets": ["a", "b"], "capacity_range": {"required_bytes": 77},
            "volume_capabilities": [{"mount": {}, "access_mode": {"mode": "SINGLE_NODE_WRITER"}}]}})
        case.equal(found["ControllerPublishVolume"], {"status": 0, "request": {
            "volume_id": volume, "node_id": "node-1", "readonly": True, "secrets": ["a"], "volume_context": ["k"],
            "volume_capability": {"mount": {"mount_flags": ["noatime"]}, "access_mode": {"mode": "MULTI_NODE_READER_ONLY"}}}})
        case.equal(found["NodePublishVolume"], {"status": csi.INVALID_ARGUMENT, "request": {
            "volume_id": volume, "target_path": "/x", "publish_context": ["z"]}})


def test_a_controller_and_nodes_share_a_directory():
    with csi_local.Node(["-mode", "controller", "-driver-name", "split.example"]) as node, \
            csi.local(node.kept, "node-2", node.wrap, ["-mode", "node"], "second.sock") as second, \
            csi.local(node.kept, "node-3", node.wrap, ["-mode", "node"], "third.sock") as third:
        controller = node.channel
        nodes = {controller + 10: second, controller + 20: third}
        for channel, plugin in nodes.items():
            csi.open_channel(node.helper, plugin, channel)
        case.equal(node.ok("get_plugin_info")["name"], "split.example", "name")
        whole = node.ok("get_plugin_capabilities")["capabilities"]
        case.equal([c["service"]["type"] for c in whole if c["service"]], [1, 3], "the controller's services")
        volume, shared = node.create("v"), node.create("w")
        node.fails(csi.UNIMPLEMENTED, "does not implement", "node_get_info")
        for channel in nodes:
            node.channel = channel
            node.fails(csi.UNIMPLEMENTED, "does not implement", "create_volume")
            case.equal(node.ok("get_plugin_capabilities")["capabilities"], whole, "the capabilities of all processes of the plugin")
        path = node.stage_and_publish(volume, "t")  # on node-3
        node.channel = controller
        case.equal(node.ok("controller_get_volume", volume_id=volume)["status"]["published_node_ids"], ["node-3"], "nodes")
        node.fails(csi.FAILED_PRECONDITION, "of node node-3", "delete_volume", volume_id=volume)
        node.channel = controller + 10
        status, message, _ = node.stage(volume)
        case.equal((status, message), (csi.FAILED_PRECONDITION, "volume %s is in use on node node-3" % volume))
        many = {"volume_capability": mode("MULTI_NODE_SINGLE_WRITER")}
        for channel, wanted in ((controller + 10, csi.OK), (controller + 20, csi.FAILED_PRECONDITION)):
            node.channel = channel
            case.equal(node.call("node_stage_volume", volume_id=shared, staging_target_path=node.pub, **many)[0], csi.INTERNAL,
                       "a mount of something else")
            place = "%s/stage-%d" % (node.pub, channel)
            os.mkdir(place)
            node.ok("node_stage_volume", volume_id=shared, staging_target_path=place, **many)
            case.equal(node.call("node_publish_volume", volume_id=shared, staging_target_path=place,
                                 target_path="%s/w-%d" % (node.pub, channel), **many)[0], wanted, "publish a second writer")
        for channel in nodes:
            node.channel = channel
            node.ok("node_unpublish_volume", volume_id=shared, target_path="%s/w-%d" % (node.pub, channel))
            node.ok("node_unstage_volume", volume_id=shared, staging_target_path="%s/stage-%d" % (node.pub, channel))
        node.unpublish_and_unstage(volume, "t")
        case.equal(os.path.exists(path), False, "the target")
        node.channel = controller
        for v in (volume, shared):
            node.ok("delete_volume", volume_id=v)


def test_mounts_that_an_older_plugin_recorded_are_known():
    with csi_local.Node() as node:
        volume = node.create("v")
        path = node.stage_and_publish(volume, "t")
        node.plugin.kill()
        kept = node.kept + "/volumes/"
        with open(kept + "nodes/node-1/" + volume, "rb") as f:
            mounts = f.read()[2:]  # without the version
        records = bytearray()
        while mounts:  # field 2 of the new record is field 5 of the old one
            size = mounts[1] if mounts[1] < 128 else mounts[1] - 128 + 128 * mounts[2]
            head = 2 if mounts[1] < 128 else 3
            records += b"\x2a" + mounts[1:head + size]
            mounts = mounts[head + size:]
        with open(kept + "meta/" + volume, "ab") as f:
            f.write(records)
        os.unlink(kept + "nodes/node-1/" + volume)
        node.start_plugin()
        node.fails(csi.FAILED_PRECONDITION, "in use", "delete_volume", volume_id=volume)
        node.stage_and_publish(volume, "t")
        case.equal({len(v) for v in node.mounts().values()}, {1}, "mounts at one place")
        node.unpublish_and_unstage(volume, "t")
        case.equal(os.path.exists(path), False, "the target")
        node.ok("delete_volume", volume_id=volume)


def test_wrong_flags_are_refused():
    base = case.directory()
    for text, flags in (("it must be monolith, controller or node", ["-mode", "x"]), ("-max-volumes x", ["-max-volumes", "x"]),
                        ("'zone' is not a key", ["-topology", "zone"]), ("the SHA-1 of the value", ["-require-secret", "a=b"]),
                        ("the node id 'a/b'", ["-node-id", "a/b"]), ("the driver name ''", ["-driver-name", ""]),
                        ("-log-calls: open /none/x", ["-log-calls", "/none/x"]), ("-delay -1", ["-delay", "-1"])):
        made = subprocess.run([binary("csi-local"), "-root", base + "/v", "-endpoint", base + "/s"] + flags, stderr=subprocess.PIPE,
                              check=False, encoding="utf-8")
        case.contains(made.stderr, text, " ".join(flags))
        case.equal(made.returncode in (1, 2), True, "exit status")


try:
    case.run(globals())
finally:
    csi_local.PLACES.remove()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# timeout: 600
# takes: 60
"""A plugin that needs its controller: a volume is attached before its first mount on the node and detached after its last unmount, whatever
ends in between. The controller and the node half of the plugin are two jobs."""
import json
import os
import re

from lib import api, binary, build_dir, case, volumes

# As in the CSI specification.
SINGLE_NODE_WRITER, MULTI_NODE_MULTI_WRITER = 1, 5
SECRETS, CONTEXT = {"key": "s3cr3t"}, {"pool": "fast"}
LOCAL = {"ID": "split", "Type": "node", "MountDir": "/csi"}


def start_node_half():
    node.register(api.job("plugin-node", binary("csi-local"), ["-root", store, "-node-id", "provider-node"], CSIPluginConfig=LOCAL))


def start_controller(*rules, kind="controller"):
    script = 'exec %s "${CSI_ENDPOINT#unix://}" "$@"'.replace("${", "$${") % os.path.join(build_dir(), "tests", "csi_bad")
    node.register(api.job("plugin-controller", "/bin/sh", ["-c", script, "csi_bad", "attach=" + log] + list(rules),
                          Env={"RULES": " ".join(rules)}, CSIPluginConfig={"ID": "split", "Type": kind, "MountDir": "/csi"}))
    case.until(controller_is_new, 30, "the controller to be healthy")


def controller_is_new():
    wanted = [a["ID"] for a in node.allocs("plugin-controller") if a["DesiredStatus"] == "run" and
              a["JobVersion"] == node.ask("/v1/job/plugin-controller")["Version"]]
    infos = halves()["Controllers"].values()
    return len(wanted) == 1 and halves()["NodesHealthy"] == 1 and [(i["Healthy"], i["AllocID"]) for i in infos] == [(True, wanted[0])]


def halves(name="split"):
    """Returns the plugin; after a restart of the agent it takes a moment until its halves are known."""
    answer = node.request("GET", "/v1/plugin/csi/" + name)
    return answer.json if answer.status == 200 else {"Controllers": {}, "NodesHealthy": 0, "ControllersHealthy": 0}


def stop_controller():
    node.purge("plugin-controller")
    case.until(lambda: (halves()["Controllers"], halves()["NodesHealthy"]) == ({}, 1), 30, "only the node half to be left")


def make_volumes():
    """Creates volumes in the store, and registers them for the plugin with two halves. Returns their external ids."""
    node.register(api.job("plugin-maker", binary("csi-local"), ["-root", store], CSIPluginConfig=dict(LOCAL, ID="maker", Type="monolith")))
    case.until(lambda: halves("maker")["ControllersHealthy"] == 1, 30, "the plugin that makes the volumes")
    made = {}
    for name, mode in (("one", "single-node-writer"), ("many", "multi-node-multi-writer")):
        volume = {"ID": name, "Name": name, "PluginID": "maker", "RequestedCapacityMin": 1 << 20,
                  "RequestedCapabilities": [{"AccessMode": mode, "AttachmentMode": "file-system"}]}
        made[name] = dict(node.do("PUT", "/v1/volume/csi/%s/create" % name, {"Volumes": [volume]})["Volumes"][0], **volume)
        node.do("DELETE", "/v1/volume/csi/" + name)
    node.purge("plugin-maker")
    start_node_half()
    case.until(lambda: halves()["NodesHealthy"] == 1, 30, "the node half")
    start_controller()
    for name, volume in made.items():
        volume.update(PluginID="split", Secrets=SECRETS, Context=CONTEXT)
        node.do("PUT", "/v1/volume/csi/" + name, {"Volumes": [{key: volume[key] for key in (
            "ID", "Name", "PluginID", "ExternalID", "Secrets", "Context", "RequestedCapabilities")}]})
    return {name: volume["ExternalID"] for name, volume in made.items()}


def job(name, volume, read_only=False, script="sleep 1000"):
    made = volumes.job(name, volume, script)
    request = made["Job"]["TaskGroups"][0]["Volumes"]["data"]
    request.update(AccessMode="single-node-writer" if volume == "one" else "multi-node-multi-writer", ReadOnly=read_only)
    return made


def calls():
    with open(log, encoding="utf-8") as f:
        return f.read().splitlines()


def forget_calls():
    with open(log, "w", encoding="utf-8"):
        pass


def attach(volume, how="writable", mode=MULTI_NODE_MULTI_WRITER, flags=""):
    return "attach %s to provider-node %s mode=%d secret.key=s3cr3t context.pool=fast%s" % (made[volume], how, mode, flags)


def detach(volume):
    return "detach %s from provider-node secret.key=s3cr3t" % made[volume]


def claims(volume):
    return node.ask("/v1/volume/csi/%s/claims" % volume)


def free(volume, seconds=60):
    case.until(lambda: claims(volume) == [], seconds, "the claims of %s to be released" % volume)
    case.equal(node.published(volume), [], "mounts of " + volume)


def test_a_volume_is_attached_before_and_detached_after():
    made_job = job("user", "one")
    made_job["Job"]["TaskGroups"][0]["Volumes"]["data"]["MountOptions"] = {"MountFlags": ["noatime"]}
    node.register(made_job)
    alloc = node.wait_running("user")[0]["ID"]
    case.equal(calls(), [attach("one", mode=SINGLE_NODE_WRITER, flags=" flag=noatime")])
    claim, = claims("one")
    case.equal({key: claim[key] for key in ("AllocationID", "NodeID", "ExternalNodeID", "Mode", "AccessMode", "State", "Attached", "Tries")}, {
        "AllocationID": alloc, "NodeID": node.ask("/v1/nodes")[0]["ID"], "ExternalNodeID": "provider-node", "Mode": "write",
        "AccessMode": "single-node-writer", "State": "taken", "Attached": "attached", "Tries": 0})
    out = node.drover("volume", "claims").out
    for part in (alloc[:8], "attached", "taken", "provider-node"):
        case.contains(out, part)
    # The context of the attachment, which the node half got, is shown by nothing.
    shown = json.dumps(node.ask("/v1/volume/csi/one")) + json.dumps(claims("one")) + out
    case.equal([word for word in ("provider-node@", made["one"] + "@", "s3cr3t") if word in shown], [])
    node.purge("user")
    free("one")
    case.equal(calls(), [attach("one", mode=SINGLE_NODE_WRITER, flags=" flag=noatime"), detach("one")])
    case.equal(node.drover("volume", "claims", "one").out, "No claims\n")


def test_claims_of_a_node_share_its_attachment():
    node.register(job("first", "many"))
    node.wait_running("first")
    node.register(job("second", "many", read_only=True))
    node.wait_running("second")
    case.equal(calls(), [attach("many")])
    case.equal([c["Attached"] for c in claims("many")], ["attached", "attached"])
    node.purge("first")
    case.until(lambda: len(claims("many")) == 1, 30, "the first claim to be released")
    case.equal(calls(), [attach("many")])
    node.purge("second")
    free("many")
    case.equal(calls(), [attach("many"), detach("many")])


def test_a_writer_waits_until_a_read_only_attachment_is_gone():
    node.register(job("reader", "many", read_only=True))
    holder = node.wait_running("reader")[0]["ID"]
    node.register(job("writer", "many"))
    said = "volume many cannot be written while it is attached read-only for alloc " + holder
    case.until(lambda: said in str([e["FailedTGAllocs"] for e in node.ask("/v1/job/writer/evaluations")]), 30, "the reason")
    node.purge("reader")
    node.wait_running("writer")
    node.purge("writer")
    free("many")
    case.equal(calls(), [attach("many", "read-only"), detach("many"), attach("many"), detach("many")])


def test_a_failing_attachment_fails_the_alloc_and_is_undone():
    start_controller("ControllerPublishVolume=status:13")
    node.register(job("user", "one"))
    case.until(lambda: [a for a in node.allocs("user") if a["ClientStatus"] == "failed"], 60, "the alloc to fail")
    events = node.events(node.allocs("user")[0]["ID"])
    case.contains(events, "claiming volumes: attach volume one to node provider-node: ControllerPublishVolume of plugin split")
    node.purge("user")
    free("one")
    case.equal(set(calls()), {attach("one", mode=SINGLE_NODE_WRITER), detach("one")})
    case.equal(calls()[-1], detach("one"))
    start_controller()


def test_a_failing_detachment_is_retried_and_told():
    node.register(job("user", "one"))
    node.wait_running("user")
    start_controller("ControllerUnpublishVolume=status:13")
    me = node.ask("/v1/nodes")[0]["ID"]
    node.do("DELETE", "/v1/job/user")
    case.until(lambda: claims("one")[0]["Tries"] >= 2, 60, "two tries")
    claim, = claims("one")
    case.equal((claim["State"], claim["Attached"]), ("node-detached", "detaching"))
    case.contains(claim["WaitsFor"], "volume one is still attached to node provider-node: ControllerUnpublishVolume of plugin split")
    case.contains(claim["LastError"], "as commanded")
    case.equal(claim["NextTry"] > claim["Since"] > 0, True, "the time of the next try")
    case.contains(node.drover("volume", "claims", "one").out, "is still attached to node provider-node")
    case.contains(node.drover("volume", "detach", "one", me, code=1).err, "is still attached to node provider-node")
    case.contains(node.request("DELETE", "/v1/volume/csi/one").text, "volume in use")
    node.register(job("next", "one"))
    said = "volume max claims reached: volume one (single-node-writer) is written by alloc %s on node %s since 20" % (claim["AllocationID"], me)
    case.until(lambda: said in str([e["FailedTGAllocs"] for e in node.ask("/v1/job/next/evaluations")]), 30, "the reason")
    node.do("DELETE", "/v1/job/user?purge=true")
    start_controller()
    node.wait_running("next")
    node.purge("next")
    free("one")


def test_a_release_waits_for_its_controller_without_alloc_and_job():
    node.register(job("user", "one"))
    node.wait_running("user")
    stop_controller()
    node.purge("user")
    case.until(lambda: [c["State"] for c in claims("one")] == ["node-detached"], 30, "the unmount")
    case.contains(claims("one")[0]["WaitsFor"], "the controller of plugin split does not run on this node")
    case.equal(calls(), [attach("one", mode=SINGLE_NODE_WRITER)])
    node.kill("supervisor")
    node.wait_ready()
    case.equal([(c["State"], c["Attached"]) for c in claims("one")], [("node-detached", "attached")])
    start_controller()
    free("one")
    case.equal(calls(), [attach("one", mode=SINGLE_NODE_WRITER), detach("one")])


def test_a_volume_is_never_mounted_without_its_controller():
    stop_controller()
    node.register(job("user", "one"))
    case.until(lambda: "unschedulable" in str([e["FailedTGAllocs"] for e in node.ask("/v1/job/user/evaluations")]), 30, "the reason")
    case.equal(node.allocs("user"), [])
    start_controller()
    node.wait_running("user")
    node.purge("user")
    free("one")
    case.equal(calls(), [attach("one", mode=SINGLE_NODE_WRITER), detach("one")])


def test_a_controller_that_has_not_answered_since_the_agents_start_is_waited_for():
    start_controller("GetPluginInfo=slow:3000")
    node.kill("supervisor")
    node.wait_ready()
    case.until(lambda: halves()["NodesHealthy"] == 1, 30, "the node half")
    node.register(job("user", "one"))
    node.wait_running("user", seconds=60)
    case.equal(calls(), [attach("one", mode=SINGLE_NODE_WRITER)])
    node.purge("user")
    free("one")


def test_the_supervisor_dies_while_the_controller_is_called():
    start_controller("ControllerPublishVolume=slow:2000", "ControllerUnpublishVolume=slow:2000")
    node.register(job("user", "one"))
    case.until(calls, 30, "the attachment to begin")
    node.kill("supervisor")
    node.wait_ready()
    node.wait_running("user", seconds=60)
    case.equal(set(calls()), {attach("one", mode=SINGLE_NODE_WRITER)})
    node.kill("supervisor")
    node.wait_ready()
    case.equal([c["Attached"] for c in claims("one")], ["attached"])
    count = len(calls())
    node.purge("user")
    case.until(lambda: len(calls()) > count, 30, "the detachment to begin")
    node.kill("supervisor")
    node.wait_ready()
    free("one")
    case.equal(set(calls()[count:]), {detach("one")})
    case.equal(set(calls()[:count]), {attach("one", mode=SINGLE_NODE_WRITER)})
    start_controller()


def test_deregistering_by_force_says_what_is_forgotten():
    node.register(job("user", "many"))
    node.wait_running("user")
    case.contains(node.drover("volume", "deregister", "-force", "many", code=1).err, "volume in use")
    stop_controller()
    node.purge("user")
    case.until(lambda: [c["State"] for c in claims("many")] == ["node-detached"], 30, "the unmount")
    case.contains(node.drover("volume", "deregister", "many", code=1).err, "volume in use")
    out = node.drover("volume", "deregister", "-force", "many").out
    case.contains(out, "it may still be attached to node provider-node: the controller of plugin split is not asked to detach it")
    start_controller()


def test_the_context_of_the_attachment_reaches_the_node_calls():
    """This plugin stages and publishes only with the context that its controller gave for this node."""
    said = base + "/said"
    node.register(api.job("plugin-whole", binary("csi-local"), ["-root", base + "/whole", "-attach", "-log-calls", said], CSIPluginConfig=dict(
        LOCAL, ID="whole", Type="monolith")))
    case.until(lambda: halves("whole")["ControllersHealthy"] == 1, 30, "the plugin")
    node.do("PUT", "/v1/volume/csi/kept/create", {"Volumes": [{
        "ID": "kept", "Name": "kept", "PluginID": "whole", "RequestedCapacityMin": 1 << 20, "RequestedCapabilities": [
            {"AccessMode": "multi-node-multi-writer", "AttachmentMode": "file-system"}]}]})
    for name in ("first", "second"):
        node.register(job(name, "kept"))
        node.wait_running(name)
    node.kill("supervisor")
    node.wait_ready()
    for name in ("first", "second"):
        case.equal([a["ClientStatus"] for a in node.allocs(name)], ["running"], name)
        node.purge(name)
    free("kept")
    with open(said, encoding="utf-8") as f:
        order = re.findall("ControllerPublishVolume|ControllerUnpublishVolume|Node(?:Uns|S)tageVolume|Node(?:Unp|P)ublishVolume", f.read())
    case.equal(order, ["ControllerPublishVolume", "NodeStageVolume", "NodePublishVolume", "NodePublishVolume",
                       "NodeUnpublishVolume", "NodeUnpublishVolume", "NodeUnstageVolume", "ControllerUnpublishVolume"])
    node.do("DELETE", "/v1/volume/csi/kept/delete")
    node.purge("plugin-whole")


def test_no_leaks_are_left():
    node.do("DELETE", "/v1/volume/csi/one")
    for name in ("plugin-controller", "plugin-node"):
        node.purge(name)
    case.until(lambda: node.ask("/v1/agent/leaks") == [], 20, "no leaks")


def each_test_with_an_empty_log(tests):
    for name, test in list(tests.items()):
        if name.startswith("test_"):
            def run(test=test):
                forget_calls()
                test()
            tests[name] = run


base = case.directory()
store, log = base + "/store", base + "/calls"
os.mkdir(store)
os.chmod(base, 0o777)
os.chmod(store, 0o777)
forget_calls()
os.chmod(log, 0o666)
with volumes.Node() as node:
    made = make_volumes()
    each_test_with_an_empty_log(globals())
    case.run(globals())

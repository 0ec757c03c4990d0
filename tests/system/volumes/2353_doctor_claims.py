# SPDX-License-Identifier: Apache-2.0
# takes: 40
"""`drover volume doctor`: claims, attachments at the plugin's controller, and namespaces."""
import os
import sqlite3

from lib import api, binary, case, volumes

PLUGIN = "plugin-whole"


def start_plugin(node_id="this-node"):
    node.register(api.job(PLUGIN, binary("csi-local"), ["-root", store, "-attach", "-node-id", node_id],
                          CSIPluginConfig={"ID": "whole", "Type": "monolith", "MountDir": "/csi"}))
    case.until(plugin_is_healthy, 30, "the plugin to be healthy")


def plugin_is_healthy():
    answer = node.request("GET", "/v1/plugin/csi/whole")
    return answer.status == 200 and (answer.json["NodesHealthy"], answer.json["ControllersHealthy"]) == (1, 1)


def stop_plugin():
    node.purge(PLUGIN)
    case.until(lambda: node.request("GET", "/v1/plugin/csi/whole").status == 404, 30, "the plugin to be gone")


def make(name, namespace="default"):
    """Creates a volume and returns it as a request registers it again."""
    volume = {"ID": name, "Name": name, "PluginID": "whole", "Namespace": namespace,
              "RequestedCapabilities": [{"AccessMode": "single-node-writer", "AttachmentMode": "file-system"}]}
    made = node.do("PUT", "/v1/volume/csi/%s/create?namespace=%s" % (name, namespace), {"Volumes": [volume]})["Volumes"][0]
    return dict(volume, ExternalID=made["ExternalID"], Context=made["Context"])


def page(volume):
    (found,) = node.ask("/v1/agent/volumes", id=volume)["Volumes"]
    return found


def problems(volume):
    return [(p["Kind"], p["Object"], p["Fixable"]) for p in page(volume)["Problems"]]


def run(name, volume):
    node.register(volumes.job(name, volume, "sleep 1000"))
    return node.wait_running(name)[0]["ID"]


def test_an_attachment_that_nobody_claims_is_detached():
    volume = make("forgotten")
    run("user", "forgotten")
    case.equal((page("forgotten")["Plugin"]["PublishedNodes"], problems("forgotten")), (["this-node"], []))
    # The controller does not run when the volume is released and forgotten.
    node.register(api.job("nodes", binary("csi-local"), ["-root", store, "-attach", "-node-id", "this-node", "-mode", "node"],
                          CSIPluginConfig={"ID": "whole", "Type": "node", "MountDir": "/csi"}))
    node.purge(PLUGIN)
    node.purge("user")
    case.until(lambda: [c["State"] for c in node.ask("/v1/volume/csi/forgotten/claims")] == ["node-detached"], 60, "the unmount")
    node.drover("volume", "deregister", "-force", "forgotten")
    node.purge("nodes")
    start_plugin("that-node")
    node.do("PUT", "/v1/volume/csi/forgotten", {"Volumes": [volume]})
    case.equal(problems("forgotten"), [("published-elsewhere", "this-node", False)])
    stop_plugin()
    start_plugin()
    case.equal(problems("forgotten"), [("published-without-claim", "this-node", True)])
    out = node.drover("volume", "doctor", "forgotten", code=2).out
    case.contains(out, "[fixable] plugin whole says that it is published on this node (this-node), but no allocation claims it; -fix detaches it")
    out = node.drover("volume", "doctor", "-fix", "forgotten").out
    case.contains(out, "done: volume forgotten: plugin whole says that it is published on this node")
    case.equal((page("forgotten")["Plugin"]["PublishedNodes"], problems("forgotten")), ([], []))
    run("user", "forgotten")
    case.equal(problems("forgotten"), [])
    node.purge("user")


def test_a_claim_that_is_left_is_named_and_released_later():
    """The agent is killed while the plugin is gone: the claim of the purged job waits for the plugin."""
    make("left")
    alloc = run("user", "left")
    stop_plugin()
    node.do("DELETE", "/v1/job/user?purge=true")
    node.kill("supervisor")
    node.wait_ready()
    case.until(lambda: ("claim-left", alloc, True) in problems("left"), 60, "the claim")
    case.equal(("plugin-missing", "whole", False) in problems("left"), True)
    out = node.drover("volume", "doctor", "-fix", "left", code=2).out
    case.contains(out, "not done: volume left: allocation " + alloc[:8])
    start_plugin()
    node.drover("volume", "doctor", "-fix", "left")
    case.equal((page("left")["Claims"], page("left")["Mounts"], problems("left")), ([], [], []))


def test_a_lost_record_is_made_again_at_the_start():
    make("bare")
    alloc = run("user", "bare")
    node.kill_launcher()
    db = sqlite3.connect(node.data + "/state/state.db")
    case.equal(db.execute("DELETE FROM mount WHERE key = ?", (alloc + "/data",)).rowcount, 1)
    db.commit()
    db.close()
    node.start()
    node.wait_ready()
    case.until(lambda: plugin_is_healthy() and problems("bare") == [], 60, "no disagreement")
    case.equal([(m["AllocationID"], m["Step"], m["TargetMounts"]) for m in page("bare")["Mounts"]], [(alloc, "published", 1)])
    case.equal([c["AllocationID"] for c in page("bare")["Claims"]], [alloc])
    node.purge("user")


def test_volumes_of_all_namespaces_are_shown():
    node.do("PUT", "/v1/namespace/other", {"Name": "other"})
    make("far", "other")
    out = node.drover("volume", "doctor").out
    for part in ("far", "other", "left", "default"):
        case.contains(out, part)
    case.contains(node.drover("volume", "doctor", "far").out, "other")
    case.equal("far" in node.drover("volume", "doctor", "-namespace", "default").out, False)


base = case.directory()
store = base + "/store"
os.mkdir(store)
os.chmod(base, 0o777)
os.chmod(store, 0o777)
with volumes.Node() as node:
    start_plugin()
    case.run(globals())

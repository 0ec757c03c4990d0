# SPDX-License-Identifier: Apache-2.0
"""Mutable parameters of a volume: given when it is created, changed later; and what its plugin's controller says about it."""
import concurrent.futures
import json

from lib import case, csi_walk, told, volumes

FILE = """
id        = "made"
name      = "made"
type      = "csi"
plugin_id = "local"
capability {
  access_mode     = "single-node-writer"
  attachment_mode = "file-system"
}
secrets { key = "hush" }
mutable_parameters { label = "first" }
"""


def status(name):
    """Returns the lines of the page without the padding."""
    return "\n".join(" ".join(line.split()) for line in node.drover("volume", "status", name).out.splitlines())


def last(method):
    with open(node.store + "/calls", encoding="utf-8") as f:
        return [c for c in map(json.loads, f) if c["method"] == method][-1]["request"]


def known():
    return node.ask("/v1/volume/csi/made").get("MutableParameters")


def test_a_volume_is_created_with_mutable_parameters():
    node.drover("volume", "create", "-", stdin=FILE.encode())
    case.equal(last("CreateVolume")["mutable_parameters"], {"label": "first"})
    case.equal(known(), {"label": "first"})
    node.drover("volume", "create", "-", stdin=FILE.encode())  # the same again
    r = node.drover("volume", "create", "-", stdin=FILE.replace('"first"', '"other"').encode(), code=1)
    case.contains(r.err, "another MutableParameters")


def test_parameters_are_changed_and_the_condition_is_shown():
    case.contains(status("made"), "At the Plugin's Controller\nPublished on = no node\nCondition = normal: the volume is normal")
    node.register(volumes.job("user", "made", "sleep 1000"))
    node.wait_running("user")
    case.contains(node.drover("volume", "modify", "made", "label=second", "abnormal=a=b, bad blocks").out, 'Volume "made" is modified')
    asked = last("ControllerModifyVolume")
    case.equal(asked["mutable_parameters"], {"label": "second", "abnormal": "a=b, bad blocks"})
    case.equal(asked["secrets"], ["key"], "keys of the secrets")
    case.equal(known(), {"label": "second", "abnormal": "a=b, bad blocks"})
    text, found = status("made"), node.ask("/v1/volume/csi/made?refresh=true")
    case.equal(text.count("Condition = abnormal: a=b, bad blocks"), 2, text)
    case.equal(len(found["AtController"]["PublishedExternalNodeIDs"]), 1, "nodes at the controller")
    case.equal((found["AtController"]["Condition"], found["ThisNode"]["Condition"]), ("abnormal", "abnormal"))
    case.contains(text, "Published on = " + found["AtController"]["PublishedExternalNodeIDs"][0])
    case.equal("AtController" in node.ask("/v1/volume/csi/made"), False, "without refresh")
    case.equal(json.loads(node.drover("volume", "modify", "-json", "made", "abnormal=").out)["Volumes"][0]["MutableParameters"],
               {"label": "second", "abnormal": ""})
    node.replace_supervisor()
    case.equal(known(), {"label": "second", "abnormal": ""}, "after a restart")
    case.until(lambda: node.plugin_is_healthy(), 30, "the plugin")
    case.contains(status("made"), "Condition = normal")


def test_what_cannot_be_modified_is_refused_with_a_sentence():
    r = node.drover("volume", "modify", "made", "speed=11", code=1)
    case.contains(r.err, 'modify volume "made": ControllerModifyVolume of plugin local: the plugin refused the request: it has no such '
                  "mutable parameter, or not this value of it: rpc error: code = InvalidArgument")
    case.contains(node.drover("volume", "modify", "made", "speed", code=1).err, 'expected KEY=VALUE, not "speed"')
    case.contains(node.drover("volume", "modify", "none", "a=b", code=1).err, "none")
    node.refused(400, "there is nothing to modify", "PUT", "/v1/volume/csi/made/modify", {"MutableParameters": {}})
    node.refused(400, "the value of a is no text", "PUT", "/v1/volume/csi/made/modify", {"MutableParameters": {"a": 1}})
    case.equal(known(), {"label": "second", "abnormal": ""})
    told.Plugin(node, "p")
    wish = told.volume("v", "p", RequestedCapacityMin=1)
    del wish["Volumes"][0]["ExternalID"]
    node.do("PUT", "/v1/volume/csi/v/create", wish)
    case.contains(node.drover("volume", "modify", "v", "a=b", code=1).err,
                  "ControllerModifyVolume of plugin p: its controller has no capability MODIFY_VOLUME")
    case.equal("AtController" in node.ask("/v1/volume/csi/v?refresh=true"), False, "a plugin without GET_VOLUME")
    wish["Volumes"][0].update(ID="w", MutableParameters={"a": "b"})
    node.refused(400, "CreateVolume of plugin p: its controller has no capability MODIFY_VOLUME", "PUT", "/v1/volume/csi/w/create", wish)
    case.equal(node.request("GET", "/v1/volume/csi/w").status, 404)


def test_one_change_at_a_time_and_the_next_after_any_end():
    plugin = csi_walk.Plugin(node, "slow", Attempts=0, Mode="fail")
    life = csi_walk.Life(node, plugin)
    case.equal(life.create(["x"])["x"][0], True)

    def modify():
        return life.modify(["x"])["x"]

    def begin(pool, rule):
        plugin.say(["ControllerModifyVolume=" + rule])
        first = pool.submit(modify)
        case.until(lambda: plugin.calls("ControllerModifyVolume", "x"), 20, "the call")
        return first

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        first = begin(pool, "hang")
        path = "/v1/volume/csi/x"
        said = 'volume "x" is being modified'
        node.refused(409, said, "PUT", path + "/modify", {"MutableParameters": {"a": "c"}})
        node.refused(409, said, "DELETE", path + "/delete")
        node.refused(409, said, "DELETE", path)
        node.refused(409, said, "PUT", path, life.volume("x", ExternalID="x"))
        node.refused(409, said, "PUT", path + "/create", life.volume("x"))
        case.equal(len(plugin.calls("ControllerModifyVolume", "x")), 1, "calls")
        node.kill("supervisor")
        case.equal(isinstance(first.exception(90), OSError), True, "whether the connection was lost")
        node.wait_ready()
        case.until(plugin.is_healthy, 30, "the plugin")
        plugin.say()
        case.equal(modify()[0], True, "after the supervisor was killed")
        # The plugin ends during the call, and nothing starts it again.
        failed, text = begin(pool, "die").result(90)
        case.equal((failed, "the plugin's task ended during the call and is not started again" in text), (False, True), text)
        case.equal("being" in modify()[1], False, "whether it is busy after the plugin has ended")
    # The plugin refuses.
    plugin.purge()
    plugin = csi_walk.Plugin(node, "slow")
    life = csi_walk.Life(node, plugin)
    plugin.say(["ControllerModifyVolume=once:3"])
    case.equal([modify()[0], modify()[0]], [False, True], "after the plugin has refused")
    case.equal(life.delete(["x"])["x"][0], True)
    plugin.purge()


with volumes.Node() as node:
    node.start_plugin(["-log-calls", "/store/calls"])
    case.run(globals())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Volumes with many or large secrets, parameters and contexts, in both directions."""
import os

from lib import api, build_dir, case, csi, volumes
from lib.fake_api import run_command

CAPABILITY = {"AccessMode": "single-node-writer", "AttachmentMode": "file-system"}
# Keys and values are opaque: every UTF-8 text without NUL, also an empty or a long one.
ODD = {"": "no key", "empty": "", "emoji \U0001f600": "\u0000".replace("\0", "") + "\n\t\r", "quoted \"'\\": "${x} {{ y }} %s", "Ünïcode": "\uffff\U0010ffff"}


def many(prefix, n):
    return {"%s-%04d" % (prefix, i): "%s value %d" % (prefix, i) for i in range(n)}


def volume(name, plugin="big", **maps):
    return {"Volumes": [dict({"ID": name, "Name": name, "PluginID": plugin, "RequestedCapabilities": [CAPABILITY]}, **maps)]}


def start_plugin(name, *rules):
    script = 'exec %s "$${CSI_ENDPOINT#unix://}" %s' % (os.path.join(build_dir(), "tests", "csi_bad"), " ".join(rules))
    node.register(api.job("plugin-" + name, "/bin/sh", ["-c", script], CSIPluginConfig={"ID": name, "Type": "monolith", "MountDir": "/csi"}))

    def healthy():
        found = node.request("GET", "/v1/plugin/csi/" + name)
        return found.status == 200 and found.json["NodesHealthy"] == 1
    case.until(healthy, 30, "plugin %s to be healthy" % name)


def calls(method):
    return csi.calls(store + "/calls", method)


def rejected(name, text, **maps):
    """Checks that a volume is refused before the plugin is called."""
    before = len(calls("CreateVolume"))
    node.refused(400, text, "PUT", "/v1/volume/csi/%s/create" % name, volume(name, **maps))
    node.refused(400, text, "PUT", "/v1/volumes", {"Volumes": [dict(volume(name, **maps)["Volumes"][0], ExternalID=name)]})
    case.equal(len(calls("CreateVolume")), before, "calls of CreateVolume")
    case.equal(node.request("GET", "/v1/volume/csi/" + name).status, 404, "the row")


def test_a_thousand_secrets_and_parameters_arrive_byte_for_byte():
    # 100 entries arrived as 64, and a request above 60 KiB failed.
    for n in (64, 65, 100, 1000):
        name = "v%d" % n
        secrets, parameters = dict(many("secret", n), **ODD), dict(many("parameter", n), **ODD)
        made = node.do("PUT", "/v1/volume/csi/%s/create" % name, volume(name, Secrets=secrets, Parameters=parameters))["Volumes"][0]
        sent = calls("CreateVolume")[-1]
        case.equal(csi.entries(sent["secrets"]), secrets, "the secrets that arrived")
        case.equal(csi.entries(sent["parameters"]), parameters, "the parameters that arrived")
        case.equal(made["Context"], parameters, "the context, which this plugin makes from the parameters")
        case.equal(node.ask("/v1/volume/csi/" + name)["Context"], parameters, "the stored context")


def test_the_nodes_calls_have_all_of_them_too():
    node.register(volumes.job("user", "v1000", "true"))
    sent = case.until(lambda: calls("NodePublishVolume"), 20, "NodePublishVolume")[0]
    # Its mount is not proven, because the plugin makes none.
    for call in (calls("NodeStageVolume")[0], sent):
        case.equal(csi.entries(call["secrets"]), dict(many("secret", 1000), **ODD), "the secrets of a node's call")
        case.equal(csi.entries(call["volume_context"]), dict(many("parameter", 1000), **ODD), "the context of a node's call")
    node.purge("user")


def test_a_volume_file_has_a_thousand_entries():
    def block(name, entries):
        return "%s {\n%s\n}\n" % (name, "\n".join('  "%s" = "%s"' % e for e in entries.items()))
    secrets, parameters = many("s", 1000), many("p", 1000)
    with open(store + "/volume.hcl", "w", encoding="utf-8") as f:
        f.write('id = "filed"\nname = "filed"\ntype = "csi"\nplugin_id = "big"\n'
                'capability {\n  access_mode = "single-node-writer"\n  attachment_mode = "file-system"\n}\n' +
                block("secrets", secrets) + block("parameters", parameters))
    r = run_command(("volume", "create", store + "/volume.hcl"), env={"DROVER_ADDR": "unix://" + node.socket_path})
    case.equal(r.code, 0, r.out + r.err)
    sent = calls("CreateVolume")[-1]
    case.equal((csi.entries(sent["secrets"]), csi.entries(sent["parameters"])), (secrets, parameters), "what arrived")


def test_large_values_arrive_and_what_is_too_large_is_refused_first():
    secrets = {"kubeconfig": "k" * 65536, "chain": "c" * 800000}
    node.do("PUT", "/v1/volume/csi/large/create", volume("large", Secrets=secrets))
    case.equal(csi.entries(calls("CreateVolume")[-1]["secrets"]), secrets, "the secrets that arrived")
    too_many = {"key-%06d" % i: "value" for i in range(40000)}
    for maps in ({"Secrets": {"k": "x" * 1000000}}, {"Parameters": too_many}, {"Secrets": {"k": "x" * 500000}, "Context": {"k": "x" * 500000}}):
        rejected("refused", "a request to a plugin can have 983040 of them", **maps)


def test_an_unusable_answer_leaves_the_volume_to_be_created_again():
    # The plugin may have made the volume. It was forgotten, because RESOURCE_EXHAUSTED, gRPC's own word for a large answer, counted as a refusal.
    for number, rule in enumerate(("huge:5000000", "long:300000", "garbage", "nothing")):
        plugin, name = "bad%d" % number, "lost%d" % number
        start_plugin(plugin, "CreateVolume=" + rule)
        answer = node.request("PUT", "/v1/volume/csi/%s/create" % name, volume(name, plugin))
        case.equal(answer.status, 500, rule + ": " + answer.text)
        case.contains(answer.text, "it is not known whether the plugin did it", rule)
        case.equal(node.ask("/v1/volume/csi/" + name)["ID"], name, "the row after " + rule)
        node.purge("plugin-" + plugin)
    start_plugin("full", "CreateVolume=status:8", "ControllerExpandVolume=long:20000")
    answer = node.request("PUT", "/v1/volume/csi/full/create", volume("full", "full"))
    case.contains(answer.text, "the plugin has no space for it")
    case.equal(node.request("GET", "/v1/volume/csi/full").status, 404, "the row of a volume that the plugin refused")


store = case.directory()
os.chmod(store, 0o777)
with api.Node() as node:
    start_plugin("big", "requests=" + store + "/calls")
    case.run(globals())

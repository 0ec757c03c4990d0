#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# takes: 20
"""Each map of each call to a plugin arrives byte for byte, with 1,000 entries, and also when the calls are repeated after a restart of the
supervisor. What does not fit is refused before a plugin is called."""
import os

from lib import api, build_dir, case, csi, volumes

MODE = {"AccessMode": "multi-node-multi-writer", "AttachmentMode": "file-system"}
# Keys and values are opaque: every UTF-8 text without NUL.
ODD = {"": "no key", "empty": "", "emoji \U0001f600": "\n\t\r\x01\x7f", "quoted \"'\\": "${x} {{ y }} %s \\u0000", "\u00dcn\u0131code": "\uffff\U0010ffff",
       " ": " spaces ", "long": "x" * 100000, "[REDACTED]": "redacted"}
ENTRIES = 1000


def many(prefix):
    return dict({"%s-%04d" % (prefix, i): "%s value %d" % (prefix, i) for i in range(ENTRIES)}, **ODD)


SECRETS, PARAMETERS, CONTEXT = many("secret"), many("parameter"), many("context")
# The maps of each call. This plugin makes the volume's context from the parameters, and the publish context from the volume's context.
CREATED = {"CreateVolume": {"secrets": SECRETS, "parameters": PARAMETERS}}
REGISTERED = {"ValidateVolumeCapabilities": {"secrets": SECRETS, "parameters": PARAMETERS, "volume_context": CONTEXT}}
MOUNTED = {"ControllerPublishVolume": {"secrets": SECRETS, "volume_context": CONTEXT},
           "NodeStageVolume": {"secrets": SECRETS, "volume_context": CONTEXT, "publish_context": CONTEXT},
           "NodePublishVolume": {"secrets": SECRETS, "volume_context": CONTEXT, "publish_context": CONTEXT}}
EXPANDED = {"ControllerExpandVolume": {"secrets": SECRETS}}
SNAPPED = {"CreateSnapshot": {"secrets": SECRETS, "parameters": PARAMETERS}}
RELEASED = {"ControllerUnpublishVolume": {"secrets": SECRETS}}
DELETED = {"DeleteVolume": {"secrets": SECRETS}}


def calls(method):
    return csi.calls(base + "/calls", method)


def arrived(wanted):
    """Checks each map of the last call of each method."""
    for method, maps in wanted.items():
        sent = calls(method)[-1]
        for name in ("secrets", "parameters", "volume_context", "publish_context", "mutable_parameters"):
            case.equal(csi.entries(sent.get(name) or []) == maps.get(name, {}), True, "%s of %s" % (name, method))


def volume(name, **more):
    return {"Volumes": [dict({"ID": name, "Name": name, "PluginID": "p", "RequestedCapabilities": [MODE]}, **more)]}


def job(name, source):
    made = volumes.job(name, source, "sleep 1000")
    made["Job"]["TaskGroups"][0]["Volumes"]["data"].update(MODE)
    return made


def is_healthy():
    found = node.request("GET", "/v1/plugin/csi/p")
    return found.status == 200 and (found.json["NodesHealthy"], found.json["ControllersHealthy"]) == (1, 1)


def restart():
    node.replace_supervisor()
    case.until(is_healthy, 60, "the plugin to be healthy again")


def release(name):
    node.purge("user")
    case.until(lambda: node.ask("/v1/volume/csi/%s/claims" % name) == [], 60, "the claim to be released")


def test_create_and_delete():
    node.do("PUT", "/v1/volume/csi/made/create", volume("made", Secrets=SECRETS, Parameters=PARAMETERS))
    arrived(CREATED)
    case.equal(node.ask("/v1/volume/csi/made")["Context"] == PARAMETERS, True, "the context that the plugin has answered")
    restart()
    case.equal(node.ask("/v1/volume/csi/made")["Context"] == PARAMETERS, True, "the context that was stored")
    node.do("DELETE", "/v1/volume/csi/made/delete")
    arrived(DELETED)


def test_register_mount_and_release():
    node.do("PUT", "/v1/volume/csi/a", volume("a", ExternalID="a", Secrets=SECRETS, Parameters=PARAMETERS, Context=CONTEXT))
    arrived(REGISTERED)
    node.register(job("user", "a"))
    node.wait_running("user")
    arrived(MOUNTED)
    # What was stored is the same: secrets, and the context of the attachment.
    restart()
    node.register(job("second", "a"))
    node.wait_running("second")
    arrived({"NodePublishVolume": MOUNTED["NodePublishVolume"]})
    case.equal(len(calls("ControllerPublishVolume")), 1, "attachments")
    node.purge("second")
    release("a")
    arrived(RELEASED)
    node.register(job("user", "a"))
    node.wait_running("user")
    arrived(MOUNTED)
    release("a")


def test_snapshot_and_expand():
    node.do("PUT", "/v1/volumes/snapshot", {"Snapshots": [{"SourceVolumeID": "a", "Name": "s", "Parameters": PARAMETERS}]})
    arrived(SNAPPED)
    node.do("PUT", "/v1/volume/csi/large/create", volume("large", Secrets=SECRETS))
    node.do("PUT", "/v1/volume/csi/large/create", volume("large", RequestedCapacityMin=1 << 30, Secrets=SECRETS))
    arrived(EXPANDED)
    node.do("DELETE", "/v1/volume/csi/large/delete")


def test_what_does_not_fit_is_refused_first():
    before = {method: len(calls(method)) for method in (*CREATED, *REGISTERED, *MOUNTED, *SNAPPED)}
    text = "a request to a plugin can have 983040 of them"
    for maps in ({"Secrets": {"k": "x" * 983040}}, {"Parameters": {"%06d" % i: "" for i in range(50000)}}, {"Context": {"k" * 983040: ""}},
                 {"Secrets": {"k": "x" * 400000}, "Parameters": {"k": "x" * 300000}, "Context": {"k": "x" * 300000}}):
        node.refused(400, text, "PUT", "/v1/volume/csi/b/create", volume("b", **maps))
        node.refused(400, text, "PUT", "/v1/volume/csi/b", volume("b", ExternalID="b", **maps))
    node.refused(400, "not allowed", "PUT", "/v1/volume/csi/b", volume("b", ExternalID="b", Secrets={"k": "a\0b"}))
    node.refused(400, text, "PUT", "/v1/volumes/snapshot", {"Snapshots": [{"SourceVolumeID": "a", "Name": "s", "Parameters": {"k": "x" * 983040}}]})
    case.equal({method: len(calls(method)) for method in before}, before, "calls")
    case.equal(node.request("GET", "/v1/volume/csi/b").status, 404, "the row")


def test_a_publish_context_that_does_not_fit_is_refused_before_the_nodes_calls():
    node.do("PUT", "/v1/volume/csi/b", volume("b", ExternalID="b", Context={"k": "x" * 500000}))
    before = len(calls("NodeStageVolume"))
    node.register(job("user", "b"))
    case.until(lambda: [a for a in node.allocs("user") if a["ClientStatus"] == "failed"], 60, "the alloc to fail")
    case.contains(node.events(node.allocs("user")[0]["ID"]), "a request to a plugin can have 983040 of them")
    case.equal(len(calls("NodeStageVolume")), before, "calls of NodeStageVolume")
    release("b")


def test_no_leaks_are_left():
    for name in ("a", "b"):
        node.do("DELETE", "/v1/volume/csi/" + name)
    node.purge("plugin-p")
    case.until(lambda: node.ask("/v1/agent/leaks") == [], 20, "no leaks")


base = case.directory()
os.chmod(base, 0o777)
with volumes.Node() as node:
    script = 'exec %s "$${CSI_ENDPOINT#unix://}" "$@"' % os.path.join(build_dir(), "tests", "csi_bad")
    node.register(api.job("plugin-p", "/bin/sh", ["-c", script, "csi_bad", "attach=%s/attached" % base, "context=volume", "mounts=yes",
                                                  "requests=%s/calls" % base], CSIPluginConfig={"ID": "p", "Type": "monolith", "MountDir": "/csi"}))
    case.until(is_healthy, 30, "the plugin to be healthy")
    case.run(globals())

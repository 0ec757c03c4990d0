#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A volume is registered only after its plugin has confirmed it, and registering it again keeps what the request does not give."""
import json

from lib import api, case, state, told, volumes

CAPABILITIES = [{"AccessMode": "single-node-writer", "AttachmentMode": "file-system"},
                {"AccessMode": "multi-node-multi-writer", "AttachmentMode": "file-system"}]
SECRET = "hunter2"


def put(name, plugin="p", **more):
    return node.do("PUT", "/v1/volume/csi/" + name, told.volume(name, plugin, **more))["Volumes"][0]


def refused(status, part, name, plugin="p", **more):
    node.refused(status, part, "PUT", "/v1/volume/csi/" + name, told.volume(name, plugin, **more))


def forget(*names):
    for name in names:
        node.do("DELETE", "/v1/volume/csi/" + name)


def stored(name):
    return state.volume(node, name)


def test_the_controller_confirms_a_volume():
    put("a", RequestedCapabilities=CAPABILITIES)
    case.equal(plugin.calls("ValidateVolumeCapabilities"), [["ValidateVolumeCapabilities", "a", ""]])
    plugin.tell("ValidateVolumeCapabilities", "5 there is no such disk")
    refused(404, "there is no such disk", "b")
    refused(404, "there is no such disk", "a", Secrets={"key": SECRET})
    plugin.untell("ValidateVolumeCapabilities")
    plugin.tell("confirm", "no it can only be read")
    refused(400, "it can only be read", "b")
    plugin.tell("confirm", "no")
    put("b")  # an answer that says nothing is agreement
    plugin.tell("confirm", "yes but not these")
    refused(400, "does not confirm single-node-writer with file-system", "c")
    plugin.tell("confirm", "modes")  # and neither a file system nor a block device
    put("c")
    forget("c")
    plugin.untell("confirm")
    case.equal([v["ID"] for v in node.ask("/v1/volumes", type="csi")], ["a", "b"])
    # All volumes of a request are registered, or none.
    node.refused(400, 'plugin "none" does not run', "PUT", "/v1/volumes", {
        "Volumes": told.volume("c", "p")["Volumes"] + told.volume("d", "none")["Volumes"]})
    case.equal([v["ID"] for v in node.ask("/v1/volumes", type="csi")], ["a", "b"])
    forget("a", "b")


def test_a_plugin_must_run():
    refused(400, 'plugin "none" does not run on this node', "a", "none")
    other = told.Plugin(node, "halved", kind="node")
    refused(500, 'plugin "halved" has no healthy controller', "a", "halved")
    other.purge()
    other = told.Plugin(node, "plain", plugin=(), controller=())
    put("a", "plain")
    case.equal(other.calls("ValidateVolumeCapabilities"), [])
    forget("a")
    other.purge()


def test_two_volumes_never_have_one_external_id():
    put("a", ExternalID="disk")
    refused(409, 'external id "disk" of plugin "p" is already that of volume "a" in namespace "default"', "b", ExternalID="disk")
    node.do("PUT", "/v1/namespace", {"Name": "other"})
    node.refused(409, 'volume "a" in namespace "default"', "PUT", "/v1/volume/csi/b?namespace=other",
                 told.volume("b", "p", ExternalID="disk"))
    node.refused(409, 'have the same external id "x"', "PUT", "/v1/volumes", {
        "Volumes": [told.volume(name, "p", ExternalID="x")["Volumes"][0] for name in "bc"]})
    # The plugin's id of a new volume is its name.
    node.refused(500, "already that of", "PUT", "/v1/volume/csi/b/create", told.volume("b", "p", Name="disk"))
    case.equal([v["ID"] for v in node.ask("/v1/volumes", type="csi", namespace="*")], ["a"])
    forget("a")


def test_a_volume_is_read_and_written_back():
    given = {"Secrets": {"user": "me", "key": SECRET}, "Context": {"share": "/x"}, "Parameters": {"kind": "fast"},
             "MountOptions": {"FSType": "ext4", "MountFlags": ["noatime", "password=" + SECRET]}}
    put("a", **given)
    before = stored("a")
    found = node.ask("/v1/volume/csi/a")
    case.equal(SECRET in json.dumps(found), False, "secrets in an answer")
    node.do("PUT", "/v1/volume/csi/a", {"Volumes": [found]})
    for name in given:
        case.equal(stored("a")[name], before[name], name)
    node.do("PUT", "/v1/volume/csi/a", {"Volumes": [dict(found, Secrets={"user": "you", "key": "[REDACTED]"}, Context=None)]})
    case.equal((stored("a")["Secrets"], stored("a")["Context"]), ({"user": "you", "key": SECRET}, {"share": "/x"}))
    put("a", Secrets={"new": "1"}, Context={"share": "/y"}, MountOptions={"MountFlags": ["ro"]})
    case.equal([stored("a")[n] for n in ("Secrets", "Context", "MountOptions", "Parameters")],
               [{"new": "1"}, {"share": "/y"}, {"MountFlags": ["ro"]}, {"kind": "fast"}])
    put("a", Secrets={})
    case.equal(stored("a").get("Secrets") or {}, {})
    forget("a")


def test_a_creation_that_is_repeated_keeps_secrets():
    made = told.volume("a", "p", Secrets={"key": SECRET}, MountOptions={"MountFlags": ["noatime"]})
    node.do("PUT", "/v1/volume/csi/a/create", made)
    node.do("PUT", "/v1/volume/csi/a/create", {"Volumes": [node.ask("/v1/volume/csi/a")]})
    case.equal((stored("a")["Secrets"], stored("a")["MountOptions"]["MountFlags"]), ({"key": SECRET}, ["noatime"]))
    node.do("PUT", "/v1/volume/csi/a/create", told.volume("a", "p", Secrets={"key": "2"}, MountOptions={"MountFlags": ["noatime"]}))
    case.equal((stored("a")["Secrets"], len(plugin.calls("CreateVolume"))), ({"key": "2"}, 2))
    node.do("DELETE", "/v1/volume/csi/a/delete")


def test_what_can_change():
    put("a", RequestedCapabilities=CAPABILITIES, Parameters={"kind": "fast"}, MountOptions={"FSType": "ext4"})
    for field, value in (("Name", "other"), ("ExternalID", "other"), ("PluginID", "other"), ("CloneID", "other"),
                         ("SnapshotID", "other"), ("Parameters", {"kind": "slow"})):
        refused(409, "another %s, which cannot change" % field, "a", **{field: value})
    node.register(volumes.job("user", "a", "sleep 1000"))
    node.wait_running("user")
    refused(409, "its capabilities must still contain single-node-writer with file-system", "a", RequestedCapabilities=CAPABILITIES[1:])
    refused(409, "its MountOptions can only change while no allocation claims it", "a", MountOptions={"FSType": "xfs"})
    put("a", RequestedCapabilities=CAPABILITIES[:1], Secrets={"key": SECRET})
    case.equal((stored("a")["Secrets"], stored("a")["MountOptions"]["FSType"], len(stored("a")["WriteClaims"])),
               ({"key": SECRET}, "ext4", 1))
    node.purge("user")
    put("a", MountOptions={"FSType": "xfs"})
    forget("a")


def test_maps_that_no_request_carries_are_refused():
    calls = len(plugin.calls())
    refused(400, "a request to a plugin can have", "a", Secrets={"k%d" % i: "x" * 1000 for i in range(1000)})
    case.equal(len(plugin.calls()), calls, "calls")
    for name in ("Secrets", "Parameters", "Context"):
        given = {"k%d" % i: "v%d" % i for i in range(1000)}
        put("a", **{name: given})
        case.equal(stored("a")[name], given, name)
        forget("a")


def test_a_controller_is_asked_only_what_it_has():
    bare = told.Plugin(node, "bare", controller=())
    put("a", "bare")
    before = len(bare.calls())
    for part, method, path, body in (
            ("has no controller that creates volumes", "PUT", "/v1/volume/csi/b/create", told.volume("b", "bare")),
            ("no capability CREATE_DELETE_VOLUME", "DELETE", "/v1/volume/csi/a/delete", None),
            ("no capability LIST_VOLUMES", "GET", "/v1/volumes/external?plugin_id=bare", None),
            ("no capability LIST_SNAPSHOTS", "GET", "/v1/volumes/snapshot?plugin_id=bare", None),
            ("no capability CREATE_DELETE_SNAPSHOT", "PUT", "/v1/volumes/snapshot", {"Snapshots": [{"SourceVolumeID": "a", "Name": "s"}]}),
            ("no capability CREATE_DELETE_SNAPSHOT", "DELETE", "/v1/volumes/snapshot?plugin_id=bare&snapshot_id=s", None)):
        node.refused(400, part, method, path, body)
    case.equal(bare.calls()[before:], [])
    node.refused(400, "no capability CLONE_VOLUME", "PUT", "/v1/volume/csi/b/create", told.volume("b", "p", CloneID="a"))
    case.equal([v["ID"] for v in node.ask("/v1/volumes", type="csi")], ["a"])
    forget("a")
    bare.purge()


def test_no_leaks_are_left():
    plugin.purge()
    case.until(lambda: node.ask("/v1/agent/leaks") == [], 20, "no leaks")


with api.Node() as node:
    plugin = told.Plugin(node, "p")
    case.run(globals())

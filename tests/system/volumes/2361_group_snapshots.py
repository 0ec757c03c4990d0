# SPDX-License-Identifier: Apache-2.0
"""Snapshots of several volumes, made together: created, listed, shown and deleted as a group."""
import json

from lib import case, told, volumes


def last(method):
    with open(node.store + "/calls", encoding="utf-8") as f:
        return [c for c in map(json.loads, f) if c["method"] == method][-1]["request"]


def groups():
    return json.loads(node.drover("volume", "group-snapshot", "list", "-json", "-plugin", "local").out)


def test_a_group_is_created_shown_and_deleted():
    for name in ("data", "logs", "other"):
        node.create(name)
    case.equal(node.drover("volume", "group-snapshot", "list", "-plugin", "local").out, "No group snapshots\n")
    made = json.loads(node.drover("volume", "group-snapshot", "create", "-json", "local", "monday", "data", "logs").out)["Snapshots"]
    externals = [node.ask("/v1/volume/csi/" + name)["ExternalID"] for name in ("data", "logs")]
    case.equal(last("CreateVolumeGroupSnapshot")["source_volume_ids"], externals)
    case.equal(sorted(s["ExternalSourceVolumeID"] for s in made), sorted(externals))
    group, = {s["GroupSnapshotID"] for s in made}
    node.drover("volume", "snapshot", "create", "other", "alone")
    case.equal(sorted(s["ID"] for s in groups()), sorted(s["ID"] for s in made), "a snapshot alone is in no group")
    text = node.drover("volume", "group-snapshot", "status", "local", group).out
    for s in made:
        case.contains(text, s["ID"])
    case.equal(sorted(last("GetVolumeGroupSnapshot")["snapshot_ids"]), sorted(s["ID"] for s in made))
    # The same request again is the same group; of other volumes it is refused.
    again = json.loads(node.drover("volume", "group-snapshot", "create", "-json", "local", "monday", "logs", "data").out)["Snapshots"]
    case.equal({s["GroupSnapshotID"] for s in again}, {group})
    r = node.drover("volume", "group-snapshot", "create", "local", "monday", "data", "other", code=1)
    case.contains(r.err, "CreateVolumeGroupSnapshot of plugin local: a group snapshot of this name exists, of other volumes")
    case.contains(node.drover("volume", "group-snapshot", "delete", "local", group).out, "is deleted")
    case.equal(groups(), [])
    case.contains(node.drover("volume", "group-snapshot", "status", "local", group, code=1).err, "lists no snapshot of a group")


def test_what_cannot_be_done_is_refused_with_a_sentence():
    wish = {"PluginID": "local", "Name": "x", "SourceVolumeIDs": ["data", "none"]}
    node.refused(404, "volume not found: none", "PUT", "/v1/volumes/group-snapshot", wish)
    node.refused(400, "PluginID, Name or SourceVolumeIDs is missing", "PUT", "/v1/volumes/group-snapshot", {"Name": "x"})
    wish = dict(wish, SourceVolumeIDs=["data"])
    node.refused(400, "Secrets: the value of pin is no text", "PUT", "/v1/volumes/group-snapshot", dict(wish, Secrets={"pin": 1}))
    node.refused(400, "bytes together, and a request to a plugin can have", "PUT", "/v1/volumes/group-snapshot", dict(wish, Parameters={"large": "x" * 1000000}))
    node.refused(400, "snapshot_id of each snapshot, is missing", "DELETE", "/v1/volumes/group-snapshot?plugin_id=local&group_snapshot_id=a")
    told.Plugin(node, "p")
    made = told.volume("v", "p")
    node.do("PUT", "/v1/volume/csi/v", made)
    node.refused(400, 'volume "v" is of plugin "p", not "local"', "PUT", "/v1/volumes/group-snapshot",
                 dict(wish, SourceVolumeIDs=["data", "v"]))
    node.refused(400, "CreateVolumeGroupSnapshot of plugin p: its controller has no capability CREATE_DELETE_GET_VOLUME_GROUP_SNAPSHOT",
                 "PUT", "/v1/volumes/group-snapshot", {"PluginID": "p", "Name": "x", "SourceVolumeIDs": ["v"]})


with volumes.Node() as node:
    node.start_plugin(["-log-calls", "/store/calls"])
    case.run(globals())

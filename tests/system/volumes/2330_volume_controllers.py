#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Other requests to controllers of plugins: expansion, lists of volumes, snapshots."""
import json
import os

from lib import api, binary, build_dir, case, volumes
from lib.fake_api import run_command

CAPABILITY = {"AccessMode": "single-node-writer", "AttachmentMode": "file-system"}


def volume(name, plugin, size):
    return {"Volumes": [{"ID": name, "Name": name, "PluginID": plugin, "RequestedCapacityMin": size,
                         "RequestedCapabilities": [CAPABILITY]}]}


def create(name, plugin, size):
    return node.do("PUT", "/v1/volume/csi/%s/create" % name, volume(name, plugin, size))["Volumes"][0]


def drover(*words, code=0):
    r = run_command(words, env={"DROVER_ADDR": "unix://" + node.socket_path})
    case.equal(r.code, code, "drover %s: %s%s" % (" ".join(words), r.out, r.err))
    return r.out if code == 0 else r.err


def healthy(name):
    found = node.request("GET", "/v1/plugin/csi/" + name)
    return found.status == 200 and found.json["NodesHealthy"] == 1


def start_plugins():
    script = 'exec %s "$${CSI_ENDPOINT#unix://}"' % os.path.join(build_dir(), "tests", "csi_bad")
    for name, command, args in (("local", binary("csi-local"), ["-root", store]), ("other", "/bin/sh", ["-c", script])):
        node.register(api.job("plugin-" + name, command, args, CSIPluginConfig={
            "ID": name, "Type": "monolith", "MountDir": "/csi"}))
    for name in ("local", "other"):
        case.until(lambda: healthy(name), 30, "plugin %s to be healthy" % name)


def test_a_volume_in_use_is_expanded():
    case.equal(create("data", "local", 1 << 20)["Capacity"], 1 << 20)
    node.register(volumes.job("user", "data", "sleep 1000"))
    alloc = node.wait_running("user")[0]["ID"]
    made = create("data", "local", 3 << 20)
    case.equal((made["Capacity"], made["RequestedCapacityMin"]), (3 << 20, 3 << 20))
    found = node.ask("/v1/volume/csi/data")
    case.equal((found["Capacity"], found["WriteAllocs"]), (3 << 20, {alloc: None}))
    case.equal(create("data", "local", 3 << 20)["Capacity"], 3 << 20, "the answer to a repeated request")
    node.refused(409, "another RequestedCapacityMin", "PUT", "/v1/volume/csi/data/create", volume("data", "local", 1 << 20))
    node.purge("user")


def test_the_node_expands_a_volume_only_if_the_plugin_requires_it():
    # This plugin makes no mounts, so no alloc can run with its volumes. The expansion of an unmounted volume needs only the controller.
    case.equal(create("v", "other", 1 << 20)["ExternalID"], "v")
    case.equal(create("v", "other", 2 << 20)["Capacity"], 2 << 20)
    node.refused(409, "exists already, with another Name", "PUT", "/v1/volume/csi/v/create",
                 {"Volumes": [dict(volume("v", "other", 3 << 20)["Volumes"][0], Name="w")]})


def test_volumes_of_a_plugin_are_listed():
    listed = node.ask("/v1/volumes/external", plugin_id="local")
    case.equal([(v["ExternalID"], v["CapacityBytes"]) for v in listed["Volumes"]],
               [(node.ask("/v1/volume/csi/data")["ExternalID"], 3 << 20)])
    create("more", "local", 1 << 20)
    first = node.ask("/v1/volumes/external", plugin_id="local", per_page=1)
    second = node.ask("/v1/volumes/external", plugin_id="local", per_page=1, next_token=first["NextToken"])
    case.equal(sorted(v["ExternalID"] for v in first["Volumes"] + second["Volumes"]),
               sorted(node.ask("/v1/volume/csi/" + name)["ExternalID"] for name in ("data", "more")))
    case.equal(second["NextToken"], "")
    found = node.ask("/v1/volumes/external", plugin_id="other")["Volumes"]
    case.equal([(v["PublishedExternalNodeIDs"], v["IsAbnormal"], v["Status"]) for v in found],
               [(["bad-node"], True, "it creaks")])
    node.refused(404, 'plugin "none" has no controller', "GET", "/v1/volumes/external?plugin_id=none")
    node.refused(400, "plugin_id is missing", "GET", "/v1/volumes/external")
    text = drover("volume", "status", "-verbose")
    case.contains(text, node.ask("/v1/volume/csi/data")["ExternalID"])
    case.contains(text, "abnormal: it creaks")


def test_snapshots_are_created_listed_and_deleted():
    text = drover("volume", "snapshot", "create", "v", "nightly")
    case.contains(text, "nightly")
    made = node.do("PUT", "/v1/volumes/snapshot", {"Snapshots": [{"SourceVolumeID": "v", "Name": "again"}]})["Snapshots"]
    case.equal([(s["ID"], s["ExternalSourceVolumeID"], s["SizeBytes"], s["CreateTime"], s["IsReady"]) for s in made],
               [("again", "v", 4096, 1700000000, True)])
    # The plugin lists them on two pages.
    listed = json.loads(drover("volume", "snapshot", "list", "-plugin", "other", "-json"))
    case.equal([s["ID"] for s in listed], ["snap-1", "snap-2"])
    case.contains(drover("volume", "snapshot", "list", "-plugin", "other"), "snap-2")
    case.contains(drover("volume", "snapshot", "delete", "other", "nightly"), 'Snapshot "nightly" is deleted')
    for part, words in (("volume not found", ("create", "none")), ("-plugin is missing", ("list",)), ('unknown command "volume snapshot x"', ("x",)),
                        ("no capability CREATE_DELETE_SNAPSHOT", ("create", "data"))):
        if part == "volume not found":
            node.refused(404, part, "PUT", "/v1/volumes/snapshot", {"Snapshots": [{"SourceVolumeID": "none"}]})
        else:
            case.contains(drover("volume", "snapshot", *words, code=1), part)


def test_no_leaks_are_left():
    for name in ("v", "data", "more"):
        node.do("DELETE", "/v1/volume/csi/%s/delete" % name)
    for name in ("local", "other"):
        node.purge("plugin-" + name)
    case.until(lambda: node.ask("/v1/agent/leaks") == [], 20, "no leaks")


store = case.directory()
os.chmod(store, 0o777)
with api.Node() as node:
    start_plugins()
    case.run(globals())

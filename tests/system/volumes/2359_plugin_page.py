# SPDX-License-Identifier: Apache-2.0
"""What a plugin is, can do and has left is shown; a volume that is too large for it is refused before it is asked."""
import json

from lib import case, told, volumes

MIB = 1 << 20


def page(name):
    """Returns the lines of the plugin's page without the padding."""
    return "\n".join(" ".join(line.split()) for line in node.drover("plugin", "status", name).out.splitlines())


def instance(name):
    (found,) = node.ask("/v1/plugin/csi/" + name)["Instances"]
    return found


def wish(name, plugin="local", **more):
    made = {"ID": name, "Name": name, "PluginID": plugin, "RequestedCapabilities": [
        {"AccessMode": "single-node-writer", "AttachmentMode": "file-system"}]}
    made.update(more)
    return {"Volumes": [made]}


def calls(method):
    with open(node.store + "/calls", encoding="utf-8") as f:
        return [c for c in map(json.loads, f) if c["method"] == method]


def test_the_page_shows_all_that_the_plugin_has_reported():
    found = instance("local")
    case.equal(found["PluginCapabilities"], ["CONTROLLER_SERVICE", "VOLUME_ACCESSIBILITY_CONSTRAINTS", "GROUP_CONTROLLER_SERVICE"])
    case.equal(found["ExpansionCapabilities"], ["ONLINE"])
    case.equal("GET_CAPACITY" in found["ControllerCapabilities"] and "MODIFY_VOLUME" in found["ControllerCapabilities"], True, found)
    case.equal("GET_VOLUME_STATS" in found["NodeCapabilities"], True, found)
    case.equal(found["GroupControllerCapabilities"], ["CREATE_DELETE_GET_VOLUME_GROUP_SNAPSHOT"])
    case.equal((found["Topology"]["Segments"], found["MaxVolumes"], found["Volumes"], found["Type"], found["Healthy"]),
               ({"zone": "a", "rack": "1"}, 3, 0, "monolith", True))
    node.create("used")
    node.register(volumes.job("used", "used", "sleep 1000"))
    node.wait_running("used")
    text = page("local")
    for part in ("Capacity = 9.0 MiB left, for a volume at most 9.0 MiB", "Healthy = true", "Since = ", "Description = healthy",
                 "Volumes = 1 of at most 3", "zone=a", "rack=1", "PUBLISH_UNPUBLISH_VOLUME", "Type = monolith",
                 "Plugin Capabilities = CONTROLLER_SERVICE, "):
        case.contains(text, part, "plugin status")
    node.purge("used")


def test_a_volume_above_the_capacity_is_refused_before_the_plugin_makes_it():
    asked = len(calls("CreateVolume"))
    node.refused(500, 'create volume "large": plugin "local" has 9437184 bytes left for such volumes, and capacity_min is 20971520',
                 "PUT", "/v1/volume/csi/large/create", wish("large", RequestedCapacityMin=20 * MIB))
    case.equal(len(calls("CreateVolume")), asked, "calls of CreateVolume")
    case.equal(node.request("GET", "/v1/volume/csi/large").status, 404, "the refused volume")
    case.equal(calls("GetCapacity")[-1]["request"]["volume_capabilities"][0]["access_mode"], {"mode": "SINGLE_NODE_WRITER"})
    # The volume itself is not in what is left, if it was made and the answer was lost.
    node.do("PUT", "/v1/volume/csi/fits/create", wish("fits", RequestedCapacityMin=9 * MIB))
    node.do("PUT", "/v1/volume/csi/fits/create", wish("fits", RequestedCapacityMin=9 * MIB))
    node.do("DELETE", "/v1/volume/csi/fits/delete")


def test_a_plugin_that_cannot_tell_its_capacity_decides_by_itself():
    plugin = told.Plugin(node, "p", controller=(told.CREATE_DELETE, told.CAPACITY))
    plugin.tell("GetCapacity", "13 who counts")
    case.contains(page("p"), "Capacity = GetCapacity of plugin p", "the page")
    case.contains(page("p"), "who counts", "the page")
    node.do("PUT", "/v1/volume/csi/v/create", wish("v", "p", RequestedCapacityMin=20 * MIB))
    plugin.untell("GetCapacity")
    node.refused(400, "makes volumes of at most 1000 bytes", "PUT", "/v1/volume/csi/w/create", wish("w", "p", RequestedCapacityMin=2000))
    node.refused(400, "makes volumes of at least 10 bytes", "PUT", "/v1/volume/csi/w/create",
                 wish("w", "p", RequestedCapacityMin=1, RequestedCapacityMax=5))
    case.contains(page("p"), "Capacity = 9.8 KiB left, for a volume at least 10 B, for a volume at most 1000 B")
    plugin.tell("Probe", "9 the disks are gone")
    case.until(lambda: not instance("p")["Healthy"], 60, "the plugin to be unhealthy")
    case.contains(page("p"), "the disks are gone", "the page")
    case.equal(instance("p")["HealthSince"] > instance("local")["HealthSince"], True, "since when")
    plugin.untell("Probe")


with volumes.Node() as node:
    node.start_plugin(["-capacity", str(10 * MIB), "-topology", "zone=a,rack=1", "-max-volumes", "3", "-attach", "-log-calls", "/store/calls"])
    case.run(globals())

# SPDX-License-Identifier: Apache-2.0
"""How full a volume is, its condition and its mounts are shown, and reported when they change."""
import concurrent.futures
import os

from lib import case, told, volumes


def status(name):
    """Returns the lines of the page without the padding."""
    return "\n".join(" ".join(line.split()) for line in node.drover("volume", "status", name).out.splitlines())


def here(name, refresh="true"):
    return node.ask("/v1/volume/csi/%s?refresh=%s" % (name, refresh)).get("ThisNode")


def storage_events():
    node_id = node.ask("/v1/nodes")[0]["ID"]
    return [e["Message"] for e in node.ask("/v1/node/" + node_id)["Events"] if e["Subsystem"] == "Storage"]


def test_the_fill_level_of_a_volume_is_that_of_its_file_system():
    node.create("level")
    case.equal(here("level"), None, "a volume that is not mounted")
    node.register(volumes.job("level", "level", "sleep 1000"))
    (alloc,) = node.wait_running("level")
    (path,) = node.published("level")
    known, fs = here("level"), os.statvfs(path)
    case.equal(known["Bytes"]["Total"], fs.f_blocks * fs.f_frsize, "bytes")
    case.equal(known["Inodes"]["Total"], fs.f_files, "inodes")
    case.equal(0 < known["Bytes"]["Used"] <= known["Bytes"]["Total"], True, "used bytes: %s" % known)
    case.equal((known["Condition"], known["ConditionMessage"], known["Error"]), ("normal", "the volume is normal", ""))
    case.equal([(m["AllocID"], m["Name"], m["Path"], m["State"], m["ReadOnly"]) for m in known["Mounts"]],
               [(alloc["ID"], "data", path, "published", False)])
    text = status("level")
    for part in ("On Node", " inodes, %d %%" % known["Inodes"]["Percent"], "Condition = normal: the volume is normal", path):
        case.contains(text, part, "volume status")
    node.purge("level")
    case.until(lambda: here("level") is None, 20, "the unmount")


def test_changes_of_the_condition_and_of_the_fill_level_are_reported_once():
    plugin = told.Plugin(node, "p", node_caps=(told.NODE_STATS,))
    node.do("PUT", "/v1/volume/csi/v", told.volume("v", "p"))
    plugin.tell("usage", "100 40 60 1 2000 1000 1000 2")
    node.register(volumes.job("user", "v", "sleep 1000"))
    (alloc,) = node.wait_running("user")
    # The plugin is asked without a request too.
    case.until(lambda: here("v", "false")["Reported"] > 0, 30, "statistics without a request")
    case.equal(here("v")["Bytes"], {"Total": 100, "Used": 40, "Available": 60, "Percent": 40})
    case.contains(status("v"), "Used = 40 B of 100 B, 40 %; 1,000 of 2,000 inodes, 50 %")
    case.equal(here("v")["Condition"], "", "a plugin without a condition")
    for i in range(2):
        plugin.tell("condition", "1 the disk is on fire")
        case.equal((here("v")["Condition"], here("v")["ConditionMessage"]), ("abnormal", "the disk is on fire"))
        case.contains(status("v"), "abnormal: the disk is on fire")
        plugin.tell("condition", "0 all is well")
        case.equal(here("v")["Condition"], "normal")
        plugin.tell("usage", "100 96 4 1")
        case.equal((here("v")["Bytes"]["Percent"], here("v")["Inodes"]), (96, None))
        plugin.tell("usage", "100 94 6 1")
        here("v")
        plugin.tell("usage", "100 40 60 1 1000 40 960 2")
        here("v")
        texts = ("volume v is abnormal: plugin p says: the disk is on fire", "volume v is not abnormal any more",
                 "volume v is almost full: 96 % of its bytes are used",
                 "volume v is not almost full any more: 40 % of its bytes are used")
        for text in texts:
            case.equal(node.log().count("warn: " + text), i + 1, "lines of the log: " + text)
            case.contains(node.events(alloc["ID"]), "csi_hook: " + text, "events of the task")
            case.contains("\n".join(storage_events()), text.replace("volume", "Volume", 1), "events of the node")
    # A failure keeps what was known.
    plugin.tell("NodeGetVolumeStats", "13 it is too dark to look")
    case.contains(here("v")["Error"], "it is too dark to look")
    case.equal(here("v")["Bytes"]["Used"], 40)
    case.contains(status("v"), "it is too dark to look")
    plugin.untell("NodeGetVolumeStats")
    plugin.tell("usage", "1 2147483647 0 1")
    case.equal(here("v")["Bytes"]["Percent"], 999, "a volume that is said to have more used bytes than bytes")
    node.purge("user")
    case.until(lambda: here("v") is None, 20, "the unmount")


def test_a_request_that_is_not_answered_does_not_hold_an_unmount_up():
    plugin = told.Plugin(node, "q", node_caps=(told.NODE_STATS,))
    node.do("PUT", "/v1/volume/csi/w", told.volume("w", "q"))
    node.register(volumes.job("user", "w", "sleep 1000"))
    node.wait_running("user")
    plugin.tell("NodeGetVolumeStats.hang", "")
    asked = len(plugin.calls("NodeGetVolumeStats"))
    with concurrent.futures.ThreadPoolExecutor() as pool:
        held = pool.submit(here, "w")
        case.until(lambda: len(plugin.calls("NodeGetVolumeStats")) > asked, 20, "the plugin to be asked")
        node.purge("user")
        case.equal(held.result()["Error"], "", "the request was cancelled")
    case.until(lambda: here("w", "false") is None, 20, "the unmount")


def test_a_plugin_without_statistics_is_not_asked():
    plugin = told.Plugin(node, "r")
    node.do("PUT", "/v1/volume/csi/x", told.volume("x", "r"))
    node.register(volumes.job("user", "x", "sleep 1000"))
    node.wait_running("user")
    known = here("x")
    case.equal((known["Bytes"], known["Reported"], len(known["Mounts"])), (None, 0, 1))
    case.equal(plugin.calls("NodeGetVolumeStats"), [])
    node.purge("user")


with volumes.Node() as node:
    node.start_plugin()
    case.run(globals())

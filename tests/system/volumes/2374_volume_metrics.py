#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The metrics of volumes, of CSI plugins and of calls to them are what the pages of both say."""
from lib import case, exposition, told, volumes


def scrape():
    answer = node.request("GET", "/v1/metrics?format=prometheus")
    case.equal(answer.status, 200, answer.text)
    return answer.text


def families():
    return exposition.parse(scrape())


def test_a_plugin_and_the_calls_to_it():
    plugin = told.Plugin(node, "m", node_caps=(told.NODE_STATS,))
    node.do("PUT", "/v1/volume/csi/vol", told.volume("vol", "m"))
    plugin.tell("usage", "100 40 60 1 2000 1000 1000 2")
    plugin.tell("condition", "1 the disk is on fire")
    node.register(volumes.job("user", "vol", "sleep 1000"))
    node.wait_running("user")
    here = node.ask("/v1/volume/csi/vol?refresh=true")["ThisNode"]
    page, found = node.ask("/v1/plugin/csi/m"), families()
    for instance in page["Instances"]:
        labels = {"plugin": "m", "alloc_id": instance["AllocID"]}
        case.equal((found["drover_plugin_healthy"].value(**labels), found["drover_plugin_volumes"].value(**labels)),
                   (instance["Healthy"], instance["Volumes"]), "instance")
    labels = {"volume": "vol", "namespace": "default", "plugin": "m"}
    case.equal([found["drover_volume_" + name].value(**labels) for name in ("size_bytes", "used_bytes", "available_bytes", "inodes", "used_inodes")],
               [here["Bytes"]["Total"], here["Bytes"]["Used"], here["Bytes"]["Available"], here["Inodes"]["Total"], here["Inodes"]["Used"]])
    case.equal((found["drover_volume_abnormal"].value(**labels), found["drover_volume_mounts"].value(**labels)), (1, len(here["Mounts"])))
    case.equal(found["drover_csi_calls_total"].value(plugin="m", method="NodePublishVolume", code="OK"), 1)
    case.equal(found["drover_ledger_mounts"].one(), 1)


def test_calls_that_fail_are_counted_by_their_code():
    plugin = told.Plugin(node, "bad", node_caps=(told.NODE_STATS,))
    node.do("PUT", "/v1/volume/csi/badvol", told.volume("badvol", "bad"))
    node.register(volumes.job("baduser", "badvol", "sleep 1000"))
    node.wait_running("baduser")
    plugin.tell("NodeGetVolumeStats", "13 it is too dark to look")
    node.ask("/v1/volume/csi/badvol?refresh=true")
    case.equal(families()["drover_csi_calls_total"].value(plugin="bad", method="NodeGetVolumeStats", code="Internal") >= 1, True)


def test_promtool_finds_nothing_wrong():
    text = scrape()
    for name in ("drover_volume_used_bytes", "drover_volume_abnormal", "drover_plugin_healthy", "drover_csi_calls_total"):
        assert name in exposition.parse(text), name
    exposition.check(text)


def test_a_volume_that_is_unmounted_has_no_metrics():
    node.purge("user")
    case.until(lambda: "vol" not in [s[1]["volume"] for s in getattr(families().get("drover_volume_mounts"), "samples", [])], 30, "the unmount")


with volumes.Node() as node:
    case.run(globals())

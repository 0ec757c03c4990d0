#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Secrets and parameters of a request to a plugin's controller, beside those that the volume has."""
import os

from lib import api, build_dir, case, csi

MODE = {"AccessMode": "single-node-writer", "AttachmentMode": "file-system"}


def last(method):
    """Returns (secrets, parameters) of the plugin's last call of this method."""
    call = csi.calls(requests, method)[-1]
    return csi.entries(call.get("secrets", [])), csi.entries(call.get("parameters", []))


def delete(path, secrets):
    c = api.Connection(node, case.LEAST_S)
    c.request("DELETE", path, None, {"X-Nomad-CSI-Secrets": secrets})
    answer = api.Answer(c.getresponse())
    c.close()
    case.equal(answer.status, 200, answer.text)


def test_a_snapshot_has_parameters_of_its_own_and_the_secrets_of_both():
    node.do("PUT", "/v1/volumes/snapshot", {"Snapshots": [{
        "SourceVolumeID": "v", "Name": "then", "Parameters": {"depth": "full"}, "Secrets": {"key": "newer", "pin": "1"}}]})
    case.equal(last("CreateSnapshot"), ({"user": "joe", "key": "newer", "pin": "1"}, {"depth": "full"}))
    node.do("PUT", "/v1/volumes/snapshot", {"Snapshots": [{"SourceVolumeID": "v", "Name": "again"}]})
    case.equal(last("CreateSnapshot"), ({"user": "joe", "key": "old"}, {}))


def test_what_is_no_text_is_refused():
    calls = len(csi.calls(requests, "CreateSnapshot"))
    for member, found, text in (("Secrets", {"pin": 4711}, "Secrets: the value of pin is no text"), ("Parameters", "full", "Parameters is no object")):
        node.refused(400, text, "PUT", "/v1/volumes/snapshot", {"Snapshots": [{"SourceVolumeID": "v", "Name": "no", member: found}]})
    case.equal(len(csi.calls(requests, "CreateSnapshot")), calls, "calls")


def test_a_snapshot_is_deleted_with_the_secrets_of_the_request():
    delete("/v1/volumes/snapshot?plugin_id=p&snapshot_id=then", "pin=1,key=newer")
    case.equal(last("DeleteSnapshot")[0], {"pin": "1", "key": "newer"})


def test_a_volume_is_deleted_with_the_secrets_of_both():
    delete("/v1/volume/csi/v/delete", "pin=1,key=newer")
    case.equal(last("DeleteVolume")[0], {"user": "joe", "key": "newer", "pin": "1"})


base = case.directory()
requests = base + "/requests"
with open(requests, "w", encoding="ascii"):
    os.chmod(base, 0o777)
    os.chmod(requests, 0o666)
with api.Node() as node:
    script = 'exec %s "$${CSI_ENDPOINT#unix://}" requests=%s' % (os.path.join(build_dir(), "tests", "csi_bad"), requests)
    node.register(api.job("plugin", "/bin/sh", ["-c", script], CSIPluginConfig={"ID": "p", "Type": "monolith", "MountDir": "/csi"}))
    case.until(lambda: [p["ControllersHealthy"] for p in node.ask("/v1/plugins", type="csi")] == [1], 20, "a healthy plugin")
    node.do("PUT", "/v1/volume/csi/v/create", {"Volumes": [{
        "ID": "v", "Name": "v", "PluginID": "p", "Parameters": {"kind": "slow"}, "Secrets": {"user": "joe", "key": "old"},
        "RequestedCapabilities": [MODE]}]})
    case.run(globals())

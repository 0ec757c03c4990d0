#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Secrets and parameters of a request to a plugin's controller, beside those that the volume has."""
import os
import socket
import subprocess

from lib import api, binary, build_dir, case, csi

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


def test_the_command_gives_secrets_of_flags_and_files():
    path = case.write(base + "/secrets", "pin=1\nkey=a=b,c\n")
    node.drover("volume", "snapshot", "create", "-secret-file", path, "-secret", "pin=2", "-parameter", "depth=full", "v", "then")
    case.equal(last("CreateSnapshot"), ({"user": "joe", "key": "a=b,c", "pin": "2"}, {"depth": "full"}))
    node.drover("volume", "snapshot", "list", "-plugin", "p", "-secret=pin=3", "-secret", "key=4")
    case.equal(last("ListSnapshots")[0], {"pin": "3", "key": "4"})
    node.drover("volume", "snapshot", "delete", "-secret", "pin=5", "p", "then")
    case.equal(last("DeleteSnapshot")[0], {"pin": "5"})
    node.do("PUT", "/v1/volume/csi/w/create", {"Volumes": [{"ID": "w", "Name": "w", "PluginID": "p", "RequestedCapabilities": [MODE]}]})
    node.drover("volume", "delete", "-secret", "pin=6", "w")
    case.equal(last("DeleteVolume")[0], {"pin": "6"})


def test_the_command_never_shows_a_secret():
    for words, said in (
            (("-secret", "hushhush"), "-secret: a secret is not of the form KEY=VALUE"),
            (("-secret", "=hushhush"), "-secret: a secret is not of the form KEY=VALUE"),
            (("-secret-file", case.write(base + "/no", "hushhush\n")), base + "/no: a secret is not of the form KEY=VALUE"),
            (("-secret", "pin=hush,hush"), 'the secret "pin" cannot be sent with this request'),
            (("-secret", "pin=hushhush "), 'the secret "pin" cannot be sent with this request')):
        answer = node.drover("volume", "snapshot", "delete", *words, "p", "then", code=1)
        case.contains(answer.err, said)
        case.equal("hush" in answer.out + answer.err, False, answer.err)
    # Its arguments, as other users of the machine see them while it waits for the answer.
    with socket.socket(socket.AF_UNIX) as agent:
        agent.bind(base + "/agent")
        agent.listen()
        with subprocess.Popen([binary("drover"), "volume", "snapshot", "delete", "-address", "unix://" + base + "/agent", "-secret", "pin=hushhush",
                               "p", "then"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as command:
            client, _ = agent.accept()
            with client:
                case.contains(client.recv(65536), b"\r\nX-Nomad-CSI-Secrets: pin=hushhush\r\n")
                with open("/proc/%d/cmdline" % command.pid, "rb") as f:
                    case.equal(b"hush" in f.read(), False, "whether its arguments have the secret")
    case.equal("hush" in node.log(), False, "whether the log has it")


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

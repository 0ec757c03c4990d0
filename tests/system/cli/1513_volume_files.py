#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Volume files: HCL and JSON become the same request, problems name their lines, and the commands volume init and volume detach."""
import json
import os

from lib import case
from lib.fake_api import NODE, FakeApi

BASE = 'id = "v"\nname = "n"\ntype = "csi"\nplugin_id = "p"\n'
WHOLE = BASE + """
namespace    = "prod" # a comment
external_id  = "x-1"
snapshot_id  = "snap"
capacity_min = "10GiB"
capacity_max = "20G"

capability {
  access_mode     = "single-node-writer"
  attachment_mode = "file-system"
}
capability {
  access_mode = "single-node-reader-only"
}

mount_options {
  fs_type     = "ext4"
  mount_flags = ["ro", "noatime"]
}

topology_request {
  preferred {
    topology { segments { rack = "R1" } }
  }
  required {
    topology { segments { rack = "R1" } }
    topology { segments { rack = "R2", zone = "a" } }
  }
}

secrets {
  password = <<EOT
line "1"
EOT
}
parameters {
  text   = "${pvc.name}"
  number = 1.50
  yes    = true
}
parameters {
  more = 3
}
context = { a = "b" }
"""
WANTED = {
    "ID": "v", "Name": "n", "Namespace": "prod", "PluginID": "p", "ExternalID": "x-1", "SnapshotID": "snap",
    "RequestedCapacityMin": 10 << 30, "RequestedCapacityMax": 20 * 10**9,
    "RequestedCapabilities": [{"AccessMode": "single-node-writer", "AttachmentMode": "file-system"}, {"AccessMode": "single-node-reader-only"}],
    "MountOptions": {"FSType": "ext4", "MountFlags": ["ro", "noatime"]},
    "RequestedTopologies": {"Preferred": [{"Segments": {"rack": "R1"}}],
                            "Required": [{"Segments": {"rack": "R1"}}, {"Segments": {"rack": "R2", "zone": "a"}}]},
    "Secrets": {"password": 'line "1"\n'}, "Parameters": {"text": "${pvc.name}", "number": "1.5", "yes": "1", "more": "3"},
    "Context": {"a": "b"}}
SPEC = {
    "id": "v", "name": "n", "type": "csi", "plugin_id": "p", "namespace": "prod", "external_id": "x-1", "snapshot_id": "snap",
    "capacity_min": "10GiB", "capacity_max": 20 * 10**9,
    "capability": [{"access_mode": "single-node-writer", "attachment_mode": "file-system"}, {"access_mode": "single-node-reader-only"}],
    "mount_options": [{"fs_type": "ext4", "mount_flags": ["ro", "noatime"]}],
    "topology_request": {"preferred": {"topology": {"segments": {"rack": "R1"}}},
                         "required": {"topology": [{"segments": {"rack": "R1"}}, {"segments": {"rack": "R2", "zone": "a"}}]}},
    "secrets": [{"password": 'line "1"\n'}], "parameters": {"text": "${pvc.name}", "number": 1.5, "yes": True, "more": 3},
    "context": {"a": "b"}}


def ask(api, text, *flags, verb="register", code=0, stdin=False):
    """Runs the command with this file. Returns its Result and the volume that it has sent, or None."""
    path = case.write(base + "/volume.hcl", text)
    before = len(api.requests)
    r = api.drover("volume", verb, *flags, "-" if stdin else path, stdin=text.encode() if stdin else None)
    case.equal(r.code, code, "%s: %s%s" % (text, r.out, r.err))
    sent = api.requests[before:]
    return r, sent[0].body["Volumes"][0] if sent else None


def accepting():
    api = FakeApi()
    api.json("PUT", "/v1/volume/csi/v", {"Volumes": [], "Warnings": ""})
    api.json("PUT", "/v1/volume/csi/v/create", {"Volumes": [{"ID": "v", "ExternalID": "x"}], "Warnings": "take care"})
    return api


def test_hcl_and_json_become_the_same_request():
    with accepting() as api:
        for text in (WHOLE, json.dumps(SPEC)):
            for verb in ("register", "create"):
                case.equal(ask(api, text, verb=verb)[1], WANTED)
        r, sent = ask(api, WHOLE, stdin=True)
        case.equal((sent, r.out, r.err), (WANTED, 'Volume "v" is registered\n', ""))
        r, _ = ask(api, BASE, "-policy-override", verb="create")
        case.equal((api.requests[-1].body["PolicyOverride"], r.out), (True, 'Warnings: take care\nVolume "v" is created, external id x\n'))
        case.equal("PolicyOverride" in api.requests[0].body, False)


def test_sizes():
    sizes = {"1024": 1024, '"1024"': 1024, '"10Gi"': 10 << 30, '"10 gib"': 10 << 30, '"5k"': 5000, '"5 KB "': 5000, '"1.5T"': 1500 * 10**9,
             '"1,024"': 1024, '"3b"': 3, '"7EiB"': 7 << 60, '""': 0, "0": 0, "10.5": 10}
    with accepting() as api:
        for text, wanted in sizes.items():
            case.equal(ask(api, BASE + "capacity_min = %s\n" % text)[1]["RequestedCapacityMin"], wanted, text)
        for text in ('"x"', '"-1"', "-1", '"1e3"', "1e3", '"10GiBs"', '" 1G"', '"inf"', '"1.2.3"', '"9EiB"', "true", "[1]", '"' + "1" * 80 + '"'):
            r, sent = ask(api, BASE + "capacity_min = %s\n" % text, code=1)
            case.equal((sent, 'volume.hcl:5:16: capacity_min: expected a size such as "10GiB"' in r.err), (None, True), r.err)


def test_problems_name_their_line():
    with accepting() as api:
        for text, line, part in (
                ('plugin = "x"', 5, 'a volume has no "plugin": did you mean "plugin_id"?'),
                ("capability {\n  acces_mode = 1\n}", 6, 'a capability block has no "acces_mode": did you mean "access_mode"?'),
                ("mount_options {\n  fstype = 1\n}", 6, 'a mount_options block has no "fstype": did you mean "fs_type"?'),
                ("topology_request {\n  requird {}\n}", 6, 'did you mean "required"?'),
                ('topology_request {\n  required {\n    topology { segmnets { a = 1 } }\n  }\n}', 7, 'did you mean "segments"?'),
                ('mount_options {\n  mount_flags = "x"\n}', 6, "mount_flags: expected a list of strings, found a string"),
                ("secrets = 5", 5, "secrets: expected a block, found a number"), ("capability = [1]", 5, "capability: expected a block, found a number"),
                ("secrets {\n  a { b = 1 }\n}", 6, "a: expected a string, found a block or object"), ('id = "w"', 5, "id is set twice"),
                ('type = "host"', 5, "host volumes are not made by a command"), ('type = "disk"', 5, 'unknown type "disk"'),
                ('name "', 5, "expected"), ("capability {", 6, 'expected "}"')):
            r, sent = ask(api, BASE + text + "\n", code=1)
            case.equal((sent, r.out), (None, ""))
            case.contains(r.err, "drover: %s/volume.hcl:%d:" % (base, line))
            case.contains(r.err, part)
            case.contains(r.err, "volume.hcl has 1 error\n")
        r, _ = ask(api, 'idd = "v"\nplugins = 1\n', code=1)
        case.contains(r.err, 'did you mean "id"?')
        case.contains(r.err, "volume.hcl has 3 errors")
        case.contains(r.err, 'the file holds no volume: it has no "id"')
        case.contains(ask(api, '{"id": "v",\n "size": 1}', code=1)[0].err, ':2:2: a volume has no "size"')
        case.contains(ask(api, "", code=1)[0].err, "is empty")


def test_what_nomad_ignores_is_a_warning():
    one, two = ({"topology": {"segments": {"a": str(i)}}} for i in (1, 2))
    old = BASE + 'access_mode = "single-node-writer"\nattachment_mode = "file-system"\n'
    with accepting() as api:
        r, sent = ask(api, old)
        case.equal(sent, {"ID": "v", "Name": "n", "PluginID": "p"})
        case.equal(r.err.count("warning: "), 2, r.err)
        case.contains(r.err, "volume.hcl:5:1: warning: access_mode has no effect here, as for Nomad: it belongs into a capability block")
        r, sent = ask(api, json.dumps({"id": "v", "topology_request": {"required": [one, two]}}))
        case.equal(sent["RequestedTopologies"], {"Required": [{"Segments": {"a": "1"}}]})
        case.contains(r.err, "only the first required block counts")
        r, sent = ask(api, BASE + 'mount_options { fs_type = "a" }\nmount_options { fs_type = "b" }\n')
        case.equal(sent["MountOptions"], {"FSType": "a"})
        case.contains(r.err, "only the first mount_options block counts")


def test_init_writes_files_that_are_read():
    with FakeApi() as api:
        api.json("PUT", "/v1/volume/csi/database/create", {"Volumes": []})
        made = []
        for flags, name in (((), "a.hcl"), (("-json",), "a.json")):
            path = base + "/" + name
            case.contains(api.drover("volume", "init", *flags, path).out, path + " is written; `drover volume create")
            case.equal(api.drover("volume", "init", *flags, path).err, "drover: %s exists already\n" % path)
            r = api.drover("volume", "create", path)
            case.equal((r.code, r.err), (0, ""))
            made.append(api.requests[-1].body)
        case.equal(made[0], made[1])
        case.contains(api.drover("volume", "init", "-type", "host", base + "/h").err, 'no example of the type "host"')
        case.equal(os.path.exists(base + "/h"), False)
        for flag in ("-id", "-detach"):
            case.contains(api.drover("volume", "create", flag, base + "/a.hcl").err, flag + " is not supported: ")
        here = os.getcwd()
        os.chdir(base)
        api.drover("volume", "init")
        api.drover("volume", "init", "-json")
        os.chdir(here)
        with open(base + "/a.hcl", encoding="utf-8") as a, open(base + "/volume.json", encoding="utf-8") as b:
            case.equal(("database" in a.read(), json.load(b)["id"]), (True, "database"))


def test_detach_finds_the_node():
    lost, other = "99999999-2222-3333-4444-555555555555", "99999998-2222-3333-4444-555555555555"
    with FakeApi() as api:
        api.json("GET", "/v1/volumes", [{"ID": "v", "Namespace": "prod"}])
        api.json("GET", "/v1/nodes", lambda r: [n for n in [{"ID": NODE, "Name": "here"}] if n["ID"].startswith(r.query.get("prefix", ""))])
        api.json("DELETE", "/v1/volume/csi/v/detach", None)
        api.json("GET", "/v1/volume/csi/v", {"ID": "v", "Allocations": [{"NodeID": lost}, {"NodeID": lost}, {"NodeID": other}]})
        for word, node in ((NODE, NODE), (NODE[:8], NODE), ("here", NODE), ("99999999", lost), (lost, lost)):
            r = api.drover("volume", "detach", "v", word)
            case.equal((r.code, r.out), (0, 'Volume "v" is detached from node %s\n' % node[:8]), r.err)
            case.equal(api.requests[-1].query, {"node": node, "namespace": "prod"})
        case.contains(api.drover("volume", "detach", "v", "9999999").err, "matches the nodes %s and %s" % (lost, other))
        case.contains(api.drover("volume", "detach", "v", "abcdef").err, 'no node "abcdef" exists, and no allocation of volume "v" is on one')
        case.contains(api.drover("volume", "detach", "w", NODE).err, 'no volume "w"')
        case.contains(api.drover("volume", "detach", "v").err, "usage: drover volume detach")


base = case.directory()
case.run(globals())

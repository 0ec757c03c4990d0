#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Commands for evaluations, job inspection, the node's eligibility and metadata, garbage collection and volume registration, with a real
agent and with valid and invalid arguments."""
import json

from lib import api, build_dir, case
from lib.fake_api import run_command


def drover(*words, code=0):
    r = run_command(words, env={"DROVER_ADDR": "unix://" + node.socket_path})
    case.equal(r.code, code, "drover %s: %s%s" % (" ".join(words), r.out, r.err))
    if code:
        case.equal((r.err.count("\n"), r.err.startswith("Traceback")), (1, False), r.err)
    return r.out + r.err


def write(name, text):
    path = "%s/%s" % (node.base, name)
    with open(path, "w", encoding="ascii") as f:
        f.write(text if isinstance(text, str) else json.dumps(text))
    return path


def test_evaluations_are_listed_and_shown():
    case.equal(drover("eval", "list"), "No evaluations\n")
    node.register(api.job("web"))
    alloc = node.wait_running("web")[0]
    out = drover("eval", "list")
    case.contains(out, alloc["EvalID"][:8])
    case.contains(out, "job-register")
    cpu = node.ask("/v1/node/" + node.ask("/v1/nodes")[0]["ID"])["NodeResources"]["Cpu"]["CpuShares"]
    node.register(api.job("big", Resources={"CPU": cpu, "MemoryMB": 20}))
    blocked = json.loads(drover("eval", "list", "-json", "-job", "big", "-status", "blocked"))
    case.equal([e["Status"] for e in blocked], ["blocked"])
    case.equal("web" in drover("eval", "list", "-job", "big"), False)
    out = drover("eval", "status", blocked[0]["ID"][:8])
    case.contains(out, "Not placed")
    case.contains(out, "cpu")
    out = drover("eval", "status", alloc["EvalID"])
    case.contains(out, alloc["ID"][:8])
    case.equal(json.loads(drover("eval", "status", "-json", alloc["EvalID"]))["ID"], alloc["EvalID"])
    case.contains(drover("eval", "status", "99999999", code=1), 'no evaluation "99999999" exists')
    case.contains(drover("eval", "status", code=1), "usage: drover eval status")
    node.purge("big")


def test_jobs_are_inspected_validated_and_evaluated():
    case.equal(json.loads(drover("job", "inspect", "web"))["Job"]["ID"], "web")
    case.contains(drover("job", "inspect", "none", code=1), 'no job "none" exists')
    case.contains(drover("job", "validate", write("good", api.job("new"))), "is valid")
    case.contains(drover("job", "validate", write("bad", api.job("new", driver="none")), code=1), 'unknown driver "none"')
    case.contains(drover("job", "validate", "/nowhere", code=1), "No such file")
    case.contains(drover("job", "validate", write("hcl", 'job "x" {\n}\n'), code=1), "the job has no group")
    node.register(api.job("short", "/bin/false", []))
    node.wait_allocs("short", [(0, "run", "failed")])
    drover("job", "eval", "-detach", "-force-reschedule", "short")
    case.until(lambda: len(node.allocs("short")) == 2, 20, "another allocation")
    case.contains(drover("job", "eval", "web"), 'finished with status "complete"')
    case.contains(drover("job", "eval", "none", code=1), 'no job "none" exists')
    node.purge("short")


def test_the_eligibility_of_the_node_is_changed():
    case.contains(drover("node", "eligibility", "-disable"), "takes no new allocations")
    case.contains(drover("node", "status", "-self"), "ineligible")
    case.equal(drover("node", "eligibility", "-enable", "-self").endswith(" takes allocations\n"), True)
    name = node.ask("/v1/nodes")[0]["Name"]
    drover("node", "eligibility", "-enable", name)
    case.contains(drover("node", "eligibility", code=1), "either -enable or -disable")
    case.contains(drover("node", "eligibility", "-enable", "-disable", code=1), "either -enable or -disable")
    case.contains(drover("node", "eligibility", "-enable", "-self", name, code=1), "name two different nodes")
    case.contains(drover("node", "eligibility", "-enable", "elsewhere", code=1), 'no node "elsewhere" exists')


def test_metadata_of_the_node_is_read_and_changed():
    case.equal(drover("node", "meta", "read"), "No metadata\n")
    case.contains(drover("node", "meta", "apply", "rack=r1", "note=a=b"), "a=b")
    case.equal(json.loads(drover("node", "meta", "read", "-json"))["Meta"], {"rack": "r1", "note": "a=b"})
    case.equal("note" in drover("node", "meta", "apply", "-unset", "note"), False)
    for words, part in ((("write",), "see drover help node meta"), (("apply",), "nothing to change"),
                        (("apply", "rack"), "expected KEY=VALUE"), (("apply", "a b=c"), "invalid metadata key"),
                        (("read", "rack"), "usage: drover node meta read"), (("read", "-node-id", "elsewhere"), 'no node "elsewhere" exists')):
        case.contains(drover("node", "meta", *words, code=1), part)


def test_ended_jobs_are_garbage_collected():
    batch = api.job("once", "/bin/true", [])
    batch["Job"]["Type"] = "batch"
    node.register(batch)
    node.wait_allocs("once", [(0, "run", "complete")])
    case.until(lambda: node.ask("/v1/job/once")["Status"] == "dead", 60, "its end")
    drover("system", "gc")
    case.contains(drover("job", "status", "once", code=1), 'no job "once" exists')
    node.wait_running("web")
    case.contains(drover("system", "gc", "now", code=1), "usage: drover system gc")


def test_existing_volumes_are_registered_and_deregistered():
    volume = {"ID": "old", "Name": "old", "ExternalID": "x-1", "PluginID": "p", "RequestedCapabilities": [
        {"AccessMode": "single-node-writer", "AttachmentMode": "file-system"}]}
    case.contains(drover("volume", "register", write("volume", volume), code=1), 'plugin "p" does not run on this node')
    node.register(api.job("plugin", "/bin/sh", ["-c", 'exec %s/tests/csi_bad "$${CSI_ENDPOINT#unix://}"' % build_dir()], CSIPluginConfig={
        "ID": "p", "Type": "monolith", "MountDir": "/csi"}))
    case.until(lambda: node.request("GET", "/v1/plugin/csi/p").status == 200, 30, "the plugin")
    case.contains(drover("volume", "register", write("volume", volume)), 'Volume "old" is registered')
    case.contains(drover("volume", "status", "old"), "x-1")
    case.contains(drover("volume", "deregister", "ol", code=1), "-yes")
    case.contains(drover("volume", "deregister", "-yes", "ol"), 'Volume "old" is deregistered')
    case.contains(drover("volume", "deregister", "old", code=1), 'no volume "old" exists')
    case.contains(drover("volume", "register", write("none", {"Volumes": [{"Name": "x"}]}), code=1), "no id")


with api.Node() as node:
    case.run(globals())

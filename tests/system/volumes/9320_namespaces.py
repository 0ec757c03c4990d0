#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two namespaces with volumes of one id: neither has anything to do with the other's data, claims or places on this machine."""
from lib import case, volumes


def create(node, namespace, name):
    volume = {"ID": name, "Name": "%s-in-%s" % (name, namespace), "PluginID": "local", "RequestedCapacityMin": 1 << 20,
              "Namespace": namespace,
              "RequestedCapabilities": [{"AccessMode": "single-node-writer", "AttachmentMode": "file-system"}]}
    node.do("PUT", "/v1/volume/csi/%s/create?namespace=%s" % (name, namespace), {"Volumes": [volume]})


def start(node, namespace, volume, script):
    """A job of that namespace with the namespace's name, running; its alloc."""
    made = volumes.job(namespace, volume, script + "; echo end; exec sleep 1000")
    made["Job"]["Namespace"] = namespace
    node.do("POST", "/v1/jobs?namespace=" + namespace, made)

    def running():
        found = node.ask("/v1/job/%s/allocations" % namespace, namespace=namespace)
        return [a for a in found if a["ClientStatus"] == "running"]
    alloc = case.until(running, 60, "the job of " + namespace)[0]
    node.wait_said(alloc, b"end\n")
    return alloc


def remove(node, namespace):
    node.do("DELETE", "/v1/job/%s?purge=true&namespace=%s" % (namespace, namespace))
    case.until(lambda: not [a for a in node.ask("/v1/allocations", namespace=namespace) if a["JobID"] == namespace], 60, "the end of " + namespace)


def test_volumes_of_one_id_are_not_one_volume():
    with volumes.Node() as node:
        node.start_plugin()
        for namespace in ("default", "blue"):
            create(node, namespace, "v")
        # Both have it at once, though each has one writer: neither claim is the other's.
        for namespace in ("default", "blue"):
            start(node, namespace, "v", "ls /data; echo %s > /data/who" % namespace)
        for namespace in ("default", "blue"):
            alloc = node.ask("/v1/job/%s/allocations" % namespace, namespace=namespace)[0]
            case.equal(node.logs(alloc), b"end\n", "what lay in the volume of " + namespace)
            claims = node.ask("/v1/volume/csi/v", namespace=namespace)["WriteAllocs"]
            case.equal(sorted(claims), [alloc["ID"]], "who writes to the volume of " + namespace)
        # What only one of them has is not there for the other: to see, to take or to delete.
        create(node, "blue", "only")
        node.refused(404, "", "GET", "/v1/volume/csi/only")
        node.refused(404, "", "DELETE", "/v1/volume/csi/only/delete")
        answer = node.request("POST", "/v1/jobs", volumes.job("thief", "only", "ls /data"))
        if answer.status == 200:
            evaluation = node.wait_evaluation(answer.json["EvalID"])
            case.contains(str(evaluation["FailedTGAllocs"]["g"]["ConstraintFiltered"]), "only")
            node.purge("thief")
        else:
            case.equal(answer.status, 400, answer.text)
        case.equal([v["ID"] for v in node.ask("/v1/volumes", type="csi")], ["v"])
        for namespace in ("default", "blue"):
            remove(node, namespace)
        start(node, "blue", "v", "cat /data/who")
        alloc = node.ask("/v1/job/blue/allocations", namespace="blue")[0]
        case.equal(node.logs(alloc), b"blue\nend\n", "what it finds again")
        remove(node, "blue")
        node.purge("csi-local")


case.run(globals())

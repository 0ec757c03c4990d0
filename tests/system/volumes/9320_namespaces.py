#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two namespaces with volumes of the same id: their data, claims and directories on this machine are separate."""
from lib import case, volumes


def create(node, namespace, name):
    volume = {"ID": name, "Name": "%s-in-%s" % (name, namespace), "PluginID": "local", "RequestedCapacityMin": 1 << 20,
              "Namespace": namespace,
              "RequestedCapabilities": [{"AccessMode": "single-node-writer", "AttachmentMode": "file-system"}]}
    node.do("PUT", "/v1/volume/csi/%s/create?namespace=%s" % (name, namespace), {"Volumes": [volume]})


def start(node, namespace, volume, script):
    """Runs a job in that namespace that has the namespace's name. Returns its alloc."""
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


def test_volumes_of_the_same_id_in_two_namespaces_are_separate():
    with volumes.Node() as node:
        node.start_plugin()
        node.do("PUT", "/v1/namespaces", {"Name": "blue"})
        for namespace in ("default", "blue"):
            create(node, namespace, "v")
        # Both are in use at once, although each permits one writer: their claims are separate.
        for namespace in ("default", "blue"):
            start(node, namespace, "v", "ls /data; echo %s > /data/who" % namespace)
        for namespace in ("default", "blue"):
            alloc = node.ask("/v1/job/%s/allocations" % namespace, namespace=namespace)[0]
            case.equal(node.logs(alloc), b"end\n", "data in the volume of " + namespace)
            claims = node.ask("/v1/volume/csi/v", namespace=namespace)["WriteAllocs"]
            case.equal(sorted(claims), [alloc["ID"]], "writers of the volume of " + namespace)
        # A volume of one namespace cannot be seen, used or deleted in the other.
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
        case.equal(node.logs(alloc), b"blue\nend\n", "data that is kept")
        remove(node, "blue")
        node.purge("csi-local")


case.run(globals())

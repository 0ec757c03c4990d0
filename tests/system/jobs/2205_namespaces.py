#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Namespaces of the embedded server: they are made, changed and deleted, survive a restart, and separate jobs of the same id; and what a
state.db without them becomes."""
import sqlite3

from lib import api, case, told


def named(name, namespace, **more):
    made = api.job(name, **more)
    made["Job"]["Namespace"] = namespace
    return made


def names():
    return [n["Name"] for n in node.ask("/v1/namespaces")]


def test_a_namespace_is_made_changed_and_kept():
    case.equal(names(), ["default"])
    node.do("PUT", "/v1/namespace", {"Name": "prod", "Description": "d", "Meta": {"owner": "ops"}})
    first = node.ask("/v1/namespace/prod")
    case.equal((first["Description"], first["Meta"]), ("d", {"owner": "ops"}))
    node.do("POST", "/v1/namespaces", {"Name": "prod", "Description": "e"})
    second = node.ask("/v1/namespace/prod")
    case.equal((second["Description"], second["Meta"] or {}, second["CreateIndex"]), ("e", {}, first["CreateIndex"]))
    case.equal(second["ModifyIndex"] > first["ModifyIndex"], True)
    node.kill("supervisor")
    case.equal((names(), node.ask("/v1/namespace/prod")), (["default", "prod"], second))


def test_invalid_namespaces_are_refused():
    for body, part in (({}, "1 to 128 letters"), ({"Name": "a/b"}, "1 to 128 letters"), ({"Name": "a_b"}, "1 to 128 letters"),
                       ({"Name": "a", "Description": "x" * 257}, "longer than 256"), ({"Name": "a", "Quota": "q"}, "no quotas"),
                       ({"Name": "a", "NodePoolConfiguration": {"Default": "x"}}, "no node pools")):
        node.refused(400, part, "PUT", "/v1/namespace", body)
    node.refused(400, "does not match", "PUT", "/v1/namespace/other", {"Name": "a"})
    case.equal(names(), ["default", "prod"])


def test_jobs_of_the_same_id_are_separate():
    node.refused(400, 'job "web" is in nonexistent namespace "none"', "POST", "/v1/jobs", named("web", "none"))
    node.refused(400, "nonexistent namespace", "PUT", "/v1/job/web/plan", named("web", "none"))
    node.refused(400, 'nonexistent namespace "none"', "PUT", "/v1/volume/csi/v", {"Volumes": [{
        "ID": "v", "Namespace": "none", "Name": "v", "ExternalID": "x", "PluginID": "p", "RequestedCapabilities": [
            {"AccessMode": "single-node-writer", "AttachmentMode": "file-system"}]}]})
    node.register(named("web", "prod", count=2))
    node.register(api.job("web"))
    node.wait_running("web")

    def allocs(namespace):
        return sorted(a["Namespace"] for a in node.ask("/v1/job/web/allocations", namespace=namespace))
    case.equal((allocs("prod"), allocs("default")), (["prod", "prod"], ["default"]))
    node.do("DELETE", "/v1/job/web?purge=true")
    case.until(lambda: node.ask("/v1/allocations") == [], 30, "the allocs of the default namespace to be removed")
    case.equal((allocs("prod"), len(node.ask("/v1/job/web/evaluations", namespace="prod"))), (["prod", "prod"], 1))
    case.equal([j["Namespace"] for j in node.ask("/v1/jobs", namespace="*")], ["prod"])


def test_a_namespace_with_jobs_or_volumes_is_not_deleted():
    node.refused(409, "default namespace", "DELETE", "/v1/namespace/default")
    node.refused(404, "Namespace not found", "DELETE", "/v1/namespace/none")
    node.refused(409, 'a job that is not dead: "web"', "DELETE", "/v1/namespace/prod")
    node.do("DELETE", "/v1/job/web?namespace=prod")
    case.until(lambda: node.ask("/v1/job/web", namespace="prod")["Status"] == "dead", 30, "the job to end")
    with told.plain(node, "p"):
        node.do("PUT", "/v1/volume/csi/v?namespace=prod", told.volume("v", "p"))
    node.refused(409, 'a volume: "v"', "DELETE", "/v1/namespace/prod")
    node.do("DELETE", "/v1/volume/csi/v?namespace=prod")
    node.do("DELETE", "/v1/namespace/prod")
    case.equal(names(), ["default"])
    case.until(lambda: node.ask("/v1/jobs", namespace="*") == [], 30, "its dead job to be forgotten")
    node.kill("supervisor")
    case.equal(names(), ["default"])


def test_drivers_and_network_modes_of_a_namespace():
    node.do("PUT", "/v1/namespace", {"Name": "few", "Capabilities": {"EnabledTaskDrivers": ["exec"]}})
    node.refused(400, 'namespace "few" does not permit the driver raw_exec', "POST", "/v1/jobs", named("a", "few"))
    node.do("PUT", "/v1/namespace", {"Name": "few", "Capabilities": {"DisabledTaskDrivers": ["exec"], "DisabledNetworkModes": ["host"]}})
    node.refused(400, "does not permit the network mode host", "POST", "/v1/jobs", named("a", "few", group={"Networks": [{"Mode": "host"}]}))
    node.register(named("a", "few", count=0))
    node.do("DELETE", "/v1/job/a?namespace=few&purge=true")
    node.do("DELETE", "/v1/namespace/few")


def test_a_database_without_namespaces_gets_those_of_its_jobs():
    node.do("PUT", "/v1/namespace", {"Name": "old"})
    node.register(named("kept", "old", count=0))
    node.stop()
    db = sqlite3.connect(node.data + "/state/state.db")
    case.equal(db.execute("DELETE FROM meta WHERE key GLOB 'local_namespace/*'").rowcount, 1)
    db.commit()
    db.close()
    node.start()
    node.wait_ready()
    case.equal(names(), ["default", "old"])
    case.equal(node.ask("/v1/job/kept", namespace="old")["ID"], "kept")
    node.do("DELETE", "/v1/job/kept?namespace=old&purge=true")
    node.kill("supervisor")
    case.equal(names(), ["default", "old"])


with api.Node() as node:
    case.run(globals())

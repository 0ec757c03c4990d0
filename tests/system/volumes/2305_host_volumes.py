#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Host volumes: one for each alloc of a group (per_alloc), read-only ones, and requests that cannot be satisfied."""
import os

from lib import api, case, cluster

MARK = "echo $NOMAD_ALLOC_INDEX >> /d/log; cat /d/log; echo end; exec sleep 1000"


class Places:
    """Makes directories on the host. Returns the configuration with the volumes data[0], data[1], and fixed, which is read-only."""

    def __init__(self):
        self.top = case.directory()
        lines = []
        for name, more in (("data[0]", ""), ("data[1]", ""), ("fixed", "\n read_only = true")):
            path = self.path(name)
            os.mkdir(path)
            os.chmod(path, 0o777)
            lines.append('host_volume "%s" {\n path = "%s"%s\n}' % (name, path, more))
        self.client = "\n".join(lines) + "\n"
        with open(self.path("fixed") + "/log", "w", encoding="ascii") as f:
            f.write("of the host\n")
        os.chmod(self.path("fixed") + "/log", 0o666)
        self.config = self.top + "/volumes.hcl"
        with open(self.config, "w", encoding="ascii") as f:
            f.write("client {\n%s}\n" % self.client)
        os.chmod(self.config, 0o600)

    def path(self, name):
        return "%s/%s" % (self.top, name.strip("]").replace("[", "-"))

    def log(self, name):
        with open(self.path(name) + "/log", encoding="ascii") as f:
            return f.read()


def job(name, source, script=MARK, count=1, mount=None, **request):
    return api.job(name, "/bin/sh", ["-c", script], count=count, driver="exec", VolumeMounts=[
        {"Volume": "v", "Destination": "/d", **(mount or {})}], group={"Volumes": {"v": {
            "Name": "v", "Type": "host", "Source": source, **request}}})


def filtered(node, answer):
    return node.wait_evaluation(answer["EvalID"], seconds=60)["FailedTGAllocs"]["g"]["ConstraintFiltered"]


def test_each_alloc_has_its_own_volume_and_its_replacement_gets_it_again():
    places = Places()
    with api.Node(["-config", places.config]) as node:
        made = job("own", "data", count=2, PerAlloc=True)
        node.register(made)
        for alloc in node.wait_running("own", 2, 60):
            node.wait_said(alloc, b"end\n")
        case.equal([places.log("data[%d]" % i) for i in (0, 1)], ["0\n", "1\n"])
        first = [a for a in node.allocs("own") if a["Name"] == "own.g[1]"][0]
        node.do("PUT", "/v1/allocation/%s/stop" % first["ID"])
        case.until(lambda: [a for a in node.allocs("own") if a["Name"] == "own.g[1]" and a["ClientStatus"] == "running" and
                            a["ID"] != first["ID"]], 60, "its replacement")
        case.until(lambda: places.log("data[1]") == "1\n1\n", 60, "the data that it writes")
        case.equal(places.log("data[0]"), "0\n", "data of the other alloc")
        # No volume exists for a third alloc.
        made["Job"]["TaskGroups"][0]["Count"] = 3
        case.equal(filtered(node, node.register(made)), {"missing host volume data[2]": 1})
        case.equal(len(node.wait_running("own", 2, 60)), 2)
        # Nor does one without an index.
        case.equal(filtered(node, node.register(job("all", "data"))), {"missing host volume data": 1})


def test_a_read_only_volume_cannot_be_written():
    places = Places()
    look = "cat /d/log; echo more >> /d/log || echo refused; echo end; exec sleep 1000"
    with api.Node(["-config", places.config]) as node:
        case.equal(filtered(node, node.register(job("writer", "fixed"))), {"host volume fixed is read-only": 1})
        for name, source, more in (("reader", "fixed", {"ReadOnly": True}), ("one", "data[0]", {"ReadOnly": True}),
                                   ("two", "data[0]", {"mount": {"ReadOnly": True}})):
            node.register(job(name, source, look, **more))
            alloc = node.wait_running(name, seconds=60)[0]
            node.wait_said(alloc, b"end\n")
            case.contains(node.logs(alloc), b"refused\n", name)
            case.contains(node.logs(alloc, kind="stderr"), b"Read-only file system", name)
        case.equal((places.log("fixed"), os.listdir(places.path("data[0]"))), ("of the host\n", []))


def test_modes_of_a_request_are_accepted_warned_of_or_refused():
    places = Places()
    with api.Node(["-config", places.config]) as node:
        for access, attachment, more in (("single-node-writer", "file-system", {}), ("single-node-multi-writer", "", {}),
                                         ("single-node-single-writer", "file-system", {}), ("single-node-reader-only", "file-system", {"ReadOnly": True})):
            answer = node.register(job("modes", "data[0]", AccessMode=access, AttachmentMode=attachment, **more))
            warning = 'volume "v": access_mode single-node-single-writer is not enforced for host volumes of the configuration'
            case.equal(warning in (answer["Warnings"] or ""), access == "single-node-single-writer", access)
            node.wait_said(node.wait_running("modes", seconds=60)[0], b"end\n")
            node.purge("modes")
        for access, attachment, sentence in (
                ("single-node-reader-only", "", "access_mode single-node-reader-only needs read_only = true"),
                ("multi-node-single-writer", "", "access_mode multi-node-single-writer is only for csi volumes"),
                ("", "block-device", 'a host volume is a directory: attachment_mode must be "file-system"')):
            node.refused(400, sentence, "POST", "/v1/jobs", job("modes", "data[0]", AccessMode=access, AttachmentMode=attachment))
        for mount, sentence in (({"PropagationMode": "host-to-task"}, 'propagation_mode must be "private"'),
                                ({"SELinuxLabel": "z"}, "selinux_label must be empty: drover labels no files")):
            node.refused(400, "volume_mount: " + sentence, "POST", "/v1/jobs", job("mount", "data[0]", mount=mount))


def test_host_volumes_in_a_cluster():
    places = Places()
    with cluster.servers() as servers, cluster.node_of(servers, places.client) as node:
        me = servers.wait_node()["ID"]
        names = set(servers.node(me)["HostVolumes"])
        case.equal(names, {"data[0]", "data[1]", "fixed"})
        alloc = servers.run_job(job("own", "data", PerAlloc=True)["Job"], me)[0]
        servers.wait_alloc(alloc, ["running"], 60)
        case.until(lambda: places.log("data[0]") == "0\n" if os.path.exists(places.path("data[0]") + "/log") else False, 60,
                   "the data that it writes")
        # Also if a server places such an alloc.
        for name, source, more, sentence in (
                ("none", "none", {"PerAlloc": True}, 'host volume "none[0]" is not configured on this node'),
                ("writer", "fixed", {}, 'host volume "fixed" is read-only')):
            found = servers.wait_alloc(servers.run_job(job(name, source, **more)["Job"], me)[0], ["failed"], 60)
            case.contains("\n".join(e["DisplayMessage"] for e in found["TaskStates"]["t"]["Events"]), sentence)
        case.equal(places.log("fixed"), "of the host\n")
        assert node.processes()


case.run(globals())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# takes: 30
"""Templates in a cluster: what they show comes from servers, by blocking queries with the token of the task."""
import base64
import json
import os

from lib import case
from lib.cluster import displays, job, node_of, servers as cluster

SECONDS = 30  # for operations that take milliseconds on an idle machine
QUICK = {"Wait": {"Min": 0, "Max": 0}, "Splay": 0, "ChangeMode": "signal", "ChangeSignal": "SIGHUP"}
SHOW = "trap 'cat local/v; echo .' HUP; cat local/v; echo .; while :; do sleep 0.1; done"


def template(data, dest="local/v", **more):
    return {"EmbeddedTmpl": data, "DestPath": dest, **QUICK, **more}


def said(node, alloc, task="t"):
    path = "%s/logs/%s/%s.stdout.0" % (node.data, alloc, task)
    if not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8") as f:
        return f.read()


def wait_said(node, alloc, text):
    case.until(lambda: text in said(node, alloc), SECONDS, "%r in %r" % (text, said(node, alloc)))


def put(node, path, **items):
    """Writes a variable, as soon as the node has a server."""
    case.until(lambda: node.request("PUT", "/v1/var/" + path, {"Path": path, "Items": items}).status == 200, SECONDS, "a server")


def subject(token):
    part = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))["sub"]


def test_a_variable_is_waited_for_and_followed():
    with cluster() as servers, node_of(servers) as node:
        me = servers.wait_node()["ID"]
        text = "{{ with nomadVar \"nomad/jobs/follows\" }}{{ .x }}{{ end }}"
        alloc = servers.run_job(job("follows", "/bin/sh", ["-c", SHOW], Templates=[template(text)]), me)[0]
        need = "Missing: nomad.var.block(nomad/jobs/follows@default.global)"
        case.until(lambda: servers.alloc(alloc)["TaskStates"] and need in displays(servers.alloc(alloc)), SECONDS, "the event")
        put(node, "nomad/jobs/follows", x="1")
        wait_said(node, alloc, "1.")
        put(node, "nomad/jobs/follows", x="2")
        wait_said(node, alloc, "2.")
        calls = servers.calls("Variables.Read")
        case.equal({subject(c["args"]["AuthToken"]) for c in calls}, {"global:default:follows:g:t:default"}, "whose token asks")
        # Servers that are lost, and a killed agent, change nothing.
        node.replace_supervisor()
        put(node, "nomad/jobs/follows", x="3")
        wait_said(node, alloc, "3.")
        case.equal(said(node, alloc).count("2."), 1, "how often the second value was told")
        servers.stop_server(0)
        servers.start_server(0)
        put(node, "nomad/jobs/follows", x="4")
        wait_said(node, alloc, "4.")


def test_services_and_lists_of_variables():
    with cluster() as servers, node_of(servers) as node:
        me = servers.wait_node()["ID"]
        text = "<{{ range nomadService \"web\" }}{{ .Name }}{{ .Port }}{{ .Tags }}{{ end }}|{{ range nomadServices }}{{ .Name }} {{ end }}|" \
               "{{ range nomadVarList \"a\" }}{{ .Path }} {{ end }}>"
        alloc = servers.run_job(job("lists", "/bin/sh", ["-c", SHOW], Templates=[template(text)]), me)[0]
        wait_said(node, alloc, "<||>")
        put(node, "a/b", x="1")
        wait_said(node, alloc, "<||a/b >")
        web = job("web", "/bin/sleep", ["1000"], group={"Services": [{"Name": "web", "Provider": "nomad", "Tags": ["b", "a"], "PortLabel": "8080"},
                                                                      {"Name": "api", "Provider": "nomad", "PortLabel": "8081"}]})
        servers.run_job(web, me)
        wait_said(node, alloc, "<web8080[a b]|api web |a/b >")
        # A query waits at the servers: nothing is asked again while nothing changes.
        case.until(lambda: node.request("GET", "/v1/agent/self").status == 200, SECONDS, "the agent")
        for method in ("Variables.List", "ServiceRegistration.GetService", "ServiceRegistration.List"):
            calls = servers.calls(method)
            if len(calls) > 8:
                raise AssertionError("%s was called %d times" % (method, len(calls)))
            case.equal(calls[-1]["args"]["MinQueryIndex"] > 0, True, "the last call of %s blocks" % method)


case.run(globals())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# takes: 60
"""Templates in a cluster: what they show comes from servers, by blocking queries with the token of the task."""
import base64
import collections
import json
import os
import uuid

from lib import api, case
from lib.cluster import displays, job, node_of, servers as cluster

ACL = "acl { enabled = true }\n"
BOSS = str(uuid.uuid4())
READ_ALL = 'namespace "default" { variables { path "*" { capabilities = ["read"] } } }'
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


def waits(servers, path):
    """Returns the subjects of the tokens of the blocking queries for a variable."""
    return sorted(subject(c["args"]["AuthToken"]) for c in servers.unanswered("Variables.Read") if c["args"] and c["args"]["Path"] == path)


def test_tasks_with_the_same_rights_share_a_query():
    """And it goes on when the task ends whose token it had."""
    with cluster() as servers, node_of(servers) as node:
        me = servers.wait_node()["ID"]
        path, data = "nomad/jobs/shares", [template("{{ with nomadVar \"nomad/jobs/shares\" }}{{ .x }}{{ end }}")]
        subjects = ["global:default:%s:g:t:default" % name for name in ("other", "shares")]
        put(node, path, x="1")
        first, second = (servers.run_job(job("shares", "/bin/sh", ["-c", SHOW], Templates=data), me)[0] for _ in range(2))
        other = servers.run_job(job("other", "/bin/sh", ["-c", SHOW], Templates=data), me)[0]
        for alloc in (first, second, other):
            wait_said(node, alloc, "1.")
        case.until(lambda: waits(servers, path) == subjects, SECONDS, "a blocking query for each job")
        servers.stop_alloc(first)
        servers.wait_alloc(first, ["complete"])
        for value in ("2", "3"):
            put(node, path, x=value)
            for alloc in (second, other):
                wait_said(node, alloc, value + ".")
            case.until(lambda: waits(servers, path) == subjects, SECONDS, "a blocking query for each job")
        found = sorted(subject(c["args"]["AuthToken"]) for c in servers.calls("Variables.Read"))
        case.equal(found, [s for s in subjects for _ in range(3)], "queries that were answered, one for each value")


def test_a_task_gets_no_value_that_its_identity_may_no_longer_read():
    """Not even from an older allocation of its job, which keeps what it has read."""
    with cluster() as servers, node_of(servers, more=ACL) as node:
        me = servers.wait_node()["ID"]
        servers.add_token(BOSS, "management")
        servers.put_variable("foreign", {"x": "1"})
        servers.add_policy("grant", READ_ALL, job_id="revoked")
        made = job("revoked", "/bin/sh", ["-c", SHOW], Templates=[template("{{ with nomadVar \"foreign\" }}{{ .x }}{{ end }}")])
        old = servers.run_job(made, me)[0]
        wait_said(node, old, "1.")
        case.until(lambda: len(waits(servers, "foreign")) == 1, SECONDS, "the blocking query")
        servers.delete_policy("grant")
        before = servers.last_call()
        servers.put_variable("foreign", {"x": "2"})
        wait_said(node, old, "2.")
        case.until(lambda: any(c["error"] for c in servers.calls("Variables.Read", before)), SECONDS, "the refusal")
        new = servers.run_job(made, me)[0]
        need = "Missing: nomad.var.block(foreign@default.global)"
        case.until(lambda: servers.alloc(new)["TaskStates"] and need in displays(servers.alloc(new)), SECONDS, "the event")
        case.equal((said(node, new), said(node, old)), ("", "1.\n2.\n"), "what the tasks have")
        # It is the same value that it may read again.
        servers.add_policy("grant", READ_ALL, job_id="revoked")
        wait_said(node, new, "2.")


def test_many_values_are_followed_by_blocking_queries():
    with cluster() as servers, node_of(servers) as node:
        me = servers.wait_node()["ID"]
        paths = ["nomad/jobs/many/v%d" % i for i in range(700)]
        for path in paths:
            put(node, path, x="1")
        texts = ["{{ range loop %d %d }}{{ with nomadVar (print \"nomad/jobs/many/v\" .) }}{{ .x }}{{ end }}{{ end }}" % part for part in ((0, 350), (350, 700))]
        alloc = servers.run_job(job("many", "/bin/sh", ["-c", SHOW], Templates=[template(texts[0], "local/other"), template(texts[1])]), me)[0]
        wait_said(node, alloc, "1" * 350 + ".")
        case.until(lambda: servers.blocking("Variables.Read") == sorted(paths), SECONDS, "a blocking query for each value")
        before = len(servers.calls("Variables.Read"))
        put(node, paths[-1], x="2")
        wait_said(node, alloc, "1" * 349 + "2.")
        case.until(lambda: servers.blocking("Variables.Read") == sorted(paths), SECONDS, "a blocking query for each value again")
        case.equal(len(servers.calls("Variables.Read")), before + 1, "queries after one change")


def shown(node, alloc, task, dest):
    with open("%s/alloc/%s/%s/local/%s" % (node.data, alloc, task, dest), encoding="utf-8") as f:
        return f.read()


def test_a_job_with_more_values_than_there_are_blocking_queries_takes_none_from_others():
    """Its own values that have none are asked for again and again."""
    each, places = 460, 4096
    with cluster(grace=600) as servers, node_of(servers) as node:
        me = servers.wait_node()["ID"]
        for i in range(3 * each):
            servers.put_variable("nomad/jobs/many/v%d" % i, {"x": "1"})
        data = [template("{{ range loop %d %d }}{{ with nomadVar (print \"nomad/jobs/many/v\" .) }}{{ .x }}{{ end }}{{ end }}" % (n * each, n * each + each),
                         "local/v%d" % n, ChangeMode="noop") for n in range(3)]
        tasks = [api.task(name, "/bin/sleep", ["1000"], "raw_exec", Templates=data) for name in ("a", "b", "c")]
        many = servers.run_job(job("many", group={"Tasks": tasks}), me)[0]
        servers.wait_alloc(many, ["running"], 300)
        case.until(lambda: len(servers.blocking("Variables.Read")) == places, 300, "all blocking queries")
        asked = collections.Counter(servers.blocking("Variables.Read"))
        without = min(v for v in range(3 * each) if asked["nomad/jobs/many/v%d" % v] < len(tasks))
        put(node, "nomad/jobs/few", x="1")
        few = servers.run_job(job("few", Templates=[template("{{ with nomadVar \"nomad/jobs/few\" }}{{ .x }}{{ end }}", ChangeMode="noop")]), me)[0]
        servers.wait_alloc(few, ["running"])
        for value in ("2", "3"):
            case.until(lambda: "nomad/jobs/few" in servers.blocking("Variables.Read"), SECONDS, "the blocking query of the other job")
            put(node, "nomad/jobs/few", x=value)
            case.until(lambda: shown(node, few, "t", "v") == value, SECONDS, "the file of the other job")
        n, at = divmod(without, each)
        put(node, "nomad/jobs/many/v%d" % without, x="2")
        for name in ("a", "b", "c"):
            case.until(lambda name=name: shown(node, many, name, "v%d" % n)[at] == "2", SECONDS, "the file of task " + name)


case.run(globals())

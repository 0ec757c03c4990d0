#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The command and namespaces, with a real agent: jobs of all namespaces are listed and found, and each command uses the namespace of its
object."""
import json

from lib import api, case
from lib.fake_api import run_command


def drover(*words, code=0, **env):
    r = run_command(words, env={"DROVER_ADDR": "unix://" + node.socket_path, **env})
    case.equal(r.code, code, "drover %s: %s%s" % (" ".join(words), r.out, r.err))
    return r.out + r.err


def write(name, namespace=None, **more):
    made = api.job(name, **more)
    if namespace:
        made["Job"]["Namespace"] = namespace
    path = "%s/%s-%s.json" % (node.base, name, namespace)
    with open(path, "w", encoding="ascii") as f:
        json.dump(made, f)
    return path


def rows(text):
    return [line.split() for line in text.splitlines()]


def test_namespaces_are_made_listed_shown_and_deleted():
    case.contains(drover("namespace", "apply", "-description", "live", "-meta", "owner=ops", "prod"), 'Namespace "prod" is applied')
    drover("namespace", "apply", "-meta", "tier=1", "prod")
    case.equal(node.ask("/v1/namespace/prod")["Meta"], {"owner": "ops", "tier": "1"})
    case.equal(rows(drover("namespace", "list"))[1:], [["default", "Default", "shared", "namespace"], ["prod", "live"]])
    out = drover("namespace", "status", "prod")
    case.contains(out, "live")
    case.contains(out, "owner                = ops")
    case.equal(json.loads(drover("namespace", "status", "-json", "prod"))["Name"], "prod")
    path = node.base + "/few.json"
    with open(path, "w", encoding="ascii") as f:
        json.dump({"Name": "few", "Capabilities": {"EnabledTaskDrivers": ["exec"]}}, f)
    drover("namespace", "apply", path)
    case.contains(drover("namespace", "status", "few"), "Enabled Drivers      = exec")
    case.contains(drover("namespace", "delete", "few"), 'Namespace "few" is deleted')
    case.contains(drover("namespace", "status", "few", code=1), "Namespace not found")
    case.contains(drover("namespace", "apply", "-meta", "x", "prod", code=1), "KEY=VALUE")


def test_a_job_of_another_namespace_is_run_found_and_stopped():
    out = drover("job", "run", write("web", "prod"))
    case.contains(out, 'finished with status "complete"')
    case.equal("Namespace" in drover("job", "status", "-namespace", "default"), False)
    case.equal(rows(drover("job", "status"))[0][-1], "Namespace")
    case.equal([r[0] for r in rows(drover("job", "status", "-namespace", "prod"))[1:]], ["web"])
    alloc = node.ask("/v1/allocations", namespace="prod")[0]["ID"]
    case.contains(drover("alloc", "status"), alloc[:8])
    out = drover("alloc", "status", alloc[:8])
    case.contains(out, "Namespace            = prod")
    case.contains(drover("status"), alloc[:8])
    case.contains(drover("job", "status", "web"), "Namespace            = prod")
    case.contains(drover("job", "history", "web"), "0")
    case.contains(drover("alloc", "why", "web"), "run")
    drover("job", "scale", "web", "2")
    case.equal(len(wait_allocs_of("web", "prod", 2)), 2)
    case.contains(drover("alloc", "stop", alloc), 'finished with status "complete"')
    case.contains(drover("job", "status", "-namespace", "default", "web", code=1), 'no job "web" exists')
    case.contains(drover("job", "status", "web", code=1, NOMAD_NAMESPACE="default"), 'no job "web" exists')
    case.contains(drover("job", "status", "web", NOMAD_NAMESPACE="default", DROVER_NAMESPACE="prod"), "= prod")
    drover("job", "stop", "-purge", "web")
    case.until(lambda: node.ask("/v1/jobs", namespace="*") == [], 30, "the job to be removed")


def test_the_flag_chooses_the_namespace_of_a_new_job_and_between_two():
    drover("job", "run", "-namespace", "prod", write("two"))
    case.equal([j["Namespace"] for j in node.ask("/v1/jobs", namespace="*")], ["prod"])
    drover("namespace", "apply", "dev")
    drover("job", "run", write("two", "dev"))
    case.contains(drover("job", "stop", "two", code=1), "prefix of 2 jobs")
    drover("job", "run", write("two"))
    drover("job", "stop", "two")
    case.equal({j["Namespace"]: j["Status"] for j in node.ask("/v1/jobs", namespace="*")},
               {"default": "dead", "dev": "running", "prod": "running"})
    case.contains(drover("job", "run", write("two", "none"), code=1), "nonexistent namespace")
    case.contains(drover("namespace", "delete", "prod", code=1), "a job that is not dead")
    drover("job", "stop", "-namespace", "prod", "two")
    drover("namespace", "delete", "prod")
    drover("job", "stop", "-purge", "-namespace", "dev", "two")


def test_any_id_is_shown_and_any_request_is_sent():
    update = {"MaxParallel": 1, "HealthCheck": "task_states", "MinHealthyTime": 10**6, "HealthyDeadline": 10**10}
    node.register(api.job("any", group={"Update": dict(update, ProgressDeadline=2 * 10**10)}))
    alloc = node.wait_running("any")[0]
    deployment = node.ask("/v1/job/any/deployment")["ID"]
    me = node.ask("/v1/nodes")[0]["ID"]
    for word, part in (("any", "ID                   = any"), (alloc["ID"], "ID                   = " + alloc["ID"]),
                       (alloc["ID"][:8], "ID                   = " + alloc["ID"]),
                       (alloc["EvalID"], "job-register"), (deployment, deployment[:8]), (me, me)):
        case.contains(drover("status", word), part)
    case.contains(drover("status", "nothing", code=1), 'deployment, node, volume or plugin "nothing" exists')
    case.contains(drover("job", "allocs", "any"), alloc["ID"][:8])
    case.equal(json.loads(drover("job", "allocs", "-json", "any"))[0]["ID"], alloc["ID"])
    case.contains(drover("job", "deployments", "any"), deployment[:8])
    case.equal(json.loads(drover("operator", "api", "/v1/job/any"))["ID"], "any")
    case.contains(drover("operator", "api", "/v1/job/none", code=1), "job not found")
    case.contains(drover("operator", "api", "v1/jobs", code=1), "is not a path of the API")
    path = node.base + "/eval.json"
    with open(path, "w", encoding="ascii") as f:
        json.dump({"JobID": "any"}, f)
    case.contains(drover("operator", "api", "/v1/job/any/evaluate", path), "EvalID")
    case.contains(drover("operator", "api", "-X", "DELETE", "/v1/job/any?purge=true"), "EvalID")


def wait_allocs_of(name, namespace, n):
    def so():
        found = [a for a in node.ask("/v1/job/%s/allocations" % name, namespace=namespace) if a["ClientStatus"] == "running"]
        return len(found) == n and found
    return case.until(so, 30, "%d allocations" % n)


with api.Node() as node:
    case.run(globals())

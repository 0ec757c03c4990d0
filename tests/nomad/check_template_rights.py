#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""With ACLs, the same templates read the same variables and services on drover, in a cluster and alone, and on a client of the servers' own program:
those that the identity of their task may read by itself, and those that policies of its job, group or task add. For `make check-nomad NOMAD=path`.

    tests/nomad/isolated.py tests/nomad/check_template_rights.py PATH [test_…]…"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from lib import api, case  # noqa: E402
import alike  # noqa: E402
from alike import ALONE, THEIRS, WAITS, has, running, task  # noqa: E402
from real import older_than  # noqa: E402

LOOP = "while :; do cp $NOMAD_TASK_DIR/v new; cmp -s new old || { cat new; mv new old; }; sleep 0.1; done"
READ = '{{ with nomadVar "%s" }}{{ .x }} {{ end }}'
MINE = '{{ with nomadVar (print "nomad/jobs/" (env "NOMAD_JOB_ID") "%s") }}{{ .x }} {{ end }}'
EXISTS = '{{ nomadVarExists "%s" }} '
OWN_EXISTS = '{{ nomadVarExists (print "nomad/jobs/" (env "NOMAD_JOB_ID") "%s") }} '
LIST = '{{ range nomadVarList "%s" }}{{ .Path }} {{ end }}'
VARIABLES = (("app", "default"), ("app/sub", "default"), ("nomad/jobs", "default"), ("nomad/jobs/other", "default"), ("app", "prod"))
# Templates of a task to which no policy is attached.
ALONE_READS = {
    "own": MINE % "" + MINE % "/g" + MINE % "/g/t", "group": MINE % "/other", "own-exists": OWN_EXISTS % "/g/t", "exists-other": OWN_EXISTS % "/g/other",
    "task": MINE % "/g/other", "jobs": READ % "nomad/jobs", "other": READ % "nomad/jobs/other", "plain": READ % "app", "space": READ % "app@prod",
    "two": MINE % "" + READ % "app", "exists": EXISTS % "app", "exists-none": EXISTS % "none", "exists-space": EXISTS % "app@prod", "list": LIST % "nomad/jobs", "list-all": LIST % "",
    "list-app": LIST % "app", "list-space": LIST % "app@prod", "service": '{{ range nomadService "web" }}{{ .Name }} {{ .Port }} {{ end }}',
    "services": "{{ range nomadServices }}{{ .Name }} {{ end }}",
}


def rules(path, *capabilities, namespace="default"):
    return 'namespace "%s" {\n  variables {\n    path "%s" {\n      capabilities = [%s]\n    }\n  }\n}' % (
        namespace, path, ", ".join('"%s"' % c for c in capabilities))


# Templates of tasks with a policy: each with the rules of that policy, and the part of the job to which the policy is attached.
WITH_POLICIES = {
    "read": (READ % "app", rules("app", "read"), {}), "listed": (READ % "app", rules("app", "list"), {}), "written": (READ % "app", rules("app", "write"), {}),
    "destroyed": (READ % "app", rules("app", "destroy"), {}), "below": (READ % "app" + READ % "app/sub", rules("app/*", "read"), {}),
    "list-read": (LIST % "app", rules("app", "read"), {}), "list-listed": (LIST % "app", rules("app*", "list"), {}), "list-sub": (LIST % "", rules("app/*", "list"), {}),
    "space-read": (READ % "app@prod", rules("app", "read", namespace="prod"), {}), "space-star": (READ % "app@prod", rules("*", "read", namespace="*"), {}),
    "space-wrong": (READ % "app@prod", rules("app", "read"), {}), "list-prod": (LIST % "app@prod", rules("app", "list", namespace="prod"), {}),
    "of-group": (READ % "app", rules("app", "read"), {"Group": "g"}), "of-task": (READ % "app", rules("app", "read"), {"Group": "g", "Task": "t"}),
    "other-group": (READ % "app", rules("app", "read"), {"Group": "x"}), "other-task": (READ % "app", rules("app", "read"), {"Group": "g", "Task": "x"}),
    "exists-read": (EXISTS % "app" + EXISTS % "none", rules("*", "read"), {}), "exists-listed": (EXISTS % "app", rules("app", "list"), {}),
    "denied": (MINE % "", rules("nomad/jobs/*", "deny"), {}), "denied-star": (MINE % "" + LIST % "nomad/jobs", rules("*", "deny"), {}), "reader": (READ % "app", 'namespace "default" {\n  policy = "read"\n}', {}),
    "writer": (READ % "app", 'namespace "default" {\n  policy = "write"\n}', {}), "no-services": (ALONE_READS["service"], 'namespace "default" {\n  policy = "deny"\n}', {}),
    "services-only": (ALONE_READS["services"], 'namespace "default" {\n  capabilities = ["read-job"]\n}', {}),
}

# Clients of 1.6 take a variable that the task may not read as one that does not exist; all others wait for the permission.
FALSE_BEFORE_2 = ("exists-other", "exists", "exists-none", "exists-space", "exists-listed") if older_than(1, 7) else ()


def put(node, path, x, namespace="default"):
    both.servers[node].do("/v1/var/%s?namespace=%s" % (path, namespace), {"Path": path, "Namespace": namespace, "Items": {"x": x}})


def grant(name, text, part):
    """Gives the identities of a job a policy on each node. The names of policies are of one job."""
    for node in both.nodes:
        job = "%s-%s" % (name, node)
        both.servers[node].do("/v1/acl/policy/" + job, {"Name": job, "Rules": text, "JobACL": {"Namespace": "default", "JobID": job, **part}})


def revoke(name):
    for node in both.nodes:
        both.servers[node].request("DELETE", "/v1/acl/policy/%s-%s" % (name, node))


def start(name, text):
    for node in both.nodes:
        for below in ("", "/g", "/g/t", "/other", "/g/other"):
            put(node, "nomad/jobs/%s-%s%s" % (name, node, below), "mine" + below)
    both.run(name, [task("t", LOOP, Templates=[{"EmbeddedTmpl": text + "\n", "DestPath": "local/v", "Splay": 0, "Wait": {"Min": 0, "Max": 0}, "ChangeMode": "noop"}])])


def seen(alloc):
    """Returns the outputs of the task, without what names the job, or what it waits for."""
    if running(alloc):
        words = both.said(alloc).split(" ")
        return [w.replace(alloc["JobID"], "@job") for w in words if not w.startswith("nomad/jobs/") or alloc["JobID"] in w or w.strip() in dict(VARIABLES)]
    events = (alloc["TaskStates"] or {}).get("t", {}).get("Events") or ()
    return alloc["ClientStatus"], [e["DisplayMessage"].replace(alloc["JobID"], "@job") for e in events if e["Type"] == "Template"]


def settled(alloc):
    return running(alloc) and both.said(alloc).endswith("\n") or has("Template")(alloc)


def compare(names):
    odd = []
    for name in names:
        found = {n: seen(a) for n, a in both.until(name, settled, "be rendered or wait").items()}
        print("    %s: %s" % (name, found[THEIRS]))
        if name in FALSE_BEFORE_2:
            case.equal(found.pop(THEIRS), ["false", "\n"], name)
        first = next(iter(found.values()))
        odd += [(name, found)] if any(f != first for f in found.values()) else []
    print("    %d of %d templates are the same" % (len(names) - len(odd), len(names)))
    case.equal(odd, [], "templates that differ")


def test_what_a_task_reads_by_itself():
    for name, text in ALONE_READS.items():
        start(name, text)
    compare(ALONE_READS)
    both.purge(*ALONE_READS)


def test_what_policies_add():
    for name, (text, more, part) in WITH_POLICIES.items():
        grant(name, more, part)
        start(name, text)
    compare(WITH_POLICIES)
    both.purge(*WITH_POLICIES)
    for name in WITH_POLICIES:
        revoke(name)


def test_policies_that_come_change_and_go():
    """A client asks again and again for what it may not read, at last once a minute."""
    text, may, may_not = MINE % "" + READ % "app/sub", rules("app/*", "read"), rules("app/*", "list")
    outputs = {n: [] for n in both.nodes}

    def wrote(line):
        both.until("life", lambda a: running(a) and both.said(a).endswith(line + "\n"), "write " + line)
        for node, alloc in both.allocs("life").items():
            outputs[node] = both.said(alloc).split("\n")[:-1]

    def touch(x):
        for node in both.nodes:
            put(node, "nomad/jobs/life-" + node, x)
    start("life", text)
    both.until("life", has("Template"), "wait")
    grant("life", may, {})
    wrote("mine app/sub ")
    for i, forbid in enumerate((lambda: revoke("life"), lambda: grant("life", may_not, {}))):
        forbid()
        touch("mine-%d" % i)
        wrote("mine-%d %s " % (i, "app/sub" if i == 0 else "second-0"))
        # A query that waits at the servers has the rights of its beginning: it may still answer once.
        for node in both.apart():
            put(node, "app/sub", "first-%d" % i)
        for node in both.apart():
            put(node, "app/sub", "second-%d" % i)
        touch("again-%d" % i)
        both.until("life", lambda a, word="again-%d" % i: word in both.said(a), "write its own variable")
        grant("life", may, {})
        wrote("again-%d second-%d " % (i, i))
    print("    " + "\n    ".join("%s: %s" % item for item in outputs.items()))
    case.equal([line for line in outputs[ALONE] if "first-" in line], [], "values that are not permitted, alone")
    both.purge("life")
    revoke("life")


with alike.pair(alone=True, acl=True) as both:
    both.do_apart("/v1/namespace/prod", {"Name": "prod"})
    for at, space in VARIABLES:
        for where in both.apart():
            put(where, at, at, space)
    both.run_apart(lambda: api.job("web", group={"Tasks": [task("t", WAITS)], "Services": [{"Name": "web", "Provider": "nomad", "PortLabel": "8080"}]}))
    for where in both.apart():
        case.until(lambda n=where: both.servers[n].ask("/v1/service/web"), 60, "a service")
    case.run(globals())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# takes: 15
"""Constraints of a node alone: each operand is evaluated, also when the node's metadata changes, and those that depend on other allocs hold."""
from lib import api, case

HOST = {"Operand": "distinct_hosts"}


def target(left, operand, right=""):
    return {"LTarget": left, "Operand": operand, "RTarget": right}


def constrained(name, *constraints, count=1, group=False, **more):
    made = api.job(name, count=count, **more)
    (made["Job"]["TaskGroups"][0] if group else made["Job"])["Constraints"] = list(constraints)
    return made


def why_not(name):
    """Returns what filtered the node when the job was placed, of its blocked evaluation."""
    def blocked():
        evals = [e for e in node.ask("/v1/job/%s/evaluations" % name) if e["Status"] == "blocked"]
        return evals and evals[0]["FailedTGAllocs"]["g"]["ConstraintFiltered"]
    return case.until(blocked, 10, "the blocked evaluation of " + name)


def test_operands_that_hold():
    attributes = node.ask("/v1/node/" + node.ask("/v1/nodes")[0]["ID"])["Attributes"]
    release = attributes["kernel.version"]
    node.register(constrained("all", target("${attr.kernel.name}", "regexp", "^lin.x$"), target("${attr.kernel.version}", "is_set"),
                              target("${attr.kernel.version}", "semver", "> 0.0.1"), target("${attr.cpu.numcores}", ">=", "1"),
                              target("${attr.cpu.numcores}", "<", "100000"), target("${meta.none}", "is_not_set"),
                              target("${meta.none}", "!=", "x"), target("${node.datacenter}", "set_contains_any", "x, dc1"),
                              target("a,b", "set_contains", "b"), target("1.13.2", "version", "~> 1.12"),
                              target(release, "=", "${attr.kernel.version}")))
    node.wait_running("all")
    node.purge("all")


def test_operands_that_do_not_hold_are_named():
    for i, c in enumerate((target("${attr.kernel.name}", "regexp", "^win"), target("${attr.cpu.numcores}", ">", "99999"),
                           target("${meta.none}", "is_set"), target("${meta.none}", "version", ">= 1"),
                           target("${attr.kernel.name}", "set_contains", "linux,windows"))):
        name = "not-%d" % i
        node.register(constrained(name, c))
        case.equal(why_not(name), {"%(LTarget)s %(Operand)s %(RTarget)s" % c: 1})
        node.purge(name)


def test_a_change_of_the_node_places_the_job():
    node.register(constrained("waits", target("${meta.rack}", "regexp", "^r[0-9]$")))
    case.equal(why_not("waits"), {"${meta.rack} regexp ^r[0-9]$": 1})
    node.do("POST", "/v1/client/metadata", {"Meta": {"rack": "r7"}})
    node.wait_running("waits")
    node.purge("waits")


def test_distinct_hosts_permits_one_alloc():
    for name, group in (("of-job", False), ("of-group", True)):
        node.register(constrained(name, HOST, count=2, group=group))
        first = node.wait_running(name)[0]
        case.equal(why_not(name), {"distinct_hosts": 1})
        node.do("POST", "/v1/allocation/%s/stop" % first["ID"])
        case.until(lambda: [a["ID"] != first["ID"] for a in node.allocs(name) if a["ClientStatus"] == "running"] == [True], 20,
                   "one other alloc to run")
        node.purge(name)
    node.register(constrained("off", target("", "distinct_hosts", "false"), count=2))
    node.wait_running("off", 2)
    node.purge("off")


def test_the_end_of_an_alloc_permits_the_next():
    made = constrained("turns", HOST, count=3, command="/bin/sleep", args=("0.2",))
    made["Job"]["Type"] = "batch"
    node.register(made)
    case.until(lambda: [a["ClientStatus"] for a in node.allocs("turns")] == ["complete"] * 3, 20, "all three to run, one after the other")
    node.purge("turns")


def test_distinct_property_permits_so_many():
    node.register(constrained("property", target("${attr.kernel.name}", "distinct_property", "2"), count=3))
    node.wait_running("property", 2)
    case.equal(why_not("property"), {"distinct_property: ${attr.kernel.name}=linux used by 2 allocs": 1})
    plan = node.do("POST", "/v1/job/property/plan", constrained("property", target("${attr.kernel.name}", "distinct_property", "2"), count=5))
    case.equal(plan["FailedTGAllocs"]["g"]["CoalescedFailures"], 2)
    node.purge("property")
    node.register(constrained("missing", target("${meta.none}", "distinct_property")))
    case.equal(why_not("missing"), {'missing property "${meta.none}"': 1})
    node.purge("missing")


def test_faults_are_refused():
    for c, part in ((target("${attr.x}", "like", "y"), 'there is no operator "like"'), (target("", "=", "y"), "needs an attribute"),
                    (target("${attr.x}", "regexp", "("), 'operator "regexp"'), (target("${attr.x}", "version", "x"), "is not a range of versions"),
                    (target("${device.model}", "=", "y"), "devices")):
        node.refused(400, part, "POST", "/v1/jobs", constrained("bad", c))
    made = api.job("bad")
    made["Job"]["TaskGroups"][0]["Tasks"][0]["Constraints"] = [HOST]
    node.refused(400, "not for a task", "POST", "/v1/jobs", made)
    for name, bad, part in (("Affinities", {"LTarget": "${attr.x}", "RTarget": "y", "Operand": "=", "Weight": 0}, "weight"),
                            ("Affinities", {"LTarget": "${attr.x}", "RTarget": "y", "Operand": "is_set", "Weight": 1}, "no operator"),
                            ("Spreads", {"Attribute": "", "Weight": 50}, "the attribute is missing"),
                            ("Spreads", {"Attribute": "x", "Weight": 50, "SpreadTarget": [{"Value": "a", "Percent": 60}, {"Value": "b", "Percent": 60}]},
                             "more than 100")):
        made = api.job("bad")
        made["Job"][name] = [bad]
        node.refused(400, part, "POST", "/v1/jobs", made)


def test_affinities_and_spreads_without_a_weight_have_the_usual_one():
    made = api.job("weights")
    group = made["Job"]["TaskGroups"][0]
    for part in (made["Job"], group):
        part["Spreads"] = [{"Attribute": "${node.datacenter}", "Weight": None}, {"Attribute": "${meta.x}", "Weight": 7}]
    for part in (made["Job"], group, group["Tasks"][0]):
        part["Affinities"] = [{"LTarget": "${attr.x}", "RTarget": "y", "Operand": "=", "Weight": -50},
                              {"LTarget": "${attr.x}", "RTarget": "y", "Operand": "="}]
    made["Job"]["AllAtOnce"] = True
    node.register(made)
    node.wait_running("weights")
    found = node.ask("/v1/job/weights")
    group = found["TaskGroups"][0]
    for part in (found, group):
        case.equal([s["Weight"] for s in part["Spreads"]], [50, 7])
    for part in (found, group, group["Tasks"][0]):
        case.equal([a["Weight"] for a in part["Affinities"]], [-50, 50])
    node.purge("weights")


with api.Node() as node:
    case.run(globals())

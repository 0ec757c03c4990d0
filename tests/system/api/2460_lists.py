#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Options of lists: filters, pages, the reverse order, and invalid values."""
import urllib.parse

from lib import api, case, told

JOBS = ["a%d" % i for i in range(7)]


def get(path, **query):
    return node.request("GET", path + ("&" if "?" in path else "?") + urllib.parse.urlencode(query))


def pages(path, per_page, **query):
    """Returns all items, page by page, and the number on each page."""
    items, sizes, token = [], [], None
    while True:
        answer = get(path, per_page=per_page, **({"next_token": token} if token else {}), **query)
        case.equal(answer.status, 200, answer.text)
        items += answer.json
        sizes.append(len(answer.json))
        token = answer.headers["X-Nomad-NextToken"]
        if not token:
            return items, sizes


def ids(found):
    return [x["ID"] for x in found]


def test_each_list_can_be_filtered():
    me = node.ask("/v1/nodes")[0]["ID"]
    alloc, evaluation = node.allocs("a3")[0], node.ask("/v1/job/a3/evaluations")[0]
    for path, expression, wanted in (
            ("/v1/jobs", 'ID == "a3"', ["a3"]),
            ("/v1/jobs", 'ID matches "^a[12]$" and Status != "dead"', ["a1", "a2"]),
            ("/v1/jobs", 'Type == "batch"', []),
            ("/v1/jobs", 'Periodic is not nil', []),
            ("/v1/jobs", 'ParentID == "" and ParameterizedJob is nil and TaskGroups.0.Services is not empty', ["a3"]),
            ("/v1/allocations", 'Job.ID == "a3" and AllocatedResources.Tasks.t.Cpu.CpuShares == 20', [alloc["ID"]]),
            ("/v1/nodes", 'Attributes["kernel.name"] == "linux" and NodeResources.Cpu.CpuShares != 0', [me]),
            ("/v1/allocations", 'JobID == "a3" and ClientStatus == running', [alloc["ID"]]),
            ("/v1/allocations", 'TaskStates.t.State == "dead"', []),
            ("/v1/job/a3/allocations", 'TaskGroup == "none"', []),
            ("/v1/node/%s/allocations" % me, 'JobID == "a3"', [alloc["ID"]]),
            ("/v1/evaluations", 'JobID == "a3"', [evaluation["ID"]]),
            ("/v1/job/a3/evaluations", 'Status == "blocked"', []),
            ("/v1/evaluation/%s/allocations" % evaluation["ID"], 'JobID == "a3"', [alloc["ID"]]),
            ("/v1/deployments", 'JobID == "a3"', []),
            ("/v1/nodes", 'Status == "ready"', [me]),
            ("/v1/nodes", 'Drain == true', []),
            ("/v1/job/a3/deployments", 'JobID == "a3"', []),
            ("/v1/deployments", 'any TaskGroups as g { g == "g" }', []),
            ("/v1/nodes", 'any Attributes as k, v { k == "kernel.name" and v == "linux" }', [me]),
            ("/v1/nodes", 'all Attributes as k { k matches `^(?i:kernel)[.]` }', []),
            ("/v1/jobs", 'any TaskGroups as g { any g.Services as s { s.Name == "a3-svc" and any s.Tags as t { t == "blue" } } }', ["a3"]),
            ("/v1/volumes?type=csi", 'PluginID == "q"', ["v1"]),
            ("/v1/plugins?type=csi", 'ID == "none"', [])):
        answer = get(path, filter=expression)
        case.equal(answer.status, 200, path + ": " + answer.text)
        case.equal(sorted(ids(answer.json)), sorted(wanted), path + " with " + expression)


def test_services_can_be_filtered():
    one, none = get("/v1/services", filter='Namespace == "default"'), get("/v1/services", filter='Namespace == "x"')
    case.equal(([s["ServiceName"] for s in one.json[0]["Services"]], none.json), (["a3-svc", "other"], []))
    found = get("/v1/service/a3-svc", filter='JobID == "a3" and "blue" in Tags').json
    case.equal([s["ServiceName"] for s in found], ["a3-svc"])
    case.equal(get("/v1/service/a3-svc", filter='"red" in Tags').json, [])
    case.equal(get("/v1/services", prefix="ot").json[0]["Services"][0]["ServiceName"], "other")
    case.equal(get("/v1/services", prefix="none").json, [])


def test_pages_contain_every_item_once():
    for path, whole in (("/v1/jobs", JOBS), ("/v1/allocations", None), ("/v1/evaluations", None),
                        ("/v1/volumes?type=csi", ["v0", "v1", "v2"])):
        all_of_it = ids(node.request("GET", path).json)
        for size in (1, 2, 3, 100):
            found, sizes = pages(path, size)
            case.equal(sorted(ids(found)), sorted(all_of_it), "%s by %d" % (path, size))
            case.equal((max(sizes) <= size, set(sizes[:-1]) <= {size}), (True, True), "%s: pages of %s" % (path, sizes))
            if whole:
                case.equal(ids(found), whole, path)
            else:
                made = [x["CreateIndex"] for x in found]
                case.equal(made, sorted(made), path + ": oldest first")
            back, _ = pages(path, size, reverse="true")
            case.equal(ids(back), ids(found)[::-1], path + ": in reverse")


def test_pages_of_objects_that_have_only_a_name():
    node.do("PUT", "/v1/namespace", {"Name": "other"})
    with told.plain(node, "p"):
        node.do("PUT", "/v1/volume/csi/v9?namespace=other", told.volume("v9", "p"))
    found, sizes = pages("/v1/namespaces", 1)
    case.equal(([x["Name"] for x in found], sizes), (["default", "other"], [1, 1]))


def test_pages_of_a_filtered_list():
    found, sizes = pages("/v1/jobs", 2, filter='ID != "a0" and ID != "a4"')
    case.equal((ids(found), sizes), (["a1", "a2", "a3", "a5", "a6"], [2, 2, 1]))


def test_pages_of_items_with_long_similar_ids():
    long = ["b" * 254 + x for x in "01"]
    for name in long:
        node.register(api.job(name))
    first = get("/v1/jobs", prefix="bb", per_page=1)
    token = first.headers["X-Nomad-NextToken"]
    second = get("/v1/jobs", prefix="bb", per_page=1, next_token=token)
    case.equal((ids(first.json), token, ids(second.json)), (long[:1], "default." + long[1], long[1:]))
    for name in long:
        node.purge(name)


def test_a_page_whose_first_item_was_removed():
    node.register(api.job("a35"))
    token = get("/v1/jobs", per_page=4).headers["X-Nomad-NextToken"]
    node.purge("a35")
    case.equal(ids(get("/v1/jobs", per_page=2, next_token=token).json), ["a4", "a5"])


def test_invalid_options_are_refused():
    for query, part in ((dict(filter="Status =="), "a value was expected"),
                        (dict(filter='Nothing == "x"'), 'no field "Nothing"'),
                        (dict(filter="(" * 200), "too deeply"), (dict(filter="A" * 5000), "longer than"),
                        (dict(per_page="many"), 'per_page must be a number, not "many"'),
                        (dict(per_page=-1), "per_page must be a number"), (dict(reverse="perhaps"), "reverse")):
        answer = get("/v1/jobs", **query)
        case.equal((answer.status, part in answer.text), (400, True), "%s: %s" % (query, answer.text))
        case.equal(answer.text.count("\n"), 0, "whether the error is one line")
    node.refused(400, "not a token of this list", "GET", "/v1/allocations?per_page=2&next_token=x")
    case.equal(ids(get("/v1/jobs", nothing_known="x").json), JOBS, "status with an unknown parameter, which is ignored")


def test_a_filtered_list_supports_blocking_queries():
    index = int(node.request("GET", "/v1/jobs").headers["X-Nomad-Index"])
    answer = get("/v1/jobs", filter='ID == "a1"', index=index + 1000000, wait="10ms")
    case.equal(ids(answer.json), ["a1"])


with api.Node() as node:
    for job in JOBS:
        made = api.job(job)
        if job == "a3":
            made["Job"]["TaskGroups"][0]["Services"] = [{"Name": "a3-svc", "Provider": "nomad", "Tags": ["blue"]},
                                                        {"Name": "other", "Provider": "nomad"}]
        node.register(made)
        node.wait_running(job)
    case.until(lambda: node.ask("/v1/services"), 20, "services")
    with told.plain(node, "p", "q"):
        for i in range(3):
            node.do("PUT", "/v1/volume/csi/v%d" % i, told.volume("v%d" % i, "q" if i == 1 else "p", Name="v"))
    case.run(globals())

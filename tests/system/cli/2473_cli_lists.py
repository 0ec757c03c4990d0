#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lists of the command: filters, pages, ids alone."""
import json

from lib import api, case
from lib.fake_api import FakeApi, run_command


def drover(*words, code=0):
    r = run_command(words, env={"DROVER_ADDR": "unix://" + node.socket_path})
    case.equal(r.code, code, "drover %s: %s%s" % (" ".join(words), r.out, r.err))
    return r.out + r.err


def pages(*words):
    """Returns the ids of all pages of a list."""
    found, token = [], ()
    while True:
        r = run_command([*words, *token], env={"DROVER_ADDR": "unix://" + node.socket_path})
        case.equal(r.code, 0, r.err)
        found.append([line.split()[0] for line in r.out.splitlines()[1:] if not line.startswith("There is more")])
        if "There is more" not in r.out:
            return found
        token = ("-page-token", r.out.split("-page-token ")[1].strip())


def test_lists_are_filtered():
    for name, priority in (("low", 10), ("middle", 50), ("high", 90)):
        made = api.job(name)
        made["Job"]["Priority"] = priority
        node.register(made)
        node.wait_running(name)
    case.equal(pages("job", "status", "-filter", "Priority != 10"), [["high", "middle"]])
    case.equal(json.loads(drover("job", "status", "-json", "-filter", 'ID == "low"'))[0]["ID"], "low")
    alloc = node.allocs("low")[0]
    case.equal(pages("alloc", "status", "-filter", 'JobID == "low"'), [[alloc["ID"][:8]]])
    case.equal(pages("eval", "list", "-job", "low"), [[alloc["EvalID"][:8]]])
    case.equal(pages("eval", "list", "-job", "low", "-filter", 'Status == "blocked"'), [[]])
    case.contains(drover("job", "status", "-filter", "Priority ==", code=1), "filter")
    case.contains(drover("eval", "list", "-job", 'a"b', code=1), "has no quotes")
    case.equal(drover("node", "status", "-filter", 'Status == "down"'), "No nodes\n")


def test_lists_come_in_pages():
    case.equal(pages("job", "status", "-per-page", "2"), [["high", "low"], ["middle"]])
    case.equal([len(page) for page in pages("alloc", "status", "-per-page", "1")], [1, 1, 1])
    case.equal([len(page) for page in pages("eval", "list", "-per-page", "2")], [2, 1])
    case.equal(pages("node", "status", "-per-page", "2"), pages("node", "status"))
    r = run_command(["job", "status", "-json", "-per-page", "2"], env={"DROVER_ADDR": "unix://" + node.socket_path})
    case.equal(([j["ID"] for j in json.loads(r.out)], "-page-token" in r.err), (["high", "low"], True))


def test_ids_alone():
    case.equal(drover("job", "status", "-quiet").split(), ["high", "low", "middle"])
    case.equal(drover("node", "status", "-quiet"), node.ask("/v1/nodes")[0]["ID"] + "\n")
    case.equal(drover("alloc", "status", "-quiet", "-filter", 'JobID == "low"'), node.allocs("low")[0]["ID"] + "\n")
    case.equal(drover("deployment", "list", "-quiet"), "")
    case.contains(drover("job", "status", "-quiet", "-json", code=1), "exclude each other")


def test_flags_of_lists_are_refused_for_one_object():
    for words in (("job", "status", "-quiet", "low"), ("node", "status", "-self", "-filter", "x"),
                  ("alloc", "status", "-per-page", "2", node.allocs("low")[0]["ID"]), ("volume", "status", "-quiet", "x")):
        case.contains(drover(*words, code=1), "are for lists")


def test_answers_are_printed_with_a_template():
    case.equal(sorted(drover("job", "status", "-t", "{{ range . }}{{ .ID }} {{ end }}").split()), sorted(j["ID"] for j in node.ask("/v1/jobs")))
    case.equal(drover("node", "status", "-self", "-t", "{{ .Status }}"), "ready\n")
    case.contains(drover("job", "status", "-t", "{{.ID}}", code=1), "can't evaluate field ID")


def test_an_instance_list_without_a_match():
    made = api.job("served", group={"Services": [{"Name": "served", "Provider": "nomad"}]})
    node.register(made)
    case.until(lambda: node.ask("/v1/service/served"), 20, "the service")
    case.equal(drover("service", "info", "-quiet", "served"), node.ask("/v1/service/served")[0]["ID"] + "\n")
    case.contains(drover("service", "info", "-filter", 'JobID == "x"', "served", code=1), 'no such service "served"')


def test_a_token_that_is_too_long_is_not_shown():
    with FakeApi() as fake:
        for token, shown in (("a" * 511, True), ("a" * 512, False)):
            fake.raw("GET", "/v1/jobs", b"HTTP/1.1 200 OK\r\nX-Nomad-NextToken: %s\r\nContent-Length: 2\r\n\r\n[]" % token.encode())
            case.equal(token in fake.drover("job", "status", "-per-page", "1").out, shown)


with api.Node() as node:
    case.run(globals())

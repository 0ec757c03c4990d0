#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The secrets of a volume are shown nowhere, also if its plugin says them in its errors."""
from lib import api, case, told, volumes
from lib.agent import arguments

PASSWORD, USER = "hunter2-and-more", "somebody"
WORDS = "mount -o username=%s,password=%s: no such share" % (USER, PASSWORD)
HIDDEN = "mount -o username=[REDACTED],password=[REDACTED]: no such share"


def create(name, code=200):
    answer = node.request("PUT", "/v1/volume/csi/%s/create" % name, told.volume(name, "p", Secrets={"user": USER, "password": PASSWORD}))
    case.equal(answer.status, code, answer.text)
    return answer.text


def shows(texts):
    """Returns the names of the texts with a secret."""
    return [name for name, text in texts.items() if PASSWORD in text or USER in text or PASSWORD[:10] in text]


def test_errors_of_a_plugin():
    plugin.tell("CreateVolume", "3 " + WORDS)
    case.contains(create("data", 400), HIDDEN)
    plugin.untell("CreateVolume")
    create("data")
    plugin.tell("NodeStageVolume", "3 " + WORDS)
    node.register(volumes.job("user", "data", "sleep 1000"))
    case.until(lambda: [a for a in node.allocs("user") if a["ClientStatus"] == "failed"], 30, "a failed alloc")
    alloc = node.allocs("user")[0]["ID"]
    case.contains(node.ask("/v1/allocation/" + alloc)["TaskStates"]["t"]["Events"][-1]["DisplayMessage"] + node.log(), HIDDEN)
    plugin.untell("NodeStageVolume")
    texts = {path: node.request("GET", "/v1/" + path).text for path in (
        "volumes", "volume/csi/data", "volume/csi/data/claims", "plugin/csi/p", "allocations", "allocation/" + alloc, "jobs", "nodes")}
    for words in (("alloc", "status", "-verbose", alloc), ("alloc", "why", alloc), ("volume", "status", "data")):
        done = node.drover(*words)
        texts[" ".join(words)] = done.out + done.err
    texts["log"] = node.log()
    for pid in node.processes().values():
        texts["arguments of %d" % pid] = " ".join(arguments(pid))
    case.equal(shows(texts), [])
    node.purge("user")


def test_a_secret_at_the_end_of_what_is_shown():
    """A message is cut at 1,023 bytes."""
    for filler in range(1023 - len(PASSWORD), 1024):
        plugin.tell("DeleteVolume", "3 %s%s" % ("x" * filler, PASSWORD))
        answer = node.request("DELETE", "/v1/volume/csi/data/delete")
        case.equal((answer.status >= 400, "xhunt" in answer.text), (True, False), answer.text)
    plugin.untell("DeleteVolume")
    node.do("DELETE", "/v1/volume/csi/data/delete")


with api.Node() as node:
    plugin = told.Plugin(node, "p", node_caps=(told.NODE_STAGE,))
    case.run(globals())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# takes: 31
"""A disk that is full when volumes are registered, created, deleted and claimed: each request is answered with 507 and a sentence that says what
cannot be written, where, and what to do; it is carried out as soon as there is space."""
import os
import threading

from lib import api, build_dir, case, csi_walk, helper, volumes

MODE = {"AccessMode": "single-node-writer", "AttachmentMode": "file-system"}


class Full:
    """While it is open, no byte is free."""

    def __enter__(self):
        with open(node.data + "/ballast", "wb", buffering=0) as f:
            size = 1 << 20
            while size > 0:
                try:
                    f.write(b"x" * size)
                except OSError:
                    size //= 2

    def __exit__(self, *_):
        os.unlink(node.data + "/ballast")
        case.until(lambda: node.request("GET", "/v1/agent/health").status == 200, 10, "the agent to write again")


def volume(name, **more):
    return {"Volumes": [dict({"ID": name, "Name": name, "PluginID": "bad", "RequestedCapabilities": [MODE]}, **more)]}


def refused(what, answer, *parts):
    for part in (*parts, "free space on the disk of " + node.data):
        case.equal((answer.status, part in answer.text), (507, True), "%s: %d %s" % (what, answer.status, answer.text))


def exists(name):
    return node.request("GET", "/v1/volume/csi/" + name).status == 200


def test_a_registration():
    with Full():
        refused("register", node.request("PUT", "/v1/volume/csi/plain", volume("plain", ExternalID="plain")),
                "not stored yet: commit state.db: ", "it is tried again until it works")
    case.equal(exists("plain"), True, "the volume when there is space")
    with Full():
        refused("register with secrets", node.request("PUT", "/v1/volume/csi/secret", volume("secret", ExternalID="secret", Secrets={"k": "v"})),
                "make %s/state/seal.key, which encrypts secrets: " % node.data)
        # Later requests are refused before they change anything.
        refused("later", node.request("PUT", "/v1/volume/csi/late", volume("late", ExternalID="late")), "nothing can be changed now: ")
    case.equal((exists("secret"), exists("late")), (True, False))


def test_what_waits_for_a_commit_before_it_calls_the_plugin():
    """It is not left without an answer, and goes on when there is space."""
    plugin.say()
    with Full():
        refused("create", node.request("PUT", "/v1/volume/csi/made/create", volume("made"), 120), "not done yet: commit state.db: ", "it goes on when that works")
        case.equal(plugin.calls("CreateVolume", "made"), [], "calls")
    case.until(lambda: exists("made") and node.ask("/v1/volume/csi/made")["ExternalID"] == "made", 20, "the creation to go on")
    with Full():
        refused("delete", node.request("DELETE", "/v1/volume/csi/made/delete", timeout=120), "not done yet: ")
    case.until(lambda: not exists("made"), 20, "the deletion to go on")


def test_a_creation_whose_end_cannot_be_stored():
    plugin.say(["CreateVolume=held"])
    answers = []
    thread = threading.Thread(target=lambda: answers.append(node.request("PUT", "/v1/volume/csi/held/create", volume("held"), 120)))
    thread.start()
    case.until(lambda: plugin.calls("CreateVolume", "held"), 20, "the call")
    with Full():
        case.write(plugin.state + "/release", "")
        thread.join()
        refused("create", answers[0], "not stored yet: ")
    os.unlink(plugin.state + "/release")
    case.equal(node.ask("/v1/volume/csi/held")["ExternalID"], "held")


def test_a_claim():
    with Full():
        refused("run", node.request("POST", "/v1/jobs", volumes.job("user", "held", "sleep 1000")), "not stored yet: ")
        case.equal(plugin.calls("NodeStageVolume", "held"), [], "calls before the claim is stored")
    node.wait_running("user")
    with Full():
        refused("stop", node.request("DELETE", "/v1/job/user"), "not stored yet: ")
    case.until(lambda: node.ask("/v1/volume/csi/held/claims") == [], 30, "the release of the claim")
    node.purge("user")


def test_nothing_is_left():
    node.do("DELETE", "/v1/volume/csi/held/delete")
    for name in ("plain", "secret"):
        node.do("DELETE", "/v1/volume/csi/" + name)
    plugin.purge()
    case.until(lambda: node.ask("/v1/agent/leaks") == [], 30, "no leaks")


top = case.directory() + "/small"
os.mkdir(top)
helper.mount("none", top, "tmpfs", 0, "size=24m")
os.chmod(top, 0o755)
try:
    with volumes.Node(data=top + "/data") as node:
        plugin = csi_walk.Plugin(node)
        case.run(globals())
finally:
    helper.umount(top)

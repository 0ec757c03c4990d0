#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# takes: 20
"""The disk of the data directory hangs, as a frozen file system does: the probe says so within its deadline, and the work loop does not wait for it."""
import os
import subprocess
import time

from lib import api, case, loop
from lib.watch import Watch


def freeze(verb):
    return subprocess.run(["fsfreeze", verb, top], stderr=subprocess.DEVNULL, check=False).returncode == 0


def components(result):
    """Returns {component: (state, sentence)} of those that are not ok."""
    return {name: (c["state"], c.get("message")) for name, c in result["components"].items() if c["state"] != "ok"}


def messages():
    events = node.ask("/v1/node/" + node.ask("/v1/nodes")[0]["ID"])["Events"] or []
    return [e["Message"] for e in events if e["Subsystem"] in ("Disk", "Health")]


def probe(status):
    answer = node.request("GET", "/v1/agent/health?deep=1", timeout=120)
    case.equal(answer.status, status, answer.text)
    return answer.json


def rests():
    """Whether nothing is being committed, which would wait for the disk: neither what the agent does after its start nor the end of a probe."""
    def commits():
        text = node.request("GET", "/v1/metrics?format=prometheus").text
        return [line for line in text.splitlines() if line.startswith("drover_state_commit_seconds_count")]
    before = commits()
    time.sleep(0.5)
    return before == commits()


def test_a_disk_that_hangs():
    probe(200)
    case.until(rests, 30, "an agent that commits nothing")
    if not freeze("--freeze"):
        case.skip("no file system can be frozen here")
    try:
        with Watch(node):
            for _ in range(2):  # a child of the first probe still hangs
                found = components(probe(503))
                state, sentence = found.pop("disk")
                case.equal((state, set(s for s, _ in found.values())), ("hung", {"unknown"}), found)
                case.contains(sentence, "the disk of %s does not answer: ask the disk of alloc/: no answer in time" % node.data)
        case.equal(found["state"][1], "not checked: that needs disk")
        case.equal(messages(), [], "events, which would be written to the disk")
        case.equal(node.request("GET", "/v1/agent/health").status, 200)
    finally:
        freeze("--unfreeze")
    case.until(lambda: node.request("GET", "/v1/agent/health?deep=1").status == 200, 60, "a good probe")
    case.equal(messages(), ["disk works again"])
    # The fault has left nothing behind: the agent can change its state and run tasks.
    node.register(api.job("web"))
    node.wait_running("web")
    node.purge("web")
    case.equal(node.ask("/v1/agent/leaks"), [], "leaks")


if not loop.usable():
    case.skip("no loop devices")
top = case.directory()
image = top + ".img"
with open(image, "wb") as f:
    f.truncate(256 << 20)
subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True)
subprocess.run(["mount", "-n", "-o", "loop", image, top], check=True)
os.chmod(top, 0o755)
try:
    with api.Node(data=top + "/data") as node:
        case.run(globals())
finally:
    case.until(lambda: subprocess.run(["umount", "-n", top], stderr=subprocess.DEVNULL, check=False).returncode == 0, 60, "the disk to be unmounted")
    os.unlink(image)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The kernel stops writing to the disk of the data directory, as it does after an error: the probe says so and nothing else, and the node refuses to
land and to retire. So it does with an audit log on that disk."""
import os
import signal
import subprocess

from lib import agent, api, case, loop
from lib.watch import Watch


def mount():
    subprocess.run(["mount", "-n", "-o", "loop", image, top], check=True)


def unmount():
    """Returns whether nothing is mounted any more: a process that is ending may have a file open."""
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        points = [p for p in (line.split(" ")[4] for line in f) if (p + "/").startswith(top + "/")]
    return all([subprocess.run(["umount", "-n", p], stderr=subprocess.DEVNULL, check=False).returncode == 0 for p in reversed(points)])


def test_a_disk_that_can_only_be_read():
    case.equal(node.request("GET", "/v1/agent/health?deep=1").status, 200)
    case.equal(node.ask("/v1/jobs"), [], "a request that is audited")
    if subprocess.run(["mount", "-n", "-o", "remount,abort", top], check=False).returncode != 0:
        case.skip("this kernel cannot abort a file system")
    with Watch(node):
        answer = node.request("GET", "/v1/agent/health?deep=1", timeout=120)
    bad = {name: c["message"] for name, c in answer.json["components"].items() if c["state"] in ("failed", "hung")}
    case.equal(set(bad), {"disk"}, "components that are not well")
    audit = answer.json["components"]["audit"]
    case.equal((audit["state"], "audit.log: " in audit["message"]), ("unknown", True), audit)
    case.equal(node.request("GET", "/v1/jobs").status, 500, "a request that cannot be audited")
    case.equal((answer.status, bad["disk"] in ("the disk of %s can only be read" % node.data, "the disk of %s is mounted read-only" % node.data)),
               (503, True), bad)
    case.equal(node.request("GET", "/v1/agent/health").status in (200, 500), True, "the work loop answers")


def test_the_node_refuses_to_land_and_to_retire():
    """Both must be stored before anything is stopped, so the request is refused at once instead of waiting for the disk."""
    refusal = "the node stays running, because that cannot be stored: "
    for verb in ("land", "retire"):
        answer = node.request("PUT", "/v1/agent/%s?wait=true" % verb, {})
        case.equal(answer.status, 507, answer.text)
        case.contains(answer.text, refusal)
        case.contains(node.drover("node", verb, "-yes", code=1).err, refusal)
    for signo in (signal.SIGUSR1, signal.SIGUSR2):
        node.process.send_signal(signo)
        node.wait_log("signal %d has no effect: %s" % (signo, refusal))
    for name in ("/v1/agent/land", "/v1/agent/retire", "SIGUSR1", "SIGUSR2"):
        case.equal('"endpoint":"%s"' % name in node.log(), True, "an entry in the agent's log for " + name)


def test_it_is_well_when_the_disk_is():
    node.kill_launcher()
    case.until(unmount, 60, "the disk to be unmounted")
    mount()
    node.start()
    node.wait_ready()
    case.until(lambda: node.request("GET", "/v1/agent/health?deep=1").status == 200, 60, "a good probe")
    case.equal(node.do("PUT", "/v1/agent/land?wait=true", {})["State"], "landed")
    case.equal(node.wait(), 0, "the agent's end")


if not loop.usable():
    case.skip("no loop devices")
top = case.directory()
image = top + ".img"
with open(image, "wb") as f:
    f.truncate(256 << 20)
subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True)
mount()
os.chmod(top, 0o755)
try:
    with api.Node(agent.config_args("audit { enabled = true }"), data=top + "/data") as node:
        case.run(globals())
finally:
    case.until(unmount, 60, "the disk to be unmounted")
    os.unlink(image)

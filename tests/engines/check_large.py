#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A container of an image of more than 1 GB: that it starts, that its files are whole, how long the pull takes, and how much memory the processes of images
use. In a second pull, image-fetcher, image-unpacker and the supervisor are killed while they work.

    tests/nomad/isolated.py tests/engines/check_large.py
"""
import hashlib
import os
import random
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from lib import api, case, images, web  # noqa: E402

MIB = 1 << 20
FILES, FILE_MIB = 4, 300
SMALL = 20000  # files of 1 KiB in another layer
PEAK_KB = 64 << 10
WORKERS = ("image-fetcher", "image-unpacker")
SCRIPT = "cat /big/* | sha256sum; find /small -type f | wc -l; sleep 1000"


def random_file(seed):
    """Half of it can be compressed."""
    source = random.Random(seed)
    return b"".join(source.randbytes(MIB // 2) + bytes(MIB // 2) for _ in range(FILE_MIB))


def make_image():
    """Returns the image, and what its task prints first."""
    digest, layers = hashlib.sha256(), [images.tar(images.busybox("sh", "cat", "sha256sum", "find", "wc", "sleep"))]
    for i in range(FILES):
        body = random_file(i)
        digest.update(body)
        layers.append(images.tar([images.directory("big"), images.file("big/%d" % i, body)]))
    layers.append(images.tar([images.directory("small/%d" % i) for i in range(40)] + [images.file("small/%d/%d" % (i % 40, i), b"x" * 1024) for i in range(SMALL)]))
    return images.Image(layers, {"Env": ["PATH=/bin"]}, pack="zstd"), "%s  -\n%d\n" % (digest.hexdigest(), SMALL)


def state(name):
    return next((x for x in reversed(node.ask("/v1/agent/images")) if x["Name"] == name), {})


def peak_kb(pid):
    try:
        with open("/proc/%d/status" % pid, encoding="ascii") as f:
            return next((int(line.split()[1]) for line in f if line.startswith("VmHWM:")), 0)
    except OSError:
        return 0


def pull(name, at_work=lambda worker: None):
    """Pulls the image, and shows how long it took, and the most memory that a worker used. at_work(worker) is called again and again while it runs."""
    peaks, began = dict.fromkeys(WORKERS, 0), time.monotonic()
    node.do("PUT", "/v1/agent/images", {"Name": name})
    while state(name).get("Status") not in ("ready", "failed"):
        for worker in WORKERS:
            pid = node.processes().get(worker)
            if pid:
                peaks[worker] = max(peaks[worker], peak_kb(pid))
                at_work(worker)
        time.sleep(0.05)
    print("    pulled in %.0f s; at most %s" % (time.monotonic() - began, ", ".join("%s %d KB" % x for x in peaks.items())), flush=True)
    case.equal(state(name)["Status"], "ready", state(name))
    case.equal([w for w in WORKERS if not 0 < peaks[w] < PEAK_KB], [], "workers that use too much memory: %s" % peaks)


def run(name):
    made = api.job("large", driver="docker")
    made["Job"]["TaskGroups"][0]["Tasks"][0].update(Config={"image": name, "command": "sh", "args": ["-c", SCRIPT], "network_mode": "none"})
    node.register(made)
    (alloc,) = node.wait_running("large", seconds=60)
    case.until(lambda: len(node.logs(alloc).split(b"\n")) > 2, 120, "the task to have read all files")
    case.equal(node.logs(alloc).decode(), expected, "what the task read")
    node.purge("large")


def remove(name):
    node.do("DELETE", "/v1/agent/images?name=" + name)
    began = time.monotonic()
    case.until(lambda: images.layers(node) == [], 300, "all layers to be removed")
    print("    removed in %.0f s" % (time.monotonic() - began), flush=True)
    case.equal(os.listdir(node.data + "/images/blobs"), [], "blobs that are kept")


def test_a_pull_and_a_container():
    pull(reference)
    run(reference)
    remove(reference)


def test_a_pull_with_kills():
    """Each worker is killed twice at its work, and then the supervisor."""
    left = [w for w in WORKERS for _ in range(2)]

    def at_work(worker):
        if worker in left:
            left.remove(worker)
            node.kill(worker)
            if not left:
                node.replace_supervisor()
                node.do("PUT", "/v1/agent/images", {"Name": reference})  # what an operator asked for ends with the supervisor
    pull(reference, at_work)
    case.equal(left, [], "workers that were not killed")
    run(reference)
    remove(reference)


image, expected = make_image()
print("    %d MiB of layers, %d MiB compressed" % (sum(map(len, image.tars)) // MIB, sum(map(len, image.blobs)) // MIB), flush=True)
image.tars.clear()
with web.Server(images.registry({"large": {"1": image}})) as server, api.Node() as node:
    reference = images.name(server, "large:1")
    case.run(globals())

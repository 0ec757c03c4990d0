#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# takes: 26
"""Random requests and random kills of the supervisor: acknowledged requests are kept, others can be repeated, and nothing leaks."""
import http.client
import os
import random
import threading
import time

from lib import api, case

SECONDS = 25
SEED = int(os.environ.get("DROVER_TEST_SEED", str(random.randrange(10**6))))


class Killer(threading.Thread):
    """Kills the supervisor, rarely enough that the launcher restarts it without a long pause."""

    def __init__(self):
        super().__init__()
        self.over, self.kills, self.random = threading.Event(), 0, random.Random(SEED)

    def run(self):
        while not self.over.wait(self.random.uniform(1.0, 2.5)):
            try:
                node.kill("supervisor")
                self.kills += 1
            except (KeyError, ProcessLookupError):
                pass  # the supervisor is being started


def say(method, path, body=None):
    """Returns the status, or None without an answer."""
    try:
        return node.request(method, path, body, timeout=case.LEAST_S).status
    except (OSError, http.client.HTTPException):
        return None


def stop_for_sure(name, purge):
    def done():
        return say("DELETE", "/v1/job/%s?purge=%s" % (name, purge)) in (200, 404)
    case.until(done, 60, name + " to be stopped")


def make_a_wish(rng, wanted):
    name = "j%d" % rng.randrange(6)
    kind = rng.random()
    if kind < 0.5:
        count = rng.randrange(1, 4)
        if say("POST", "/v1/jobs", api.job(name, count=count, Env={"R": str(rng.randrange(3))})) == 200:
            wanted[name] = count
            return
    elif kind < 0.8:
        if say("DELETE", "/v1/job/%s?purge=%s" % (name, "true" if kind < 0.65 else "false")) in (200, 404):
            wanted[name] = 0
            return
    else:
        try:
            allocs = node.request("GET", "/v1/allocations", timeout=case.LEAST_S).json
        except (OSError, http.client.HTTPException, ValueError):
            return
        if allocs:
            say("PUT", "/v1/allocation/%s/stop" % rng.choice(allocs)["ID"])
        return
    stop_for_sure(name, "false")
    wanted[name] = 0


def running():
    """Returns {job: number of running allocs}, or None while an alloc is starting or stopping."""
    have = {}
    for a in node.ask("/v1/allocations"):
        if a["DesiredStatus"] == "run" and a["ClientStatus"] == "running":
            have[a["JobID"]] = have.get(a["JobID"], 0) + 1
        elif a["ClientStatus"] in ("running", "pending"):
            return None
    return have


def test_acknowledged_requests_survive_kills():
    print("    DROVER_TEST_SEED=%d" % SEED)
    rng, wanted, killer = random.Random(SEED), {}, Killer()
    killer.start()
    end = time.monotonic() + SECONDS
    try:
        while time.monotonic() < end or killer.kills < 5:
            make_a_wish(rng, wanted)
    finally:
        killer.over.set()
        killer.join()
    print("    %d kills" % killer.kills)
    case.until(lambda: say("GET", "/v1/agent/health") == 200, 60, "the last supervisor to answer")
    case.until(lambda: running() == {k: v for k, v in wanted.items() if v}, 40, "the jobs to be as requested: %r" % wanted)
    case.until(lambda: not [e for e in node.ask("/v1/evaluations") if e["Status"] in ("pending", "blocked")], 20,
               "the end of all evaluations")


def test_no_leaks_are_left():
    for job in node.ask("/v1/jobs"):
        stop_for_sure(job["ID"], "true")
    case.until(lambda: node.ask("/v1/allocations") == [], 40, "allocations to be removed")
    case.equal(node.ask("/v1/agent/leaks"), [], "leaks")


with api.Node() as node:
    case.run(globals())

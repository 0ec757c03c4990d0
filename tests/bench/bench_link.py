# SPDX-License-Identifier: Apache-2.0
"""The agent as a node of servers (tests/peers/nomad-server): the cost of the link, plain and with TLS, and of updates."""
import contextlib
import os
import time

from measured import Bench, Spent, alone_mb, fresh_directory, job, poll, row, switches
from lib import case, nomad_server

LIVES = int(os.environ.get("BENCH_LIVES", "100"))
IDLE_S = float(os.environ.get("BENCH_IDLE_S", "31"))
S = 10**9
VERSION = "2.0.5"


@contextlib.contextmanager
def linked(base, servers, certificates=None):
    """Runs an agent that is registered at these servers."""
    client = 'servers = ["%s"]' % servers.address
    more = ""
    if certificates:
        more = 'tls {\n rpc = true\n verify_server_hostname = true\n ca_file = "%s"\n cert_file = "%s"\n key_file = "%s"\n}\n' % (
            certificates["ca"][0], *certificates["client"])
    with Bench(base, client, more) as node:
        servers.wait_node()
        yield node


def measure(node):
    """Returns memory, wakeups and CPU time in ms of an idle minute, each by process."""
    time.sleep(5)
    pids = node.parts()
    woken, spent = {n: switches(p) for n, p in pids.items()}, Spent(node)
    time.sleep(IDLE_S)
    spent.end()
    minute = 60 / spent.seconds
    return (alone_mb(pids), {n: (switches(p) - woken[n]) * minute for n, p in pids.items()},
            {n: us * minute / 1000 for n, us in spent.cpu.items()})


def print_idle(kind, found, base):
    sizes, woken, used = found
    whole = sum(sizes.values())
    row("PSS of all agent processes, idle, %s" % kind, "%.2f" % whole, "MB", "<= 12", whole <= 12)
    row("  by process", "", "", ", ".join("%s %.2f" % one for one in sorted(sizes.items())))
    row("  wakeups of a minute", "%.0f" % sum(woken.values()), "", ", ".join("%s %.0f" % one for one in sorted(woken.items())))
    row("  CPU time of a minute", "%.2f" % sum(used.values()), "ms", ", ".join("%s %.2f" % one for one in sorted(used.items())))
    if base:
        row("  of those without a link: PSS, wakeups, CPU time", "; ".join(
            "%.2f" % (sum(a.values()) / max(1e-9, sum(b.values()))) for a, b in zip(found, base)), "x")


def bench_link():
    """Idle, with servers that require a beat every ten to twenty seconds, as they do for few nodes."""
    with fresh_directory() as base, Bench(base) as node:
        local = measure(node)
    print_idle("no link", local, None)
    certificates = nomad_server.make_certificates(case.directory(), names=("server", "client"))
    for kind, those in (("link without TLS", None), ("link with TLS", certificates)):
        with fresh_directory() as base, nomad_server.Servers(certificates=those, version=VERSION) as servers, \
                linked(base, servers, those) as node:
            print_idle(kind, measure(node), local)


UPDATE = {"MaxParallel": 0, "HealthCheck": "task_states", "MinHealthyTime": S, "HealthyDeadline": 100 * S, "ProgressDeadline": 200 * S}


def bench_told():
    """Measures Node.UpdateAlloc for allocs of a service that start, become healthy, and are stopped."""
    with fresh_directory() as base, nomad_server.Servers(version=VERSION) as servers, linked(base, servers) as node:
        me, known, steps, whole = servers.wait_node()["ID"], servers.last_call(), [], [0, 0]

        def state(alloc):
            return alloc["ClientStatus"], (alloc["DeploymentStatus"] or {}).get("Healthy")

        def step(what, wanted):
            nonlocal known
            for one in ids:
                poll(lambda i=one: state(servers.alloc(i)) == wanted, 120, "an alloc to %s" % what)
            calls = servers.calls("Node.UpdateAlloc", known)
            known = servers.last_call()
            told = [len(calls), sum(len(c["args"]["Alloc"]) for c in calls)]
            whole[:] = [a + b for a, b in zip(whole, told)]
            steps.append("%s %.2f" % (what, told[1] / LIVES))
        made = job("life", "raw_exec", LIVES, Update=UPDATE)["Job"]
        spent = Spent(node)
        ids = servers.run_job(made, me, deployment="dddddddd-1111-4111-8111-000000000001")
        step("start", ("running", None))
        step("health", ("running", True))
        for one in ids:
            servers.stop_alloc(one)
        step("stop", ("complete", True))
        spent.end()
        row("updates of an alloc's life to servers, of %d" % LIVES, "%.2f" % (whole[1] / LIVES), "", ", ".join(steps))
        row("  calls of Node.UpdateAlloc for all of them", "%d" % whole[0], "")
        row("  CPU time of the agent's processes per life", "%.0f" % (spent.agent_us / LIVES), "us",
            ", ".join("%s %.0f" % (n, us / LIVES) for n, us in sorted(spent.cpu.items()) if us / LIVES >= 1))


PARTS = {"link": bench_link, "told": bench_told}

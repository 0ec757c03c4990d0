#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""drover status lists everything that is wrong before the rest, and alloc status shows addresses, checks and deployment health."""
import ctypes
import json
import re
import socket
import struct

from lib import api, case, cluster, service
from lib.fake_api import run_command

S = 10**9
MANUAL = {"MaxParallel": 1, "HealthCheck": "manual", "Canary": 1}


def drover(of, *words):
    r = run_command(words, env={"DROVER_ADDR": "unix://" + of.socket_path})
    case.equal(r.code, 0, "drover %s: %s%s" % (" ".join(words), r.out, r.err))
    return r.out


def problems(of):
    """Returns the first lines of the page, which are its problems, without "Problem: "."""
    def look():
        lines = drover(of, "status").splitlines()
        found = [line[9:] for line in lines if line.startswith("Problem: ")]
        case.equal([line[:9] for line in lines[:len(found)]], ["Problem: "] * len(found), "the first lines")
        # A problem may begin or end between the two commands.
        return (found,) if bool(json.loads(drover(of, "status", "-json"))["Problems"]) == bool(found) else None
    return case.until(look, 10, "the same problems in -json")[0]


def wait_problem(of, pattern):
    try:
        return case.until(lambda: [p for p in problems(of) if re.fullmatch(pattern, p)], 60, pattern)
    except AssertionError as e:
        raise AssertionError("%s; there are %s" % (e, problems(of))) from None


def test_a_node_without_problems_shows_none():
    case.equal(problems(node), [])


def test_helpers_that_died_are_counted():
    for _ in range(2):
        node.wait_process("file-helper", node.kill("file-helper"))
    wait_problem(node, r"file-helper died 2 times and was started again \(.*\)")
    case.contains(drover(node, "status", "-verbose"), "file-helper died 2 times")


def test_a_supervisor_that_died_is_reported_but_one_that_was_reloaded_is_not():
    node.kill("supervisor")
    node.wait_ready()
    wait_problem(node, r"the supervisor died and was started again \(.*\)")
    pid = node.processes()["supervisor"]
    node.process.send_signal(1)  # SIGHUP: reads the configuration again
    node.wait_process("supervisor", pid)
    node.wait_ready()
    case.equal(problems(node), [])


def test_a_failing_check_is_reported_and_alloc_status_shows_it_with_its_address():
    check = {"Name": "alive", "Type": "tcp", "Interval": S, "Timeout": S}
    service = {"Name": "front", "PortLabel": "http", "Provider": "nomad", "Checks": [check]}
    node.register(api.job("web", group={"Services": [service], "Networks": [{"Mode": "host", "DynamicPorts": [{"Label": "http"}]}]}))
    alloc = node.wait_running("web")[0]["ID"]
    wait_problem(node, r'check "alive" of service front fails in %s \(web\.g\[0\]\): .*refused.*' % alloc[:8])
    port = node.ask("/v1/allocation/" + alloc)["AllocatedResources"]["Shared"]["Ports"][0]
    page = drover(node, "alloc", "status", alloc)
    case.equal(re.search("\nAddresses\n.*\nhttp +(\\S+)", page).group(1), "%s:%d" % (port["HostIP"], port["Value"]))
    case.equal(bool(re.search("\nChecks\n.*\nfront .*alive .*failure", page)), True, page)
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind((port["HostIP"], port["Value"]))
        s.listen()
        case.until(lambda: problems(node) == [], 60, "the check to pass")
    node.purge("web")


def test_ports_of_a_task_are_shown():
    node.register(api.job("old", Resources={"CPU": 20, "MemoryMB": 20, "Networks": [{"DynamicPorts": [{"Label": "db"}]}]}))
    page = drover(node, "alloc", "status", node.wait_running("old")[0]["ID"])
    case.equal(bool(re.search("\nAddresses\n.*\ndb +\\S+:\\d+ +- +t\n", page)), True, page)
    node.purge("old")


def test_a_deployment_that_waits_or_failed_is_reported_and_alloc_status_shows_health():
    def version(text):
        node.register(api.job("app", args=[text], group={"Update": MANUAL}))

    def health(alloc, healthy):
        key = "HealthyAllocationIDs" if healthy else "UnhealthyAllocationIDs"
        node.do("POST", "/v1/deployment/allocation-health/" + deployment(), {"DeploymentID": deployment(), key: [alloc]})

    def deployment():
        return node.ask("/v1/job/app/deployment")["ID"]
    version("1000")
    first = node.wait_running("app")[0]["ID"]
    case.contains(drover(node, "alloc", "status", first), "Health               = not decided yet")
    health(first, True)
    case.contains(drover(node, "alloc", "status", first), "Health               = healthy, ")
    version("1001")
    canary = case.until(lambda: [a["ID"] for a in node.allocs("app") if a["JobVersion"] == 1 and a["ClientStatus"] == "running"],
                        60, "the canary")[0]
    short = deployment()[:8]
    wait_problem(node, "deployment %s of job app waits for its promotion: `drover deployment promote %s`" % (short, short))
    case.contains(drover(node, "alloc", "status", canary), "= %s (canary)" % short)
    drover(node, "deployment", "pause", short)
    wait_problem(node, "deployment %s of job app is paused: .*" % short)
    drover(node, "deployment", "fail", short)
    wait_problem(node, "deployment %s of job app is failed: .*" % short)
    node.purge("app")
    case.equal(problems(node), [], "after the purge")


def test_without_a_server_one_sentence_says_so():
    def own():
        """Leaves out the paths that the simulated servers do not know."""
        return [p for p in problems(member) if "can't find" not in p]
    with cluster.servers() as servers, cluster.node_of(servers) as member:
        servers.wait_node()
        case.equal(own(), [])
        servers.stop_server(0)
        found = wait_problem(member, r"no server is reachable: .* \(for .*\)")
        case.equal(problems(member)[0][:22], found[0][:22])
        case.equal(len([p for p in problems(member) if "server" in p]), 1, "one sentence")
        case.contains(drover(member, "status"), "Status               = disconnected, ")
        servers.start_server(0)
        servers.wait_node()
        case.until(lambda: own() == [], 60, "the servers")


def test_a_clock_that_differs_from_the_servers_is_reported():
    with cluster.servers() as servers:
        servers.settings(clock_ahead_s=-100)
        with cluster.node_of(servers) as member:
            servers.wait_node()
            wait_problem(member, r"the clock is (99|10\d) s ahead of the servers' clock")
            servers.settings(clock_ahead_s=100)
            made = cluster.job("signed", Identities=[{"Name": "a", "Env": True, "Audience": ["x"]}])
            servers.wait_alloc(servers.run_job(made, member.ask("/v1/agent/self")["stats"]["client"]["node_id"])[0], ["running"])
            wait_problem(member, r"the clock is (99|100|101) s behind the servers' clock")
            servers.settings(clock_ahead_s=0)
            servers.wait_alloc(servers.run_job(dict(made, ID="again"), servers.wait_node()["ID"])[0], ["running"])
            case.until(lambda: not [p for p in problems(member) if "clock" in p], 60, "the clocks to agree")


def test_a_clock_that_no_time_service_corrects_is_reported_unless_the_agent_is_for_development():
    state = ctypes.create_string_buffer(256)
    wrong = ctypes.CDLL(None).adjtimex(state) == 5 and struct.unpack_from("i", state, 40)[0] & 64 != 0
    case.equal([p for p in problems(node) if "clock" in p], [])
    with service.Users(), service.Node() as installed:
        found = [p for p in problems(installed) if "clock" in p]
        case.equal([p[:32] for p in found], ["the clock is not synchronized: no"[:32]] * wrong, found)


with api.Node() as node:
    case.run(globals())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""/v1/metrics in its formats: what they say is what the API says elsewhere, and a reader of each format finds nothing wrong."""
import re
import urllib.parse

from lib import api, case, exposition

OPEN = {"Accept": "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;q=0.5,*/*;q=0.1"}


def scrape(headers=None, **query):
    answer = node.request("GET", "/v1/metrics" + ("?" + urllib.parse.urlencode(query) if query else ""), headers=headers)
    case.equal(answer.status, 200, answer.text)
    return answer


def families():
    return exposition.parse(scrape(format="prometheus").text)


def test_the_format_is_negotiated():
    for query, headers, wanted in (
            ({}, {}, "application/json"), ({}, {"Accept": "*/*"}, "application/json"), ({"format": "json"}, OPEN, "application/json"),
            ({"format": "prometheus"}, {}, "text/plain; version=0.0.4; charset=utf-8"),
            ({}, {"Accept": "text/plain;version=0.0.4"}, "text/plain; version=0.0.4; charset=utf-8"),
            ({}, OPEN, "application/openmetrics-text; version=1.0.0; charset=utf-8"),
            ({"format": "prometheus"}, OPEN, "application/openmetrics-text; version=1.0.0; charset=utf-8")):
        case.equal(scrape(headers, **query).headers["Content-Type"], wanted, "%s %s" % (query, headers))
    node.refused(400, 'unknown format "xml"', "GET", "/v1/metrics?format=xml")


def test_all_formats_have_the_same_metrics():
    """Each name of the JSON is one of the text, with underscores for its dots, and the same labels."""
    case.until(lambda: "nomad_client_allocs_cpu_total_percent" in families(), 20, "a second sample of the task")
    found = scrape().json
    case.equal(found["Points"], [])
    assert found["Timestamp"].endswith(" +0000 UTC"), found["Timestamp"]
    text, opened = families(), exposition.parse(scrape(OPEN).text, openmetrics=True)
    for name, of in (("Gauges", ("gauge", "untyped")), ("Counters", ("counter", "untyped")), ("Samples", ("histogram",))):
        for one in found[name]:
            family = text[one["Name"].replace(".", "_")]
            assert family.kind in of, "%s is a %s" % (family.name, family.kind)
            assert [s for s in family.samples if s[1] == one["Labels"]], one
            assert one["Name"].replace(".", "_") in opened, one["Name"]
    names = {one["Name"].replace(".", "_") for part in ("Gauges", "Counters", "Samples") for one in found[part]}
    case.equal(set(text) ^ names, set(), "metrics in one format only")
    case.equal(set(opened) ^ names, set(), "metrics in one format only")


def test_the_node_has_the_labels_of_nomad():
    me = node.ask("/v1/nodes")[0]
    name, labels, value = families()["nomad_client_tasks_running"].samples[0]
    case.equal({k: v for k, v in labels.items() if k != "host"},
               {"node_id": me["ID"], "datacenter": "dc1", "node_class": "none", "node_pool": "default", "node_status": "ready",
                "node_scheduling_eligibility": "eligible"})


def test_the_numbers_of_the_node_are_those_of_the_api():
    usage, found = node.ask("/v1/client/stats"), families()
    case.equal(found["nomad_client_host_memory_total"].one(), usage["Memory"]["Total"])
    case.equal(sorted(labels["cpu"] for _, labels, _ in found["nomad_client_host_cpu_idle"].samples), sorted(c["CPU"] for c in usage["CPU"]))
    for disk in usage["DiskStats"]:
        case.equal(found["nomad_client_host_disk_size"].value(disk=disk["Device"]), disk["Size"])
    me = node.ask("/v1/node/" + node.ask("/v1/nodes")[0]["ID"])
    for name, member, kind in (("cpu", "CpuShares", "Cpu"), ("memory", "MemoryMB", "Memory"), ("disk", "DiskMB", "Disk")):
        case.equal(found["nomad_client_allocated_" + name].one() + found["nomad_client_unallocated_" + name].one(),
                   me["NodeResources"][kind][member] - me["ReservedResources"][kind][member], name)
    case.equal(found["drover_allocs_on_node"].one(), len(node.ask("/v1/allocations")))


def test_the_counts_of_allocations_and_tasks():
    found, allocs = families(), node.ask("/v1/allocations")
    case.equal(found["nomad_client_allocations_running"].one(), sum(a["ClientStatus"] == "running" for a in allocs))
    case.equal(found["nomad_client_allocations_terminal"].one(), sum(a["ClientStatus"] in ("complete", "failed") for a in allocs))
    states = [t["State"] for a in allocs for t in (a["TaskStates"] or {}).values()]
    for state in ("pending", "running", "dead"):
        case.equal(found["nomad_client_tasks_" + state].one(), states.count(state), state)


def test_the_numbers_of_a_task_are_those_of_its_usage():
    """Both read the same sample, if one request follows the other at once."""
    alloc = node.allocs("web")[0]

    def same():
        usage = node.ask("/v1/client/allocation/%s/stats" % alloc["ID"])["Tasks"]["t"]["ResourceUsage"]
        found, names = families(), {"alloc_id": alloc["ID"], "task": "t"}
        pairs = [(found["nomad_client_allocs_memory_" + name].values(**names), usage["MemoryStats"][member], member in measured)
                 for measured in [[m.replace(" ", "") for m in usage["MemoryStats"]["Measured"]]]
                 for name, member in (("rss", "RSS"), ("cache", "Cache"), ("swap", "Swap"), ("usage", "Usage"), ("max_usage", "MaxUsage"),
                                      ("kernel_usage", "KernelUsage"), ("kernel_max_usage", "KernelMaxUsage"))
                 if "nomad_client_allocs_memory_" + name in found]
        pairs += [(found["nomad_client_allocs_cpu_" + name].values(**names), usage["CpuStats"][member], True)
                  for name, member in (("total_percent", "Percent"), ("user", "UserMode"), ("system", "SystemMode"), ("total_ticks", "TotalTicks"),
                                       ("throttled_periods", "ThrottledPeriods"))]
        return all(have == ([wanted] if measured else []) or measured and len(have) == 1 and abs(have[0] - wanted) < 1e-9
                   for have, wanted, measured in pairs)
    case.until(same, 20, "the same numbers in both")


def rows_of(text, *head):
    """Returns {first cell: {heading: cell}} of the table whose first headings are these."""
    lines = text.splitlines()
    first = next(i for i, line in enumerate(lines) if re.split("  +", line.strip())[:len(head)] == list(head))
    names, found = re.split("  +", lines[first].strip()), {}
    for line in lines[first + 1:]:
        if not line.strip():
            break
        starts = [lines[first].index(name) for name in names]
        cells = [line[a:b].strip() for a, b in zip(starts, starts[1:] + [None])]
        found[cells[0]] = dict(zip(names, cells))
    return found


def size(number):
    """As the command prints bytes."""
    if number < 1024:
        return "%d B" % number
    for unit in ("KiB", "MiB", "GiB", "TiB"):
        number /= 1024
        if number < 1024:
            break
    return ("%.1f %s" if number < 10 else "%.0f %s") % (number, unit)


def test_the_tables_of_the_command_have_the_numbers_of_the_metrics():
    """A table and a scrape read the same sample, if one follows the other at once."""
    alloc = node.allocs("web")[0]["ID"]
    metrics = {"CPU": ("cpu_total_percent", "%.1f %%"), "User": ("cpu_user", "%.1f %%"), "System": ("cpu_system", "%.1f %%"),
               "Clock": ("cpu_total_ticks", "%.0f MHz"), "RSS": ("memory_rss", size), "Cache": ("memory_cache", size), "Memory": ("memory_usage", size),
               "Most": ("memory_max_usage", size), "Swap": ("memory_swap", size)}

    def of_task():
        found, wanted = families(), {"Task": "t"}
        for heading, (name, form) in metrics.items():
            values = found["nomad_client_allocs_" + name].values(alloc_id=alloc) if "nomad_client_allocs_" + name in found else []
            wanted[heading] = "" if not values else form(values[0]) if callable(form) else form % values[0]
        return wanted
    for command in (("alloc", "stats", alloc), ("alloc", "status", "-stats", alloc)):
        seen = []

        def same(command=command, seen=seen):
            seen[:] = [rows_of(node.drover(*command).out, "Task", "CPU")["t"], of_task()]
            return all(seen[1].get(name, text) == text for name, text in seen[0].items()) and len(seen[0]) > 5
        try:
            case.until(same, 20, "the numbers of the metrics in " + " ".join(command))
        except AssertionError as e:
            raise AssertionError("%s: %s" % (e, seen)) from None


def test_the_tables_of_the_node_have_the_numbers_of_the_metrics():
    seen = []

    def same():
        page, found = node.drover("node", "status", "-self", "-stats").out, families()
        host = {name: found["nomad_client_host_memory_" + name].one() for name in ("used", "total", "available")}
        disks = {device: (row["Size"], row["Used"], row["Available"], row["Used %"], row["Inodes %"])
                 for device, row in rows_of(page, "Device", "Mounted At").items() if device != "allocations"}
        wanted = {device: (*(size(found["nomad_client_host_disk_" + name].value(disk=device)) for name in ("size", "used", "available")),
                           *("%.1f %%" % found["nomad_client_host_disk_%s_percent" % name].value(disk=device) for name in ("used", "inodes")))
                  for device in disks}
        cores = {labels["cpu"] for _, labels, _ in found["nomad_client_host_cpu_idle"].samples}
        memory = re.search("^Memory +=? *(.* available)$", page, re.M)[1]
        seen[:] = [(memory, disks, set(rows_of(page, "Core", "Busy"))),
                   ("{} of {}, {} available".format(*(size(host[name]) for name in ("used", "total", "available"))), wanted, cores)]
        return seen[0] == seen[1] and len(disks) > 0
    try:
        case.until(same, 30, "the numbers of the metrics")
    except AssertionError as e:
        raise AssertionError("%s: %s" % (e, seen)) from None


def test_a_task_has_the_labels_of_nomad():
    alloc = node.allocs("web")[0]
    _, labels, value = [s for s in families()["nomad_client_allocs_running"].samples if s[1]["alloc_id"] == alloc["ID"]][0]
    case.equal({k: v for k, v in labels.items() if k != "host"},
               {"job": "web", "task_group": "g", "task": "t", "namespace": "default", "alloc_id": alloc["ID"]})
    case.equal(value, 1)


def test_restarts_and_failures_of_a_task():
    made = api.job("fails", "/bin/false", [])
    made["Job"]["TaskGroups"][0]["RestartPolicy"] = {"Attempts": 2, "Interval": 10**12, "Delay": 10**6, "Mode": "fail"}
    node.register(made)
    node.wait_allocs("fails", [(0, "run", "failed")])
    found = families()
    case.equal((found["nomad_client_allocs_restart"].value(job="fails"), found["nomad_client_allocs_running"].value(job="fails"),
                found["nomad_client_allocs_failed"].value(job="fails")), (2, 3, 1))


def test_processes_and_calls_to_them():
    found, own = families(), node.ask("/v1/agent/self")["stats"]["processes"]
    case.equal({s[1]["process"] for s in found["drover_process_up"].samples}, {"supervisor", *own})
    for name, text in own.items():
        pid, start = [int(word.strip(",")) for word in text.split() if word.strip(",").isdigit()]
        case.equal((found["drover_process_up"].value(process=name), found["drover_process_starts_total"].value(process=name)), (pid > 0, start), name)
        if pid > 0:
            case.equal(found["drover_process_memory_bytes"].value(process=name) > 100000, True, name)
    calls = [v for name, labels, v in found["drover_ipc_round_trip_seconds"].samples if name.endswith("_count") and labels["process"] == "exec-helper"]
    case.equal(calls[0] > 0 and found["drover_ipc_packets_out_total"].value(process="exec-helper") >= calls[0], True, "calls to exec-helper")
    case.equal(found["drover_ipc_failed_calls_total"].value(process="exec-helper"), 0)


def test_a_lost_helper_is_counted():
    before = families()["drover_process_losses_total"].value(process="file-helper")
    node.kill("file-helper")
    case.until(lambda: families()["drover_process_losses_total"].value(process="file-helper") == before + 1, 20, "the loss")
    case.until(lambda: families()["drover_process_up"].value(process="file-helper") == 1, 20, "a new file-helper")


def test_commits_and_starts():
    def count(name, **labels):
        return sum(v for n, found, v in families()[name].samples if n.endswith("_count") and all(found.get(k) == w for k, w in labels.items()))
    before = {step: count("drover_start_step_seconds", step=step) for step in ("hooks", "request", "setup")}
    commits, turns = count("drover_state_commit_seconds"), count("drover_agent_turn_seconds")
    node.register(api.job("counted"))
    node.wait_running("counted")
    for step, n in before.items():
        case.equal(count("drover_start_step_seconds", step=step), n + 1, step)
    case.equal(count("drover_state_commit_seconds") > commits and count("drover_agent_turn_seconds") > turns, True, "commits and turns")
    case.equal(families()["drover_state_failed_commits_total"].one(), 0)


def test_the_lease_and_its_margin():
    found = families()
    case.equal(0 <= found["drover_lease_age_seconds"].one() < 60, True, "age of the lease")
    case.equal("drover_lease_margin_seconds" in found, False)
    node.register(api.job("leased", group={"StopAfterClientDisconnect": 3600 * 10**9}))
    node.wait_running("leased")
    found = families()
    case.equal(round(found["drover_lease_margin_seconds"].one() + found["drover_lease_age_seconds"].one()), 3600)


def test_the_ledger():
    found = families()
    running = sum(t["State"] == "running" for a in node.ask("/v1/allocations") for t in (a["TaskStates"] or {}).values())
    case.equal(found["drover_ledger_runs"].one() >= running, True, "rows of runs")
    case.equal(found["drover_state_size_bytes"].one() > 10000, True, "size of state.db")
    case.equal((found["drover_state_stuck"].one(), found["drover_ledger_mounts"].one()), (0, 0))


def test_components_of_a_probe():
    """There are none before the first probe; then they are those of the page."""
    case.equal("drover_probe_healthy" in families(), False)
    page = node.request("GET", "/v1/agent/health?deep=1", timeout=120).json
    found = families()
    for name, component in page["components"].items():
        if component["state"] != "unknown":
            case.equal(found["drover_probe_healthy"].value(component=name), component["state"] in ("ok", "degraded"), name)
            case.equal(found["drover_probe_degraded"].value(component=name), component["state"] == "degraded", name)
    case.equal((found["drover_probe_probes_total"].one(), len(found["drover_probe_since_seconds"].samples)), (1, len(page["components"])))


def test_the_table_of_a_probe_has_the_numbers_of_the_metrics():
    shown, found = rows_of(node.drover("probe").out, "Component", "State"), families()
    case.equal(set(shown), {labels["component"] for _, labels, _ in found["drover_probe_since_seconds"].samples})
    for name, row in shown.items():
        case.equal((found["drover_probe_healthy"].value(component=name), found["drover_probe_degraded"].value(component=name)),
                   (row["State"] in ("ok", "degraded"), row["State"] == "degraded"), name)


def test_names_that_must_be_escaped():
    made = api.job('quo"te\\é', "/bin/sleep", ["1000"])
    node.register(made)
    job = urllib.parse.quote('quo"te\\é', safe="")
    case.until(lambda: node.ask("/v1/job/%s/allocations" % job)[0]["ClientStatus"] == "running", 20, "the alloc to run")
    case.equal(families()["nomad_client_allocs_running"].value(job='quo"te\\é'), 1)
    found = [c for c in scrape().json["Counters"] if c["Labels"].get("job") == 'quo"te\\é' and c["Name"] == "nomad.client.allocs.running"]
    case.equal([(c["Count"], c["Sum"]) for c in found], [(1, 1)])


def test_too_many_readers_are_refused():
    """A reader that does not read holds memory, so only some may read at a time."""
    node.register(api.job("many", count=150))
    node.wait_running("many", 150)
    readers = [api.Connection(node, 20) for _ in range(4)]
    for c in readers:
        c.request("GET", "/v1/metrics")
    case.until(lambda: node.request("GET", "/v1/metrics").status == 503, 20, "a fifth reader to be refused")
    for c in readers:
        assert len(c.getresponse().read()) > 100000
        c.close()
    case.equal(scrape().status, 200)


def test_metadata_becomes_labels():
    made = api.job("meta", Meta={"zone": "task", "8-b": "x", "job": "lost"})
    made["Job"]["Meta"] = {"zone": "job", "team": 'a"b'}
    node.register(made)
    node.wait_running("meta")
    labels = [found for _, found, _ in families()["nomad_client_allocs_running"].samples if found["job"] == "meta"][0]
    case.equal({k: labels.get(k) for k in ("zone", "team", "_8_b", "job")}, {"zone": "task", "team": 'a"b', "_8_b": "x", "job": "meta"})


with api.Node() as node:
    node.register(api.job("web"))
    node.wait_running("web")
    case.run(globals())

# SPDX-License-Identifier: Apache-2.0
"""Jobs and allocs as servers make them from a user's registration: all fields, defaults, resources, ports."""
import copy
import time
import uuid

import schema

S = 10 ** 9
MINUTE, HOUR = 60 * S, 3600 * S
RESTARTS = {  # attempts, interval, delay, mode
    "service": (2, 30 * MINUTE, 15 * S, "fail"), "system": (2, 30 * MINUTE, 15 * S, "fail"),
    "batch": (3, 24 * HOUR, 15 * S, "fail"), "sysbatch": (3, 24 * HOUR, 15 * S, "fail")}
RESCHEDULES = {
    "service": {"Delay": 30 * S, "DelayFunction": "exponential", "MaxDelay": HOUR, "Unlimited": True},
    "batch": {"Attempts": 1, "Interval": 24 * HOUR, "Delay": 5 * S, "DelayFunction": "constant"}}
DYNAMIC_PORTS = range(20000, 32001)


def filled(kind, value, **defaults):
    """Returns the struct with all fields; those that are not in value have defaults."""
    return {**schema.shared().zero(kind), **defaults, **{k: v for k, v in (value or {}).items() if v is not None}}


def as_submitted(value):
    """Returns a driver configuration as it arrives through JSON: every number is a float."""
    if isinstance(value, bool) or not isinstance(value, (int, list, dict)):
        return value
    if isinstance(value, int):
        return float(value)
    if isinstance(value, list):
        return [as_submitted(v) for v in value]
    return {k: as_submitted(v) for k, v in value.items()}


def complete(job, region, version):
    """Returns a job as the servers store it. The argument is not changed."""
    job = copy.deepcopy(job)
    kind = job.get("Type") or "service"
    submitted_update = job.pop("Update", None)
    job = filled("Job", job, Region=region, Namespace="default", Name=job["ID"], Type=kind, Priority=50,
                 Datacenters=["*"], NodePool="default", Status="pending", CreateIndex=0)
    job["TaskGroups"] = [complete_group(g, {**job, "Update": submitted_update}, version) for g in job["TaskGroups"] or ()]
    # The update block of the job has only two fields of those of its groups, and only if there is one.
    job["Update"] = filled("UpdateStrategy", {"Stagger": 30 * S, "MaxParallel": 1} if kind == "service" else None)
    return job


def complete_group(group, job, version):
    kind = job["Type"]
    attempts, interval, delay, mode = RESTARTS[kind]
    group = filled("TaskGroup", group, Count=1)
    group["RestartPolicy"] = filled("RestartPolicy", group["RestartPolicy"], Attempts=attempts, Interval=interval,
                                    Delay=delay, Mode=mode)
    group["EphemeralDisk"] = filled("EphemeralDisk", group["EphemeralDisk"], SizeMB=300)
    if kind in RESCHEDULES:
        group["ReschedulePolicy"] = filled("ReschedulePolicy", group["ReschedulePolicy"], **RESCHEDULES[kind])
    if kind == "service":
        group["Migrate"] = filled("MigrateStrategy", group["Migrate"], MaxParallel=1, HealthCheck="checks",
                                  MinHealthyTime=10 * S, HealthyDeadline=5 * MINUTE)
        group["Update"] = filled("UpdateStrategy", group["Update"] or job["Update"], Stagger=30 * S, MaxParallel=1,
                                 HealthCheck="checks", MinHealthyTime=10 * S, HealthyDeadline=5 * MINUTE,
                                 ProgressDeadline=10 * MINUTE)
    if group["Disconnect"] is not None:
        group["Disconnect"] = filled("DisconnectStrategy", group["Disconnect"], Replace=True, Reconcile="best_score")
    if group["Networks"] is not None:
        group["Networks"] = [complete_network(n) for n in group["Networks"]]
    group["Constraints"] = (group["Constraints"] or []) + implied_constraints(group, version) or None
    if not version >= (1, 7):
        group["Consul"] = group["Consul"] or {"Namespace": ""}
    group["Services"] = [complete_service(s, None, version) for s in group["Services"]] if group["Services"] else None
    if group["Volumes"] is not None:
        group["Volumes"] = {k: filled("VolumeRequest", v, Name=k) for k, v in group["Volumes"].items()}
    group["Tasks"] = [complete_task(t, group, version) for t in group["Tasks"] or ()]
    return group


def complete_network(network):
    network = filled("NetworkResource", network, Mode="host")
    for kind in ("ReservedPorts", "DynamicPorts"):
        network[kind] = [filled("Port", p, HostNetwork="default") for p in network[kind]] if network[kind] else None
    return network


def implied_constraints(group, version):
    """Returns the constraints for common features: services of the cluster, their checks, identities."""
    services = list(group["Services"] or ()) + [s for t in group["Tasks"] or () for s in t.get("Services") or ()]
    own = [s for s in services if s.get("Provider", "nomad") == "nomad"]
    found = []
    if own:
        found.append(("${attr.nomad.service_discovery}", "true", "="))
    if any(s.get("Checks") for s in own):
        found.append(("${attr.nomad.version}", ">= 1.4.0", "semver"))
    if version >= (1, 7) and any(t.get("Identities") for t in group["Tasks"] or ()):
        found.append(("${attr.nomad.version}", ">= 1.7.0-a", "semver"))
    return [{"LTarget": left, "RTarget": right, "Operand": operand} for left, right, operand in found]


def complete_service(service, task, version):
    service = filled("Service", service, AddressMode="auto", OnUpdate="require_healthy", Provider="nomad",
                     Namespace="default", TaskName=task["Name"] if task else "",
                     Cluster="default" if version >= (1, 7) else "")
    service["Checks"] = [filled("ServiceCheck", c, Interval=10 * S, Timeout=2 * S, OnUpdate="require_healthy",
                                TaskName=service["TaskName"]) for c in service["Checks"]] if service["Checks"] else None
    return service


def complete_task(task, group, version):
    task = filled("Task", task, KillTimeout=5 * S)
    task["Config"] = as_submitted(task["Config"])
    task["Resources"] = filled("Resources", task["Resources"], CPU=100, MemoryMB=300)
    if task["Resources"]["Networks"] is not None:
        task["Resources"]["Networks"] = [complete_network(n) for n in task["Resources"]["Networks"]]
    if task["Resources"]["Cores"]:
        task["Resources"]["CPU"] = 0
    task["LogConfig"] = filled("LogConfig", task["LogConfig"], MaxFiles=10, MaxFileSizeMB=10)
    task["RestartPolicy"] = filled("RestartPolicy", task["RestartPolicy"] or group["RestartPolicy"])
    task["Services"] = [complete_service(s, task, version) for s in task["Services"]] if task["Services"] else None
    if version >= (1, 7):
        task["Identity"] = filled("WorkloadIdentity", task["Identity"], Name="default", Audience=["nomadproject.io"])
        task["Identities"] = [filled("WorkloadIdentity", i) for i in task["Identities"]] if task["Identities"] else None
    task["Templates"] = [filled("Template", t, ChangeMode="restart", Splay=5 * S, Perms="0644", LeftDelim="{{",
                                RightDelim="}}") for t in task["Templates"]] if task["Templates"] else None
    task["VolumeMounts"] = [filled("VolumeMount", m, PropagationMode="private") for m in task["VolumeMounts"]] \
        if task["VolumeMounts"] else None
    return task


def lost_after(alloc, version):
    """Returns the disconnect window of the alloc's group in ns, 0 without one."""
    for group in alloc["Job"]["TaskGroups"]:
        if group["Name"] == alloc["TaskGroup"]:
            new = (group["Disconnect"] or {}).get("LostAfter") or 0
            return new if version >= (1, 10) else (group["MaxClientDisconnect"] or new)
    return 0


def allocation(job, group, number, node_id, node_name, others):
    """Returns a new alloc. others: allocs whose ports are in use."""
    alloc = filled("Allocation", {
        "ID": str(uuid.uuid4()), "Namespace": job["Namespace"], "EvalID": str(uuid.uuid4()),
        "Name": "%s.%s[%d]" % (job["ID"], group["Name"], number), "NodeID": node_id, "NodeName": node_name,
        "JobID": job["ID"], "Job": job, "TaskGroup": group["Name"], "DesiredStatus": "run", "ClientStatus": "pending",
        "CreateTime": time.time_ns(), "ModifyTime": time.time_ns(),
        "Metrics": filled("AllocMetric", {
            "NodesEvaluated": 1, "NodesInPool": 1, "NodesAvailable": {"dc1": 1}, "AllocationTime": 50000, "NodePool": "default",
            "ScoreMetaData": [{"NodeID": node_id, "NormScore": 0.1, "Scores": {
                "binpack": 0.1, "job-anti-affinity": 0.0, "node-affinity": 0.0, "node-reschedule-penalty": 0.0}}]})})
    alloc.update(resources(group, alloc, others))
    return alloc


def _taken(alloc, others):
    return {p["Value"] for a in others if a["NodeID"] == alloc["NodeID"] and a["ID"] != alloc["ID"] and a["AllocatedResources"]
            for p in a["AllocatedResources"]["Shared"]["Ports"] or ()}


def assigned(network, had, free):
    """Returns a network in the form of an alloc: each port has a number, which it keeps if it had one."""
    network = copy.deepcopy(network)
    for port in (network["ReservedPorts"] or []) + (network["DynamicPorts"] or []):
        old = had.get(port["Label"])
        port["Value"] = old["Value"] if old else port.get("Value") or next(free)
        if port.get("To") == -1:
            port["To"] = port["Value"]
    network["IP"] = "127.0.0.1"
    return network


def resources(group, alloc, others):
    """Returns the resources of the group's tasks, in the new and the old form. The alloc keeps its existing ports."""
    had = {p["Label"]: p for p in ((alloc.get("AllocatedResources") or {}).get("Shared") or {}).get("Ports") or ()}
    free = iter(sorted(set(DYNAMIC_PORTS) - _taken(alloc, others)))
    cores = iter(range(64))
    tasks, lifecycles = {}, {}
    for task in group["Tasks"]:
        wants = task["Resources"]
        ids = [next(cores) for _ in range(wants["Cores"])]
        tasks[task["Name"]] = {
            "Cpu": {"CpuShares": wants["CPU"] or 1000 * len(ids), "ReservedCores": ids or None},
            "Memory": {"MemoryMB": wants["MemoryMB"], "MemoryMaxMB": 0},  # oversubscription is disabled, as by default
            "Networks": [assigned(n, {}, free) for n in wants["Networks"] or ()] or None}
        lifecycles[task["Name"]] = task["Lifecycle"]
    ports, networks = [], []
    for network in group["Networks"] or ():
        networks.append(assigned(network, had, free))
        ports += [{"Label": p["Label"], "Value": p["Value"], "To": p.get("To", 0), "HostIP": "127.0.0.1"}
                  for p in (networks[-1]["ReservedPorts"] or []) + (networks[-1]["DynamicPorts"] or [])]
    disk = group["EphemeralDisk"]["SizeMB"]
    old = {name: {"CPU": t["Cpu"]["CpuShares"], "MemoryMB": t["Memory"]["MemoryMB"],
                  "MemoryMaxMB": t["Memory"]["MemoryMaxMB"]} for name, t in tasks.items()}
    total = {"CPU": sum(t["CPU"] for t in old.values()), "MemoryMB": sum(t["MemoryMB"] for t in old.values()),
             "MemoryMaxMB": sum(t["MemoryMaxMB"] or t["MemoryMB"] for t in old.values())}
    return {"AllocatedResources": {"Tasks": tasks, "TaskLifecycles": lifecycles, "Shared": {
                "Networks": networks or None, "DiskMB": disk, "Ports": ports or None}},
            "Resources": {**total, "DiskMB": disk, "Networks": networks or None}, "TaskResources": old,
            "SharedResources": {"DiskMB": disk, "Networks": networks or None}}


def snappy_block(data):
    """Returns a dispatch payload in the form of jobs: snappy's block format, with literals only."""
    n, head = len(data), b""
    while n >= 0x80:
        head += bytes([n & 0x7f | 0x80])
        n >>= 7
    out = [head + bytes([n])]
    for at in range(0, len(data), 60):
        part = data[at:at + 60]
        out.append(bytes([(len(part) - 1) << 2]) + part)
    return b"".join(out)

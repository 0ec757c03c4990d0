# SPDX-License-Identifier: Apache-2.0
"""Requests of users through a node's HTTP API, which the node forwards: lists, jobs. Job.Register places allocs at once, without a
scheduler: Count for each group, in turn on the ready nodes; those of a system job on each of them."""
import uuid

from cluster import terminal
from identity import DENIED
from methods import Failure, method

SCHEDULED_EVERYWHERE = ("system", "sysbatch")


def may_ask(ctx):
    """With ACLs the caller needs a known token; its policies are not checked."""
    if ctx.cluster.acl_enabled and ctx.caller.kind not in ("token", "workload", "node"):
        raise Failure(DENIED)


def _namespace(ctx):
    return ctx.args["Namespace"] or "default"


def _here(ctx, item):
    return _namespace(ctx) in ("*", item["Namespace"]) and item["ID"].startswith(ctx.args["Prefix"])


def _stub(one, names, **more):
    return {**{n: one[n] for n in names}, **more}


# --- lists ---

NODE = ("ID", "Datacenter", "Name", "NodeClass", "NodePool", "SchedulingEligibility", "Status", "StatusDescription",
        "CreateIndex", "ModifyIndex", "Drivers", "HostVolumes", "LastDrain")
JOB = ("ID", "ParentID", "Name", "Namespace", "NodePool", "Type", "Status", "StatusDescription", "Datacenters", "Multiregion",
       "Priority", "Stop", "CreateIndex", "ModifyIndex", "JobModifyIndex", "SubmitTime")
ALLOC = ("ID", "EvalID", "Name", "Namespace", "NodeID", "NodeName", "JobID", "TaskGroup", "DesiredStatus",
         "DesiredDescription", "ClientStatus", "ClientDescription", "FollowupEvalID", "NextAllocation",
         "PreemptedByAllocation", "CreateIndex", "ModifyIndex", "DesiredTransition", "TaskStates", "DeploymentStatus",
         "RescheduleTracker", "PreemptedAllocations", "CreateTime", "ModifyTime")


@method("Node.List", "NodeListRequest", "NodeListResponse", auth=may_ask)
def list_nodes(ctx):
    cluster, wants = ctx.cluster, ctx.args["Fields"] or {"Resources": False, "OS": False}

    def stub(node):
        found = _stub(node, NODE, Address=node["HTTPAddr"].partition(":")[0], Drain=node["DrainStrategy"] is not None,
                      Version=(node["Attributes"] or {}).get("nomad.version", ""))
        if wants["Resources"]:
            found.update(_stub(node, ("NodeResources", "ReservedResources")))
        if wants["OS"]:
            found["Attributes"] = {"os.name": node["Attributes"].get("os.name", "")}
        return found

    def look():
        found = [stub(n) for _, n in sorted(cluster.nodes.items()) if n["ID"].startswith(ctx.args["Prefix"])]
        return cluster.newest("nodes"), {"Nodes": found}
    return ctx.block(look)


def summary(cluster, job):
    """Returns the number of allocs of each group by status."""
    counts = {g["Name"]: {"Queued": 0} for g in job["TaskGroups"]}
    names = {"pending": "Starting", "running": "Running", "complete": "Complete", "failed": "Failed", "lost": "Lost",
             "unknown": "Unknown"}
    for alloc in cluster.allocs.values():
        if (alloc["Namespace"], alloc["JobID"]) == (job["Namespace"], job["ID"]) and alloc["TaskGroup"] in counts:
            group, name = counts[alloc["TaskGroup"]], names[alloc["ClientStatus"]]
            group[name] = group.get(name, 0) + 1
    return {"JobID": job["ID"], "Namespace": job["Namespace"], "Summary": counts, "Children": {},
            "CreateIndex": job["CreateIndex"], "ModifyIndex": job["ModifyIndex"]}


@method("Job.List", "JobListRequest", "JobListResponse", auth=may_ask)
def list_jobs(ctx):
    cluster = ctx.cluster

    def stub(job):
        return _stub(job, JOB, Periodic=job["Periodic"] is not None, JobSummary=summary(cluster, job),
                     ParameterizedJob=job["ParameterizedJob"] is not None,
                     Meta=job["Meta"] if (ctx.args["Fields"] or {}).get("Meta") else None)

    def look():
        found = [stub(j) for _, j in sorted(cluster.jobs.items()) if _here(ctx, j)]
        return max(cluster.newest("jobs"), cluster.newest("allocs")), {"Jobs": found or ([] if cluster.at_least(1, 7) else None)}
    return ctx.block(look)


def _alloc_stub(alloc, resources=False, states=True):
    return _stub(alloc, ALLOC, JobType=alloc["Job"]["Type"], JobVersion=alloc["Job"]["Version"],
                 AllocatedResources=alloc["AllocatedResources"] if resources else None,
                 **({} if states else {"TaskStates": None}))


@method("Alloc.List", "AllocListRequest", "AllocListResponse", auth=may_ask)
def list_allocs(ctx):
    cluster, wants = ctx.cluster, ctx.args["Fields"] or {"Resources": False, "TaskStates": True}

    def look():
        found = [_alloc_stub(a, wants["Resources"], wants["TaskStates"]) for _, a in sorted(cluster.allocs.items())
                 if _here(ctx, a)]
        return cluster.newest("allocs"), {"Allocations": found}
    return ctx.block(look)


# --- jobs ---

def _job(ctx):
    return ctx.cluster.jobs.get((_namespace(ctx), ctx.args["JobID"]))


@method("Job.GetJob", "JobSpecificRequest", "SingleJobResponse", auth=may_ask)
def get_job(ctx):
    def look():
        job = _job(ctx)
        return (job["ModifyIndex"] if job else ctx.cluster.newest("jobs")), {"Job": job}
    return ctx.block(look)


@method("Job.GetJobVersions", "JobVersionsRequest", "JobVersionsResponse", auth=may_ask)
def job_versions(ctx):
    """Only the newest version is known."""
    def look():
        job = _job(ctx)
        return (job["ModifyIndex"] if job else ctx.cluster.newest("jobs")), {"Versions": [job] if job else [], "Diffs": None}
    return ctx.block(look)


@method("Job.TagVersion", "JobApplyTagRequest", "JobTagResponse", auth=may_ask, write=True, since=(1, 9))
def tag_version(ctx):
    job, tag = _job(ctx), ctx.args["Tag"]
    if job is None or ctx.args["Version"] != job["Version"]:
        raise Failure("job version not found")
    with ctx.cluster.changed:
        job.update(VersionTag=tag, ModifyIndex=ctx.cluster.bump("jobs"))
    return {"Index": job["ModifyIndex"], **(tag or {})}


@method("Job.GetJobSubmission", "JobSubmissionRequest", "JobSubmissionResponse", auth=may_ask)
def get_job_submission(ctx):
    def look():
        found = ctx.cluster.submissions.get((_namespace(ctx), ctx.args["JobID"], ctx.args["Version"]))
        return (found["JobModifyIndex"] if found else 0), {"Submission": found}
    return ctx.block(look)


@method("Job.Allocations", "JobSpecificRequest", "JobAllocationsResponse", auth=may_ask)
def job_allocations(ctx):
    cluster = ctx.cluster

    def look():
        found = [a for a in cluster.allocs.values() if (a["Namespace"], a["JobID"]) == (_namespace(ctx), ctx.args["JobID"])]
        index = max((a["ModifyIndex"] for a in found), default=cluster.newest("allocs"))
        return index, {"Allocations": [_alloc_stub(a) for a in found] or None}
    return ctx.block(look)


def schedule(cluster, job):
    """Places the allocs of a new job."""
    nodes = [n["ID"] for n in cluster.nodes.values() if n["Status"] == "ready" and not n["DrainStrategy"] and
             n["SchedulingEligibility"] == "eligible" and job["NodePool"] in ("all", n["NodePool"])]
    if not nodes:
        return
    if job["Type"] in SCHEDULED_EVERYWHERE:
        for node_id in nodes:
            cluster.place(job, node_id)
        return
    turn = 0
    for group in job["TaskGroups"]:
        for number in range(group["Count"]):
            one = {**job, "TaskGroups": [{**group, "Count": 1}]}
            made = cluster.place(one, nodes[turn % len(nodes)])
            cluster.allocs[made[0]].update(Job=job, Name="%s.%s[%d]" % (job["ID"], group["Name"], number))
            turn += 1


def stop_all(cluster, namespace, job_id, no_shutdown_delay=None):
    for alloc in list(cluster.allocs.values()):
        if (alloc["Namespace"], alloc["JobID"], alloc["DesiredStatus"]) == (namespace, job_id, "run") and not terminal(alloc):
            cluster.stop_alloc(alloc["ID"], no_shutdown_delay=no_shutdown_delay)


@method("Job.Register", "JobRegisterRequest", "JobRegisterResponse", auth=may_ask, write=True)
def register_job(ctx):
    cluster, job = ctx.cluster, ctx.args["Job"]
    if not job:
        raise Failure("missing job for registration")
    with cluster.changed:
        job = cluster.register_job({k: v for k, v in job.items() if v or k in ("ID",)})
        if ctx.args["Submission"]:
            key = {k: job[k] for k in ("Namespace", "Version", "JobModifyIndex")}
            cluster.submissions[(job["Namespace"], job["ID"], job["Version"])] = {**ctx.args["Submission"], **key, "JobID": job["ID"]}
        if job["Version"]:
            stop_all(cluster, job["Namespace"], job["ID"])
        if not job["ParameterizedJob"] and not job["Periodic"]:
            schedule(cluster, job)
    return {"EvalID": str(uuid.uuid4()), "EvalCreateIndex": job["ModifyIndex"], "JobModifyIndex": job["ModifyIndex"],
            "Index": job["ModifyIndex"]}


@method("Job.Deregister", "JobDeregisterRequest", "JobDeregisterResponse", auth=may_ask, write=True)
def deregister_job(ctx):
    cluster, args = ctx.cluster, ctx.args
    with cluster.changed:
        job = _job(ctx)
        if job is None:
            return {}
        index = cluster.bump("jobs")
        job.update(Stop=True, ModifyIndex=index)
        stop_all(cluster, job["Namespace"], job["ID"], args["NoShutdownDelay"] or None)
        if args["Purge"]:
            del cluster.jobs[(job["Namespace"], job["ID"])]
    return {"EvalID": str(uuid.uuid4()), "EvalCreateIndex": index, "JobModifyIndex": index, "Index": index}

// SPDX-License-Identifier: Apache-2.0
/* nomad_paths.c: the table of API paths that the servers answer, each by one method. Runs in:
 * supervisor. */
#include "supervisor/api/api_checks.h"
#include "supervisor/api/api_exec.h"
#include "supervisor/api/api_fs.h"
#include "supervisor/api/api_node.h"
#include "supervisor/api/api_stats.h"
#include "supervisor/node/node_state.h"
#include "supervisor/cluster/node/nomad.h"
#include "supervisor/cluster/api/nomad_mapped.h"

/* Paths that this agent answers itself. */

static bool
alloc_is_here(struct sup *sup, const struct api_req *req)
{
	struct id id;

	return id_from_uuid(api_param(req, 0), &id) && alloc_find(sup, &id);
}

/* A word that is not an id cannot belong to another node. */
static bool
files_are_here(struct sup *sup, const struct api_req *req)
{
	struct id id;

	return !id_from_uuid(api_param(req, 0), &id) || alloc_find(sup, &id);
}

static bool
action_is_here(struct sup *sup, const struct api_req *req)
{
	struct id id;

	return !id_from_uuid(str(api_query(req, "allocID")), &id) || alloc_find(sup, &id);
}

static bool
node_is_here(struct sup *sup, const struct api_req *req)
{
	const char *wanted = api_query(req, "node_id");

	return !wanted || !*wanted || str_eq(wanted, node_get(sup)->id);
}

static bool
agent_is_here(struct sup *sup, const struct api_req *req)
{
	return !*str(api_query(req, "server_id")) && node_is_here(sup, req);
}

/* Lists of volumes and plugins are requested by type; csi is the only one. */
static bool
is_not_csi(struct sup *sup, const struct api_req *req)
{
	return !str_eq(api_query(req, "type"), "csi");
}

static bool
is_always(struct sup *sup, const struct api_req *req)
{
	return true;
}

static void
reply_nothing(struct sup *sup, struct api_req *req)
{
	api_reply_json(req, json_array());
}

/* The table. */

#define GET(pattern, method, param, member, missing, ...)                                          \
	{                                                                                          \
		.http = "GET", pattern, method, param, member, missing, __VA_ARGS__                \
	}
#define PUT(pattern, method, param, ...)                                                           \
	{                                                                                          \
		.http = "PUT", pattern, method, param, NULL, NULL, __VA_ARGS__                     \
	}
/* With these members of the body as arguments. */
#define SEND(pattern, method, param, members)                                                      \
	{                                                                                          \
		.http = "PUT", pattern, method, param, .body = members                             \
	}

/* With the body as the only element of a list. */
#define PUT_LIST(pattern, method, list)                                                            \
	{                                                                                          \
		.http = "PUT", pattern, method, .in_list = list                                    \
	}
#define DELETE_LIST(pattern, method, list)                                                         \
	{                                                                                          \
		.http = "DELETE", pattern, method, .in_list = list                                 \
	}
/* Always answered here. */
#define HERE(http_, pattern, fn)                                                                   \
	{                                                                                          \
		.http = http_, pattern, .is_here = is_always, .here = fn                           \
	}
#define ENTERPRISE(pattern)                                                                        \
	HERE("GET", pattern, reply_enterprise), HERE("PUT", pattern, reply_enterprise),            \
	    HERE("DELETE", pattern, reply_enterprise)

static const struct mapped all[] = {
	GET("/v1/jobs", "Job.List", NULL, "Jobs", NULL, NULL, NULL),
	GET("/v1/job/:id", "Job.GetJob", "JobID", "Job", "job not found", NULL, NULL),
	GET("/v1/job/:id/allocations", "Job.Allocations", "JobID", "Allocations", NULL, all_args,
	    NULL),
	GET("/v1/job/:id/evaluations", "Job.Evaluations", "JobID", "Evaluations", NULL, NULL, NULL),
	GET("/v1/job/:id/deployments", "Job.Deployments", "JobID", "Deployments", NULL, all_args,
	    NULL),
	GET("/v1/job/:id/deployment", "Job.LatestDeployment", "JobID", "Deployment", NULL, NULL,
	    NULL),
	GET("/v1/job/:id/summary", "Job.Summary", "JobID", "JobSummary", "job not found", NULL,
	    NULL),
	GET("/v1/job/:id/versions", "Job.GetJobVersions", "JobID", NULL, NULL, NULL, NULL),
	GET("/v1/job/:id/scale", "Job.ScaleStatus", "JobID", "JobScaleStatus", "job not found",
	    NULL, NULL),
	GET("/v1/job/:id/actions", "Job.GetActions", "JobID", "Actions", NULL, NULL, NULL),
	GET("/v1/job/:id/submission", "Job.GetJobSubmission", "JobID", "Submission",
	    "job source not found", submission_args, NULL),
	GET("/v1/allocations", "Alloc.List", NULL, "Allocations", NULL, alloc_fields_args,
	    api_list_allocs),
	GET("/v1/allocation/:id/services", "Alloc.GetServiceRegistrations", "AllocID", "Services",
	    NULL, NULL, NULL),
	GET("/v1/allocation/:id", "Alloc.GetAlloc", "AllocID", "Alloc", "alloc not found", NULL,
	    api_get_alloc),
	GET("/v1/nodes", "Node.List", NULL, "Nodes", NULL, node_fields_args, api_list_nodes),
	GET("/v1/node/pools", "NodePool.List", NULL, "NodePools", NULL, NULL, NULL),
	GET("/v1/node/pool/:name", "NodePool.GetNodePool", "Name", "NodePool",
	    "node pool not found", NULL, NULL),
	GET("/v1/node/pool/:name/jobs", "NodePool.ListJobs", "Name", "Jobs", NULL, NULL, NULL),
	GET("/v1/node/pool/:name/nodes", "NodePool.ListNodes", "Name", "Nodes", NULL,
	    node_fields_args, NULL),
	GET("/v1/node/:id", "Node.GetNode", "NodeID", "Node", "node not found", NULL, api_get_node),
	GET("/v1/node/:id/allocations", "Node.GetAllocs", "NodeID", "Allocs", NULL, NULL,
	    api_get_node_allocs),
	GET("/v1/evaluations", "Eval.List", NULL, "Evaluations", NULL, NULL, NULL),
	GET("/v1/evaluations/count", "Eval.Count", NULL, NULL, NULL, NULL, NULL),
	GET("/v1/evaluation/:id", "Eval.GetEval", "EvalID", "Eval", "eval not found", NULL, NULL),
	GET("/v1/evaluation/:id/allocations", "Eval.Allocations", "EvalID", "Allocations", NULL,
	    NULL, NULL),
	GET("/v1/deployments", "Deployment.List", NULL, "Deployments", NULL, NULL, NULL),
	GET("/v1/deployment/:id", "Deployment.GetDeployment", "DeploymentID", "Deployment",
	    "deployment not found", NULL, NULL),
	GET("/v1/deployment/allocations/:id", "Deployment.Allocations", "DeploymentID",
	    "Allocations", NULL, NULL, NULL),
	GET("/v1/volumes", "CSIVolume.List", NULL, "Volumes", NULL, csi_list_args, NULL,
	    .is_here = is_not_csi, .here = reply_nothing),
	GET("/v1/volumes/external", "CSIVolume.ListExternal", NULL, NULL, NULL, csi_list_args,
	    NULL),
	GET("/v1/volumes/snapshot", "CSIVolume.ListSnapshots", NULL, NULL, NULL, csi_secrets_args,
	    NULL),
	PUT("/v1/volumes/snapshot", "CSIVolume.CreateSnapshot", NULL, snapshots_args),
	{ .http = "DELETE",
	    "/v1/volumes/snapshot",
	    "CSIVolume.DeleteSnapshot",
	    .args = snapshot_args },
	GET("/v1/volume/csi/:id", "CSIVolume.Get", "ID", "Volume", NULL, NULL, NULL,
	    .reply = reply_volume),
	GET("/v1/plugins", "CSIPlugin.List", NULL, "Plugins", NULL, NULL, NULL,
	    .is_here = is_not_csi, .here = reply_nothing),
	GET("/v1/plugin/csi/:id", "CSIPlugin.Get", "ID", "Plugin", "plugin not found", NULL, NULL),
	GET("/v1/services", "ServiceRegistration.List", NULL, "Services", NULL, NULL, NULL),
	GET("/v1/service/:name", "ServiceRegistration.GetService", "ServiceName", "Services", NULL,
	    NULL, NULL),
	GET("/v1/namespaces", "Namespace.ListNamespaces", NULL, "Namespaces", NULL, NULL, NULL),
	GET("/v1/namespace/:name", "Namespace.GetNamespace", "Name", "Namespace",
	    "Namespace not found", NULL, NULL),
	GET("/v1/vars", "Variables.List", NULL, "Data", NULL, NULL, NULL),
	GET("/v1/var/*", "Variables.Read", "Path", "Data", "variable not found", NULL, NULL),
	{ .http = "PUT",
	    "/v1/var/*",
	    "Variables.Apply",
	    .args = variable_args,
	    .reply = reply_variable },
	{ .http = "DELETE",
	    "/v1/var/*",
	    "Variables.Apply",
	    .args = variable_args,
	    .reply = reply_variable },
	GET("/v1/status/leader", "Status.Leader", NULL, NULL, NULL, NULL, NULL),
	GET("/v1/status/peers", "Status.Peers", NULL, NULL, NULL, NULL, NULL),
	GET("/v1/regions", "Region.List", NULL, NULL, NULL, NULL, NULL),
	GET("/v1/agent/members", "Status.Members", NULL, NULL, NULL, NULL, NULL),
	GET("/v1/scaling/policies", "Scaling.ListPolicies", NULL, "Policies", NULL, NULL, NULL),
	GET("/v1/scaling/policy/:id", "Scaling.GetPolicy", "ID", "Policy", "policy not found", NULL,
	    NULL),
	GET("/v1/acl/token/self", "ACL.ResolveToken", NULL, NULL, NULL, token_args, NULL,
	    .reply = reply_token),
	GET("/v1/acl/policies", "ACL.ListPolicies", NULL, "Policies", NULL, NULL, NULL),
	GET("/v1/acl/policy/:name", "ACL.GetPolicy", "Name", "Policy", "ACL policy not found", NULL,
	    NULL),
	GET("/v1/acl/tokens", "ACL.ListTokens", NULL, "Tokens", NULL, NULL, NULL),
	GET("/v1/acl/roles", "ACL.ListRoles", NULL, "ACLRoles", NULL, NULL, NULL),
	GET("/v1/acl/role/:id", "ACL.GetRoleByID", "RoleID", "ACLRole", "ACL role not found", NULL,
	    NULL),
	GET("/v1/acl/auth-methods", "ACL.ListAuthMethods", NULL, "AuthMethods", NULL, NULL, NULL),
	GET("/v1/acl/auth-method/:name", "ACL.GetAuthMethod", "MethodName", "AuthMethod",
	    "ACL auth-method not found", NULL, NULL),
	GET("/v1/acl/binding-rules", "ACL.ListBindingRules", NULL, "ACLBindingRules", NULL, NULL,
	    NULL),
	GET("/v1/operator/keyring/keys", "Keyring.List", NULL, "Keys", NULL, NULL, NULL),
	PUT("/v1/operator/keyring/rotate", "Keyring.Rotate", NULL, rotate_args),
	{ .http = "DELETE", "/v1/operator/keyring/key/:id", "Keyring.Delete", "KeyID" },
	GET("/v1/operator/autopilot/configuration", "Operator.AutopilotGetConfiguration", NULL,
	    NULL, NULL, NULL, NULL, .reply = reply_autopilot),
	PUT("/v1/operator/autopilot/configuration", "Operator.AutopilotSetConfiguration", NULL,
	    autopilot_args),
	GET("/v1/operator/autopilot/health", "Operator.ServerHealth", NULL, NULL, NULL, NULL, NULL,
	    .reply = reply_health),
	PUT("/v1/operator/scheduler/configuration", "Operator.SchedulerSetConfiguration", NULL,
	    scheduler_args),
	PUT_LIST("/v1/namespaces", "Namespace.UpsertNamespaces", "Namespaces"),
	PUT_LIST("/v1/namespace", "Namespace.UpsertNamespaces", "Namespaces"),
	PUT_LIST("/v1/namespace/:name", "Namespace.UpsertNamespaces", "Namespaces"),
	DELETE_LIST("/v1/namespace/:name", "Namespace.DeleteNamespaces", "Namespaces"),
	PUT_LIST("/v1/node/pools", "NodePool.UpsertNodePools", "NodePools"),
	PUT_LIST("/v1/node/pool/:name", "NodePool.UpsertNodePools", "NodePools"),
	DELETE_LIST("/v1/node/pool/:name", "NodePool.DeleteNodePools", "Names"),
	PUT_LIST("/v1/acl/policy/:name", "ACL.UpsertPolicies", "Policies"),
	DELETE_LIST("/v1/acl/policy/:name", "ACL.DeletePolicies", "Names"),
	DELETE_LIST("/v1/acl/token/:id", "ACL.DeleteTokens", "AccessorIDs"),
	{ .http = "DELETE",
	    "/v1/service/:name/:id",
	    "ServiceRegistration.DeleteByID",
	    "ID",
	    .args = service_args },
	PUT("/v1/job/:id/dispatch", "Job.Dispatch", "JobID", dispatch_args),
	PUT("/v1/system/reconcile/summaries", "System.ReconcileJobSummaries", NULL, NULL),
	HERE("PUT", "/v1/jobs/parse", reply_no_parser),
	ENTERPRISE("/v1/quotas"),
	ENTERPRISE("/v1/quota-usages"),
	ENTERPRISE("/v1/quota"),
	ENTERPRISE("/v1/quota/*"),
	ENTERPRISE("/v1/sentinel/*"),
	ENTERPRISE("/v1/operator/license"),
	ENTERPRISE("/v1/recommendations"),
	ENTERPRISE("/v1/recommendations/*"),
	ENTERPRISE("/v1/recommendation"),
	ENTERPRISE("/v1/recommendation/*"),
	GET("/v1/operator/raft/configuration", "Operator.RaftGetConfiguration", NULL, NULL, NULL,
	    NULL, NULL),
	GET("/v1/operator/scheduler/configuration", "Operator.SchedulerGetConfiguration", NULL,
	    NULL, NULL, NULL, NULL),
	GET("/v1/agent/host", "Agent.Host", NULL, NULL, NULL, agent_args, NULL,
	    .is_here = agent_is_here, .here = api_get_host),
	GET("/v1/agent/monitor", "Agent.Monitor", NULL, NULL, NULL, monitor_args, NULL,
	    .is_here = agent_is_here, .here = api_get_monitor, .pass = pass_stream,
	    .type = TYPE_JSON),
	GET("/v1/agent/monitor/export", "Agent.MonitorExport", NULL, NULL, NULL, export_args, NULL,
	    .is_here = agent_is_here, .here = api_export_monitor, .pass = pass_stream,
	    .type = TYPE_JSON),
	GET("/v1/event/stream", "Event.Stream", NULL, NULL, NULL, event_args, NULL,
	    .pass = pass_stream, .type = TYPE_JSON),
	GET("/v1/client/fs/cat/:id", "FileSystem.Stream", "AllocID", NULL, NULL, cat_args,
	    api_cat_file, .is_here = files_are_here, .here = api_cat_file, .pass = pass_stream,
	    .type = TYPE_BYTES),
	GET("/v1/client/fs/logs/:id", "FileSystem.Logs", "AllocID", NULL, NULL, logs_args,
	    api_get_logs, .is_here = files_are_here, .here = api_get_logs, .pass = pass_stream,
	    .type = TYPE_JSON),
	GET("/v1/client/fs/ls/:id", "FileSystem.List", "AllocID", NULL, NULL, path_args,
	    api_list_files, .is_here = files_are_here, .here = api_list_files,
	    .reply = reply_files),
	GET("/v1/client/fs/readat/:id", "FileSystem.Stream", "AllocID", NULL, NULL, read_at_args,
	    api_read_file_at, .is_here = files_are_here, .here = api_read_file_at,
	    .pass = pass_stream, .type = TYPE_BYTES),
	GET("/v1/client/fs/stat/:id", "FileSystem.Stat", "AllocID", NULL, NULL, path_args,
	    api_stat_file, .is_here = files_are_here, .here = api_stat_file, .reply = reply_file),
	GET("/v1/client/fs/stream/:id", "FileSystem.Stream", "AllocID", NULL, NULL, file_args,
	    api_stream_file, .is_here = files_are_here, .here = api_stream_file,
	    .pass = pass_stream, .type = TYPE_JSON),
	GET("/v1/client/allocation/:id/exec", "Allocations.Exec", "AllocID", NULL, NULL, exec_args,
	    api_exec_command, .is_here = files_are_here, .here = api_exec_command,
	    .pass = pass_exec),
	GET("/v1/job/:id/action", "Allocations.Exec", "JobID", NULL, NULL, action_args,
	    api_exec_action, .is_here = action_is_here, .here = api_exec_action, .pass = pass_exec),
	GET("/v1/client/stats", "ClientStats.Stats", NULL, "HostStats", NULL, node_args,
	    api_get_host_stats, .is_here = node_is_here, .here = api_get_host_stats),
	GET("/v1/client/allocation/:id/stats", "ClientAllocations.Stats", "AllocID", "Stats", NULL,
	    task_args, api_get_alloc_stats, .is_here = alloc_is_here, .here = api_get_alloc_stats),
	GET("/v1/client/allocation/:id/checks", "ClientAllocations.Checks", "AllocID", "Results",
	    NULL, NULL, api_get_alloc_checks, .is_here = alloc_is_here,
	    .here = api_get_alloc_checks),
	GET("/v1/client/allocation/:id/gc", "ClientAllocations.GarbageCollect", "AllocID", NULL,
	    NULL, NULL, NULL),
	SEND("/v1/client/allocation/:id/signal", "ClientAllocations.Signal", "AllocID",
	    "Task Signal"),
	SEND("/v1/client/allocation/:id/restart", "ClientAllocations.Restart", "AllocID",
	    "TaskName AllTasks"),
	SEND("/v1/search", "Search.PrefixSearch", NULL, "Prefix Context"),
	SEND("/v1/search/fuzzy", "Search.FuzzySearch", NULL, "Text Context"),
	PUT("/v1/jobs", "Job.Register", NULL, job_args, NULL, .encode = encode_job),
	PUT("/v1/job/:id", "Job.Register", NULL, job_args, NULL, .encode = encode_job),
	PUT("/v1/job/:id/plan", "Job.Plan", NULL, plan_args, NULL, .encode = encode_plan),
	PUT("/v1/validate/job", "Job.Validate", NULL, job_args, NULL, .encode = encode_job),
	SEND("/v1/job/:id/evaluate", "Job.Evaluate", "JobID", "EvalOptions"),
	SEND("/v1/job/:id/scale", "Job.Scale", "JobID",
	    "Target Count Message Error Meta PolicyOverride"),
	SEND("/v1/job/:id/revert", "Job.Revert", "JobID", "JobVersion EnforcePriorVersion"),
	SEND("/v1/job/:id/stable", "Job.Stable", "JobID", "JobVersion Stable"),
	PUT("/v1/job/:id/periodic/force", "Periodic.Force", "JobID", NULL),
	SEND("/v1/deployment/promote/:id", "Deployment.Promote", "DeploymentID", "All Groups"),
	SEND("/v1/deployment/pause/:id", "Deployment.Pause", "DeploymentID", "Pause"),
	PUT("/v1/deployment/fail/:id", "Deployment.Fail", "DeploymentID", NULL),
	PUT("/v1/deployment/unblock/:id", "Deployment.Unblock", "DeploymentID", NULL),
	SEND("/v1/deployment/allocation-health/:id", "Deployment.SetAllocHealth", "DeploymentID",
	    "HealthyAllocationIDs UnhealthyAllocationIDs"),
	{ .http = "DELETE",
	    "/v1/job/:id",
	    "Job.Deregister",
	    "JobID",
	    NULL,
	    NULL,
	    purge_args,
	    NULL },
	PUT("/v1/allocation/:id/stop", "Alloc.Stop", "AllocID", stop_args),
	PUT("/v1/volumes", "CSIVolume.Register", NULL, volumes_args, NULL,
	    .encode = encode_volumes),
	PUT("/v1/volume/csi/:id", "CSIVolume.Register", NULL, volumes_args, NULL,
	    .encode = encode_volumes),
	PUT("/v1/volume/csi/:id/create", "CSIVolume.Create", NULL, volumes_args, NULL,
	    .encode = encode_volumes),
	{ .http = "DELETE", "/v1/volume/csi/:id/delete", "CSIVolume.Delete", .args = delete_args },
	{ .http = "DELETE",
	    "/v1/volume/csi/:id",
	    "CSIVolume.Deregister",
	    NULL,
	    NULL,
	    NULL,
	    deregister_args,
	    NULL },
	PUT("/v1/node/:id/drain", "Node.UpdateDrain", "NodeID", drain_args),
	PUT("/v1/node/:id/eligibility", "Node.UpdateEligibility", "NodeID", eligibility_args),
	PUT("/v1/node/:id/purge", "Node.Deregister", "NodeID", NULL),
	PUT("/v1/node/:id/evaluate", "Node.Evaluate", "NodeID", NULL),
	GET("/v1/client/metadata", "NodeMeta.Read", NULL, NULL, NULL, self_args, NULL),
	PUT("/v1/client/metadata", "NodeMeta.Apply", NULL, meta_args),
	GET("/v1/client/identity", "NodeIdentity.Get", NULL, NULL, NULL, self_args, NULL),
	PUT("/v1/client/identity/renew", "NodeIdentity.Renew", NULL, meta_args),
	PUT("/v1/system/gc", "System.GarbageCollect", NULL, NULL),
};

/* The routes: the same patterns, all with one handler. */
static struct api_route routes[ELEMENTSOF(all) + 1];

const struct mapped *
mapped_of(const struct api_req *req)
{
	return &all[api_req_route(req) - routes];
}

const struct api_route *
nomad_api_routes(void)
{
	for (size_t i = 0; i < ELEMENTSOF(all); i++)
		routes[i] = (struct api_route){ all[i].http, all[i].pattern, serve_mapped, false };
	return routes;
}

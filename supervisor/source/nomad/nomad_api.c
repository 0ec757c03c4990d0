// SPDX-License-Identifier: Apache-2.0
/*
 * nomad_api.c: paths of the API that the servers answer: each is one call of theirs, and what they
 * say is shown as it came. Without a server, what this node knows is shown of itself and its
 * allocs. Runs in: supervisor.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/cleanup.h"
#include "common/duration.h"
#include "model/table.h"
#include "supervisor/api/api.h"
#include "supervisor/api/api_checks.h"
#include "supervisor/api/api_node.h"
#include "supervisor/api/api_stats.h"
#include "supervisor/node/node_state.h"
#include "supervisor/source/nomad/nomad.h"
#include "supervisor/source/nomad/nomad_acl.h"
#include "supervisor/source/nomad/nomad_json.h"
#include "supervisor/source/nomad/nomad_mapped.h"

#define CALL_MS     30000
#define FALLBACK_MS 3000   /* where this node knows something itself */
#define WAIT_MS     300000 /* of a blocking query that does not say how long */
#define WAIT_MAX_MS 600000

/* An answer that is waited for. */
struct ask {
	struct api_req *req;
	const struct mapped *m;
};

static mapped_args meta_args, self_args, job_args, volumes_args, deregister_args, stop_args,
    drain_args, eligibility_args, submission_args, purge_args, all_args, task_args, node_args,
    node_fields_args, token_args, alloc_fields_args, plan_args, csi_list_args, csi_secrets_args,
    snapshots_args, snapshot_args, delete_args, service_args;
static bool alloc_is_here(struct sup *sup, const struct api_req *req);
static bool node_is_here(struct sup *sup, const struct api_req *req);
static bool is_not_csi(struct sup *sup, const struct api_req *req);
static bool is_always(struct sup *sup, const struct api_req *req);
static api_handler reply_nothing;

#define GET(pattern, method, param, member, missing, ...)                                          \
	{                                                                                          \
		.http = "GET", pattern, method, param, member, missing, __VA_ARGS__                \
	}
#define PUT(pattern, method, param, args)                                                          \
	{                                                                                          \
		.http = "PUT", pattern, method, param, NULL, NULL, args, NULL                      \
	}
/* With these members of the body. */
#define SEND(pattern, method, param, members)                                                      \
	{                                                                                          \
		.http = "PUT", pattern, method, param, .body = members                             \
	}

/* With the body as the only one of a list. */
#define PUT_LIST(pattern, method, list)                                                            \
	{                                                                                          \
		.http = "PUT", pattern, method, .in_list = list                                    \
	}
#define DELETE_LIST(pattern, method, list)                                                         \
	{                                                                                          \
		.http = "DELETE", pattern, method, .in_list = list                                 \
	}
/* Answered here, whatever the method. */
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
	GET("/v1/volume/csi/:id", "CSIVolume.Get", "ID", "Volume", "volume not found", NULL, NULL),
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
	GET("/v1/acl/token/self", "ACL.ResolveToken", NULL, "Token", "ACL token not found",
	    token_args, NULL),
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
	PUT("/v1/jobs", "Job.Register", NULL, job_args),
	PUT("/v1/job/:id", "Job.Register", NULL, job_args),
	PUT("/v1/job/:id/plan", "Job.Plan", NULL, plan_args),
	PUT("/v1/validate/job", "Job.Validate", NULL, job_args),
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
	PUT("/v1/volumes", "CSIVolume.Register", NULL, volumes_args),
	PUT("/v1/volume/csi/:id", "CSIVolume.Register", NULL, volumes_args),
	PUT("/v1/volume/csi/:id/create", "CSIVolume.Create", NULL, volumes_args),
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
	PUT("/v1/system/gc", "System.GarbageCollect", NULL, NULL),
};

static void on_mapped(struct sup *sup, struct api_req *req);

/* --- arguments --- */

/* struct type whose only field is JSON: it looks like that value. */
struct any {
	json_t *value;
};
#define S any
static const struct field any_fields[] = { F_JSON(value, "") };
static MODEL_TYPE(any, any_fields, .name = "arguments", .bare = true);
#undef S

/* Job.Register. */
struct job_req {
	struct job *job;
	bool enforce_index, preserve_counts, policy_override;
	uint64_t job_modify_index;
	int64_t eval_priority;
	json_t *submission; /* the text that it was made of */
	char *region, *namespace, *auth_token;
};
#define S job_req
static const struct field job_req_fields[] = {
	F_POINTER(job, "Job", job),
	F_BOOL(enforce_index, "EnforceIndex"),
	F_BOOL(preserve_counts, "PreserveCounts"),
	F_BOOL(policy_override, "PolicyOverride"),
	F_JSON(submission, "Submission"),
	F_UINT(job_modify_index, "JobModifyIndex"),
	F_INT(eval_priority, "EvalPriority"),
	F_STRING(region, "Region"),
	F_STRING(namespace, "Namespace"),
	F_STRING(auth_token, "AuthToken"),
};
static MODEL_TYPE(job_req, job_req_fields, .name = "request");
#undef S

/* CSIVolume.Register, Create. */
struct volumes_req {
	MODEL_LIST(struct csi_volume) volumes;
	char *region, *namespace, *auth_token;
};
#define S volumes_req
static const struct field volumes_req_fields[] = {
	F_LIST(volumes, "Volumes", csi_volume),
	F_STRING(region, "Region"),
	F_STRING(namespace, "Namespace"),
	F_STRING(auth_token, "AuthToken"),
};
static MODEL_TYPE(volumes_req, volumes_req_fields, .name = "request");
#undef S

/* Job.Plan. */
struct plan_req {
	struct job *job;
	bool diff, policy_override;
	char *region, *namespace, *auth_token;
};
#define S plan_req
static const struct field plan_req_fields[] = {
	F_POINTER(job, "Job", job),
	F_BOOL(diff, "Diff"),
	F_BOOL(policy_override, "PolicyOverride"),
	F_STRING(region, "Region"),
	F_STRING(namespace, "Namespace"),
	F_STRING(auth_token, "AuthToken"),
};
static MODEL_TYPE(plan_req, plan_req_fields, .name = "request");
#undef S

static void
set_text(json_t *args, const char *key, const char *value)
{
	(void)json_object_set_new(args, key, json_string(value ? value : ""));
}

static void
copy_query(const struct api_req *req, const char *name, json_t *args, const char *key)
{
	const char *value = api_query(req, name);

	if (value && *value)
		set_text(args, key, value);
}

static int
all_args(struct api_req *req, json_t *args, struct err *e)
{
	bool yes = false;
	int r = api_query_bool(req, "all", &yes, e);

	(void)json_object_set_new(args, "All", json_boolean(yes));
	return r;
}

static int
purge_args(struct api_req *req, json_t *args, struct err *e)
{
	bool purge = false, global = false;
	int r = api_query_bool(req, "purge", &purge, e);

	if (r == 0)
		r = api_query_bool(req, "global", &global, e);
	(void)json_object_set_new(args, "Purge", json_boolean(purge));
	(void)json_object_set_new(args, "Global", json_boolean(global));
	return r;
}

static int
stop_args(struct api_req *req, json_t *args, struct err *e)
{
	bool no_delay = false;
	int r = api_query_bool(req, "no_shutdown_delay", &no_delay, e);

	(void)json_object_set_new(args, "NoShutdownDelay", json_boolean(no_delay));
	return r;
}

/* A member of the body under the name that the method has for it; null is left out. */
static void
copy_member(const json_t *body, const char *name, json_t *args, const char *key)
{
	json_t *value = json_object_get(body, name);

	if (value && !json_is_null(value))
		(void)json_object_set(args, key, value);
}

static int
drain_args(struct api_req *req, json_t *args, struct err *e)
{
	json_t *body = api_body(req, e);

	if (!body)
		return -EINVAL;
	copy_member(body, "DrainSpec", args, "DrainStrategy");
	copy_member(body, "MarkEligible", args, "MarkEligible");
	copy_member(body, "Meta", args, "Meta");
	return 0;
}

static int
eligibility_args(struct api_req *req, json_t *args, struct err *e)
{
	json_t *body = api_body(req, e);

	if (!body)
		return -EINVAL;
	copy_member(body, "Eligibility", args, "Eligibility");
	return 0;
}

/* Another node's, or this one's. */
static int
self_args(struct api_req *req, json_t *args, struct err *e)
{
	const char *node = api_query(req, "node_id");

	set_text(args, "NodeID", node && *node ? node : node_get(api_req_sup(req))->id);
	return 0;
}

static int
meta_args(struct api_req *req, json_t *args, struct err *e)
{
	json_t *body = api_body(req, e);

	if (!body)
		return -EINVAL;
	(void)self_args(req, args, e);
	if (*str(json_string_value(json_object_get(body, "NodeID"))))
		copy_member(body, "NodeID", args, "NodeID");
	copy_member(body, "Meta", args, "Meta");
	return 0;
}

static int
volumes_args(struct api_req *req, json_t *args, struct err *e)
{
	json_t *body = api_body(req, e);

	if (!body)
		return -EINVAL;
	if (!json_is_array(json_object_get(body, "Volumes")))
		return err_say(e, -EINVAL, "the body has no Volumes");
	copy_member(body, "Volumes", args, "Volumes");
	return 0;
}

static int
deregister_args(struct api_req *req, json_t *args, struct err *e)
{
	bool force = false;
	int r = api_query_bool(req, "force", &force, e);

	(void)json_object_set_new(args, "Force", json_boolean(force));
	(void)json_object_set_new(args, "VolumeIDs", json_pack("[s]", api_param(req, 0)));
	return r;
}

static int
job_args(struct api_req *req, json_t *args, struct err *e)
{
	json_t *body = api_body(req, e);

	if (!body)
		return -EINVAL;
	if (!json_is_object(json_object_get(body, "Job")))
		return err_say(e, -EINVAL, "the body has no Job");
	copy_member(body, "EnforceIndex", args, "EnforceIndex");
	copy_member(body, "JobModifyIndex", args, "JobModifyIndex");
	copy_member(body, "PreserveCounts", args, "PreserveCounts");
	copy_member(body, "PolicyOverride", args, "PolicyOverride");
	copy_member(body, "EvalPriority", args, "EvalPriority");
	copy_member(body, "Submission", args, "Submission");
	return 0;
}

static int
task_args(struct api_req *req, json_t *args, struct err *e)
{
	copy_query(req, "task", args, "Task");
	return 0;
}

static int
node_args(struct api_req *req, json_t *args, struct err *e)
{
	copy_query(req, "node_id", args, "NodeID");
	return 0;
}

const char *
nomad_api_token(const struct api_req *req)
{
	const char *token = api_header(req, "X-Nomad-Token");
	const char *bearer = api_header(req, "Authorization");

	return !token && bearer && strncasecmp(bearer, "Bearer ", 7) == 0 ? bearer + 7 : token;
}

static int
token_args(struct api_req *req, json_t *args, struct err *e)
{
	set_text(args, "SecretID", nomad_api_token(req));
	return 0;
}

static int
csi_list_args(struct api_req *req, json_t *args, struct err *e)
{
	copy_query(req, "plugin_id", args, "PluginID");
	copy_query(req, "node_id", args, "NodeID");
	return 0;
}

/* The header's "key=value,key=value"; what is none is not taken. */
static json_t *
csi_secrets(const struct api_req *req)
{
	const char *at = api_header(req, "X-Nomad-CSI-Secrets");
	json_t *secrets = json_object();

	while (at && *at) {
		size_t len = strcspn(at, ","), name = strcspn(at, "=");

		if (name > 0 && name < len) {
			cleanup_free char *key = strndup(at, name);

			if (key)
				(void)json_object_set_new(
				    secrets, key, json_stringn(at + name + 1, len - name - 1));
		}
		at += len + (at[len] == ',');
	}
	return secrets;
}

static int
csi_secrets_args(struct api_req *req, json_t *args, struct err *e)
{
	(void)json_object_set_new(args, "Secrets", csi_secrets(req));
	return csi_list_args(req, args, e);
}

static int
delete_args(struct api_req *req, json_t *args, struct err *e)
{
	(void)json_object_set_new(args, "Secrets", csi_secrets(req));
	(void)json_object_set_new(args, "VolumeIDs", json_pack("[s]", api_param(req, 0)));
	return 0;
}

static int
snapshots_args(struct api_req *req, json_t *args, struct err *e)
{
	json_t *body = api_body(req, e);

	if (!body)
		return -EINVAL;
	if (!json_is_array(json_object_get(body, "Snapshots")))
		return err_say(e, -EINVAL, "the body has no Snapshots");
	copy_member(body, "Snapshots", args, "Snapshots");
	return 0;
}

static int
snapshot_args(struct api_req *req, json_t *args, struct err *e)
{
	const char *id = api_query(req, "snapshot_id"), *plugin = api_query(req, "plugin_id");

	(void)json_object_set_new(args, "Snapshots",
	    json_pack("[{s:s, s:s, s:o}]", "ID", id ? id : "", "PluginID", plugin ? plugin : "",
		"Secrets", csi_secrets(req)));
	return 0;
}

static int
submission_args(struct api_req *req, json_t *args, struct err *e)
{
	const char *version = api_query(req, "version");

	(void)json_object_set_new(
	    args, "Version", json_integer(version ? strtoll(version, NULL, 10) : 0));
	return 0;
}

/* What the items of a list have beyond the least. */
static int
node_fields_args(struct api_req *req, json_t *args, struct err *e)
{
	bool resources = false, os = false;

	if (api_query_bool(req, "resources", &resources, e) < 0 ||
	    api_query_bool(req, "os", &os, e) < 0)
		return -EINVAL;
	if (resources || os)
		(void)json_object_set_new(
		    args, "Fields", json_pack("{s:b, s:b}", "Resources", resources, "OS", os));
	return 0;
}

static int
alloc_fields_args(struct api_req *req, json_t *args, struct err *e)
{
	bool resources = false, states = true;

	if (api_query_bool(req, "resources", &resources, e) < 0 ||
	    api_query_bool(req, "task_states", &states, e) < 0)
		return -EINVAL;
	if (resources || !states)
		(void)json_object_set_new(args, "Fields",
		    json_pack("{s:b, s:b}", "Resources", resources, "TaskStates", states));
	return 0;
}

/* The members of the body that words, apart by spaces, name. */
static int
body_args(struct api_req *req, const char *words, json_t *args, struct err *e)
{
	json_t *body = api_body(req, e);
	char name[32];

	if (!json_is_object(body))
		return body ? err_say(e, -EINVAL, "the body is no object") : -EINVAL;
	for (int n = 0; sscanf(words, " %31s%n", name, &n) == 1; words += n)
		copy_member(body, name, args, name);
	return 0;
}

static int
list_args(struct api_req *req, const struct mapped *m, json_t *args, struct err *e)
{
	json_t *body;

	if (strcmp(m->http, "DELETE") == 0) {
		(void)json_object_set_new(args, m->in_list, json_pack("[s]", api_param(req, 0)));
		return 0;
	}
	body = api_body(req, e);
	if (!json_is_object(body))
		return body ? err_say(e, -EINVAL, "the body is no object") : -EINVAL;
	(void)json_object_set_new(args, m->in_list, json_pack("[O]", body));
	return 0;
}

static int
service_args(struct api_req *req, json_t *args, struct err *e)
{
	set_text(args, "ID", api_param(req, 1));
	return 0;
}

/* --- what this agent answers itself --- */

static bool
alloc_is_here(struct sup *sup, const struct api_req *req)
{
	struct id id;

	return id_from_uuid(api_param(req, 0), &id) && alloc_find(sup, &id);
}

static bool
node_is_here(struct sup *sup, const struct api_req *req)
{
	const char *wanted = api_query(req, "node_id");

	return !wanted || !*wanted || str_eq(wanted, node_get(sup)->id);
}

/* Lists of volumes and plugins are asked for by type, and there is one. */
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

static int
plan_args(struct api_req *req, json_t *args, struct err *e)
{
	int r = job_args(req, args, e);

	if (r == 0)
		copy_member(api_body(req, e), "Diff", args, "Diff");
	return r;
}

/* ?index= makes it wait. Its time in ms. */
static int64_t
blocking_ms(const struct api_req *req, json_t *args)
{
	const char *index = api_query(req, "index"), *wait = api_query(req, "wait");
	int64_t ns = (int64_t)WAIT_MS * NS_PER_MS;
	uint64_t number = index ? strtoull(index, NULL, 10) : 0;

	if (number == 0)
		return 0;
	if (wait && *wait)
		(void)duration_parse(wait, &ns, NULL);
	if (ns <= 0 || ns > (int64_t)WAIT_MAX_MS * NS_PER_MS)
		ns = (int64_t)WAIT_MAX_MS * NS_PER_MS;
	(void)json_object_set_new(args, "MinQueryIndex", json_integer((json_int_t)number));
	(void)json_object_set_new(args, "MaxQueryTime", json_integer(ns));
	return ns / NS_PER_MS;
}

/* QueryOptions, or WriteRequest: with the token of who asks, not the node's. */
static int64_t
common_args(struct nomad *n, const struct api_req *req, json_t *args)
{
	const char *namespace = api_query(req, "namespace"), *per_page = api_query(req, "per_page");
	const char *token = nomad_api_token(req), *region = api_query(req, "region");

	set_text(args, "Region", region && *region ? region : nomad_region(n));
	set_text(args, "Namespace", namespace && *namespace ? namespace : "default");
	if (token)
		set_text(args, "AuthToken", token);
	if (api_query(req, "stale"))
		(void)json_object_set_new(args, "AllowStale", json_true());
	if (api_query(req, "reverse"))
		(void)json_object_set_new(args, "Reverse", json_true());
	copy_query(req, "prefix", args, "Prefix");
	copy_query(req, "filter", args, "Filter");
	copy_query(req, "next_token", args, "NextToken");
	if (per_page)
		(void)json_object_set_new(args, "PerPage", json_integer(atoi(per_page)));
	return blocking_ms(req, args);
}

/* --- answers --- */

/* Claims are the servers' own; what the API shows of them is the model's (row G08). */
static void
reply_volume(struct api_req *req, const struct mapped *m, const void *body, size_t len)
{
	cleanup_done(rpc_claim_rep) struct rpc_claim_rep rep;
	struct err e = { 0 };

	rpc_claim_rep_init(&rep);
	if (model_from_msgpack(&rpc_claim_rep_type, body, len, &rep, WIRE_MEMORY_MAX, &e) < 0)
		api_reply_error(req, 502, "%s", e.msg);
	else if (!rep.volume)
		api_reply_error(req, 404, "%s", m->missing);
	else if (csi_volume_fill_view(rep.volume) < 0)
		api_reply_error(req, 500, "no memory for the answer");
	else
		api_reply_model(req, &csi_volume_view_type, rep.volume);
}

/* "RPC Error:: 404,text", and what is known by its end. */
static void
reply_remote(struct api_req *req, const char *text)
{
	const char *coded = strstr(text, "RPC Error:: ");
	int status = 500;

	if (coded) {
		char *end;
		long code = strtol(coded + strlen("RPC Error:: "), &end, 10);

		if (*end == ',' && code >= 400 && code < 600) {
			api_reply_error(req, (int)code, "%s", end + 1);
			return;
		}
	}
	if (strstr(text, "Permission denied") || strstr(text, "ACL token not found"))
		status = 403;
	else if (strstr(text, "Unknown node") || strstr(text, "Unknown allocation"))
		status = 404;
	api_reply_error(req, status, "%s", text);
}

/* Members that the API shows as an empty list when they are nil; where it shows null, clients want
 * that. */
static bool
is_list(const char *member)
{
	static const char *const lists[] = { "ACLRoles", "Allocations", "Allocs", "Data",
		"Deployments", "Evaluations", "Jobs", "Keys", "Namespaces", "NodePools", "Nodes",
		"Policies", "Services", "Tokens" };

	for (size_t i = 0; i < ELEMENTSOF(lists); i++)
		if (strcmp(lists[i], member) == 0)
			return true;
	return false;
}

static void
reply_answer(struct api_req *req, const struct mapped *m, const void *body, size_t len)
{
	struct text json = { 0 };
	struct err e = { 0 };
	struct api_meta meta = { 0 };
	int r = nomad_to_json(body, len, m->member, &json, &meta, &e);

	api_set_meta(req, &meta);
	if (r < 0)
		api_reply_error(req, 502, "%s", e.msg);
	else if (r == 0 && m->missing)
		api_reply_error(req, 404, "%s", m->missing);
	else if (r == 0 && is_list(m->member))
		reply_nothing(api_req_sup(req), req);
	else
		api_reply_take(req, &json);
	text_done(&json);
}

static void
on_answer(struct sup *sup, void *arg, int r, const void *body, size_t len, const struct err *e)
{
	struct ask *a = arg;

	if (r == 0 && a->m->reply)
		a->m->reply(a->req, body, len);
	else if (r == 0 && strcmp(a->m->method, "CSIVolume.Get") == 0)
		reply_volume(a->req, a->m, body, len);
	else if (r == 0)
		reply_answer(a->req, a->m, body, len);
	else if (r == -EREMOTEIO)
		reply_remote(a->req, e->msg);
	else if (a->m->fallback)
		nomad_acl_serve(sup, a->req, a->m->fallback);
	else if (r == -ENETUNREACH)
		api_reply_error(a->req, 503, "No servers: %s", e->msg);
	else
		api_reply_error(a->req, 504, "%s", e->msg);
	free(a);
}

/* --- calls --- */

/* For the router: the same patterns, all with one handler. */
static struct api_route routes[ELEMENTSOF(all) + 1];

/* A job is read by the field table, whose names and kinds the servers have. */
static int
read_job(struct api_req *req, const char *namespace, struct job **ret, struct err *e)
{
	const json_t *body = json_object_get(api_body(req, e), "Job");
	int r;

	*ret = job_new();
	if (!*ret)
		return err_set(e, -ENOMEM, "read the job");
	r = model_from_json(&job_type, body, *ret, e);
	if (r == 0 && !(*ret)->namespace && (r = str_set(&(*ret)->namespace, namespace)) < 0)
		(void)err_set(e, r, "read the job");
	if (r == 0 && (r = job_complete(*ret)) < 0)
		(void)err_set(e, r, "read the job");
	return r;
}

/* *job and *namespace are in obj: it is args, and the body's job with its namespace. */
static int
encode_job(struct api_req *req, const struct type *type, void *obj, struct job **job,
    char **namespace, json_t *args, struct text *ret, struct err *e)
{
	int r;

	model_init(type, obj);
	r = model_from_json(type, args, obj, e);
	if (r == 0)
		r = read_job(req, *namespace, job, e);
	if (r == 0 && (r = str_set(namespace, (*job)->namespace)) == 0)
		r = model_to_msgpack(type, obj, 0, ret);
	model_done(type, obj);
	return r;
}

/* As with jobs: times, for one, are no text to servers. */
static int
encode_volumes(json_t *args, struct text *ret, struct err *e)
{
	struct volumes_req req;
	int r;

	model_init(&volumes_req_type, &req);
	r = model_from_json(&volumes_req_type, args, &req, e);
	for (size_t i = 0; r == 0 && i < req.volumes.n; i++)
		if (!req.volumes.v[i].namespace)
			r = str_set(&req.volumes.v[i].namespace, req.namespace);
	if (r == 0)
		r = model_to_msgpack(&volumes_req_type, &req, 0, ret);
	model_done(&volumes_req_type, &req);
	return r;
}

/* What has no job is JSON, as it is. */
static int
encode(struct api_req *req, const struct mapped *m, json_t *args, struct text *ret, struct err *e)
{
	struct any any = { .value = args };
	struct plan_req plan;
	struct job_req job;

	if (m->args == job_args)
		return encode_job(req, &job_req_type, &job, &job.job, &job.namespace, args, ret, e);
	if (m->args == plan_args)
		return encode_job(
		    req, &plan_req_type, &plan, &plan.job, &plan.namespace, args, ret, e);
	if (m->args == volumes_args)
		return encode_volumes(args, ret, e);
	return model_to_msgpack(&any_type, &any, 0, ret);
}

static void
on_mapped(struct sup *sup, struct api_req *req)
{
	const struct mapped *m = &all[api_req_route(req) - routes];
	cleanup_json json_t *args = json_object();
	struct text body = { 0 };
	struct err e = { 0 };
	int64_t blocks_ms;
	struct ask *a;

	if (m->is_here && m->is_here(sup, req)) {
		nomad_acl_serve(sup, req, m->here);
		return;
	}
	if (!*link_server(sup)) {
		if (m->fallback)
			nomad_acl_serve(sup, req, m->fallback);
		else
			api_reply_error(req, 503, "No servers: only they answer %s", m->pattern);
		return;
	}
	blocks_ms = common_args(nomad_of_sup(sup), req, args);
	if (m->param)
		set_text(args, m->param, api_param(req, 0));
	if ((m->args && m->args(req, args, &e) < 0) ||
	    (m->body && body_args(req, m->body, args, &e) < 0) ||
	    (m->in_list && list_args(req, m, args, &e) < 0) ||
	    encode(req, m, args, &body, &e) < 0) {
		api_reply_error(req, 400, "%s", e.msg);
		text_done(&body);
		return;
	}
	a = calloc(1, sizeof *a);
	if (!a)
		abort();
	*a = (struct ask){ .req = req, .m = m };
	(void)link_call(sup, m->method, body.text, body.len,
	    (unsigned)((m->fallback ? FALLBACK_MS : CALL_MS) + blocks_ms + blocks_ms / 16),
	    strcmp(m->http, "GET") == 0 ? LINK_REPEAT : 0, on_answer, a);
	text_done(&body);
}

bool
nomad_api_is_mapped(const struct api_req *req)
{
	return api_req_route(req)->fn == on_mapped;
}

const struct api_route *
nomad_api_routes(void)
{
	for (size_t i = 0; i < ELEMENTSOF(all); i++)
		routes[i] = (struct api_route){ all[i].http, all[i].pattern, on_mapped, false };
	return routes;
}

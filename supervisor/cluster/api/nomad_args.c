// SPDX-License-Identifier: Apache-2.0
/* nomad_args.c: converts a request of the API to the arguments of the servers' method. Runs in:
 * supervisor. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/duration.h"
#include "common/mem.h"
#include "model/eval.h"
#include "model/volume.h"
#include "supervisor/cluster/api/nomad_mapped.h"
#include "supervisor/cluster/node/nomad.h"
#include "supervisor/cluster/node/nomad_call.h"
#include "supervisor/http/api_wait.h"
#include "supervisor/node/node_state.h"

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

int
all_args(struct api_req *req, json_t *args, struct err *e)
{
	bool yes = false;
	int r = api_query_bool(req, "all", &yes, e);

	(void)json_object_set_new(args, "All", json_boolean(yes));
	return r;
}

int
purge_args(struct api_req *req, json_t *args, struct err *e)
{
	bool purge = false, global = false;
	int r = api_query_bool(req, "purge", &purge, e);

	uint64_t priority = 0;

	if (r == 0)
		r = api_query_bool(req, "global", &global, e);
	if (r == 0)
		r = api_query_number(req, "eval_priority", &priority, e);
	if (r >= 0)
		r = eval_check_priority((int64_t)priority, e);
	(void)json_object_set_new(args, "Purge", json_boolean(purge));
	(void)json_object_set_new(args, "Global", json_boolean(global));
	(void)json_object_set_new(args, "EvalPriority", json_integer((json_int_t)priority));
	return r < 0 ? r : stop_args(req, args, e);
}

int
stop_args(struct api_req *req, json_t *args, struct err *e)
{
	bool no_delay = false;
	int r = api_query_bool(req, "no_shutdown_delay", &no_delay, e);

	(void)json_object_set_new(args, "NoShutdownDelay", json_boolean(no_delay));
	return r;
}

/* Copies a member of the body under the method's name for it; skips null. */
static void
copy_member(const json_t *body, const char *name, json_t *args, const char *key)
{
	json_t *value = json_object_get(body, name);

	if (value && !json_is_null(value))
		(void)json_object_set(args, key, value);
}

int
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

int
eligibility_args(struct api_req *req, json_t *args, struct err *e)
{
	json_t *body = api_body(req, e);

	if (!body)
		return -EINVAL;
	copy_member(body, "Eligibility", args, "Eligibility");
	return 0;
}

/* The id of the node that the request names, or of this node. */
int
self_args(struct api_req *req, json_t *args, struct err *e)
{
	const char *node = api_query(req, "node_id");

	set_text(args, "NodeID", node && *node ? node : node_get(api_req_sup(req))->id);
	return 0;
}

int
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

int
volumes_args(struct api_req *req, json_t *args, struct err *e)
{
	json_t *body = api_body(req, e);

	if (!body)
		return -EINVAL;
	if (!json_is_array(json_object_get(body, "Volumes")))
		return err_say(e, -EINVAL, "the body has no Volumes");
	copy_member(body, "Volumes", args, "Volumes");
	copy_member(body, "PolicyOverride", args, "PolicyOverride");
	return 0;
}

int
detach_args(struct api_req *req, json_t *args, struct err *e)
{
	const char *node = api_query(req, "node");

	if (!node || !*node)
		return err_say(e, -EINVAL, "detach requires node ID");
	(void)json_object_set_new(
	    args, "Claim", json_pack("{s:s, s:i}", "NodeID", node, "Mode", CLAIM_GC));
	return 0;
}

int
deregister_args(struct api_req *req, json_t *args, struct err *e)
{
	bool force = false;
	int r = api_query_bool(req, "force", &force, e);

	(void)json_object_set_new(args, "Force", json_boolean(force));
	(void)json_object_set_new(args, "VolumeIDs", json_pack("[s]", api_param(req, 0)));
	return r;
}

int
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
	copy_member(body, "PreserveResources", args, "PreserveResources");
	copy_member(body, "PolicyOverride", args, "PolicyOverride");
	copy_member(body, "EvalPriority", args, "EvalPriority");
	if (json_is_object(json_object_get(body, "Submission")))
		(void)json_object_set_new(
		    args, "Submission", nomad_source_encode(json_object_get(body, "Submission")));
	return eval_check_priority(json_integer_value(json_object_get(args, "EvalPriority")), e);
}

int
plan_args(struct api_req *req, json_t *args, struct err *e)
{
	int r = job_args(req, args, e);

	if (r == 0)
		copy_member(api_body(req, e), "Diff", args, "Diff");
	return r;
}

int
task_args(struct api_req *req, json_t *args, struct err *e)
{
	copy_query(req, "task", args, "Task");
	return 0;
}

int
node_args(struct api_req *req, json_t *args, struct err *e)
{
	copy_query(req, "node_id", args, "NodeID");
	return 0;
}

/* Arguments of a request to an agent: a server or another node. */
int
agent_args(struct api_req *req, json_t *args, struct err *e)
{
	copy_query(req, "server_id", args, "ServerID");
	copy_query(req, "node_id", args, "NodeID");
	return json_object_get(args, "ServerID") && json_object_get(args, "NodeID")
		   ? err_say(e, -EINVAL, "Can only forward to either client node or server")
		   : 0;
}

int
token_args(struct api_req *req, json_t *args, struct err *e)
{
	set_text(args, "SecretID", api_token(req));
	return 0;
}

int
csi_list_args(struct api_req *req, json_t *args, struct err *e)
{
	copy_query(req, "plugin_id", args, "PluginID");
	copy_query(req, "node_id", args, "NodeID");
	return 0;
}

int
host_list_args(struct api_req *req, json_t *args, struct err *e)
{
	copy_query(req, "node_pool", args, "NodePool");
	copy_query(req, "node_id", args, "NodeID");
	return 0;
}

/* Parses the header "key=value,key=value"; ignores malformed pairs. */
static json_t *
csi_secrets(const struct api_req *req)
{
	const char *at = api_header(req, "X-Nomad-CSI-Secrets");
	json_t *secrets = json_object();

	while (at && *at) {
		size_t len = strcspn(at, ","), name = strcspn(at, "=");

		if (name > 0 && name < len) {
			cleanup_free char *key = mem_strndup(at, name);

			(void)json_object_set_new(
			    secrets, key, json_stringn(at + name + 1, len - name - 1));
		}
		at += len + (at[len] == ',');
	}
	return secrets;
}

int
csi_secrets_args(struct api_req *req, json_t *args, struct err *e)
{
	(void)json_object_set_new(args, "Secrets", csi_secrets(req));
	return csi_list_args(req, args, e);
}

int
delete_args(struct api_req *req, json_t *args, struct err *e)
{
	(void)json_object_set_new(args, "Secrets", csi_secrets(req));
	(void)json_object_set_new(args, "VolumeIDs", json_pack("[s]", api_param(req, 0)));
	return 0;
}

int
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

int
snapshot_args(struct api_req *req, json_t *args, struct err *e)
{
	const char *id = api_query(req, "snapshot_id"), *plugin = api_query(req, "plugin_id");

	(void)json_object_set_new(args, "Snapshots",
	    json_pack("[{s:s, s:s, s:o}]", "ID", id ? id : "", "PluginID", plugin ? plugin : "",
		"Secrets", csi_secrets(req)));
	return 0;
}

int
submission_args(struct api_req *req, json_t *args, struct err *e)
{
	uint64_t version;

	if (api_query_number(req, "version", &version, e) <= 0)
		return err_say(e, -EINVAL, "Unable to parse job submission version parameter");
	(void)json_object_set_new(args, "Version", json_integer((json_int_t)version));
	return 0;
}

/* Asks for optional fields of the entries of a list. */
int
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

int
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

/* Copies the members of the body that `words`, separated by spaces, name. */
static int
body_args(struct api_req *req, const char *words, json_t *args, struct err *e)
{
	json_t *body = api_body_object(req, e);
	char name[32];

	if (!body)
		return -EINVAL;
	for (int n = 0; sscanf(words, " %31s%n", name, &n) == 1; words += n)
		copy_member(body, name, args, name);
	return 0;
}

static int
list_args(struct api_req *req, const struct mapped *m, json_t *args, struct err *e)
{
	json_t *body;

	if (strcmp(api_req_route(req)->method, "DELETE") == 0) {
		(void)json_object_set_new(args, m->in_list, json_pack("[s]", api_param(req, 0)));
		return 0;
	}
	body = api_body_object(req, e);
	if (!body)
		return -EINVAL;
	(void)json_object_set_new(args, m->in_list, json_pack("[O]", body));
	return 0;
}

int
service_args(struct api_req *req, json_t *args, struct err *e)
{
	set_text(args, "ID", api_param(req, 1));
	return 0;
}

int
versions_args(struct api_req *req, json_t *args, struct err *e)
{
	uint64_t version;
	bool diffs = false;
	int r = api_query_bool(req, "diffs", &diffs, e);

	if (r == 0)
		r = api_query_number(req, "diff_version", &version, e);
	if (r > 0)
		(void)json_object_set_new(args, "DiffVersion", json_integer((json_int_t)version));
	(void)json_object_set_new(args, "Diffs", json_boolean(diffs));
	copy_query(req, "diff_tag", args, "DiffTagName");
	return r;
}

int
untag_args(struct api_req *req, json_t *args, struct err *e)
{
	set_text(args, "Name", api_param(req, 1));
	return 0;
}

int
tag_args(struct api_req *req, json_t *args, struct err *e)
{
	json_t *body = api_body_object(req, e), *tag;

	if (!body)
		return -EINVAL;
	copy_member(body, "Version", args, "Version");
	copy_member(body, "Latest", args, "Latest");
	tag = json_object();
	copy_member(body, "Description", tag, "Description");
	set_text(tag, "Name", api_param(req, 1));
	(void)json_object_set_new(args, "Tag", tag);
	return untag_args(req, args, e);
}

/* Arguments of all methods. */

/* Reads ?index= and ?wait= of a blocking query. Returns its time in ms, or -EINVAL. */
static int64_t
blocking_ms(const struct api_req *req, json_t *args, struct err *e)
{
	struct api_wait_wish wish;

	if (api_wait_read(req, &wish, e) < 0)
		return -EINVAL;
	if (wish.index == 0)
		return 0;
	(void)json_object_set_new(args, "MinQueryIndex", json_integer((json_int_t)wish.index));
	(void)json_object_set_new(args, "MaxQueryTime", json_integer(wish.wait_ns));
	return wish.wait_ns / NS_PER_MS;
}

/* Fills in QueryOptions or WriteRequest, with the token of the client, not of the node. */
static int64_t
common_args(struct nomad *n, const struct api_req *req, json_t *args, struct err *e)
{
	const char *namespace = api_query(req, "namespace"), *per_page = api_query(req, "per_page");
	const char *token = api_token(req), *region = api_query(req, "region");

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
	return blocking_ms(req, args, e);
}

int
mapped_get_args(struct nomad *n, struct api_req *req, const struct mapped *m, json_t *args,
    int64_t *ret_blocks_ms, struct err *e)
{
	*ret_blocks_ms = common_args(n, req, args, e);
	if (*ret_blocks_ms < 0)
		return -EINVAL;
	if (m->param)
		set_text(args, m->param, api_param(req, 0));
	if ((m->args && m->args(req, args, e) < 0) ||
	    (m->body && body_args(req, m->body, args, e) < 0) ||
	    (m->in_list && list_args(req, m, args, e) < 0))
		return -EINVAL;
	return 0;
}

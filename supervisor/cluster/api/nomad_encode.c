// SPDX-License-Identifier: Apache-2.0
/* nomad_encode.c: encodes jobs, plans and volumes by their field tables, because JSON does not have
 * the types that servers expect. Runs in: supervisor. */
#include "model/engine/table.h"
#include "model/job_submission.h"
#include "supervisor/cluster/api/nomad_mapped.h"
#include "supervisor/cluster/node/nomad.h"

/* Job.Register. */
struct job_req {
	struct job *job;
	bool enforce_index, preserve_counts, preserve_resources, policy_override;
	uint64_t job_modify_index;
	int64_t eval_priority;
	struct job_submission *submission; /* NULL: none */
	char *region, *namespace, *auth_token;
};
#define S job_req
static const struct field job_req_fields[] = {
	F_POINTER(job, "Job", job),
	F_BOOL(enforce_index, "EnforceIndex"),
	F_BOOL(preserve_counts, "PreserveCounts"),
	F_BOOL(preserve_resources, "PreserveResources", .flags = FIELD_OMIT_EMPTY),
	F_BOOL(policy_override, "PolicyOverride"),
	F_POINTER(submission, "Submission", job_submission),
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
	bool policy_override;
	char *region, *namespace, *auth_token;
};
#define S volumes_req
static const struct field volumes_req_fields[] = {
	F_LIST(volumes, "Volumes", csi_volume),
	F_BOOL(policy_override, "PolicyOverride", .flags = FIELD_OMIT_EMPTY),
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

/* Reads the body's job by its field table, which has the servers' names and types. */
static int
read_job(struct api_req *req, const char *namespace, struct job **ret, struct err *e)
{
	const json_t *body = json_object_get(api_body(req, e), "Job");
	int r;

	*ret = job_new();
	r = model_from_json(&job_type, body, *ret, e);
	if (r < 0)
		return r;
	if (!(*ret)->namespace)
		str_set(&(*ret)->namespace, namespace);
	job_complete(*ret);
	return 0;
}

/* Sets obj to args plus the body's job and its namespace; *job and *namespace point into obj. */
static int
encode_with_job(struct api_req *req, const struct type *type, void *obj, struct job **job,
    char **namespace, json_t *args, struct text *ret, struct err *e)
{
	int r;

	model_init(type, obj);
	r = model_from_json(type, args, obj, e);
	if (r == 0)
		r = read_job(req, *namespace, job, e);
	if (r == 0) {
		str_set(namespace, (*job)->namespace);
		model_to_msgpack(type, obj, 0, ret);
	}
	model_done(type, obj);
	return r;
}

int
encode_job(struct api_req *req, json_t *args, struct text *ret, struct err *e)
{
	struct job_req job;

	return encode_with_job(req, &job_req_type, &job, &job.job, &job.namespace, args, ret, e);
}

int
encode_plan(struct api_req *req, json_t *args, struct text *ret, struct err *e)
{
	struct plan_req plan;

	return encode_with_job(
	    req, &plan_req_type, &plan, &plan.job, &plan.namespace, args, ret, e);
}

/* Volumes need their field table, as jobs do: for example, times are not strings for servers. */
int
encode_volumes(struct api_req *req, json_t *args, struct text *ret, struct err *e)
{
	struct volumes_req vols;
	int r;

	model_init(&volumes_req_type, &vols);
	r = model_from_json(&volumes_req_type, args, &vols, e);
	for (size_t i = 0; r == 0 && i < vols.volumes.n; i++)
		if (!vols.volumes.v[i].namespace)
			str_set(&vols.volumes.v[i].namespace, vols.namespace);
	if (r == 0)
		model_to_msgpack(&volumes_req_type, &vols, 0, ret);
	model_done(&volumes_req_type, &vols);
	return r;
}

/* A type with a single JSON field is encoded as that value. */
struct any {
	json_t *value;
};
#define S any
static const struct field any_fields[] = { F_JSON(value, "") };
static MODEL_TYPE(any, any_fields, .name = "arguments", .bare = true);
#undef S

int
encode_plain(struct api_req *req, json_t *args, struct text *ret, struct err *e)
{
	struct any any = { .value = args };

	model_to_msgpack(&any_type, &any, 0, ret);
	return 0;
}

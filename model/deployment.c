/* SPDX-License-Identifier: Apache-2.0 */
/* deployment.c: field tables of deployments. Runs in: supervisor, cli. */
#include "model/deployment.h"

#include "model/engine/table.h"

const char *const deployment_state_names[] = { "", "running", "paused", "failed", "successful",
	"cancelled" };

#define S deployment_group
static const struct field deployment_group_fields[] = {
	F_BOOL(auto_revert, "AutoRevert"),
	F_BOOL(auto_promote, "AutoPromote"),
	F_DURATION(progress_deadline, "ProgressDeadline"),
	F_TIME(require_progress_by, "RequireProgressBy"),
	F_BOOL(promoted, "Promoted"),
	F_STRINGS(placed_canaries, "PlacedCanaries"),
	F_INT(desired_canaries, "DesiredCanaries"),
	F_INT(desired_total, "DesiredTotal"),
	F_INT(placed, "PlacedAllocs"),
	F_INT(healthy, "HealthyAllocs"),
	F_INT(unhealthy, "UnhealthyAllocs"),
};
MODEL_TYPE(deployment_group, deployment_group_fields, .name = "group");
#undef S

#define S deployment
static const struct field deployment_fields[] = {
	F_STRING(id, "ID"),
	F_STRING(namespace, "Namespace"),
	F_STRING(job_id, "JobID"),
	F_UINT(job_version, "JobVersion"),
	F_UINT(job_modify_index, "JobModifyIndex"),
	F_UINT(job_spec_modify_index, "JobSpecModifyIndex"),
	F_UINT(job_create_index, "JobCreateIndex"),
	F_BOOL(multiregion, "IsMultiregion"),
	F_MAP(groups, "TaskGroups", deployment_group, .flags = FIELD_NOT_NIL),
	F_ENUM(status, "Status", deployment_state_names),
	F_STRING(status_description, "StatusDescription"),
	F_INT(eval_priority, "EvalPriority"),
	F_UINT(create_index, "CreateIndex"),
	F_UINT(modify_index, "ModifyIndex"),
	F_INT(create_time, "CreateTime"),
	F_INT(modify_time, "ModifyTime"),
};
MODEL_TYPE(deployment, deployment_fields, .name = "deployment",
    .title = 1 + offsetof(struct deployment, id));
#undef S

/* SPDX-License-Identifier: Apache-2.0 */
/* eval.c: field table of evaluations. Runs in: supervisor, cli. */
#include "model/eval.h"

#include <errno.h>

#include "model/engine/table.h"

/* Nomad's spelling: "canceled". */
const char *const eval_status_names[] = { "", "blocked", "pending", "complete", "failed",
	"canceled" };

#define S eval
static const struct field eval_fields[] = {
	F_STRING(id, "ID"),
	F_STRING(namespace, "Namespace"),
	F_INT(priority, "Priority"),
	F_ENUM(type, "Type", job_kind_names),
	F_STRING(triggered_by, "TriggeredBy"),
	F_STRING(job_id, "JobID"),
	F_UINT(job_modify_index, "JobModifyIndex"),
	F_STRING(node_id, "NodeID"),
	F_UINT(node_modify_index, "NodeModifyIndex"),
	F_STRING(deployment_id, "DeploymentID"),
	F_ENUM(status, "Status", eval_status_names),
	F_STRING(status_description, "StatusDescription"),
	F_DURATION(wait, "Wait"),
	F_TIME(wait_until, "WaitUntil"),
	F_STRING(next_eval, "NextEval"),
	F_STRING(previous_eval, "PreviousEval"),
	F_STRING(blocked_eval, "BlockedEval"),
	F_JSON(related_evals, "RelatedEvals", .flags = FIELD_OMIT_EMPTY),
	F_MAP(failed_tg_allocs, "FailedTGAllocs", alloc_metric),
	F_JSON(class_eligibility, "ClassEligibility"),
	F_BOOL(escaped_computed_class, "EscapedComputedClass"),
	F_STRING(quota_limit_reached, "QuotaLimitReached"),
	F_BOOL(annotate_plan, "AnnotatePlan"),
	F_INT_MAP(queued_allocations, "QueuedAllocations", .flags = FIELD_NOT_NIL),
	F_UINT(snapshot_index, "SnapshotIndex"),
	F_UINT(create_index, "CreateIndex"),
	F_UINT(modify_index, "ModifyIndex"),
	F_INT(create_time, "CreateTime"),
	F_INT(modify_time, "ModifyTime"),
};
MODEL_TYPE(eval, eval_fields, .name = "evaluation", .title = 1 + offsetof(struct eval, id));
#undef S

int
eval_check_priority(int64_t priority, struct err *e)
{
	return priority == 0 || (priority >= 1 && priority <= 100)
		   ? 0
		   : err_say(e, -EINVAL, "Eval priority must be between 1 and 100 inclusively");
}

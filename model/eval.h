/* SPDX-License-Identifier: Apache-2.0 */
/* eval.h: an evaluation: why a job was evaluated, and the result. Runs in: supervisor, cli. */
#ifndef DROVER_MODEL_EVAL_H
#define DROVER_MODEL_EVAL_H

#include "model/alloc.h"
#include "model/engine/field.h"

enum eval_status {
	EVAL_NONE,
	EVAL_BLOCKED,
	EVAL_PENDING,
	EVAL_COMPLETE,
	EVAL_FAILED,
	EVAL_CANCELLED
};

struct eval {
	char *id, *namespace;
	int64_t priority;
	enum job_kind type;
	char *triggered_by; /* "job-register", "job-deregister", "alloc-stop", "alloc-failure",
			       "node-drain", "queued-allocs" … */
	char *job_id;
	uint64_t job_modify_index;
	char *node_id;
	uint64_t node_modify_index;
	char *deployment_id;
	enum eval_status status;
	char *status_description;
	int64_t wait;       /* duration */
	int64_t wait_until; /* time */
	char *next_eval, *previous_eval, *blocked_eval;
	MODEL_MAP(struct alloc_metric) failed_tg_allocs; /* by group: why it was not placed */
	json_t *class_eligibility, *related_evals;
	bool escaped_computed_class, annotate_plan;
	char *quota_limit_reached;
	struct int_map queued_allocations; /* by group: how many allocs are not placed */
	uint64_t snapshot_index, create_index, modify_index;
	int64_t create_time, modify_time; /* ns */
};

MODEL_DECLARE(eval);
extern const char *const eval_status_names[EVAL_CANCELLED + 1];

/* Checks the priority that a request wants for its evaluation; 0: none. Returns 0 or -EINVAL. */
int eval_check_priority(int64_t priority, struct err *e);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* deployment.h: a deployment: how a new version of a service job replaces the previous one. Runs
 * in: supervisor, cli. */
#ifndef DROVER_MODEL_DEPLOYMENT_H
#define DROVER_MODEL_DEPLOYMENT_H

#include "model/engine/field.h"

enum deployment_state {
	DEPLOYMENT_NONE,
	DEPLOYMENT_RUNNING,
	DEPLOYMENT_PAUSED,
	DEPLOYMENT_FAILED,
	DEPLOYMENT_SUCCESSFUL,
	DEPLOYMENT_CANCELLED,
};

/* The state of one group that has an update block. */
struct deployment_group {
	bool auto_revert, auto_promote, promoted;
	int64_t progress_deadline;   /* duration */
	int64_t require_progress_by; /* time */
	struct strings placed_canaries;
	int64_t desired_canaries, desired_total, placed, healthy, unhealthy;
};

struct deployment {
	char *id, *namespace, *job_id;
	uint64_t job_version, job_modify_index, job_spec_modify_index, job_create_index;
	bool multiregion;
	MODEL_MAP(struct deployment_group) groups;
	enum deployment_state status;
	char *status_description;
	int64_t eval_priority;
	uint64_t create_index, modify_index;
	int64_t create_time, modify_time; /* ns */
};

MODEL_DECLARE(deployment_group);
MODEL_DECLARE(deployment);
extern const char *const deployment_state_names[DEPLOYMENT_CANCELLED + 1];

/* Returns whether the deployment is running, or can continue. */
static inline bool
deployment_is_active(const struct deployment *d)
{
	return d->status == DEPLOYMENT_RUNNING || d->status == DEPLOYMENT_PAUSED;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_parent.h: jobs that run nothing themselves but have children: jobs made from them at certain
 * times (periodic) or on request (parameterized). Runs in: supervisor, cli.
 */
#ifndef DROVER_MODEL_JOB_PARENT_H
#define DROVER_MODEL_JOB_PARENT_H

#include "model/engine/field.h"

struct job;

struct periodic_config {
	enum opt_bool enabled;
	char *spec;           /* in the form of cron.h */
	struct strings specs; /* several such expressions; a launch is due when one of them is */
	char *spec_type;
	enum opt_bool prohibit_overlap;
	char *time_zone;
};

struct parameterized_job {
	char *payload; /* "optional", "required", "forbidden" */
	struct strings meta_required, meta_optional;
};

MODEL_DECLARE(periodic_config);
MODEL_DECLARE(parameterized_job);

static const char job_dispatch_infix[] = "/dispatch-", job_periodic_infix[] = "/periodic-";

/* Returns whether the job is parameterized; false for a child that was dispatched from one. */
bool job_is_parameterized(const struct job *job);
/* Returns whether the job is periodic or parameterized: it has children instead of allocations. */
bool job_is_parent(const struct job *job);
/* Returns whether the job is launched at certain times. */
bool job_has_launches(const struct job *job);
/* Returns its cron expression number i, or NULL after the last. */
const char *periodic_spec(const struct periodic_config *p, size_t i);
/* Returns the first launch time later than `after` (seconds since 1970), or -1 if there is none. */
int64_t job_next_launch(const struct job *job, int64_t after);

#endif

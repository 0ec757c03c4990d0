/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_parent.h: jobs that run nothing themselves: others, their children, are made of them, at
 * times (periodic) or when somebody asks (parameterized). Runs in: supervisor, cli.
 */
#ifndef DROVER_MODEL_JOB_PARENT_H
#define DROVER_MODEL_JOB_PARENT_H

#include "model/engine/field.h"

struct job;

struct periodic_config {
	enum opt_bool enabled;
	char *spec;           /* cron.h */
	struct strings specs; /* or several: it is time when it is for one of them */
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

/* One that is to be dispatched; what was made so is not. */
bool job_is_parameterized(const struct job *job);
/* Either: it has no allocations, its children have. */
bool job_is_parent(const struct job *job);
/* Its times make children. */
bool job_has_launches(const struct job *job);
/* Its cron expression number i; NULL: it has no more. */
const char *periodic_spec(const struct periodic_config *p, size_t i);
/* The first of its times after this second of 1970; -1: there is none. */
int64_t job_next_launch(const struct job *job, int64_t after);

#endif

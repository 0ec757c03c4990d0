/* SPDX-License-Identifier: Apache-2.0 */
/* job_submission.h: the source of a job, as the user who registered it had it. Runs in: supervisor.
 */
#ifndef DROVER_MODEL_JOB_SUBMISSION_H
#define DROVER_MODEL_JOB_SUBMISSION_H

#include "model/engine/field.h"

struct job_submission {
	char *source;
	char *format;                     /* "hcl2" or "json" */
	struct string_map variable_flags; /* values of -var and of the environment, by name */
	char *variables;                  /* files of values, as text of HCL */
	/* The version that it belongs to; set by the server. */
	char *namespace, *job_id;
	uint64_t version, job_modify_index;
};

MODEL_DECLARE(job_submission);

/* Returns the bytes that count against a server's limit. */
size_t job_submission_size(const struct job_submission *s);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* jobspec.h: reads job files. Runs in: cli, job-parser. */
#ifndef DROVER_JOBSPEC_JOBSPEC_H
#define DROVER_JOBSPEC_JOBSPEC_H

#include <jansson.h>

#include "hcl/hcl.h"

/* What a job file is read with. It and all its texts outlive the document. */
struct job_input {
	struct hcl_source file;
	const struct hcl_source *var_files; /* values of variables, in their order */
	size_t n_var_files;
	const char *const *vars; /* "name=value" */
	size_t n_vars;
	const char *const *env; /* an environment; NOMAD_VAR_name=value counts. NULL: none */
	const char *base_dir;   /* where relative paths of file functions begin */
	bool files;             /* allows functions that read files */
	bool strict;            /* a value for an undeclared variable is an error, not a warning */
};

/*
 * Reads the job as the API's JSON, with every member, as Nomad's parser makes it. The caller
 * releases the result with json_decref(). NULL: h has the problems. Warnings are there after
 * success too. *ret_submission (may be NULL) gets the source of the job with the values of its
 * variables, as the Submission of a register request; it is released likewise, and untouched on
 * failure.
 */
json_t *jobspec_read(struct hcl *h, const struct job_input *in, json_t **ret_submission);

/* Sets the defaults that Nomad's API sets when a request to parse a job has `Canonicalize`. */
void jobspec_canonicalize(json_t *job);

#endif

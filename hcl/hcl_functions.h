/* SPDX-License-Identifier: Apache-2.0 */
/* hcl_functions.h: the functions that expressions may call. Runs in: cli, job-parser. */
#ifndef DROVER_HCL_HCL_FUNCTIONS_H
#define DROVER_HCL_HCL_FUNCTIONS_H

#include "hcl/hcl_eval.h"

/*
 * The functions of a job file, and those of a task's configuration when it starts. The functions
 * that read files look at the outermost scope's arg, a struct hcl_files.
 */
extern const struct hcl_functions hcl_job_functions, hcl_config_functions;

/* base_dir: where relative paths begin. allow: false refuses every function about files. */
struct hcl_files {
	const char *base_dir;
	bool allow;
};

/* The value of a file in JSON, as jsondecode() reads it. Leaves with hcl_fail() if it is none. */
struct hcl_value *hcl_read_json(struct hcl *h, const struct hcl_source *source);

#endif

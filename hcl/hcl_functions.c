/* SPDX-License-Identifier: Apache-2.0 */
/* hcl_functions.c: the table of the functions. Runs in: cli, job-parser. */
#include "hcl/hcl_functions.h"

#include "hcl/hcl_func.h"

static const struct hcl_function functions[] = {
#define HCL_FUNCTION(function, parameters, function_fn, ...)                                       \
	{ .name = (function), .params = (parameters), .fn = (function_fn), __VA_ARGS__ },
#include "hcl/hcl_functions.def"
#undef HCL_FUNCTION
};

#define ALL_FUNCTIONS .v = functions, .n = sizeof functions / sizeof functions[0]

const struct hcl_functions hcl_job_functions = { ALL_FUNCTIONS, .use = HCL_IN_JOB };
const struct hcl_functions hcl_config_functions = { ALL_FUNCTIONS, .use = HCL_IN_CONFIG };

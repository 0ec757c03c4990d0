// SPDX-License-Identifier: Apache-2.0
/* fuzz_job_parse.c: job files as job-parser reads them, without files: up to a zero byte the job,
 * after it the values of its variables. A job gets its defaults and can be printed as JSON. */
#include <stdlib.h>
#include <string.h>

#include "common/utf8.h"
#include "jobspec/jobspec.h"
#include "tests/fuzz/fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct hcl_limits limits = {
		.source_bytes = 64 * 1024, .memory_bytes = 4 << 20, .steps = 100000, .depth = 60
	};
	const char *text = (const char *)data;
	size_t len = strnlen(text, size);
	const struct hcl_source variables = { "variables", text + len + 1, size - len - 1 };
	const struct job_input in = { .file = { "input.hcl", text, len },
		.var_files = &variables,
		.n_var_files = len < size,
		.base_dir = "." };
	struct hcl *h = hcl_new(&limits);
	json_t *job = jobspec_read(h, &in, NULL);
	char *json;

	HOLDS(job || hcl_error_count(h) > 0);
	for (const struct hcl_problem *p = hcl_problems(h); p; p = p->next)
		HOLDS(utf8_is_text(hcl_problem_text(h, p), strlen(hcl_problem_text(h, p))));
	if (job) {
		jobspec_canonicalize(job);
		json = json_dumps(job, JSON_COMPACT);
		HOLDS(json && *json == '{');
		free(json);
	}
	json_decref(job);
	hcl_free(h);
	return 0;
}

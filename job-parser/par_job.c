// SPDX-License-Identifier: Apache-2.0
/* par_job.c: parses one job file. Runs in: a worker of job-parser. Asked by: supervisor. */
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "job-parser/par.h"
#include "jobspec/jobspec.h"
#include "model/engine/text.h"

DEFINE_CLEANUP(struct hcl *, hcl_free);

/* The memory for one job file is that of hcl_job_limits, and more for the JSON. */
static const struct worker_limits limits = {
	.memory_bytes = (size_t)384 << 20, .cpu_seconds = 5, .texts_bytes = PAR_TEXT_MAX
};

/* Returns the errors as lines, which the caller frees. */
static char *
list_errors(struct hcl *h)
{
	struct text all = { 0 };

	text_append(&all, "", 0);
	for (const struct hcl_problem *p = hcl_problems(h); p; p = p->next)
		if (!p->warning)
			text_printf(&all, "%s%s", all.len > 0 ? "\n" : "", hcl_problem_text(h, p));
	return all.text;
}

static char *
read_job(const struct par_job_parse_req *req, const struct worker_texts *texts, bool *ret_parsed)
{
	cleanup_with(hcl_free) struct hcl *h = hcl_new(&hcl_job_limits);
	const struct hcl_source variables = { "variables", texts->second, texts->second_len };
	const struct job_input in = {
		.file = { "input.hcl", texts->first, texts->first_len },
		.var_files = &variables,
		.n_var_files = texts->second_len > 0,
		.base_dir = ".",
	};
	json_t *job = jobspec_read(h, &in, NULL);
	char *json;

	*ret_parsed = job != NULL;
	if (!job)
		return list_errors(h);
	if (req->canonicalize)
		jobspec_canonicalize(job);
	json = json_text(job, req->indent ? JSON_INDENT(4) : JSON_COMPACT);
	json_decref(job);
	return mem_need(json);
}

int
par_parse_job(int fd, const void *arg, struct worker_result *ret, struct err *e)
{
	const struct par_job_parse_req *req = arg;
	struct worker_texts texts = { .first_len = req->job_bytes,
		.second_len = req->variables_bytes };
	cleanup_free char *result = NULL;
	int r;

	r = worker_texts_begin(&limits, fd, &texts, e);
	if (r < 0)
		return r;
	json_set_alloc_funcs(mem_alloc, free);
	result = read_job(req, &texts, &ret->flag);
	return worker_texts_end(result, strlen(result), PAR_RESULT_MAX, ret, e);
}

// SPDX-License-Identifier: Apache-2.0
/* par_job.c: parses one job file. Runs in: a worker of job-parser. Asked by: supervisor. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "common/mem.h"
#include "job-parser/par.h"
#include "jobspec/jobspec.h"
#include "model/engine/text.h"

DEFINE_CLEANUP(struct hcl *, hcl_free);

static int
set_limits(struct err *e)
{
	const struct rlimit cpu = { PAR_CPU_SECONDS, PAR_CPU_SECONDS };
	const struct rlimit memory = { PAR_MEMORY_BYTES, PAR_MEMORY_BYTES };

	if (setrlimit(RLIMIT_CPU, &cpu) < 0)
		return err_set(e, -errno, "limit the processor time of a parser");
#ifndef __SANITIZE_ADDRESS__ /* which reserves terabytes */
	if (setrlimit(RLIMIT_AS, &memory) < 0)
		return err_set(e, -errno, "limit the memory of a parser");
#endif
	(void)memory;
	return 0;
}

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
read_job(const struct par_job_parse_req *req, const char *text, bool *ret_parsed)
{
	cleanup_with(hcl_free) struct hcl *h = hcl_new(&hcl_job_limits);
	const struct hcl_source variables = { "variables", text + req->job_bytes,
		req->variables_bytes };
	const struct job_input in = {
		.file = { "input.hcl", text, req->job_bytes },
		.var_files = &variables,
		.n_var_files = req->variables_bytes > 0,
		.base_dir = ".",
	};
	json_t *job = jobspec_read(h, &in, NULL);
	char *json;

	*ret_parsed = job != NULL;
	if (!job)
		return list_errors(h);
	if (req->canonicalize)
		jobspec_canonicalize(job);
	json = json_dumps(job, req->indent ? JSON_INDENT(4) : JSON_COMPACT);
	json_decref(job);
	return mem_need(json);
}

int
par_parse_job(int fd, const void *arg, struct worker_result *ret, struct err *e)
{
	const struct par_job_parse_req *req = arg;
	cleanup_free char *result = NULL;
	const void *text;
	size_t len;
	int r;

	r = set_limits(e);
	if (r < 0)
		return r;
	r = fd_memfd_map(fd, PAR_TEXT_MAX, &text, &len);
	if (r < 0)
		return err_set(e, r, "read the text of a job file");
	if (req->job_bytes == 0 || (uint64_t)req->job_bytes + req->variables_bytes != len)
		return err_say(e, -EINVAL, "the text of a job file has not the announced length");
	json_set_alloc_funcs(mem_alloc, free);
	result = read_job(req, text, &ret->flag);
	len = strlen(result);
	if (len > PAR_JOB_MAX)
		return err_say(
		    e, -EFBIG, "the job is too large: as JSON it may have %d bytes", PAR_JOB_MAX);
	ret->fd = fd_memfd_sealed("job", result, len);
	return ret->fd < 0 ? err_set(e, ret->fd, "return the job") : 0;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * api_parse.c: POST /v1/jobs/parse. job-parser reads the text; the supervisor passes its answer on
 * and looks into neither. Runs in: supervisor.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "common/list.h"
#include "common/mem.h"
#include "model/engine/field.h"
#include "model/engine/text.h"
#include "supervisor/api/api_routes.h"
#include "supervisor/core/sup_queue.h"
#include "supervisor/http/api.h"

/* A request that waits for job-parser. */
struct parse {
	struct api_held held;
	struct queued *request;
};

static void
on_gone(struct api_held *held)
{
	struct parse *p = container_of(held, struct parse, held);

	queue_forget(p->request);
	free(p);
}

/* Answers with the job, or with the sentences about the errors, from the memfd. */
static void
reply_result(struct api_req *req, bool parsed, int fd)
{
	static const char failed[] = "Failed to parse job: ";
	struct text text = { 0 };
	const void *map;
	size_t len;
	int r = fd_memfd_map(fd, PAR_RESULT_MAX, &map, &len);

	if (r < 0 || len == 0) {
		api_reply_error(req, 500, "job-parser sent an answer that is not valid");
		return;
	}
	if (!parsed)
		text_append(&text, failed, sizeof failed - 1);
	text_append(&text, map, len);
	(void)munmap((void *)(uintptr_t)map, len);
	if (parsed)
		api_reply_take(req, &text);
	else
		api_reply_text(req, 400, "text/plain", text.text, text.len);
	text_done(&text);
}

static void
on_parsed(struct sup *sup, void *arg, int r, const void *rep, int fd, const struct err *e)
{
	const struct par_job_parse_rep *answer = rep;
	cleanup_close int result = fd;
	struct parse *p = arg;
	struct api_req *req = p->held.req;
	struct err why = { 0 };

	api_hold(req, NULL);
	free(p);
	if (r < 0) {
		queue_explain(QUEUE_JOB, r, "this job file", e, &why);
		api_reply_error(req, r == -EFBIG ? 400 : 500, "%s", why.msg);
	} else {
		reply_result(req, answer->parsed, result);
	}
}

/* Returns the member as text, "" if it is not set; NULL with *e if it is no text. */
static const char *
read_text(const json_t *body, const char *name, struct err *e)
{
	const json_t *v = json_object_get(body, name);

	if (!v || json_is_null(v))
		return "";
	if (!json_is_string(v))
		(void)err_say(e, -EINVAL, "%s: expected a text", name);
	return json_string_value(v);
}

/* Fills in the request and the memfd. Returns 0, or -EINVAL or another -errno with *e. */
static int
read_body(struct api_req *req, struct par_job_parse_req *ret, int *ret_fd, struct err *e)
{
	const json_t *body = api_body(req, e);
	const char *job, *variables;

	if (!body)
		return -EINVAL;
	job = read_text(body, "JobHCL", e);
	variables = job ? read_text(body, "Variables", e) : NULL;
	if (!variables)
		return -EINVAL;
	if (json_is_true(json_object_get(body, "HCLv1")))
		return err_say(e, -EINVAL,
		    "HCLv1: job files of HCL version 1 are not supported, only those of version 2");
	if (!*job)
		return err_say(e, -EINVAL, "Job spec is empty");
	ret->job_bytes = (uint32_t)strlen(job);
	ret->variables_bytes = (uint32_t)strlen(variables);
	ret->canonicalize = json_is_true(json_object_get(body, "Canonicalize"));
	*ret_fd = queue_texts(job, ret->job_bytes, variables, ret->variables_bytes);
	return *ret_fd < 0 ? err_set(e, *ret_fd, "pass the job file to job-parser") : 0;
}

void
api_parse_job(struct sup *sup, struct api_req *req)
{
	struct par_job_parse_req msg = { 0 };
	struct err e = { 0 };
	struct parse *p;
	int r, fd = -1;

	msg.indent = api_model_flags(req) & MODEL_INDENT;
	r = read_body(req, &msg, &fd, &e);
	if (r < 0) {
		api_reply_error(req, r == -EINVAL ? 400 : 500, "%s", e.msg);
		return;
	}
	p = mem_new(struct parse);
	p->held = (struct api_held){ .done = on_gone, .req = req };
	api_hold(req, &p->held);
	p->request = queue_ask(sup, QUEUE_JOB, &msg, fd, on_parsed, p);
}

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
#include "supervisor/api/api_parse.h"
#include "supervisor/api/api_routes.h"
#include "supervisor/core/sup_calls.h"
#include "supervisor/core/sup_timer.h"
#include "supervisor/http/api.h"

#define AT_ONCE   2        /* job files that are parsed at the same time; others wait */
#define IDLE_USEC 30000000 /* job-parser is ended after this time without a request */

/* A request that waits for job-parser. It outlives its client. */
struct parse {
	TAILQ_ENTRY(parse) link; /* in `waiting`, until it is sent */
	struct api_held held;    /* req is NULL once the client has left */
	struct par_job_parse_req msg;
	int text_fd;
};

struct parse_queue {
	TAILQ_HEAD(, parse) waiting;
	unsigned n_sent;
	struct sup_timer idle;
};

void
parse_queue_new(struct sup *sup)
{
	sup->parse_queue = mem_new(struct parse_queue);
	TAILQ_INIT(&sup->parse_queue->waiting);
}

static void
free_parse(struct parse *p)
{
	close_p(&p->text_fd);
	free(p);
}

void
parse_queue_free(struct sup *sup)
{
	struct parse_queue *q = sup->parse_queue;
	struct parse *p;

	if (!q)
		return;
	while ((p = TAILQ_FIRST(&q->waiting))) {
		TAILQ_REMOVE(&q->waiting, p, link);
		free_parse(p);
	}
	sup_timer_cancel(&q->idle);
	free(q);
	sup->parse_queue = NULL;
}

static void
on_idle(void *arg)
{
	struct sup *sup = arg;

	if (child_busy(sup, IPC_JOB_PARSER))
		sup_timer_set(
		    sup, &sup->parse_queue->idle, CLOCK_MONOTONIC, IDLE_USEC, on_idle, sup);
	else
		child_let_go(sup, IPC_JOB_PARSER);
}

static void
on_gone(struct api_held *held)
{
	held->req = NULL;
}

/* Answers with the job, or with the sentences about the errors, from the memfd. */
static void
reply_result(struct api_req *req, bool parsed, int fd)
{
	static const char failed[] = "Failed to parse job: ";
	struct text text = { 0 };
	const void *map;
	size_t len;
	int r = fd_memfd_map(fd, PAR_JOB_MAX, &map, &len);

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
reply_failure(struct api_req *req, int r, const struct err *e)
{
	switch (r) {
	case -EIO: /* its worker was killed */
	case -ETIMEDOUT:
		api_reply_error(req, 500,
		    "parsing this job file was stopped: it took more time or memory than a job "
		    "file may take");
		return;
	case -ECONNRESET:
		api_reply_error(req, 500, "job-parser ended before it had parsed this job file");
		return;
	default:
		api_reply_error(req, r == -EFBIG ? 400 : 500, "%s", e->msg);
	}
}

static void send_next(struct sup *sup);

static void
on_parsed(struct sup *sup, void *arg, int r, const void *rep, int fd, const struct err *e)
{
	const struct par_job_parse_rep *answer = rep;
	cleanup_close int result = fd;
	struct parse *p = arg;
	struct api_req *req = p->held.req;

	if (req)
		api_hold(req, NULL);
	if (req && r < 0)
		reply_failure(req, r, e);
	else if (req)
		reply_result(req, answer->parsed, result);
	free_parse(p);
	sup->parse_queue->n_sent--;
	send_next(sup);
}

static void
send_next(struct sup *sup)
{
	struct parse_queue *q = sup->parse_queue;
	struct parse *p;

	while (q->n_sent < AT_ONCE && (p = TAILQ_FIRST(&q->waiting))) {
		TAILQ_REMOVE(&q->waiting, p, link);
		if (!p->held.req) {
			free_parse(p);
			continue;
		}
		q->n_sent++;
		(void)par_call_job_parse(sup, &p->msg, steal_fd(&p->text_fd), on_parsed, p);
		sup_timer_set(sup, &q->idle, CLOCK_MONOTONIC, IDLE_USEC, on_idle, sup);
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
	struct text both = { 0 };

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
	text_append(&both, job, ret->job_bytes);
	text_append(&both, variables, ret->variables_bytes);
	*ret_fd = fd_memfd_sealed("job-file", both.text, both.len);
	text_done(&both);
	return *ret_fd < 0 ? err_set(e, *ret_fd, "pass the job file to job-parser") : 0;
}

void
api_parse_job(struct sup *sup, struct api_req *req)
{
	struct parse *p = mem_new(struct parse);
	struct err e = { 0 };
	int r;

	p->text_fd = -1;
	p->msg.indent = api_model_flags(req) & MODEL_INDENT;
	r = read_body(req, &p->msg, &p->text_fd, &e);
	if (r < 0) {
		api_reply_error(req, r == -EINVAL ? 400 : 500, "%s", e.msg);
		free_parse(p);
		return;
	}
	p->held = (struct api_held){ .done = on_gone, .req = req };
	api_hold(req, &p->held);
	TAILQ_INSERT_TAIL(&sup->parse_queue->waiting, p, link);
	send_next(sup);
}

// SPDX-License-Identifier: Apache-2.0
/* sup_parser.c: requests to job-parser. Runs in: supervisor. */
#include "supervisor/core/sup_parser.h"

#include <errno.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "common/list.h"
#include "common/mem.h"
#include "model/engine/text.h"
#include "supervisor/core/sup_calls.h"
#include "supervisor/core/sup_timer.h"

#define AT_ONCE   2        /* requests of one kind that are sent at the same time */
#define IDLE_USEC 30000000 /* job-parser is ended after this time without a request */

struct parser_request {
	TAILQ_ENTRY(parser_request) link; /* in `waiting`, until it is sent */
	struct sup *sup;
	struct parser_msg msg;
	bool sent;
	int text_fd;
	call_cb *cb; /* NULL: forgotten */
	void *arg;
};

struct parser {
	struct {
		TAILQ_HEAD(, parser_request) waiting;
		unsigned n_sent;
	} kinds[PARSER_KINDS];
	struct sup_timer idle;
};

void
parser_new(struct sup *sup)
{
	sup->parser = mem_new(struct parser);
	for (size_t i = 0; i < PARSER_KINDS; i++)
		TAILQ_INIT(&sup->parser->kinds[i].waiting);
}

static void
free_request(struct parser_request *p)
{
	close_p(&p->text_fd);
	free(p);
}

void
parser_forget(struct parser_request *p)
{
	if (!p)
		return;
	p->cb = NULL;
	if (p->sent)
		return;
	TAILQ_REMOVE(&p->sup->parser->kinds[p->msg.kind].waiting, p, link);
	free_request(p);
}

void
parser_free(struct sup *sup)
{
	struct parser_request *p;

	if (!sup->parser)
		return;
	for (size_t i = 0; i < PARSER_KINDS; i++)
		while ((p = TAILQ_FIRST(&sup->parser->kinds[i].waiting)))
			parser_forget(p);
	sup_timer_cancel(&sup->parser->idle);
	free(sup->parser);
	sup->parser = NULL;
}

static void
on_idle(void *arg)
{
	struct sup *sup = arg;

	if (child_busy(sup, IPC_JOB_PARSER))
		sup_timer_set(sup, &sup->parser->idle, CLOCK_MONOTONIC, IDLE_USEC, on_idle, sup);
	else
		child_let_go(sup, IPC_JOB_PARSER);
}

static void send_next(struct sup *sup, enum parser_kind kind);

static void
on_answer(struct sup *sup, void *arg, int r, const void *rep, int fd, const struct err *e)
{
	struct parser_request *p = arg;
	enum parser_kind kind = p->msg.kind;
	cleanup_close int result = fd;
	call_cb *cb = p->cb;

	arg = p->arg;
	free_request(p);
	sup->parser->kinds[kind].n_sent--;
	send_next(sup, kind);
	if (cb)
		cb(sup, arg, r, rep, steal_fd(&result), e);
}

static void
send_next(struct sup *sup, enum parser_kind kind)
{
	struct parser *q = sup->parser;
	struct parser_request *p;

	while (q->kinds[kind].n_sent < AT_ONCE && (p = TAILQ_FIRST(&q->kinds[kind].waiting))) {
		TAILQ_REMOVE(&q->kinds[kind].waiting, p, link);
		p->sent = true;
		q->kinds[kind].n_sent++;
		if (kind == PARSE_JOB)
			(void)par_call_job_parse(
			    sup, &p->msg.job, steal_fd(&p->text_fd), on_answer, p);
		else
			(void)par_call_config_evaluate(
			    sup, &p->msg.config, steal_fd(&p->text_fd), on_answer, p);
		sup_timer_set(sup, &q->idle, CLOCK_MONOTONIC, IDLE_USEC, on_idle, sup);
	}
}

struct parser_request *
parser_ask(struct sup *sup, const struct parser_msg *msg, int text_fd, call_cb *cb, void *arg)
{
	struct parser_request *p = mem_new(struct parser_request);

	*p = (struct parser_request){
		.sup = sup, .msg = *msg, .text_fd = text_fd, .cb = cb, .arg = arg
	};
	TAILQ_INSERT_TAIL(&sup->parser->kinds[msg->kind].waiting, p, link);
	send_next(sup, msg->kind);
	return p;
}

int
parser_texts(const char *first, size_t first_len, const char *second, size_t second_len)
{
	struct text both = { 0 };
	int fd;

	text_append(&both, first, first_len);
	text_append(&both, second, second_len);
	fd = fd_memfd_sealed("job-file", both.text, both.len);
	text_done(&both);
	return fd;
}

void
parser_explain(int r, const char *what, const struct err *why, struct err *ret)
{
	if (r == -EIO || r == -ETIMEDOUT) /* its worker was killed */
		(void)err_say(
		    ret, r, "%s takes more time or memory to evaluate than is allowed", what);
	else if (r == -ECONNRESET)
		(void)err_say(ret, r, "job-parser ended before it had evaluated %s", what);
	else
		(void)err_say(ret, r, "%s", why->msg);
}

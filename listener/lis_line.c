// SPDX-License-Identifier: Apache-2.0
/* lis_line.c: questions to the supervisor, one at a time of each kind. Runs in: listener. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/ipc.h"
#include "common/log.h"
#include "common/proc_fd.h"
#include "listener/lis.h"

#define READ_MAX    (256 * 1024)
#define PAUSE_SHARE 4 /* metrics cost the supervisor at most a fifth of a processor */
#define PAUSE_MAX   2000

/* How long a client waits for an answer. A probe has deadlines of its own, for each step. */
static const struct limit {
	uint64_t ms;
	const char *late;
} limits[LIS_KINDS] = {
	[LIS_HEALTH] = { 10000, "the agent did not answer within 10 seconds" },
	[LIS_PROBE] = { 60000, "the agent did not finish its probe within 60 seconds" },
	[LIS_METRICS] = { 10000, "the agent did not answer within 10 seconds" },
};

void
lis_lines_init(struct lis *l)
{
	for (int i = 0; i < LIS_KINDS; i++) {
		l->lines[i] = (struct lis_line){ .source.kind = LIS_LINE, .fd = -1 };
		TAILQ_INIT(&l->lines[i].waiters);
	}
}

static enum lis_kind
kind_of(const struct lis *l, const struct lis_line *line)
{
	return (enum lis_kind)(line - l->lines);
}

/* Wants a link for the question of the first client, if the line is free. */
static void
begin(struct lis *l, struct lis_line *line)
{
	struct lis_conn *first = TAILQ_FIRST(&line->waiters);
	struct lis_want_ev want = { 0 };
	struct err e = { 0 };

	if (line->state != LIS_IDLE || !first || l->now_ms < line->not_before_ms)
		return;
	want.link = line->link = ++l->link;
	/* If the supervisor reads nothing, the clients get their answer at the deadline. */
	if (ipc_send(FD_IPC, IPC_LISTENER, IPC_SUPERVISOR, LIS_WANT_EV, 0, &want, NULL, 0,
		MSG_DONTWAIT, &e) < 0)
		line->not_before_ms = l->now_ms + 100;
	else {
		line->state = LIS_WANTS;
		line->deadline_ms = l->now_ms + limits[kind_of(l, line)].ms;
	}
}

void
lis_line_join(struct lis *l, struct lis_conn *c)
{
	struct lis_line *line = &l->lines[c->question.kind];

	c->deadline_ms = l->now_ms + limits[c->question.kind].ms;
	TAILQ_INSERT_TAIL(&line->waiters, c, waits);
	begin(l, line);
}

void
lis_line_leave(struct lis *l, struct lis_conn *c)
{
	TAILQ_REMOVE(&l->lines[c->question.kind].waiters, c, waits);
}

static void
answer_client(
    struct lis *l, struct lis_conn *c, struct lis_answer *answer, int status, const char *why)
{
	lis_line_leave(l, c);
	if (answer)
		lis_conn_answer(l, c, answer);
	else
		lis_conn_refuse(l, c, status, why);
}

/* Ends the question: all clients that asked it get the answer, or else the status. */
static void
finish(struct lis *l, struct lis_line *line, struct lis_answer *answer, int status, const char *why)
{
	uint64_t took = l->now_ms - line->since_ms, pause = took * PAUSE_SHARE;
	struct lis_conn *c, *next;

	/* The supervisor may still have its copy of the descriptor, so closing it is not enough. */
	(void)lis_watch(l, EPOLL_CTL_DEL, line->fd, 0, NULL);
	close_p(&line->fd);
	lis_reader_done(&line->reader);
	line->state = LIS_IDLE;
	if (kind_of(l, line) == LIS_METRICS)
		line->not_before_ms = l->now_ms + (pause < PAUSE_MAX ? pause : PAUSE_MAX);
	TAILQ_FOREACH_SAFE (c, &line->waiters, waits, next)
		if (lis_question_equals(&c->question, &line->question))
			answer_client(l, c, answer, status, why);
	begin(l, line);
}

static void
fail(struct lis *l, struct lis_line *line, const char *why)
{
	finish(l, line, NULL, 503, why);
}

static struct lis_line *
find_line(struct lis *l, uint32_t link)
{
	for (int i = 0; i < LIS_KINDS; i++)
		if (l->lines[i].state == LIS_WANTS && l->lines[i].link == link)
			return &l->lines[i];
	return NULL;
}

static const char *const accepts[] = {
	[LIS_ACCEPT_ANY] = "",
	[LIS_ACCEPT_TEXT] = "Accept: text/plain; version=0.0.4\r\n",
	[LIS_ACCEPT_OPENMETRICS] = "Accept: application/openmetrics-text; version=1.0.0\r\n",
};

/* Sends the request, which is made of the tables' words only. It fits into the empty socket. */
static bool
send_question(const struct lis_line *line)
{
	char text[512];
	int n = snprintf(text, sizeof text,
	    "GET %s HTTP/1.1\r\nHost: drover\r\n%sConnection: close\r\n\r\n", line->question.target,
	    accepts[line->question.accept]);

	return send(line->fd, text, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT) == n;
}

void
lis_line_on_link(struct lis *l, uint32_t link, int fd)
{
	struct lis_line *line = find_line(l, link);
	struct lis_conn *first = line ? TAILQ_FIRST(&line->waiters) : NULL;

	if (line)
		line->state = LIS_IDLE;
	if (!first) { /* its clients have left */
		(void)close(fd);
		return;
	}
	line->fd = fd;
	line->state = LIS_ASKS;
	line->question = first->question;
	line->since_ms = l->now_ms;
	line->deadline_ms = l->now_ms + limits[first->question.kind].ms;
	if (lis_watch(l, EPOLL_CTL_ADD, fd, EPOLLIN, &line->source) < 0 || !send_question(line))
		fail(l, line, "the agent cannot be asked now: try again in a moment");
}

void
lis_line_ready(struct lis *l, struct lis_line *line)
{
	static char buf[READ_MAX];
	struct lis_answer *answer;
	struct err e = { 0 };
	ssize_t n = recv(line->fd, buf, sizeof buf, MSG_DONTWAIT);
	int r;

	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0) {
		fail(l, line, "the agent has too much to do: try again in a moment");
		return;
	}
	r = lis_reader_feed(&line->reader, buf, (size_t)n, &e);
	if (r == 0)
		return;
	if (r < 0) {
		log_warn("%s: %s", line->question.target, e.msg);
		finish(l, line, NULL, r == -ENOMEM ? 503 : 502, e.msg);
		return;
	}
	answer = lis_reader_take(&line->reader);
	finish(l, line, answer, 0, NULL);
	lis_answer_unref(answer);
}

/* Answers clients that have waited too long. Those of a line wait in the order of their deadlines.
 */
static uint64_t
expire_waiters(struct lis *l, struct lis_line *line)
{
	struct lis_conn *c;

	while ((c = TAILQ_FIRST(&line->waiters)) && c->deadline_ms <= l->now_ms)
		answer_client(l, c, NULL, 503, limits[kind_of(l, line)].late);
	return c ? c->deadline_ms : UINT64_MAX;
}

uint64_t
lis_lines_tick(struct lis *l)
{
	uint64_t next = UINT64_MAX;

	for (int i = 0; i < LIS_KINDS; i++) {
		struct lis_line *line = &l->lines[i];
		uint64_t at;

		if (line->state == LIS_ASKS && line->deadline_ms <= l->now_ms)
			fail(l, line, limits[i].late);
		/* The supervisor could make no link: the next one is wanted with a new number. */
		if (line->state == LIS_WANTS && line->deadline_ms <= l->now_ms)
			line->state = LIS_IDLE;
		at = expire_waiters(l, line);
		begin(l, line);
		if (at < next)
			next = at;
		if (line->state != LIS_IDLE && line->deadline_ms < next)
			next = line->deadline_ms;
		if (line->state == LIS_IDLE && !TAILQ_EMPTY(&line->waiters) &&
		    line->not_before_ms < next)
			next = line->not_before_ms;
	}
	return next;
}

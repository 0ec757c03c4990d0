// SPDX-License-Identifier: Apache-2.0
/* sup_fetcher.c: requests about artifacts, to the fetcher and to file-helper. Runs in: supervisor.
 */
#include "supervisor/core/sup_fetcher.h"

#include <stdlib.h>

#include "common/cleanup.h"
#include "common/list.h"
#include "common/mem.h"
#include "supervisor/core/sup_calls.h"
#include "supervisor/core/sup_timer.h"

#define IDLE_USEC 30000000 /* the fetcher is ended after this time without a request */

/* Requests that are sent at the same time: below WORKERS_MAX. */
static const unsigned at_once[FETCH_KINDS] = { [FETCH_GET] = 16, [FETCH_PLACE] = 8 };

struct fetch_request {
	TAILQ_ENTRY(fetch_request) link; /* in `waiting`, until it is sent */
	struct sup *sup;
	struct fetch_msg msg;
	bool sent;
	int spec_fd;
	call_cb *cb; /* NULL: forgotten */
	void *arg;
};

struct fetcher {
	struct {
		TAILQ_HEAD(, fetch_request) waiting;
		unsigned n_sent;
	} kinds[FETCH_KINDS];
	struct sup_timer idle;
};

void
fetcher_new(struct sup *sup)
{
	sup->fetcher = mem_new(struct fetcher);
	for (size_t i = 0; i < FETCH_KINDS; i++)
		TAILQ_INIT(&sup->fetcher->kinds[i].waiting);
}

static void
free_request(struct fetch_request *p)
{
	close_p(&p->spec_fd);
	free(p);
}

void
fetcher_forget(struct fetch_request *p)
{
	struct fet_artifact_cancel_ev ev = { 0 };

	if (!p)
		return;
	p->cb = NULL;
	if (p->sent && p->msg.kind == FETCH_GET) {
		ev.staging = p->msg.get.staging;
		child_tell(p->sup, IPC_FETCHER, FET_ARTIFACT_CANCEL_EV, &ev);
	}
	if (p->sent)
		return;
	TAILQ_REMOVE(&p->sup->fetcher->kinds[p->msg.kind].waiting, p, link);
	free_request(p);
}

void
fetcher_free(struct sup *sup)
{
	struct fetch_request *p;

	if (!sup->fetcher)
		return;
	for (size_t i = 0; i < FETCH_KINDS; i++)
		while ((p = TAILQ_FIRST(&sup->fetcher->kinds[i].waiting)))
			fetcher_forget(p);
	sup_timer_cancel(&sup->fetcher->idle);
	free(sup->fetcher);
	sup->fetcher = NULL;
}

bool
fetcher_has_begun(const struct fetch_request *p)
{
	return p->sent;
}

static void
on_idle(void *arg)
{
	struct sup *sup = arg;

	if (child_busy(sup, IPC_FETCHER))
		sup_timer_set(sup, &sup->fetcher->idle, CLOCK_MONOTONIC, IDLE_USEC, on_idle, sup);
	else
		child_let_go(sup, IPC_FETCHER);
}

static void send_next(struct sup *sup, enum fetch_kind kind);

static void
on_answer(struct sup *sup, void *arg, int r, const void *rep, int fd, const struct err *e)
{
	struct fetch_request *p = arg;
	enum fetch_kind kind = p->msg.kind;
	call_cb *cb = p->cb;

	arg = p->arg;
	free_request(p);
	sup->fetcher->kinds[kind].n_sent--;
	send_next(sup, kind);
	if (cb)
		cb(sup, arg, r, rep, -1, e);
}

static void
send_next(struct sup *sup, enum fetch_kind kind)
{
	struct fetcher *q = sup->fetcher;
	struct fetch_request *p;

	while (
	    q->kinds[kind].n_sent < at_once[kind] && (p = TAILQ_FIRST(&q->kinds[kind].waiting))) {
		TAILQ_REMOVE(&q->kinds[kind].waiting, p, link);
		p->sent = true;
		q->kinds[kind].n_sent++;
		if (kind == FETCH_PLACE) {
			(void)file_call_artifact_place(sup, &p->msg.place, on_answer, p);
			continue;
		}
		(void)fet_call_artifact_get(sup, &p->msg.get, steal_fd(&p->spec_fd), on_answer, p);
		sup_timer_set(sup, &q->idle, CLOCK_MONOTONIC, IDLE_USEC, on_idle, sup);
	}
}

struct fetch_request *
fetcher_ask(struct sup *sup, const struct fetch_msg *msg, int spec_fd, call_cb *cb, void *arg)
{
	struct fetch_request *p = mem_new(struct fetch_request);

	*p = (struct fetch_request){
		.sup = sup, .msg = *msg, .spec_fd = spec_fd, .cb = cb, .arg = arg
	};
	TAILQ_INSERT_TAIL(&sup->fetcher->kinds[msg->kind].waiting, p, link);
	send_next(sup, msg->kind);
	return p;
}

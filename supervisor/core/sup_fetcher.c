// SPDX-License-Identifier: Apache-2.0
/* sup_fetcher.c: requests to the fetcher. Runs in: supervisor. */
#include "supervisor/core/sup_fetcher.h"

#include <stdlib.h>

#include "common/cleanup.h"
#include "common/list.h"
#include "common/mem.h"
#include "supervisor/core/sup_calls.h"
#include "supervisor/core/sup_timer.h"

#define AT_ONCE   16       /* below WORKERS_MAX, so that the fetcher never waits for a worker */
#define IDLE_USEC 30000000 /* the fetcher is ended after this time without a request */

struct fetch_request {
	TAILQ_ENTRY(fetch_request) link; /* in `waiting`, until it is sent */
	struct sup *sup;
	struct fet_artifact_get_req msg;
	bool sent;
	int spec_fd;
	call_cb *cb; /* NULL: forgotten */
	void *arg;
};

struct fetcher {
	TAILQ_HEAD(, fetch_request) waiting;
	unsigned n_sent;
	struct sup_timer idle;
};

void
fetcher_new(struct sup *sup)
{
	sup->fetcher = mem_new(struct fetcher);
	TAILQ_INIT(&sup->fetcher->waiting);
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
	if (p->sent) {
		ev.staging = p->msg.staging;
		child_tell(p->sup, IPC_FETCHER, FET_ARTIFACT_CANCEL_EV, &ev);
		return;
	}
	TAILQ_REMOVE(&p->sup->fetcher->waiting, p, link);
	free_request(p);
}

void
fetcher_free(struct sup *sup)
{
	struct fetch_request *p;

	if (!sup->fetcher)
		return;
	while ((p = TAILQ_FIRST(&sup->fetcher->waiting)))
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

static void send_next(struct sup *sup);

static void
on_answer(struct sup *sup, void *arg, int r, const void *rep, int fd, const struct err *e)
{
	struct fetch_request *p = arg;
	call_cb *cb = p->cb;

	arg = p->arg;
	free_request(p);
	sup->fetcher->n_sent--;
	send_next(sup);
	if (cb)
		cb(sup, arg, r, rep, -1, e);
}

static void
send_next(struct sup *sup)
{
	struct fetcher *q = sup->fetcher;
	struct fetch_request *p;

	while (q->n_sent < AT_ONCE && (p = TAILQ_FIRST(&q->waiting))) {
		TAILQ_REMOVE(&q->waiting, p, link);
		p->sent = true;
		q->n_sent++;
		(void)fet_call_artifact_get(sup, &p->msg, steal_fd(&p->spec_fd), on_answer, p);
		sup_timer_set(sup, &q->idle, CLOCK_MONOTONIC, IDLE_USEC, on_idle, sup);
	}
}

struct fetch_request *
fetcher_ask(
    struct sup *sup, const struct fet_artifact_get_req *msg, int spec_fd, call_cb *cb, void *arg)
{
	struct fetch_request *p = mem_new(struct fetch_request);

	*p = (struct fetch_request){
		.sup = sup, .msg = *msg, .spec_fd = spec_fd, .cb = cb, .arg = arg
	};
	TAILQ_INSERT_TAIL(&sup->fetcher->waiting, p, link);
	send_next(sup);
	return p;
}

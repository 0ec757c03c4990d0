// SPDX-License-Identifier: Apache-2.0
/* api_wait.c: blocking queries. A waiting query costs its connection and a timer; it is checked
 * when something has changed. Runs in: supervisor. */
#include "supervisor/http/api_wait.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

#include "common/duration.h"
#include "common/mem.h"
#include "supervisor/core/sup_timer.h"
#include "supervisor/http/http_req.h"

#define WAITING_MAX     1000 /* http.c accepts more connections than this */
#define WAIT_DEFAULT_NS (300 * NS_PER_S)

struct waiter {
	struct api_held held;
	LIST_ENTRY(waiter) link; /* in api.waiters */
	uint64_t index;          /* the answer must have a higher one */
	api_index *now;
	struct sup_timer timer;
};

int
api_wait_read(const struct api_req *req, struct api_wait_wish *ret, struct err *e)
{
	const char *index = api_query(req, "index"), *wait = api_query(req, "wait");
	char *end;

	*ret = (struct api_wait_wish){ .wait_ns = WAIT_DEFAULT_NS };
	if (wait && *wait && duration_parse(wait, &ret->wait_ns, NULL) < 0)
		return err_say(e, -EINVAL, "Invalid wait time");
	if (ret->wait_ns <= 0)
		ret->wait_ns = WAIT_DEFAULT_NS;
	if (ret->wait_ns > API_WAIT_MAX_S * NS_PER_S)
		ret->wait_ns = API_WAIT_MAX_S * NS_PER_S;
	if (!index || !*index)
		return 0;
	errno = 0;
	ret->index = strtoull(index, &end, 10);
	if (!isdigit((unsigned char)*index) || *end || errno)
		return err_say(e, -EINVAL, "Invalid index");
	return 0;
}

static void
free_waiter(struct waiter *w)
{
	LIST_REMOVE(w, link);
	http_req_share(w->held.req)->n_waiters--;
	sup_timer_cancel(&w->timer);
	free(w);
}

/* The client has disconnected, or the agent ends. */
static void
on_done(struct api_held *held)
{
	free_waiter(container_of(held, struct waiter, held));
}

static void
answer_query(struct api_req *req, uint64_t index)
{
	api_set_meta(req, &(struct api_meta){ .index = index });
	req->route->fn(req->sup, req);
}

static void
answer_waiter(struct waiter *w, uint64_t index)
{
	struct api_req *req = w->held.req;

	api_hold(req, NULL);
	free_waiter(w);
	answer_query(req, index);
}

static void
on_timeout(void *arg)
{
	struct waiter *w = arg;
	struct api_req *req = w->held.req;

	answer_waiter(w, w->now(req->sup, req));
}

static void
hold_query(struct api_req *req, const struct api_wait_wish *wish, api_index *now)
{
	struct api *api = req->sup->api;
	struct waiter *w = mem_new(struct waiter);

	w->held.done = on_done;
	w->index = wish->index;
	w->now = now;
	sup_timer_set(
	    req->sup, &w->timer, CLOCK_BOOTTIME, (uint64_t)wish->wait_ns / 1000, on_timeout, w);
	LIST_INSERT_HEAD(&api->waiters, w, link);
	http_req_share(req)->n_waiters++;
	api_hold(req, &w->held);
}

bool
api_wait_serve(struct api_req *req)
{
	struct sup *sup = req->sup;
	const struct api_backend *backend = sup->api->backend;
	api_index *now = backend->index_of ? backend->index_of(sup, api_req_path(req)) : NULL;
	struct api_wait_wish wish;
	struct err e = { 0 };
	uint64_t index;

	if (!now)
		return false;
	index = now(sup, req);
	if (api_wait_read(req, &wish, &e) < 0)
		api_reply_error(req, 400, "%s", e.msg);
	else if (wish.index == 0 || index > wish.index)
		answer_query(req, index);
	else if (http_req_share(req)->n_waiters >= WAITING_MAX)
		api_reply_error(req, 429,
		    "%d blocking queries are already waiting, which is the limit", WAITING_MAX);
	else
		hold_query(req, &wish, now);
	return true;
}

void
api_wait_check(struct sup *sup)
{
	struct waiter *w, *next;

	LIST_FOREACH_SAFE (w, &sup->api->waiters, link, next) {
		uint64_t index = w->now(sup, w->held.req);
		if (index > w->index)
			answer_waiter(w, index);
	}
}

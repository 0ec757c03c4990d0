// SPDX-License-Identifier: Apache-2.0
/* api_wait.c: blocking queries. A waiting query costs its connection and a timer; it is checked
 * when something has changed. Runs in: supervisor. */
#include "supervisor/http/api_wait.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <systemd/sd-event.h>

#include "common/duration.h"

#define WAITING_MAX     1000 /* http.c accepts more connections than this */
#define WAIT_DEFAULT_NS (300 * NS_PER_S)

struct waiter {
	struct api_held held;
	struct waiter *prev, *next;
	uint64_t index;
	api_index *now;
	sd_event_source *timer;
};

/* There is only one control socket. */
static struct waiter *waiters;
static unsigned n_waiters;

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
forget(struct waiter *w)
{
	*(w->prev ? &w->prev->next : &waiters) = w->next;
	if (w->next)
		w->next->prev = w->prev;
	n_waiters--;
	(void)sd_event_source_disable_unref(w->timer);
	free(w);
}

/* The client has disconnected, or the agent ends. */
static void
on_done(struct api_held *held)
{
	forget((struct waiter *)(void *)held);
}

static void
answer(struct api_req *req, uint64_t index)
{
	api_set_meta(req, &(struct api_meta){ .index = index });
	api_req_route(req)->fn(api_req_sup(req), req);
}

static void
release(struct waiter *w, uint64_t index)
{
	struct api_req *req = w->held.req;

	api_hold(req, NULL);
	forget(w);
	answer(req, index);
}

static int
on_timeout(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct waiter *w = userdata;

	release(w, w->now(api_req_sup(w->held.req), w->held.req));
	return 0;
}

static int
hold(struct api_req *req, const struct api_wait_wish *wish, api_index *now)
{
	struct waiter *w;
	int r;

	if (n_waiters >= WAITING_MAX)
		return -EBUSY;
	w = calloc(1, sizeof *w);
	if (!w)
		return -ENOMEM;
	r = sd_event_add_time_relative(api_req_sup(req)->event, &w->timer, CLOCK_BOOTTIME,
	    (uint64_t)wish->wait_ns / 1000, 0, on_timeout, w);
	if (r < 0) {
		free(w);
		return r;
	}
	w->index = wish->index;
	w->now = now;
	w->held.done = on_done;
	w->next = waiters;
	if (waiters)
		waiters->prev = w;
	waiters = w;
	n_waiters++;
	api_hold(req, &w->held);
	return 0;
}

bool
api_wait_serve(struct api_req *req)
{
	struct sup *sup = api_req_sup(req);
	const struct api_backend *backend = api_backend(sup);
	api_index *now = backend->index_of ? backend->index_of(sup, api_req_path(req)) : NULL;
	struct api_wait_wish wish;
	struct err e = { 0 };
	uint64_t index;
	int r;

	if (!now)
		return false;
	index = now(sup, req);
	if (api_wait_read(req, &wish, &e) < 0) {
		api_reply_error(req, 400, "%s", e.msg);
	} else if (wish.index == 0 || index > wish.index) {
		answer(req, index);
	} else if ((r = hold(req, &wish, now)) < 0) {
		api_reply_error(req, r == -EBUSY ? 429 : 500,
		    r == -EBUSY ? "%d queries wait already" : "no memory for %d waiting queries",
		    WAITING_MAX);
	}
	return true;
}

void
api_wait_look(struct sup *sup)
{
	struct waiter *next;

	for (struct waiter *w = waiters; w; w = next) {
		uint64_t index = w->now(sup, w->held.req);

		next = w->next;
		if (index > w->index)
			release(w, index);
	}
}

// SPDX-License-Identifier: Apache-2.0
/* api_departure.c: /v1/agent/land, retire and departure. Runs in: supervisor. */
#include <errno.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "common/list.h"
#include "common/mem.h"
#include "supervisor/alloc/departure.h"
#include "supervisor/alloc/leave.h"
#include "supervisor/api/api_routes.h"
#include "supervisor/core/changed.h"
#include "supervisor/core/sup_timer.h"
#include "supervisor/core/sup_turn.h"
#include "supervisor/http/api.h"

#define STUCK_MS   10000 /* without a commit, before a client is told */
#define CHECK_USEC 1000000

/* A request that is answered when the node has landed or retired, or does not any more. */
struct waiting {
	struct api_held held;
	struct changed_watch watch;
	struct sup_timer check;     /* whether the node can go on */
	enum departure_state state; /* that it waits to end */
	struct sup *sup;
};

static void
free_waiting(struct waiting *w)
{
	changed_unwatch(w->sup, &w->watch);
	sup_timer_cancel(&w->check);
	free(w);
}

/* The client has disconnected, or the agent ends. */
static void
on_done(struct api_held *held)
{
	free_waiting(container_of(held, struct waiting, held));
}

static void
on_changed(struct sup *sup, struct changed_watch *watch)
{
	struct waiting *w = container_of(watch, struct waiting, watch);
	struct api_req *req = w->held.req;

	if (departure_state(sup) == w->state)
		return;
	api_hold(req, NULL);
	free_waiting(w);
	api_reply_json(req, departure_show(sup));
}

/* The disk has become read-only meanwhile, for example. */
static void
check_progress(void *arg)
{
	struct waiting *w = arg;
	struct api_req *req = w->held.req;
	enum departure_state state = w->state;
	struct sup *sup = w->sup;
	const char *why;

	if (!turn_is_stuck(sup, &why) || turn_stuck_ms(sup) < STUCK_MS) {
		sup_timer_set(sup, &w->check, CLOCK_MONOTONIC, CHECK_USEC, check_progress, w);
		return;
	}
	api_hold(req, NULL);
	free_waiting(w);
	api_reply_error(req, 507, "the node is %s, and goes on as soon as it can store that: %s",
	    departure_names[state], why);
}

static void
wait_for_end(struct sup *sup, struct api_req *req)
{
	struct waiting *w = mem_new(struct waiting);

	w->sup = sup;
	w->held.done = on_done;
	w->watch.fn = on_changed;
	w->state = departure_state(sup);
	changed_watch(sup, CHANGED_DEPARTURE, &w->watch);
	api_hold(req, &w->held);
	check_progress(w);
}

/* Reads {"Deadline": ns, "Cancel": bool}, both optional. A request without a body is refused,
 * because it may have been sent by mistake. */
static int
read_wish(struct sup *sup, struct api_req *req, int64_t *ret_deadline, bool *ret_cancel,
    bool *ret_wait, struct err *e)
{
	const json_t *body = api_body_object(req, e), *deadline, *cancel;

	*ret_deadline = leave_strategy(sup->config).deadline;
	*ret_cancel = *ret_wait = false;
	if (api_query_bool(req, "wait", ret_wait, e) < 0)
		return e->code;
	if (!body)
		return e->code;
	deadline = json_object_get(body, "Deadline");
	cancel = json_object_get(body, "Cancel");
	if ((deadline && !json_is_integer(deadline)) || (cancel && !json_is_boolean(cancel)))
		return err_say(e, -EINVAL,
		    "Deadline must be a number of nanoseconds (-1: at once, 0: none), and Cancel a "
		    "boolean");
	if (deadline)
		*ret_deadline = json_integer_value(deadline);
	*ret_cancel = json_is_true(cancel);
	return 0;
}

static void
request_departure(struct sup *sup, struct api_req *req, enum departure_event event)
{
	struct err e = { 0 };
	int64_t deadline;
	bool cancel, wait;
	int r;

	if (read_wish(sup, req, &deadline, &cancel, &wait, &e) < 0) {
		api_reply_error(req, 400, "%s", e.msg);
		return;
	}
	r = departure_request(sup, cancel ? DEPARTURE_CANCEL : event, deadline, api_token(req), &e);
	if (r < 0)
		api_reply_error(req, r == -EINVAL ? 400 : 507, "%s", e.msg);
	else if (wait && !cancel)
		wait_for_end(sup, req);
	else
		api_reply_json(req, departure_show(sup));
}

void
api_land_node(struct sup *sup, struct api_req *req)
{
	request_departure(sup, req, DEPARTURE_LAND);
}

void
api_retire_node(struct sup *sup, struct api_req *req)
{
	request_departure(sup, req, DEPARTURE_RETIRE);
}

void
api_get_departure(struct sup *sup, struct api_req *req)
{
	api_reply_json(req, departure_show(sup));
}

// SPDX-License-Identifier: Apache-2.0
/*
 * local_drain.c: the drain of the node. Services end at once: there is no other node to move to.
 * Batch work may come to its end until the deadline; system jobs end when all that has, and plugins
 * last. Its strategy is in state.db until it is over. Runs in: supervisor.
 */
#include <errno.h>
#include <systemd/sd-event.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "supervisor/api/api_node.h"
#include "supervisor/node/node_state.h"
#include "supervisor/server/local.h"
#include "supervisor/server/api/local_api.h"
#include "supervisor/core/store.h"

#define STRATEGY_KEY "local_drain_strategy"

static void run(struct local *l);

static int
write_drain(struct sup *sup, struct dirty *d, struct err *e)
{
	const struct drain_strategy *drain = node_get(sup)->drain_strategy;
	struct text t = { 0 };
	int r = drain ? model_to_text(&drain_strategy_type, drain, MODEL_COMPACT, &t) : 0;

	if (r < 0)
		r = err_set(e, r, "write down the drain");
	else
		r = store_meta_put(
		    sup->store, "local_drain", local_of_sup(sup)->ineligible ? "1" : "0", e);
	if (r >= 0)
		r = store_meta_put(sup->store, STRATEGY_KEY, str(t.text), e);
	text_done(&t);
	return r;
}

void
local_drain_init(struct local *l)
{
	l->drain_row.write = write_drain;
	l->drain_row.point = CRASH_ROW_DRAIN;
}

int
local_drain_load(struct local *l, struct err *e)
{
	struct store *store = l->base.sup->store;
	cleanup_free char *ineligible = NULL, *strategy = NULL;
	struct drain_strategy drain = { 0 };
	int r = store_meta_get(store, "local_drain", &ineligible, e);

	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	l->ineligible = str_eq(ineligible, "1");
	r = store_meta_get(store, STRATEGY_KEY, &strategy, e);
	if (r == -ENOENT || (r >= 0 && !*strategy))
		return 0;
	if (r >= 0)
		r = model_from_text(&drain_strategy_type, strategy, strlen(strategy), &drain, e);
	return r < 0 ? r : node_set_drain(l->base.sup, &drain, e);
}

/* The strategy is another, or none. */
static void
on_changed(struct local *l)
{
	turn_write(l->base.sup, &l->drain_row);
	turn_durable(l->base.sup);
	local_node_changed(l);
}

static void
end(struct local *l)
{
	l->drain_timer = sd_event_source_disable_unref(l->drain_timer);
	(void)node_set_drain(l->base.sup, NULL, NULL);
	on_changed(l);
}

static void
on_drained(struct sup *sup)
{
	log_info("the node is drained");
	end(local_of_sup(sup));
}

static int
on_deadline(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct local *l = userdata;

	l->drain_timer = sd_event_source_disable_unref(l->drain_timer);
	run(l);
	return 0;
}

/* What is left of the time until its deadline; INT64_MAX: it has none. */
static int64_t
left_ns(const struct drain_strategy *drain)
{
	int64_t left;

	if (drain->deadline <= 0)
		return drain->deadline == 0 ? INT64_MAX : 0;
	left = drain->force_deadline - local_now_ns();
	if (left < 0)
		return 0;
	return left < drain->deadline ? left : drain->deadline; /* whatever the clock was set to */
}

static void
run(struct local *l)
{
	struct sup *sup = l->base.sup;
	const struct drain_strategy *drain = node_get(sup)->drain_strategy;
	int64_t left = left_ns(drain);
	const struct client_stop wish = { .spares_system = drain->ignore_system_jobs,
		.lets_finish = left > 0,
		.why = "node is draining",
		.done = on_drained };

	l->drain_timer = sd_event_source_disable_unref(l->drain_timer);
	if (sup->draining) /* all ends with the agent; what that leaves is the next one's */
		return;
	if (left > 0 && left < INT64_MAX &&
	    sd_event_add_time_relative(sup->event, &l->drain_timer, CLOCK_BOOTTIME,
		(uint64_t)left / 1000, 0, on_deadline, l) < 0)
		log_error("no memory for the deadline of the drain");
	client_stop_all(sup, &wish);
}

void
local_drain_start(struct local *l)
{
	if (l->ineligible)
		node_set_takes_allocs(l->base.sup, false);
	if (node_get(l->base.sup)->drain_strategy)
		run(l);
}

void
local_drain_free(struct local *l)
{
	l->drain_timer = sd_event_source_disable_unref(l->drain_timer);
	turn_forget_write(l->base.sup, &l->drain_row);
}

void
local_set_drain(struct source *s, bool on)
{
	struct local *l = local_of(s);

	if (l->ineligible != on) {
		l->ineligible = on;
		turn_write(s->sup, &l->drain_row);
		turn_durable(s->sup);
	}
	local_node_changed(l);
	if (!on)
		local_mark_node(l);
}

/* --- the API --- */

/* One that is under way goes on, by another strategy. */
static int
begin(struct local *l, const json_t *spec, struct err *e)
{
	const struct drain_strategy *old = node_get(l->base.sup)->drain_strategy;
	struct drain_strategy drain = { 0 };
	int64_t now = local_now_ns();
	int r = model_from_json(&drain_strategy_type, spec, &drain, e);

	if (r < 0)
		return r;
	drain.started_at = old ? old->started_at : now;
	drain.force_deadline = 0;
	if (drain.deadline > 0 &&
	    __builtin_add_overflow(now, drain.deadline, &drain.force_deadline))
		drain.force_deadline = INT64_MAX;
	r = node_set_drain(l->base.sup, &drain, e);
	if (r < 0)
		return r;
	node_set_takes_allocs(l->base.sup, false);
	on_changed(l);
	run(l);
	return 0;
}

static void
take_back(struct local *l, bool eligible)
{
	if (node_get(l->base.sup)->drain_strategy) {
		if (!l->base.sup->draining)
			client_stop_no_more(l->base.sup);
		end(l);
	}
	if (eligible)
		node_set_takes_allocs(l->base.sup, true);
}

void
local_api_drain_node(struct sup *sup, struct api_req *req)
{
	struct local *l = local_of_sup(sup);
	struct err e = { 0 };
	const json_t *body, *spec;
	int r = 0;

	if (!api_is_this_node(sup, req))
		return;
	body = api_body(req, &e);
	spec = json_object_get(body, "DrainSpec");
	if (!json_is_object(body) || (spec && !json_is_object(spec) && !json_is_null(spec))) {
		api_reply_error(req, 400, "%s",
		    body ? "DrainSpec must be an object, or null to end the drain" : e.msg);
		return;
	}
	if (json_is_object(spec))
		r = begin(l, spec, &e);
	else
		take_back(l, json_is_true(json_object_get(body, "MarkEligible")));
	if (r < 0)
		api_reply_error(req, r == -EINVAL ? 400 : 500, "DrainSpec: %s", e.msg);
	else
		api_reply_node_change(sup, req);
}

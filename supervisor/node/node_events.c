// SPDX-License-Identifier: Apache-2.0
/* node_events.c: keeps the last events of the node, in memory and in state.db. Runs in: supervisor.
 */
#include "supervisor/node/node_events.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/mem.h"
#include "supervisor/core/journal.h"
#include "supervisor/core/store.h"
#include "supervisor/core/sup_timer.h"
#include "supervisor/core/sup_turn.h"
#include "supervisor/node/node_state.h"
#include "supervisor/source/source.h"

#define ROW            "node_events"
#define EVENTS_MAX     10 /* as servers keep */
#define SUBSYSTEMS_MAX 12
#define WINDOW_MS      60000
#define WINDOW_EVENTS  EVENTS_MAX

/* The events of one subsystem in the present minute. */
struct window {
	struct sup *sup;
	char *subsystem; /* NULL: unused */
	uint64_t since_ms;
	unsigned n, left_out;
	struct node_event last; /* of those that were left out */
	struct sup_timer end;
};

struct node_events {
	struct dirty row;
	struct window windows[SUBSYSTEMS_MAX];
};

static int
write_row(struct sup *sup, struct dirty *d, struct err *e)
{
	const struct node *n = node_get(sup);
	struct text json = { 0 };
	int r;

	text_append(&json, "[", 1);
	for (size_t i = 0; i < n->events.n; i++) {
		if (i > 0)
			text_append(&json, ",", 1);
		model_to_text(&node_event_type, &n->events.v[i], MODEL_COMPACT, &json);
	}
	text_append(&json, "]", 1);
	r = store_meta_put(sup->store, ROW, json.text, e);
	text_done(&json);
	return r;
}

static void
add_now(struct sup *sup, const struct node_event *event)
{
	struct node *n = node_of(sup);
	struct node_event *ev;

	if (n->events.n >= EVENTS_MAX)
		list_remove(node_event, &n->events, 0);
	ev = list_add(node_event, &n->events);
	node_event_copy(event, ev);
	if (!ev->timestamp)
		ev->timestamp = clock_real_ns();
	turn_write(sup, &sup->node_events->row);
	if (sup->source)
		sup->source->ops->node_event(sup->source, ev);
}

/* --- limits --- */

/* Returns the window of the subsystem; NULL if there are too many, which have no limit then. */
static struct window *
window_of(struct sup *sup, const char *subsystem)
{
	struct window *w = sup->node_events->windows;

	for (size_t i = 0; i < SUBSYSTEMS_MAX; i++, w++) {
		if (!w->subsystem) {
			w->subsystem = mem_strdup(subsystem);
			w->sup = sup;
			node_event_init(&w->last);
		}
		if (strcmp(w->subsystem, subsystem) == 0)
			return w;
	}
	return NULL;
}

static void
on_window_end(void *arg)
{
	struct window *w = arg;
	char left_out[16];

	w->since_ms = clock_ms();
	w->n = 1;
	if (w->left_out > 1) {
		(void)snprintf(left_out, sizeof left_out, "%u", w->left_out - 1);
		string_map_set(&w->last.details, "events_left_out", left_out);
	}
	w->left_out = 0;
	add_now(w->sup, &w->last);
}

static bool
is_too_many(struct window *w)
{
	if (w->left_out > 0)
		return true;
	if (clock_ms() - w->since_ms >= WINDOW_MS) {
		w->since_ms = clock_ms();
		w->n = 0;
	}
	return ++w->n > WINDOW_EVENTS;
}

static void
leave_out(struct window *w, const struct node_event *event)
{
	uint64_t passed_ms = clock_ms() - w->since_ms;
	uint64_t left_ms = passed_ms < WINDOW_MS ? WINDOW_MS - passed_ms : 1;

	node_event_done(&w->last);
	node_event_init(&w->last);
	node_event_copy(event, &w->last);
	w->last.timestamp = clock_real_ns();
	if (w->left_out++ == 0)
		sup_timer_set(w->sup, &w->end, CLOCK_BOOTTIME, left_ms * 1000, on_window_end, w);
}

void
node_event_add(struct sup *sup, const struct node_event *event)
{
	struct window *w;

	if (!sup->node_events) /* the node is not read yet */
		return;
	w = window_of(sup, str(event->subsystem));
	if (w && is_too_many(w))
		leave_out(w, event);
	else
		add_now(sup, event);
}

void
node_event_say(struct sup *sup, const char *subsystem, const char *fmt, ...)
{
	cleanup_done(node_event) struct node_event ev;
	char text[ERR_MSG_SIZE];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	node_event_init(&ev);
	str_set(&ev.subsystem, subsystem);
	str_set(&ev.message, text);
	node_event_add(sup, &ev);
}

/* --- start and end --- */

static void
read_events(struct sup *sup, const char *text)
{
	cleanup_json json_t *all = json_loads(text, 0, NULL);
	struct node *n = node_of(sup);
	struct err e = { 0 };
	json_t *one;
	size_t i;

	json_array_foreach (all, i, one) {
		struct node_event *ev =
		    n->events.n < EVENTS_MAX ? list_add(node_event, &n->events) : NULL;

		if (ev && model_from_json(&node_event_type, one, ev, &e) < 0) {
			list_remove(node_event, &n->events, n->events.n - 1);
			journal_warn(JOURNAL_STATE, NULL,
			    "state.db: an event of the node cannot be read, it is forgotten: %s",
			    e.msg);
		}
	}
}

int
node_events_new(struct sup *sup, struct err *e)
{
	cleanup_free char *text = NULL;
	int r;

	sup->node_events = mem_new(struct node_events);
	sup->node_events->row.write = write_row;
	sup->node_events->row.point = CRASH_ROW_NODE;
	if (sup->new_identity) {
		turn_write(sup, &sup->node_events->row);
		return 0;
	}
	r = store_meta_get(sup->store, ROW, &text, e);
	if (r >= 0)
		read_events(sup, text);
	return r == -ENOENT ? 0 : r;
}

void
node_events_free(struct sup *sup)
{
	struct node_events *all = sup->node_events;

	if (!all)
		return;
	turn_forget_write(sup, &all->row);
	for (size_t i = 0; i < SUBSYSTEMS_MAX && all->windows[i].subsystem; i++) {
		sup_timer_cancel(&all->windows[i].end);
		node_event_done(&all->windows[i].last);
		free(all->windows[i].subsystem);
	}
	free_p(&sup->node_events);
}

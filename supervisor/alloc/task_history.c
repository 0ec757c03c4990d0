// SPDX-License-Identifier: Apache-2.0
/* task_history.c: the events of tasks that are older than the last ten. Runs in: supervisor. */
#include "supervisor/alloc/task_history.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "supervisor/core/store.h"

#define KEPT_MAX 500 /* of a task, beside the last ten */

struct old_event {
	struct dirty row;
	struct id alloc;
	char *task;
	struct text json;
};

static void
old_event_free(struct old_event *o)
{
	free(o->task);
	text_done(&o->json);
	free(o);
}

static int
write_row(struct sup *sup, struct dirty *d, struct err *e)
{
	struct old_event *o = (struct old_event *)(void *)d;
	int r = STORE_EXEC(sup->store, STMT_EVENT_PUT, e, SV_ID(&o->alloc), SV_TEXT(o->task),
	    SV_TEXT(o->json.text));

	return r < 0 ? r
		     : STORE_EXEC(sup->store, STMT_EVENT_TRIM, e, SV_ID(&o->alloc),
			   SV_TEXT(o->task), SV_INT(KEPT_MAX));
}

static void
on_written(struct sup *sup, struct dirty *d)
{
	old_event_free((struct old_event *)(void *)d);
}

void
task_history_add(struct sup *sup, const struct id *alloc, const char *task, struct task_event *ev)
{
	struct old_event *o = calloc(1, sizeof *o);

	if (o)
		o->task = strdup(task);
	if (!o || !o->task || model_to_text(&task_event_type, ev, MODEL_COMPACT, &o->json) < 0) {
		log_error("task %s: no memory to keep an old event", task);
		if (o)
			old_event_free(o);
	} else {
		o->alloc = *alloc;
		o->row.write = write_row;
		o->row.point = CRASH_ROW_EVENT;
		o->row.written = on_written;
		turn_write(sup, &o->row);
	}
	task_event_done(ev);
	task_event_init(ev);
}

static int
print_row(void *arg, const struct store_row *row, struct err *e)
{
	const char *text = store_col_text(row, 0);

	text_append(arg, text, strlen(text));
	text_append(arg, ",", 1);
	return 0;
}

int
task_history_print(
    struct sup *sup, const struct sup_alloc *sa, const char *task, struct text *json, struct err *e)
{
	const struct task_state *s = map_get(task_state, &sa->a.task_states, task);
	const struct store_val vals[] = { SV_ID(&sa->id), SV_TEXT(task) };
	int r =
	    store_each(sup->store, STMT_EVENT_OF_TASK, vals, ELEMENTSOF(vals), print_row, json, e);

	for (size_t i = 0; r >= 0 && s && i < s->events.n; i++) {
		r = model_to_text(&task_event_type, &s->events.v[i], MODEL_COMPACT, json);
		if (i + 1 < s->events.n)
			text_append(json, ",", 1);
	}
	return r;
}

/* More than a task shows: takes over *ev. */
static int
append(struct task_state *s, struct task_event *ev)
{
	struct task_event *at = list_add(task_event, &s->events);

	if (!at) {
		task_event_done(ev);
		return -ENOMEM;
	}
	*at = *ev;
	return 0;
}

static int
read_row(void *arg, const struct store_row *row, struct err *e)
{
	const char *text = store_col_text(row, 0);
	struct task_state *s = arg;
	struct task_event ev;
	int r;

	task_event_init(&ev);
	r = model_from_text(&task_event_type, text, strlen(text), &ev, e);
	return r < 0 ? r : append(s, &ev);
}

int
task_history_read(struct sup *sup, const struct sup_alloc *sa, const char *task,
    struct task_state *ret, struct err *e)
{
	const struct task_state *s = map_get(task_state, &sa->a.task_states, task);
	const struct store_val vals[] = { SV_ID(&sa->id), SV_TEXT(task) };
	int r =
	    store_each(sup->store, STMT_EVENT_OF_TASK, vals, ELEMENTSOF(vals), read_row, ret, e);

	for (size_t i = 0; r >= 0 && s && i < s->events.n; i++) {
		struct task_event ev;

		r = task_event_copy(&s->events.v[i], &ev);
		if (r >= 0)
			r = append(ret, &ev);
	}
	return r;
}

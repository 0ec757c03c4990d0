// SPDX-License-Identifier: Apache-2.0
/* task_history.c: the events of tasks that are older than the last ten. Runs in: supervisor. */
#include "supervisor/alloc/task_history.h"

#include <stdlib.h>
#include <string.h>

#include "common/list.h"
#include "common/mem.h"
#include "supervisor/core/store.h"

#define KEPT_MAX 500 /* events of a task, besides the last ten */

struct old_event {
	struct dirty row;
	struct id alloc;
	char *task;
	struct text json;
};

static int
write_row(struct sup *sup, struct dirty *d, struct err *e)
{
	struct old_event *o = container_of(d, struct old_event, row);
	int r = STORE_EXEC(sup->store, STMT_EVENT_PUT, e, SV_ID(&o->alloc), SV_TEXT(o->task),
	    SV_TEXT(o->json.text));

	return r < 0 ? r
		     : STORE_EXEC(sup->store, STMT_EVENT_TRIM, e, SV_ID(&o->alloc),
			   SV_TEXT(o->task), SV_INT(KEPT_MAX));
}

static void
on_written(struct sup *sup, struct dirty *d)
{
	struct old_event *o = container_of(d, struct old_event, row);

	free(o->task);
	text_done(&o->json);
	free(o);
}

void
task_history_add(
    struct sup *sup, const struct id *alloc, const char *task, const struct task_event *ev)
{
	struct old_event *o = mem_new(struct old_event);

	o->alloc = *alloc;
	o->task = mem_strdup(task);
	model_to_text(&task_event_type, ev, MODEL_COMPACT, &o->json);
	o->row.write = write_row;
	o->row.point = CRASH_ROW_EVENT;
	o->row.written = on_written;
	turn_write(sup, &o->row);
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
		model_to_text(&task_event_type, &s->events.v[i], MODEL_COMPACT, json);
		if (i + 1 < s->events.n)
			text_append(json, ",", 1);
	}
	return r;
}

static int
read_row(void *arg, const struct store_row *row, struct err *e)
{
	const char *text = store_col_text(row, 0);
	struct task_state *s = arg;

	return model_from_text(
	    &task_event_type, text, strlen(text), list_add(task_event, &s->events), e);
}

int
task_history_read(struct sup *sup, const struct sup_alloc *sa, const char *task,
    struct task_state *ret, struct err *e)
{
	const struct task_state *s = map_get(task_state, &sa->a.task_states, task);
	const struct store_val vals[] = { SV_ID(&sa->id), SV_TEXT(task) };
	int r =
	    store_each(sup->store, STMT_EVENT_OF_TASK, vals, ELEMENTSOF(vals), read_row, ret, e);

	for (size_t i = 0; r >= 0 && s && i < s->events.n; i++)
		task_event_copy(&s->events.v[i], list_add(task_event, &ret->events));
	return r;
}

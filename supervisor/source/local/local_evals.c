// SPDX-License-Identifier: Apache-2.0
/* local_evals.c: evaluations: why a job was looked at, and what came of it. Runs in: supervisor. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/id.h"
#include "common/log.h"
#include "supervisor/source/local/local.h"
#include "supervisor/store/store.h"

#define CLOSED_KEPT 1000

static bool
is_open(const struct local_eval *ev)
{
	return ev->ev.status == EVAL_PENDING || ev->ev.status == EVAL_BLOCKED;
}

static void
unlink_eval(struct local *l, struct local_eval *ev)
{
	local_map_remove(&l->evals, &ev->key);
	local_news_remove(&l->news_list, &ev->news);
	*(ev->prev ? &ev->prev->next : &l->first_eval) = ev->next;
	*(ev->next ? &ev->next->prev : &l->last_eval) = ev->prev;
}

static void
free_eval(struct local_eval *ev)
{
	eval_done(&ev->ev);
	free(ev);
}

static int
write_eval(struct sup *sup, struct dirty *d, struct err *e)
{
	struct local_eval *ev =
	    (struct local_eval *)(void *)((char *)d - offsetof(struct local_eval, row));
	struct text json = { 0 };
	struct id id;
	int r;

	if (!id_from_uuid(ev->ev.id, &id))
		return err_say(e, -EINVAL, "evaluation \"%s\" has no id", ev->ev.id);
	if (ev->gone)
		return STORE_EXEC(sup->store, STMT_EVAL_DELETE, e, SV_ID(&id));
	if (model_to_text(&eval_type, &ev->ev, MODEL_COMPACT, &json) < 0)
		return err_set(e, -ENOMEM, "write evaluation %s", ev->ev.id);
	r = STORE_EXEC(sup->store, STMT_EVAL_PUT, e, SV_ID(&id), SV_TEXT(json.text));
	text_done(&json);
	return r;
}

static void
on_eval_written(struct sup *sup, struct dirty *d)
{
	struct local_eval *ev =
	    (struct local_eval *)(void *)((char *)d - offsetof(struct local_eval, row));

	if (ev->gone)
		free_eval(ev);
	else
		local_eval_told(local_of_sup(sup), ev);
}

static void
forget_eval(struct local *l, struct local_eval *ev)
{
	unlink_eval(l, ev);
	ev->gone = true;
	ev->job = NULL;
	turn_write(l->base.sup, &ev->row);
}

/* The oldest closed ones go. An open one at the head is moved to the tail: there are few. */
static void
trim(struct local *l)
{
	for (size_t n = l->evals.n; n > CLOSED_KEPT && l->first_eval; n--) {
		struct local_eval *ev = l->first_eval;

		if (!is_open(ev)) {
			forget_eval(l, ev);
			continue;
		}
		l->first_eval = ev->next;
		*(ev->next ? &ev->next->prev : &l->last_eval) = NULL;
		ev->prev = l->last_eval;
		ev->next = NULL;
		*(l->last_eval ? &l->last_eval->next : &l->first_eval) = ev;
		l->last_eval = ev;
	}
}

static int
insert_eval(struct local *l, struct local_eval *ev)
{
	if (local_map_add(&l->evals, &ev->key, ev->ev.id) < 0)
		return -ENOMEM;
	ev->row.write = write_eval;
	ev->row.point = CRASH_ROW_EVAL;
	ev->row.written = on_eval_written;
	ev->prev = l->last_eval;
	*(l->last_eval ? &l->last_eval->next : &l->first_eval) = ev;
	l->last_eval = ev;
	return 0;
}

void
local_eval_changed(struct local *l, struct local_eval *ev)
{
	ev->ev.modify_index = local_index_next(l);
	ev->ev.modify_time = local_now_ns();
	turn_write(l->base.sup, &ev->row);
}

static int
fill_eval(struct eval *ev, const struct job *job, const char *trigger)
{
	struct id id = id_random_uuid();
	char text[ID_UUID_SIZE];

	id_to_uuid(&id, text);
	ev->priority = job->priority;
	ev->type = job->type;
	ev->status = EVAL_PENDING;
	ev->job_modify_index = job->modify_index;
	ev->create_time = local_now_ns();
	if (str_set(&ev->id, text) < 0 || str_set(&ev->namespace, job->namespace) < 0 ||
	    str_set(&ev->job_id, job->id) < 0 || str_set(&ev->triggered_by, trigger) < 0)
		return -ENOMEM;
	return 0;
}

struct local_eval *
local_eval_new(struct local *l, struct local_job *j, const char *trigger)
{
	struct local_eval *ev = calloc(1, sizeof *ev);

	if (!ev)
		return NULL;
	eval_init(&ev->ev);
	ev->job = j;
	if (fill_eval(&ev->ev, local_job_wanted(j), trigger) < 0 || insert_eval(l, ev) < 0) {
		free_eval(ev);
		return NULL;
	}
	local_eval_changed(l, ev);
	ev->ev.create_index = ev->ev.modify_index;
	trim(l);
	return ev;
}

void
local_eval_close(
    struct local *l, struct local_eval *ev, enum eval_status status, const char *description)
{
	if (!is_open(ev))
		return;
	ev->ev.status = status;
	(void)str_set(&ev->ev.status_description, description);
	local_eval_changed(l, ev);
}

void
local_evals_forget_job(struct local *l, struct local_job *j)
{
	/* They stay: whoever stopped the job still asks for the one that says so. */
	for (struct local_eval *ev = l->first_eval; ev; ev = ev->next) {
		if (ev->job != j)
			continue;
		local_eval_close(l, ev, EVAL_COMPLETE, NULL);
		ev->job = NULL;
	}
}

static int
load_eval(void *arg, const struct store_row *row, struct err *e)
{
	struct local *l = arg;
	const char *json = store_col_text(row, 1);
	struct local_eval *ev = calloc(1, sizeof *ev);
	struct err why = { 0 };

	if (!ev)
		return err_set(e, -ENOMEM, "read the evaluations of state.db");
	eval_init(&ev->ev);
	if (model_from_text(&eval_type, json, strlen(json), &ev->ev, &why) < 0 || !ev->ev.id) {
		log_error("state.db: an evaluation is left alone: %s", why.msg);
		free_eval(ev);
		return 0;
	}
	ev->job = local_job_find(l, str(ev->ev.namespace), str(ev->ev.job_id));
	if (insert_eval(l, ev) < 0) {
		free_eval(ev);
		return err_set(e, -ENOMEM, "read the evaluations of state.db");
	}
	return 0;
}

int
local_evals_load(struct local *l, struct err *e)
{
	return store_each(l->base.sup->store, STMT_EVAL_ALL, NULL, 0, load_eval, l, e);
}

// SPDX-License-Identifier: Apache-2.0
/* local_evals.c: evaluations: why a job was examined, and with what result. Runs in: supervisor. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/id.h"
#include "common/mem.h"
#include "supervisor/core/journal.h"
#include "supervisor/core/store.h"
#include "supervisor/core/sup_tidy.h"
#include "supervisor/server/feed/local_changes.h"
#include "supervisor/server/feed/local_events.h"
#include "supervisor/server/job/local_evals.h"

#define CLOSED_KEPT 1000

struct local_evals {
	struct local_map map;
	LIST_HEAD(, local_eval) newest_first;
	TAILQ_HEAD(, local_eval) closed; /* oldest first */
	unsigned n_closed;
};

void
local_evals_init(struct local *l)
{
	l->evals = mem_new(struct local_evals);
	TAILQ_INIT(&l->evals->closed);
}

static struct local_eval *
eval_of_key(struct local_key *key)
{
	return key ? container_of(key, struct local_eval, key) : NULL;
}

struct local_eval *
local_eval_find(const struct local *l, const char *id)
{
	return eval_of_key(local_map_find(&l->evals->map, id));
}

struct local_eval *
local_eval_newest(const struct local *l)
{
	return LIST_FIRST(&l->evals->newest_first);
}

static bool
is_open(const struct local_eval *ev)
{
	return ev->ev.status == EVAL_PENDING || ev->ev.status == EVAL_BLOCKED;
}

static void
link_job(struct local_eval *ev, struct local_job *j)
{
	ev->job = j;
	if (j)
		LIST_INSERT_HEAD(&j->evals, ev, of_job);
}

static void
unlink_job(struct local_eval *ev)
{
	if (ev->job)
		LIST_REMOVE(ev, of_job);
	ev->job = NULL;
}

static void
link_closed(struct local *l, struct local_eval *ev)
{
	ev->closed = true;
	TAILQ_INSERT_TAIL(&l->evals->closed, ev, closed_entry);
	l->evals->n_closed++;
}

static void
unlink_closed(struct local *l, struct local_eval *ev)
{
	if (!ev->closed)
		return;
	TAILQ_REMOVE(&l->evals->closed, ev, closed_entry);
	ev->closed = false;
	l->evals->n_closed--;
}

static void
unlink_eval(struct local *l, struct local_eval *ev)
{
	unlink_job(ev);
	unlink_closed(l, ev);
	local_map_remove(&l->evals->map, &ev->key);
	local_changes_remove(l, &ev->news);
	LIST_REMOVE(ev, older);
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
	struct local_eval *ev = container_of(d, struct local_eval, row);
	struct text json = { 0 };
	struct id id;
	int r;

	if (!id_from_uuid(ev->ev.id, &id))
		return err_say(e, -EINVAL, "evaluation id \"%s\" is not a UUID", ev->ev.id);
	if (ev->gone)
		return STORE_EXEC(sup->store, STMT_EVAL_DELETE, e, SV_ID(&id));
	model_to_text(&eval_type, &ev->ev, MODEL_COMPACT, &json);
	r = STORE_EXEC(sup->store, STMT_EVAL_PUT, e, SV_ID(&id), SV_TEXT(json.text));
	text_done(&json);
	return r;
}

static const struct eval *
eval_of(const struct local_news *n)
{
	return &container_of(n, struct local_eval, news)->ev;
}

static void
get_head(struct local *l, const struct local_news *n, struct event_head *ret)
{
	const struct eval *ev = eval_of(n);

	*ret = (struct event_head){ .topic = "Evaluation",
		.type = "EvaluationUpdated",
		.namespace = ev->namespace,
		.keys = { ev->id, ev->job_id, ev->deployment_id } };
}

static void
print_event(struct local *l, const struct local_news *n, struct text *t)
{
	model_to_text(&eval_type, eval_of(n), 0, t);
}

static const struct local_news_type eval_news = { "Evaluation", get_head, print_event };

static void
record_change(struct local *l, struct local_eval *ev)
{
	uint64_t index = ev->ev.modify_index;

	if (ev->job)
		local_job_touch(ev->job, index);
	local_changes_record(l, LOCAL_EVALS, index);
	local_changes_put(l, &ev->news, &eval_news, index);
}

static void
on_eval_written(struct sup *sup, struct dirty *d)
{
	struct local_eval *ev = container_of(d, struct local_eval, row);

	if (ev->gone)
		free_eval(ev);
	else
		record_change(local_of_sup(sup), ev);
}

static void
drop_eval(struct local *l, struct local_key *key)
{
	struct local_eval *ev = eval_of_key(key);

	local_changes_remove(l, &ev->news);
	turn_forget_write(l->base.sup, &ev->row);
	free_eval(ev);
}

void
local_evals_free(struct local *l)
{
	local_map_done(&l->evals->map, l, drop_eval);
	free(l->evals);
}

static void
forget_eval(struct local *l, struct local_eval *ev)
{
	unlink_eval(l, ev);
	ev->gone = true;
	turn_write(l->base.sup, &ev->row);
	tidy_count(l->base.sup);
}

void
local_evals_forget(struct local *l, int64_t before_ns)
{
	struct local_eval *ev, *next;

	alloc_foreach(l->base.sup, sa)
	{
		ev = local_eval_find(l, str(sa->a.eval_id));
		if (ev)
			ev->used = ev->closed;
	}
	TAILQ_FOREACH_SAFE (ev, &l->evals->closed, closed_entry, next) {
		if (!ev->used && ev->ev.modify_time < before_ns)
			forget_eval(l, ev);
		else
			ev->used = false;
	}
}

static void
insert_eval(struct local *l, struct local_eval *ev)
{
	local_map_add(&l->evals->map, &ev->key, ev->ev.id);
	ev->row.write = write_eval;
	ev->row.point = CRASH_ROW_EVAL;
	ev->row.written = on_eval_written;
	LIST_INSERT_HEAD(&l->evals->newest_first, ev, older);
}

void
local_eval_set_priority(struct local_eval *ev, int64_t priority)
{
	if (ev && priority > 0)
		ev->ev.priority = priority;
}

void
local_eval_changed(struct local *l, struct local_eval *ev)
{
	ev->ev.modify_index = local_index_next(l);
	ev->ev.modify_time = clock_real_ns();
	turn_write(l->base.sup, &ev->row);
}

static void
fill_eval(struct eval *ev, const struct job *job, const char *trigger)
{
	struct id id = id_random_uuid();
	char text[ID_UUID_SIZE];

	id_to_uuid(&id, text);
	ev->priority = job->priority;
	ev->type = job->type;
	ev->status = EVAL_PENDING;
	ev->job_modify_index = job->modify_index;
	ev->create_time = clock_real_ns();
	str_set(&ev->id, text);
	str_set(&ev->namespace, job->namespace);
	str_set(&ev->job_id, job->id);
	str_set(&ev->triggered_by, trigger);
}

struct local_eval *
local_eval_new(struct local *l, struct local_job *j, const char *trigger)
{
	struct local_eval *ev = mem_new(struct local_eval);

	eval_init(&ev->ev);
	fill_eval(&ev->ev, local_job_wanted(j), trigger);
	insert_eval(l, ev);
	link_job(ev, j);
	local_eval_changed(l, ev);
	ev->ev.create_index = ev->ev.modify_index;
	return ev;
}

void
local_eval_close(
    struct local *l, struct local_eval *ev, enum eval_status status, const char *description)
{
	if (!is_open(ev))
		return;
	ev->ev.status = status;
	str_set(&ev->ev.status_description, description);
	link_closed(l, ev);
	local_eval_changed(l, ev);
	while (l->evals->n_closed > CLOSED_KEPT)
		forget_eval(l, TAILQ_FIRST(&l->evals->closed));
}

void
local_evals_forget_job(struct local *l, struct local_job *j)
{
	struct local_eval *ev;

	/* The client that stopped the job still asks for its evaluation. */
	while ((ev = LIST_FIRST(&j->evals))) {
		local_eval_close(l, ev, EVAL_COMPLETE, NULL);
		unlink_job(ev);
	}
}

static int
load_eval(void *arg, const struct store_row *row, struct err *e)
{
	struct local *l = arg;
	const char *json = store_col_text(row, 1);
	struct local_eval *ev = mem_new(struct local_eval);
	struct err why = { 0 };

	eval_init(&ev->ev);
	if (model_from_text(&eval_type, json, strlen(json), &ev->ev, &why) < 0 || !ev->ev.id) {
		journal_error(
		    JOURNAL_STATE, NULL, "state.db: an evaluation is ignored: %s", why.msg);
		free_eval(ev);
		return 0;
	}
	insert_eval(l, ev);
	link_job(ev, local_job_find(l, str(ev->ev.namespace), str(ev->ev.job_id)));
	if (!is_open(ev))
		link_closed(l, ev);
	return 0;
}

int
local_evals_load(struct local *l, struct err *e)
{
	return store_each(l->base.sup->store, STMT_EVAL_ALL, NULL, 0, load_eval, l, e);
}

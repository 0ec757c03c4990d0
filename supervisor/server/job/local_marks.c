// SPDX-License-Identifier: Apache-2.0
/* local_marks.c: marks on objects that await a decision of the pass. Runs in: supervisor. */
#include "supervisor/server/job/local_marks.h"

#include <stdlib.h>

#include "common/mem.h"
#include "supervisor/server/job/local_slots.h"

struct local_marks {
	STAILQ_HEAD(, local_job) jobs;
	STAILQ_HEAD(, local_job) deploying; /* until the commit */
	bool capacity, node, timer;
	struct deferred pass, committed;
};

static void
on_committed(struct sup *sup, struct deferred *d)
{
	struct local *l = local_of_sup(sup);
	struct local_job *j;

	while ((j = STAILQ_FIRST(&l->marks->deploying))) {
		STAILQ_REMOVE_HEAD(&l->marks->deploying, next_deploying);
		j->deployment_marked = false;
		j->deployment_due = true;
		local_mark_job(l, j);
	}
}

void
local_marks_init(struct local *l, void (*pass)(struct sup *sup, struct deferred *d))
{
	struct local_marks *m = mem_new(struct local_marks);

	STAILQ_INIT(&m->jobs);
	STAILQ_INIT(&m->deploying);
	m->pass.run = pass;
	m->committed.run = on_committed;
	l->marks = m;
}

void
local_marks_free(struct local *l)
{
	turn_forget_deferred(l->base.sup, &l->marks->pass);
	turn_forget_deferred(l->base.sup, &l->marks->committed);
	free(l->marks);
}

static void
request_pass(struct local *l)
{
	turn_before_commit(l->base.sup, &l->marks->pass);
}

void
local_mark_job(struct local *l, struct local_job *j)
{
	if (!j->marked) {
		j->marked = true;
		STAILQ_INSERT_TAIL(&l->marks->jobs, j, next_marked);
	}
	request_pass(l);
}

void
local_mark_slot(struct local *l, struct local_slot *slot)
{
	struct local_job *j = slot->job;

	if (!slot->marked) {
		slot->marked = true;
		STAILQ_INSERT_TAIL(&j->marked_slots, slot, next_marked);
	}
	local_mark_job(l, j);
}

void
local_mark_deployment(struct local *l, struct local_job *j)
{
	if (j->deployment_marked)
		return;
	j->deployment_marked = true;
	STAILQ_INSERT_TAIL(&l->marks->deploying, j, next_deploying);
	turn_defer(l->base.sup, &l->marks->committed);
}

void
local_mark_capacity(struct local *l)
{
	l->marks->capacity = true;
	request_pass(l);
}

void
local_mark_node(struct local *l)
{
	l->marks->node = true;
	request_pass(l);
}

void
local_mark_timer(struct local *l)
{
	l->marks->timer = true;
	request_pass(l);
}

struct local_job *
local_marks_pop_job(struct local *l)
{
	struct local_job *j = STAILQ_FIRST(&l->marks->jobs);

	if (!j)
		return NULL;
	STAILQ_REMOVE_HEAD(&l->marks->jobs, next_marked);
	j->marked = false;
	return j;
}

struct local_slot *
local_marks_pop_slot(struct local_job *j)
{
	struct local_slot *slot = STAILQ_FIRST(&j->marked_slots);

	if (!slot)
		return NULL;
	STAILQ_REMOVE_HEAD(&j->marked_slots, next_marked);
	slot->marked = false;
	return slot;
}

bool
local_marks_clear_deployment(struct local_job *j)
{
	bool due = j->deployment_due;

	j->deployment_due = false;
	return due;
}

bool
local_marks_clear_retry(struct local *l, bool *ret_all)
{
	bool marked = l->marks->capacity || l->marks->node;

	*ret_all = l->marks->node;
	l->marks->capacity = l->marks->node = false;
	return marked;
}

bool
local_marks_clear_timer(struct local *l)
{
	bool marked = l->marks->timer;

	l->marks->timer = false;
	return marked;
}

void
local_marks_forget(struct local *l, struct local_job *j)
{
	if (j->marked)
		STAILQ_REMOVE(&l->marks->jobs, j, local_job, next_marked);
	if (j->deployment_marked)
		STAILQ_REMOVE(&l->marks->deploying, j, local_job, next_deploying);
	j->marked = j->deployment_marked = false;
}

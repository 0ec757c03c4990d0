// SPDX-License-Identifier: Apache-2.0
/* alloc_table.c: the table of all allocs of this node. Runs in: supervisor. */
#include "supervisor/table/alloc_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/list.h"
#include "common/log.h"
#include "supervisor/source/source.h"
#include "supervisor/core/store.h"

#define BUCKETS_FIRST 256

struct job_ref *
job_ref_new(struct job *job)
{
	struct job_ref *j = calloc(1, sizeof *j);

	if (!j)
		return NULL;
	j->refs = 1;
	j->job = *job;
	j->key = job->version;
	job_init(job);
	return j;
}

struct job_ref *
job_ref_get(struct job_ref *j)
{
	j->refs++;
	return j;
}

void
job_ref_put(struct job_ref *j)
{
	if (!j || --j->refs > 0)
		return;
	job_done(&j->job);
	free(j);
}

int
alloc_table_new(struct sup *sup, struct err *e)
{
	struct alloc_table *t = calloc(1, sizeof *t);

	if (t)
		t->buckets = calloc(BUCKETS_FIRST, sizeof *t->buckets);
	if (!t || !t->buckets) {
		free(t);
		return err_set(e, -ENOMEM, "make the table of allocations");
	}
	t->n_buckets = BUCKETS_FIRST;
	sup->allocs = t;
	return 0;
}

static void
sup_alloc_free(struct sup_alloc *sa)
{
	alloc_done(&sa->a);
	job_ref_put(sa->job);
	free(sa->client_json);
	free(sa);
}

void
alloc_table_free(struct sup *sup)
{
	struct alloc_table *t = sup->allocs;
	struct sup_alloc *next;

	if (!t)
		return;
	for (struct sup_alloc *sa = t->first; sa; sa = next) {
		next = sa->next;
		turn_forget_write(sup, &sa->row);
		sup_alloc_free(sa);
	}
	free(t->unreadable);
	free(t->buckets);
	free(t);
	sup->allocs = NULL;
}

/* Ids are random, so their bytes serve as a hash. */
static struct sup_alloc **
bucket_of(struct alloc_table *t, const struct id *id)
{
	uint32_t h;

	memcpy(&h, id->b, sizeof h);
	return &t->buckets[h & (t->n_buckets - 1)];
}

static void
grow(struct alloc_table *t)
{
	struct sup_alloc **bigger = calloc(t->n_buckets * 2, sizeof *bigger);

	if (!bigger)
		return; /* if memory is short, chains just become longer */
	free(t->buckets);
	t->buckets = bigger;
	t->n_buckets *= 2;
	for (struct sup_alloc *sa = t->first; sa; sa = sa->next) {
		struct sup_alloc **b = bucket_of(t, &sa->id);

		sa->next_by_id = *b;
		*b = sa;
	}
}

static void
insert(struct alloc_table *t, struct sup_alloc *sa)
{
	struct sup_alloc **b;

	if (t->n >= t->n_buckets)
		grow(t);
	b = bucket_of(t, &sa->id);
	sa->next_by_id = *b;
	*b = sa;
	sa->prev = t->last;
	sa->next = NULL;
	*(t->last ? &t->last->next : &t->first) = sa;
	t->last = sa;
	t->n++;
}

static void
unlink_alloc(struct alloc_table *t, struct sup_alloc *sa)
{
	struct sup_alloc **at = bucket_of(t, &sa->id);

	while (*at != sa)
		at = &(*at)->next_by_id;
	*at = sa->next_by_id;
	*(sa->prev ? &sa->prev->next : &t->first) = sa->next;
	*(sa->next ? &sa->next->prev : &t->last) = sa->prev;
	t->n--;
}

static int
write_row(struct sup *sup, struct dirty *d, struct err *e)
{
	struct sup_alloc *sa = container_of(d, struct sup_alloc, row);
	static struct text t;
	int r;

	if (sa->gone) {
		r = STORE_EXEC(sup->store, STMT_EVENT_DELETE, e, SV_ID(&sa->id));
		return r < 0 ? r : STORE_EXEC(sup->store, STMT_ALLOC_DELETE, e, SV_ID(&sa->id));
	}
	t.len = 0;
	if (model_to_text(&alloc_bare_type, &sa->a, MODEL_COMPACT, &t) < 0 || t.failed) {
		text_done(&t);
		return err_set(e, -ENOMEM, "write allocation %s", sa->a.id);
	}
	r = STORE_EXEC(sup->store, STMT_ALLOC_PUT, e, SV_ID(&sa->id),
	    SV_TEXT(sa->job->job.namespace), SV_TEXT(sa->job->job.id), SV_INT(sa->job->key),
	    SV_TEXT(t.text), SV_TEXT(sa->client_json));
	return r;
}

static void
on_written(struct sup *sup, struct dirty *d)
{
	struct sup_alloc *sa = container_of(d, struct sup_alloc, row);

	if (sa->gone)
		sup_alloc_free(sa);
	else if (sup->source->ops->alloc_written)
		sup->source->ops->alloc_written(sup->source, sa);
}

static struct sup_alloc *
make(struct alloc *a, struct job_ref *job, const struct id *id)
{
	struct sup_alloc *sa = calloc(1, sizeof *sa);

	if (!sa)
		return NULL;
	sa->id = *id;
	sa->a = *a;
	alloc_init(a);
	sa->job = job;
	sa->group = job_group(&job->job, sa->a.task_group);
	sa->row.write = write_row;
	sa->row.point = CRASH_ROW_ALLOC;
	sa->row.written = on_written;
	return sa;
}

struct sup_alloc *
alloc_add(struct sup *sup, struct alloc *a, struct job_ref *job)
{
	struct sup_alloc *sa;
	struct id id;

	if (!id_from_uuid(str(a->id), &id))
		return NULL;
	sa = make(a, job, &id);
	if (!sa)
		return NULL;
	insert(sup->allocs, sa);
	alloc_changed(sup, sa);
	return sa;
}

struct sup_alloc *
alloc_find(struct sup *sup, const struct id *id)
{
	for (struct sup_alloc *sa = *bucket_of(sup->allocs, id); sa; sa = sa->next_by_id)
		if (id_equal(&sa->id, id))
			return sa;
	return NULL;
}

bool
alloc_is_unreadable(const struct sup *sup, const struct id *id)
{
	for (unsigned i = 0; i < sup->allocs->n_unreadable; i++)
		if (id_equal(&sup->allocs->unreadable[i], id))
			return true;
	return false;
}

void
alloc_changed(struct sup *sup, struct sup_alloc *sa)
{
	turn_write(sup, &sa->row);
}

void
alloc_forget(struct sup *sup, struct sup_alloc *sa)
{
	if (sa->gone)
		return;
	unlink_alloc(sup->allocs, sa);
	sa->gone = true;
	turn_write(sup, &sa->row);
}

struct loading {
	struct sup *sup;
	struct job_ref *(*job)(struct sup *, const char *, const char *, uint64_t);
};

/* An unreadable row costs only its alloc; the processes of that alloc are killed as leftovers. */
static int
leave_alone(struct sup *sup, const struct id *id, const char *why, struct err *e)
{
	struct alloc_table *t = sup->allocs;
	struct id *grown = reallocarray(t->unreadable, t->n_unreadable + 1, sizeof *t->unreadable);
	char text[ID_UUID_SIZE];

	if (!grown)
		return err_set(e, -ENOMEM, "read state.db");
	t->unreadable = grown;
	t->unreadable[t->n_unreadable++] = *id;
	id_to_uuid(id, text);
	log_error("state.db: allocation %s is left alone, and what ran of it ended: %s", text, why);
	return 0;
}

static int
load_row(void *arg, const struct store_row *row, struct err *e)
{
	struct loading *l = arg;
	const char *json = store_col_text(row, 4);
	struct err why = { 0 };
	struct job_ref *job;
	struct sup_alloc *sa;
	struct alloc a;
	struct id id = { 0 };

	if (!store_col_id(row, 0, &id))
		return leave_alone(l->sup, &id, "it has no id", e);
	alloc_init(&a);
	if (model_from_text(&alloc_bare_type, json, strlen(json), &a, &why) < 0)
		return leave_alone(l->sup, &id, why.msg, e);
	job = l->job(l->sup, store_col_text(row, 1), store_col_text(row, 2),
	    (uint64_t)store_col_int(row, 3));
	if (!job || !job_group(&job->job, a.task_group)) {
		(void)err_say(&why, -ENOENT, "version %lld of job %s is not there",
		    (long long)store_col_int(row, 3), store_col_text(row, 2));
		job_ref_put(job);
		alloc_done(&a);
		return leave_alone(l->sup, &id, why.msg, e);
	}
	sa = make(&a, job, &id);
	if (!sa)
		return err_set(e, -ENOMEM, "read state.db");
	if (*store_col_text(row, 5))
		sa->client_json = strdup(store_col_text(row, 5));
	insert(l->sup->allocs, sa);
	return 0;
}

int
alloc_table_load(struct sup *sup,
    struct job_ref *(*job)(struct sup *, const char *, const char *, uint64_t), struct err *e)
{
	struct loading l = { .sup = sup, .job = job };

	return store_each(sup->store, STMT_ALLOC_ALL, NULL, 0, load_row, &l, e);
}

const struct task *
alloc_task(const struct sup_alloc *sa, const char *name)
{
	return group_task(sa->group, name);
}

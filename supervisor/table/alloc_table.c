// SPDX-License-Identifier: Apache-2.0
/* alloc_table.c: the table of all allocs of this node. Runs in: supervisor. */
#include "supervisor/table/alloc_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/list.h"
#include "common/mem.h"
#include "supervisor/core/journal.h"
#include "supervisor/core/seal_texts.h"
#include "supervisor/source/source.h"
#include "supervisor/core/store.h"
#include "supervisor/core/sup_tidy.h"

struct job_ref *
job_ref_new(struct job *job)
{
	struct job_ref *j = mem_new(struct job_ref);

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

void
alloc_table_new(struct sup *sup)
{
	sup->allocs = mem_new(struct alloc_table);
	TAILQ_INIT(&sup->allocs->list);
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
	struct sup_alloc *sa;

	if (!t)
		return;
	while ((sa = TAILQ_FIRST(&t->list))) {
		TAILQ_REMOVE(&t->list, sa, link);
		turn_forget_write(sup, &sa->row);
		sup_alloc_free(sa);
	}
	hash_done(&t->by_id);
	text_done(&t->json);
	free(t->unreadable);
	free(t);
	sup->allocs = NULL;
}

static void
insert_alloc(struct alloc_table *t, struct sup_alloc *sa)
{
	hash_add(&t->by_id, &sa->by_id, hash_id(&sa->id));
	TAILQ_INSERT_TAIL(&t->list, sa, link);
	t->n++;
}

static char *
name_tokens(const struct sup_alloc *sa)
{
	return mem_printf("default tokens of %s", sa->a.id);
}

static void
put_tokens(struct seal_texts *texts, const void *sa)
{
	seal_put_map(texts, &((const struct sup_alloc *)sa)->a.signed_identities);
}

static void
take_tokens(void *sa, const char *at, size_t left)
{
	seal_take_map(&at, &left, &((struct sup_alloc *)sa)->a.signed_identities);
}

/* Without tokens *ret is empty, which replaces those in the row. */
static int
seal_tokens(struct sup *sup, const struct sup_alloc *sa, struct sealed *ret, struct err *e)
{
	cleanup_free char *about = name_tokens(sa);

	return seal_close_texts(sup->seal, about, put_tokens, sa, ret, e);
}

static int
put_row(struct sup *sup, const struct sup_alloc *sa, const struct store_val *tokens, struct err *e)
{
	struct text *json = &sup->allocs->json;

	json->len = 0;
	model_to_text(&alloc_bare_type, &sa->a, MODEL_COMPACT | MODEL_ROW, json);
	return STORE_EXEC(sup->store, STMT_ALLOC_PUT, e, SV_ID(&sa->id),
	    SV_TEXT(sa->job->job.namespace), SV_TEXT(sa->job->job.id), SV_INT(sa->job->key),
	    SV_TEXT(json->text), SV_TEXT(sa->client_json), *tokens);
}

static int
write_row(struct sup *sup, struct dirty *d, struct err *e)
{
	struct sup_alloc *sa = container_of(d, struct sup_alloc, row);
	struct sealed tokens = { 0 };
	int r;

	if (sa->gone) {
		if ((r = STORE_EXEC(sup->store, STMT_EVENT_DELETE, e, SV_ID(&sa->id))) < 0 ||
		    (r = STORE_EXEC(sup->store, STMT_ACKED_DELETE, e, SV_ID(&sa->id))) < 0)
			return r;
		return STORE_EXEC(sup->store, STMT_ALLOC_DELETE, e, SV_ID(&sa->id));
	}
	if (sa->tokens_kept)
		return put_row(sup, sa, &SV_TEXT(NULL), e);
	r = seal_tokens(sup, sa, &tokens, e);
	if (r == 0)
		r = put_row(sup, sa, &SV_BLOB(tokens.bytes ?: (const void *)"", tokens.len), e);
	sealed_done(&tokens);
	return r;
}

static void
on_written(struct sup *sup, struct dirty *d)
{
	struct sup_alloc *sa = container_of(d, struct sup_alloc, row);

	sa->tokens_kept = true;
	if (sa->gone)
		sup_alloc_free(sa);
	else if (sup->source->ops->alloc_written)
		sup->source->ops->alloc_written(sup->source, sa);
}

static struct sup_alloc *
make_alloc(struct alloc *a, struct job_ref *job, const struct id *id)
{
	struct sup_alloc *sa = mem_new(struct sup_alloc);

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
	sa = make_alloc(a, job, &id);
	insert_alloc(sup->allocs, sa);
	alloc_changed(sup, sa);
	return sa;
}

struct sup_alloc *
alloc_find(struct sup *sup, const struct id *id)
{
	struct hash_link *l = hash_first(&sup->allocs->by_id, hash_id(id));

	for (; l; l = hash_next(l)) {
		struct sup_alloc *sa = container_of(l, struct sup_alloc, by_id);

		if (id_equal(&sa->id, id))
			return sa;
	}
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
alloc_tokens_changed(struct sup *sup, struct sup_alloc *sa)
{
	sa->tokens_kept = false;
	alloc_changed(sup, sa);
}

void
alloc_forget(struct sup *sup, struct sup_alloc *sa)
{
	struct alloc_table *t = sup->allocs;
	struct alloc_cursor *c;

	if (sa->gone)
		return;
	LIST_FOREACH (c, &t->cursors, link)
		if (c->next == sa)
			c->next = alloc_next(sa);
	hash_remove(&t->by_id, &sa->by_id);
	TAILQ_REMOVE(&t->list, sa, link);
	t->n--;
	sa->gone = true;
	turn_write(sup, &sa->row);
	tidy_count(sup);
}

void
alloc_cursor_begin(struct sup *sup, struct alloc_cursor *c)
{
	c->next = alloc_first(sup);
	LIST_INSERT_HEAD(&sup->allocs->cursors, c, link);
}

struct sup_alloc *
alloc_cursor_next(struct alloc_cursor *c)
{
	struct sup_alloc *sa = c->next;

	if (sa)
		c->next = alloc_next(sa);
	return sa;
}

void
alloc_cursor_end(struct alloc_cursor *c)
{
	LIST_REMOVE(c, link);
}

struct loading {
	struct sup *sup;
	struct job_ref *(*job)(struct sup *, const char *, const char *, uint64_t);
};

/* Keeps the id of an unreadable row: only that alloc is lost, and its processes are killed as
 * leftovers. */
static void
note_unreadable(struct sup *sup, const struct id *id, const char *why)
{
	struct alloc_table *t = sup->allocs;
	char text[ID_UUID_SIZE];

	t->unreadable = mem_resize(t->unreadable, t->n_unreadable + 1, sizeof *t->unreadable);
	t->unreadable[t->n_unreadable++] = *id;
	id_to_uuid(id, text);
	journal_error(JOURNAL_STATE, NULL,
	    "state.db: allocation %s cannot be read, so its tasks are killed and its row is "
	    "kept: %s",
	    text, why);
}

/* An earlier version had them in another column, not encrypted: they leave the file soon. */
static void
load_tokens(struct sup *sup, struct sup_alloc *sa, const struct store_row *row)
{
	cleanup_free char *about = name_tokens(sa);
	size_t len;
	const void *bytes = store_col_blob(row, 6, &len);

	if (sa->a.signed_identities.n > 0) {
		alloc_changed(sup, sa);
		tidy_secret(sup);
		return;
	}
	sa->tokens_kept = true;
	if (len > 0 && !seal_open_texts(sup->seal, about, bytes, len, take_tokens, sa))
		journal_error(JOURNAL_STATE, ABOUT_ALLOC(sa),
		    "allocation %.8s: its tasks start without their default tokens, which cannot "
		    "be read, because state/seal.key is not the key they were encrypted with: "
		    "bring that file back and restart the agent",
		    sa->a.id);
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

	if (!store_col_id(row, 0, &id)) {
		note_unreadable(l->sup, &id, "it has no id");
		return 0;
	}
	alloc_init(&a);
	if (model_from_text(&alloc_bare_type, json, strlen(json), &a, &why) < 0) {
		note_unreadable(l->sup, &id, why.msg);
		return 0;
	}
	job = l->job(l->sup, store_col_text(row, 1), store_col_text(row, 2),
	    (uint64_t)store_col_int(row, 3));
	if (!job || !job_group(&job->job, a.task_group)) {
		(void)err_say(&why, -ENOENT, "version %lld of job %s is missing",
		    (long long)store_col_int(row, 3), store_col_text(row, 2));
		job_ref_put(job);
		alloc_done(&a);
		note_unreadable(l->sup, &id, why.msg);
		return 0;
	}
	sa = make_alloc(&a, job, &id);
	if (*store_col_text(row, 5))
		sa->client_json = mem_strdup(store_col_text(row, 5));
	insert_alloc(l->sup->allocs, sa);
	load_tokens(l->sup, sa, row);
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

enum exec_log_store
task_log_store(const struct agent_config *config, const struct task *task)
{
	static const enum exec_log_store stores[] = {
		[LOG_TO_FILES] = LOG_STORE_FILES,
		[LOG_TO_JOURNALD] = LOG_STORE_JOURNALD,
		[LOG_TO_BOTH] = LOG_STORE_BOTH,
	};
	enum log_destination to = task->log_config ? task->log_config->destination : LOG_TO_NONE;

	return to == LOG_TO_NONE ? (enum exec_log_store)config->log_store : stores[to];
}

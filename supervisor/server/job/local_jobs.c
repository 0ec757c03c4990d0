// SPDX-License-Identifier: Apache-2.0
/* local_jobs.c: jobs and their versions. Runs in: supervisor. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/mem.h"
#include "supervisor/core/journal.h"
#include "supervisor/core/store.h"
#include "supervisor/server/feed/local_changes.h"
#include "supervisor/server/feed/local_events.h"
#include "supervisor/server/job/local_allocs.h"
#include "supervisor/server/job/local_evals.h"
#include "supervisor/server/job/local_family.h"
#include "supervisor/server/job/local_job_view.h"
#include "supervisor/server/job/local_marks.h"
#include "supervisor/server/job/local_namespaces.h"
#include "supervisor/server/job/local_source.h"

#define VERSIONS_KEPT 6

/* Column `current` of a job's row. */
enum { ROW_OLD = 0, ROW_WANTED = 1, ROW_PURGED = 2 };

struct local_jobs {
	struct local_map map;
};

void
local_jobs_init(struct local *l)
{
	l->jobs = mem_new(struct local_jobs);
}

struct local_key **
local_jobs_sorted(const struct local *l, size_t *ret_n)
{
	return local_map_sorted(&l->jobs->map, ret_n);
}

void
local_launch_key(const struct job *job, char ret[LOCAL_LAUNCH_KEY_SIZE])
{
	(void)snprintf(ret, LOCAL_LAUNCH_KEY_SIZE, "local_launch/%s/%s", job->namespace, job->id);
}

struct local_job *
local_job_find_any(struct local *l, const char *namespace, const char *id)
{
	cleanup_free char *name = mem_printf("%s/%s", namespace, id);

	return local_job_of(local_map_find(&l->jobs->map, name));
}

struct local_job *
local_job_find(struct local *l, const char *namespace, const char *id)
{
	struct local_job *j = local_job_find_any(l, namespace, id);

	return j && !j->purge ? j : NULL;
}

static int
delete_version(struct sup *sup, const struct local_version *v, struct err *e)
{
	const struct job *job = &v->ref->job;
	char key[LOCAL_LAUNCH_KEY_SIZE];
	int r = STORE_EXEC(sup->store, STMT_JOB_DELETE, e, SV_TEXT(job->namespace),
	    SV_TEXT(job->id), SV_INT(job->version));

	if (r == 0)
		r = local_source_write(sup, job, NULL, e);
	if (r < 0 || !v->forgotten || !job->periodic)
		return r;
	local_launch_key(job, key);
	return STORE_EXEC(sup->store, STMT_META_DELETE, e, SV_TEXT(key));
}

static int
write_version(struct sup *sup, struct dirty *d, struct err *e)
{
	struct local_version *v = container_of(d, struct local_version, row);
	const struct job *job = &v->ref->job;
	struct text json = { 0 };
	int state, r;

	if (v->gone)
		return delete_version(sup, v, e);
	state = SLIST_FIRST(&v->job->versions) != v ? ROW_OLD
		: v->job->purge                     ? ROW_PURGED
						    : ROW_WANTED;
	model_to_text(&job_type, job, MODEL_COMPACT, &json);
	r = STORE_EXEC(sup->store, STMT_JOB_PUT, e, SV_TEXT(job->namespace), SV_TEXT(job->id),
	    SV_INT(job->version), SV_INT(state), SV_TEXT(json.text));
	text_done(&json);
	return r == 0 && v->source_due ? local_source_write(sup, job, v->source, e) : r;
}

void
local_job_touch(struct local_job *j, uint64_t index)
{
	if (j->index < index)
		j->index = index;
}

static void
record_change(struct local *l, struct local_job *j, uint64_t index)
{
	local_job_touch(j, index);
	local_changes_record(l, LOCAL_JOBS, index);
	if (j->news.index < index)
		local_changes_put(l, &j->news, &local_job_news, index);
}

static void
free_version(struct local_version *v)
{
	job_ref_put(v->ref);
	free(v->source);
	free(v);
}

static void
on_version_written(struct sup *sup, struct dirty *d)
{
	struct local_version *v = container_of(d, struct local_version, row);

	if (v->gone) {
		free_version(v);
		return;
	}
	free(v->source);
	v->source = NULL;
	v->source_due = false;
	record_change(local_of_sup(sup), v->job, v->ref->job.modify_index);
}

/* Takes over *job, which is emptied. */
static struct local_version *
add_version(struct local_job *j, struct job *job)
{
	struct local_version *v = mem_new(struct local_version);

	v->ref = job_ref_new(job);
	v->job = j;
	v->row.write = write_version;
	v->row.point = CRASH_ROW_JOB;
	v->row.written = on_version_written;
	SLIST_INSERT_HEAD(&j->versions, v, older);
	return v;
}

/* Deletes the row of v, which was removed from its job. v is freed after the commit. */
static void
delete_row(struct local *l, struct local_version *v)
{
	v->gone = true;
	turn_write(l->base.sup, &v->row);
}

static struct local_job *
add_job(struct local *l, const char *namespace, const char *id)
{
	struct local_job *j = mem_new(struct local_job);

	j->name = mem_printf("%s/%s", namespace, id);
	j->l = l;
	STAILQ_INIT(&j->marked_slots);
	local_map_add(&l->jobs->map, &j->key, j->name);
	return j;
}

/* Frees the job of key, which was removed from the map. */
static void
free_job(struct local *l, struct local_key *key)
{
	struct local_job *j = local_job_of(key);
	struct local_version *v;

	local_marks_forget(l, j);
	local_family_leave(l, j);
	local_changes_remove(l, &j->news);
	while ((v = SLIST_FIRST(&j->versions))) {
		SLIST_REMOVE_HEAD(&j->versions, older);
		turn_forget_write(l->base.sup, &v->row);
		free_version(v);
	}
	local_slots_free(j);
	free(j->name);
	free(j);
}

void
local_jobs_free(struct local *l)
{
	local_map_done(&l->jobs->map, l, free_job);
	free(l->jobs);
}

void
local_job_forget(struct local *l, struct local_job *j)
{
	uint64_t index = j->news.index ? j->news.index : local_index_next(l);
	struct local_version *v;

	journal_info(JOURNAL_JOB, ABOUT_JOB(j), "job %s is purged", j->name);
	/* Followers get the deregistration under the index at which the job was purged. */
	local_event_keep(l, &j->news, &local_job_news, "JobDeregistered", index);
	local_changes_record(l, LOCAL_JOBS, index);
	local_evals_forget_job(l, j);
	/* Deleting the rows needs only the versions. */
	while ((v = SLIST_FIRST(&j->versions))) {
		SLIST_REMOVE_HEAD(&j->versions, older);
		v->forgotten = true;
		delete_row(l, v);
	}
	local_map_remove(&l->jobs->map, &j->key);
	free_job(l, &j->key);
}

void
local_job_purge(struct local *l, struct local_job *j)
{
	j->purge = true;
	record_change(l, j, local_index_next(l));
	turn_write(l->base.sup, &SLIST_FIRST(&j->versions)->row);
	local_allocs_retire(l, j);
	local_mark_job(l, j);
}

bool
local_jobs_purging(const struct local *l)
{
	size_t n;
	cleanup_free struct local_key **all = local_jobs_sorted(l, &n);

	for (size_t i = 0; i < n; i++)
		if (local_job_of(all[i])->purge)
			return true;
	return false;
}

static struct local_version *
find_stable(const struct local_job *j)
{
	struct local_version *v;

	SLIST_FOREACH (v, &j->versions, older)
		if (v->ref->job.stable)
			break;
	return v;
}

const struct job *
local_job_stable(const struct local_job *j)
{
	const struct local_version *v = find_stable(j);

	return v ? &v->ref->job : NULL;
}

void
local_job_set_stable(struct local *l, struct local_job *j)
{
	local_job_wanted_ref(j)->job.stable = true;
	turn_write(l->base.sup, &SLIST_FIRST(&j->versions)->row);
	local_mark_job(l, j);
}

struct local_version *
local_job_version(const struct local_job *j, uint64_t version)
{
	struct local_version *v;

	SLIST_FOREACH (v, &j->versions, older)
		if (v->ref->job.version == version)
			break;
	return v;
}

const char *
local_version_tag(const struct local_version *v)
{
	return json_string_value(json_object_get(v->ref->job.version_tag, "Name"));
}

struct local_version *
local_job_tagged(const struct local_job *j, const char *tag)
{
	struct local_version *v;

	SLIST_FOREACH (v, &j->versions, older)
		if (local_version_tag(v) && strcmp(local_version_tag(v), tag) == 0)
			break;
	return v;
}

void
local_version_set_tag(struct local *l, struct local_version *v, json_t *tag)
{
	struct job *job = &v->ref->job;

	json_decref(job->version_tag);
	job->version_tag = tag;
	job->modify_index = local_index_next(l);
	turn_write(l->base.sup, &v->row);
	local_mark_job(l, v->job);
}

void
local_job_trim(struct local *l, struct local_job *j)
{
	const struct local_version *stable = find_stable(j);
	struct local_version *kept = SLIST_FIRST(&j->versions), *v;
	unsigned n_kept = 1;

	while ((v = SLIST_NEXT(kept, older))) {
		bool tagged = v->ref->job.version_tag;

		if (n_kept < VERSIONS_KEPT || v->ref->refs > 1 || v == stable || tagged) {
			n_kept += !tagged;
			kept = v;
			continue;
		}
		SLIST_REMOVE(&j->versions, v, local_version, older);
		delete_row(l, v);
	}
}

/* Returns a copy of the source of that version, or NULL. */
static char *
copy_source(struct local *l, const struct local_job *j, uint64_t version)
{
	const struct local_version *v = local_job_version(j, version);
	struct err e = { 0 };
	char *json = NULL;
	int r;

	if (!v)
		return NULL;
	if (v->source_due)
		return v->source ? mem_strdup(v->source) : NULL;
	r = local_source_read(l->base.sup, &v->ref->job, &json, &e);
	if (r < 0 && r != -ENOENT)
		log_warn("the source of job %s is lost: %s", j->name, e.msg);
	return json;
}

/* Makes *job the wanted version, with the fields that a server sets. */
static void
put_version(
    struct local *l, struct local_job *j, struct job *job, const struct job_submission *submission)
{
	struct local_version *old = SLIST_FIRST(&j->versions), *v;
	char *source =
	    submission ? local_source_encode(submission) : copy_source(l, j, job->version);
	uint64_t index = local_index_next(l);

	job->version = old ? old->ref->job.version + 1 : 0;
	job->create_index = old ? old->ref->job.create_index : index;
	job->modify_index = job->job_modify_index = index;
	job->submit_time = clock_real_ns();
	job->status = JOB_PENDING;
	job->stable = false;
	json_decref(steal_ptr(&job->version_tag)); /* stays with the version that has it */
	v = add_version(j, job);
	v->source = source;
	v->source_due = true;
	turn_write(l->base.sup, &v->row);
	if (old)
		turn_write(l->base.sup, &old->row);
	local_family_join(l, j);
}

struct local_job *
local_job_put(
    struct local *l, struct job *job, const struct job_submission *submission, bool *ret_changed)
{
	struct local_job *j = local_job_find_any(l, job->namespace, job->id);
	bool added = !j;

	*ret_changed = false;
	if (added)
		j = add_job(l, job->namespace, job->id);
	if (!added && j->purge) {
		j->purge = false;
		turn_write(l->base.sup, &SLIST_FIRST(&j->versions)->row);
	}
	if (!added && model_equal(&job_type, job, local_job_wanted(j))) {
		job_done(job);
		return j;
	}
	put_version(l, j, job, submission);
	*ret_changed = true;
	local_mark_job(l, j);
	return j;
}

static int
load_version(void *arg, const struct store_row *row, struct err *e)
{
	struct local *l = arg;
	const char *namespace = store_col_text(row, 0), *id = store_col_text(row, 1),
		   *json = store_col_text(row, 4);
	cleanup_done(job) struct job job;
	struct local_job *j;
	struct err why = { 0 };

	job_init(&job);
	if (model_from_text(&job_type, json, strlen(json), &job, &why) < 0) {
		journal_error(JOURNAL_STATE, NULL, "state.db: a version of job %s is ignored: %s",
		    id, why.msg);
		return 0;
	}
	j = local_job_find_any(l, namespace, id);
	if (!j)
		j = add_job(l, namespace, id);
	(void)add_version(j, &job);
	local_family_join(l, j);
	j->purge = store_col_int(row, 3) == ROW_PURGED;
	if (store_col_int(row, 3) == ROW_WANTED)
		local_namespace_adopt(l, namespace);
	return 0;
}

int
local_jobs_load(struct local *l, struct err *e)
{
	return store_each(l->base.sup->store, STMT_JOB_ALL, NULL, 0, load_version, l, e);
}

struct job_ref *
local_jobs_ref(struct sup *sup, const char *namespace, const char *id, uint64_t version)
{
	struct local_job *j = local_job_find_any(local_of_sup(sup), namespace, id);
	struct local_version *v = j ? local_job_version(j, version) : NULL;

	return v ? job_ref_get(v->ref) : NULL;
}

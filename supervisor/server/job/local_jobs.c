// SPDX-License-Identifier: Apache-2.0
/* local_jobs.c: jobs and their versions. Runs in: supervisor. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/list.h"
#include "common/log.h"
#include "supervisor/core/store.h"
#include "supervisor/server/feed/local_changes.h"
#include "supervisor/server/feed/local_events.h"
#include "supervisor/server/job/local_allocs.h"
#include "supervisor/server/job/local_evals.h"
#include "supervisor/server/job/local_family.h"
#include "supervisor/server/job/local_job_view.h"
#include "supervisor/server/job/local_marks.h"

#define VERSIONS_KEPT 6

/* Column `current` of a job's row. */
enum { ROW_OLD = 0, ROW_WANTED = 1, ROW_PURGED = 2 };

struct local_jobs {
	struct local_map map;
};

int
local_jobs_init(struct local *l)
{
	l->jobs = calloc(1, sizeof *l->jobs);
	return l->jobs ? 0 : -ENOMEM;
}

struct local_key **
local_jobs_sorted(const struct local *l, size_t *ret_n)
{
	*ret_n = l->jobs->map.n;
	return local_map_sorted(&l->jobs->map);
}

void
local_launch_key(const struct job *job, char ret[LOCAL_LAUNCH_KEY_SIZE])
{
	(void)snprintf(ret, LOCAL_LAUNCH_KEY_SIZE, "local_launch/%s/%s", job->namespace, job->id);
}

struct local_job *
local_job_find_any(struct local *l, const char *namespace, const char *id)
{
	cleanup_free char *name = NULL;

	if (asprintf(&name, "%s/%s", namespace, id) < 0)
		return NULL;
	return local_job_of(local_map_find(&l->jobs->map, name));
}

struct local_job *
local_job_find(struct local *l, const char *namespace, const char *id)
{
	struct local_job *j = local_job_find_any(l, namespace, id);

	return j && !j->purge ? j : NULL;
}

/* --- rows --- */

static int
delete_version(struct sup *sup, const struct local_version *v, struct err *e)
{
	const struct job *job = &v->ref->job;
	char key[LOCAL_LAUNCH_KEY_SIZE];
	int r = STORE_EXEC(sup->store, STMT_JOB_DELETE, e, SV_TEXT(job->namespace),
	    SV_TEXT(job->id), SV_INT(job->version));

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
	state = v->job->versions != v ? ROW_OLD : v->job->purge ? ROW_PURGED : ROW_WANTED;
	if (model_to_text(&job_type, job, MODEL_COMPACT, &json) < 0)
		return err_set(e, -ENOMEM, "write job %s", job->id);
	r = STORE_EXEC(sup->store, STMT_JOB_PUT, e, SV_TEXT(job->namespace), SV_TEXT(job->id),
	    SV_INT(job->version), SV_INT(state), SV_TEXT(json.text));
	text_done(&json);
	return r;
}

void
local_job_touch(struct local_job *j, uint64_t index)
{
	if (j->index < index)
		j->index = index;
}

static void
note_change(struct local *l, struct local_job *j, uint64_t index)
{
	local_job_touch(j, index);
	local_changes_note(l, LOCAL_JOBS, index);
	if (j->news.index < index)
		local_changes_put(l, &j->news, &local_job_news, index);
}

static void
on_version_written(struct sup *sup, struct dirty *d)
{
	struct local_version *v = container_of(d, struct local_version, row);

	if (!v->gone) {
		note_change(local_of_sup(sup), v->job, v->ref->job.modify_index);
		return;
	}
	job_ref_put(v->ref);
	free(v);
}

/* Takes over ref. NULL: no memory, ref is given back. */
static struct local_version *
add_version(struct local_job *j, struct job_ref *ref)
{
	struct local_version *v = calloc(1, sizeof *v);

	if (!v) {
		job_ref_put(ref);
		return NULL;
	}
	v->ref = ref;
	v->job = j;
	v->row.write = write_version;
	v->row.point = CRASH_ROW_JOB;
	v->row.written = on_version_written;
	v->older = j->versions;
	j->versions = v;
	return v;
}

/* Its row is deleted; v is freed after the commit. It is in no list any more. */
static void
drop_version(struct local *l, struct local_version *v)
{
	v->gone = true;
	v->older = NULL;
	turn_write(l->base.sup, &v->row);
}

/* --- jobs --- */

static struct local_job *
add_job(struct local *l, const char *namespace, const char *id)
{
	struct local_job *j = calloc(1, sizeof *j);

	if (!j)
		return NULL;
	if (asprintf(&j->name, "%s/%s", namespace, id) < 0) {
		free(j);
		return NULL;
	}
	j->l = l;
	STAILQ_INIT(&j->marked_slots);
	if (local_map_add(&l->jobs->map, &j->key, j->name) < 0) {
		free(j->name);
		free(j);
		return NULL;
	}
	return j;
}

static void
free_job(struct local *l, struct local_job *j)
{
	local_marks_forget(l, j);
	local_map_remove(&l->jobs->map, &j->key);
	local_family_leave(l, j);
	local_changes_remove(l, &j->news);
	while (j->versions) {
		struct local_version *v = j->versions;

		j->versions = v->older;
		turn_forget_write(l->base.sup, &v->row);
		job_ref_put(v->ref);
		free(v);
	}
	local_slots_free(j);
	free(j->name);
	free(j);
}

void
local_jobs_free(struct local *l)
{
	for (size_t i = 0; l->jobs && i < l->jobs->map.n_buckets; i++) {
		while (l->jobs->map.buckets[i])
			free_job(l, local_job_of(l->jobs->map.buckets[i]));
	}
	if (l->jobs)
		local_map_done(&l->jobs->map);
	free(l->jobs);
}

void
local_job_forget(struct local *l, struct local_job *j)
{
	uint64_t index = j->news.index ? j->news.index : local_index_next(l);

	log_info("job %s is purged", j->name);
	/* Followers get the deregistration under the index at which the job was purged. */
	local_event_keep(l, &j->news, &local_job_news, "JobDeregistered", index);
	local_changes_note(l, LOCAL_JOBS, index);
	local_evals_forget_job(l, j);
	while (j->versions) {
		struct local_version *v = j->versions;

		j->versions = v->older;
		v->forgotten = true;
		drop_version(l, v);
	}
	/* The versions hold all that deleting their rows takes. */
	free_job(l, j);
}

void
local_job_purge(struct local *l, struct local_job *j)
{
	j->purge = true;
	note_change(l, j, local_index_next(l));
	turn_write(l->base.sup, &j->versions->row);
	local_allocs_release(l, j);
	local_mark_job(l, j);
}

static struct local_version *
find_stable(const struct local_job *j)
{
	struct local_version *v = j->versions;

	while (v && !v->ref->job.stable)
		v = v->older;
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
	j->versions->ref->job.stable = true;
	turn_write(l->base.sup, &j->versions->row);
	local_mark_job(l, j);
}

void
local_job_trim(struct local *l, struct local_job *j)
{
	const struct local_version *stable = find_stable(j);
	unsigned kept = 0;

	for (struct local_version **at = &j->versions; *at;) {
		struct local_version *v = *at;

		if (kept < VERSIONS_KEPT || v->ref->refs > 1 || v == stable) {
			kept++;
			at = &v->older;
			continue;
		}
		*at = v->older;
		drop_version(l, v);
	}
}

/* The version that is wanted now gets all of *job but what a server keeps. */
static int
put_version(struct local *l, struct local_job *j, struct job *job)
{
	struct local_version *old = j->versions, *v;
	struct job_ref *ref;
	uint64_t index = local_index_next(l);

	job->version = old ? old->ref->job.version + 1 : 0;
	job->create_index = old ? old->ref->job.create_index : index;
	job->modify_index = job->job_modify_index = index;
	job->submit_time = clock_real_ns();
	job->status = JOB_PENDING;
	job->stable = false;
	ref = job_ref_new(job);
	if (!ref)
		return -ENOMEM;
	v = add_version(j, ref);
	if (!v)
		return -ENOMEM;
	turn_write(l->base.sup, &v->row);
	if (old)
		turn_write(l->base.sup, &old->row);
	return local_family_join(l, j);
}

struct local_job *
local_job_put(struct local *l, struct job *job, bool *ret_changed)
{
	struct local_job *j = local_job_find_any(l, job->namespace, job->id);
	bool added = !j;

	if (!j)
		j = add_job(l, job->namespace, job->id);
	if (!j)
		return NULL;
	if (!added && j->purge) {
		j->purge = false;
		turn_write(l->base.sup, &j->versions->row);
	}
	if (!added && model_equal(&job_type, job, local_job_wanted(j))) {
		*ret_changed = false;
		job_done(job);
		return j;
	}
	if (put_version(l, j, job) < 0) {
		if (added)
			free_job(l, j);
		return NULL;
	}
	*ret_changed = true;
	local_mark_job(l, j);
	return j;
}

/* --- at start --- */

static int
load_version(void *arg, const struct store_row *row, struct err *e)
{
	struct local *l = arg;
	const char *namespace = store_col_text(row, 0), *id = store_col_text(row, 1),
		   *json = store_col_text(row, 4);
	cleanup_done(job) struct job job;
	struct local_job *j;
	struct job_ref *ref;
	struct err why = { 0 };

	job_init(&job);
	if (model_from_text(&job_type, json, strlen(json), &job, &why) < 0) {
		log_error("state.db: a version of job %s is left alone: %s", id, why.msg);
		return 0;
	}
	j = local_job_find_any(l, namespace, id);
	if (!j)
		j = add_job(l, namespace, id);
	ref = j ? job_ref_new(&job) : NULL;
	if (!ref || !add_version(j, ref) || local_family_join(l, j) < 0)
		return err_set(e, -ENOMEM, "read the jobs of state.db");
	j->purge = store_col_int(row, 3) == ROW_PURGED;
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

	for (struct local_version *v = j ? j->versions : NULL; v; v = v->older) {
		if (v->ref->job.version == version)
			return job_ref_get(v->ref);
	}
	return NULL;
}

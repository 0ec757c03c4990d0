// SPDX-License-Identifier: Apache-2.0
/* local_jobs.c: jobs and their versions. Runs in: supervisor. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-event.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "supervisor/server/deploy/local_deployment.h"
#include "supervisor/server/place/local_unplaced.h"
#include "supervisor/core/store.h"

#define VERSIONS_KEPT 6

/* Column `current` of a job's row. */
enum { ROW_OLD = 0, ROW_WANTED = 1, ROW_PURGED = 2 };

struct local_job *
local_job_find_any(struct local *l, const char *namespace, const char *id)
{
	cleanup_free char *name = NULL;

	if (asprintf(&name, "%s/%s", namespace, id) < 0)
		return NULL;
	return (struct local_job *)(void *)local_map_find(&l->jobs, name);
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
	struct local_version *v =
	    (struct local_version *)(void *)((char *)d - offsetof(struct local_version, row));
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

static void
on_version_written(struct sup *sup, struct dirty *d)
{
	struct local_version *v =
	    (struct local_version *)(void *)((char *)d - offsetof(struct local_version, row));

	if (!v->gone) {
		local_job_changed(local_of_sup(sup), v->job, v->ref->job.modify_index);
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
	STAILQ_INIT(&j->marks.slots);
	if (local_map_add(&l->jobs, &j->key, j->name) < 0) {
		free(j->name);
		free(j);
		return NULL;
	}
	return j;
}

static void
free_slots(struct local *l, struct local_slot **slots, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		local_unplaced_remove(l, slots[i]);
		sd_event_source_disable_unref(slots[i]->reschedule);
		free(slots[i]);
	}
	free(slots);
}

static void
free_groups(struct local *l, struct local_job *j)
{
	j->blocked = NULL;
	for (size_t i = 0; i < j->n_groups; i++) {
		free_slots(l, j->groups[i]->slots, j->groups[i]->n_slots);
		free_slots(l, j->groups[i]->canaries, j->groups[i]->n_canaries);
		free(j->groups[i]->name);
		free(j->groups[i]);
	}
	free(j->groups);
}

void
local_job_free(struct local *l, struct local_job *j)
{
	local_marks_forget(l, j);
	local_map_remove(&l->jobs, &j->key);
	local_periodic_forget(l, j);
	local_family_leave(l, j);
	local_news_remove(&l->news_list, &j->news);
	while (j->versions) {
		struct local_version *v = j->versions;

		j->versions = v->older;
		turn_forget_write(l->base.sup, &v->row);
		job_ref_put(v->ref);
		free(v);
	}
	local_deployments_free(l, j);
	free_groups(l, j);
	free(j->name);
	free(j);
}

static void
forget_job(struct local *l, struct local_job *j)
{
	log_info("job %s is purged", j->name);
	local_job_gone(l, j);
	local_evals_forget_job(l, j);
	while (j->versions) {
		struct local_version *v = j->versions;

		j->versions = v->older;
		v->forgotten = true;
		drop_version(l, v);
	}
	local_deployments_forget(l, j);
	/* What the rows still need is in the versions; write_version() does not look at the job of
	 * one that is gone. */
	local_job_free(l, j);
}

/* The one to come back to, when a newer one fails. */
static struct local_version *
newest_stable(const struct local_job *j)
{
	struct local_version *v = j->versions;

	while (v && !v->ref->job.stable)
		v = v->older;
	return v;
}

void
local_job_trim(struct local *l, struct local_job *j)
{
	const struct local_version *stable = newest_stable(j);
	unsigned kept = 0;

	if (j->purge && !j->allocs) {
		forget_job(l, j);
		return;
	}
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
	job->submit_time = local_now_ns();
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
			local_job_free(l, j);
		return NULL;
	}
	*ret_changed = true;
	local_periodic_look(l, j);
	local_deployment_follow(l, j);
	local_mark_job(l, j);
	return j;
}

int
local_job_register(struct local *l, struct job *job, const char *trigger, struct local_job **ret,
    struct local_eval **ret_ev)
{
	struct local_eval *ev = NULL;
	struct local_job *j;
	bool changed;

	j = local_job_put(l, job, &changed);
	if (!j)
		return -ENOMEM;
	if (!job_is_parent(local_job_wanted(j))) {
		ev = local_eval_new(l, j, trigger);
		if (!ev)
			return -ENOMEM;
		local_reconcile_job(l, j, ev, true);
		local_mark_job(l, j);
	}
	*ret = j;
	*ret_ev = ev;
	return 0;
}

enum job_status
local_job_status(const struct local_job *j)
{
	bool live = false;

	if (job_is_parent(local_job_wanted(j)))
		return local_job_wanted(j)->stop ? JOB_DEAD : JOB_RUNNING;
	if (j->blocked)
		return JOB_PENDING;
	for (const struct local_alloc *la = j->allocs; la && !live; la = la->next)
		live = !la->over;
	if (live)
		return JOB_RUNNING;
	for (size_t i = 0; i < j->n_groups; i++) {
		for (size_t k = 0; k < j->groups[i]->n_slots; k++) {
			if (j->groups[i]->slots[k]->waits)
				return JOB_PENDING;
		}
	}
	return JOB_DEAD;
}

/* --- slots --- */

struct local_group *
local_group_find(const struct local_job *j, const char *name)
{
	for (size_t i = 0; i < j->n_groups; i++) {
		if (strcmp(j->groups[i]->name, name) == 0)
			return j->groups[i];
	}
	return NULL;
}

static struct local_group *
get_group(struct local_job *j, const char *name)
{
	struct local_group *g = local_group_find(j, name), **grown;

	if (g)
		return g;
	grown = reallocarray(j->groups, j->n_groups + 1, sizeof *grown);
	if (!grown)
		return NULL;
	j->groups = grown;
	g = calloc(1, sizeof *g);
	if (!g || !(g->name = strdup(name))) {
		free(g);
		return NULL;
	}
	j->groups[j->n_groups++] = g;
	return g;
}

/* All up to that one are made. */
static struct local_slot *
get_slot(struct local_job *j, const char *group, int64_t index, bool canary)
{
	struct local_group *g = index < 0 ? NULL : get_group(j, group);
	struct local_slot ***list, **grown, *slot;
	size_t *n;

	if (!g)
		return NULL;
	list = canary ? &g->canaries : &g->slots;
	n = canary ? &g->n_canaries : &g->n_slots;
	if ((size_t)index >= *n) {
		grown = reallocarray(*list, (size_t)index + 1, sizeof *grown);
		if (!grown)
			return NULL;
		*list = grown;
	}
	while ((size_t)index >= *n) {
		slot = calloc(1, sizeof *slot);
		if (!slot)
			return NULL;
		slot->job = j;
		slot->group = g;
		slot->index = (int64_t)*n;
		slot->canary = canary;
		(*list)[(*n)++] = slot;
	}
	return (*list)[index];
}

struct local_slot *
local_slot_get(struct local_job *j, const char *group, int64_t index)
{
	return get_slot(j, group, index, false);
}

struct local_slot *
local_canary_get(struct local_job *j, const char *group, int64_t index)
{
	return get_slot(j, group, index, true);
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

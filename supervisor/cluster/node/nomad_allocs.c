// SPDX-License-Identifier: Apache-2.0
/* nomad_allocs.c: the allocs that servers assigned to this node, with their jobs. Both are stored
 * in state.db, so that they run without a server. Runs in: supervisor. */
#include "supervisor/cluster/node/nomad_allocs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-event.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/list.h"
#include "common/mem.h"
#include "model/engine/table.h"
#include "model/engine/walk.h"
#include "model/task_event.h"
#include "supervisor/cluster/node/nomad.h"
#include "supervisor/cluster/node/nomad_update.h"
#include "supervisor/core/journal.h"
#include "supervisor/core/store.h"
#include "supervisor/node/node_state.h"

/* Jobs. */

static int
write_job(struct sup *sup, struct dirty *d, struct err *e)
{
	struct nomad_job *j = container_of(d, struct nomad_job, row);
	const struct job *job = &j->ref->job;
	struct text json = { 0 };
	int r;

	if (j->gone)
		return STORE_EXEC(sup->store, STMT_JOB_DELETE, e, SV_TEXT(str(job->namespace)),
		    SV_TEXT(str(job->id)), SV_INT(j->ref->key));
	model_to_text(&job_type, job, MODEL_COMPACT, &json);
	r = STORE_EXEC(sup->store, STMT_JOB_PUT, e, SV_TEXT(str(job->namespace)),
	    SV_TEXT(str(job->id)), SV_INT(j->ref->key), SV_INT(1), SV_TEXT(json.text));
	text_done(&json);
	return r;
}

static void
on_job_written(struct sup *sup, struct dirty *d)
{
	struct nomad_job *j = container_of(d, struct nomad_job, row);

	if (!j->gone)
		return;
	job_ref_put(j->ref);
	free(j);
}

static struct nomad_job *
job_find(struct nomad *n, const char *namespace, const char *id, uint64_t key)
{
	struct nomad_job *j;

	LIST_FOREACH (j, &n->jobs, link)
		if (j->ref->key == key && str_eq(j->ref->job.id, id) &&
		    str_eq(j->ref->job.namespace, namespace))
			break;
	return j;
}

/* Adds a job; takes over *job. */
static struct nomad_job *
job_add(struct nomad *n, struct job *job, uint64_t key)
{
	struct nomad_job *j = mem_new(struct nomad_job);

	j->ref = job_ref_new(job);
	j->ref->key = key;
	j->row.write = write_job;
	j->row.point = CRASH_ROW_NOMAD_JOB;
	j->row.written = on_job_written;
	LIST_INSERT_HEAD(&n->jobs, j, link);
	return j;
}

/* Returns the existing job, or a new one made from *job, which is emptied. A purged job that is
 * registered again restarts its version numbers, so a job is identified by its registration index.
 */
static struct nomad_job *
job_take(struct nomad *n, struct job *job)
{
	uint64_t key = job->job_modify_index;
	struct nomad_job *j = job_find(n, str(job->namespace), str(job->id), key);

	if (j)
		return j;
	job_complete(job);
	j = job_add(n, job, key);
	turn_write(n->src.base.sup, &j->row);
	return j;
}

/* Removes a job to which no alloc refers. */
static void
job_remove_unused(struct nomad *n, struct nomad_job *j)
{
	if (j->n_allocs > 0)
		return;
	LIST_REMOVE(j, link);
	j->gone = true;
	turn_write(n->src.base.sup, &j->row);
}

static void
job_leave(struct nomad *n, struct nomad_job *j)
{
	j->n_allocs--;
	job_remove_unused(n, j);
}

/* Accepting allocs. */

/* Adds the data that only this source keeps of an alloc. */
static struct nomad_alloc *
attach_alloc(struct sup_alloc *sa, struct nomad_job *j)
{
	struct nomad_alloc *na = mem_new(struct nomad_alloc);

	na->sa = sa;
	na->job = j;
	nomad_update_init(na);
	j->n_allocs++;
	sa->source_data = na;
	return na;
}

/* Copies the fields that the node decides; all others are the servers'. */
static void
keep_client_fields(struct alloc *from, struct alloc *to)
{
	for (size_t i = 0; i < alloc_update_type.n; i++) {
		const struct field *f = &alloc_update_type.fields[i];

		if (!str_eq(f->name, "DeploymentStatus"))
			field_swap(f, from, to);
	}
}

/* Keeps the health unless the deployment is a new one. */
static void
keep_health(struct alloc *from, struct alloc *to)
{
	if (!from->deployment_status || !str_eq(from->deployment_id, to->deployment_id))
		return;
	if (!to->deployment_status)
		to->deployment_status = deployment_status_new();
	to->deployment_status->healthy = from->deployment_status->healthy;
	to->deployment_status->timestamp = from->deployment_status->timestamp;
}

static void
reset_client_fields(struct alloc *a)
{
	struct alloc empty;

	alloc_init(&empty);
	empty.client_status = CLIENT_PENDING;
	str_set(&empty.id, a->id);
	str_set(&empty.node_id, a->node_id);
	keep_client_fields(&empty, a);
	alloc_done(&empty);
}

static int
check_alloc(struct nomad *n, const struct alloc *a, struct err *e)
{
	const struct task_group *group;
	struct id id;

	if (!id_from_uuid(str(a->id), &id))
		return err_say(e, -EINVAL, "its id is not a UUID");
	if (alloc_is_unreadable(n->src.base.sup, &id))
		return err_say(e, -EUCLEAN, "its row in this node's state.db cannot be read");
	if (!a->job)
		return err_say(e, -EINVAL, "it came without its job");
	if (!str_eq(a->node_id, node_get(n->src.base.sup)->id))
		return err_say(e, -EINVAL, "it belongs to another node");
	group = job_group(a->job, a->task_group);
	if (!group)
		return err_say(e, -EINVAL, "its job has no group \"%s\"", str(a->task_group));
	if (group->tasks.n == 0)
		return err_say(
		    e, -EINVAL, "group \"%s\" of its job has no task", str(a->task_group));
	for (size_t i = 0; i < group->tasks.n; i++)
		if (!name_is_task(str(group->tasks.v[i].name)))
			return err_say(e, -EINVAL,
			    "the name of task \"%s\" is not a valid directory name",
			    str(group->tasks.v[i].name));
	return 0;
}

static void
add_alloc(struct nomad *n, struct alloc *a, struct nomad_job *j)
{
	struct sup_alloc *sa;
	/* It may have ended already, if this node has lost its state. */
	bool over = alloc_client_terminal(a);

	if (!over)
		reset_client_fields(a);
	sa = alloc_add(n->src.base.sup, a, job_ref_get(j->ref));
	attach_alloc(sa, j)->seen = n->list_number;
	if (over)
		client_alloc_set_done(n->src.base.sup, sa);
	else
		client_alloc_run(n->src.base.sup, sa);
}

static void
take_job(struct nomad *n, struct nomad_alloc *na, struct nomad_job *j)
{
	struct sup_alloc *sa = na->sa;
	struct job_ref *old = sa->job;

	if (na->job == j)
		return;
	j->n_allocs++;
	job_leave(n, na->job);
	na->job = j;
	sa->job = job_ref_get(j->ref);
	sa->group = job_group(&j->ref->job, sa->a.task_group);
	/* The runner's hooks may point into the version with which it started. */
	if (!na->runs_by)
		na->runs_by = old;
	else
		job_ref_put(old);
}

static void
update_alloc(struct nomad *n, struct nomad_alloc *na, struct alloc *a, struct nomad_job *j)
{
	struct sup_alloc *sa = na->sa;
	bool unknown = a->client_status == CLIENT_UNKNOWN && !alloc_server_terminal(a);
	struct alloc old = sa->a;

	keep_client_fields(&old, a);
	keep_health(&old, a);
	sa->a = *a;
	*a = old;
	take_job(n, na, j);
	alloc_tokens_changed(n->src.base.sup, sa);
	if (unknown) {
		nomad_update_unacked(n, na);
		client_alloc_reconnected(sa);
	}
	client_alloc_update(n->src.base.sup, sa);
	nomad_alloc_updated(&n->src.base, sa);
}

void
nomad_alloc_put(struct nomad *n, struct alloc *a)
{
	struct sup_alloc *sa;
	struct job job;
	struct nomad_job *j;
	struct err e = { 0 };
	struct id id;

	if (check_alloc(n, a, &e) < 0) {
		nomad_alloc_put_invalid(n, a, &e);
		return;
	}
	(void)id_from_uuid(str(a->id), &id);
	sa = alloc_find(n->src.base.sup, &id);
	if (!sa && n->src.base.sup->draining)
		return; /* this agent is ending: the next one will get it */
	job = *a->job;
	job_init(a->job);
	job_free(a->job);
	a->job = NULL;
	j = job_take(n, &job);
	job_done(&job);
	if (!sa)
		add_alloc(n, a, j);
	else if (nomad_alloc_of(sa) && !nomad_alloc_of(sa)->removed)
		update_alloc(n, nomad_alloc_of(sa), a, j);
	job_remove_unused(n, j); /* it is new, but its alloc is being removed */
}

static void
fail_tasks(struct alloc *a, const struct alloc *from)
{
	const struct task_group *group = from->job ? job_group(from->job, from->task_group) : NULL;

	for (size_t i = 0; group && i < group->tasks.n; i++) {
		struct task_state *s =
		    map_put(task_state, &a->task_states, str(group->tasks.v[i].name));

		s->state = TASK_STATE_DEAD;
		s->failed = true;
		s->finished_at = clock_real_ns();
	}
}

static struct nomad_invalid *
find_invalid(struct nomad *n, const char *id)
{
	struct nomad_invalid *inv;

	LIST_FOREACH (inv, &n->invalid, link)
		if (str_eq(inv->update.id, id))
			break;
	return inv;
}

void
nomad_alloc_put_invalid(struct nomad *n, struct alloc *a, const struct err *e)
{
	struct nomad_invalid *inv;
	char text[ERR_MSG_SIZE + 64];
	struct id id;

	if (!id_from_uuid(str(a->id), &id) || alloc_find(n->src.base.sup, &id)) {
		journal_warn(JOURNAL_ALLOC, &(struct journal_about){ .alloc_id = a->id },
		    "allocation %.36s: cannot decode its new version: %s", str(a->id), e->msg);
		return;
	}
	inv = find_invalid(n, a->id);
	if (!inv) {
		inv = mem_new(struct nomad_invalid);
		alloc_init(&inv->update);
		LIST_INSERT_HEAD(&n->invalid, inv, link);
	}
	(void)snprintf(text, sizeof text, "Unable to add allocation due to error: %s", e->msg);
	journal_error(JOURNAL_ALLOC, &(struct journal_about){ .alloc_id = a->id },
	    "allocation %.8s: %s", a->id, text);
	inv->alloc_modify_index = a->alloc_modify_index;
	inv->seen = n->list_number;
	inv->reported = alloc_server_terminal(a) || alloc_client_terminal(a);
	str_set(&inv->update.id, a->id);
	str_set(&inv->update.node_id, node_get(n->src.base.sup)->id);
	inv->update.client_status = CLIENT_FAILED;
	str_set(&inv->update.client_description, text);
	fail_tasks(&inv->update, a);
	if (*str(a->deployment_id) && !inv->update.deployment_status)
		inv->update.deployment_status = deployment_status_new();
	if (inv->update.deployment_status) {
		inv->update.deployment_status->healthy = OPT_FALSE;
		inv->update.deployment_status->timestamp = clock_real_ns();
	}
	nomad_update_soon(n);
}

/* Lists. */

void
nomad_allocs_begin_list(struct nomad *n)
{
	n->list_number++;
}

bool
nomad_alloc_is_news(struct nomad *n, const char *id, uint64_t alloc_modify_index)
{
	struct nomad_invalid *inv;
	struct sup_alloc *sa;
	struct id bytes;

	if (!id_from_uuid(id, &bytes))
		return false;
	sa = alloc_find(n->src.base.sup, &bytes);
	if (sa && nomad_alloc_of(sa)) {
		nomad_alloc_of(sa)->seen = n->list_number;
		return sa->a.alloc_modify_index < alloc_modify_index;
	}
	inv = find_invalid(n, id);
	if (!inv)
		return true;
	inv->seen = n->list_number;
	return inv->alloc_modify_index < alloc_modify_index;
}

unsigned
nomad_allocs_lacking(const struct nomad *n)
{
	unsigned lacking = 0;

	alloc_foreach(n->src.base.sup, sa)
	{
		const struct nomad_alloc *na = nomad_alloc_of(sa);

		if (na && !na->removed && na->seen != n->list_number && !alloc_terminal(&sa->a))
			lacking++;
	}
	return lacking;
}

static void
free_invalid(struct nomad_invalid *inv)
{
	LIST_REMOVE(inv, link);
	alloc_done(&inv->update);
	free(inv);
}

/* Forgets those that the last list does not contain. */
static void
forget_invalid(struct nomad *n)
{
	struct nomad_invalid *inv, *next;

	LIST_FOREACH_SAFE (inv, &n->invalid, link, next) {
		if (inv->seen != n->list_number && !inv->sending)
			free_invalid(inv);
	}
}

static void
unlink_done(struct nomad *n, struct nomad_alloc *na)
{
	if (!na->done)
		return;
	TAILQ_REMOVE(&n->done, na, done_link);
	na->done = false;
	n->n_done--;
}

static void
destroy_alloc(struct nomad *n, struct nomad_alloc *na)
{
	unlink_done(n, na);
	if (na->destroyed)
		return;
	na->destroyed = true;
	client_alloc_destroy(n->src.base.sup, na->sa);
}

/* Removes an alloc that the servers do not have for this node. */
static void
remove_alloc(struct nomad *n, struct nomad_alloc *na, const char *why)
{
	struct sup_alloc *sa = na->sa;

	journal_info(
	    JOURNAL_ALLOC, ABOUT_ALLOC(sa), "allocation %.8s: removed, because %s", sa->a.id, why);
	turn_durable(n->src.base.sup);
	na->removed = true;
	if (na->destroyed && !sa->runner)
		nomad_alloc_destroyed(&n->src.base, sa);
	else
		destroy_alloc(n, na);
}

void
nomad_allocs_remove_others(struct nomad *n)
{
	struct sup *sup = n->src.base.sup;

	forget_invalid(n);
	alloc_foreach(sup, sa)
	{
		struct nomad_alloc *na = nomad_alloc_of(sa);

		if (na && na->seen != n->list_number && !na->removed)
			remove_alloc(n, na, "the servers do not list it any more");
	}
}

/* Notifications of the client. */

/* The alloc has ended: its directory is kept until too many newer ones have ended too. */
static void
note_done(struct nomad *n, struct nomad_alloc *na)
{
	if (na->done || na->destroyed)
		return;
	na->done = true;
	TAILQ_INSERT_TAIL(&n->done, na, done_link);
	n->n_done++;
	if ((uint64_t)n->n_done > n->src.base.sup->config->gc_max_allocs)
		destroy_alloc(n, TAILQ_FIRST(&n->done));
}

void
nomad_alloc_updated(struct source *s, struct sup_alloc *sa)
{
	struct nomad *n = nomad_of(s);
	struct nomad_alloc *na = nomad_alloc_of(sa);

	if (!na)
		return;
	nomad_update_check(n, na);
	if (client_alloc_ended(sa))
		note_done(n, na);
}

void
nomad_allocs_start(struct nomad *n)
{
	alloc_foreach(n->src.base.sup, sa)
	{
		struct nomad_alloc *na = nomad_alloc_of(sa);

		if (na && na->foreign)
			remove_alloc(n, na, "it is of the node that this one was before");
		else if (!sa->runner)
			nomad_alloc_updated(&n->src.base, sa);
	}
}

bool
nomad_alloc_collect_oldest(struct source *s)
{
	struct nomad *n = nomad_of(s);

	if (TAILQ_EMPTY(&n->done))
		return false;
	turn_durable(s->sup);
	destroy_alloc(n, TAILQ_FIRST(&n->done));
	return true;
}

bool
nomad_alloc_collect(struct source *s, struct sup_alloc *sa)
{
	struct nomad *n = nomad_of(s);
	struct nomad_alloc *na = nomad_alloc_of(sa);

	if (!na || na->destroyed || !client_alloc_ended(sa))
		return false;
	turn_durable(n->src.base.sup);
	destroy_alloc(n, na);
	return true;
}

static void
detach_alloc(struct nomad *n, struct nomad_alloc *na)
{
	unlink_done(n, na);
	nomad_update_forget(n, na);
	turn_forget_write(n->src.base.sup, &na->acked_row);
	job_ref_put(na->runs_by);
	na->sa->source_data = NULL;
	free(na);
}

/* The servers may still list it; it is not requested again and does not run. */
void
nomad_alloc_destroyed(struct source *s, struct sup_alloc *sa)
{
	struct nomad *n = nomad_of(s);
	struct nomad_alloc *na = nomad_alloc_of(sa);
	struct nomad_job *j;

	if (!na)
		return;
	job_ref_put(na->runs_by);
	na->runs_by = NULL;
	if (!na->removed)
		return;
	j = na->job;
	detach_alloc(n, na);
	alloc_forget(s->sup, sa);
	job_leave(n, j);
}

/* Start and end. */

static int
load_job(void *arg, const struct store_row *row, struct err *e)
{
	struct nomad *n = arg;
	const char *json = store_col_text(row, 4);
	struct err why = { 0 };
	struct job job;

	job_init(&job);
	if (model_from_text(&job_type, json, strlen(json), &job, &why) < 0) {
		journal_error(JOURNAL_STATE, NULL,
		    "state.db: cannot read job %s, it is ignored: %s", store_col_text(row, 1),
		    why.msg);
		return 0;
	}
	(void)job_add(n, &job, (uint64_t)store_col_int(row, 2));
	return 0;
}

static struct job_ref *
job_of_row(struct sup *sup, const char *namespace, const char *id, uint64_t key)
{
	struct nomad_job *j = job_find(nomad_of_sup(sup), namespace, id, key);

	return j ? job_ref_get(j->ref) : NULL;
}

int
nomad_allocs_load(struct nomad *n, struct err *e)
{
	struct sup *sup = n->src.base.sup;
	struct nomad_job *j, *next;
	int r = store_each(sup->store, STMT_JOB_ALL, NULL, 0, load_job, n, e);

	if (r < 0 || (r = alloc_table_load(sup, job_of_row, e)) < 0)
		return r;
	alloc_foreach(sup, sa)
	{
		const struct job *job = &sa->job->job;

		j = job_find(n, str(job->namespace), str(job->id), sa->job->key);
		attach_alloc(sa, j)->claimed = true;
		nomad_alloc_of(sa)->foreign = !str_eq(sa->a.node_id, node_get(sup)->id);
		/* A list that is older than an alloc we already have is ignored. */
		if (sa->a.alloc_modify_index > n->watch_index)
			n->watch_index = sa->a.alloc_modify_index;
	}
	LIST_FOREACH_SAFE (j, &n->jobs, link, next) {
		job_remove_unused(n, j);
	}
	return nomad_update_load(n, e);
}

void
nomad_allocs_free(struct nomad *n)
{
	alloc_foreach(n->src.base.sup, sa)
	{
		if (nomad_alloc_of(sa))
			detach_alloc(n, nomad_alloc_of(sa));
	}
	while (!LIST_EMPTY(&n->jobs)) {
		struct nomad_job *j = LIST_FIRST(&n->jobs);

		LIST_REMOVE(j, link);
		turn_forget_write(n->src.base.sup, &j->row);
		job_ref_put(j->ref);
		free(j);
	}
	while (!LIST_EMPTY(&n->invalid))
		free_invalid(LIST_FIRST(&n->invalid));
}

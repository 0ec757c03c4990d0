// SPDX-License-Identifier: Apache-2.0
/* client.c: the node's side of the source: allocs given, updated, destroyed, restored, drained.
 * Runs in: supervisor. */
#include "supervisor/alloc/client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/log.h"
#include "supervisor/alloc/alloc_health.h"
#include "supervisor/alloc/alloc_runner.h"
#include "supervisor/alloc/hook_csi.h"
#include "supervisor/alloc/leftovers.h"
#include "supervisor/alloc/alloc_identity.h"
#include "supervisor/service/task_env.h"
#include "supervisor/source/source.h"
#include "supervisor/core/changed.h"
#include "supervisor/core/sup_child.h"
#include "supervisor/core/sup_turn.h"
#include "supervisor/volume/volumes.h"

/* The order in which allocs end. Plugins go last: without them nothing can be unmounted. */
enum wave { WAVE_WORK, WAVE_SYSTEM, WAVE_PLUGINS, WAVES };

static struct client_stop wish; /* while work is watched */

void
client_alloc_run(struct sup *sup, struct sup_alloc *sa)
{
	if (!sa->runner && !alloc_runner_new(sup, sa, false))
		log_error("allocation %.8s: no memory to run it", sa->a.id);
}

void
client_alloc_update(struct sup *sup, struct sup_alloc *sa)
{
	if (sa->runner)
		alloc_runner_update(sa->runner);
}

void
client_alloc_destroy(struct sup *sup, struct sup_alloc *sa)
{
	if (!sa->runner && !alloc_runner_new(sup, sa, true)) {
		log_error("allocation %.8s: no memory to remove it", sa->a.id);
		return;
	}
	alloc_runner_destroy(sa->runner);
}

bool
client_alloc_ended(const struct sup_alloc *sa)
{
	return alloc_client_terminal(&sa->a) && (!sa->runner || sa->runner->phase == ALLOC_DONE);
}

void
client_alloc_set_health(struct sup_alloc *sa, bool healthy)
{
	if (sa->runner)
		alloc_health_set(sa->runner, healthy);
}

void
client_alloc_reconnected(struct sup_alloc *sa)
{
	for (unsigned i = 0; sa->runner && i < sa->runner->n_tasks; i++)
		task_runner_tell(&sa->runner->tasks[i], EVENT_RECONNECTED, NULL, false);
}

void
client_free(struct sup *sup)
{
	if (!sup->allocs)
		return;
	alloc_foreach(sup, sa)
	{
		alloc_runner_free(sa->runner);
		sa->runner = NULL;
	}
}

/* The last supervisor had completed it. */
static bool
is_at_rest(const struct sup_alloc *sa)
{
	json_t *all = sa->client_json ? json_loads(sa->client_json, 0, NULL) : NULL;
	bool rests = json_is_true(json_object_get(all, "done")) &&
		     !json_is_true(json_object_get(all, "destroy"));

	json_decref(all);
	return rests;
}

/* The removal of an alloc that is done waits for its volumes, and does not unmount them. */
static bool
unmounts_by_hook(const struct sup_alloc *sa)
{
	return sa && sa->runner && sa->runner->phase < ALLOC_DONE;
}

int
client_restore(struct sup *sup, struct err *e)
{
	int r = runs_load(sup, alloc_runner_run_gone, e);

	task_env_provide(alloc_identities_put_env);
	volumes_report_gone(sup, alloc_csi_volume_gone);
	if (r < 0)
		return r;
	alloc_foreach(sup, sa)
	{
		if (alloc_client_terminal(&sa->a) && is_at_rest(sa))
			continue;
		if (!alloc_runner_new(sup, sa, true))
			return err_set(e, -ENOMEM, "restore allocation %s", sa->a.id);
	}
	runs_reap_others(sup);
	volumes_undo_left(sup, unmounts_by_hook);
	leftovers_remove(sup);
	return 0;
}

static bool
is_plugin(const struct sup_alloc *sa)
{
	for (size_t i = 0; i < sa->group->tasks.n; i++)
		if (sa->group->tasks.v[i].csi_plugin)
			return true;
	return false;
}

static bool
is_system(const struct sup_alloc *sa)
{
	return sa->job->job.type == JOB_SYSTEM || sa->job->job.type == JOB_SYSBATCH;
}

/* Its tasks end by themselves. */
static bool
is_batch(const struct sup_alloc *sa)
{
	return sa->job->job.type == JOB_BATCH || sa->job->job.type == JOB_SYSBATCH;
}

static enum wave
wave_of(const struct sup_alloc *sa)
{
	if (is_plugin(sa))
		return WAVE_PLUGINS;
	return wish.lets_finish && sa->job->job.type == JOB_SYSTEM ? WAVE_SYSTEM : WAVE_WORK;
}

static void
stop(struct sup *sup, struct sup_alloc *sa)
{
	sa->a.desired_status = DESIRED_STOP;
	(void)str_set(&sa->a.desired_description, wish.why);
	alloc_changed(sup, sa);
	alloc_runner_stop(sa->runner);
}

/* Returns how many are still alive or mounted. */
static unsigned
stop_wave(struct sup *sup, enum wave wave)
{
	unsigned active = 0;

	alloc_foreach(sup, sa)
	{
		if (!sa->runner || sa->runner->phase >= ALLOC_DONE || wave_of(sa) != wave ||
		    (wish.spares_system && is_system(sa)))
			continue;
		active++;
		if (!sa->runner->stopping &&
		    !(wave == WAVE_WORK && wish.lets_finish && is_batch(sa)))
			stop(sup, sa);
	}
	return active;
}

/* Called once for all that changes in a turn: it walks every alloc. */
static void
on_work_changed(struct sup *sup, struct changed_watch *w)
{
	void (*done)(struct sup *) = wish.done;

	for (enum wave wave = 0; wave < WAVES; wave++)
		if (stop_wave(sup, wave) > 0)
			return;
	if ((!wish.spares_system && runs_count(sup) > 0) || child_busy(sup, IPC_MOUNT_HELPER) ||
	    child_busy(sup, IPC_FILE_HELPER))
		return;
	client_stop_no_more(sup);
	volumes_warn_left(sup);
	done(sup);
}

static struct changed_watch work = { .fn = on_work_changed };

void
client_stop_all(struct sup *sup, const struct client_stop *wanted)
{
	log_info("stopping all allocations%s: %s",
	    wanted->spares_system ? " but those of system jobs" : "", wanted->why);
	wish = *wanted;
	changed_watch(sup, CHANGED_WORK, &work);
	changed_mark(sup, CHANGED_WORK);
}

void
client_stop_no_more(struct sup *sup)
{
	changed_unwatch(sup, &work);
}

// SPDX-License-Identifier: Apache-2.0
/* client.c: runs, updates, restores, stops and destroys allocs for the source. Runs in: supervisor.
 */
#include "supervisor/alloc/client.h"

#include <stdlib.h>

#include "common/cleanup.h"
#include "common/list.h"
#include "common/mem.h"
#include "supervisor/alloc/alloc_hooks.h"
#include "supervisor/alloc/alloc_record.h"
#include "supervisor/alloc/alloc_runner.h"
#include "supervisor/alloc/hook_health.h"
#include "supervisor/alloc/hook_secrets.h"
#include "supervisor/alloc/leftovers.h"
#include "supervisor/alloc/task_events.h"
#include "supervisor/core/changed.h"
#include "supervisor/core/journal.h"
#include "supervisor/core/sup_child.h"
#include "supervisor/driver/run.h"
#include "supervisor/health/probe.h"
#include "supervisor/health/probe_tasks.h"
#include "supervisor/image/image_gc.h"
#include "supervisor/volume/volumes.h"

/* The order in which allocs stop. Plugins are last: without them no volume can be unmounted. */
enum wave { WAVE_WORK, WAVE_SYSTEM, WAVE_PLUGINS, WAVES };

struct client {
	struct client_stop stop;   /* the last request; it applies while `work` watches */
	struct changed_watch work; /* watches while a request is pending */
};

void
client_alloc_run(struct sup *sup, struct sup_alloc *sa)
{
	if (!sa->runner)
		alloc_runner_new(sup, sa, false);
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
	if (!sa->runner)
		alloc_runner_new(sup, sa, true);
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
	if (sa->runner)
		alloc_tell_tasks(sa->runner, EVENT_RECONNECTED, NULL);
}

void
client_alloc_set_done(struct sup *sup, struct sup_alloc *sa)
{
	const struct alloc_record rec = { .done = true };

	alloc_record_write(sup, sa, &rec);
}

void
client_free(struct sup *sup)
{
	if (!sup->client)
		return;
	alloc_foreach(sup, sa)
	{
		alloc_runner_free(sa->runner);
		sa->runner = NULL;
	}
	alloc_hooks_end(sup);
	client_stop_no_more(sup);
	health_free(sup);
	free_p(&sup->client);
}

/* The last supervisor had completed it, and it is not to be removed. */
static bool
is_at_rest(const struct sup_alloc *sa)
{
	cleanup_done(alloc_record) struct alloc_record rec;

	alloc_record_init(&rec);
	alloc_record_read(sa, &rec);
	return rec.done && !rec.destroy;
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
wave_of(const struct client_stop *stop, const struct sup_alloc *sa)
{
	if (is_plugin(sa))
		return WAVE_PLUGINS;
	return stop->lets_finish && sa->job->job.type == JOB_SYSTEM ? WAVE_SYSTEM : WAVE_WORK;
}

static void
stop_alloc(struct sup *sup, struct sup_alloc *sa)
{
	sa->a.desired_status = DESIRED_STOP;
	str_set(&sa->a.desired_description, sup->client->stop.why);
	alloc_changed(sup, sa);
	alloc_stop_soon(sa->runner);
}

/* Stops the allocs of this wave. Returns how many have not ended. */
static unsigned
stop_wave(struct sup *sup, enum wave wave)
{
	const struct client_stop *stop = &sup->client->stop;
	unsigned active = 0;

	alloc_foreach(sup, sa)
	{
		if (!sa->runner || sa->runner->phase >= ALLOC_DONE || wave_of(stop, sa) != wave ||
		    (stop->spares_system && is_system(sa)))
			continue;
		active++;
		if (!sa->runner->stopping &&
		    !(wave == WAVE_WORK && stop->lets_finish && is_batch(sa)))
			stop_alloc(sup, sa);
	}
	return active;
}

/* Re-checks whether the pending request is complete; then calls its done(). */
static void
on_work_changed(struct sup *sup, struct changed_watch *w)
{
	const struct client_stop *stop = &sup->client->stop;

	for (enum wave wave = 0; wave < WAVES; wave++)
		if (stop_wave(sup, wave) > 0)
			return;
	if ((!stop->spares_system && runs_count(sup) > probe_tasks_stuck(sup)) ||
	    child_busy(sup, IPC_MOUNT_HELPER) || child_busy(sup, IPC_FILE_HELPER))
		return;
	client_stop_no_more(sup);
	volumes_warn_left(sup);
	stop->done(sup);
}

void
client_stop_all(struct sup *sup, const struct client_stop *wanted)
{
	journal_info(JOURNAL_NODE, NULL, "stopping all allocations%s: %s",
	    wanted->spares_system ? " but those of system jobs" : "", wanted->why);
	sup->client->stop = *wanted;
	changed_watch(sup, CHANGED_WORK, &sup->client->work);
	changed_mark(sup, CHANGED_WORK);
}

void
client_stop_no_more(struct sup *sup)
{
	changed_unwatch(sup, &sup->client->work);
}

/* Hooks unmount the volumes of an alloc that is not done. The removal of an alloc that is done only
 * waits until its volumes are unmounted. */
static bool
unmounts_by_hook(const struct sup_alloc *sa)
{
	return sa && sa->runner && sa->runner->phase < ALLOC_DONE;
}

static void
on_run_gone(struct sup *sup, const struct id *alloc)
{
	alloc_runner_run_gone(sup, alloc);
	probe_tasks_run_gone(sup, alloc);
	images_check_soon(sup);
}

int
client_restore(struct sup *sup, struct err *e)
{
	int r;

	sup->client = mem_new(struct client);
	sup->client->work.fn = on_work_changed;
	alloc_hooks_start(sup);
	if ((r = runs_load(sup, on_run_gone, e)) < 0 || (r = health_new(sup, e)) < 0)
		return r;
	alloc_foreach(sup, sa)
	{
		if (alloc_client_terminal(&sa->a) && is_at_rest(sa) && !alloc_has_secrets(sup, sa))
			continue;
		alloc_runner_new(sup, sa, true);
	}
	alloc_hooks_restored(sup);
	runs_reap_others(sup);
	probe_tasks_remove_left(sup);
	volumes_undo_left(sup, unmounts_by_hook);
	leftovers_remove(sup);
	return 0;
}

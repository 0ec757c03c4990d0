// SPDX-License-Identifier: Apache-2.0
/*
 * hook_disk.c: measures the directories of running allocs every 30 s. An alloc that uses more than
 * its group's ephemeral_disk fails, with an event that says how much it uses. Where the file system
 * enforces the limit, an event reports once that the disk is full. Logs have limits of their own
 * and are not counted. Runs in: supervisor.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/mem.h"
#include "supervisor/alloc/alloc_hooks.h"
#include "supervisor/alloc/alloc_kill.h"
#include "supervisor/alloc/alloc_state.h"
#include "supervisor/alloc/task_events.h"
#include "supervisor/core/sup_calls.h"
#include "supervisor/core/sup_timer.h"

#define ROUND_USEC 30000000
#define MIB        (1024 * 1024)
/* A file system that enforces the limit may exceed it by its own blocks for fragmented files, about
 * one for each 300 blocks of data. */
#define SLACK(limit) (MIB + (limit) / 128)

/* Of the agent: each round measures all running allocs, in batches. */
struct disk_watch {
	struct sup_timer timer;
	uint64_t call;                    /* measures the batch; 0: no round is running */
	struct id batch[FILE_ALLOCS_MAX]; /* the allocs that are being measured */
	size_t n_batch;
	struct id last; /* the round continues after this alloc of the table */
	bool has_last;
};

/* Of one alloc. */
struct disk {
	bool full;     /* an event has reported it */
	bool exceeded; /* its tasks have failed because of it */
};

static struct disk *
state_of(const struct alloc_runner *ar)
{
	return alloc_hook_state(ar, &alloc_hook_disk);
}

/* Restores the state from the events of the tasks. */
static void
init_disk(struct alloc_runner *ar, const struct alloc_record *kept)
{
	struct disk *d = state_of(ar);

	for (unsigned i = 0; ar->restored && i < ar->n_tasks; i++) {
		const struct task_state *s = task_runner_state(&ar->tasks[i]);

		for (size_t k = 0; k < s->events.n; k++) {
			if (!task_event_is(&s->events.v[k], EVENT_DISK_EXCEEDED))
				continue;
			d->full = true;
			d->exceeded |= s->events.v[k].fails_task;
		}
	}
	ar->ends_at_once |= d->exceeded;
}

static uint64_t
limit_mb(const struct sup_alloc *sa)
{
	return (uint64_t)group_disk_mb(sa->group);
}

static bool
is_watched(const struct sup_alloc *sa)
{
	return sa->runner && sa->runner->phase == ALLOC_RUNNING &&
	       !state_of(sa->runner)->exceeded && limit_mb(sa) > 0;
}

/* Adds the event to each task that was not told to stop. */
static void
tell_running_tasks(struct alloc_runner *ar, const char *text, bool fails)
{
	for (unsigned i = 0; i < ar->n_tasks; i++) {
		struct task_runner *tr = &ar->tasks[i];
		struct task_event ev;

		if (tr->phase == TASK_DEAD || tr->stage == STAGE_POSTSTOP || tr->killed)
			continue;
		task_event_disk_exceeded(
		    &ev, clock_real_ns(), text, (int64_t)(limit_mb(ar->sa) * MIB));
		if (fails)
			task_event_set_fails(&ev);
		task_runner_event(tr, &ev);
	}
}

static void
fail_alloc(struct alloc_runner *ar, uint64_t used_mb)
{
	char text[160];

	(void)snprintf(text, sizeof text,
	    "the allocation's directory uses %" PRIu64
	    " MiB of disk, its ephemeral_disk has %" PRIu64 " MiB",
	    used_mb, limit_mb(ar->sa));
	state_of(ar)->exceeded = true;
	ar->ends_at_once = true;
	tell_running_tasks(ar, text, true);
	alloc_kill_hurry(ar);
}

static void
tell_full(struct alloc_runner *ar)
{
	char text[160];

	(void)snprintf(text, sizeof text,
	    "the allocation's directory uses all %" PRIu64
	    " MiB of its ephemeral_disk: further writes fail",
	    limit_mb(ar->sa));
	tell_running_tasks(ar, text, false);
}

/*
 * enforced: the limit in bytes that the file system enforces; 0: none. If it does, writes of the
 * task fail and the task itself can react. Only a task with CAP_SYS_RESOURCE can exceed that limit.
 */
static void
apply_limit(struct alloc_runner *ar, uint64_t bytes, uint64_t enforced)
{
	struct disk *d = state_of(ar);
	uint64_t used = bytes / MIB + (bytes % MIB != 0);
	bool exceeds = enforced > 0 ? bytes > enforced + SLACK(enforced) : used > limit_mb(ar->sa);
	bool full = enforced > 0 && bytes + MIB > enforced, was_full = d->full;

	d->full = full || (was_full && bytes > enforced / 10 * 9);
	if (exceeds)
		fail_alloc(ar, used);
	else if (full && !was_full)
		tell_full(ar);
}

static void measure_next(struct sup *sup);

static void
on_usage(struct sup *sup, void *arg, int r, const void *rep, int fd, const struct err *e)
{
	struct {
		uint64_t bytes, limit;
	} used;
	struct disk_watch *w = sup->disk_watch;
	const void *map = NULL;
	size_t len = 0;

	w->call = 0;
	if (r < 0)
		log_warn("%s", e->msg);
	else if ((r = fd_memfd_map(fd, sizeof used * FILE_ALLOCS_MAX, &map, &len)) < 0)
		log_warn("read the disk usage of allocations: %s", strerrordesc_np(-r));
	for (size_t i = 0; map && i < len / sizeof used && i < w->n_batch; i++) {
		struct sup_alloc *sa = alloc_find(sup, &w->batch[i]);

		memcpy(&used, (const uint8_t *)map + i * sizeof used, sizeof used);
		if (sa && is_watched(sa))
			apply_limit(sa->runner, used.bytes, used.limit);
	}
	if (map)
		(void)munmap((void *)(uintptr_t)map, len);
	close_p(&fd);
	measure_next(sup);
}

/* The first alloc of the next batch; NULL: the round is over, or its last alloc was removed. */
static struct sup_alloc *
next_alloc(struct sup *sup)
{
	const struct disk_watch *w = sup->disk_watch;
	struct sup_alloc *last;

	if (!w->has_last)
		return alloc_first(sup);
	last = alloc_find(sup, &w->last);
	return last ? alloc_next(last) : NULL;
}

static void
measure_next(struct sup *sup)
{
	struct file_disk_usage_req req = { 0 };
	struct disk_watch *w = sup->disk_watch;

	w->n_batch = 0;
	for (struct sup_alloc *sa = next_alloc(sup); sa && w->n_batch < FILE_ALLOCS_MAX;
	     sa = alloc_next(sa)) {
		w->last = sa->id;
		w->has_last = true;
		if (!is_watched(sa))
			continue;
		w->batch[w->n_batch] = sa->id;
		req.allocs[w->n_batch++].id = sa->id;
	}
	if (w->n_batch == 0)
		return;
	req.n_allocs = (uint32_t)w->n_batch;
	w->call = file_call_disk_usage(sup, &req, on_usage, NULL);
}

static void
on_round(void *arg)
{
	struct sup *sup = arg;
	struct disk_watch *w = sup->disk_watch;

	sup_timer_set(sup, &w->timer, CLOCK_MONOTONIC, ROUND_USEC, on_round, sup);
	if (w->call)
		return; /* the last round has not ended */
	w->has_last = false;
	measure_next(sup);
}

static void
start_rounds(struct sup *sup)
{
	sup->disk_watch = mem_new(struct disk_watch);
	sup_timer_set(sup, &sup->disk_watch->timer, CLOCK_MONOTONIC, ROUND_USEC, on_round, sup);
}

static void
end_rounds(struct sup *sup)
{
	struct disk_watch *w = sup->disk_watch;

	child_call_cancel(sup, w->call);
	sup_timer_cancel(&w->timer);
	free(w);
	sup->disk_watch = NULL;
}

ALLOC_HOOK(disk, "disk_watch", sizeof(struct disk), .start = start_rounds, .end = end_rounds,
    .init = init_disk);

// SPDX-License-Identifier: Apache-2.0
/* disk_watch.c: measures the disk usage of allocs. Runs in: supervisor. */
#include "supervisor/alloc/disk_watch.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <systemd/sd-event.h>
#include <time.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "common/log.h"
#include "supervisor/alloc/alloc_runner.h"
#include "supervisor/core/sup_calls.h"

#define ROUND_USEC 30000000
#define MIB        (1024 * 1024)
/* The file system's own blocks for a fragmented file, about one for each 300, may pass a limit. */
#define SLACK(limit) (MIB + (limit) / 128)

static sd_event_source *timer;
static uint64_t call;
static struct id batch[FILE_ALLOCS_MAX]; /* that the call is about */
static size_t n_batch;
static struct id last; /* of the batch: the round goes on after it in the table */
static bool has_last;

/* Of one alloc. */
struct disk {
	bool full; /* an event has reported it */
};

static struct disk *
state_of(const struct alloc_runner *ar)
{
	return alloc_hook_state(ar, &alloc_hook_disk);
}

/* By the events of a restored alloc. */
static int
init(struct alloc_runner *ar, const json_t *kept)
{
	for (unsigned i = 0; ar->restored && i < ar->n_tasks; i++) {
		const struct task_state *s = task_runner_state(&ar->tasks[i]);

		for (size_t k = 0; s && k < s->events.n; k++) {
			if (!task_event_is(&s->events.v[k], EVENT_DISK_EXCEEDED))
				continue;
			state_of(ar)->full = true;
			ar->disk_exceeded |= s->events.v[k].fails_task;
		}
	}
	return 0;
}

const struct alloc_hook alloc_hook_disk = {
	.name = "disk_watch",
	.state_size = sizeof(struct disk),
	.init = init,
};

static uint64_t
limit_mb(const struct sup_alloc *sa)
{
	return (uint64_t)group_disk_mb(sa->group);
}

static bool
is_watched(const struct sup_alloc *sa)
{
	return sa->runner && sa->runner->phase == ALLOC_RUNNING && !sa->runner->disk_exceeded &&
	       limit_mb(sa) > 0;
}

/*
 * enforced: the limit that the file system enforces; 0: none. There a write of the task fails and
 * the task decides; a task with CAP_SYS_RESOURCE can still pass the limit.
 */
static void
apply_limit(struct sup_alloc *sa, uint64_t bytes, uint64_t enforced)
{
	struct alloc_runner *ar = sa->runner;
	uint64_t limit = limit_mb(sa), used = bytes / MIB + (bytes % MIB != 0);
	bool exceeds = enforced > 0 ? bytes > enforced + SLACK(enforced) : used > limit;
	bool full = enforced > 0 && bytes + MIB > enforced, was_full = state_of(ar)->full;
	char text[160];

	state_of(ar)->full = full || (was_full && bytes > enforced / 10 * 9);
	if (exceeds) {
		(void)snprintf(text, sizeof text,
		    "the allocation's directory takes %" PRIu64
		    " MiB of the disk, its ephemeral_disk has %" PRIu64 " MiB",
		    used, limit);
		alloc_runner_disk_exceeded(ar, text, (int64_t)(limit * MIB), true);
	} else if (full && !was_full) {
		(void)snprintf(text, sizeof text,
		    "the allocation's directory has taken all %" PRIu64
		    " MiB of its ephemeral_disk: writing more fails",
		    limit);
		alloc_runner_disk_exceeded(ar, text, (int64_t)(limit * MIB), false);
	}
}

static void ask_next(struct sup *sup);

static void
on_usage(struct sup *sup, void *arg, int r, const void *rep, int fd, const struct err *e)
{
	struct {
		uint64_t bytes, limit;
	} used;
	const void *map = NULL;
	size_t len = 0;

	call = 0;
	if (r < 0)
		log_warn("%s", e->msg);
	else if ((r = fd_memfd_map(fd, sizeof used * FILE_ALLOCS_MAX, &map, &len)) < 0)
		log_warn("read what allocations use of the disk: %s", strerrordesc_np(-r));
	for (size_t i = 0; map && i < len / sizeof used && i < n_batch; i++) {
		struct sup_alloc *sa = alloc_find(sup, &batch[i]);

		memcpy(&used, (const uint8_t *)map + i * sizeof used, sizeof used);
		if (sa && is_watched(sa))
			apply_limit(sa, used.bytes, used.limit);
	}
	if (map)
		(void)munmap((void *)(uintptr_t)map, len);
	close_p(&fd);
	ask_next(sup);
}

/* Asks for the next allocs in the table; the round ends with the last one. */
static void
ask_next(struct sup *sup)
{
	struct file_disk_usage_req req = { 0 };
	struct sup_alloc *sa = has_last ? alloc_find(sup, &last) : NULL;

	n_batch = 0;
	for (sa = sa         ? alloc_next(sa)
		  : has_last ? NULL
			     : alloc_first(sup);
	     sa && n_batch < FILE_ALLOCS_MAX; sa = alloc_next(sa)) {
		last = sa->id;
		has_last = true;
		if (!is_watched(sa))
			continue;
		batch[n_batch] = sa->id;
		req.allocs[n_batch++].id = sa->id;
	}
	if (n_batch == 0)
		return;
	req.n_allocs = (uint32_t)n_batch;
	call = file_call_disk_usage(sup, &req, on_usage, NULL);
}

static int
on_round(sd_event_source *source, uint64_t usec, void *userdata)
{
	(void)sd_event_source_set_time_relative(timer, ROUND_USEC);
	(void)sd_event_source_set_enabled(timer, SD_EVENT_ONESHOT);
	if (call)
		return 0; /* the last round is not over yet */
	has_last = false;
	ask_next(userdata);
	return 0;
}

int
disk_watch_start(struct sup *sup, struct err *e)
{
	int r = sd_event_add_time_relative(
	    sup->event, &timer, CLOCK_MONOTONIC, ROUND_USEC, 0, on_round, sup);

	return r < 0 ? err_set(e, r, "start to watch what allocations use of the disk") : 0;
}

void
disk_watch_stop(struct sup *sup)
{
	child_call_cancel(sup, call);
	call = 0;
	timer = sd_event_source_disable_unref(timer);
}

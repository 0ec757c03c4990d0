// SPDX-License-Identifier: Apache-2.0
/* alloc_gc.c: removes allocs that are over while the disk is too full. Runs in: supervisor. */
#include "supervisor/alloc/alloc_gc.h"

#include <systemd/sd-event.h>
#include <time.h>

#include "common/log.h"
#include "supervisor/source/source.h"
#include "supervisor/core/sup_calls.h"

/* A tree that was removed takes a while to be gone from the disk: so long until the next look. */
#define AGAIN_USEC 5000000

static sd_event_source *timer;
static uint64_t call;
static bool full; /* it was at the last look */

static void
look_in(uint64_t usec)
{
	if (sd_event_source_set_time_relative(timer, usec) < 0 ||
	    sd_event_source_set_enabled(timer, SD_EVENT_ONESHOT) < 0)
		log_error("alloc_gc: no timer");
}

static uint64_t
percent(uint64_t total, uint64_t left)
{
	return total > 0 && left < total ? (total - left) * 100 / total : 0;
}

static void
on_stat(struct sup *sup, void *arg, int r, const void *rep, int fd, const struct err *e)
{
	const struct file_disk_stat_rep *disk = rep;
	const struct agent_config *config = sup->config;
	uint64_t bytes, inodes, n = 0;
	bool was_full = full;

	call = 0;
	if (r < 0) {
		log_warn("look for room in the data directory: %s", e->msg);
		look_in(config->gc_interval_ms * 1000);
		return;
	}
	bytes = percent(disk->total_bytes, disk->free_bytes);
	inodes = percent(disk->total_inodes, disk->free_inodes);
	full = bytes > config->gc_disk_percent || inodes > config->gc_inode_percent;
	while (full && n < config->gc_parallel_destroys &&
	       sup->source->ops->collect_oldest(sup->source))
		n++;
	if (n > 0)
		log_info("the disk is %d %% full, %d %% of its inodes are in use: %d allocations "
			 "that are over are removed",
		    (int)bytes, (int)inodes, (int)n);
	else if (full && !was_full)
		log_warn("the disk is %d %% full, %d %% of its inodes are in use, and there is no "
			 "allocation that could be removed",
		    (int)bytes, (int)inodes);
	look_in(n > 0 ? AGAIN_USEC : config->gc_interval_ms * 1000);
}

static int
on_time(sd_event_source *source, uint64_t usec, void *userdata)
{
	const struct file_disk_stat_req req = {};

	call = file_call_disk_stat(userdata, &req, on_stat, NULL);
	return 0;
}

int
alloc_gc_start(struct sup *sup, struct err *e)
{
	int r = sd_event_add_time_relative(sup->event, &timer, CLOCK_MONOTONIC,
	    sup->config->gc_interval_ms * 1000, 0, on_time, sup);

	return r < 0 ? err_set(e, r, "start the collection of allocations") : 0;
}

void
alloc_gc_stop(struct sup *sup)
{
	child_call_cancel(sup, call);
	call = 0;
	timer = sd_event_source_disable_unref(timer);
}

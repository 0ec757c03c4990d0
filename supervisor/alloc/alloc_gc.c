// SPDX-License-Identifier: Apache-2.0
/* alloc_gc.c: removes images that no task uses, and allocs that have ended, while the disk is too
 * full. Runs in: supervisor. */
#include "supervisor/alloc/alloc_gc.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "supervisor/core/journal.h"
#include "supervisor/core/sup_calls.h"
#include "supervisor/core/sup_timer.h"
#include "supervisor/image/image_gc.h"
#include "supervisor/node/node_events.h"
#include "supervisor/source/source.h"

/* The next check after a removal: the file system frees a removed tree with a delay. */
#define AGAIN_USEC 5000000

struct alloc_gc {
	struct sup_timer timer;
	uint64_t call; /* 0: no check is under way */
	bool full;     /* the result of the last check */
};

static void on_time(void *arg);

static void
check_after(struct sup *sup, uint64_t usec)
{
	sup_timer_set(sup, &sup->alloc_gc->timer, CLOCK_MONOTONIC, usec, on_time, sup);
}

static uint64_t
percent_used(uint64_t total, uint64_t left)
{
	return total > 0 && left < total ? (total - left) * 100 / total : 0;
}

/* Removes what tasks need the least; disk says how full it is. Returns false if there is nothing.
 */
static bool
make_space(struct sup *sup, const char *disk)
{
	unsigned n = 0;

	if (images_remove_oldest(sup, disk))
		return true;
	while (
	    n < sup->config->gc_parallel_destroys && sup->source->ops->collect_oldest(sup->source))
		n++;
	if (n > 0)
		journal_info(JOURNAL_DISK, NULL, "%s: removing %u ended allocations", disk, n);
	return n > 0;
}

static void
on_stat(struct sup *sup, void *arg, int r, const void *rep, int fd, const struct err *e)
{
	const struct file_disk_stat_rep *disk = rep;
	const struct agent_config *config = sup->config;
	struct alloc_gc *gc = sup->alloc_gc;
	bool was_full = gc->full, frees;
	uint64_t bytes, inodes;
	char text[96];

	gc->call = 0;
	if (r < 0) {
		journal_warn(
		    JOURNAL_DISK, NULL, "check whether the data directory is full: %s", e->msg);
		check_after(sup, config->gc_interval_ms * 1000);
		return;
	}
	bytes = percent_used(disk->total_bytes, disk->free_bytes);
	inodes = percent_used(disk->total_inodes, disk->free_inodes);
	(void)snprintf(text, sizeof text,
	    "the disk is %d %% full and %d %% of its inodes are in use", (int)bytes, (int)inodes);
	gc->full = bytes > config->gc_disk_percent || inodes > config->gc_inode_percent;
	frees = gc->full && make_space(sup, text);
	if (gc->full != was_full)
		node_event_say(sup, "Disk",
		    "The disk is %d %% full, %d %% of its inodes are used%s", (int)bytes,
		    (int)inodes, gc->full ? "" : ": there is room again");
	if (gc->full && !frees && !was_full)
		journal_warn(JOURNAL_DISK, NULL,
		    "%s, but there is no unused image and no ended allocation to remove", text);
	check_after(sup, frees ? AGAIN_USEC : config->gc_interval_ms * 1000);
}

static void
on_time(void *arg)
{
	const struct file_disk_stat_req req = {};
	struct sup *sup = arg;

	sup->alloc_gc->call = file_call_disk_stat(sup, &req, on_stat, NULL);
}

void
alloc_gc_new(struct sup *sup)
{
	sup->alloc_gc = mem_new(struct alloc_gc);
	check_after(sup, sup->config->gc_interval_ms * 1000);
}

void
alloc_gc_free(struct sup *sup)
{
	child_call_cancel(sup, sup->alloc_gc->call);
	sup_timer_cancel(&sup->alloc_gc->timer);
	free_p(&sup->alloc_gc);
}

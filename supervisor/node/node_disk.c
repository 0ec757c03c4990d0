// SPDX-License-Identifier: Apache-2.0
/* node_disk.c: how much of the data directory's disk is for allocs. Runs in: supervisor. */
#include "supervisor/node/node_disk.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/number.h"
#include "proto/agent_config.h"
#include "supervisor/core/store.h"
#include "supervisor/node/node_attr.h"
#include "supervisor/table/alloc_table.h"

#define KEY "disk_mb"

struct disk_size {
	int64_t mb; /* as in the row, or as it will be */
	struct dirty row;
};

static int
write_row(struct sup *sup, struct dirty *d, struct err *e)
{
	char text[24];

	(void)snprintf(text, sizeof text, "%" PRId64, sup->disk->mb);
	return store_meta_put(sup->store, KEY, text, e);
}

/* Returns the most that the allocs on this node can have written. */
static int64_t
held_mb(struct sup *sup)
{
	int64_t mb = 0;

	alloc_foreach(sup, sa) mb = number_add(mb, group_disk_mb(sa->group));
	return mb;
}

/* Keeps the size of the last start while it lies between what is free now and what is free without
 * the allocs. */
static int64_t
choose_size(struct sup *sup, int64_t free_mb, int64_t total_mb)
{
	int64_t most = number_add(free_mb, held_mb(sup)), mb;
	cleanup_free char *text = NULL;
	struct disk_size *disk = sup->disk;
	struct err e = { 0 };

	disk->mb = store_meta_get(sup->store, KEY, &text, &e) < 0 ? -1 : atoll(text);
	most = most < total_mb ? most : total_mb;
	mb = disk->mb > most ? most : disk->mb;
	mb = mb < free_mb ? free_mb : mb;
	if (mb != disk->mb) {
		disk->mb = mb;
		turn_write(sup, &disk->row);
	}
	return mb;
}

void
node_disk_free(struct sup *sup)
{
	if (!sup->disk)
		return;
	turn_forget_write(sup, &sup->disk->row);
	free_p(&sup->disk);
}

void
node_disk_take(struct sup *sup, struct node *n)
{
	const struct agent_config *c = sup->config;
	uint64_t total = c->disk_total_mb << 20, left = c->disk_free_mb << 20;
	struct statvfs fs = { 0 };

	sup->disk = mem_new(struct disk_size);
	sup->disk->row = (struct dirty){ .write = write_row, .point = CRASH_ROW_DISK };
	if (statvfs(sup->args.data_dir, &fs) < 0)
		log_warn("read the free space of %s: %m", sup->args.data_dir);
	if (total == 0)
		total = (uint64_t)fs.f_blocks * fs.f_frsize;
	if (left == 0)
		left = (uint64_t)fs.f_bavail * fs.f_frsize;
	node_attrf(n, "unique.storage.bytestotal", "%" PRIu64, total);
	node_attrf(n, "unique.storage.bytesfree", "%" PRIu64, left);
	n->node_resources.disk.disk_mb =
	    c->disk_free_mb > 0 ? (int64_t)c->disk_free_mb
				: choose_size(sup, (int64_t)(left >> 20), (int64_t)(total >> 20));
	n->resources.disk_mb = n->node_resources.disk.disk_mb;
}

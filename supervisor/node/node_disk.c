// SPDX-License-Identifier: Apache-2.0
/* node_disk.c: how much of the data directory's disk there is for allocs. Runs in: supervisor. */
#include "supervisor/node/node_disk.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/number.h"
#include "proto/agent_config.h"
#include "supervisor/core/store.h"
#include "supervisor/node/node_attr.h"
#include "supervisor/table/alloc_table.h"

#define KEY "disk_mb"

static int64_t kept_mb; /* what the row says, or will */

static int
write_kept(struct sup *sup, struct dirty *d, struct err *e)
{
	char text[24];

	(void)snprintf(text, sizeof text, "%" PRId64, kept_mb);
	return store_meta_put(sup->store, KEY, text, e);
}

static struct dirty row = { .write = write_kept, .point = CRASH_ROW_DISK };

/* The most that the allocs whose directories may be there have written. */
static int64_t
held_mb(struct sup *sup)
{
	int64_t mb = 0;

	alloc_foreach(sup, sa) mb = number_add(mb, group_disk_mb(sa->group));
	return mb;
}

static int64_t
settle(struct sup *sup, int64_t free_mb, int64_t total_mb)
{
	int64_t most = number_add(free_mb, held_mb(sup)), mb;
	cleanup_free char *text = NULL;
	struct err e = { 0 };

	kept_mb = store_meta_get(sup->store, KEY, &text, &e) < 0 ? -1 : atoll(text);
	most = most < total_mb ? most : total_mb;
	mb = kept_mb > most ? most : kept_mb;
	mb = mb < free_mb ? free_mb : mb;
	if (mb != kept_mb) {
		kept_mb = mb;
		turn_write(sup, &row);
	}
	return mb;
}

void
node_disk_take(struct sup *sup, struct node *n)
{
	const struct agent_config *c = sup->config;
	uint64_t total = c->disk_total_mb << 20, left = c->disk_free_mb << 20;
	struct statvfs fs = { 0 };

	if (statvfs(sup->args.data_dir, &fs) < 0)
		log_warn("look at the disk of %s: %m", sup->args.data_dir);
	if (total == 0)
		total = (uint64_t)fs.f_blocks * fs.f_frsize;
	if (left == 0)
		left = (uint64_t)fs.f_bavail * fs.f_frsize;
	node_attrf(n, "unique.storage.bytestotal", "%" PRIu64, total);
	node_attrf(n, "unique.storage.bytesfree", "%" PRIu64, left);
	n->node_resources.disk.disk_mb =
	    c->disk_free_mb > 0 ? (int64_t)c->disk_free_mb
				: settle(sup, (int64_t)(left >> 20), (int64_t)(total >> 20));
	n->resources.disk_mb = n->node_resources.disk.disk_mb;
}

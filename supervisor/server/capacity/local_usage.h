/* SPDX-License-Identifier: Apache-2.0 */
/* local_usage.h: how much of the node is used by allocs that are not over. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_CAPACITY_LOCAL_USAGE_H
#define DROVER_SUPERVISOR_SERVER_CAPACITY_LOCAL_USAGE_H

#include "model/job.h"
#include "model/node.h"
#include "supervisor/server/base/local.h"

struct local_usage {
	int64_t cpu, memory_mb, cores, disk_mb;
};

void local_usage_init(struct local *l);
void local_usage_free(struct local *l);
/* Returns what all allocs together use. */
struct local_usage local_usage_now(const struct local *l);
void local_usage_reserve(struct local *l, const struct local_usage *usage);
void local_usage_release(struct local *l, const struct local_usage *usage);

/* Adds what an alloc of this group uses to *usage. */
void local_usage_add(struct local_usage *usage, const struct task_group *group);
bool local_usage_equal(const struct local_usage *a, const struct local_usage *b);
/* Returns NULL if the node has *more left beside *used; otherwise the exhausted dimension. */
const char *local_usage_exhausted(
    const struct node *node, const struct local_usage *used, const struct local_usage *more);

#endif

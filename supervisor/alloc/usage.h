/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage.h: the resource usage of this machine and its allocs, sampled on request only. The first
 * request is answered a moment later, when there are two samples. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_ALLOC_USAGE_H
#define DROVER_SUPERVISOR_ALLOC_USAGE_H

#include "common/id.h"
#include "model/stats.h"
#include "supervisor/core/sup.h"

/* The answer, exactly once, within the call or later: host or alloc, as requested. Both are NULL
 * with *e: -ENOENT, there is no such alloc or task. */
typedef void usage_cb(struct sup *sup, void *arg, const struct host_stats *host,
    const struct alloc_usage *alloc, const struct err *e);

void usage_ask_host(struct sup *sup, usage_cb *cb, void *arg);
/* task: its name, or "" for all tasks that have a run. */
void usage_ask_alloc(
    struct sup *sup, const struct id *alloc, const char *task, usage_cb *cb, void *arg);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage.h: what this machine and its allocs use, for who asks. Nothing is sampled while nobody
 * does; so the first answer comes a moment later, when there are two samples. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_ALLOC_USAGE_H
#define DROVER_SUPERVISOR_ALLOC_USAGE_H

#include "common/id.h"
#include "model/stats.h"
#include "supervisor/core/sup.h"

/* The answer, exactly once, within the call or later: one of the two, by what was asked; both NULL
 * with *e: -ENOENT (no such alloc or task), -ENOMEM. */
typedef void usage_cb(struct sup *sup, void *arg, const struct host_stats *host,
    const struct alloc_usage *alloc, const struct err *e);

void usage_ask_host(struct sup *sup, usage_cb *cb, void *arg);
/* Of all tasks that have a run; or of one, "" for all. */
void usage_ask_alloc(
    struct sup *sup, const struct id *alloc, const char *task, usage_cb *cb, void *arg);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* lease_page.h: the lease page <rt>/lease: reads it, and restarts the agent when it is removed.
 * Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_DRIVER_LEASE_PAGE_H
#define DROVER_SUPERVISOR_DRIVER_LEASE_PAGE_H

#include <sys/stat.h>

#include "common/lease.h"
#include "supervisor/core/sup.h"

/*
 * Watches the page. If it is removed or replaced, the agent's processes are restarted, because the
 * launcher makes the page before each start and heartbeat gets the only writable descriptor then.
 * Tasks continue, and their executors get the new page. A failure to watch is logged.
 */
void lease_page_watch(struct sup *sup);
void lease_page_unwatch(struct sup *sup);

/* Opens the page read-only and fills in its stat. Returns the descriptor, or -errno with *e. */
int lease_page_open(const struct sup *sup, struct stat *ret, struct err *e);
/* Returns 0, or -errno with *e: -ENOENT if the page was removed and the agent is about to restart.
 */
int lease_page_read(const struct sup *sup, struct lease_page *ret, struct err *e);

#endif

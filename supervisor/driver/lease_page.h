/* SPDX-License-Identifier: Apache-2.0 */
/* lease_page.h: <rt>/lease as the supervisor sees it: read by name, made anew when somebody took it
 * away. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_DRIVER_LEASE_PAGE_H
#define DROVER_SUPERVISOR_DRIVER_LEASE_PAGE_H

#include <sys/stat.h>

#include "common/lease.h"
#include "supervisor/core/sup.h"

/*
 * Watches the page: when it is removed or another file takes its place, the set of processes is
 * started anew, because the launcher makes the page before each start and heartbeat gets its only
 * writable descriptor then. Tasks go on; their executors get the new page. What keeps it from being
 * watched is logged.
 */
void lease_page_watch(struct sup *sup);
void lease_page_unwatch(void);

/* Read only, with its stat: the descriptor is the caller's. -errno with *e. */
int lease_page_open(const struct sup *sup, struct stat *ret, struct err *e);
/* 0, or -errno with *e; -ENOENT: it is gone, and is being made anew. */
int lease_page_read(const struct sup *sup, struct lease_page *ret, struct err *e);

#endif

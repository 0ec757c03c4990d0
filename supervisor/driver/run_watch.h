/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_watch.h: many executors' sockets as one source of the work loop. sd-event asks for all ready
 * descriptors and then handles one; with a thousand ready, which is a restart or a stop of
 * everything, that is a million. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_DRIVER_RUN_WATCH_H
#define DROVER_SUPERVISOR_DRIVER_RUN_WATCH_H

#include "supervisor/core/sup.h"

/* Embedded in what is watched; that lives until the end of the turn in which it was removed. */
struct run_watch {
	int fd; /* -1: not watched */
	void (*ready)(struct run_watch *w);
};

/* Calls w->ready() while fd can be read or has ended. fd stays the caller's. 0 or -errno. */
int run_watch_add(struct sup *sup, struct run_watch *w, int fd);
/* Before fd is closed. */
void run_watch_remove(struct run_watch *w);
void run_watch_free(void);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_watch.h: the sockets of all executors as one source of the work loop. sd-event gets all ready
 * descriptors from the kernel, handles one and asks again, so that n ready ones would take n * n
 * steps: too many when everything restarts or stops. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_DRIVER_RUN_WATCH_H
#define DROVER_SUPERVISOR_DRIVER_RUN_WATCH_H

#include "supervisor/core/sup.h"

/* Embedded in the owner of the socket. After run_watch_remove() the owner must live until the end
 * of the turn. */
struct run_watch {
	int fd; /* -1: not watched */
	void (*ready)(struct run_watch *w);
};

void run_poll_new(struct sup *sup);
void run_poll_free(struct sup *sup);

/* Calls w->ready() while fd is readable or has ended. fd stays the caller's. Returns 0 or -errno.
 */
int run_watch_add(struct sup *sup, struct run_watch *w, int fd);
/* To be called before fd is closed. */
void run_watch_remove(struct sup *sup, struct run_watch *w);

#endif

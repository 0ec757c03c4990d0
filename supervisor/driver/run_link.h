/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_link.h: the connection of one run with its executor: the orders that the executor gets, and
 * what it reports. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_DRIVER_RUN_LINK_H
#define DROVER_SUPERVISOR_DRIVER_RUN_LINK_H

#include "common/id.h"
#include "proto/executor.h"
#include "supervisor/core/sup.h"
#include "supervisor/core/sup_timer.h"
#include "supervisor/core/sup_turn.h"
#include "supervisor/driver/run.h"
#include "supervisor/driver/run_watch.h"

struct run_link;

/* Callbacks of the run: each comes from the work loop, and may close the connection. */
struct run_link_ops {
	/* The state of the task: at the begin of each connection, and when it changes. */
	void (*hello)(struct run_link *l, const struct exe_hello *hello);
	void (*exited)(struct run_link *l, const struct exe_exited *exited);
	/* The task's socket for requests of the API. A function that keeps *fd sets it to -1. */
	void (*api)(struct run_link *l, int *fd);
	/* There is no executor (any more): its record says how the run ended. */
	void (*gone)(struct run_link *l);
	/* The executor accepts no connection. */
	void (*stuck)(struct run_link *l);
};

/* Embedded in the run. All but ops is private. */
struct run_link {
	const struct run_link_ops *ops;
	struct sup *sup;
	const struct id *run; /* the run's */
	const char *task;     /* the run's: its name in log messages */
	int fd;               /* -1: not connected */
	bool greeted;         /* a HELLO was received on this connection */
	struct run_watch watch;
	struct sup_timer retry;
	unsigned retries;
	struct run_own_stop own_stop, exe_own_stop; /* the job's; the executor's */
	uint64_t exe_lease_dev, exe_lease_ino;
	struct deferred send;
	bool want_stop, stop_sent;
	int stop_signal;
	uint64_t signals; /* to be sent: bit n - 1 is signal n */
	uint64_t stop_timeout_ms;
};

/* run and task must stay valid until run_link_free(). */
void run_link_init(struct run_link *l, struct sup *sup, const struct run_link_ops *ops,
    const struct id *run, const char *task);

/* Connects, if need be after some retries. The result is a callback. */
void run_link_connect(struct run_link *l);
/* Orders that were not sent are kept for the next connection. */
void run_link_close(struct run_link *l);
/* Closes the connection and forgets the orders. l itself must live until the end of the turn. */
void run_link_free(struct run_link *l);

/* The orders (see run.h). Each is sent after this turn's commit, or as soon as the executor is
 * connected. */
void run_link_stop(struct run_link *l, int signo, uint64_t timeout_ms);
void run_link_signal(struct run_link *l, int signo);
void run_link_set_own_stop(struct run_link *l, const struct run_own_stop *wanted);

#endif

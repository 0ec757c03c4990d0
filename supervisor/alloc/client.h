/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client.h: the functions by which a source drives the node. It adds an alloc to the alloc table
 * and calls client_alloc_run(). It changes the server's fields and calls client_alloc_update(). To
 * remove an alloc it calls client_alloc_destroy(), and after alloc_destroyed() it may call
 * alloc_forget(). alloc/client.c runs allocs; tests/bench/idle_client.c only pretends to. Runs in:
 * supervisor.
 */
#ifndef DROVER_SUPERVISOR_ALLOC_CLIENT_H
#define DROVER_SUPERVISOR_ALLOC_CLIENT_H

#include <stdbool.h>

#include "common/err.h"

struct sup;
struct sup_alloc;

/* Runs sa. Does nothing for a restored alloc, which runs already. */
void client_alloc_run(struct sup *sup, struct sup_alloc *sa);
/* The server's fields have changed. Stops sa if its desired status is stop or evict. */
void client_alloc_update(struct sup *sup, struct sup_alloc *sa);
/* Removes everything of sa from the node, then calls ops->alloc_destroyed, perhaps within the call.
 */
void client_alloc_destroy(struct sup *sup, struct sup_alloc *sa);
/* sa has ended and its hooks are done: only its directories may be left. */
bool client_alloc_ended(const struct sup_alloc *sa);
/* Sets the health of sa, as an operator decided. */
void client_alloc_set_health(struct sup_alloc *sa, bool healthy);
/* Records that nothing of sa is on this node: it had ended before state.db was lost. */
void client_alloc_set_done(struct sup *sup, struct sup_alloc *sa);
/* Records the event that the servers, which had lost contact with this node, reached it again. */
void client_alloc_reconnected(struct sup_alloc *sa);

/* At start, after ops->load: continues every alloc that had not ended, and follows its runs. */
int client_restore(struct sup *sup, struct err *e);
/* At exit: frees all runners. Their tasks continue to run. */
void client_free(struct sup *sup);

struct client_stop {
	bool spares_system; /* allocs of system jobs are not stopped */
	bool lets_finish;   /* waits for allocs of batch jobs; allocs of system jobs end after
			       all others */
	const char *why;    /* their desired description; a constant */
	/* Called when none of their processes and mounts is left. */
	void (*done)(struct sup *sup);
};

/* Stops all allocs, for a drain or the end of -dev. Replaces an earlier request. */
void client_stop_all(struct sup *sup, const struct client_stop *wish);
/* Cancels the request: allocs that were already told to stop end, done() is not called. */
void client_stop_no_more(struct sup *sup);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client.h: what a source calls. It puts an alloc into the alloc table and calls
 * client_alloc_run(); it changes the server's fields and calls client_alloc_update(); to remove an
 * alloc it calls client_alloc_destroy(), and after alloc_destroyed() it may alloc_forget() it.
 * alloc/client.c runs allocs; tests/bench/idle_client.c runs nothing. Runs in:
 * supervisor.
 */
#ifndef DROVER_SUPERVISOR_ALLOC_CLIENT_H
#define DROVER_SUPERVISOR_ALLOC_CLIENT_H

#include <stdbool.h>

#include "common/err.h"

struct sup;
struct sup_alloc;

/* Runs sa. Does nothing for an alloc that was restored: it runs already. */
void client_alloc_run(struct sup *sup, struct sup_alloc *sa);
/* The server's fields changed: desired status stop or evict ends it. */
void client_alloc_update(struct sup *sup, struct sup_alloc *sa);
/* Removes everything of it from the node; then calls ops->alloc_destroyed, perhaps at once. */
void client_alloc_destroy(struct sup *sup, struct sup_alloc *sa);
/* It has ended and its hooks are done: only its directories may be left. */
bool client_alloc_ended(const struct sup_alloc *sa);
/* Sets its health by the decision of an operator. */
void client_alloc_set_health(struct sup_alloc *sa, bool healthy);
/* It had ended on this node before state.db was lost: nothing of it is here. */
void client_alloc_set_done(struct sup *sup, struct sup_alloc *sa);
/* The servers had lost contact with it and have it again: records that event. */
void client_alloc_reconnected(struct sup_alloc *sa);

/* At start, after ops->load: goes on with every alloc that was not terminal, and with its runs. */
int client_restore(struct sup *sup, struct err *e);
/* At exit: frees all runners; their tasks run on. */
void client_free(struct sup *sup);

struct client_stop {
	bool spares_system; /* allocs of system jobs stay */
	bool lets_finish;   /* waits for allocs of batch jobs; allocs of system jobs end after
			       all others */
	const char *why;    /* the description that they get; a constant */
	/* Called when no process and no mount of them is left. */
	void (*done)(struct sup *sup);
};

/* Stops every alloc (a drain, the end of -dev). Replaces the last such request. */
void client_stop_all(struct sup *sup, const struct client_stop *wish);
/* Cancels the request: allocs that were told to end do, no other is, and done is not called. */
void client_stop_no_more(struct sup *sup);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client.h: all that a source drives. It puts an alloc into the alloc table and calls
 * client_alloc_run(); it changes the server's fields and calls client_alloc_update(); when nobody
 * needs it any more it calls client_alloc_destroy(), and after alloc_destroyed() it may
 * alloc_forget() it. alloc/client.c runs allocs; tests/bench/idle_client.c runs nothing. Runs in:
 * supervisor.
 */
#ifndef DROVER_SUPERVISOR_ALLOC_CLIENT_H
#define DROVER_SUPERVISOR_ALLOC_CLIENT_H

#include <stdbool.h>

#include "common/err.h"

struct sup;
struct sup_alloc;

/* Begins with sa (or, with one that was restored, does nothing: that has begun already). */
void client_alloc_run(struct sup *sup, struct sup_alloc *sa);
/* The server's fields changed: desired status stop or evict ends it. */
void client_alloc_update(struct sup *sup, struct sup_alloc *sa);
/* Removes everything of it from the node; ops->alloc_destroyed follows, perhaps within the call. */
void client_alloc_destroy(struct sup *sup, struct sup_alloc *sa);
/* Nothing of it will happen any more: what is left, if anything, are its directories. */
bool client_alloc_ended(const struct sup_alloc *sa);
/* An operator has found it to be so. */
void client_alloc_set_health(struct sup_alloc *sa, bool healthy);
/* The servers had lost sight of it, and see it again. */
void client_alloc_reconnected(struct sup_alloc *sa);

/* At start, after ops->load: takes up every alloc that was not terminal, and the runs that are
 * still there. */
int client_restore(struct sup *sup, struct err *e);
/* At exit: forgets all, without ending anything. */
void client_free(struct sup *sup);
struct client_stop {
	bool spares_system; /* those of system jobs stay */
	bool lets_finish;   /* those of batch jobs end by themselves, those of system jobs after
			       all others */
	const char *why;    /* their description; a constant */
	/* None of them has a process or a mount any more. */
	void (*done)(struct sup *sup);
};

/* Stops every alloc (a drain, the end of -dev). Takes the place of the last such wish. */
void client_stop_all(struct sup *sup, const struct client_stop *wish);
/* The wish is taken back: what was told to end ends, nothing else does, and done is not called. */
void client_stop_no_more(struct sup *sup);

#endif

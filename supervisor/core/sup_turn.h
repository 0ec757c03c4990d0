/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sup_turn.h: one commit per turn of the work loop; nothing is sent or answered before its turn's
 * commit.
 *
 * A turn handles up to a few hundred ready events, then decides about what they changed, writes
 * what became dirty in one transaction, commits, and only then runs what was deferred: packets to
 * helpers and executors, answers to operators. When the commit fails everything stays queued and is
 * tried again each second; answers to operators that wait for it become 507 with the reason. Runs
 * in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_CORE_SUP_TURN_H
#define DROVER_SUPERVISOR_CORE_SUP_TURN_H

#include <stdbool.h>
#include <stdint.h>

#include "common/crash.h"
#include "common/err.h"
#include "supervisor/core/sup.h"

/*
 * Embedded in everything that has a row. write() puts the row (insert, update or delete, from what
 * memory says at the end of the turn) with store_exec() and returns 0 or -errno; written() (may be
 * NULL) is called once after the commit, and may free the thing.
 */
struct dirty {
	struct dirty *next;
	bool queued;
	uint8_t point; /* CRASH_ROW_… of its kind: where tests kill */
	int (*write)(struct sup *sup, struct dirty *d, struct err *e);
	void (*written)(struct sup *sup, struct dirty *d);
};

/* Run after the commit, in order (turn_defer): something that leaves this process, or frees what a
 * write still needs. Or run before it (turn_before_commit). */
struct deferred {
	struct deferred *next;
	bool queued;
	void (*run)(struct sup *sup, struct deferred *d);
};

int turn_new(struct sup *sup, struct err *e);
void turn_free(struct sup *sup);

/* Runs d before the commit of this turn, once, however often it is queued: for decisions about what
 * the turn's events have changed. What d changes is part of the same commit. */
void turn_before_commit(struct sup *sup, struct deferred *d);
/* d's row is to be written at the end of this turn, once, however often this is called. */
void turn_write(struct sup *sup, struct dirty *d);
/* This turn holds a wish of an operator or server, a claim or a CSI call: it is synced before
 * anything is said. */
void turn_durable(struct sup *sup);
/* Queues d once. */
void turn_defer(struct sup *sup, struct deferred *d);
/* Takes d out of the queues, before its owner is freed. */
void turn_forget_write(struct sup *sup, struct dirty *d);
void turn_forget_deferred(struct sup *sup, struct deferred *d);

/* True while the last commit failed; then *ret says why (may be NULL). */
bool turn_is_stuck(struct sup *sup, const char **ret);

/* Runs turns until sup->exiting is set and nothing is queued. Returns the process's exit code. */
int turn_loop(struct sup *sup);

#endif

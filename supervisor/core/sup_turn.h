/* SPDX-License-Identifier: Apache-2.0 */
/* sup_turn.h: one commit per turn of the work loop; nothing is sent or answered before the commit
 * of its turn. A turn handles up to a few hundred ready events, takes decisions about their
 * changes, writes all dirty rows in one transaction, commits, and only then runs deferred
 * functions: packets to helpers and executors, answers to operators. If the commit fails,
 * everything stays queued and is retried each second; answers to operators that depend on it become
 * 507 with the reason. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_CORE_SUP_TURN_H
#define DROVER_SUPERVISOR_CORE_SUP_TURN_H

#include <stdbool.h>
#include <stdint.h>

#include "common/crash.h"
#include "common/err.h"
#include "common/list.h"
#include "supervisor/core/histogram.h"
#include "supervisor/core/sup.h"

/* Embedded in every object that has a row. write() inserts, updates or deletes the row with
 * store_exec(), from the state in memory at the end of the turn, and returns 0 or -errno; written()
 * (may be NULL) is called once after the commit and may free the object. */
struct dirty {
	STAILQ_ENTRY(dirty) link;
	struct dirty_list *list; /* NULL: the row has the object's state */
	uint8_t point;           /* CRASH_ROW_… of its kind: a crash point for tests */
	int (*write)(struct sup *sup, struct dirty *d, struct err *e);
	void (*written)(struct sup *sup, struct dirty *d);
};

/* A function that runs after the commit, in the order of turn_defer(): to send messages, or to free
 * memory that a write still needs; or before the commit (turn_before_commit()). */
struct deferred {
	STAILQ_ENTRY(deferred) link;
	struct deferred_queue *queue; /* NULL: not queued */
	void (*run)(struct sup *sup, struct deferred *d);
};

void turn_new(struct sup *sup);
void turn_free(struct sup *sup);

/* Runs d once before the commit of this turn, however often it is queued: for decisions about the
 * turn's changes. Changes that d makes are part of the same commit. */
void turn_before_commit(struct sup *sup, struct deferred *d);
/* Marks d's row to be written once at the end of this turn, however often this is called. */
void turn_write(struct sup *sup, struct dirty *d);
/* Makes this turn's commit durable before anything is sent: for a request of an operator or server,
 * a claim or a CSI call. */
void turn_durable(struct sup *sup);
/* Runs d once after the commit of this turn, however often it is queued. */
void turn_defer(struct sup *sup, struct deferred *d);
/* Removes d from the queues, before its owner is freed. */
void turn_forget_write(struct sup *sup, struct dirty *d);
void turn_forget_deferred(struct sup *sup, struct deferred *d);

/* Returns true while the last commit has failed; then *ret (may be NULL) is the reason. */
bool turn_is_stuck(struct sup *sup, const char **ret);
/* Returns for how long it has been so, 0 if it is not. */
uint64_t turn_stuck_ms(struct sup *sup);
/* Calls fn at the end of a turn whose commit has failed, if the last one had not: what that turn
 * has deferred stays queued. */
void turn_watch_failure(struct sup *sup, void (*fn)(struct sup *sup));

/* From now on a commit that fails because the disk is full frees space of the reserve (reserve.h),
 * or not any more. */
void turn_use_reserve(struct sup *sup, bool use);

/* Commits a row of its own, synced, before the commit of this turn: tells a request that must not
 * wait for a commit whether one can succeed now. Frees space of the reserve for it. Returns 0 or
 * -errno with *e. */
int turn_try_commit(struct sup *sup, struct err *e);

/* For the metrics. */
struct turn_counts {
	uint64_t failed_commits;
	struct histogram turns;   /* the work of each, with its commit */
	struct histogram commits; /* those that succeeded */
};
const struct turn_counts *turn_counts(const struct sup *sup);

/* Runs turns until sup->exiting is set and nothing is queued. Returns the exit code of the process.
 */
int turn_loop(struct sup *sup);

#endif

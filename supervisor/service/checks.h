/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checks.h: the checks of an alloc's services: when each is made, what it found last, and what
 * follows from that for its tasks. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_SERVICE_CHECKS_H
#define DROVER_SUPERVISOR_SERVICE_CHECKS_H

#include "model/service.h"

struct check;
struct sup;
struct sup_alloc;

/* The results of an alloc's checks, by the check's id. */
struct check_results {
	MODEL_MAP(struct check_result) by_id;
};
MODEL_DECLARE(check_results);

/* What follows from the checks for the tasks. task is "" for the checks of the group's services. */
struct checks_events {
	/* Restart the task (or all that run) by its policy. */
	void (*restart)(void *arg, const char *task, const char *reason);
	/* Does the task (or one of the group's) run? */
	bool (*runs)(void *arg, const char *task);
	/* A result is another; saved: so is what checks_save() writes. */
	void (*changed)(void *arg, bool saved);
};

/* The checks of one alloc: zero, then sup, sa and restored set, then checks_init(). */
struct checks {
	struct sup *sup;
	struct sup_alloc *sa;
	bool restored; /* the alloc ran when the last supervisor ended */
	bool on;       /* they have begun */
	const struct checks_events *ev;
	void *arg;
	struct check *first;
	struct check_results kept; /* of the last supervisor, until they begin */
};

/* kept: what checks_save() returned to the last supervisor. */
void checks_init(
    struct checks *cs, const struct checks_events *ev, void *arg, const struct check_results *kept);
/* Begins with the checks of the group and its tasks; results that are known (of the last
 * supervisor, before an update of the job) stay. */
void checks_begin(struct checks *cs);
/* Ends all of them and forgets their results. False: there was none. */
bool checks_end(struct checks *cs);
void checks_done(struct checks *cs);
/* A task has started: earlier results are not its own. */
void checks_task_started(struct checks *cs, const char *task);

/* The result of one after another: from NULL to NULL. */
const struct check *checks_next(const struct checks *cs, const struct check *c);
const struct check_result *check_result(const struct check *c);

/*
 * For the alloc's health: since when (CLOCK_MONOTONIC, ms) all of them pass, each seen after the
 * last start of its tasks. -1: they do not all; 0: there is none.
 */
int64_t checks_pass_since_ms(const struct checks *cs);

/* Copies the results into *ret, which is empty. */
void checks_save(const struct checks *cs, struct check_results *ret);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checks.h: the checks of an alloc's services: when each is made, its last result, and what follows
 * for the tasks. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_SERVICE_CHECKS_H
#define DROVER_SUPERVISOR_SERVICE_CHECKS_H

#include "common/list.h"
#include "model/service.h"

struct check;
struct sup;
struct sup_alloc;

/* The results of an alloc's checks, by the check's id. */
struct check_results {
	MODEL_MAP(struct check_result) by_id;
};
MODEL_DECLARE(check_results);

/* Callbacks for the alloc runner. task is "" for the checks of the group's services. */
struct checks_events {
	/* Restart the task (or all that run) by its policy. */
	void (*restart)(void *arg, const char *task, const char *reason);
	/* Returns true if the task (or one of the group's) runs. */
	bool (*runs)(void *arg, const char *task);
	/* Returns whether the variables of the task are known, which its checks may contain. If
	 * not, they begin with a later checks_begin(). */
	bool (*knows_env)(void *arg, const char *task);
	/* A result has changed; saved: checks_save() returns something else. */
	void (*changed)(void *arg, bool saved);
};

LIST_HEAD(check_list, check);

/* The checks of one alloc: zero, but sup, sa and restored are set before checks_init(). */
struct checks {
	struct sup *sup;
	struct sup_alloc *sa;
	bool restored; /* the alloc ran when the last supervisor ended */
	bool on;       /* they have begun */
	const struct checks_events *ev;
	void *arg;
	struct check_list list;
	struct check_results kept; /* of the last supervisor, until all begin */
};

/* For all allocs: the queues of checks that wait for their try. */
void check_queues_new(struct sup *sup);
void check_queues_free(struct sup *sup);

/* kept: what checks_save() returned to the last supervisor. */
void checks_init(
    struct checks *cs, const struct checks_events *ev, void *arg, const struct check_results *kept);
/* Begins with the checks of the group and its tasks, also after an update of the job or of
 * variables. Known results are kept. */
void checks_begin(struct checks *cs);
/* Ends all checks and drops their results. Returns false if there were none. */
bool checks_end(struct checks *cs);
void checks_done(struct checks *cs);
/* A task has started: earlier results do not count for it. */
void checks_task_started(struct checks *cs, const char *task);

/* Returns the check after c: from NULL to NULL. */
const struct check *checks_next(const struct checks *cs, const struct check *c);
const struct check_result *check_result(const struct check *c);

/*
 * For the alloc's health: returns the time (CLOCK_MONOTONIC, ms) since when all checks pass, each
 * made after the last start of its tasks. -1 if one does not pass; 0 if there are no checks.
 */
int64_t checks_pass_since_ms(const struct checks *cs);

/* Copies the results into *ret, which is empty. */
void checks_save(const struct checks *cs, struct check_results *ret);

#endif

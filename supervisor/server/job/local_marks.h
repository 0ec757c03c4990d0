/* SPDX-License-Identifier: Apache-2.0 */
/*
 * local_marks.h: what the books have changed and nobody has decided about yet. A book marks; one
 * pass (drive/local_pass.c) takes all marks and decides, before the commit of the turn and before
 * each request of the API. Marking twice is marking once. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_SERVER_JOB_LOCAL_MARKS_H
#define DROVER_SUPERVISOR_SERVER_JOB_LOCAL_MARKS_H

#include <stdbool.h>

struct deferred;
struct local;
struct local_job;
struct local_slot;
struct sup;

/* The first mark of a turn queues pass. 0 or -ENOMEM. */
int local_marks_init(struct local *l, void (*pass)(struct sup *sup, struct deferred *d));
void local_marks_free(struct local *l);

/* The slot's alloc has changed, or what its successor waits for. Marks the job too. */
void local_mark_slot(struct local *l, struct local_slot *slot);
/* The job's allocs or versions have changed: its status may differ, and what is old of it may be
 * needed no more. */
void local_mark_job(struct local *l, struct local_job *j);
/* The job's active deployment may be able to take its next step. The job is marked after the commit
 * of this turn: a deployment decides about what is durable, such as the health of an alloc. */
void local_mark_deployment(struct local *l, struct local_job *j);
/* Resources or a port were given back: what waits for them may fit. */
void local_mark_capacity(struct local *l);
/* The node, a plugin or a volume has changed: everything that is not placed may fit. */
void local_mark_node(struct local *l);
/* The timer of periodic jobs has fired. */
void local_mark_timer(struct local *l);

/* Remove and return the marks, oldest first. NULL: there is none. */
struct local_job *local_marks_take_job(struct local *l);
struct local_slot *local_marks_take_slot(struct local_job *j);
bool local_marks_take_deployment(struct local_job *j);
/* Is anything to be tried again? *ret_all: not only what waits for resources or a port. */
bool local_marks_take_retry(struct local *l, bool *ret_all);
bool local_marks_take_timer(struct local *l);
/* The job is about to be freed. */
void local_marks_forget(struct local *l, struct local_job *j);

#endif

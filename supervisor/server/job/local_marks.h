/* SPDX-License-Identifier: Apache-2.0 */
/*
 * local_marks.h: marks on objects that have changed and await a decision. A book marks; one pass
 * (drive/local_pass.c) removes all marks and decides, before the commit of the turn and before each
 * request of the API. Marking an object twice has no effect. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_SERVER_JOB_LOCAL_MARKS_H
#define DROVER_SUPERVISOR_SERVER_JOB_LOCAL_MARKS_H

#include <stdbool.h>

struct deferred;
struct local;
struct local_job;
struct local_slot;
struct sup;

/* The first mark of a turn queues pass. */
void local_marks_init(struct local *l, void (*pass)(struct sup *sup, struct deferred *d));
void local_marks_free(struct local *l);

/* The slot's alloc has changed, or its successor may be placed now. Marks the job too. */
void local_mark_slot(struct local *l, struct local_slot *slot);
/* The job's allocs or versions have changed: its status may differ, and old versions may have
 * become unused. */
void local_mark_job(struct local *l, struct local_job *j);
/* The job's active deployment may be able to take its next step. It is examined after the commit of
 * this turn, because it decides by durable facts such as the health of an alloc. */
void local_mark_deployment(struct local *l, struct local_job *j);
/* Resources or a port were released: slots that wait for capacity may be placed. */
void local_mark_capacity(struct local *l);
/* The node, a plugin or a volume has changed: any unplaced slot may be placed. */
void local_mark_node(struct local *l);
/* The timer of periodic jobs has fired. */
void local_mark_timer(struct local *l);

/* Remove and return the oldest mark, or NULL. */
struct local_job *local_marks_pop_job(struct local *l);
struct local_slot *local_marks_pop_slot(struct local_job *j);
/* Clear a mark and return whether it was set. */
bool local_marks_clear_deployment(struct local_job *j);
bool local_marks_clear_timer(struct local *l);
/* The marks of capacity and node; *ret_all: the node was marked. */
bool local_marks_clear_retry(struct local *l, bool *ret_all);
/* Removes the marks of a job that is about to be freed. */
void local_marks_forget(struct local *l, struct local_job *j);

#endif

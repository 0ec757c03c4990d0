/* SPDX-License-Identifier: Apache-2.0 */
/* job_diff.h: the difference between two versions of a job. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_JOB_JOB_DIFF_H
#define DROVER_SUPERVISOR_SERVER_JOB_JOB_DIFF_H

#include "model/job.h"

/* Returns the difference as the API shows it, as a new reference: {"Type", "ID", "Fields",
 * "Objects", "TaskGroups"}, with only what differs; "Type" is Added, Deleted, Edited or None.
 * Groups and tasks are matched by name. Fields that a server sets (indexes, times, status) are
 * ignored. old is NULL for a new job. */
json_t *job_diff(const struct job *old, const struct job *new);

/* Returns true if an alloc of group ga of job a must be replaced to become one of gb of job b;
 * ret_why then names the first field that differs. Fields such as count, update and reschedule do
 * not matter. */
bool group_needs_replacement(const struct job *a, const struct task_group *ga, const struct job *b,
    const struct task_group *gb, char *ret_why, size_t size);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* job_diff.h: what one version of a job changes in another. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_JOB_JOB_DIFF_H
#define DROVER_SUPERVISOR_SERVER_JOB_JOB_DIFF_H

#include "model/job.h"

/*
 * The difference as the API shows it: {"Type", "ID", "Fields", "Objects", "TaskGroups"}, groups and
 * tasks matched by name; "Type" is Added, Deleted, Edited or None; only what differs is in it. old
 * NULL: the job is new. What a server counts (indexes, times, status) is no difference. A new
 * reference, or NULL (no memory).
 */
json_t *job_diff(const struct job *old, const struct job *new);

/* Would an alloc of group a have to be replaced to become one of b? Count, update, reschedule and
 * the like do not count. */
bool group_needs_replacement(const struct job *a, const struct task_group *ga, const struct job *b,
    const struct task_group *gb, char *ret_why, size_t size);

#endif

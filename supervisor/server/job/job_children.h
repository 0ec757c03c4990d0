/* SPDX-License-Identifier: Apache-2.0 */
/* job_children.h: checks periodic and parameterized jobs (model/job_parent.h), and makes their
 * children. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_JOB_JOB_CHILDREN_H
#define DROVER_SUPERVISOR_SERVER_JOB_JOB_CHILDREN_H

#include "model/job.h"

/* Adds the faults of a job's periodic and parameterized blocks. */
void job_parent_validate(const struct job *job, struct problems *p);
/* Checks whether job may follow old, the registered version (NULL: it is new). Returns 0, or
 * -EINVAL with the sentence. */
int job_check_change(const struct job *old, const struct job *job, struct err *e);
/* Checks whether the parent accepts a dispatch with a payload of that size and this meta. Returns
 * 0, or -EINVAL with the sentence. */
int job_check_dispatch(
    const struct job *parent, size_t payload_len, const struct string_map *meta, struct err *e);
/* Makes a child with this id in *ret (not initialised before). */
void job_make_child(const struct job *parent, const char *id, struct job *ret);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* job_children.h: periodic and parameterized jobs (model/job_parent.h): what is wrong with one, and
 * its children. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_JOB_JOB_CHILDREN_H
#define DROVER_SUPERVISOR_SERVER_JOB_JOB_CHILDREN_H

#include "model/job.h"

/* Adds what is wrong with a job as a parent of others. */
void job_parent_validate(const struct job *job, struct problems *p);
/* May a job become this one? old: the registered version, or NULL. 0 or -EINVAL with the sentence.
 */
int job_check_change(const struct job *old, const struct job *job, struct err *e);
/* Does the parent accept a dispatch with a payload of so many bytes and this meta? 0 or -EINVAL
 * with the sentence. */
int job_check_dispatch(
    const struct job *parent, size_t payload_len, const struct string_map *meta, struct err *e);
/* Makes a child with this id, into *ret (not initialised). 0 or -ENOMEM. */
int job_make_child(const struct job *parent, const char *id, struct job *ret);

#endif

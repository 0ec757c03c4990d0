/* SPDX-License-Identifier: Apache-2.0 */
/* job_validate.h: the checks of a job that is to be registered. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_JOB_JOB_VALIDATE_H
#define DROVER_SUPERVISOR_SERVER_JOB_JOB_VALIDATE_H

#include "model/job.h"

/*
 * Check a completed job and add a sentence for each fault. job_validate(): what no server runs.
 * job_validate_local(): what the one-node server does not run yet; each sentence names group, task
 * and block.
 */
void job_validate(const struct job *job, struct problems *p);
void job_validate_local(const struct job *job, struct problems *p);
/* Adds a sentence for each part of a job, as its author wrote it (not completed), that the one-node
 * server keeps but does not use. */
void job_warn_local(const struct job *job, struct problems *p);

/* job_size.c: checks how much the job consists of. Comes before every other check, because those
 * take quadratic time. 0, or -EINVAL with a sentence. */
int job_check_size(const struct job *job, struct err *e);

/* job_services_validate.c: checks the services of a group and its tasks together. */
void group_services_validate(const struct task_group *group, struct problems *p);
/* Checks n services for what the one-node server does not have. */
void services_validate_local(const struct service *v, size_t n, struct problems *p);

#endif

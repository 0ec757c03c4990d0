/* SPDX-License-Identifier: Apache-2.0 */
/* job_validate.h: checks of a job before it is registered. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_JOB_JOB_VALIDATE_H
#define DROVER_SUPERVISOR_SERVER_JOB_JOB_VALIDATE_H

#include "model/job.h"

/* Check a completed job and add a sentence for each fault, with its group, task and block:
 * job_validate() for faults in any job, job_validate_local() for what the embedded server does not
 * support. */
void job_validate(const struct job *job, struct problems *p);
void job_validate_local(const struct job *job, struct problems *p);
/* Adds a warning for each part of a job, as its author wrote it (not completed), that the embedded
 * server stores but does not use. */
void job_warn_local(const struct job *job, struct problems *p);

/* job_size.c: checks the size of the job. To be called before all other checks, because they take
 * quadratic time. Returns 0, or -EINVAL with a sentence. */
int job_check_size(const struct job *job, struct err *e);

/* job_services_validate.c: checks the services of a group and its tasks together. */
void group_services_validate(const struct task_group *group, struct problems *p);
/* Adds what the embedded server does not support of n services of the group or of its tasks. */
void services_validate_local(
    const struct task_group *group, const struct service *v, size_t n, struct problems *p);
/* Adds a warning for each of n services, as their author wrote them, that is meant for Consul. */
void services_warn_local(const struct service *v, size_t n, struct problems *p);

/* The same for volumes (job_volumes_validate.c). */
void volume_request_validate(const struct volume_request *v, const struct task_group *group,
    const struct job *job, struct problems *p);
void volume_mount_validate_local(const struct volume_mount *m, struct problems *p);
void volumes_warn_local(const struct task_group *group, struct problems *p);

#endif

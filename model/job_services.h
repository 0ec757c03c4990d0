/* SPDX-License-Identifier: Apache-2.0 */
/* job_services.h: the part of completing and validating a job that its services are. For model/
 * alone. Runs in: supervisor, cli. */
#ifndef DROVER_MODEL_JOB_SERVICES_H
#define DROVER_MODEL_JOB_SERVICES_H

#include "model/job.h"

/* 0 or -ENOMEM. */
int group_services_complete(struct task_group *group, const struct job *job);
/* What is wrong with the services of a group and its tasks together. */
void group_services_validate(const struct task_group *group, struct problems *p);
/* What the local source has not: of n services. */
void services_validate_local(const struct service *v, size_t n, struct problems *p);

#endif

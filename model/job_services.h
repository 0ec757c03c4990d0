/* SPDX-License-Identifier: Apache-2.0 */
/* job_services.h: the part of job_complete() that concerns services. For model/
 * alone. Runs in: supervisor, cli. */
#ifndef DROVER_MODEL_JOB_SERVICES_H
#define DROVER_MODEL_JOB_SERVICES_H

#include "model/job.h"

/* 0 or -ENOMEM. */
int group_services_complete(struct task_group *group, const struct job *job);
#endif

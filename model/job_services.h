/* SPDX-License-Identifier: Apache-2.0 */
/* job_services.h: the part of job_complete() for services. Used in model/ only. Runs in:
 * supervisor, cli. */
#ifndef DROVER_MODEL_JOB_SERVICES_H
#define DROVER_MODEL_JOB_SERVICES_H

#include "model/job.h"

/* Completes the services of the group and of its tasks. */
void group_services_complete(struct task_group *group, const struct job *job);
#endif

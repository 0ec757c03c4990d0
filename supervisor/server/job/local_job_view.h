/* SPDX-License-Identifier: Apache-2.0 */
/* local_job_view.h: a job as the API and the events show it. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_JOB_LOCAL_JOB_VIEW_H
#define DROVER_SUPERVISOR_SERVER_JOB_LOCAL_JOB_VIEW_H

#include "supervisor/server/job/local_job.h"

#define LOCAL_JOB_WHY_SIZE 700

extern const struct local_news_type local_job_news;

enum job_status local_job_status(const struct local_job *j);
/* Writes why a group of the job is not placed; "" if all are placed. */
void local_job_describe(const struct local_job *j, char ret[LOCAL_JOB_WHY_SIZE]);
/* Appends the job as JSON. */
void local_job_print(const struct local_job *j, enum model_flags flags, struct text *t);

#endif

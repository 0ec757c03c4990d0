/* SPDX-License-Identifier: Apache-2.0 */
/* local_periodic.h: launches of periodic jobs. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_DRIVE_LOCAL_PERIODIC_H
#define DROVER_SUPERVISOR_SERVER_DRIVE_LOCAL_PERIODIC_H

#include "supervisor/server/job/local_job.h"

void local_periodic_init(struct local *l);
void local_periodic_free(struct local *l);
int local_periodic_load(struct local *l, struct err *e);
/* Launches each job once whose launches were missed while the agent did not run. */
int local_periodic_start(struct local *l, struct err *e);

/* To be called when the wanted version of the job has changed: updates its next launch. */
void local_periodic_update(struct local *l, struct local_job *j);
/* To be called before the job is freed. */
void local_periodic_forget(struct local *l, struct local_job *j);
/* Makes the child for this time, or finds it, and an evaluation of it. Returns 0 or -errno. */
int local_periodic_launch(struct local *l, struct local_job *j, int64_t time_s,
    struct local_eval **ret_ev, struct err *e);
/* Makes the launches that are due, purges dead children that are due, and sets the timer. */
void local_periodic_run(struct local *l);
/* Sets the timer to the next launch or purge. */
void local_periodic_arm(struct local *l);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* local_periodic.h: launches of periodic jobs. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_DRIVE_LOCAL_PERIODIC_H
#define DROVER_SUPERVISOR_SERVER_DRIVE_LOCAL_PERIODIC_H

#include "supervisor/server/job/local_job.h"

int local_periodic_init(struct local *l);
void local_periodic_free(struct local *l);
int local_periodic_load(struct local *l, struct err *e);
/* Launches, once, what should have been launched while the agent was away. */
int local_periodic_start(struct local *l, struct err *e);

/* The wanted version of the job has changed: its times may have. */
void local_periodic_follow(struct local *l, struct local_job *j);
void local_periodic_forget(struct local *l, struct local_job *j);
/* Makes the child of this time, or finds it; and its evaluation. 0 or -errno with *e. */
int local_periodic_launch(struct local *l, struct local_job *j, int64_t time_s,
    struct local_eval **ret_ev, struct err *e);
/* Launches what is due, forgets children whose time has come, and sets the timer. */
void local_periodic_run(struct local *l);
/* Sets the timer. */
void local_periodic_arm(struct local *l);

#endif

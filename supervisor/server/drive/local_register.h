/* SPDX-License-Identifier: Apache-2.0 */
/* local_register.h: jobs are registered, changed and stopped, with all that follows. Runs in:
 * supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_DRIVE_LOCAL_REGISTER_H
#define DROVER_SUPERVISOR_SERVER_DRIVE_LOCAL_REGISTER_H

#include "supervisor/server/job/local_job.h"

/* Makes *job (completed, checked; emptied) the wanted version, with its deployment and its
 * launches; what it changes of the allocs is not done yet. NULL: no memory. */
struct local_job *local_job_change(struct local *l, struct job *job);
/* The same, and acts under *ret_ev, which stays NULL for a job that only others are made of. 0 or
 * -ENOMEM. */
int local_job_register(struct local *l, struct job *job, const char *trigger,
    struct local_job **ret, struct local_eval **ret_ev);
/* Stops the job; its children go on. purge: it is forgotten when its last alloc is removed. 0 or
 * -ENOMEM. */
int local_job_stop(struct local *l, struct local_job *j, bool purge, struct local_eval **ret_ev);

#endif

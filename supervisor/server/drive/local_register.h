/* SPDX-License-Identifier: Apache-2.0 */
/* local_register.h: registers, changes and stops jobs. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_DRIVE_LOCAL_REGISTER_H
#define DROVER_SUPERVISOR_SERVER_DRIVE_LOCAL_REGISTER_H

#include "supervisor/server/job/local_job.h"

/* Makes *job (completed, checked; emptied) the wanted version, with its deployment and its
 * launches. submission: as for local_job_put(). The allocs are not changed yet. */
struct local_job *local_job_change(
    struct local *l, struct job *job, const struct job_submission *submission);
/* Does the same, and then changes the allocs, under *ret_ev; *ret_ev is NULL for a periodic or
 * parameterized job, which has no allocs. */
void local_job_register(struct local *l, struct job *job, const struct job_submission *submission,
    const char *trigger, struct local_job **ret, struct local_eval **ret_ev);
/* Stops the job, but not its children. purge: the job is forgotten when its last alloc is removed.
 * Returns the evaluation; NULL for a periodic or parameterized job. */
struct local_eval *local_job_stop(struct local *l, struct local_job *j, bool purge);

#endif

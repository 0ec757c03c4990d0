/* SPDX-License-Identifier: Apache-2.0 */
/* local_reschedule.h: when an alloc that failed has a successor, by its group's reschedule block:
 * the decision, without its effects. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_JOB_LOCAL_RESCHEDULE_H
#define DROVER_SUPERVISOR_SERVER_JOB_LOCAL_RESCHEDULE_H

#include "model/alloc.h"
#include "model/job.h"
#include "supervisor/table/alloc_table.h"

#define LOCAL_RESCHEDULE_NEVER INT64_MAX

/* When did it fail? The end of its last task, or else its last change. */
int64_t local_reschedule_failed_at(const struct alloc *failed);
/* How long after the failure the successor comes, in ns; LOCAL_RESCHEDULE_NEVER: its attempts are
 * used up, or there is no policy. */
int64_t local_reschedule_delay(const struct reschedule_policy *p, const struct alloc *failed);
/* When may a successor take the place of this alloc, which is over? In ns since 1970. */
int64_t local_reschedule_at(const struct sup_alloc *sa);
/* Writes into the successor what has been tried: five times at most of an unlimited policy, else
 * those of the interval. 0 or -ENOMEM. */
int local_reschedule_note(const struct reschedule_policy *p, const struct alloc *failed,
    struct alloc *successor, int64_t now_ns);

#endif

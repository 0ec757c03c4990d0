/* SPDX-License-Identifier: Apache-2.0 */
/* local_reschedule.h: when a failed alloc is replaced, by the reschedule block of its group: the
 * decision, without its effects. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_JOB_LOCAL_RESCHEDULE_H
#define DROVER_SUPERVISOR_SERVER_JOB_LOCAL_RESCHEDULE_H

#include "model/alloc.h"
#include "model/job.h"
#include "supervisor/table/alloc_table.h"

#define LOCAL_RESCHEDULE_NEVER INT64_MAX

/* Returns when the alloc failed: the end of its last task, or else its last change. */
int64_t local_reschedule_failed_at(const struct alloc *failed);
/* Returns how long after the failure the alloc is replaced, in ns; LOCAL_RESCHEDULE_NEVER if its
 * attempts are used up or there is no policy. */
int64_t local_reschedule_delay(const struct reschedule_policy *p, const struct alloc *failed);
/* Returns when this alloc, which is over, may be replaced, in ns since 1970. */
int64_t local_reschedule_at(const struct sup_alloc *sa);
/* Writes this attempt and those before it into the successor's tracker: the last five of an
 * unlimited policy, otherwise those in the interval. */
void local_reschedule_record(const struct reschedule_policy *p, const struct alloc *failed,
    struct alloc *successor, int64_t now_ns);

#endif

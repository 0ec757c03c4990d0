/* SPDX-License-Identifier: Apache-2.0 */
/* alloc_status.h: the client status of an alloc. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_ALLOC_ALLOC_STATUS_H
#define DROVER_SUPERVISOR_ALLOC_ALLOC_STATUS_H

#include <stdbool.h>

struct alloc_runner;

/* To be called after any change of a task: sets the alloc's client status and description by the
 * states of its tasks. The alloc is written in this turn; its next step notifies the source. */
void alloc_status_update(struct alloc_runner *ar);

/* The description of an alloc that its lease stopped. */
#define ALLOC_LEASE_PASSED "Tasks were stopped: no heartbeat was answered in time"

/*
 * Returns whether the tasks of an alloc that its lease stopped count as failed. With servers an
 * alloc of a service ends complete, as with Nomad's client: a failure would use up one of its
 * reschedules. A batch alloc fails, because servers take a complete one as its work done. The
 * embedded server needs the failure to make it lost.
 */
bool alloc_fails_by_lease(const struct alloc_runner *ar);

#endif

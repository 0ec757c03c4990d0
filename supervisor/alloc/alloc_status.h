/* SPDX-License-Identifier: Apache-2.0 */
/* alloc_status.h: the client status of an alloc. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_ALLOC_ALLOC_STATUS_H
#define DROVER_SUPERVISOR_ALLOC_ALLOC_STATUS_H

struct alloc_runner;

/* To be called after any change of a task: sets the alloc's client status and description by the
 * states of its tasks. The alloc is written in this turn; its next step notifies the source. */
void alloc_status_update(struct alloc_runner *ar);

#endif

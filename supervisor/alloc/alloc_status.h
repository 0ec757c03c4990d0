/* SPDX-License-Identifier: Apache-2.0 */
/* alloc_status.h: the client status of an alloc. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_ALLOC_ALLOC_STATUS_H
#define DROVER_SUPERVISOR_ALLOC_ALLOC_STATUS_H

struct alloc_runner;

/* After any change of a task: sets the alloc's client status and description by the states of its
 * tasks, and has the alloc written, reported to the source, and stepped. */
void alloc_status_update(struct alloc_runner *ar);

#endif

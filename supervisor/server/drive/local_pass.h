/* SPDX-License-Identifier: Apache-2.0 */
/* local_pass.h: the pass that decides about all marked objects (job/local_marks.h). Runs in:
 * supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_DRIVE_LOCAL_PASS_H
#define DROVER_SUPERVISOR_SERVER_DRIVE_LOCAL_PASS_H

#include "supervisor/server/base/local.h"

/* Makes the marks. The first mark of a turn queues the pass before the commit. */
void local_pass_init(struct local *l);
/* Runs the pass now, for a request that must see its decisions. */
void local_pass_run(struct local *l);
/* At the agent's start, after everything is loaded: compares each job with its allocs. */
void local_pass_start(struct local *l);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* local_pass.h: the one pass that decides about everything the books have marked
 * (job/local_marks.h). Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_DRIVE_LOCAL_PASS_H
#define DROVER_SUPERVISOR_SERVER_DRIVE_LOCAL_PASS_H

#include "supervisor/server/base/local.h"

int local_pass_init(struct local *l);
/* Runs before each commit for which something is marked; call it where decisions must be seen
 * before that. */
void local_pass_run(struct local *l);
/* At the agent's start, after everything is loaded: compares each job with its allocs. */
void local_pass_start(struct local *l);

#endif

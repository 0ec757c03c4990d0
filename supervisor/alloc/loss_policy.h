/* SPDX-License-Identifier: Apache-2.0 */
/* loss_policy.h: the value of drover_volume_loss in the meta of a job, a group or a task. Pure.
 * Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_ALLOC_LOSS_POLICY_H
#define DROVER_SUPERVISOR_ALLOC_LOSS_POLICY_H

#define LOSS_POLICY_KEY    "drover_volume_loss"
#define LOSS_POLICY_VALUES "restart, noop or signal:NAME"

/* Returns the number of the signal; 0 for "restart" and "noop"; -1 for another value. */
int loss_policy_signal(const char *policy);

#endif

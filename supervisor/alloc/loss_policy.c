// SPDX-License-Identifier: Apache-2.0
/* loss_policy.c: the value of drover_volume_loss. Runs in: supervisor. */
#include "supervisor/alloc/loss_policy.h"

#include <string.h>

#include "model/engine/field.h"
#include "supervisor/driver/signal_name.h"

#define SIGNAL "signal:"

int
loss_policy_signal(const char *policy)
{
	if (strncmp(policy, SIGNAL, strlen(SIGNAL)) == 0)
		return signal_from_name(policy + strlen(SIGNAL));
	return str_eq(policy, "restart") || str_eq(policy, "noop") ? 0 : -1;
}

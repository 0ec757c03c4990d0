/* SPDX-License-Identifier: Apache-2.0 */
/* volume_loss.h: what tasks do about a volume that was mounted again after its file system had
 * ended. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_ALLOC_VOLUME_LOSS_H
#define DROVER_SUPERVISOR_ALLOC_VOLUME_LOSS_H

#include "supervisor/alloc/alloc_state.h"

/* Restarts or signals the alloc's running tasks as their meta requests. The restart policy does not
 * count such a restart. */
void volume_loss_apply(struct alloc_runner *ar, const struct volume_request *request);

#endif

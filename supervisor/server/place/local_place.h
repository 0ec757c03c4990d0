/* SPDX-License-Identifier: Apache-2.0 */
/* local_place.h: makes an alloc that fits. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_PLACE_LOCAL_PLACE_H
#define DROVER_SUPERVISOR_SERVER_PLACE_LOCAL_PLACE_H

#include "model/alloc.h"
#include "supervisor/server/job/local_slots.h"

/* Makes and starts the slot's next alloc, of this version of the job, after local_fit_check() has
 * found that it fits. Takes over *m on success. Returns 0 or -errno. */
int local_place_alloc(struct local *l, struct local_slot *slot, struct job_ref *ref,
    const char *eval_id, struct alloc_metric *m, struct err *e);

#endif

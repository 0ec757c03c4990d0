/* SPDX-License-Identifier: Apache-2.0 */
/* local_client.h: reports of the client about its allocs (struct source_ops). Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_SERVER_DRIVE_LOCAL_CLIENT_H
#define DROVER_SUPERVISOR_SERVER_DRIVE_LOCAL_CLIENT_H

#include "supervisor/source/source.h"

bool local_alloc_stopped_by_lease(const struct alloc *a);
void local_alloc_updated(struct source *s, struct sup_alloc *sa);
void local_alloc_written(struct source *s, struct sup_alloc *sa);
void local_alloc_destroyed(struct source *s, struct sup_alloc *sa);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* local_services.h: the registered services. They have no rows: after a restart of the agent,
 * running allocs register theirs again. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_CLAIM_LOCAL_SERVICES_H
#define DROVER_SUPERVISOR_SERVER_CLAIM_LOCAL_SERVICES_H

#include "supervisor/server/base/local.h"
#include "supervisor/service/service_table.h"

void local_services_init(struct local *l);
void local_services_free(struct local *l);
/* source_ops.services_set */
void local_services_set(struct source *source, struct sup_alloc *sa, const char *workload,
    const struct service_registration *v, size_t n);
const struct service_table *local_services_table(const struct local *l);
void local_service_remove(struct local *l, struct source_service *s);

#endif

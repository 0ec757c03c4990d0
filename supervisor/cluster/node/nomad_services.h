/* SPDX-License-Identifier: Apache-2.0 */
/* nomad_services.h: services that are registered at the servers. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_CLUSTER_NODE_NOMAD_SERVICES_H
#define DROVER_SUPERVISOR_CLUSTER_NODE_NOMAD_SERVICES_H

#include "supervisor/cluster/node/nomad.h"

int nomad_services_load(struct nomad *n, struct err *e);
/* To be called when the client has restored its allocs. */
void nomad_services_start(struct nomad *n);
void nomad_services_set(struct source *source, struct sup_alloc *sa, const char *workload,
    const struct service_registration *v, size_t n);
/* Registers services that the servers do not have, in this turn. */
void nomad_services_soon(struct nomad *n);
/* Registers all services again, after the node was registered or reconnected. */
void nomad_services_all(struct nomad *n);
void nomad_services_free(struct nomad *n);

#endif

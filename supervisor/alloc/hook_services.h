/* SPDX-License-Identifier: Apache-2.0 */
/* hook_services.h: the services of an alloc's group, for its tasks. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_ALLOC_HOOK_SERVICES_H
#define DROVER_SUPERVISOR_ALLOC_HOOK_SERVICES_H

struct alloc_runner;

/* A task has started: services that were taken out for the restart are registered again. */
void alloc_services_return(struct alloc_runner *ar);

#endif

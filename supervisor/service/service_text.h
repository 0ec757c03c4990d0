/* SPDX-License-Identifier: Apache-2.0 */
/* service_text.h: the services of an alloc, with ${…} replaced in them. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVICE_SERVICE_TEXT_H
#define DROVER_SUPERVISOR_SERVICE_SERVICE_TEXT_H

#include "model/service.h"
#include "supervisor/table/alloc_table.h"

struct service_list {
	MODEL_LIST(struct service) services;
};

/*
 * Makes the list of services with provider "nomad" of the alloc's group (task NULL) or of a task.
 * The caller ends it with service_list_done(). Returns 0; -EINVAL with *e for an invalid name; or
 * -E2BIG with *e.
 */
int service_list_make(struct sup *sup, const struct sup_alloc *sa, const struct task *task,
    struct service_list *ret, struct err *e);
void service_list_done(struct service_list *l);

#define cleanup_services __attribute__((__cleanup__(service_list_done)))

/* Writes the workload of services: a task's name, or "group-" and the group's name. */
#define WORKLOAD_SIZE 300
void service_workload(const struct sup_alloc *sa, const struct task *task, char ret[WORKLOAD_SIZE]);

#endif

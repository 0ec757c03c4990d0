/* SPDX-License-Identifier: Apache-2.0 */
/* service_text.h: services of an alloc as they are meant: with ${…} replaced. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_SERVICE_SERVICE_TEXT_H
#define DROVER_SUPERVISOR_SERVICE_SERVICE_TEXT_H

#include "model/service.h"
#include "supervisor/table/alloc_table.h"

struct service_list {
	MODEL_LIST(struct service) services;
};

/*
 * Those of provider "nomad", of the alloc's group (task NULL) or of a task. 0, or -EINVAL with a
 * sentence: a name that is none. The caller ends it with service_list_done().
 */
int service_list_make(struct sup *sup, const struct sup_alloc *sa, const struct task *task,
    struct service_list *ret, struct err *e);
void service_list_done(struct service_list *l);

#define cleanup_services __attribute__((__cleanup__(service_list_done)))

/* Of the services of a group, and of a task: its name. */
#define WORKLOAD_SIZE 300
void service_workload(const struct sup_alloc *sa, const struct task *task, char ret[WORKLOAD_SIZE]);

#endif

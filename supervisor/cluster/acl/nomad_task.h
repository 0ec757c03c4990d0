/* SPDX-License-Identifier: Apache-2.0 */
/* nomad_task.h: asks the servers whose token a request at the socket of a task has. Runs in:
 * supervisor. */
#ifndef DROVER_SUPERVISOR_CLUSTER_ACL_NOMAD_TASK_H
#define DROVER_SUPERVISOR_CLUSTER_ACL_NOMAD_TASK_H

#include "supervisor/cluster/node/nomad.h"
#include "supervisor/http/api_backend.h"

/* For struct api_backend. */
void nomad_task_authenticate(struct sup *sup, const char *token, const struct api_task *task,
    api_authenticate_cb *cb, void *arg);
void nomad_tasks_free(struct nomad *n);

#endif

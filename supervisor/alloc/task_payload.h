/* SPDX-License-Identifier: Apache-2.0 */
/* task_payload.h: what the job was dispatched with, as a file of a task. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_ALLOC_TASK_PAYLOAD_H
#define DROVER_SUPERVISOR_ALLOC_TASK_PAYLOAD_H

#include "common/spec.h"
#include "model/task.h"
#include "supervisor/table/alloc_table.h"

/* The file that the task's dispatch_payload names, for a start; nothing where there is no payload.
 * 0, -ENOMEM, or -EINVAL for a path that cannot be one and for a payload that is broken. */
int task_payload_add_file(
    const struct sup_alloc *sa, const struct task *task, struct spec_writer *spec, struct err *e);

#endif

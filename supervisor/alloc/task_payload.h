/* SPDX-License-Identifier: Apache-2.0 */
/* task_payload.h: the payload of a dispatched job, as a file of a task. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_ALLOC_TASK_PAYLOAD_H
#define DROVER_SUPERVISOR_ALLOC_TASK_PAYLOAD_H

#include "common/spec.h"
#include "model/task.h"
#include "supervisor/table/alloc_table.h"

/* Adds the file that the task's dispatch_payload names to a start, if the job has a payload. 0, or
 * -EINVAL for an invalid path or a damaged payload. */
int task_payload_add_file(
    const struct sup_alloc *sa, const struct task *task, struct spec_writer *spec, struct err *e);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* task_image.h: the image of a container, before its start. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_ALLOC_TASK_IMAGE_H
#define DROVER_SUPERVISOR_ALLOC_TASK_IMAGE_H

#include <jansson.h>

#include "common/err.h"

struct exec_task_start_req;
struct task_runner;

/*
 * Has the image of the task pulled, unless it is on this node, and calls done(): within the call if
 * there is nothing to do. The task's configuration must be ready (task_config.h). r < 0: *e says
 * why; -EINVAL: another try cannot succeed. done() is not called after task_image_free().
 */
void task_image_prepare(
    struct task_runner *tr, void (*done)(struct task_runner *tr, int r, const struct err *e));
/* Returns the configuration of its image, also after a restart of the agent; NULL: unknown. */
const json_t *task_image_config(struct task_runner *tr);
/* Writes the layers to the request. Returns 0, or -EAGAIN with *e if the image was removed. */
int task_image_fill(struct task_runner *tr, struct exec_task_start_req *req, struct err *e);
/* Returns the signal by which the task is stopped if its job names none. */
int task_image_stop_signal(struct task_runner *tr);
void task_image_free(struct task_runner *tr);

#endif

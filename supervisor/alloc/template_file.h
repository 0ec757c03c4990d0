/* SPDX-License-Identifier: Apache-2.0 */
/* template_file.h: the file and the environment variables of a template's output. Runs in:
 * supervisor. */
#ifndef DROVER_SUPERVISOR_ALLOC_TEMPLATE_FILE_H
#define DROVER_SUPERVISOR_ALLOC_TEMPLATE_FILE_H

#include "supervisor/alloc/task_path.h"
#include "supervisor/alloc/task_session.h"
#include "supervisor/alloc/task_templates.h"

/* Describes the file of the output; path is for ret->path. Returns 0, or -EINVAL with *e if its
 * destination or its owner is not possible. */
int template_file_make(
    const struct rendered *one, char path[TASK_PATH_SIZE], struct task_file *ret, struct err *e);
/* Reads the variables of a template with env = true from its output. Returns 0, or -EINVAL with *e.
 */
int template_env_read(struct rendered *one, struct err *e);
void template_env_free(struct rendered *one);

#endif

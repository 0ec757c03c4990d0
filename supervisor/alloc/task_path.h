/* SPDX-License-Identifier: Apache-2.0 */
/* task_path.h: paths of a job's files in the directories of its alloc. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_ALLOC_TASK_PATH_H
#define DROVER_SUPERVISOR_ALLOC_TASK_PATH_H

#include <stdbool.h>

#include "common/err.h"

struct task_runner;

#define TASK_PATH_SIZE 1024

/*
 * Writes a path of the job, as its task sees its directories ("local/x", "/secrets/x",
 * "${NOMAD_ALLOC_DIR}/x", "../alloc/x"), as one below the alloc's directory: "<task>/local/x" or
 * "alloc/x". References are replaced. Returns 0; without *e, -EXDEV if
 * it leads out of the alloc, and -EPERM if it leads to another task; or another -errno with *e.
 */
int task_path_make(
    const struct task_runner *tr, const char *path, char ret[TASK_PATH_SIZE], struct err *e);

/* Returns whether the first part of a path is this word; *ret_rest is what follows it. */
bool task_path_begins(const char *path, const char *word, const char **ret_rest);

#endif

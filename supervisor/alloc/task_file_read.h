/* SPDX-License-Identifier: Apache-2.0 */
/* task_file_read.h: opens and reads files that a job names. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_ALLOC_TASK_FILE_READ_H
#define DROVER_SUPERVISOR_ALLOC_TASK_FILE_READ_H

#include <stddef.h>

#include "common/err.h"
#include "supervisor/core/sup.h"

struct task_file_read;
struct task_runner;

#define TASK_FILE_MAX (2 << 20) /* bytes */

/* The end of a read, exactly once, never from within the call. r is 0 with the contents, which live
 * until the callback returns, and the open file *fd, which the callback may take with steal_fd();
 * or negative with *e, a sentence: -ENOENT, there is no such file yet; -EAGAIN, another try may
 * succeed; another error will not go away. */
typedef void task_file_read_cb(
    struct sup *sup, void *arg, int r, const char *text, size_t len, int *fd, const struct err *e);

/*
 * Reads a file through file-helper, which follows no link of the task into what is not the task's.
 * path is that of task_path_make(), so a task reads in local/ and in the alloc's shared directory.
 * Never NULL.
 */
struct task_file_read *task_file_read(
    struct task_runner *tr, const char *path, task_file_read_cb *cb, void *arg);
/* The same without reading it: the callback has the open file, a regular one, and no contents. */
struct task_file_read *task_file_open(
    struct task_runner *tr, const char *path, task_file_read_cb *cb, void *arg);
/* Cancels: the callback will not be called. NULL is ignored. */
void task_file_read_forget(struct task_file_read *f);

#endif

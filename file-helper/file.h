/* SPDX-License-Identifier: Apache-2.0 */
/* file.h: what the files of the file-helper share. Runs in: file-helper. */
#ifndef DROVER_FILE_HELPER_FILE_H
#define DROVER_FILE_HELPER_FILE_H

#include <stdbool.h>

#include "common/err.h"
#include "common/id.h"
#include "common/proc.h"
#include "common/worker.h"
#include "proto/ipc_records.h"

#define FILE_ROOTS file_root_values

struct file {
	const struct proc_args *args;
	/*
	 * By enum file_root. Each is the root of a mount that this process alone has: a copy of the
	 * data directory's, without what is mounted in it. So nothing leads from one to another, or
	 * out.
	 */
	int root_fds[FILE_ROOTS];
	int trash_fds[FILE_ROOTS]; /* CSI and CSI_SOCK have the same */
	struct workers workers;
	bool has_quota;  /* alloc/'s file system holds projects to their limits: project.h */
	bool trash_full; /* something was put there since the last emptying began */
};

/* file_roots.c: opens the roots and makes alloc/ the process's own root, before the drop. */
int file_roots_open(void *state, const struct proc_args *args, struct err *e);

/* The handlers, see proc_handle_fn. */
#define FILE_CALL(NAME, call, ...)                                                                 \
	int file_on_##call(struct file *f, const struct file_##call##_req *req,                    \
	    struct file_##call##_rep *rep, int *ret_fd, struct err *e);
#include "proto/ipc_msgs.def"

/*
 * file_trash.c: moves the root's path out of the way at once; its contents go
 * later, in a worker. 0, also if it was not there; -EBUSY for a mount point.
 */
int file_trash_put(struct file *f, enum file_root root, const char *path, struct err *e);
/* Starts that worker if there is something to do and none is at work. */
void file_trash_empty(struct file *f);
/* Is such a worker at work, or about to be? What is in the trash then is no leak. */
bool file_trash_is_busy(const struct file *f);

/* file_csi.c: removes per-alloc/<alloc> of all plugins, which must hold no volume. 0 or -errno. */
int file_volumes_remove(const struct file *f, const char *alloc, struct err *e);

#endif

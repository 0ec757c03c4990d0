/* SPDX-License-Identifier: Apache-2.0 */
/* file.h: types and functions that the file-helper's files share. Runs in: file-helper. */
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
	/* Indexed by enum file_root. Each is the root of a private, non-recursive clone of the data
	 * directory's mount, so that no path leads from one root to another, into a mount, or out.
	 */
	int root_fds[FILE_ROOTS];
	int trash_fds[FILE_ROOTS]; /* CSI and CSI_SOCK share one */
	struct workers workers;
	bool has_quota;  /* alloc/'s file system enforces project quota: project.h */
	bool trash_full; /* something was moved there since the last emptying started */
};

/* file_roots.c: opens the roots and makes alloc/ the root directory of the process, before the
 * drop. */
int file_roots_open(void *state, const struct proc_args *args, struct err *e);

/* The handlers, see proc_handle_fn. */
#define FILE_CALL(NAME, call, ...)                                                                 \
	int file_on_##call(struct file *f, const struct file_##call##_req *req,                    \
	    struct file_##call##_rep *rep, int *ret_fd, struct err *e);
#include "proto/ipc_msgs.def"

/* file_trash.c: renames a path of the root into the trash; a worker removes its contents later.
 * Returns 0, also if it did not exist; -EBUSY for a mount point. */
int file_trash_put(struct file *f, enum file_root root, const char *path, struct err *e);
/* Starts that worker if there is something to remove and none is running. */
void file_trash_empty(struct file *f);
/* Returns true if such a worker is running or due; then the contents of the trash are not leaks. */
bool file_trash_is_busy(const struct file *f);

/* file_artifact.c: makes alloc/.fetch for the fetcher, before the drop. Returns 0, or -errno with
 * *e. */
int file_staging_make(const struct file *f, struct err *e);

/* file_csi.c: removes per-alloc/<alloc> of all plugins, which must contain no volume. Returns 0 or
 * -errno. */
int file_volumes_remove(const struct file *f, const char *alloc, struct err *e);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* unp.h: what the image-unpacker's files share. Runs in: image-unpacker. */
#ifndef DROVER_IMAGE_UNPACKER_UNP_H
#define DROVER_IMAGE_UNPACKER_UNP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "common/err.h"
#include "common/worker.h"

/* One file of a layer. */
struct unp_entry {
	const char *path;   /* as the archive has it */
	const char *target; /* of a hard or symbolic link */
	mode_t mode;        /* type and permissions */
	bool hardlink;
	int64_t uid, gid;
	struct timespec mtime;
};

/* --- unp_tree.c: makes the files of a layer below a directory, through which no path leads out ---
 */

#define UNP_PATH_SIZE 4096

struct unp_tree {
	int root_fd;
	struct unp_times *times; /* of directories, which are set at the end */
	size_t n_times;
	uint64_t n_made; /* directories that have no entry of their own */
	/* The directory of the last entry: most entries have the same as the one before. */
	char dir[UNP_PATH_SIZE];
	int dir_fd; /* -1: none */
};

/*
 * Makes an entry in place of what the layer had there before. *ret_fd is the descriptor of a new
 * regular file, to be written and then passed to unp_tree_finish(), or -1. A whiteout (".wh.name",
 * OCI image specification, "Layers") becomes one of overlayfs: a character device 0:0, or for
 * ".wh..wh..opq" the attribute user.overlay.opaque of the directory. A device node is passed over:
 * a container has those of its runtime. Returns 0, or -errno with *e.
 */
int unp_tree_make(struct unp_tree *t, const struct unp_entry *en, int *ret_fd, struct err *e);
/* Sets owner, mode and time of the entry. fd: as from unp_tree_make(), stays the caller's. */
int unp_tree_finish(struct unp_tree *t, const struct unp_entry *en, int fd, struct err *e);
/* Sets an extended attribute of a finished entry: those of users, and file capabilities (which a
 * new owner would remove). Others are passed over, and those that overlayfs would obey. */
int unp_tree_set_xattr(struct unp_tree *t, const struct unp_entry *en, const char *attribute,
    const void *value, size_t size, struct err *e);
/* Sets the times of the directories. */
int unp_tree_close(struct unp_tree *t, struct err *e);
void unp_tree_done(struct unp_tree *t);

/* --- unp_layer.c: unpacks layers, removes and lists them. Run in a worker, whose root directory is
 * the store. --- */

struct unp_job {
	char blob[72], layer[72]; /* 64 digits each; layer: of the tar */
	uint64_t max_bytes, max_files;
};
worker_fn unp_layer_unpack, unp_layer_remove, unp_layer_list;
/* Removes what workers that died have left. Call it only while none runs. */
void unp_layers_clean(void);

#endif

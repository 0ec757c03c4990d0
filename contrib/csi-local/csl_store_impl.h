/* SPDX-License-Identifier: Apache-2.0 */
/* csl_store_impl.h: the directories of the store, for the files that implement it. Runs in:
 * drover-csi-local. */
#ifndef DROVER_CONTRIB_CSI_LOCAL_CSL_STORE_IMPL_H
#define DROVER_CONTRIB_CSI_LOCAL_CSL_STORE_IMPL_H

#include <pthread.h>

#include "contrib/csi-local/csl_store.h"

struct csl_index;

struct csl_store {
	int root_fd, lock_fd, locks_fd, nodes_fd, node_fd, node_lock_fd, trash_fd;
	int record_fd[CSL_N_KINDS], data_fd[CSL_N_KINDS];
	struct csl_index *by_id[CSL_N_KINDS], *by_name[CSL_N_KINDS];
	pthread_mutex_t mutex; /* of the indexes */
	struct csl_trash *trash;
	char boot_id[BOOT_ID_SIZE];
	const char *node_id;
};

/* Opens the directory name below dir_fd, which is made if it is missing. */
int csl_dir_open(int dir_fd, const char *name, int *ret_fd, struct err *e);
/* Takes the lock file below dir_fd; waits for a previous plugin that is just ending. */
int csl_lock_take(int dir_fd, int *ret_fd, struct err *e);
/* Opens the directory of this node and takes its lock. */
int csl_node_store_open(struct csl_store *s, struct err *e);

/* Writes a record of a noun, for messages: first a new file, synced, which then replaces the old
 * one. */
int csl_record_write(
    int dir_fd, const char *noun, const char *name, const void *record, struct err *e);
/* Reads a record. Returns NULL with *e: -ENOENT if it does not exist, -EBADMSG if it is damaged. */
void *csl_record_read(int dir_fd, const char *noun, const char *name,
    const ProtobufCMessageDescriptor *d, struct csl_arena *a, struct err *e);
/* Removes a record; succeeds if it does not exist. */
int csl_record_remove(int dir_fd, const char *noun, const char *name, struct err *e);

#endif

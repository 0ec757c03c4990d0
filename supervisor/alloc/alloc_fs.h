/* SPDX-License-Identifier: Apache-2.0 */
/* alloc_fs.h: reads directories and files of allocs, for `alloc fs`. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_ALLOC_ALLOC_FS_H
#define DROVER_SUPERVISOR_ALLOC_ALLOC_FS_H

#include "common/err.h"
#include "common/id.h"
#include "model/node_answers.h"
#include "proto/ipc_records.h"
#include "supervisor/core/sup.h"

struct alloc_fs_ask;

void alloc_fs_new(struct sup *sup);
void alloc_fs_free(struct sup *sup);

/*
 * The end of a request, exactly once, never from within alloc_fs_ask(). r is 0, and then for
 *   FILE_OP_OPEN, FILE_OP_OPEN_OWN  fd is the file, for the callback to close (else -1)
 *   FILE_OP_LIST  files are sorted by name; they live until the callback returns
 *   FILE_OP_STAT  files has one, with its content type
 * or negative with *e, a sentence for the user.
 */
typedef void alloc_fs_cb(struct sup *sup, void *arg, int r, int fd,
    const struct rpc_fs_list_rep *files, const struct err *e);

/* path may begin with a '/'. NULL with *e: -ENOENT there is no such alloc, -EXDEV, -ENAMETOOLONG,
 * -EBUSY too many requests wait. */
struct alloc_fs_ask *alloc_fs_ask(struct sup *sup, const struct id *alloc, enum file_op op,
    const char *path, alloc_fs_cb *cb, void *arg, struct err *e);
/* Cancels: the callback will not be called. NULL is ignored. */
void alloc_fs_forget(struct alloc_fs_ask *ask);

/* Returns true for an error that the requested path explains, not a failure of this machine. */
bool alloc_fs_is_refusal(int r);

/* Copies the path without ".", ".." and doubled '/', relative to the alloc's directory, which is
 * "". 0, -EXDEV or -ENAMETOOLONG. */
int alloc_fs_clean(const char *path, char *ret, size_t size);
/* Formats a mode as Go's FileMode does: "-rw-r--r--", "dtrwxrwxrwx". */
#define ALLOC_FS_MODE_SIZE 16
void alloc_fs_mode(unsigned st_mode, char ret[ALLOC_FS_MODE_SIZE]);
/* Returns the content type of a regular file, by its name and its first bytes. */
const char *alloc_fs_type(const char *name, const void *data, size_t len);

#endif

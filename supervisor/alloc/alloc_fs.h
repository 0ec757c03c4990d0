/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alloc_fs.h: what is in an alloc's directory: asked of the file-helper, for `alloc fs`
 *. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_ALLOC_ALLOC_FS_H
#define DROVER_SUPERVISOR_ALLOC_ALLOC_FS_H

#include "common/err.h"
#include "common/id.h"
#include "model/node_answers.h"
#include "proto/ipc_records.h"
#include "supervisor/core/sup.h"

struct alloc_fs_ask;

/*
 * The end of a question, exactly once, never from within alloc_fs_ask(). r is 0, and then for
 *   FILE_OP_OPEN  fd is the file's, the callback's to close (else -1)
 *   FILE_OP_LIST  files are sorted by name; they live until the callback returns
 *   FILE_OP_STAT  files has one, with its content type
 * or negative with *e, the words for the user.
 */
typedef void alloc_fs_cb(struct sup *sup, void *arg, int r, int fd,
    const struct rpc_fs_list_rep *files, const struct err *e);

/* path may begin with a '/'. NULL with *e: -ENOENT no such alloc, -EXDEV, -ENAMETOOLONG, -EBUSY too
 * many at one time, -ENOMEM. */
struct alloc_fs_ask *alloc_fs_ask(struct sup *sup, const struct id *alloc, enum file_op op,
    const char *path, alloc_fs_cb *cb, void *arg, struct err *e);
/* The callback will not be called. NULL is ignored. */
void alloc_fs_forget(struct alloc_fs_ask *ask);

/* Is it the path's or the user's fault, not this machine's? */
bool alloc_fs_is_refusal(int r);

/* A path without ".", ".." and doubled '/', relative to the alloc's directory; "" is that. -EXDEV,
 * -ENAMETOOLONG. */
int alloc_fs_clean(const char *path, char *ret, size_t size);
/* As Go's FileMode looks: "-rw-r--r--", "dtrwxrwxrwx". */
#define ALLOC_FS_MODE_SIZE 16
void alloc_fs_mode(unsigned st_mode, char ret[ALLOC_FS_MODE_SIZE]);
/* Of a regular file, by its name and its first bytes. */
const char *alloc_fs_type(const char *name, const void *data, size_t len);

#endif

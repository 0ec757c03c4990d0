/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mount_proof.h: what a mount is, so that it can be told from any other later: taken right after
 * publish, compared before a task is let in. Runs in: mount-helper (takes it, in a child), executor
 * (compares it).
 */
#ifndef DROVER_COMMON_MOUNT_PROOF_H
#define DROVER_COMMON_MOUNT_PROOF_H

#include "proto/executor.h" /* enum exe_proof */
#include "proto/ipc_records.h"

/*
 * Reads it from a descriptor (O_PATH will do) of the mount's root. 0; -ENODEV when the descriptor
 * is not the root of a mount; -errno of statx or fstatfs. statx is told not to ask the file system,
 * fstatfs does ask: a FUSE daemon or an NFS server that never answers hangs the caller beyond
 * SIGKILL. Call it where that is allowed.
 */
int mount_proof_take(int fd, struct mount_proof *ret);

/*
 * The first field in which they differ, EXE_PROOF_NONE if none does. A plain mount id proves
 * nothing and is left out.
 */
enum exe_proof mount_proof_compare(
    const struct mount_proof *promised, const struct mount_proof *found);

#endif

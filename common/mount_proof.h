/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mount_proof.h: the identity of a mount, which distinguishes it from any later one: taken right
 * after publish, compared before a task gets the mount. Runs in: mount-helper (takes it, in a
 * child), executor (compares it).
 */
#ifndef DROVER_COMMON_MOUNT_PROOF_H
#define DROVER_COMMON_MOUNT_PROOF_H

#include "proto/executor.h" /* for enum exe_proof */
#include "proto/ipc_records.h"

/*
 * Reads the identity of a mount from a descriptor (O_PATH is enough) of its root, without a call to
 * its file system: all fields but the fs_ ones. Returns 1; 0 if the descriptor is a block device
 * that is not mounted; -ENODEV for anything else that is not the root of a mount; -errno of statx.
 */
int mount_identity_take(int fd, struct mount_proof *ret);
/* The same with all fields; returns 0 also for a mount. It asks the file system, so a FUSE daemon
 * or an NFS server that does not answer hangs the caller even beyond SIGKILL: call it only in a
 * process that may hang. */
int mount_proof_take(int fd, struct mount_proof *ret);

/*
 * Returns the first field in which they differ, or EXE_PROOF_NONE. mount_identity_compare() leaves
 * out the fs_ fields. Equal mount ids prove nothing where they are not unique, because the kernel
 * reuses them; the other fields do.
 */
enum exe_proof mount_identity_compare(
    const struct mount_proof *promised, const struct mount_proof *found);
enum exe_proof mount_proof_compare(
    const struct mount_proof *promised, const struct mount_proof *found);

#endif

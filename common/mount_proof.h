/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mount_proof.h: what a mount is, so that it can be told from any other later: taken right after
 * publish, compared before a task is let in. Runs in: mount-helper (takes it, in a child), executor
 * (compares it).
 */
#ifndef DROVER_COMMON_MOUNT_PROOF_H
#define DROVER_COMMON_MOUNT_PROOF_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/executor.h" /* enum exe_proof */

/* The fields of MountProof (proto/ids.proto). */
struct mount_proof {
	uint64_t mnt_id;
	bool mnt_id_unique; /* STATX_MNT_ID_UNIQUE, kernel 6.8; else the id may be reused and is not
			       compared */
	uint32_t dev_major, dev_minor;
	uint64_t ino;
	int64_t btime_sec; /* 0, 0: the file system has no birth time */
	uint32_t btime_nsec;
	uint64_t fs_type, fs_id, fs_flags;
};

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

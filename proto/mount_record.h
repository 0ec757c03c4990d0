/* SPDX-License-Identifier: Apache-2.0 */
/* mount_record.h: what identifies a mount, as exec-helper hands it to the executor (functions:
 * common/mount_proof.h). Runs in: mount-helper, exec-helper, executor. */
#ifndef DROVER_PROTO_MOUNT_RECORD_H
#define DROVER_PROTO_MOUNT_RECORD_H

#include <stdbool.h>
#include <stdint.h>

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

#endif

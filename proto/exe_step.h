/* SPDX-License-Identifier: Apache-2.0 */
/* exe_step.h: where the set-up of a run failed. Reported by executors of any version, so this file
 * is append-only. Runs in: supervisor, executor. */
#ifndef DROVER_PROTO_EXE_STEP_H
#define DROVER_PROTO_EXE_STEP_H

/* Where a set-up failed, in the order of the steps. */
enum exe_step {
	EXE_STEP_NONE = 0,
	EXE_STEP_SPEC = 1,      /* the task spec is invalid */
	EXE_STEP_PIPES = 2,     /* pipes of the logs, or of a session */
	EXE_STEP_MOUNT = 3,     /* detail: number of the mount */
	EXE_STEP_PROOF = 4,     /* detail: enum exe_proof << 16 | number of the mount */
	EXE_STEP_NAMESPACE = 5, /* template, proc, dev */
	EXE_STEP_CGROUP = 6,
	EXE_STEP_CLONE = 7,
	EXE_STEP_USER = 8,     /* the task's drop of privileges */
	EXE_STEP_SECRETS = 9,  /* detail: number of the spec's file, from 1; 0: the secrets' mount,
				  or an executor that does not tell */
	EXE_STEP_COMMAND = 10, /* execve, or the search for the binary */
	EXE_STEP_DROP = 11,    /* the executor's drop of privileges */
	EXE_STEP_CWD = 12,
	EXE_STEP_DIRS = 13,      /* the task's own directories; detail: enum exe_dirs */
	EXE_STEP_TERMINAL = 14,  /* of a session, or of a container's first process */
	EXE_STEP_LAYERS = 15,    /* the container's root; detail: enum exe_root */
	EXE_STEP_CONTAINER = 16, /* what is in it; detail: enum exe_part */
	EXE_STEP_RESOLV_CONF = 17,
};

/* What is wrong with the task's directories. */
enum exe_dirs {
	EXE_DIRS_NONE = 0,
	EXE_DIRS_CLOSED = 1, /* the alloc's directory has no group that lets the user in */
};

/* The step at which the set-up of a container's root failed. */
enum exe_root {
	EXE_ROOT_IDS = 1,   /* the user namespaces */
	EXE_ROOT_LAYER = 2, /* a layer: it is missing, or its file system cannot map ids */
	EXE_ROOT_DIRS = 3,  /* the task's directories, likewise */
	EXE_ROOT_ENTER = 4, /* become root of the container */
	EXE_ROOT_UPPER = 5, /* what the last container wrote: it is removed, and made again */
	EXE_ROOT_OVERLAY = 6,
	EXE_ROOT_PIVOT = 7,
};

/* The part of a container whose set-up failed. */
enum exe_part {
	EXE_INSIDE_USER = 1, /* the user is not in the image's /etc/passwd, or a group … */
	EXE_INSIDE_PROC = 2,
	EXE_INSIDE_SYS = 3,
	EXE_INSIDE_DEV = 4,
	EXE_INSIDE_MASK = 5,
	EXE_INSIDE_DIRS = 6,   /* /alloc, /local, /secrets */
	EXE_INSIDE_FILES = 7,  /* /etc/hosts, hostname, resolv.conf */
	EXE_INSIDE_OPTION = 8, /* of the job: detail >> 8 is its number in the spec */
	EXE_INSIDE_NAME = 9,
	EXE_INSIDE_READ_ONLY = 10,
};

/* Which field of a mount's proof did not match. */
enum exe_proof {
	EXE_PROOF_NONE = 0,
	EXE_PROOF_OPEN = 1,       /* the path cannot be opened */
	EXE_PROOF_MOUNT_ROOT = 2, /* the path is not a mount point */
	EXE_PROOF_MOUNT_ID = 3,
	EXE_PROOF_DEVICE = 4,
	EXE_PROOF_INODE = 5,
	EXE_PROOF_BIRTH = 6,
	EXE_PROOF_FS = 7,   /* type, id or flags of the file system */
	EXE_PROOF_NODE = 8, /* a block device or not, and which */
};

#endif

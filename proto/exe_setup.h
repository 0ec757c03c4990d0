/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exe_setup.h: what exec-helper hands to the executor that it clones: descriptors at fixed numbers,
 * and one record in a sealed memfd. Both are of one build and started within one call, so the
 * record needs no encoding. All of it has been checked against the policy; what only names things
 * inside the task is in the task spec (task_spec.h), unread.
 */
#ifndef DROVER_PROTO_EXE_SETUP_H
#define DROVER_PROTO_EXE_SETUP_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/agent_config.h"
#include "proto/ipc_records.h"

#define EXE_SETUP_MAGIC 0x70757465u
#define EXE_MOUNTS_MAX  32
#define EXE_PATH_SIZE   640
#define EXE_GROUPS_MAX  63 /* of a user; one more is the alloc's */
#define EXE_BASE_PATH   "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* 0 to 2 are /dev/null. What a run has no use for is /dev/null too. Below PERMANENT: of this run;
 * above: of the agent. */
enum exe_fd {
	EXE_FD_SETUP = 3,
	EXE_FD_SPEC,
	EXE_FD_LISTEN, /* session: its one peer */
	EXE_FD_RECORD,
	EXE_FD_LOGS, /* the alloc's log directory */
	EXE_FD_LEASE,
	EXE_FD_CGROUP, /* tasks/<run>: enum cgroup_tree from here on; a session's V2: its own below
			  that */
	EXE_FD_CGROUP_END = EXE_FD_CGROUP + 6,
	EXE_FD_TASK = EXE_FD_CGROUP_END, /* session: a pidfd of the task */
	EXE_FD_PERMANENT,
	EXE_FD_ALLOC = EXE_FD_PERMANENT,
	EXE_FD_CSI,
	EXE_FD_PROC,
	EXE_FD_TEMPLATE,     /* the mount namespace that exec tasks copy */
	EXE_FD_SYSTEMD_EXEC, /* exec/ in the tree that systemd tracks */
	EXE_FD_BINARY,       /* exec-helper's: of the executor */
	EXE_FD_SELF,         /* exec-helper's: of itself */
	EXE_FD_VOLUMES,      /* host volumes of this run, in the order of its mounts */
};

enum exe_mount_kind {
	EXE_MOUNT_HOST = 1,   /* the next of EXE_FD_VOLUMES */
	EXE_MOUNT_CSI = 2,    /* path below EXE_FD_CSI, with a proof */
	EXE_MOUNT_SHARED = 3, /* path below EXE_FD_CSI: stays in its peer group, belongs to the
				 plugin that the task is */
};

/* As enum exec_session_kind of ipc_records.def. */
enum exe_session {
	EXE_SESSION_NONE = 0, /* the run itself */
	EXE_SESSION_COMMAND = 1,
	EXE_SESSION_FILE = 2,
};

struct exe_setup_mount {
	uint32_t kind, read_only;
	uint32_t give; /* EXE_MOUNT_SHARED: to the task's user */
	uint32_t zero;
	struct mount_proof proof;
	char path[EXE_PATH_SIZE];
	char dest[EXE_PATH_SIZE]; /* absolute, in the task; unchecked otherwise */
};

struct exe_user {
	uid_t uid;
	gid_t gid;
	uint32_t n_groups;
	gid_t groups[EXE_GROUPS_MAX];
	char name[CONFIG_NAME_SIZE], home[CONFIG_PATH_SIZE], shell[CONFIG_NAME_SIZE];
};

/* What of the set-up is needed as long as the task runs. */
struct exe_keep {
	uid_t drover_uid, executor_uid;
	gid_t executor_gid;
	uint32_t kill_signal, log_max_files;
	uint64_t kill_timeout_ms, log_max_bytes, lease_ms;
	char task[IPC_NAME_SIZE];
};

struct exe_setup {
	uint32_t magic, size; /* size: without the mounts that are not there */
	uint8_t run[16], alloc[16];
	char alloc_name[40];
	char boot_id[40];
	uint32_t driver;             /* enum driver */
	uint32_t pid_host, ipc_host; /* 0 in a session, which finds out by itself */
	uint32_t csi_plugin, logs_disabled;
	uint32_t session; /* enum exe_session */
	uint32_t secrets_mb;
	uint32_t tty;
	struct exe_keep keep;
	struct exe_user user;
	uint64_t caps; /* exec: all its sets; a session in a host namespace has none of them */
	uint32_t memory_in_v2;
	uint32_t trees;        /* bit of enum cgroup_tree: the run has a directory there */
	int32_t oom_score_adj; /* exec-helper's own, to be undone */
	uint32_t n_mounts;
	struct exe_setup_mount mounts[EXE_MOUNTS_MAX];
};

#define EXE_SETUP_SIZE(n)                                                                          \
	(offsetof(struct exe_setup, mounts) + (n) * sizeof(struct exe_setup_mount))

#endif

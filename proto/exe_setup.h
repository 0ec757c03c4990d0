/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exe_setup.h: what exec-helper passes to the executor that it clones: descriptors at fixed
 * numbers, and one record in a sealed memfd. Both are of one build and started within one call, so
 * the record needs no encoding. exec-helper has checked all of it against the policy; strings that
 * name things inside the task are in the task spec (task_spec.h), which it does not read. Runs in:
 * exec-helper, executor.
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
#define EXE_GROUPS_MAX  63 /* of a user; the alloc's group comes on top */
#define EXE_BASE_PATH   "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* 0 to 2 are /dev/null, and so is any other descriptor that a run does not need. Those below
 * PERMANENT belong to this run, the others to the agent. */
enum exe_fd {
	EXE_FD_SETUP = 3,
	EXE_FD_SPEC,
	EXE_FD_LISTEN, /* session: the socket to its only peer */
	EXE_FD_RECORD,
	EXE_FD_LOGS, /* the alloc's log directory */
	EXE_FD_LEASE,
	EXE_FD_CGROUP, /* first of the run's cgroups, tasks/<run>, in the order of enum cgroup_tree;
			  in a session V2's is a cgroup of its own below that */
	EXE_FD_CGROUP_END = EXE_FD_CGROUP + 6,
	EXE_FD_TASK = EXE_FD_CGROUP_END, /* session: a pidfd of the task */
	EXE_FD_NETWORK,                  /* the network namespace that the task joins */
	EXE_FD_PERMANENT,
	EXE_FD_ALLOC = EXE_FD_PERMANENT,
	EXE_FD_CSI,
	EXE_FD_PROC,
	EXE_FD_TEMPLATE,     /* the mount namespace that exec tasks clone */
	EXE_FD_CONTAINERS,   /* … and that containers clone */
	EXE_FD_LAYERS,       /* the layers of container images */
	EXE_FD_SYSTEMD_EXEC, /* exec/ in the hierarchy that systemd tracks */
	EXE_FD_BINARY,       /* for exec-helper: the executor's binary */
	EXE_FD_SELF,         /* for exec-helper: its own binary */
	EXE_FD_VOLUMES,      /* this run's host volumes, in the order of its mounts */
};

enum exe_mount_kind {
	EXE_MOUNT_HOST = 1,   /* path below the next descriptor from EXE_FD_VOLUMES on; empty: all
				 of it */
	EXE_MOUNT_CSI = 2,    /* path below EXE_FD_CSI, mounted only if the proof matches */
	EXE_MOUNT_SHARED = 3, /* of the plugin that the task is; below EXE_FD_CSI, stays in its
						peer group */
	EXE_MOUNT_DEVICE = 4, /* of a container; path below /dev of the machine */
};

/* The values of enum exec_session_kind in ipc_records.def. */
enum exe_session {
	EXE_SESSION_NONE = 0, /* no session: the executor of the run itself */
	EXE_SESSION_COMMAND = 1,
	EXE_SESSION_FILE = 2,
};

struct exe_setup_mount {
	uint32_t kind, read_only;
	uint32_t give;    /* EXE_MOUNT_SHARED: chown it to the task's user */
	uint32_t own_ids; /* container: ids of the volume's files are ids in it; else its users are
			     all others there */
	struct mount_proof proof;
	char path[EXE_PATH_SIZE];
	char dest[EXE_PATH_SIZE]; /* absolute path in the task, not checked otherwise */
};

struct exe_user {
	uid_t uid;
	gid_t gid;
	uint32_t n_groups;
	gid_t groups[EXE_GROUPS_MAX];
	char name[CONFIG_NAME_SIZE], home[CONFIG_PATH_SIZE], shell[CONFIG_NAME_SIZE];
};

/* The part of the set-up that is needed as long as the task runs. */
struct exe_keep {
	uid_t drover_uid, executor_uid;
	gid_t executor_gid;
	uint32_t kill_signal, log_max_files, log_store; /* log_store: enum exec_log_store */
	uint64_t kill_timeout_ms, log_max_bytes, lease_ms;
	char task[IPC_NAME_SIZE];
};

struct exe_setup {
	uint32_t magic, size; /* size: without unused mounts */
	uint8_t run[16], alloc[16];
	char alloc_name[40];
	char boot_id[40];
	uint32_t driver;             /* enum driver */
	uint32_t pid_host, ipc_host; /* 0 in a session, which reads the task's modes itself */
	uint32_t csi_plugin, logs_disabled;
	uint32_t own_artifacts, own_shared, own_network, own_resolv_conf;
	uint32_t session; /* enum exe_session */
	uint32_t secrets_mb;
	uint32_t tty;
	/* Fields of the task's lines in the journal. */
	char log_namespace[IPC_NAME_SIZE], log_job[IPC_NAME_SIZE], log_group[IPC_NAME_SIZE];
	struct exe_keep keep;
	struct exe_user user;
	uint64_t caps; /* exec: all its capability sets; empty for a session in a host namespace;
			  container: the most that one without a user namespace can have */
	uint32_t memory_in_v2;
	uint32_t trees; /* bits of enum cgroup_tree: hierarchies in which the run has a cgroup */
	uint32_t oom_score_adj; /* of the task */
	uint32_t net_private;   /* container: it has a network namespace of its own */
	uint32_t privileged; /* container: without a user namespace, with the machine's devices */
	uint32_t host_ids;   /* container: its user namespace has the machine's ids */
	uint32_t n_layers;
	uint64_t layers[EXEC_LAYERS_MAX][4]; /* container: SHA-256 of each, from the highest */
	uint32_t n_mounts;
	struct exe_setup_mount mounts[EXE_MOUNTS_MAX];
};

#define EXE_SETUP_SIZE(n)                                                                          \
	(offsetof(struct exe_setup, mounts) + (n) * sizeof(struct exe_setup_mount))

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* launcher.h: what the launcher's files share. Runs in: launcher, as root. */
#ifndef DROVER_LAUNCHER_LAUNCHER_H
#define DROVER_LAUNCHER_LAUNCHER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/config.h"
#include "common/err.h"
#include "common/ipc.h"

#define LAU_CONFIGS_MAX  32
#define LAU_LOCK_WAIT_MS 5000
/* All processes but the executors: enum ipc_peer up to IPC_FILE_HELPER, and the executor's binary
 * behind them. */
#define LAU_CHILDREN     (IPC_FILE_HELPER + 1)
#define LAU_BIN_EXECUTOR LAU_CHILDREN
#define LAU_BINARIES     (LAU_CHILDREN + 1)

/* Order of proc_args.agent_uids. */
enum lau_user {
	LAU_USER_DROVER,
	LAU_USER_EXECUTOR,
	LAU_USER_CSI,
	LAU_USER_HEARTBEAT,
	LAU_USER_CHECK,
	LAU_USER_FILE,
	LAU_USERS
};

struct lau_users {
	uid_t uid[LAU_USERS];
	gid_t gid[LAU_USERS];
};

/* The two records as sealed memfds, and mapped. Neither 0 nor -1 is a descriptor here. */
struct lau_config {
	int config_fd, policy_fd;
	int tls_fds[CONFIG_TLS_FILES]; /* with tls_rpc: what is in the files, for heartbeat alone */
	const struct agent_config *config;
	const struct agent_policy *policy;
};

struct lau_child {
	pid_t pid;           /* 0: does not run */
	int link;            /* our end, -1 */
	int kept;            /* a helper's IPC end until it is started, -1 */
	uint32_t generation; /* of the helper: 1 is the first */
	uint64_t started_ms;
	unsigned delay_ms; /* before the next start; doubles */
	uint64_t not_before_ms;
};

struct launcher {
	const char *configs[LAU_CONFIGS_MAX];
	size_t n_configs;
	const char *data_option, *socket_option; /* NULL: not given */
	bool dev;

	bool data_is_temporary;
	char data[CONFIG_PATH_SIZE], rt[CONFIG_PATH_SIZE], socket[CONFIG_PATH_SIZE],
	    cgroup[CONFIG_PATH_SIZE];
	char instance[9];
	struct lau_users users;
	struct lau_config config;
	/* All open as long as the launcher lives; listen_fd is handed to every supervisor. */
	int null_fd, data_fd, lock_fd, rt_fd, lease_fd, listen_fd;
	/* log_watch()'s: lines go in, the supervisor takes them out; its page, which it alone gets
	 * to write. */
	int log_fd, log_out_fd, log_level_fd, log_level_write_fd;
	bool listen_is_ours; /* bound here, not by systemd */
	int binaries[LAU_BINARIES];

	struct lau_child children[LAU_CHILDREN];
	int signal_fd;
	bool ending; /* the supervisor is gone or told to go: nothing is started until all are gone
		      */
	bool stopping; /* for good: SIGTERM or SIGINT came, or the supervisor gave up */
	bool forced;   /* -dev: a second signal came, what still runs is killed */
	bool done;     /* the supervisor is gone for good; over as soon as the others are too */
	unsigned drain_tries; /* -dev: supervisors that died over the drain */
	int exit_code;
	uint64_t kill_at_ms; /* ending: 0 means never */
	bool killed; /* ending: SIGKILL was sent, kill_at_ms is when the launcher stops waiting */
};

/*
 * lau_config.c: reads the configuration in children, each for at most 11 s. On success *ret holds
 * the two records, for lau_config_done(); a failure has been logged by the child or is in *e, and
 * leaves *ret untouched.
 */
int lau_config_read(const struct launcher *l, struct lau_config *ret, struct err *e);
void lau_config_done(struct lau_config *c);

/* lau_data.c: the data directory: opened, locked, named, filled. In this order. */
int lau_data_open(struct launcher *l, struct err *e);
int lau_data_make(struct launcher *l, struct err *e);
/*
 * alloc/ as a mount of its own, private, nosuid and nodev: what a task leaves there (a set-user-id
 * file that cap_add let it make) is nothing on the host either.
 */
int lau_alloc_mount(struct launcher *l, struct err *e);
/* -dev: mounts below it go, and the directory itself if it is a temporary one. After everything
 * else has ended. */
void lau_data_undo(struct launcher *l);
/* Writes name.new and renames it: readers see all of it or what was there. 0 or -errno. */
int lau_file_replace(int dir_fd, const char *name, mode_t mode, const void *data, size_t len);
/* Takes the flock on fd, waiting LAU_LOCK_WAIT_MS. -EBUSY with *e: "another agent (pid …) uses
 * <what>". */
int lau_lock_take(int fd, const char *what, struct err *e);

/*
 * lau_users.c: who the agent's processes run as. Needs the data directory and the instance. Users
 * that do not differ set l->exit_code.
 */
int lau_users_find(struct launcher *l, struct err *e);

/* lau_runtime.c: <rt>, the lease page, the control socket, the cgroups' parent. */
int lau_runtime_make(struct launcher *l, struct err *e);
/* Opens or makes the lease page anew: before every start of the set, because somebody may have
 * deleted it. */
int lau_lease_open(struct launcher *l, struct err *e);
/* Binds the control socket anew if somebody has shut it down: before every start of the set. A
 * supervisor that was taken over can pass it on to one whose filter does not refuse that. */
int lau_socket_renew(struct launcher *l, struct err *e);
/* Is there a parent of cgroups that is known to hold no process? */
bool lau_runtime_is_idle(const struct launcher *l);
/* The socket if it is ours; with -dev the cgroups and <rt> too. */
void lau_runtime_undo(struct launcher *l);

/* lau_child.c: makes one process out of its row in the table of processes. */
int lau_binaries_open(struct launcher *l, struct err *e);
/* What the processes log goes to whoever watches by this: once, for all sets. */
int lau_log_open(struct launcher *l, struct err *e);
/* This process's stderr shares no flag and no offset with another's any more, if that can be. */
void lau_stderr_own(void);
const char *lau_child_name(enum ipc_peer who);
/*
 * Forks and execs. ends are the supervisor's ends of the pairs (supervisor only), else the
 * helper's own kept end; the caller closes them. Sets pid, link, started_ms.
 */
int lau_child_start(struct launcher *l, enum ipc_peer who, const int *ends, struct err *e);

/* lau_set.c: starts the set, keeps it running, until a signal ends it. Returns the launcher's exit
 * code. */
int lau_set_run(struct launcher *l);

#endif

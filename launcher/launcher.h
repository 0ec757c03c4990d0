/* SPDX-License-Identifier: Apache-2.0 */
/* launcher.h: types and functions that the launcher's files share. Runs in: launcher, as root. */
#ifndef DROVER_LAUNCHER_LAUNCHER_H
#define DROVER_LAUNCHER_LAUNCHER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/err.h"
#include "common/ipc.h"
#include "common/sd.h"
#include "config/config.h"

#define LAU_CONFIGS_MAX  32
#define LAU_LOCK_WAIT_MS 5000
/* Indexes of the processes (enum ipc_peer up to IPC_NETWORK_HELPER), then of the executor's binary.
 */
#define LAU_CHILDREN     (IPC_NETWORK_HELPER + 1)
#define LAU_BIN_EXECUTOR LAU_CHILDREN
#define LAU_BINARIES     (LAU_CHILDREN + 1)

/* Order of proc_args.agent_uids. */
enum lau_user {
#define AGENT_USER(id, name) LAU_USER_##id,
#include "proto/agent_users.def"
#undef AGENT_USER
	LAU_USERS
};

struct lau_users {
	uid_t uid[LAU_USERS];
	gid_t gid[LAU_USERS];
};

/* The two records, as sealed memfds and mapped. A descriptor of 0 or -1 means none. */
struct lau_config {
	int config_fd, policy_fd;
	int file_fds[CONFIG_FILES]; /* contents of files for unprivileged processes */
	const struct agent_config *config;
	const struct agent_policy *policy;
};

struct lau_child {
	pid_t pid;           /* 0: not running */
	int link;            /* our end of the link, or -1 */
	int kept;            /* a helper's IPC end until the helper is started, else -1 */
	uint32_t generation; /* counts the starts of the helper; 1 is the first */
	uint64_t started_ms;
	unsigned delay_ms; /* delay before the next start; doubles each time */
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
	/* Open as long as the launcher lives; listen_fd is passed to each supervisor. */
	int null_fd, data_fd, lock_fd, rt_fd, lease_fd, listen_fd;
	int tcp_fds[LISTEN_USES];       /* the listener's, with their addresses; -1: none */
	int passed_fds[LISTEN_FDS_TCP]; /* the TCP sockets that systemd passed; -1: none */
	uint8_t tcp_at[LISTEN_USES][sizeof(((struct config_listen *)0)->sockaddr)];
	int cgroup_fd; /* the lock by which drover cleanup knows that the agent runs */
	/* log_watch(): the pipe of log lines to the supervisor, and its page, which only the
	 * supervisor can write. */
	int log_fd, log_out_fd, log_level_fd, log_level_write_fd;
	bool listen_is_ours; /* the launcher bound the socket itself, not systemd */
	int binaries[LAU_BINARIES];

	struct lau_child children[LAU_CHILDREN];
	int signal_fd;
	bool ending;      /* the supervisor has ended or was told to: nothing is started until all
			     processes have ended */
	bool stopping;    /* the agent ends: SIGTERM or SIGINT came, or the supervisor gave up */
	int leave_signal; /* SIGUSR1 or SIGUSR2 that came while no supervisor ran; 0: none */
	int drain_signal; /* when stopping: the signal that began a drain of the node; 0: none */
	bool forced;      /* a second signal came: no drain; with -dev remaining tasks are killed */
	bool done; /* the supervisor has ended for good; the agent ends when the others have */
	unsigned drain_tries; /* number of supervisors that died during the drain */
	int exit_code;
	uint64_t kill_at_ms; /* when ending: time of SIGKILL; 0: never */
	bool killed; /* when ending: SIGKILL was sent; the launcher waits until kill_at_ms */
};

/* lau_config.c: reads the configuration in children, each limited to 11 s. On success *ret has the
 * two records, to be freed with lau_config_done(). A failure was logged by the child or is in *e,
 * and leaves *ret untouched. */
int lau_config_read(const struct launcher *l, struct lau_config *ret, struct err *e);
void lau_config_done(struct lau_config *c);

/* lau_data.c: open, lock, name and fill the data directory, in this order. */
int lau_data_open(struct launcher *l, struct err *e);
int lau_data_make(struct launcher *l, struct err *e);
/* Makes alloc/ a mount of its own: private, nosuid and nodev, so that a set-user-id file that a
 * task made there has no effect on the host either. */
int lau_alloc_mount(struct launcher *l, struct err *e);
/* -dev: removes the mounts below the data directory, and the directory itself if it is temporary.
 * To be called after everything else has ended. */
void lau_data_undo(struct launcher *l);
/* Writes name.new and renames it, so that readers see either the old or the complete new contents.
 * Returns 0 or -errno. */
int lau_file_replace(int dir_fd, const char *name, mode_t mode, const void *data, size_t len);
/* Locks fd with flock(2), waiting up to LAU_LOCK_WAIT_MS. -EBUSY with *e: "another agent (pid …)
 * uses <what>". */
int lau_lock_take(int fd, const char *what, struct err *e);

/* lau_users.c: finds the users of the agent's processes. Needs the data directory and the instance.
 * If two users share an id, sets l->exit_code. */
int lau_users_find(struct launcher *l, struct err *e);

/* lau_runtime.c: <rt>, the lease page, the control socket, the cgroups' parent. */
int lau_runtime_make(struct launcher *l, struct err *e);
/* Opens the lease page or makes it. Called before every start of the set, because the page may have
 * been deleted. */
int lau_lease_open(struct launcher *l, struct err *e);
/* Binds the control socket again if it was shut down. Called before every start of the set: a
 * supervisor under an attacker's control could pass the socket to a process whose filter allows
 * shutdown(2). */
int lau_socket_renew(struct launcher *l, struct err *e);
/* Listens on the configuration's TCP addresses; keeps sockets whose addresses have not changed. */
int lau_listen(struct launcher *l, const struct agent_config *config, struct err *e);
/* Returns true if the cgroup parent exists and is known to hold no process. */
bool lau_runtime_is_idle(const struct launcher *l);
/* Removes the socket if the launcher bound it; with -dev also the cgroups and <rt>. */
void lau_runtime_undo(struct launcher *l);

/* lau_child.c: makes one process out of its row in the table of processes. */
int lau_binaries_open(struct launcher *l, struct err *e);
/* Makes the channel by which log lines reach monitors. Called once, for all sets. */
int lau_log_open(struct launcher *l, struct err *e);
/* Reopens stderr, if possible, so that it shares no flags and no offset with another process. */
void lau_stderr_own(void);
const char *lau_child_name(enum ipc_peer who);
/* Forks and executes a process. ends are the supervisor's ends of the pairs (for the supervisor),
 * or the helper's own end; the caller closes them. Sets pid, link and started_ms. */
int lau_child_start(struct launcher *l, enum ipc_peer who, const int *ends, struct err *e);

/* lau_set.c: starts the set and keeps it running until a signal ends it. Returns the launcher's
 * exit code. */
int lau_set_run(struct launcher *l);

#endif

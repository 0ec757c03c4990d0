/* SPDX-License-Identifier: Apache-2.0 */
/* exec.h: types and functions that exec-helper's files share. Runs in: exec-helper, uid 0 with
 * CAP_SYS_ADMIN. */
#ifndef DROVER_EXEC_HELPER_EXEC_H
#define DROVER_EXEC_HELPER_EXEC_H

#include "common/cgroup.h"
#include "common/config_map.h"
#include "common/err.h"
#include "common/id.h"
#include "common/proc.h"
#include "proto/exe_setup.h"
#include "proto/ipc_records.h"

#define EXEC_USERS_MAX      16
#define EXEC_USER_TTL_MS    10000
#define EXEC_LOOKUP_MS      2000
#define EXEC_USER_NOT_FOUND UINT32_MAX /* value of n_groups: the user does not exist */

struct exec_cached_user {
	char asked[CONFIG_NAME_SIZE];
	uint64_t until_ms; /* CLOCK_MONOTONIC; 0: empty */
	struct exe_user user;
};

struct exec_state {
	const struct proc_args *args;
	const struct agent_policy *policy;
	struct cgroup cgroup;
	int rt, sockets, logs, records;  /* <rt>, <rt>/x, <data>/logs, <data>/run */
	int volumes[CONFIG_VOLUMES_MAX]; /* descriptors of the policy's host volumes, -1: not usable
					    … */
	struct err volume_errors[CONFIG_VOLUMES_MAX]; /* … and the reason */
	bool volume_private[CONFIG_VOLUMES_MAX];      /* only root can reach it by its path */
	uint64_t pids_max;                            /* process limit of each run; 0: unknown */
	char boot_id[BOOT_ID_SIZE];
	struct err template_error;   /* code 0: the template for exec tasks exists … */
	struct err containers_error; /* … and that for containers */
	struct exec_cached_user users[EXEC_USERS_MAX];
	struct exe_setup setup; /* of the current start */
	int spec;               /* descriptor of the current request */
	bool started;           /* the previous request was a start */
	bool reaping;           /* SIGCHLD is ignored, so children leave no zombies */
};

/* The descriptors of a run that the executor gets. Initially all -1. */
struct exec_run {
	char name[ID_HEX_SIZE];
	char network_name[ID_UUID_SIZE]; /* if the set-up has own_network */
	int setup, spec, listen, record, logs, lease, task, network;
	int cgroup[CGROUP_TREES];
	int volumes[EXE_MOUNTS_MAX]; /* borrowed from struct exec_state */
	size_t n_volumes;
	bool cores; /* it has reserved cores */
};

/* The handlers, see proc_handle_fn. exec_start.c, exec_session.c, exec_run.c. */
#define EXEC_CALL(NAME, call, ...)                                                                 \
	int exec_on_##call(struct exec_state *s, const struct exec_##call##_req *req,              \
	    struct exec_##call##_rep *rep, int *ret_fd, struct err *e);
#include "proto/ipc_msgs.def"

/* exec_policy.c: checks each field of the request, fills in *setup, and starts *run: its name and
 * the descriptors of host volumes. Returns 0, or -EINVAL, -EPERM … with the sentence for the task's
 * event. */
int exec_policy_check(struct exec_state *s, const struct exec_start *req,
    const struct exec_mount *mounts, uint32_t n_mounts, struct exe_setup *setup,
    struct exec_run *run, struct err *e);

/* exec_start.c: opens the other descriptors for the executor of s->setup. Returns 0 or -errno;
 * exec_run_done() closes run's descriptors. */
int exec_open_for_executor(struct exec_state *s, struct exec_run *run, struct err *e);

/* exec_user.c: looks up a user by name or number, in a child or in the cache. Returns 0, -ENOENT,
 * -ETIMEDOUT … */
int exec_user_find(struct exec_state *s, const char *name, struct exe_user *ret, struct err *e);
/* exec_lookup.c, the child: `drover-exec-helper --lookup NAME`. Writes one struct exe_user to
 * descriptor 1. Returns its exit code. */
int exec_lookup_main(const char *name);
extern const struct proc_child exec_lookup_child;

/* exec_cores.c: returns true if the set is not empty. */
bool exec_cores_any(const uint64_t cores[EXEC_CORE_WORDS]);
/* Checks whether this node can reserve cores. Returns 0, or -errno with a sentence. */
int exec_cores_check(const struct exec_state *s, struct err *e);
/* Restricts the run to these cores. Returns 0 or -errno. */
int exec_cores_set(
    const struct exec_state *s, const struct exec_run *run, const uint64_t cores[EXEC_CORE_WORDS]);

/* exec_run.c: returns the directory that holds the run's cgroup in this tree; -1: none. */
int exec_run_place(const struct exec_state *s, const struct exec_run *run, int tree);
/* exec_run.c: makes cgroup, record and socket, in this order. Returns 1 if made, 0 if the run
 * already exists, or -errno; then nothing is left. */
int exec_run_make(struct exec_state *s, struct exec_run *run, struct err *e);
/* Removes what exec_run_make() made, and closes run's descriptors. */
void exec_run_undo(struct exec_state *s, struct exec_run *run);
void exec_run_done(struct exec_run *run);

/* exec_spawn.c: starts the executor in cgroup exec/ with run's descriptors. Returns 0 after its
 * execve, else -errno. */
int exec_spawn_executor(struct exec_state *s, const struct exec_run *run);
/* Starts this binary as `--lookup name` with its stdout on out, in a cgroup by which it can be
 * killed. Returns the pid or -errno. */
pid_t exec_spawn_lookup(const char *name, int out, int cgroup);

/* exec_template.c: makes the mount namespace that executors of exec tasks copy, as EXE_FD_TEMPLATE.
 * Returns 0 or -errno. */
int exec_template_make(const struct agent_policy *policy, struct err *e);
/* Makes the mount namespace that containers copy, as EXE_FD_CONTAINERS: the kernel's file systems
 * and devices, and nothing of the machine's disks. Makes EXE_FD_BINARY read-only. */
int exec_containers_make(struct err *e);
/* Checks that all masks are still in place. The kernel detaches a mount from a file when another
 * file is renamed over it, as passwd(1) does with /etc/shadow; then the next start needs a new
 * template, and so a new exec-helper. */
bool exec_template_is_whole(const struct agent_policy *policy);

#endif

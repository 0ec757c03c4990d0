/* SPDX-License-Identifier: Apache-2.0 */
/* exec.h: what exec-helper's files share. Runs in: exec-helper, uid 0 with CAP_SYS_ADMIN. */
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
#define EXEC_USER_NOT_FOUND UINT32_MAX /* in n_groups */

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
	int volumes[CONFIG_VOLUMES_MAX]; /* the policy's host volumes, -1: not usable … */
	struct err volume_errors[CONFIG_VOLUMES_MAX]; /* … and why */
	int32_t oom_score_adj;                        /* what executors inherit */
	uint64_t pids_max;                            /* of each run; 0: the kernel does not say */
	char boot_id[BOOT_ID_SIZE];
	struct err template_error; /* code 0: exec tasks have their template */
	struct exec_cached_user users[EXEC_USERS_MAX];
	struct exe_setup setup; /* of the start in hand */
	int spec;               /* the same: the request's descriptor */
	bool started;           /* the request before was a start */
	bool reaping;           /* children leave no zombies */
};

/* What a run is made of, on its way into the executor. All -1 before. */
struct exec_run {
	char name[ID_HEX_SIZE];
	int setup, spec, listen, record, logs, lease, task;
	int cgroup[CGROUP_TREES];
	int volumes[EXE_MOUNTS_MAX]; /* borrowed from exec_state */
	size_t n_volumes;
	bool cores; /* it has some of its own */
};

/* The handlers, see proc_handle_fn. exec_start.c, exec_session.c, exec_run.c. */
#define EXEC_CALL(NAME, call, ...)                                                                 \
	int exec_on_##call(struct exec_state *s, const struct exec_##call##_req *req,              \
	    struct exec_##call##_rep *rep, int *ret_fd, struct err *e);
#include "proto/ipc_msgs.def"

/*
 * exec_policy.c: fills *setup from the request, field by field checked, and begins *run: its name,
 * the descriptors of host volumes, and none else. 0, or -EINVAL, -EPERM … with the sentence that
 * the task's event will show.
 */
int exec_policy_check(struct exec_state *s, const struct exec_start *req,
    const struct exec_mount *mounts, uint32_t n_mounts, struct exe_setup *setup,
    struct exec_run *run, struct err *e);

/* exec_start.c: what else the executor of s->setup gets. 0 or -errno; run's are closed by
 * exec_run_done(). */
int exec_open_for_executor(struct exec_state *s, struct exec_run *run, struct err *e);

/* exec_user.c: who is `name` (or the number in it)? Asks a child, or remembers. 0, -ENOENT,
 * -ETIMEDOUT … */
int exec_user_find(struct exec_state *s, const char *name, struct exe_user *ret, struct err *e);
/* exec_lookup.c, the child: `drover-exec-helper --lookup NAME`. Writes one struct exe_user to
 * descriptor 1. Returns its exit code. */
int exec_lookup_main(const char *name);
extern const struct proc_child exec_lookup_child;

/* exec_cores.c: are there any? */
bool exec_cores_any(const uint64_t cores[EXEC_CORE_WORDS]);
/* Could some be given here? 0, or -errno with the sentence. */
int exec_cores_check(const struct exec_state *s, struct err *e);
/* The run may run on these and nowhere else. 0 or -errno. */
int exec_cores_set(
    const struct exec_state *s, const struct exec_run *run, const uint64_t cores[EXEC_CORE_WORDS]);

/* exec_run.c: where the run's directory of this tree is; -1: it has none. */
int exec_run_place(const struct exec_state *s, const struct exec_run *run, int tree);
/* exec_run.c: makes cgroup, record and socket, in this order. 1 made, 0 the run exists already,
 * -errno: nothing is left. */
int exec_run_make(struct exec_state *s, struct exec_run *run, struct err *e);
/* Takes away what exec_run_make() made, and closes run's descriptors. */
void exec_run_undo(struct exec_state *s, struct exec_run *run);
void exec_run_done(struct exec_run *run);

/* exec_spawn.c: the executor, in exec/, with run's descriptors. 0 when it has been exec'ed, else
 * -errno. */
int exec_spawn_executor(struct exec_state *s, const struct exec_run *run);
/* This binary as `--lookup name` with its stdout on out, in a cgroup of its own by which it can be
 * killed. pid or -errno. */
pid_t exec_spawn_lookup(const char *name, int out, int cgroup);

/* exec_template.c: the mount namespace that executors of exec tasks copy, as EXE_FD_TEMPLATE. 0 or
 * -errno. */
int exec_template_make(const struct agent_policy *policy, struct err *e);
/*
 * Is everything still masked? The kernel takes a mount off a file that another is renamed over, as
 * passwd(1) does with /etc/shadow: then the next start needs a new template, and so a new
 * exec-helper.
 */
bool exec_template_is_whole(const struct agent_policy *policy);

#endif

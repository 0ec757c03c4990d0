/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup.h: the cgroups of one agent: `<parent>/exec`, where all executors are, and
 * `<parent>/tasks/<run>`, where each task is alone. Runs in: launcher (makes, removes), exec-helper
 * (opens, makes runs), mount-helper (asks whose a pid is).
 */
#ifndef DROVER_COMMON_CGROUP_H
#define DROVER_COMMON_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/err.h"

/* The hierarchies that matter. V2 is always there; SYSTEMD is v1's "name=systemd", when systemd
 * runs and tracks by it. */
enum cgroup_tree {
	CGROUP_V2,
	CGROUP_MEMORY,
	CGROUP_CPU,
	CGROUP_PIDS,
	CGROUP_CPUSET,
	CGROUP_SYSTEMD,
	CGROUP_TREES
};

#define CGROUP_BIT(tree) (1u << (tree))

/*
 * Directories, -1 where there is none: a controller of v2 has no tree of its own. CPUSET's tasks
 * are the runs that have cores of their own, where in_v2 says so in `<parent>/cores` of V2's tree
 * instead of tasks/; all others run where the executors do.
 */
struct cgroup {
	int root[CGROUP_TREES]; /* of the hierarchy */
	int exec[CGROUP_TREES];
	int tasks[CGROUP_TREES];
	uint32_t in_v2;   /* bits of MEMORY to CPUSET that V2's tasks have */
	uint32_t missing; /* bits that are nowhere: named, never fatal */
};

/*
 * parent is absolute, below the root of each hierarchy: "/drover-1a2b3c4d". make: it is made, with
 * exec/ and tasks/, by the caller's umask (022 gives 0755), and the controllers are enabled there;
 * what exists is kept. Where no cgroup2 is mounted a detached mount of it is used, which lives as
 * long as root[CGROUP_V2]. Descriptors are CLOEXEC and go with cgroup_close(), also after a
 * failure.
 */
int cgroup_open(struct cgroup *c, const char *parent, bool make, struct err *e);
void cgroup_close(struct cgroup *c);

/*
 * Percent of the processes and threads that the machine can have: for one run, and for all runs and
 * executors together. Five runs at their limit leave a quarter to the host and the agent.
 */
#define CGROUP_PIDS_RUN 15
#define CGROUP_PIDS_ALL 75
/* How many that is; 0: the kernel does not say. */
uint64_t cgroup_pids_share(unsigned percent);

/*
 * For the launcher, after cgroup_open() with make: parent is root's and group's, 0750, so that
 * others do not see the runs' names and counters, and everything in it has CGROUP_PIDS_ALL at most.
 * group may write which cores the runs without cores of their own share.
 * 0 or -errno.
 */
int cgroup_guard(const struct cgroup *c, gid_t group, struct err *e);

/* "memory, pids" of c->missing; "" when nothing is. */
void cgroup_missing_names(const struct cgroup *c, char *buf, size_t size);

/* Kills whatever is below parent, waits for its end up to timeout_ms (-ETIMEDOUT), removes
 * everything. 0 if not there. */
int cgroup_remove(const char *parent, int timeout_ms, struct err *e);

/* SIGKILL to everything in V2's directory dir_fd, and the wait until it is empty. -ETIMEDOUT, or
 * -errno. */
int cgroup_kill(int dir_fd);
int cgroup_wait_empty(int dir_fd, int timeout_ms);
/* 1: something runs in V2's directory dir_fd or below, 0: nothing does, -errno. */
int cgroup_is_populated(int dir_fd);
/* rmdir of name and, depth first, of the cgroups that a task made below it. 0 too if it was not
 * there. -EBUSY: populated. */
int cgroup_rmdir(int dir_fd, const char *name);

/* Is pid now in the run's cgroup or below, by V2's line of /proc/<pid>/cgroup? */
bool cgroup_has_pid(const char *parent, const char *run, pid_t pid);

#endif

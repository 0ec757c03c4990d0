/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup.h: the cgroups of one agent: `<parent>/exec` for all executors, and `<parent>/tasks/<run>`
 * for each task. Runs in: launcher (creates and removes them), exec-helper (opens them, creates
 * those of runs), mount-helper (checks which run a pid belongs to).
 */
#ifndef DROVER_COMMON_CGROUP_H
#define DROVER_COMMON_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/err.h"

/* The hierarchies in use. V2 always exists; SYSTEMD is v1's "name=systemd", which exists where
 * systemd tracks processes by it. */
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
 * Descriptors of directories; -1 where there is none, because a controller of v2 has no hierarchy
 * of its own. If in_v2 has CPUSET, tasks[CPUSET] is `<parent>/cores` in V2's hierarchy: runs with
 * cores of their own are in it instead of in tasks/. Other runs share the cores of the executors.
 */
struct cgroup {
	int root[CGROUP_TREES]; /* root of the hierarchy */
	int exec[CGROUP_TREES];
	int tasks[CGROUP_TREES];
	uint32_t in_v2;   /* bits MEMORY to CPUSET: the controllers that V2's tasks/ has */
	uint32_t missing; /* bits of controllers that do not exist: reported, never fatal */
};

/*
 * Opens the cgroups of an agent. parent is absolute, below the root of each hierarchy:
 * "/drover-1a2b3c4d". With make it creates them, with exec/ and tasks/, by the caller's umask (022
 * gives 0755), and enables the controllers there; what exists is kept. If cgroup2 is not mounted,
 * it uses a detached mount, which lives as long as root[CGROUP_V2]. Returns 0, or -errno with *e.
 * The descriptors are CLOEXEC; the caller releases them with cgroup_close(), also after a failure.
 */
int cgroup_open(struct cgroup *c, const char *parent, bool make, struct err *e);
void cgroup_close(struct cgroup *c);

/*
 * Limits for one run, and for all runs and executors together, in percent of the processes and
 * threads that the machine allows. Five runs at their limit leave a quarter to the host and the
 * agent.
 */
#define CGROUP_PIDS_RUN 15
#define CGROUP_PIDS_ALL 75
/* Returns that percentage as a number of processes; 0 if the kernel does not report its limits. */
uint64_t cgroup_pids_share(unsigned percent);

/*
 * For the launcher, after cgroup_open() with make: gives parent to root and group with mode 0750,
 * so that other users do not see the runs' names and counters; limits everything below it to
 * CGROUP_PIDS_ALL; and lets group write cpuset.cpus of the cgroups that share cores. Returns 0, or
 * -errno with *e.
 */
int cgroup_guard(const struct cgroup *c, gid_t group, struct err *e);

/* Writes c->missing to buf as "memory, pids"; "" if no controller is missing. */
void cgroup_missing_names(const struct cgroup *c, char *buf, size_t size);

/* Kills all processes below parent, waits up to timeout_ms until they have ended (-ETIMEDOUT), and
 * removes the cgroups. Returns 0 also if parent does not exist. */
int cgroup_remove(const char *parent, int timeout_ms, struct err *e);

/* The file in V2's tasks/ on which a running agent has a shared lock, and drover cleanup an
 * exclusive one while it removes the cgroup. Only root can open it, so nobody else can hold the
 * lock. */
#define CGROUP_LOCK "cgroup.kill"

/* cgroup_kill() sends SIGKILL to all processes in V2's directory dir_fd and below;
 * cgroup_wait_empty() waits until none is left. They return 0 or -errno; -ETIMEDOUT after
 * timeout_ms. */
int cgroup_kill(int dir_fd);
int cgroup_wait_empty(int dir_fd, int timeout_ms);
/* Returns 1 if a process runs in V2's directory dir_fd or below, 0 if none does, or -errno. */
int cgroup_is_populated(int dir_fd);
/* Removes the cgroup name, after the cgroups that a task created below it. Returns 0, also if it
 * does not exist, or -errno: -EBUSY if it has processes. */
int cgroup_rmdir(int dir_fd, const char *name);

/* Returns whether pid is now in the run's cgroup or below it, according to V2's line of
 * /proc/<pid>/cgroup. */
bool cgroup_has_pid(const char *parent, const char *run, pid_t pid);

#endif

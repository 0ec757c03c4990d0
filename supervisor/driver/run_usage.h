/* SPDX-License-Identifier: Apache-2.0 */
/* run_usage.h: what one run uses now, out of its cgroup and /proc. Read only when somebody asks.
 * Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_DRIVER_RUN_USAGE_H
#define DROVER_SUPERVISOR_DRIVER_RUN_USAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "common/clock.h"
#include "common/id.h"
#include "model/stats.h"

#define RUN_USAGE_PIDS 256 /* that are told apart */

struct cpu_times {
	uint64_t total_ns, user_ns, system_ns;
};

struct pid_sample {
	pid_t pid;
	uint64_t start; /* with pid it names a process */
	struct cpu_times cpu;
	uint64_t rss;
};

struct run_sample {
	int64_t at_ns; /* clock_boot_ns(); 0: none */
	struct cpu_times cpu;
	bool has_throttled;
	uint64_t throttled_periods, throttled_ns;
	struct memory_stats memory;
	struct pid_sample *pids;
	size_t n_pids;
};

/* Two samples of one run. Zero is an empty one. */
struct run_usage {
	struct id run;
	struct run_sample before, last;
};

/* NULL is ignored. */
void run_usage_free(struct run_usage *u);
/*
 * Takes a sample of the run, unless the last is quite new; those of another run go. parent is the
 * agent's cgroup. True: there are two, near enough to each other to tell what is going on; false:
 * one more in a moment will do.
 */
bool run_usage_sample(struct run_usage *u, const struct id *run, const char *parent);
/* The figures of the last sample, with what the processors did between the two. -ENOMEM. */
int run_usage_show(const struct run_usage *u, double core_mhz, struct task_usage *ret);

/* The kernel has killed in this run, whose cgroup is still there, for want of memory. True: not by
 * the run's own limit, which was never reached; its counters prove that. */
bool run_usage_limit_unreached(const struct id *run, const char *parent);

/* --- what samples are made of --- */

/* The agent's cgroup in each hierarchy: a path, "" where there is none. */
struct usage_roots {
	char v2[512], memory[512], cpu[512], cpuacct[512], pids[512], cpuset[512], systemd[512];
};

/* From a table such as /proc/self/mounts, which gives the hierarchies. */
int usage_roots_find(const char *mounts, const char *parent, struct usage_roots *ret);
bool run_limit_unreached(const struct usage_roots *roots, const char *run);
/* What is not there is left zero, and not in `measured`. */
void run_sample_read(const struct usage_roots *roots, const char *run, struct run_sample *ret);
void run_sample_done(struct run_sample *s);
/* A line of /proc/<pid>/stat. -EBADMSG. */
int run_pid_parse(const char *stat, struct pid_sample *ret);

#endif

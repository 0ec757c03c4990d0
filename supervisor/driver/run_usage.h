/* SPDX-License-Identifier: Apache-2.0 */
/* run_usage.h: the resource usage of one run, from its cgroup and /proc. It is read only on
 * request. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_DRIVER_RUN_USAGE_H
#define DROVER_SUPERVISOR_DRIVER_RUN_USAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "common/clock.h"
#include "common/id.h"
#include "model/stats.h"
#include "supervisor/core/sup.h"

#define RUN_USAGE_PIDS 256 /* processes of a run that have figures of their own */

struct cpu_times {
	uint64_t total_ns, user_ns, system_ns;
};

struct pid_sample {
	pid_t pid;
	uint64_t start; /* in ticks since the boot; with pid it identifies a process */
	struct cpu_times cpu;
	uint64_t rss;
};

/* The figures of struct memory_stats, in bytes, and a bit for each one that was measured. */
enum run_measured {
	RUN_RSS = 1,
	RUN_CACHE = 2,
	RUN_SWAP = 4,
	RUN_USAGE_NOW = 8,
	RUN_USAGE_MAX = 16,
	RUN_KERNEL = 32,
	RUN_KERNEL_MAX = 64,
};

struct run_memory {
	uint64_t rss, cache, swap, mapped_file, usage, max_usage, kernel_usage, kernel_max_usage;
	unsigned measured; /* enum run_measured */
};

struct run_sample {
	int64_t at_ns;   /* clock_boot_ns(); 0: none */
	int64_t rest_ns; /* when everything but the CPU time was read, which may be earlier */
	struct cpu_times cpu;
	bool exact_cpu; /* the kernel's counter, and not a sum of ticks */
	bool has_throttled, has_pids;
	uint64_t throttled_periods, throttled_ns;
	struct run_memory memory;
	struct pid_sample *pids;
	size_t n_pids;
};

/* Two samples of one run. A zeroed struct has no samples. */
struct run_usage {
	struct id run;
	struct run_sample before, last;
};

/* The cgroup values that a sample reads. */
enum run_detail {
	RUN_CPU_TIME,     /* the CPU time; the rest only if the last sample has none */
	RUN_WHAT_CHANGED, /* the CPU time; of a run that used none, the rest at least every minute
			   */
	RUN_WITH_PIDS,    /* everything, also each of its processes, at most RUN_USAGE_PIDS */
};

/* Ignores NULL. */
void run_usage_free(struct run_usage *u);
/* Samples the run, unless the last sample is less than 100 ms old; samples of another run are
 * dropped. Returns true if there are two samples less than 10 s apart; if not, call again a moment
 * later. */
bool run_usage_sample(
    struct sup *sup, struct run_usage *u, const struct id *run, enum run_detail detail);
/* Makes it cheap to sample many runs in this turn. */
void run_usage_expect_many(struct sup *sup);
/* Fills in the figures of the last sample; the processors' figures cover the time between the two
 * samples. */
void run_usage_show(const struct run_usage *u, double core_mhz, struct task_usage *ret);

/* For a run in which the kernel OOM-killed a process and whose cgroup still exists: returns true if
 * the run's counters prove that its own memory limit was never hit. */
bool run_usage_limit_unreached(struct sup *sup, const struct id *run);
void usage_roots_free(struct sup *sup);

#define USAGE_DIRS 2 /* with runs, of a hierarchy */

/* A directory with runs that is open, below one of the roots. */
struct usage_dir {
	const char *root, *name; /* root: NULL if it is not open */
	int fd;
};

/* The agent's cgroup in each hierarchy: a path, or "" if there is none. It must not be copied. */
struct usage_roots {
	char v2[512], memory[512], cpu[512], cpuacct[512], pids[512], cpuset[512], systemd[512];
	struct usage_dir dirs[6];
};

/* Finds the hierarchies in a table such as /proc/self/mounts. parent is the agent's cgroup. */
int usage_roots_find(const char *mounts, const char *parent, struct usage_roots *ret);
/* Closes the directories. */
void usage_roots_done(struct usage_roots *roots);
bool run_limit_unreached(struct usage_roots *roots, const char *run);
/* A figure that is not available stays zero and is not in `measured`. The processes are also
 * sampled if a controller is missing, because their figures are added up then. last: an earlier
 * sample, whose memory an idle run still has; NULL: everything is read. */
void run_sample_read(struct usage_roots *roots, const char *run, enum run_detail detail,
    const struct run_sample *last, struct run_sample *ret);
/* Converts the figures to those of the API. */
void run_memory_show(const struct run_memory *m, struct memory_stats *ret);
void run_sample_done(struct run_sample *s);
/* Parses the contents of /proc/<pid>/stat. Returns 0 or -EBADMSG. */
int run_pid_parse(const char *stat, struct pid_sample *ret);

#endif

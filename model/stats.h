/* SPDX-License-Identifier: Apache-2.0 */
/* stats.h: current usage of the host, an alloc and a task. Runs in: supervisor, cli. */
#ifndef DROVER_MODEL_STATS_H
#define DROVER_MODEL_STATS_H

#include "model/engine/field.h"

/* `measured` lists the values that were measured: "RSS", "Cache", "Swap", "Usage", "Max Usage",
 * "Mapped File", "Kernel Usage", "Kernel Max Usage". Unit: bytes. */
struct memory_stats {
	uint64_t rss, cache, swap, mapped_file, usage, max_usage, kernel_usage, kernel_max_usage;
	struct strings measured;
};

/* `measured` may have "System Mode", "User Mode", "Percent", "Throttled Periods", "Throttled Time".
 * Percent of one core; ticks are MHz. */
struct cpu_stats {
	double system_mode, user_mode, total_ticks;
	uint64_t throttled_periods, throttled_time; /* ns */
	double percent;
	struct strings measured;
};

struct resource_usage {
	struct memory_stats *memory_stats;
	struct cpu_stats *cpu_stats;
	json_t *device_stats; /* always NULL */
};

struct task_usage {
	struct resource_usage *resource_usage;
	int64_t timestamp; /* ns */
	MODEL_MAP(struct resource_usage) pids;
};

struct alloc_usage {
	struct resource_usage *resource_usage; /* of all tasks together */
	MODEL_MAP(struct task_usage) tasks;
	int64_t timestamp;
};

struct host_memory {
	uint64_t total, available, used, free; /* bytes */
};

struct host_cpu {
	char *cpu; /* "cpu0" */
	double user, system, idle, total_percent, total_ticks;
};

struct host_disk {
	char *device, *mountpoint;
	uint64_t size, used, available; /* bytes */
	double used_percent, inodes_used_percent;
};

struct host_stats {
	struct host_memory *memory;
	MODEL_LIST(struct host_cpu) cpu;
	MODEL_LIST(struct host_disk) disk_stats;
	struct host_disk *alloc_dir_stats;
	json_t *device_stats;
	uint64_t uptime;   /* seconds */
	int64_t timestamp; /* ns */
	double cpu_ticks_consumed;
};

MODEL_DECLARE(memory_stats);
MODEL_DECLARE(cpu_stats);
MODEL_DECLARE(resource_usage);
MODEL_DECLARE(task_usage);
MODEL_DECLARE(alloc_usage);
MODEL_DECLARE(host_memory);
MODEL_DECLARE(host_cpu);
MODEL_DECLARE(host_disk);
MODEL_DECLARE(host_stats);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* host_usage.h: the CPU, memory and disk usage of this machine, from /proc. It is read only on
 * request. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_NODE_HOST_USAGE_H
#define DROVER_SUPERVISOR_NODE_HOST_USAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "model/stats.h"

struct sup;

/* The times of a core since the boot, in ticks of the kernel's clock. */
struct core_times {
	char name[12]; /* "cpu0" */
	uint64_t user, system, idle, busy;
};

struct core_list {
	struct core_times *v;
	size_t n;
};

/* Parses the lines "cpuN" of /proc/stat. The caller frees ret->v. */
void host_cores_parse(const char *text, struct core_list *ret);
/* Adds a host_cpu for each core that is in both samples, and adds up their ticks. core_mhz is the
 * clock of one core. */
void host_cores_show(const struct core_list *before, const struct core_list *now, double core_mhz,
    struct host_stats *ret);
/* Parses /proc/meminfo. */
void host_memory_parse(const char *text, struct host_memory *ret);
/* Adds a host_disk, without figures, for each local file system in a table such as
 * /proc/self/mounts. A file system that is mounted more than once is added once, with its first
 * mount point. Returns 0 or -errno. */
int host_disks_read(const char *mounts, struct host_stats *ret);
/* Returns the source (such as /dev/vda) of the file system with this device number, from a text
 * such as /proc/self/mountinfo, which is overwritten. NULL if the text does not have it. */
const char *host_device_find(char *mountinfo, unsigned major, unsigned minor);

void host_usage_new(struct sup *sup);
void host_usage_free(struct sup *sup);
/* Samples the processors, unless the last sample is less than 100 ms old. Returns true if there are
 * two samples less than 10 s apart; if not, call again a moment later. */
bool host_usage_sample(struct sup *sup);
/* Returns for how many seconds since the boot the core ("cpu0") was busy, in the last sample. */
double host_usage_core_busy_s(const struct sup *sup, const char *core);
/* Adds the disks with their figures; disks that this process cannot reach are left out. */
void host_usage_disks(struct host_stats *ret);
/* Fills in ret->alloc_dir_stats, the disk of the data directory. */
void host_usage_alloc_dir(struct sup *sup, struct host_stats *ret);
/* Fills in everything; the processors' figures cover the time between the last two samples. The
 * table of mounts is read once a minute, so a new disk may be missing. */
void host_usage_fill(struct sup *sup, double core_mhz, struct host_stats *ret);
/* Reads some more lines of the table of mounts, if it is being read: each call, and each fill,
 * reads some. */
void host_usage_read_on(struct sup *sup);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* host_usage.h: what this machine uses now, out of /proc. Read only when somebody asks. Runs in:
 * supervisor. */
#ifndef DROVER_SUPERVISOR_NODE_HOST_USAGE_H
#define DROVER_SUPERVISOR_NODE_HOST_USAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "model/stats.h"

struct sup;

/* What a core did since the boot, in ticks of the kernel's clock. */
struct core_times {
	char name[12]; /* "cpu0" */
	uint64_t user, system, idle, busy;
};

struct core_list {
	struct core_times *v;
	size_t n;
};

/* The lines "cpuN" of /proc/stat. -ENOMEM. *ret->v is the caller's to free. */
int host_cores_parse(const char *text, struct core_list *ret);
/* Adds a host_cpu for each core of now that before had too, and sums up their ticks. core_mhz is
 * what one core has. */
void host_cores_show(const struct core_list *before, const struct core_list *now, double core_mhz,
    struct host_stats *ret);
/* /proc/meminfo. */
void host_memory_parse(const char *text, struct host_memory *ret);
/* Adds a host_disk, without figures, for each file system on a device of this machine that stands
 * in a table such as /proc/self/mounts; one that is mounted more than once at its first place. */
int host_disks_read(const char *mounts, struct host_stats *ret);

/* The device whose file system has this number, in a text such as /proc/self/mountinfo, which is
 * overwritten; as the other tables name it. NULL: not there. */
const char *host_device_find(char *mountinfo, unsigned major, unsigned minor);

/*
 * Takes a sample of the processors, unless the last one is quite new. Are there two now, near
 * enough to each other to tell what is going on? If not, one more in a moment will do.
 */
bool host_usage_sample(void);
/* Only the file systems that this process can look at. -ENOMEM. */
int host_usage_disks(struct host_stats *ret);
/* All figures, as they are now; the processors' are between the last two samples. -ENOMEM. */
int host_usage_fill(struct sup *sup, double core_mhz, struct host_stats *ret);

#endif

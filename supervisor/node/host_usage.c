// SPDX-License-Identifier: Apache-2.0
/* host_usage.c: the CPU, memory and disk usage of this machine, from /proc. Runs in: supervisor. */
#include "supervisor/node/host_usage.h"

#include <errno.h>
#include <fcntl.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/fd.h"
#include "common/mem.h"
#include "supervisor/node/usage_sample.h"
#include "supervisor/core/sup.h"

#define PROC_MAX (4u << 20)

/* Two samples of the processors and when they were taken (CLOCK_BOOTTIME; 0: not yet). */
struct host_usage {
	struct core_list before, now;
	int64_t before_ns, now_ns;
};

void
host_usage_new(struct sup *sup)
{
	sup->host_usage = mem_new(struct host_usage);
}

void
host_usage_free(struct sup *sup)
{
	if (!sup->host_usage)
		return;
	free(sup->host_usage->before.v);
	free(sup->host_usage->now.v);
	free_p(&sup->host_usage);
}

static int
parse_core(const char *line, struct core_times *ret)
{
	unsigned long long user, nice, system, idle, iowait, irq, softirq, steal;

	/* user and nice include the time of guests. */
	if (sscanf(line, "%11s %llu %llu %llu %llu %llu %llu %llu %llu", ret->name, &user, &nice,
		&system, &idle, &iowait, &irq, &softirq, &steal) != 9)
		return -EBADMSG;
	ret->user = user;
	ret->system = system;
	ret->idle = idle;
	ret->busy = user + nice + system + iowait + irq + softirq + steal;
	return 0;
}

void
host_cores_parse(const char *text, struct core_list *ret)
{
	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		struct core_times core = { 0 };

		if (strncmp(line, "cpu", 3) != 0 || line[3] < '0' || line[3] > '9' ||
		    parse_core(line, &core) < 0)
			continue;
		ret->v = mem_resize(ret->v, ret->n + 1, sizeof *ret->v);
		ret->v[ret->n++] = core;
	}
}

static const struct core_times *
find_core(const struct core_list *list, const char *name)
{
	for (size_t i = 0; i < list->n; i++)
		if (strcmp(list->v[i].name, name) == 0)
			return &list->v[i];
	return NULL;
}

/* Returns 0 if a counter went backwards, as those of a core that was offline may. */
static double
percent(uint64_t before, uint64_t now, uint64_t total)
{
	return total > 0 && now > before ? 100.0 * (double)(now - before) / (double)total : 0;
}

static void
show_core(const struct core_times *before, const struct core_times *now, double core_mhz,
    struct host_cpu *ret)
{
	uint64_t was = before->busy + before->idle, is = now->busy + now->idle;
	uint64_t total = is > was ? is - was : 0;

	str_set(&ret->cpu, now->name);
	ret->user = percent(before->user, now->user, total);
	ret->system = percent(before->system, now->system, total);
	ret->idle = total ? percent(before->idle, now->idle, total) : 100;
	ret->total_percent = percent(before->busy, now->busy, total);
	ret->total_ticks = ret->total_percent / 100 * core_mhz;
}

void
host_cores_show(const struct core_list *before, const struct core_list *now, double core_mhz,
    struct host_stats *ret)
{
	for (size_t i = 0; i < now->n; i++) {
		const struct core_times *was = find_core(before, now->v[i].name);
		struct host_cpu *cpu;

		if (!was)
			continue;
		cpu = list_add(host_cpu, &ret->cpu);
		show_core(was, &now->v[i], core_mhz, cpu);
		ret->cpu_ticks_consumed += cpu->total_ticks;
	}
}

void
host_memory_parse(const char *text, struct host_memory *ret)
{
	uint64_t kept = usage_number(text, "Buffers:") + usage_number(text, "Cached:") +
			usage_number(text, "SReclaimable:");

	ret->total = usage_number(text, "MemTotal:") * 1024;
	ret->free = usage_number(text, "MemFree:") * 1024;
	ret->available = usage_number(text, "MemAvailable:") * 1024;
	kept = kept * 1024 + ret->free;
	ret->used = ret->total > kept ? ret->total - kept : 0;
}

/* A line is: id parent major:minor root target options [optional fields] - type source options. */
const char *
host_device_find(char *mountinfo, unsigned major, unsigned minor)
{
	for (char *line; (line = strsep(&mountinfo, "\n"));) {
		unsigned at_major, at_minor;
		char *source = strstr(line, " - ");

		if (sscanf(line, "%*d %*d %u:%u", &at_major, &at_minor) != 2 || !source ||
		    at_major != major || at_minor != minor)
			continue;
		source += 3;
		source += strcspn(source, " ");
		source += *source == ' ';
		source[strcspn(source, " ")] = '\0';
		return *source ? source : NULL;
	}
	return NULL;
}

/* Returns false for file systems in memory, and for those that another machine or process serves,
 * because statvfs() on these may hang. */
static bool
is_disk(const struct mntent *m)
{
	return strcmp(m->mnt_type, "zfs") == 0 ||
	       (strncmp(m->mnt_fsname, "/dev/", 5) == 0 && strncmp(m->mnt_type, "fuse", 4) != 0);
}

static bool
has_device(const struct host_stats *stats, const char *device)
{
	for (size_t i = 0; i < stats->disk_stats.n; i++)
		if (str_eq(stats->disk_stats.v[i].device, device))
			return true;
	return false;
}

int
host_disks_read(const char *mounts, struct host_stats *ret)
{
	FILE *f = setmntent(mounts, "re");
	struct mntent m;
	char line[8192];

	if (!f)
		return -errno;
	while (getmntent_r(f, &m, line, sizeof line)) {
		struct host_disk *disk;

		if (!is_disk(&m) || has_device(ret, m.mnt_fsname))
			continue;
		disk = list_add(host_disk, &ret->disk_stats);
		str_set(&disk->device, m.mnt_fsname);
		str_set(&disk->mountpoint, m.mnt_dir);
	}
	(void)endmntent(f);
	return 0;
}

static void
take_space(const struct statvfs *fs, struct host_disk *ret)
{
	uint64_t block = fs->f_frsize, usable;

	ret->size = fs->f_blocks * block;
	ret->used = (fs->f_blocks - fs->f_bfree) * block;
	ret->available = fs->f_bavail * block;
	usable = ret->used + ret->available;
	ret->used_percent = usable ? 100.0 * (double)ret->used / (double)usable : 0;
	if (fs->f_files)
		ret->inodes_used_percent =
		    100.0 * (double)(fs->f_files - fs->f_ffree) / (double)fs->f_files;
}

void
host_usage_disks(struct host_stats *ret)
{
	struct statvfs fs;

	(void)host_disks_read("/proc/self/mounts", ret);
	for (size_t i = ret->disk_stats.n; i-- > 0;) {
		struct host_disk *disk = &ret->disk_stats.v[i];

		if (statvfs(str(disk->mountpoint), &fs) == 0 && fs.f_blocks > 0)
			take_space(&fs, disk);
		else
			list_remove(host_disk, &ret->disk_stats, i);
	}
}

/* The log directory, which is open, is on the same file system as the alloc directory, which this
 * process may be unable to reach. */
void
host_usage_alloc_dir(struct sup *sup, struct host_stats *ret)
{
	cleanup_free char *path = mem_printf("%s/alloc", sup->args.data_dir);
	struct statvfs fs;

	ret->alloc_dir_stats = host_disk_new();
	if (statvfs(path, &fs) == 0 || fstatvfs(sup->log_dir_fd, &fs) == 0)
		take_space(&fs, ret->alloc_dir_stats);
}

bool
host_usage_sample(struct sup *sup)
{
	struct host_usage *u = sup->host_usage;
	int64_t now = (int64_t)clock_boot_ns();

	if (usage_is_due(now, u->now_ns)) {
		cleanup_free char *text = NULL;

		if (fd_read_file(AT_FDCWD, "/proc/stat", PROC_MAX, &text) < 0)
			return true;
		free(u->before.v);
		u->before = u->now;
		u->before_ns = u->now_ns;
		u->now = (struct core_list){ 0 };
		u->now_ns = now;
		host_cores_parse(text, &u->now);
	}
	return usage_is_pair(u->before_ns, u->now_ns);
}

void
host_usage_fill(struct sup *sup, double core_mhz, struct host_stats *ret)
{
	const struct host_usage *u = sup->host_usage;
	cleanup_free char *text = NULL;

	host_cores_show(&u->before, &u->now, core_mhz, ret);
	ret->memory = host_memory_new();
	if (fd_read_file(AT_FDCWD, "/proc/meminfo", PROC_MAX, &text) > 0)
		host_memory_parse(text, ret->memory);
	host_usage_disks(ret);
	host_usage_alloc_dir(sup, ret);
	ret->uptime = clock_boot_ns() / NS_PER_S;
	ret->timestamp = clock_real_ns();
}

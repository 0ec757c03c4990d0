// SPDX-License-Identifier: Apache-2.0
/* host_usage.c: what this machine uses now, out of /proc. Runs in: supervisor. */
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
#include "supervisor/node/usage_sample.h"
#include "supervisor/core/sup.h"

#define PROC_MAX (4u << 20)

/* Two samples of the processors and when they were taken, CLOCK_BOOTTIME; 0: none. */
static struct {
	struct core_list before, now;
	int64_t before_ns, now_ns;
} cores;

static int
parse_core(const char *line, struct core_times *ret)
{
	unsigned long long user, nice, system, idle, iowait, irq, softirq, steal;

	/* What guests got is in user and nice. */
	if (sscanf(line, "%11s %llu %llu %llu %llu %llu %llu %llu %llu", ret->name, &user, &nice,
		&system, &idle, &iowait, &irq, &softirq, &steal) != 9)
		return -EBADMSG;
	ret->user = user;
	ret->system = system;
	ret->idle = idle;
	ret->busy = user + nice + system + iowait + irq + softirq + steal;
	return 0;
}

int
host_cores_parse(const char *text, struct core_list *ret)
{
	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		struct core_times core = { 0 }, *bigger;

		if (strncmp(line, "cpu", 3) != 0 || line[3] < '0' || line[3] > '9' ||
		    parse_core(line, &core) < 0)
			continue;
		bigger = realloc(ret->v, (ret->n + 1) * sizeof *bigger);
		if (!bigger)
			return -ENOMEM;
		ret->v = bigger;
		ret->v[ret->n++] = core;
	}
	return 0;
}

static const struct core_times *
find_core(const struct core_list *list, const char *name)
{
	for (size_t i = 0; i < list->n; i++)
		if (strcmp(list->v[i].name, name) == 0)
			return &list->v[i];
	return NULL;
}

/* Counters of a core that was taken offline and back may go backwards: that is nothing. */
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

	(void)str_set(&ret->cpu, now->name);
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
		struct host_cpu *cpu = was ? list_add(host_cpu, &ret->cpu) : NULL;

		if (!cpu)
			continue;
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

/* id parent major:minor root target options [optional fields] - type source options */
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

/* Neither what is in memory nor what another machine or process serves: these may never answer. */
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
	int r = f ? 0 : -errno;

	while (r == 0 && getmntent_r(f, &m, line, sizeof line)) {
		struct host_disk *disk;

		if (!is_disk(&m) || has_device(ret, m.mnt_fsname))
			continue;
		disk = list_add(host_disk, &ret->disk_stats);
		if (!disk || str_set(&disk->device, m.mnt_fsname) < 0 ||
		    str_set(&disk->mountpoint, m.mnt_dir) < 0)
			r = -ENOMEM;
	}
	if (f)
		(void)endmntent(f);
	return r;
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

/* What cannot be looked at is left out: this process is no more than any user. */
int
host_usage_disks(struct host_stats *ret)
{
	struct statvfs fs;
	int r = host_disks_read("/proc/self/mounts", ret);

	for (size_t i = ret->disk_stats.n; i-- > 0;) {
		struct host_disk *disk = &ret->disk_stats.v[i];

		if (statvfs(str(disk->mountpoint), &fs) == 0 && fs.f_blocks > 0)
			take_space(&fs, disk);
		else
			list_remove(host_disk, &ret->disk_stats, i);
	}
	return r;
}

/* By its path where this process may walk there, else by what is beside it. */
static int
take_alloc_dir(struct sup *sup, struct host_stats *ret)
{
	cleanup_free char *path = NULL;
	struct statvfs fs;

	ret->alloc_dir_stats = host_disk_new();
	if (!ret->alloc_dir_stats || str_setf(&path, "%s/alloc", sup->args.data_dir) < 0)
		return -ENOMEM;
	if (statvfs(path, &fs) == 0 || fstatvfs(sup->log_dir_fd, &fs) == 0)
		take_space(&fs, ret->alloc_dir_stats);
	return 0;
}

bool
host_usage_sample(void)
{
	int64_t now = clock_boot_ns();

	if (usage_is_due(now, cores.now_ns)) {
		cleanup_free char *text = NULL;
		struct core_list list = { 0 };

		if (fd_read_file(AT_FDCWD, "/proc/stat", PROC_MAX, &text) < 0 ||
		    host_cores_parse(text, &list) < 0) {
			free(list.v);
			return true;
		}
		free(cores.before.v);
		cores.before = cores.now;
		cores.before_ns = cores.now_ns;
		cores.now = list;
		cores.now_ns = now;
	}
	return usage_is_pair(cores.before_ns, cores.now_ns);
}

int
host_usage_fill(struct sup *sup, double core_mhz, struct host_stats *ret)
{
	cleanup_free char *text = NULL;
	int r;

	host_cores_show(&cores.before, &cores.now, core_mhz, ret);
	ret->memory = host_memory_new();
	if (!ret->memory)
		return -ENOMEM;
	if (fd_read_file(AT_FDCWD, "/proc/meminfo", PROC_MAX, &text) > 0)
		host_memory_parse(text, ret->memory);
	if ((r = host_usage_disks(ret)) == -ENOMEM || (r = take_alloc_dir(sup, ret)) < 0)
		return r;
	ret->uptime = clock_boot_ns() / NS_PER_S;
	ret->timestamp = clock_real_ns();
	return 0;
}

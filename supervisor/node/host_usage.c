// SPDX-License-Identifier: Apache-2.0
/* host_usage.c: the CPU, memory and disk usage of this machine, from /proc. Runs in: supervisor. */
#include "supervisor/node/host_usage.h"

#include <errno.h>
#include <fcntl.h>
#include <mntent.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/fd.h"
#include "common/mem.h"
#include "supervisor/node/usage_sample.h"
#include "supervisor/core/sup.h"

#define PROC_MAX (4u << 20)

#define DISKS_NS   (60 * NS_PER_S) /* so often the table of mounts is read at most */
#define DISK_LINES 64              /* of the table of mounts in one turn: about 2 ms */

/* Two samples of the processors and when they were taken (CLOCK_BOOTTIME; 0: not yet). */
struct host_usage {
	struct core_list before, now;
	int64_t before_ns, now_ns;
	/* The disks, without figures. The table of mounts has a line for each task with secrets, so
	 * it is not read for each request, and not in one turn. */
	struct host_stats disks, next_disks; /* next_disks: from what was read of `mounts` */
	dev_t *devices;                      /* of disks: the st_dev of their mount points */
	FILE *mounts;                        /* NULL: it is not being read */
	int mounts_fd;                       /* reports changes of the table; -1: not open */
	int64_t disks_ns;
};

void
host_usage_new(struct sup *sup)
{
	sup->host_usage = mem_new(struct host_usage);
	sup->host_usage->mounts_fd = -1;
	host_stats_init(&sup->host_usage->disks);
	host_stats_init(&sup->host_usage->next_disks);
}

void
host_usage_free(struct sup *sup)
{
	if (!sup->host_usage)
		return;
	free(sup->host_usage->before.v);
	free(sup->host_usage->now.v);
	free(sup->host_usage->devices);
	if (sup->host_usage->mounts)
		(void)endmntent(sup->host_usage->mounts);
	close_p(&sup->host_usage->mounts_fd);
	host_stats_done(&sup->host_usage->disks);
	host_stats_done(&sup->host_usage->next_disks);
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

/* Adds the disks of so many lines. Returns false at the end of the table. */
static bool
read_lines(FILE *mounts, size_t lines, struct host_stats *ret)
{
	struct mntent m;
	char line[8192];

	for (; lines > 0; lines--) {
		struct host_disk *disk;

		if (!getmntent_r(mounts, &m, line, sizeof line))
			return false;
		if (!is_disk(&m) || has_device(ret, m.mnt_fsname))
			continue;
		disk = list_add(host_disk, &ret->disk_stats);
		str_set(&disk->device, m.mnt_fsname);
		str_set(&disk->mountpoint, m.mnt_dir);
	}
	return true;
}

int
host_disks_read(const char *mounts, struct host_stats *ret)
{
	FILE *f = setmntent(mounts, "re");

	if (!f)
		return -errno;
	(void)read_lines(f, SIZE_MAX, ret);
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

/* Removes disks that cannot be reached. */
static void
take_spaces(struct host_stats *ret)
{
	struct statvfs fs;

	for (size_t i = ret->disk_stats.n; i-- > 0;) {
		struct host_disk *disk = &ret->disk_stats.v[i];

		if (statvfs(str(disk->mountpoint), &fs) == 0 && fs.f_blocks > 0)
			take_space(&fs, disk);
		else
			list_remove(host_disk, &ret->disk_stats, i);
	}
}

void
host_usage_disks(struct host_stats *ret)
{
	(void)host_disks_read("/proc/self/mounts", ret);
	take_spaces(ret);
}

static dev_t
device_at(const struct host_disk *disk)
{
	struct stat st;

	return stat(str(disk->mountpoint), &st) == 0 ? st.st_dev : 0;
}

static void
use_next_disks(struct host_usage *u)
{
	host_stats_done(&u->disks);
	u->disks = u->next_disks;
	host_stats_init(&u->next_disks);
	u->devices = mem_resize(u->devices, u->disks.disk_stats.n + 1, sizeof *u->devices);
	for (size_t i = 0; i < u->disks.disk_stats.n; i++)
		u->devices[i] = device_at(&u->disks.disk_stats.v[i]);
	u->disks_ns = (int64_t)clock_boot_ns();
}

void
host_usage_read_on(struct sup *sup)
{
	struct host_usage *u = sup->host_usage;
	const size_t lines = u->disks_ns == 0 ? SIZE_MAX : DISK_LINES;

	if (!u->mounts || read_lines(u->mounts, lines, &u->next_disks))
		return;
	(void)endmntent(u->mounts);
	u->mounts = NULL;
	use_next_disks(u);
}

/* A disk that was unmounted since is left out. */
static void
add_disks(const struct host_usage *u, struct host_stats *ret)
{
	for (size_t i = 0; i < u->disks.disk_stats.n; i++) {
		const struct host_disk *known = &u->disks.disk_stats.v[i];
		struct host_disk *disk;

		if (device_at(known) != u->devices[i])
			continue;
		disk = list_add(host_disk, &ret->disk_stats);
		str_set(&disk->device, known->device);
		str_set(&disk->mountpoint, known->mountpoint);
	}
}

/* Returns whether the table has changed since this was asked last. */
static bool
mounts_changed(struct host_usage *u)
{
	struct pollfd p = { .fd = u->mounts_fd, .events = POLLPRI };

	if (u->mounts_fd >= 0)
		return poll(&p, 1, 0) != 0;
	u->mounts_fd = open("/proc/self/mounts", O_RDONLY | O_CLOEXEC);
	return true;
}

static bool
disks_are_due(struct host_usage *u)
{
	if (u->disks_ns > 0 && (int64_t)clock_boot_ns() - u->disks_ns < DISKS_NS)
		return false;
	return mounts_changed(u);
}

static void
fill_disks(struct sup *sup, struct host_stats *ret)
{
	struct host_usage *u = sup->host_usage;

	if (!u->mounts && disks_are_due(u))
		u->mounts = setmntent("/proc/self/mounts", "re");
	host_usage_read_on(sup);
	add_disks(u, ret);
	take_spaces(ret);
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

double
host_usage_core_busy_s(const struct sup *sup, const char *core)
{
	const struct core_times *found = find_core(&sup->host_usage->now, core);

	return found ? (double)found->busy / (double)sysconf(_SC_CLK_TCK) : 0;
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
	fill_disks(sup, ret);
	host_usage_alloc_dir(sup, ret);
	ret->uptime = clock_boot_ns() / NS_PER_S;
	ret->timestamp = clock_real_ns();
}

// SPDX-License-Identifier: Apache-2.0
/* run_usage.c: the resource usage of one run, from its cgroup and /proc. Runs in: supervisor. */
#include "supervisor/driver/run_usage.h"

#include <errno.h>
#include <fcntl.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/fd.h"
#include "common/hash.h"
#include "common/mem.h"
#include "supervisor/node/usage_sample.h"

#define PROCS_MAX      (1u << 20)
#define FILE_PATH_SIZE 128
#define IDLE_MS        30000 /* see is_idle() */

/* A file of a cgroup that is one record of the kernel: one read returns all of it. */
struct cgroup_file {
	char text[8192];
};

/* The cgroup of a run in one hierarchy. v1 has a file "tasks" in each cgroup, so the directory of
 * the runs has another name there. In v2 runs with reserved cores have a directory of their own. */
struct place {
	struct usage_roots *roots;
	const char *root, *run;
	bool v2;
};

static const char *
dir_name(const struct place *p, unsigned i)
{
	static const char *const v1[USAGE_DIRS] = { "runs" }, *const v2[] = { "tasks", "cores" };

	return (p->v2 ? v2 : v1)[i];
}

/* Opens a directory of runs, once: paths that begin there are short, and each scrape opens
 * thousands of files. Returns its descriptor, or -errno. */
static int
open_dir(const struct place *p, const char *name)
{
	struct usage_dir *unused = NULL;
	char path[640];

	for (size_t i = 0; i < ELEMENTSOF(p->roots->dirs); i++) {
		struct usage_dir *d = &p->roots->dirs[i];

		if (d->root == p->root && d->name == name)
			return d->fd;
		if (!d->root)
			unused = d;
	}
	if (!unused || snprintf(path, sizeof path, "%s/%s", p->root, name) >= (int)sizeof path)
		return -ENAMETOOLONG;
	unused->fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (unused->fd < 0)
		return -errno;
	unused->root = p->root;
	unused->name = name;
	return unused->fd;
}

static void
close_dir(struct usage_dir *d)
{
	if (d->root)
		(void)close(d->fd);
	*d = (struct usage_dir){ 0 };
}

void
usage_roots_done(struct usage_roots *roots)
{
	for (size_t i = 0; i < ELEMENTSOF(roots->dirs); i++)
		close_dir(&roots->dirs[i]);
}

static void
file_path(char ret[FILE_PATH_SIZE], const char *run, const char *name)
{
	(void)snprintf(ret, FILE_PATH_SIZE, "%s/%s", run, name);
}

/* Opens a file of the run's cgroup. Returns a descriptor, or -errno. */
static int
open_file(const struct place *p, const char *name)
{
	char path[FILE_PATH_SIZE];
	int r = -ENOENT;

	if (!p->root[0])
		return r;
	file_path(path, p->run, name);
	for (unsigned i = 0; r == -ENOENT && i < USAGE_DIRS && dir_name(p, i); i++) {
		int dir = open_dir(p, dir_name(p, i));

		r = dir < 0 ? dir : openat(dir, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
		if (dir >= 0 && r < 0)
			r = -errno;
	}
	/* The run is gone, or the directories were made anew. */
	if (r == -ENOENT)
		usage_roots_done(p->roots);
	return r;
}

/* Returns the text of the file; NULL if there is no such file. */
static const char *
read_file(const struct place *p, const char *name, struct cgroup_file *to)
{
	cleanup_close int fd = open_file(p, name);
	ssize_t n = fd < 0 ? -1 : read(fd, to->text, sizeof to->text - 1);

	if (n <= 0)
		return NULL;
	to->text[n] = '\0';
	return to->text;
}

static bool
read_number(const struct place *p, const char *name, uint64_t *ret)
{
	struct cgroup_file f;
	const char *text = read_file(p, name, &f);

	if (!text || text[0] < '0' || text[0] > '9')
		return false;
	*ret = strtoull(text, NULL, 10);
	return true;
}

static void
take_root(char ret[512], const char *dir, const char *parent)
{
	if (!ret[0] && snprintf(ret, 512, "%s%s", dir, parent) >= 512)
		ret[0] = '\0';
}

int
usage_roots_find(const char *mounts, const char *parent, struct usage_roots *ret)
{
	FILE *f = setmntent(mounts, "re");
	struct mntent m;
	char line[8192];

	if (!f)
		return -errno;
	while (getmntent_r(f, &m, line, sizeof line)) {
		if (strcmp(m.mnt_type, "cgroup2") == 0)
			take_root(ret->v2, m.mnt_dir, parent);
		if (strcmp(m.mnt_type, "cgroup") != 0)
			continue;
		if (hasmntopt(&m, "memory"))
			take_root(ret->memory, m.mnt_dir, parent);
		if (hasmntopt(&m, "cpu"))
			take_root(ret->cpu, m.mnt_dir, parent);
		/* Runs are in cpuacct only if it is mounted together with cpu. */
		if (hasmntopt(&m, "cpu") && hasmntopt(&m, "cpuacct"))
			take_root(ret->cpuacct, m.mnt_dir, parent);
		if (hasmntopt(&m, "pids"))
			take_root(ret->pids, m.mnt_dir, parent);
		if (hasmntopt(&m, "cpuset"))
			take_root(ret->cpuset, m.mnt_dir, parent);
		if (hasmntopt(&m, "name=systemd"))
			take_root(ret->systemd, m.mnt_dir, parent);
	}
	(void)endmntent(f);
	return 0;
}

int
run_pid_parse(const char *stat, struct pid_sample *ret)
{
	const char *at = strrchr(stat, ')'); /* the name may contain any byte */
	unsigned long long user, system, start;
	const uint64_t tick_ns = NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK);
	long long rss;

	if (!at ||
	    sscanf(at + 1,
		" %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d %*d %*d "
		"%llu %*u %lld",
		&user, &system, &start, &rss) != 4)
		return -EBADMSG;
	ret->start = start;
	ret->cpu.user_ns = user * tick_ns;
	ret->cpu.system_ns = system * tick_ns;
	ret->cpu.total_ns = ret->cpu.user_ns + ret->cpu.system_ns;
	ret->rss = rss > 0 ? (uint64_t)rss * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
	return 0;
}

static void
add_pid(struct run_sample *s, pid_t pid)
{
	struct pid_sample one = { .pid = pid };
	cleanup_free char *stat = NULL;
	char path[32];

	(void)snprintf(path, sizeof path, "/proc/%d/stat", pid);
	if (fd_read_file(AT_FDCWD, path, 4096, &stat) > 0 && run_pid_parse(stat, &one) == 0)
		s->pids[s->n_pids++] = one;
}

static char *
read_procs_of(const struct place *p)
{
	char path[FILE_PATH_SIZE], *text = NULL;
	ssize_t n = -ENOENT;

	file_path(path, p->run, "cgroup.procs");
	for (unsigned i = 0; p->root[0] && n == -ENOENT && i < USAGE_DIRS && dir_name(p, i); i++) {
		int dir = open_dir(p, dir_name(p, i));

		n = dir < 0 ? dir : fd_read_file(dir, path, PROCS_MAX, &text);
	}
	if (n > 0)
		return text;
	free(text);
	return NULL;
}

/* Returns the list of the run's processes. The caller frees it; NULL if there is none. */
static char *
read_procs(struct usage_roots *roots, const char *run)
{
	const char *const v1[] = { roots->memory, roots->pids, roots->cpu };
	char *text = read_procs_of(&(struct place){ roots, roots->v2, run, true });

	for (size_t i = 0; !text && i < ELEMENTSOF(v1); i++)
		text = read_procs_of(&(struct place){ roots, v1[i], run, false });
	return text;
}

/* Does nothing if the sample has the processes. */
static void
read_pids(struct usage_roots *roots, const char *run, struct run_sample *ret)
{
	cleanup_free char *text = ret->has_pids ? NULL : read_procs(roots, run);

	ret->has_pids = true;
	if (!text)
		return;
	ret->pids = mem_zeroed(RUN_USAGE_PIDS, sizeof *ret->pids);
	for (char *at = text; *at && ret->n_pids < RUN_USAGE_PIDS;) {
		char *end;
		long pid = strtol(at, &end, 10);

		if (end == at)
			break;
		if (pid > 0)
			add_pid(ret, (pid_t)pid);
		at = end + strspn(end, "\n");
	}
	/* Most runs have few processes, and the sample is kept. */
	ret->pids = mem_resize(ret->pids, ret->n_pids + 1, sizeof *ret->pids);
}

static bool
read_memory_v1(struct usage_roots *roots, const char *run, struct run_memory *ret)
{
	const struct place p = { roots, roots->memory, run, false };
	struct cgroup_file f;
	const char *stat = read_file(&p, "memory.stat", &f);

	if (!stat)
		return false;
	ret->rss = usage_number(stat, "total_rss ");
	ret->cache = usage_number(stat, "total_cache ");
	ret->swap = usage_number(stat, "total_swap ");
	ret->mapped_file = usage_number(stat, "total_mapped_file ");
	ret->measured |= RUN_RSS | RUN_CACHE;
	if (strstr(stat, "total_swap "))
		ret->measured |= RUN_SWAP;
	if (read_number(&p, "memory.usage_in_bytes", &ret->usage))
		ret->measured |= RUN_USAGE_NOW;
	if (read_number(&p, "memory.max_usage_in_bytes", &ret->max_usage))
		ret->measured |= RUN_USAGE_MAX;
	if (read_number(&p, "memory.kmem.usage_in_bytes", &ret->kernel_usage))
		ret->measured |= RUN_KERNEL;
	if (read_number(&p, "memory.kmem.max_usage_in_bytes", &ret->kernel_max_usage))
		ret->measured |= RUN_KERNEL_MAX;
	return true;
}

static bool
read_memory_v2(struct usage_roots *roots, const char *run, struct run_memory *ret)
{
	const struct place p = { roots, roots->v2, run, true };
	struct cgroup_file f;
	const char *stat = read_file(&p, "memory.stat", &f);

	if (!stat)
		return false;
	ret->rss = usage_number(stat, "anon ");
	ret->cache = usage_number(stat, "file ");
	ret->mapped_file = usage_number(stat, "file_mapped ");
	ret->kernel_usage = usage_number(stat, "kernel ");
	ret->measured |= RUN_RSS | RUN_CACHE;
	if (read_number(&p, "memory.swap.current", &ret->swap))
		ret->measured |= RUN_SWAP;
	if (read_number(&p, "memory.current", &ret->usage))
		ret->measured |= RUN_USAGE_NOW;
	if (read_number(&p, "memory.peak", &ret->max_usage))
		ret->measured |= RUN_USAGE_MAX;
	if (strstr(stat, "\nkernel "))
		ret->measured |= RUN_KERNEL;
	return true;
}

/* Mapped files have a figure without a name: older commands would show the others in wrong columns.
 */
void
run_memory_show(const struct run_memory *m, struct memory_stats *ret)
{
	static const char *const names[] = { "RSS", "Cache", "Swap", "Usage", "Max Usage",
		"Kernel Usage", "Kernel Max Usage" };

	ret->rss = m->rss;
	ret->cache = m->cache;
	ret->swap = m->swap;
	ret->mapped_file = m->mapped_file;
	ret->usage = m->usage;
	ret->max_usage = m->max_usage;
	ret->kernel_usage = m->kernel_usage;
	ret->kernel_max_usage = m->kernel_max_usage;
	for (unsigned i = 0; i < ELEMENTSOF(names); i++)
		if (m->measured & (1u << i))
			strings_add(&ret->measured, names[i]);
}

/* Adds up the memory of the processes, if there is no memory controller. */
static void
sum_memory(const struct run_sample *s, struct run_memory *ret)
{
	for (size_t i = 0; i < s->n_pids; i++)
		ret->rss += s->pids[i].rss;
	ret->measured |= RUN_RSS;
}

/* v1 counts each charge that hit the limit, v2 each one that still failed after reclaim. */
bool
run_limit_unreached(struct usage_roots *roots, const char *run)
{
	const struct place v1 = { roots, roots->memory, run, false };
	const struct place v2 = { roots, roots->v2, run, true };
	struct cgroup_file f;
	const char *events;
	uint64_t met;

	if (read_number(&v1, "memory.failcnt", &met))
		return met == 0;
	events = read_file(&v2, "memory.events", &f);
	return events && strstr(events, "\noom ") && usage_number(events, "oom ") == 0;
}

/* The total is the sum of both parts. */
static bool
read_cpu_v1(struct usage_roots *roots, const char *run, const struct run_sample *last,
    struct cpu_times *ret)
{
	const struct place p = { roots, roots->cpuacct, run, false };

	if (!read_number(&p, "cpuacct.usage", &ret->total_ns))
		return false;
	if (last && last->exact_cpu && last->cpu.total_ns == ret->total_ns) {
		*ret = last->cpu;
		return true;
	}
	/* The total was read a moment earlier. */
	if (!read_number(&p, "cpuacct.usage_user", &ret->user_ns))
		return false;
	ret->system_ns = ret->total_ns > ret->user_ns ? ret->total_ns - ret->user_ns : 0;
	return true;
}

static void
take_throttled(const char *stat, bool v2, struct run_sample *ret)
{
	if (!stat || !strstr(stat, "nr_throttled "))
		return;
	ret->has_throttled = true;
	ret->throttled_periods = usage_number(stat, "nr_throttled ");
	ret->throttled_ns = v2 ? usage_number(stat, "throttled_usec ") * 1000
			       : usage_number(stat, "throttled_time ");
}

/* v2 has cpu.stat even if no controller is in v2. */
static bool
read_cpu_v2(struct usage_roots *roots, const char *run, struct run_sample *ret)
{
	const struct place p = { roots, roots->v2, run, true };
	struct cgroup_file f;
	const char *stat = read_file(&p, "cpu.stat", &f);

	if (!stat || strncmp(stat, "usage_usec ", 11) != 0)
		return false;
	ret->cpu.total_ns = usage_number(stat, "usage_usec ") * 1000;
	ret->cpu.user_ns = usage_number(stat, "user_usec ") * 1000;
	ret->cpu.system_ns = usage_number(stat, "system_usec ") * 1000;
	if (!roots->cpu[0])
		take_throttled(stat, true, ret);
	return true;
}

static void
sum_cpu(const struct run_sample *s, struct cpu_times *ret)
{
	for (size_t i = 0; i < s->n_pids; i++) {
		ret->total_ns += s->pids[i].cpu.total_ns;
		ret->user_ns += s->pids[i].cpu.user_ns;
		ret->system_ns += s->pids[i].cpu.system_ns;
	}
}

/*
 * Returns true if the run has used no CPU time since the last sample. Its memory is then what it
 * was, unless the kernel reclaimed some, or another process charged some to its cgroup; so it is
 * read again after half a minute to a minute. The spread keeps the runs of one job, which start
 * together, from all being read in one scrape.
 */
static bool
is_idle(const char *run, const struct run_sample *last, const struct run_sample *now)
{
	const int64_t limit_ms = IDLE_MS + (int64_t)(hash_string(run) % IDLE_MS);

	return last->exact_cpu && now->exact_cpu && last->cpu.total_ns == now->cpu.total_ns &&
	       now->at_ns - last->rest_ns < limit_ms * NS_PER_MS;
}

/* Everything that only a run with CPU time changes. */
static void
read_rest(struct usage_roots *roots, const char *run, struct run_sample *ret)
{
	const struct place cpu = { roots, roots->cpu, run, false };
	struct cgroup_file f;

	ret->rest_ns = ret->at_ns;
	if (!read_memory_v1(roots, run, &ret->memory) &&
	    !read_memory_v2(roots, run, &ret->memory)) {
		read_pids(roots, run, ret);
		sum_memory(ret, &ret->memory);
	}
	if (roots->cpu[0])
		take_throttled(read_file(&cpu, "cpu.stat", &f), false, ret);
}

static void
copy_rest(const struct run_sample *last, struct run_sample *ret)
{
	ret->rest_ns = last->rest_ns;
	ret->memory = last->memory;
	ret->has_throttled = last->has_throttled;
	ret->throttled_periods = last->throttled_periods;
	ret->throttled_ns = last->throttled_ns;
}

/* Returns whether the sample shall have the memory and the throttling of the last one. */
static bool
keeps_rest(const char *run, enum run_detail detail, const struct run_sample *last,
    const struct run_sample *now)
{
	if (detail == RUN_WITH_PIDS || !last || last->rest_ns == 0)
		return false;
	return detail == RUN_CPU_TIME || is_idle(run, last, now);
}

void
run_sample_read(struct usage_roots *roots, const char *run, enum run_detail detail,
    const struct run_sample *last, struct run_sample *ret)
{
	ret->at_ns = (int64_t)clock_boot_ns();
	if (detail == RUN_WITH_PIDS)
		read_pids(roots, run, ret);
	ret->exact_cpu = read_cpu_v1(roots, run, last, &ret->cpu) || read_cpu_v2(roots, run, ret);
	if (!ret->exact_cpu) {
		read_pids(roots, run, ret);
		sum_cpu(ret, &ret->cpu);
	}
	if (keeps_rest(run, detail, last, ret))
		copy_rest(last, ret);
	else
		read_rest(roots, run, ret);
}

void
run_sample_done(struct run_sample *s)
{
	free(s->pids);
	*s = (struct run_sample){ 0 };
}

void
run_usage_free(struct run_usage *u)
{
	if (!u)
		return;
	run_sample_done(&u->before);
	run_sample_done(&u->last);
	free(u);
}

void
usage_roots_free(struct sup *sup)
{
	if (sup->usage_roots)
		usage_roots_done(sup->usage_roots);
	free_p(&sup->usage_roots);
}

/* The hierarchies do not change while the agent runs, so they are looked up once. */
static struct usage_roots *
find_roots(struct sup *sup)
{
	static struct usage_roots none;

	if (!sup->usage_roots) {
		sup->usage_roots = mem_new(struct usage_roots);
		if (usage_roots_find("/proc/self/mounts", sup->args.cgroup, sup->usage_roots) < 0)
			usage_roots_free(sup);
	}
	return sup->usage_roots ?: &none;
}

bool
run_usage_limit_unreached(struct sup *sup, const struct id *run)
{
	char name[ID_HEX_SIZE];

	id_to_hex(run, name);
	return run_limit_unreached(find_roots(sup), name);
}

/*
 * The kernel adds up the counters of a cgroup when they are read. For one cgroup it first searches
 * a list of all siblings that worked, so that reading n of them takes n * n steps; for their parent
 * it takes the list as it is.
 */
void
run_usage_expect_many(struct sup *sup)
{
	struct usage_roots *roots = find_roots(sup);
	const struct place p = { roots, roots->v2, ".", true };
	struct cgroup_file f;

	(void)read_file(&p, "cpu.stat", &f);
}

bool
run_usage_sample(struct sup *sup, struct run_usage *u, const struct id *run, enum run_detail detail)
{
	const bool with_pids = detail == RUN_WITH_PIDS;
	char name[ID_HEX_SIZE];

	if (!id_equal(&u->run, run)) {
		run_sample_done(&u->before);
		run_sample_done(&u->last);
		u->run = *run;
	}
	if (usage_is_due(clock_boot_ns(), u->last.at_ns)) {
		id_to_hex(run, name);
		run_sample_done(&u->before);
		u->before = u->last;
		u->last = (struct run_sample){ 0 };
		run_sample_read(find_roots(sup), name, detail, &u->before, &u->last);
	} else if (with_pids && !u->last.has_pids) {
		id_to_hex(run, name);
		read_pids(find_roots(sup), name, &u->last);
	}
	return usage_is_pair(u->before.at_ns, u->last.at_ns) && (!with_pids || u->before.has_pids);
}

static double
percent(uint64_t before, uint64_t now, int64_t span_ns)
{
	return span_ns > 0 && now > before ? 100.0 * (double)(now - before) / (double)span_ns : 0;
}

static void
show_cpu(const struct cpu_times *before, const struct cpu_times *now, int64_t span_ns,
    double core_mhz, struct cpu_stats *ret)
{
	ret->user_mode = percent(before->user_ns, now->user_ns, span_ns);
	ret->system_mode = percent(before->system_ns, now->system_ns, span_ns);
	ret->percent = percent(before->total_ns, now->total_ns, span_ns);
	ret->total_ticks = ret->percent / 100 * core_mhz;
	strings_add(&ret->measured, "System Mode");
	strings_add(&ret->measured, "User Mode");
	strings_add(&ret->measured, "Percent");
}

static void
show_run(const struct run_usage *u, int64_t span_ns, double core_mhz, struct resource_usage *ret)
{
	const struct run_sample *s = &u->last;

	ret->memory_stats = memory_stats_new();
	ret->cpu_stats = cpu_stats_new();
	run_memory_show(&s->memory, ret->memory_stats);
	show_cpu(&u->before.cpu, &s->cpu, span_ns, core_mhz, ret->cpu_stats);
	if (!s->has_throttled)
		return;
	ret->cpu_stats->throttled_periods = s->throttled_periods;
	ret->cpu_stats->throttled_time = s->throttled_ns;
	strings_add(&ret->cpu_stats->measured, "Throttled Periods");
	strings_add(&ret->cpu_stats->measured, "Throttled Time");
}

/* Returns the CPU time of the process in an earlier sample: zero if it is not in there, because it
 * has started since. */
static const struct cpu_times *
cpu_before(const struct run_sample *s, const struct pid_sample *pid)
{
	static const struct cpu_times none;

	for (size_t i = 0; i < s->n_pids; i++)
		if (s->pids[i].pid == pid->pid && s->pids[i].start == pid->start)
			return &s->pids[i].cpu;
	return &none;
}

static void
show_pid(const struct run_usage *u, const struct pid_sample *pid, int64_t span_ns, double core_mhz,
    struct task_usage *ret)
{
	struct resource_usage *usage;
	char name[16];

	(void)snprintf(name, sizeof name, "%d", pid->pid);
	usage = map_put(resource_usage, &ret->pids, name);
	usage->memory_stats = memory_stats_new();
	run_memory_show(
	    &(struct run_memory){ .rss = pid->rss, .measured = RUN_RSS }, usage->memory_stats);
	usage->cpu_stats = cpu_stats_new();
	show_cpu(cpu_before(&u->before, pid), &pid->cpu, span_ns, core_mhz, usage->cpu_stats);
}

void
run_usage_show(const struct run_usage *u, double core_mhz, struct task_usage *ret)
{
	const int64_t span_ns = u->before.at_ns ? u->last.at_ns - u->before.at_ns : 0;

	ret->resource_usage = resource_usage_new();
	show_run(u, span_ns, core_mhz, ret->resource_usage);
	for (size_t i = 0; i < u->last.n_pids; i++)
		show_pid(u, &u->last.pids[i], span_ns, core_mhz, ret);
	ret->timestamp = clock_real_ns();
}

// SPDX-License-Identifier: Apache-2.0
/* test_usage.c: usage figures from texts of kernels: /proc, cgroups of v1 and v2. Runs in: unit
 * tests. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "supervisor/driver/run_usage.h"
#include "supervisor/node/host_usage.h"
#include "tests/unit/unit.h"

#define RUN "00112233445566778899aabbccddeeff"

static char top[32];

static void
make_top(void)
{
	(void)strcpy(top, "/tmp/usage.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(top));
}

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static void
remove_top(void)
{
	(void)nftw(top, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void
put(const char *dir, const char *name, const char *text)
{
	char path[256];
	FILE *f;

	(void)snprintf(path, sizeof path, "%s/%s/%s/%s", top, dir, RUN, name);
	for (char *at = strchr(path + strlen(top) + 1, '/'); at; at = strchr(at + 1, '/')) {
		*at = '\0';
		(void)mkdir(path, 0755);
		*at = '/';
	}
	f = fopen(path, "we");
	ck_assert_ptr_nonnull(f);
	ck_assert_int_ge(fputs(text, f), 0);
	ck_assert_int_eq(fclose(f), 0);
}

static void
root(char ret[512], const char *name)
{
	(void)snprintf(ret, 512, "%s/%s", top, name);
}

START_TEST(test_cores)
{
	cleanup_free char *text = NULL;
	struct core_list before = { 0 }, now = { 0 };
	cleanup_done(host_stats) struct host_stats stats;

	host_stats_init(&stats);
	ck_assert_int_gt(fd_read_file(AT_FDCWD, FIXTURES "/proc_stat", 4096, &text), 0);
	host_cores_parse(text, &before);
	ck_assert_int_eq(before.n, 2);
	ck_assert_str_eq(before.v[0].name, "cpu0");
	ck_assert_int_eq(before.v[0].busy, 600 + 10 + 100 + 20 + 4 + 6); /* user includes guest */
	ck_assert_int_eq(before.v[0].idle, 4000);
	host_cores_parse("cpu 1 1 1 1 1 1 1 1\n"
			 "cpu0 620 10 110 4070 20 4 6 0 60 0\n"
			 "cpu1 300 0 100 5000 10 0 0 0 0 0\n"
			 "cpu2 1 0 1 5 1 0 0 0 0 0\ncpu3 x\ncpufreq 1\n",
	    &now);
	ck_assert_int_eq(now.n, 3);
	host_cores_show(&before, &now, 2000, &stats);
	ck_assert_int_eq(stats.cpu.n, 2);
	ck_assert_double_eq_tol(stats.cpu.v[0].user, 20, 1e-9);
	ck_assert_double_eq_tol(stats.cpu.v[0].system, 10, 1e-9);
	ck_assert_double_eq_tol(stats.cpu.v[0].idle, 70, 1e-9);
	ck_assert_double_eq_tol(stats.cpu.v[0].total_percent, 30, 1e-9);
	ck_assert_double_eq_tol(stats.cpu.v[0].total_ticks, 600, 1e-9);
	/* A processor whose counters went back. */
	ck_assert_double_eq_tol(stats.cpu.v[1].total_percent, 0, 1e-9);
	ck_assert_double_eq_tol(stats.cpu.v[1].idle, 100, 1e-9);
	ck_assert_double_eq_tol(stats.cpu_ticks_consumed, 600, 1e-9);
	free(before.v);
	free(now.v);
}
END_TEST

START_TEST(test_memory)
{
	struct host_memory m = { 0 };

	host_memory_parse("MemTotal:  1000 kB\nMemFree:  200 kB\nMemAvailable: 700 kB\n"
			  "Buffers: 50 kB\nCached: 300 kB\nSwapCached: 9 kB\nSReclaimable: 50 kB\n",
	    &m);
	ck_assert_int_eq(m.total, 1000 * 1024);
	ck_assert_int_eq(m.free, 200 * 1024);
	ck_assert_int_eq(m.available, 700 * 1024);
	ck_assert_int_eq(m.used, 400 * 1024);
	host_memory_parse("MemTotal: 1 kB\nMemFree: 2 kB\n", &m);
	ck_assert_int_eq(m.used, 0);
}
END_TEST

START_TEST(test_disks_of_this_machine_once_each)
{
	cleanup_done(host_stats) struct host_stats stats;

	host_stats_init(&stats);
	ck_assert_int_eq(host_disks_read(FIXTURES "/mounts_hybrid", &stats), 0);
	ck_assert_int_eq(stats.disk_stats.n, 3);
	ck_assert_str_eq(stats.disk_stats.v[0].mountpoint, "/");
	ck_assert_str_eq(stats.disk_stats.v[1].device, "/dev/vdb1");
	ck_assert_str_eq(stats.disk_stats.v[1].mountpoint, "/mnt/a b");
	ck_assert_str_eq(stats.disk_stats.v[2].device, "tank/data");
	ck_assert_int_eq(host_disks_read("/nonexistent", &stats), -ENOENT);
}
END_TEST

START_TEST(test_device)
{
	static const char text[] = "22 1 0:21 / /proc rw - proc proc rw\n"
				   "27 1 254:0 / / rw shared:1 master:2 - ext4 /dev/vda rw\n"
				   "28 1 254:16 / /x rw - ext4";
	char copy[sizeof text];

	memcpy(copy, text, sizeof text);
	ck_assert_str_eq(host_device_find(copy, 254, 0), "/dev/vda");
	memcpy(copy, text, sizeof text);
	ck_assert_ptr_null(host_device_find(copy, 254, 16));
	memcpy(copy, text, sizeof text);
	ck_assert_ptr_null(host_device_find(copy, 254, 1));
}
END_TEST

START_TEST(test_hierarchies)
{
	struct usage_roots roots = { 0 };

	ck_assert_int_eq(usage_roots_find(FIXTURES "/mounts_hybrid", "/d-1", &roots), 0);
	ck_assert_str_eq(roots.v2, "/sys/fs/cgroup/unified/d-1");
	ck_assert_str_eq(roots.memory, "/sys/fs/cgroup/memory/d-1");
	ck_assert_str_eq(roots.cpu, "/sys/fs/cgroup/cpu/d-1");
	ck_assert_str_eq(roots.cpuacct, "/sys/fs/cgroup/cpu/d-1");
	ck_assert_str_eq(roots.pids, "/sys/fs/cgroup/pids/d-1");
	memset(&roots, 0, sizeof roots);
	ck_assert_int_eq(usage_roots_find(FIXTURES "/mounts_apart", "/d-1", &roots), 0);
	ck_assert_str_eq(roots.cpu, "/sys/fs/cgroup/cpu/d-1");
	ck_assert_str_eq(roots.cpuacct, "");
	ck_assert_str_eq(roots.v2, "");
}
END_TEST

START_TEST(test_cgroup_v1)
{
	struct usage_roots roots = { 0 };
	struct run_sample s = { 0 };

	root(roots.memory, "memory");
	root(roots.cpu, "cpu");
	root(roots.cpuacct, "cpu");
	put("memory/runs", "memory.stat",
	    "cache 1\nrss 2\nmapped_file 3\nswap 4\nhierarchical_memory_limit 99\n"
	    "total_cache 1000\ntotal_rss 2000\ntotal_mapped_file 300\ntotal_swap 40\n");
	put("memory/runs", "memory.usage_in_bytes", "5000\n");
	put("memory/runs", "memory.max_usage_in_bytes", "6000\n");
	put("memory/runs", "memory.kmem.usage_in_bytes", "70\n");
	put("memory/runs", "memory.kmem.max_usage_in_bytes", "80\n");
	put("cpu/runs", "cpuacct.usage", "3000000000\n");
	put("cpu/runs", "cpuacct.usage_user", "2000000000\n");
	put("cpu/runs", "cpuacct.usage_sys", "1000000000\n");
	put("cpu/runs", "cpu.stat", "nr_periods 10\nnr_throttled 3\nthrottled_time 123456\n");
	run_sample_read(&roots, RUN, RUN_WITH_PIDS, NULL, &s);
	ck_assert_int_gt(s.at_ns, 0);
	ck_assert_int_eq(s.memory.rss, 2000);
	ck_assert_int_eq(s.memory.cache, 1000);
	ck_assert_int_eq(s.memory.mapped_file, 300);
	ck_assert_int_eq(s.memory.swap, 40);
	ck_assert_int_eq(s.memory.usage, 5000);
	ck_assert_int_eq(s.memory.max_usage, 6000);
	ck_assert_int_eq(s.memory.kernel_usage, 70);
	ck_assert_int_eq(s.memory.kernel_max_usage, 80);
	ck_assert_uint_eq(s.memory.measured, 127);
	ck_assert_int_eq(s.cpu.total_ns, 3000000000);
	ck_assert_int_eq(s.cpu.user_ns, 2000000000);
	ck_assert_int_eq(s.cpu.system_ns, 1000000000);
	ck_assert_int_eq(s.throttled_periods, 3);
	ck_assert_int_eq(s.throttled_ns, 123456);
	run_sample_done(&s);
}
END_TEST

START_TEST(test_cgroup_v2)
{
	struct usage_roots roots = { 0 };
	struct run_sample s = { 0 };

	root(roots.v2, "v2");
	put("v2/tasks", "memory.stat", "anon 2000\nfile 1000\nkernel 70\nfile_mapped 300\n");
	put("v2/tasks", "memory.current", "5000\n");
	put("v2/tasks", "memory.swap.current", "40\n");
	put("v2/tasks", "cpu.stat",
	    "usage_usec 3000\nuser_usec 2000\nsystem_usec 1000\nnr_periods 1\nnr_throttled 2\n"
	    "throttled_usec 5\n");
	run_sample_read(&roots, RUN, RUN_WITH_PIDS, NULL, &s);
	ck_assert_int_eq(s.memory.rss, 2000);
	ck_assert_int_eq(s.memory.cache, 1000);
	ck_assert_int_eq(s.memory.mapped_file, 300);
	ck_assert_int_eq(s.memory.kernel_usage, 70);
	ck_assert_int_eq(s.memory.swap, 40);
	ck_assert_int_eq(s.memory.usage, 5000);
	ck_assert(!(s.memory.measured & RUN_USAGE_MAX)); /* before kernel 5.19 */
	ck_assert(s.memory.measured & RUN_KERNEL);
	ck_assert_int_eq(s.cpu.total_ns, 3000000);
	ck_assert_int_eq(s.cpu.user_ns, 2000000);
	ck_assert_int_eq(s.cpu.system_ns, 1000000);
	ck_assert(s.has_throttled);
	ck_assert_int_eq(s.throttled_periods, 2);
	ck_assert_int_eq(s.throttled_ns, 5000);
	run_sample_done(&s);
}
END_TEST

/* A run that used no CPU time has the memory that it had, for a while. */
START_TEST(test_an_idle_run)
{
	struct usage_roots roots = { 0 };
	struct run_sample first = { 0 }, s = { 0 };

	root(roots.v2, "v2");
	put("v2/tasks", "memory.stat", "anon 2000\nfile 1000\n");
	put("v2/tasks", "cpu.stat", "usage_usec 3000\nuser_usec 2000\nsystem_usec 1000\n");
	run_sample_read(&roots, RUN, RUN_WHAT_CHANGED, NULL, &first);
	put("v2/tasks", "memory.stat", "anon 2001\nfile 1000\n");
	run_sample_read(&roots, RUN, RUN_WHAT_CHANGED, &first, &s);
	ck_assert_int_eq(s.memory.rss, 2000);
	first.rest_ns -= 60000000000;
	s = (struct run_sample){ 0 };
	run_sample_read(&roots, RUN, RUN_WHAT_CHANGED, &first, &s);
	ck_assert_int_eq(s.memory.rss, 2001);
	put("v2/tasks", "memory.stat", "anon 2002\nfile 1000\n");
	put("v2/tasks", "cpu.stat", "usage_usec 3001\nuser_usec 2001\nsystem_usec 1000\n");
	first = s;
	s = (struct run_sample){ 0 };
	run_sample_read(&roots, RUN, RUN_WHAT_CHANGED, &first, &s);
	ck_assert_int_eq(s.memory.rss, 2002);
	run_sample_done(&s);
	usage_roots_done(&roots);
}
END_TEST

/* A run whose memory is not to be read keeps that of the last sample, if there is one. */
START_TEST(test_the_cpu_time_alone)
{
	struct usage_roots roots = { 0 };
	struct run_sample first = { 0 }, s = { 0 };

	root(roots.v2, "v2");
	put("v2/tasks", "memory.stat", "anon 3000\nfile 1000\n");
	put("v2/tasks", "cpu.stat", "usage_usec 3000\nuser_usec 2000\nsystem_usec 1000\n");
	run_sample_read(&roots, RUN, RUN_CPU_TIME, &first, &s);
	ck_assert_int_eq(s.memory.rss, 3000);
	first = s;
	s = (struct run_sample){ 0 };
	put("v2/tasks", "memory.stat", "anon 3001\nfile 1000\n");
	put("v2/tasks", "cpu.stat", "usage_usec 3007\nuser_usec 2006\nsystem_usec 1001\n");
	run_sample_read(&roots, RUN, RUN_CPU_TIME, &first, &s);
	ck_assert_int_eq(s.memory.rss, 3000);
	ck_assert_int_eq(s.cpu.user_ns, 2006000);
	ck_assert_int_eq(s.rest_ns, first.rest_ns);
	run_sample_done(&first);
	run_sample_done(&s);
	usage_roots_done(&roots);
}
END_TEST

/* The directory of the runs is open; one that was made anew is found again. */
START_TEST(test_a_directory_that_was_made_anew)
{
	struct usage_roots roots = { 0 };
	struct run_sample s = { 0 };
	char old[512], new[512];

	root(roots.v2, "again");
	put("again/tasks", "cpu.stat", "usage_usec 1\nuser_usec 1\nsystem_usec 0\n");
	run_sample_read(&roots, RUN, RUN_WHAT_CHANGED, NULL, &s);
	ck_assert_int_eq(s.cpu.total_ns, 1000);
	run_sample_done(&s);
	root(old, "again/tasks");
	root(new, "again/old");
	ck_assert_int_eq(rename(old, new), 0);
	root(old, "again/old/" RUN);
	root(new, "again/old/other");
	ck_assert_int_eq(rename(old, new), 0);
	put("again/tasks", "cpu.stat", "usage_usec 2\nuser_usec 2\nsystem_usec 0\n");
	for (int i = 0; i < 2; i++) {
		run_sample_done(&s);
		run_sample_read(&roots, RUN, RUN_WHAT_CHANGED, NULL, &s);
	}
	ck_assert_int_eq(s.cpu.total_ns, 2000);
	run_sample_done(&s);
	usage_roots_done(&roots);
}
END_TEST

/* Only what the counters prove: a file that is missing, or has no such line, proves nothing. */
START_TEST(test_whether_the_limit_was_reached)
{
	struct usage_roots v1 = { 0 }, v2 = { 0 };

	root(v1.memory, "memory");
	root(v2.v2, "v2");
	ck_assert(!run_limit_unreached(&v1, RUN));
	put("memory/runs", "memory.failcnt", "0\n");
	ck_assert(run_limit_unreached(&v1, RUN));
	put("memory/runs", "memory.failcnt", "17\n");
	ck_assert(!run_limit_unreached(&v1, RUN));
	ck_assert(!run_limit_unreached(&v2, RUN));
	put("v2/tasks", "memory.events", "low 0\nhigh 0\nmax 9\noom 0\noom_kill 1\n");
	ck_assert(run_limit_unreached(&v2, RUN));
	put("v2/tasks", "memory.events", "low 0\nhigh 0\nmax 9\noom 1\noom_kill 1\n");
	ck_assert(!run_limit_unreached(&v2, RUN));
	put("v2/tasks", "memory.events", "low 0\nhigh 0\noom_kill 1\n");
	ck_assert(!run_limit_unreached(&v2, RUN));
}
END_TEST

/* No controller: the figures are those of the processes. */
START_TEST(test_processes_alone)
{
	struct usage_roots roots = { 0 };
	struct run_sample s = { 0 };
	char pids[64];

	root(roots.v2, "bare");
	(void)snprintf(pids, sizeof pids, "%d\n999999999\n", getpid());
	put("bare/tasks", "cgroup.procs", pids);
	run_sample_read(&roots, RUN, RUN_WITH_PIDS, NULL, &s);
	ck_assert_int_eq(s.n_pids, 1);
	ck_assert_int_eq(s.pids[0].pid, getpid());
	ck_assert_int_gt(s.pids[0].rss, 100000);
	ck_assert_int_eq(s.memory.rss, s.pids[0].rss);
	ck_assert_uint_eq(s.memory.measured, RUN_RSS);
	ck_assert_int_eq(s.cpu.total_ns, s.pids[0].cpu.total_ns);
	ck_assert(!s.has_throttled);
	run_sample_done(&s);
}
END_TEST

START_TEST(test_a_process_with_any_name)
{
	struct pid_sample s = { 0 };
	const long tick = sysconf(_SC_CLK_TCK);

	ck_assert_int_eq(run_pid_parse("7 (a) R 1 (b) S 1 7 7 0 -1 4194304 9 8 7 6 300 200 5 4 20 "
				       "0 1 0 12345 1000000 25 18446744073709551615 1 1",
			     &s),
	    0);
	ck_assert_int_eq(s.cpu.user_ns, 300 * (1000000000 / tick));
	ck_assert_int_eq(s.cpu.system_ns, 200 * (1000000000 / tick));
	ck_assert_int_eq(s.cpu.total_ns, 500 * (1000000000 / tick));
	ck_assert_int_eq(s.start, 12345);
	ck_assert_int_eq(s.rss, 25 * sysconf(_SC_PAGESIZE));
	ck_assert_int_eq(run_pid_parse("7 (a) S 1 7", &s), -EBADMSG);
	ck_assert_int_eq(run_pid_parse("nothing", &s), -EBADMSG);
}
END_TEST

START_TEST(test_between_two_samples)
{
	struct pid_sample was[] = { { 5, 1, { 100000000, 90000000, 10000000 }, 10 },
		{ 6, 1, { 500000000, 0, 0 }, 0 } };
	struct pid_sample is[] = { { 5, 1, { 350000000, 290000000, 60000000 }, 4096 },
		{ 6, 2, { 50000000, 0, 0 }, 0 } };
	struct run_usage u = {
		.before = { .at_ns = 1000000000,
		    .cpu = { 1000000000, 800000000, 200000000 },
		    .pids = was,
		    .n_pids = 2 },
		.last = { .at_ns = 1500000000,
		    .cpu = { 1750000000, 1300000000, 450000000 },
		    .memory = { .rss = 7 },
		    .pids = is,
		    .n_pids = 2 },
	};
	cleanup_done(task_usage) struct task_usage t;
	const struct resource_usage *pid;

	task_usage_init(&t);
	run_usage_show(&u, 3000, &t);
	ck_assert_double_eq_tol(t.resource_usage->cpu_stats->percent, 150, 1e-9);
	ck_assert_double_eq_tol(t.resource_usage->cpu_stats->user_mode, 100, 1e-9);
	ck_assert_double_eq_tol(t.resource_usage->cpu_stats->system_mode, 50, 1e-9);
	ck_assert_double_eq_tol(t.resource_usage->cpu_stats->total_ticks, 4500, 1e-9);
	ck_assert_int_eq(t.resource_usage->memory_stats->rss, 7);
	ck_assert_int_eq(t.pids.n, 2);
	pid = map_get(resource_usage, &t.pids, "5");
	ck_assert_double_eq_tol(pid->cpu_stats->percent, 50, 1e-9);
	ck_assert_int_eq(pid->memory_stats->rss, 4096);
	/* The pid was given to another process meanwhile. */
	pid = map_get(resource_usage, &t.pids, "6");
	ck_assert_double_eq_tol(pid->cpu_stats->percent, 10, 1e-9);
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_checked_fixture(tc, make_top, remove_top);
	tcase_add_test(tc, test_cores);
	tcase_add_test(tc, test_memory);
	tcase_add_test(tc, test_disks_of_this_machine_once_each);
	tcase_add_test(tc, test_device);
	tcase_add_test(tc, test_hierarchies);
	tcase_add_test(tc, test_cgroup_v1);
	tcase_add_test(tc, test_cgroup_v2);
	tcase_add_test(tc, test_an_idle_run);
	tcase_add_test(tc, test_the_cpu_time_alone);
	tcase_add_test(tc, test_a_directory_that_was_made_anew);
	tcase_add_test(tc, test_whether_the_limit_was_reached);
	tcase_add_test(tc, test_processes_alone);
	tcase_add_test(tc, test_a_process_with_any_name);
	tcase_add_test(tc, test_between_two_samples);
}

int
main(void)
{
	return unit_run("usage", add);
}

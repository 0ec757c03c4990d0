// SPDX-License-Identifier: Apache-2.0
/*
 * bench_exec.c: measures the cost of a start without the agent: exec-helper and executors, driven
 * over a socketpair, and a bare loop of clone3 and execve with the same cgroup writes. `bench_exec
 * [-n N] [-o what]`; prints "name value unit" lines.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/cgroup.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/clone.h"
#include "common/exe_record.h"
#include "common/fd.h"
#include "common/id.h"
#include "common/ipc.h"
#include "common/lease.h"
#include "common/path.h"
#include "common/spec.h"
#include "config/config.h"
#include "proto/ipc_records.h"

#ifndef CLONE_INTO_CGROUP
#define CLONE_INTO_CGROUP 0x200000000ull
#endif
#define WINDOW     8
#define FIRST_UID  61184
#define MEMORY_MAX (64ull << 20)
#define CPU_SHARES 100

static const char *base_parent = "/var/tmp";
static char base[64], cgroup[64];
static int base_fd = -1, ipc = -1, link_fd = -1;
static pid_t helper;
static unsigned n_runs = 1000;

struct run {
	struct id id, alloc;
	char name[ID_HEX_SIZE];
	int peer;
};

static void __attribute__((noreturn, format(printf, 1, 2))) fail(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vfprintf(stderr, fmt, ap);
	va_end(ap);
	(void)fputc('\n', stderr);
	exit(1);
}

static double
now_s(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/*
 * CPU time of this process and all its descendants, running or ended, if cpuacct is a separate
 * hierarchy (v1). Unlike the rate, it does not depend on other load of the machine.
 */
static char cpuacct[128];

static void
enter_cpuacct(void)
{
	char path[160];

	(void)snprintf(
	    cpuacct, sizeof cpuacct, "/sys/fs/cgroup/cpuacct/drover-bench%d", (int)getpid());
	(void)snprintf(path, sizeof path, "%s/tasks", cpuacct);
	if (mkdir(cpuacct, 0755) < 0 || fd_write_file(AT_FDCWD, path, "0") < 0)
		cpuacct[0] = '\0';
}

static void
leave_cpuacct(void)
{
	if (!cpuacct[0])
		return;
	(void)fd_write_file(AT_FDCWD, "/sys/fs/cgroup/cpuacct/tasks", "0");
	(void)rmdir(cpuacct);
}

static double
cpu_s(void)
{
	cleanup_free char *text = NULL;
	char path[160];

	(void)snprintf(path, sizeof path, "%s/cpuacct.usage", cpuacct);
	return cpuacct[0] && fd_read_file(AT_FDCWD, path, 64, &text) > 0 ? strtod(text, NULL) / 1e9
									 : 0;
}

/* Prints the rate of runs since `wall`, and their CPU time each since `cpu`. */
static void
report(const char *name, const char *what, double wall, double cpu)
{
	(void)printf("exec.%s.%s_per_s %.0f runs/s\n", name, what, n_runs / (now_s() - wall));
	if (cpuacct[0])
		(void)printf(
		    "exec.%s.%s_cpu %.0f us/run\n", name, what, (cpu_s() - cpu) * 1e6 / n_runs);
	(void)fflush(stdout);
}

static void
make_dir(const char *path, mode_t mode, uid_t uid, gid_t gid)
{
	int r = dir_make_at(base_fd, path, mode, uid, gid, NULL);

	if (r < 0)
		fail("make %s/%s: %s", base, path, strerror(-r));
}

static void
make_lease(void)
{
	struct lease_page page = { .magic = LEASE_MAGIC, .started = clock_boot_ns() };
	char whole[4096] = { 0 };
	int fd = openat(base_fd, "rt/lease", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	(void)boot_id_read(page.boot_id);
	memcpy(whole, &page, sizeof page);
	if (fd < 0 || fd_write_full(fd, whole, sizeof whole) < 0)
		fail("make the lease: %s", strerror(errno));
	(void)close(fd);
}

/* A tmpfs, as /run on a real machine, in a mount namespace that ends with this process. */
static void
mount_tmpfs(const char *name)
{
	char path[PATH_MAX];

	(void)snprintf(path, sizeof path, "%s/%s", base, name);
	if (mount("drover-bench", path, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755") < 0)
		fail("mount a tmpfs on %s: %s", path, strerror(errno));
}

/* The directories that the launcher makes. */
static void
make_places(void)
{
	struct cgroup c;
	struct err e = { 0 };
	const uid_t drover = FIRST_UID;

	(void)snprintf(base, sizeof base, "%s/drover-bench-XXXXXX", base_parent);
	if (!mkdtemp(base) || chmod(base, 0711) < 0)
		fail("make %s: %s", base, strerror(errno));
	base_fd = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	make_dir("alloc", 0711, 0, 0);
	make_dir("logs", 0750, 0, drover);
	make_dir("run", 02750, 0, drover);
	make_dir("csi", 0711, 0, 0);
	make_dir("csi/sock", 0711, 0, 0);
	make_dir("images", 0711, 0, 0);
	make_dir("images/layers", 0700, 0, 0);
	make_dir("rt", 0755, 0, 0);
	mount_tmpfs("rt");
	make_dir("rt/x", 02750, 0, drover);
	make_lease();
	(void)snprintf(cgroup, sizeof cgroup, "/drover-bench%d", (int)getpid());
	if (cgroup_open(&c, cgroup, true, &e) < 0)
		fail("%s", e.msg);
	cgroup_close(&c);
}

static int
policy_fd(void)
{
	static struct agent_config config;
	static struct agent_policy policy;
	int fd;

	config_defaults(&config, &policy, true);
	fd = fd_memfd_sealed("policy", &policy, sizeof policy);
	if (fd < 0)
		fail("policy: %s", strerror(-fd));
	return fd;
}

/* Starts exec-helper as the launcher does; enum proc_fd. */
static void
start_helper(const char *dir)
{
	char text[12][PATH_MAX + 32], *argv[13];
	int pair[2], links[2], n = 0, null = open("/dev/null", O_RDWR | O_CLOEXEC);
	char path[2][PATH_MAX];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, links) < 0)
		fail("socketpair: %s", strerror(errno));
	(void)snprintf(path[0], PATH_MAX, "%.4000s/drover-executor", dir);
	(void)snprintf(path[1], PATH_MAX, "%.4000s/drover-exec-helper", dir);
	int fds[] = { null, dup(2), dup(2), links[1], policy_fd(), null, pair[1],
		open(path[0], O_PATH), open(path[1], O_PATH), open(base, O_RDONLY | O_DIRECTORY) };

	(void)sprintf(text[n++], "drover-exec-helper");
	(void)sprintf(text[n++], "--instance=00000001");
	(void)sprintf(text[n++], "--data-dir=%s", base);
	(void)sprintf(text[n++], "--runtime-dir=%s/rt", base);
	(void)sprintf(text[n++], "--cgroup=%s", cgroup);
	(void)sprintf(text[n++], "--drover-gid=%d", FIRST_UID);
	(void)sprintf(text[n++], "--executor-uid=%d", FIRST_UID + 1);
	(void)sprintf(text[n++], "--executor-gid=%d", FIRST_UID + 1);
	(void)sprintf(text[n++], "--agent-uid-0=%d", FIRST_UID);
	(void)sprintf(text[n++], "--agent-uid-1=%d", FIRST_UID + 1);
	for (int i = 0; i < n; i++)
		argv[i] = text[i];
	argv[n] = NULL;
	helper = fork();
	if (helper == 0) {
		if (fd_pack(fds, ELEMENTSOF(fds), 0) == 0)
			(void)execve(path[1], argv, (char *[]){ NULL });
		_exit(127);
	}
	(void)close(pair[1]);
	(void)close(links[1]);
	for (size_t i = 0; i < ELEMENTSOF(fds); i++)
		if (fds[i] != null)
			(void)close(fds[i]);
	ipc = pair[0];
	link_fd = links[0];
}

/* Returns false if exec-helper requires another request. */
static bool
receive(unsigned type)
{
	static struct ipc_packet p;
	struct err e = { 0 };
	int r = ipc_recv(ipc, IPC_SUPERVISOR, IPC_EXEC_HELPER, &p, 0, &e);

	if (r <= 0)
		fail("exec-helper: %s", r == 0 ? "it has ended" : e.msg);
	if (p.type == IPC_ERROR_REP) {
		const struct ipc_error_rep *error = p.msg;

		if (error->code != -EAGAIN)
			fail("exec-helper: %s", error->text);
	} else if (p.type != type)
		fail("exec-helper answered %u, not %u", p.type, type);
	ipc_packet_done(&p);
	return p.type == type;
}

/* Makes the directories of an alloc with the task "t", and the task's binary in local/. */
static void
make_alloc(const struct run *run)
{
	char uuid[ID_UUID_SIZE], path[PATH_MAX];
	static const char *const dirs[] = { "alloc/%s", "alloc/%s/alloc", "alloc/%s/alloc/logs",
		"alloc/%s/t", "alloc/%s/t/local", "alloc/%s/t/private", "alloc/%s/t/tmp",
		"alloc/%s/t/secrets" };

	id_to_uuid(&run->alloc, uuid);
	for (size_t i = 0; i < ELEMENTSOF(dirs); i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		(void)snprintf(path, sizeof path, dirs[i], uuid);
#pragma GCC diagnostic pop
		make_dir(path, 0755, 0, 0);
	}
	(void)snprintf(path, sizeof path, "logs/%s", uuid);
	make_dir(path, 02755, FIRST_UID + 1, FIRST_UID);
	(void)snprintf(path, sizeof path, "alloc/%s/t/local/bench_task", uuid);
	if (linkat(base_fd, "bench_task", base_fd, path, 0) < 0)
		fail("link %s: %s", path, strerror(errno));
}

static struct run *
make_runs(void)
{
	struct run *runs = calloc(n_runs, sizeof *runs);

	for (unsigned i = 0; runs && i < n_runs; i++) {
		runs[i].id = id_random();
		runs[i].alloc = id_random_uuid();
		id_to_hex(&runs[i].id, runs[i].name);
		make_alloc(&runs[i]);
	}
	return runs;
}

static void
send_start(const struct run *run, enum exec_driver driver, int spec)
{
	static struct exec_task_start_req msg;
	struct exec_start *req = &msg.start;
	struct err e = { 0 };

	req->run = run->id;
	req->alloc = run->alloc;
	(void)IPC_TEXT_SET(req->task, "t");
	req->driver = driver;
	req->cpu_shares = CPU_SHARES;
	req->memory_bytes = MEMORY_MAX;
	req->log_max_files = 10;
	req->log_max_bytes = 10 << 20;
	req->kill_signal = SIGINT;
	req->kill_timeout_ms = 5000;
	if (ipc_send(ipc, IPC_SUPERVISOR, IPC_EXEC_HELPER, EXEC_TASK_START_REQ, 1, &msg, &spec, 1,
		0, &e) < 0)
		fail("%s", e.msg);
}

static bool
read_record(const struct run *run, struct exe_record *ret)
{
	char path[64], buf[EXE_RECORD_SIZE];
	int fd;
	ssize_t n;

	(void)snprintf(path, sizeof path, "run/%s.rec", run->name);
	fd = openat(base_fd, path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, buf, sizeof buf);
	(void)close(fd);
	return n > 0 && exe_record_parse(buf, (size_t)n, run->id.b, ret) == 0;
}

static int
connect_run(const struct run *run)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	(void)snprintf(addr.sun_path, sizeof addr.sun_path, "%s/rt/x/%s.sock", base, run->name);
	if (fd < 0)
		fail("socket: %s", strerror(errno));
	if (connect(fd, (struct sockaddr *)&addr, sizeof addr) == 0)
		return fd;
	(void)close(fd);
	return -1;
}

/* Follows one run as the supervisor does: until HELLO reports that it runs, or until the executor
 * has ended. */
static void
follow(struct run *run, bool stay)
{
	uint8_t buf[EXE_MSG_MAX];
	struct exe_hello hello;
	int fds[1];
	size_t n_fds = 0;
	ssize_t n;

	while (run->peer >= 0 &&
	       (n = fd_recv_msg(run->peer, buf, sizeof buf, fds, 1, &n_fds, 0)) != 0) {
		for (size_t i = 0; n > 0 && i < n_fds; i++)
			(void)close(fds[i]);
		if (n < 0)
			break;
		memcpy(&hello, buf, sizeof hello);
		if (hello.head.type != EXE_EXITED && hello.state == EXE_FAILED)
			fail("a run failed at step %u: %s (detail %u)", hello.step,
			    strerror(hello.error), hello.detail);
		if (stay && hello.head.type != EXE_EXITED && hello.state == EXE_RUNNING)
			return;
	}
	if (stay)
		fail("an executor is gone");
}

static double
pss_kb(pid_t pid)
{
	cleanup_free char *text = NULL;
	char path[64], *at;

	(void)snprintf(path, sizeof path, "/proc/%d/smaps_rollup", (int)pid);
	if (fd_read_file(AT_FDCWD, path, 65536, &text) < 0 || !(at = strstr(text, "\nPss:")))
		return 0;
	return strtod(at + 5, NULL);
}

static uint64_t
exec_kernel_bytes(void)
{
	cleanup_free char *text = NULL;
	char path[PATH_MAX];

	(void)snprintf(
	    path, sizeof path, "/sys/fs/cgroup/memory%s/exec/memory.kmem.usage_in_bytes", cgroup);
	return fd_read_file(AT_FDCWD, path, 64, &text) < 0 ? 0 : strtoull(text, NULL, 10);
}

static void
reap(const struct run *runs)
{
	struct exec_run_reap_req req;
	struct err e = { 0 };

	for (unsigned i = 0; i < n_runs; i++) {
		req.run = runs[i].id;
		do {
			if (ipc_send(ipc, IPC_SUPERVISOR, IPC_EXEC_HELPER, EXEC_RUN_REAP_REQ, 1,
				&req, NULL, 0, 0, &e) < 0)
				fail("%s", e.msg);
		} while (!receive(EXEC_RUN_REAP_REP));
	}
}

static void
started(struct run *run)
{
	if (!receive(EXEC_TASK_START_REP))
		fail("exec-helper has no room for a start");
	run->peer = connect_run(run);
}

static void
unmount(const char *name)
{
	char path[PATH_MAX];

	(void)snprintf(path, sizeof path, "%s/%s", base, name);
	(void)umount2(path, MNT_DETACH);
}

/* Unmounts secrets, as mount-helper does before an alloc is removed. */
static void
unmount_secrets(const struct run *runs)
{
	char uuid[ID_UUID_SIZE], path[64];

	for (unsigned i = 0; i < n_runs; i++) {
		id_to_uuid(&runs[i].alloc, uuid);
		(void)snprintf(path, sizeof path, "alloc/%s/t/secrets", uuid);
		unmount(path);
	}
}

static void
bench_path(const char *name, enum exec_driver driver, bool stay)
{
	struct run *runs = make_runs();
	struct spec_writer w = { 0 };
	uint64_t kernel = exec_kernel_bytes();
	double began, cpu, pss = 0;
	int spec;

	spec_add_str(&w, SPEC_COMMAND, "bench_task");
	if (stay)
		spec_add_str(&w, SPEC_ARG, "stay");
	spec = spec_finish(&w);
	began = now_s();
	cpu = cpu_s();
	for (unsigned i = 0; i < n_runs; i++) {
		send_start(&runs[i], driver, spec);
		if (i >= WINDOW)
			started(&runs[i - WINDOW]);
	}
	for (unsigned i = n_runs < WINDOW ? 0 : n_runs - WINDOW; i < n_runs; i++)
		started(&runs[i]);
	for (unsigned i = 0; i < n_runs; i++)
		follow(&runs[i], stay);
	report(name, stay ? "start" : "run", began, cpu);
	if (stay) {
		for (unsigned i = 0; i < n_runs; i++) {
			struct exe_record rec;

			if (read_record(&runs[i], &rec))
				pss += pss_kb((pid_t)rec.executor_pid);
		}
		(void)printf("exec.%s.executor_pss %.4f MB\n", name, pss / n_runs / 1024);
		(void)printf("exec.%s.executor_kernel %.4f MB\n", name,
		    (double)(exec_kernel_bytes() - kernel) / n_runs / 1048576);
	}
	for (unsigned i = 0; i < n_runs; i++)
		close_p(&runs[i].peer);
	began = now_s();
	cpu = cpu_s();
	reap(runs);
	report(name, stay ? "kill_and_reap" : "reap", began, cpu);
	unmount_secrets(runs);
	(void)close(spec);
	free(runs);
}

struct bare {
	const struct cgroup *c;
	int dirs[CGROUP_TREES];
	char *const *argv;
};

static void __attribute__((noreturn)) run_bare(void *arg)
{
	const struct bare *b = arg;

	for (int t = CGROUP_MEMORY; t < CGROUP_TREES; t++)
		if (b->dirs[t] >= 0)
			(void)fd_write_file(b->dirs[t], "tasks", "0");
	(void)execve(b->argv[0], b->argv, (char *[]){ NULL });
	_exit(127);
}

static void
limit_bare(const struct bare *b)
{
	bool v2 = b->c->in_v2 & CGROUP_BIT(CGROUP_MEMORY);
	int dir = b->dirs[v2 ? CGROUP_V2 : CGROUP_MEMORY];

	if (dir >= 0) {
		(void)fd_write_file(dir, v2 ? "memory.max" : "memory.limit_in_bytes", "67108864");
		(void)fd_write_file(dir, v2 ? "memory.swap.max" : "memory.swappiness", "0");
	}
	v2 = b->c->in_v2 & CGROUP_BIT(CGROUP_CPU);
	dir = b->dirs[v2 ? CGROUP_V2 : CGROUP_CPU];
	if (dir >= 0)
		(void)fd_write_file(dir, v2 ? "cpu.weight" : "cpu.shares", "100");
}

/* Without executor, record, socket and log: the kernel's cost of a process in its own cgroup. */
static void
bench_bare(void)
{
	char path[PATH_MAX], name[32], *argv[] = { path, NULL };
	struct cgroup c;
	struct bare b = { .c = &c, .argv = argv };
	struct err e = { 0 };
	unsigned waited = 0;
	double began, cpu;

	(void)snprintf(path, sizeof path, "%s/bench_task", base);
	if (cgroup_open(&c, cgroup, false, &e) < 0)
		fail("%s", e.msg);
	began = now_s();
	cpu = cpu_s();
	for (unsigned i = 0; i < n_runs; i++) {
		(void)snprintf(name, sizeof name, "bare%u", i);
		for (int t = 0; t < CGROUP_TREES; t++) {
			b.dirs[t] = -1;
			if (t != CGROUP_CPUSET && c.tasks[t] >= 0 &&
			    mkdirat(c.tasks[t], name, 0755) == 0)
				b.dirs[t] =
				    openat(c.tasks[t], name, O_PATH | O_DIRECTORY | O_CLOEXEC);
		}
		limit_bare(&b);
		if (clone_call(CLONE_VM | CLONE_VFORK | CLONE_INTO_CGROUP, b.dirs[CGROUP_V2], NULL,
			run_bare, &b) < 0)
			fail("clone3: %s", strerror(errno));
		for (int t = 0; t < CGROUP_TREES; t++)
			close_p(&b.dirs[t]);
		while (waited < n_runs && waitpid(-1, NULL, WNOHANG) > 0)
			waited++;
	}
	while (waited < n_runs && waitpid(-1, NULL, 0) > 0)
		waited++;
	report("bare", "run", began, cpu);
	for (unsigned i = 0; i < n_runs; i++) {
		(void)snprintf(name, sizeof name, "bare%u", i);
		for (int t = 0; t < CGROUP_TREES; t++)
			if (c.tasks[t] >= 0)
				(void)cgroup_rmdir(c.tasks[t], name);
	}
	cgroup_close(&c);
}

static void
stop_all(void)
{
	cleanup_close int parent = open(base_parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct err e = { 0 };
	int r;

	close_p(&ipc);
	close_p(&link_fd);
	if (helper > 0)
		(void)waitpid(helper, NULL, 0);
	if (cgroup[0] && cgroup_remove(cgroup, 10000, &e) < 0)
		(void)fprintf(stderr, "%s\n", e.msg);
	leave_cpuacct();
	unmount("rt");
	r = base_fd < 0 ? 0 : tree_remove_at(parent, strrchr(base, '/') + 1);
	if (r < 0)
		(void)fprintf(stderr, "remove %s: %s\n", base, strerror(-r));
}

static void
copy_task(const char *dir)
{
	cleanup_free char *text = NULL;
	char path[PATH_MAX];
	ssize_t n;
	int fd;

	(void)snprintf(path, sizeof path, "%.4000s/bench_task", dir);
	n = fd_read_file(AT_FDCWD, path, 16 << 20, &text);
	fd = openat(base_fd, "bench_task", O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	if (n < 0 || fd < 0 || fd_write_full(fd, text, (size_t)n) < 0)
		fail("copy %s", path);
	(void)close(fd);
}

int
main(int argc, char **argv)
{
	const char *only = "", *dir = getenv("DROVER_BUILD") ?: "build";
	char tests[PATH_MAX], build[PATH_MAX];
	int option;

	while ((option = getopt(argc, argv, "d:n:o:")) != -1) {
		if (option == 'n')
			n_runs = (unsigned)strtoul(optarg, NULL, 10);
		else if (option == 'd')
			base_parent = optarg;
		else if (option == 'o')
			only = optarg;
		else
			return 2;
	}
	if (!realpath(dir, build) || n_runs == 0)
		fail("no build in %s", dir);
	(void)setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 20000, 20000 });
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		fail("make a mount namespace: %s", strerror(errno));
	enter_cpuacct();
	make_places();
	(void)atexit(stop_all);
	(void)snprintf(tests, sizeof tests, "%.4000s/tests", build);
	copy_task(tests);
	if (!*only || strcmp(only, "bare") == 0)
		bench_bare();
	start_helper(build);
	if (!*only || strcmp(only, "raw") == 0)
		bench_path("raw_exec", EXEC_DRIVER_RAW_EXEC, false);
	if (!*only || strcmp(only, "exec") == 0)
		bench_path("exec", EXEC_DRIVER_EXEC, false);
	if (!*only || strcmp(only, "raw-stay") == 0)
		bench_path("raw_exec", EXEC_DRIVER_RAW_EXEC, true);
	if (!*only || strcmp(only, "exec-stay") == 0)
		bench_path("exec", EXEC_DRIVER_EXEC, true);
	return 0;
}

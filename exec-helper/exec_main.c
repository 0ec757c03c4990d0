// SPDX-License-Identifier: Apache-2.0
/* exec_main.c: exec-helper, from its constant, and the root directories that it opens once. Runs
 * in: exec-helper. */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/crash.h"
#include "common/fd.h"
#include "common/path.h"
#include "common/privs.h"
#include "exec-helper/exec.h"

/* Higher than each descriptor number of an executor, so that passing one never overwrites another.
 */
#define OWN_FDS_FROM (EXE_FD_VOLUMES + EXE_MOUNTS_MAX)

static struct exec_state state;

/* Opens a directory and, with at >= 0, moves it to the number that executors expect. */
static int
open_root(int dir_fd, const char *path, int at, int *ret_fd, struct err *e)
{
	cleanup_close int fd =
	    openat(dir_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd >= 0 && at >= 0 && dup3(fd, at, O_CLOEXEC) < 0)
		return err_set(e, -errno, "place %s", path);
	if (fd >= 0 && ret_fd)
		*ret_fd = fcntl(fd, F_DUPFD_CLOEXEC, OWN_FDS_FROM);
	if (fd < 0 || (ret_fd && *ret_fd < 0))
		return err_set(e, -errno, "open %s", path);
	return 0;
}

static int
open_roots(struct exec_state *s, const struct proc_args *args, struct err *e)
{
	const int data = FD_DATA;
	int r;

	if ((r = open_root(data, "alloc", EXE_FD_ALLOC, NULL, e)) < 0 ||
	    (r = open_root(data, "csi", EXE_FD_CSI, NULL, e)) < 0 ||
	    (r = open_root(data, "images/layers", EXE_FD_LAYERS, NULL, e)) < 0 ||
	    (r = open_root(AT_FDCWD, "/proc", EXE_FD_PROC, NULL, e)) < 0 ||
	    (r = open_root(data, "logs", -1, &s->logs, e)) < 0 ||
	    (r = open_root(data, "run", -1, &s->records, e)) < 0 ||
	    /* -dev: the runtime directory is inside the data directory, even if that was moved
	       (lau_runtime.c) */
	    (r = open_root(data, args->dev ? "rt" : args->runtime_dir, -1, &s->rt, e)) < 0 ||
	    (r = open_root(s->rt, "x", -1, &s->sockets, e)) < 0)
		return r;
	return 0;
}

static void
open_volumes(struct exec_state *s)
{
	for (uint32_t i = 0; i < s->policy->n_host_volumes; i++) {
		const struct config_host_volume *v = &s->policy->host_volumes[i];
		struct err *e = &s->volume_errors[i];
		cleanup_close int fd = path_open_place(v->path, &s->volume_private[i], e);

		s->volumes[i] = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, OWN_FDS_FROM);
		if (fd >= 0 && s->volumes[i] < 0)
			(void)err_set(e, -errno, "open %s", v->path);
		if (s->volumes[i] < 0)
			log_warn("host volume %s: %s", v->name, e->msg);
	}
}

/* v1: executors inherit exec-helper's cgroups, so it moves into exec/ itself, except in the tree
 * that systemd tracks. */
static int
enter_exec(struct exec_state *s, struct err *e)
{
	for (int t = CGROUP_MEMORY; t <= CGROUP_CPUSET; t++) {
		int r = s->cgroup.exec[t] < 0 ? 0 : fd_write_file(s->cgroup.exec[t], "tasks", "0");

		if (r < 0)
			return err_set(e, r, "enter cgroup %s/exec", s->args->cgroup);
	}
	/* All executors share one CPU weight, while each task has its own, so theirs must be the
	 * highest to run beside a thousand busy tasks. */
	(void)fd_write_file(s->cgroup.exec[CGROUP_V2], "cpu.weight", "10000");
	if (s->cgroup.exec[CGROUP_CPU] >= 0)
		(void)fd_write_file(s->cgroup.exec[CGROUP_CPU], "cpu.shares", "262144");
	if (s->cgroup.exec[CGROUP_SYSTEMD] >= 0 &&
	    dup3(s->cgroup.exec[CGROUP_SYSTEMD], EXE_FD_SYSTEMD_EXEC, O_CLOEXEC) < 0)
		return err_set(e, -errno, "place cgroup %s/exec", s->args->cgroup);
	return 0;
}

/* Reserves all descriptor numbers below OWN_FDS_FROM that executors use, before anything else is
 * opened. */
static int
fill_numbers(struct err *e)
{
	int null = open("/dev/null", O_RDWR | O_NOCTTY | O_CLOEXEC);

	_Static_assert((int)FD_LOG < EXE_FD_PERMANENT, "executors would inherit it");
	if (null < 0 || dup2(null, 0) < 0)
		return err_set(e, -errno, "open /dev/null");
	if (dup3(FD_SPECIAL, EXE_FD_BINARY, O_CLOEXEC) < 0 ||
	    dup3(FD_SPECIAL2, EXE_FD_SELF, O_CLOEXEC) < 0)
		return err_set(e, -errno, "reserve the descriptors of the executor's binaries");
	for (int fd = FD_LINK; fd < OWN_FDS_FROM; fd++)
		if (fcntl(fd, F_GETFD) < 0 && dup3(0, fd, O_CLOEXEC) < 0)
			return err_set(e, -errno, "fill descriptor %d", fd);
	return 0;
}

/* Resets the signals that executors and tasks inherit. Uses the system call directly, because glibc
 * hides signals 32 and 33, which its posix_spawn(3) leaves ignored in child processes. */
static void
default_signals(void)
{
	struct {
		void *handler;
		unsigned long flags;
		void *restorer;
		uint64_t mask;
	} action = { .handler = SIG_DFL };

	for (int signo = 1; signo <= 64; signo++)
		if (signo != SIGPIPE)
			(void)syscall(SYS_rt_sigaction, signo, &action, NULL, sizeof action.mask);
}

static int
init(void *arg, const struct proc_args *args, struct err *e)
{
	struct exec_state *s = arg;
	int r;

	s->args = args;
	/* The mode of the runs' sockets; the supervisor connects through group drover. */
	(void)umask(002);
	default_signals();
	if ((r = fill_numbers(e)) < 0 || (r = open_roots(s, args, e)) < 0)
		return r;
	s->policy = policy_map(FD_CONFIG, e);
	if (!s->policy)
		return e->code;
	if ((r = cgroup_open(&s->cgroup, args->cgroup, false, e)) < 0 || (r = enter_exec(s, e)) < 0)
		return r;
	r = boot_id_read(s->boot_id);
	if (r < 0)
		return err_set(e, r, "read the boot id");
	s->pids_max = cgroup_pids_share(CGROUP_PIDS_RUN);
	open_volumes(s);
	if ((s->policy->drivers & (1u << DRIVER_DOCKER | 1u << DRIVER_PODMAN)) &&
	    exec_containers_make(&s->containers_error) < 0)
		log_warn("no containers: %s", s->containers_error.msg);
	if (!(s->policy->drivers & 1u << DRIVER_EXEC))
		return 0;
	/* Without the template the raw_exec driver still works. */
	if (exec_template_make(s->policy, &s->template_error) < 0)
		log_warn("no exec tasks: %s", s->template_error.msg);
	return 0;
}

/* SIGCHLD is ignored so that the kernel reaps: waitpid(-1) would scan all executors each time. This
 * is set here and not in init(), because the loop installs its own handler after that; execve
 * resets it, so no executor or task inherits it. */
static void
between(void *arg)
{
	struct exec_state *s = arg;

	if (!s->reaping)
		s->reaping =
		    sigaction(SIGCHLD, &(struct sigaction){ .sa_flags = SA_NOCLDWAIT }, NULL) == 0;
	if (s->started)
		CRASH_POINT(EXEC_AFTER_REPLY);
	s->started = false;
}

static int
handle_request(void *arg, const struct ipc_packet *p, void *rep, int *ret_fd, struct err *e)
{
	struct exec_state *s = arg;

	s->spec = p->n_fds > 0 ? p->fds[0] : -1;
	switch (p->type) {
#define EXEC_CALL(NAME, call, ...)                                                                 \
	case NAME##_REQ:                                                                           \
		return exec_on_##call(s, p->msg, rep, ret_fd, e);
#include "proto/ipc_msgs.def"
	}
	return -EPROTO;
}

static const struct proc_spec exec_helper = {
	.name = "exec-helper",
	.peer = IPC_EXEC_HELPER,
	.stays_root = true,
	.caps = CAP_BIT(SYS_ADMIN),
	.keep_bounding = true,
	.child = &exec_lookup_child,
	.handle = handle_request,
	.state = &state,
	.init = init,
	.between = between,
};

int
main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "--lookup") == 0)
		return exec_lookup_main(argv[2]);
	return proc_main(&exec_helper, argc, argv);
}

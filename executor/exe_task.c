// SPDX-License-Identifier: Apache-2.0
/* exe_task.c: makes the task's process. Runs in: executor, as root, and in the task's child until
 * its drop. */
#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/cgroup.h"
#include "common/clock.h"
#include "common/clone.h"
#include "common/cleanup.h"
#include "common/crash.h"
#include "common/fd.h"
#include "common/lease.h"
#include "common/pid.h"
#include "executor/exe_journal.h"
#include "executor/exe_inside.h"
#include "executor/exe_start.h"

/* The task owns the pipe, because otherwise it could not open /dev/stdout. The pipe is made as
 * root, which has no pipe limit. */
int
exe_pipe_make(struct exe *x, int fd, int *ret_above)
{
	bool in = fd == STDIN_FILENO;
	int pipes[2];

	if (pipe2(pipes, O_CLOEXEC) < 0)
		return -errno;
	x->ends[fd] = pipes[!in];
	*ret_above = pipes[in];
	if (fchown(x->ends[fd], x->setup->user.uid, x->setup->user.gid) < 0 ||
	    fcntl(*ret_above, F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	return 0;
}

int
exe_terminal_connect(struct exe *x)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	x->ends[0] = pair[0];
	x->above[0] = pair[1];
	x->tty = true;
	return 0;
}

/* The executor cannot reach the journal's socket from its chroot. Systemd keeps that socket while
 * journald restarts, so the connection stays valid. Without a journal the output goes into files.
 */
static void
connect_journal(struct exe *x)
{
	static const struct sockaddr_un to = { .sun_family = AF_UNIX,
		.sun_path = "/run/systemd/journal/socket" };
	cleanup_close int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || connect(fd, (const struct sockaddr *)&to, sizeof to) < 0)
		x->keep.log_store = LOG_STORE_FILES;
	else
		x->journal.fd = steal_fd(&fd);
}

int
exe_pipes_make(struct exe *x)
{
	int r = x->setup->tty ? exe_terminal_connect(x) : 0;

	/* The child binds it, as the task's user. If it fails, the task starts without it. */
	x->api = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	for (int i = 0;
	     r == 0 && i < (int)ELEMENTSOF(x->logs) && !x->tty && !x->setup->logs_disabled; i++)
		r = exe_pipe_make(x, STDOUT_FILENO + i, &x->logs[i].pipe);
	if (r == 0 && exe_journal_wanted(x) && !x->setup->logs_disabled)
		connect_journal(x);
	return r < 0 ? exe_failed(x, EXE_STEP_PIPES, -r, 0) : 0;
}

/* v1: writing "0" to `tasks` moves only the writing thread and needs no RCU grace period, unlike a
 * pid in cgroup.procs. */
static int
enter_cgroups(struct exe *x)
{
	for (int t = CGROUP_MEMORY; t < CGROUP_TREES; t++) {
		int r = x->setup->trees & CGROUP_BIT(t)
			    ? fd_write_file(EXE_FD_CGROUP + t, "tasks", "0")
			    : 0;

		if (r < 0)
			return r;
	}
	return 0;
}

/* Without CAP_SYS_RESOURCE a larger value of the agent stays; the task is then killed earlier, not
 * later. */
void
exe_oom_score_set(const struct exe *x, const char *process)
{
	char path[32], score[16];

	(void)snprintf(path, sizeof path, "%s/oom_score_adj", process);
	(void)snprintf(score, sizeof score, "%u", x->setup->oom_score_adj);
	(void)fd_write_file(EXE_FD_PROC, path, score);
}

/* Resets the state of the executor that only root can change. */
static int
clean_state(struct exe *x)
{
	const struct exe_user *user = &x->setup->user;
	long ring = syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL);

	/* A kernel without key support has no keyrings to inherit. */
	if (ring < 0 && errno != ENOSYS)
		return -errno;
	/* A user may own 200 keys (keyrings(7)). Beyond that the keyring stays root's; the task can
	 * use it as its possessor. */
	if (ring > 0 && user->uid != 0 && !x->container &&
	    syscall(SYS_keyctl, KEYCTL_CHOWN, ring, user->uid, user->gid) < 0 && errno != EDQUOT)
		return -errno;
	(void)setpriority(PRIO_PROCESS, 0, 0);
	if (!x->container)
		exe_oom_score_set(x, "self");
	return 0;
}

void
exe_child_report(struct exe *x, uint32_t step, int error)
{
	(void)eventfd_write(x->child_report, (uint64_t)step << 32 | (uint32_t)error);
}

static int
enter_container(struct exe *x)
{
	struct exe_inside *in = &exe_inside;
	char byte;
	int r;

	(void)close(in->go[1]);
	(void)close(in->alive[0]);
	x->alive = in->alive[1];
	/* Without the byte, the executor could not map the ids. */
	r = read(in->go[0], &byte, 1) == 1 ? exe_sandbox_become_inner_root(x) : -EPERM;
	CRASH_POINT(EXE_CONTAINER_INNER_ROOT);
	(void)close(in->go[0]);
	if (r < 0)
		return exe_inside_failed(x, EXE_STEP_LAYERS, EXE_ROOT_ENTER, r);
	if ((r = exe_spec_load(x)) < 0)
		return exe_inside_failed(x, EXE_STEP_SPEC, 0, r);
	return x->session ? exe_inside_join(x) : exe_inside_make(x);
}

/* Runs in a copy of the executor's memory, so changes after its drop do not affect root's memory.
 */
static void
run_task(void *arg)
{
	struct exe *x = arg;
	int r;

	CRASH_POINT(EXE_AFTER_TASK_CLONE);
	if ((r = enter_cgroups(x)) < 0) {
		exe_child_report(x, EXE_STEP_CGROUP, -r);
		_exit(127);
	}
	if (x->container && (r = enter_container(x)) < 0) {
		exe_child_report(x, x->record.detail << 8 | x->record.step, -r);
		_exit(127);
	}
	if ((r = clean_state(x)) == 0) {
		CRASH_POINT(EXE_TASK_BEFORE_DROP);
		r = exe_sandbox_task(x);
	}
	if (r < 0) {
		exe_child_report(x, EXE_STEP_USER, -r);
		_exit(127);
	}
	exe_command_run(x);
}

/* Reads it from the pidfd's fdinfo in the host's /proc. */
uint32_t
exe_host_pid(int pidfd)
{
	cleanup_close int fd = -1;
	char text[1024], *at;
	ssize_t n;

	(void)snprintf(text, sizeof text, "self/fdinfo/%d", pidfd);
	fd = openat(EXE_FD_PROC, text, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	text[n < 0 ? 0 : n] = '\0';
	at = strstr(text, "\nPid:");
	return at ? (uint32_t)strtoul(at + 5, NULL, 10) : 0;
}

static void
note_task(struct exe *x)
{
	char self[16];
	ssize_t n = readlinkat(EXE_FD_PROC, "self", self, sizeof self - 1);

	if (n > 0) {
		self[n] = '\0';
		x->record.executor_pid = (uint32_t)strtoul(self, NULL, 10);
	}
	x->record.task_pid = x->setup->driver == DRIVER_RAW_EXEC || x->setup->pid_host
				 ? (uint32_t)x->pid
				 : exe_host_pid(x->pidfd);
	x->record.task_start_ticks = pid_start_ticks(EXE_FD_PROC, x->record.task_pid);
	x->record.started_boot_ns = clock_boot_ns();
	x->record.started_real_ns = (uint64_t)clock_real_ns();
}

/* Opens the cgroup files that the executor needs after its drop, because only root may open them.
 */
static int
open_cgroup_files(struct exe *x)
{
	x->kill_fd = openat(EXE_FD_CGROUP, "cgroup.kill", O_WRONLY | O_CLOEXEC);
	x->events_fd = openat(EXE_FD_CGROUP, "cgroup.events", O_RDONLY | O_CLOEXEC);
	if (x->kill_fd < 0 || x->events_fd < 0)
		return -errno;
	if (x->setup->memory_in_v2)
		x->oom_fd = openat(EXE_FD_CGROUP, "memory.events", O_RDONLY | O_CLOEXEC);
	else if (x->setup->trees & CGROUP_BIT(CGROUP_MEMORY))
		x->oom_fd = openat(
		    EXE_FD_CGROUP + CGROUP_MEMORY, "memory.oom_control", O_RDONLY | O_CLOEXEC);
	return 0;
}

/* Returns 0 once the child has reached its execve. On failure the caller kills the cgroup, so the
 * child is not reaped here. */
static int
read_report(struct exe *x)
{
	eventfd_t report = 0;

	(void)eventfd_read(x->child_report, &report);
	close_p(&x->child_report);
	if (report == (uint64_t)EXE_STEP_COMMAND << 32)
		return 0;
	/* A child that ended without a report was killed. */
	if (report == 0)
		report = (uint64_t)EXE_STEP_CLONE << 32 | ECHILD;
	(void)exe_failed(x, (uint8_t)(report >> 32), (int)report, (uint32_t)(report >> 40));
	return -ECHILD;
}

int
exe_task_start(struct exe *x)
{
	sigset_t child;
	pid_t pid;
	int r;

	(void)sigemptyset(&child);
	(void)sigaddset(&child, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &child, NULL);
	x->signals = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
	x->child_report = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (x->signals < 0 || x->child_report < 0)
		return exe_failed(x, EXE_STEP_CLONE, errno, 0);
	if ((r = open_cgroup_files(x)) < 0)
		return exe_failed(x, EXE_STEP_CGROUP, -r, 0);
	if (x->container)
		pid = exe_container_clone(x, run_task);
	else
		pid = clone_call(
		    CLONE_VFORK | CLONE_INTO_CGROUP, EXE_FD_CGROUP, &x->pidfd, run_task, x);
	if (pid < 0)
		return exe_failed(x, EXE_STEP_CLONE, -pid, 0);
	if ((r = read_report(x)) < 0)
		return r;
	x->pid = pid;
	for (size_t i = 0; i < ELEMENTSOF(x->ends); i++)
		close_p(&x->ends[i]);
	close_p(&x->resolv_conf);
	if (x->container && !x->session)
		exe_container_done(x);
	note_task(x);
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
/* exec_spawn.c: clones executors and the lookup child. Runs in: exec-helper, and its children
 * before exec. */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clone.h"
#include "common/crash.h"
#include "exec-helper/exec.h"

struct spawn {
	const struct exec_run *run;
	char *const *argv;
	char *const *envp;
	volatile int error;
};

/* Passes a descriptor to the executor: at a fixed number, without CLOEXEC. */
static int
pass(int fd, int to)
{
	return fd < 0 ? dup2(0, to) : dup2(fd, to);
}

/* Shares exec-helper's memory until its execve, so it uses only system calls. */
static void __attribute__((noreturn)) run_executor(void *arg)
{
	struct spawn *sp = arg;
	const struct exec_run *run = sp->run;
	const sigset_t none = { 0 };
	int r = 0;

	r |= dup2(0, 1) | dup2(0, 2);
	r |= pass(run->setup, EXE_FD_SETUP) | pass(run->spec, EXE_FD_SPEC) |
	     pass(run->listen, EXE_FD_LISTEN);
	r |= pass(run->record, EXE_FD_RECORD) | pass(run->logs, EXE_FD_LOGS) |
	     pass(run->lease, EXE_FD_LEASE) | pass(run->task, EXE_FD_TASK) |
	     pass(run->network, EXE_FD_NETWORK);
	for (int t = 0; t < CGROUP_TREES; t++)
		r |= pass(run->cgroup[t], EXE_FD_CGROUP + t);
	for (int fd = EXE_FD_PERMANENT; fd < EXE_FD_BINARY; fd++)
		r |= fcntl(fd, F_SETFD, 0);
	for (size_t i = 0; i < run->n_volumes; i++)
		r |= pass(run->volumes[i], EXE_FD_VOLUMES + (int)i);
	if (r >= 0) {
		(void)signal(SIGPIPE, SIG_DFL);
		(void)sigprocmask(SIG_SETMASK, &none, NULL);
		(void)syscall(SYS_execveat, EXE_FD_BINARY, "", sp->argv, sp->envp, AT_EMPTY_PATH);
	}
	sp->error = errno;
	_exit(127);
}

int
exec_spawn_executor(struct exec_state *s, const struct exec_run *run)
{
	char *argv[] = { (char[]){ "drover-executor" }, (char *)(uintptr_t)run->name, NULL };
	char *envp[] = { crash_env(), NULL };
	struct spawn sp = { .run = run, .argv = argv, .envp = envp };
	uint64_t flags = CLONE_VM | CLONE_VFORK | CLONE_INTO_CGROUP;
	pid_t pid;

	/* The executor is pid 1 of a private pid namespace and its task is a child; a session joins
	 * that namespace. */
	if (s->setup.driver != DRIVER_RAW_EXEC && !s->setup.pid_host && !s->setup.session)
		flags |= CLONE_NEWPID;
	pid = clone_call(flags, s->cgroup.exec[CGROUP_V2], NULL, run_executor, &sp);
	return pid < 0 ? (int)pid : -sp.error;
}

static void __attribute__((noreturn)) run_lookup(void *arg)
{
	struct spawn *sp = arg;
	const sigset_t none = { 0 };

	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	if (dup2(sp->error, 1) >= 0)
		(void)syscall(SYS_execveat, EXE_FD_SELF, "", sp->argv, sp->envp, AT_EMPTY_PATH);
	_exit(127);
}

pid_t
exec_spawn_lookup(const char *name, int out, int cgroup)
{
	char *argv[] = { (char[]){ "drover-exec-helper" }, (char[]){ "--lookup" },
		(char *)(uintptr_t)name, NULL };
	char *envp[] = { NULL };
	struct spawn sp = { .argv = argv, .envp = envp, .error = out };

	return clone_call(
	    CLONE_VM | CLONE_VFORK | CLONE_INTO_CGROUP, cgroup, NULL, run_lookup, &sp);
}

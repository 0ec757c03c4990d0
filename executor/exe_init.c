// SPDX-License-Identifier: Apache-2.0
/* exe_init.c: the init process of a container with `init = true`. Runs in: the container's child,
 * as the task's user. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "executor/exe_inside.h"

/* Ends as the program does, which a process with pid 1 cannot do by a signal. */
static void __attribute__((noreturn)) end_as(int status)
{
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

static void
reap_all(pid_t program)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		if (pid == program)
			end_as(status);
}

int
exe_init_fork(void)
{
	sigset_t all, old;
	pid_t program;
	int signo;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &old);
	program = fork();
	if (program <= 0) {
		(void)sigprocmask(SIG_SETMASK, &old, NULL);
		return program < 0 ? -errno : 0;
	}
	/* The program's execve is then what ends the set-up. */
	(void)close_range(STDERR_FILENO + 1, ~0U, 0);
	for (;;) {
		reap_all(program);
		if (sigwait(&all, &signo) == 0 && signo != SIGCHLD)
			(void)kill(program, signo);
	}
}

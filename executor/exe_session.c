// SPDX-License-Identifier: Apache-2.0
/* exe_session.c: an executor's way into a task that runs already. Runs in: executor, as root. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "executor/exe.h"

/* The task's own directory, and for files its secrets. */
static int
open_dirs(struct exe *x)
{
	const struct exe_setup *s = x->setup;
	char path[sizeof s->alloc_name + sizeof s->keep.task + 1];

	(void)snprintf(path, sizeof path, "%s/%s", s->alloc_name, s->keep.task);
	x->task_dir = fd_open_beneath(EXE_FD_ALLOC, path, O_PATH | O_DIRECTORY, 0);
	if (x->task_dir < 0 || s->session != EXE_SESSION_FILE)
		return x->task_dir;
	return x->secrets_dir = fd_open_beneath(EXE_FD_SECRETS, path, O_RDONLY | O_DIRECTORY, 0);
}

/* Of the task's own /dev/pts. Its other end by descriptor: a name could be anything by now. */
static int
open_terminal(struct exe *x)
{
	int unlocked = 0, end;

	x->above[0] = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	if (x->above[0] < 0 || ioctl(x->above[0], TIOCSPTLCK, &unlocked) < 0)
		return -errno;
	end = ioctl(x->above[0], TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (end < 0 || fchown(end, x->setup->user.uid, (gid_t)-1) < 0)
		return -errno;
	for (int i = 0; i < (int)ELEMENTSOF(x->ends); i++) {
		x->ends[i] = i == 0 ? end : fcntl(end, F_DUPFD_CLOEXEC, 0);
		if (x->ends[i] < 0)
			return -errno;
	}
	return 0;
}

static int
open_pipes(struct exe *x)
{
	for (int i = 0; i < (int)ELEMENTSOF(x->ends); i++) {
		bool in = i == STDIN_FILENO;
		int pipes[2];

		if (pipe2(pipes, O_CLOEXEC) < 0)
			return -errno;
		x->ends[i] = pipes[!in];
		x->above[i] = pipes[in];
		if (fchown(pipes[1], x->setup->user.uid, x->setup->user.gid) < 0 ||
		    fcntl(x->above[i], F_SETFL, O_NONBLOCK) < 0)
			return -errno;
	}
	return 0;
}

int
exe_session_join(struct exe *x)
{
	int r = open_dirs(x);

	if (r < 0)
		return exe_failed(x, EXE_STEP_CWD, -r, 0);
	if (x->setup->session == EXE_SESSION_FILE)
		return 0;
	if (x->setup->driver == DRIVER_EXEC && (r = exe_sandbox_join()) < 0)
		return exe_failed(x, EXE_STEP_NAMESPACE, -r, 5);
	r = x->setup->tty ? open_terminal(x) : open_pipes(x);
	return r < 0 ? exe_failed(x, EXE_STEP_PIPES, -r, 0) : 0;
}

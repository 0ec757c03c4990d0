// SPDX-License-Identifier: Apache-2.0
/* exe_session.c: an executor's way into a task that runs already. Runs in: executor, as root. */
#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "executor/exe.h"

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
	int r = 0;

	for (int i = 0; r == 0 && i < (int)ELEMENTSOF(x->ends); i++)
		r = exe_pipe_make(x, i, &x->above[i]);
	return r;
}

int
exe_session_join(struct exe *x)
{
	int r = exe_dirs_open(x);

	if (r < 0 || x->setup->session == EXE_SESSION_FILE)
		return r;
	if (x->setup->driver == DRIVER_EXEC && (r = exe_sandbox_join()) < 0)
		return exe_failed(x, EXE_STEP_NAMESPACE, -r, 5);
	r = x->setup->tty ? open_terminal(x) : open_pipes(x);
	return r < 0 ? exe_failed(x, EXE_STEP_PIPES, -r, 0) : 0;
}

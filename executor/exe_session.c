// SPDX-License-Identifier: Apache-2.0
/* exe_session.c: joins a running task. Runs in: executor, as root. */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "executor/exe_start.h"

/* Until the child has opened the terminal, its stdin is a socket to this executor. */
static int
open_terminal_socket(struct exe *x)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	x->ends[0] = pair[0];
	x->above[0] = pair[1];
	x->tty = true;
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

	if (r < 0)
		return r;
	if (x->setup->driver != DRIVER_RAW_EXEC && (r = exe_sandbox_join(x)) < 0)
		return exe_failed(x, EXE_STEP_NAMESPACE, -r, 5);
	if (x->setup->session == EXE_SESSION_FILE)
		return 0;
	r = x->setup->tty ? open_terminal_socket(x) : open_pipes(x);
	return r < 0 ? exe_failed(x, EXE_STEP_PIPES, -r, 0) : 0;
}

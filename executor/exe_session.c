// SPDX-License-Identifier: Apache-2.0
/* exe_session.c: joins a running task. Runs in: executor, as root. */
#include <errno.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "executor/exe_start.h"

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
	r = x->setup->tty ? exe_terminal_connect(x) : open_pipes(x);
	return r < 0 ? exe_failed(x, EXE_STEP_PIPES, -r, 0) : 0;
}

// SPDX-License-Identifier: Apache-2.0
/* exe_setup.c: what exec-helper handed over. Runs in: executor, as root. */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "executor/exe.h"

static int
map_setup(struct exe *x)
{
	const void *map;
	size_t len;
	int r = fd_memfd_map(EXE_FD_SETUP, sizeof *x->setup, &map, &len);
	const struct exe_setup *s = r < 0 ? NULL : map;

	if (r < 0)
		return r;
	if (len < EXE_SETUP_SIZE(0) || s->magic != EXE_SETUP_MAGIC || s->size != len ||
	    len != EXE_SETUP_SIZE(s->n_mounts))
		return -EBADMSG;
	x->setup = s;
	x->keep = s->keep;
	return 0;
}

int
exe_setup_read(struct exe *x)
{
	int r;

	x->pidfd = x->task_dir = x->signals = x->kill_fd = x->events_fd = x->oom_fd = -1;
	x->lease_fd = x->lease_timer = -1;
	for (size_t i = 0; i < ELEMENTSOF(x->ends); i++)
		x->ends[i] = x->above[i] = -1;
	for (size_t i = 0; i < ELEMENTSOF(x->logs); i++)
		x->logs[i].pipe = x->logs[i].file = -1;
	for (size_t i = 0; i < EXE_PEERS_MAX; i++)
		x->peers[i] = -1;
	x->listen = EXE_FD_LISTEN;
	r = map_setup(x);
	if (r < 0)
		return exe_failed(x, EXE_STEP_SPEC, -r, 1);
	x->session = x->setup->session != 0;
	/* The record that exec-helper wrote is the one that goes on. */
	if (!x->session &&
	    pread(EXE_FD_RECORD, &x->record, sizeof x->record, 0) != (ssize_t)sizeof x->record)
		return exe_failed(x, EXE_STEP_SPEC, EIO, 0);
	if (x->session) {
		x->peers[0] = x->listen;
		x->listen = -1;
	}
	return 0;
}

void
exe_setup_done(struct exe *x)
{
	(void)munmap((void *)(uintptr_t)x->setup, x->setup->size);
	x->setup = NULL;
	(void)close(EXE_FD_SPEC);
	(void)close(EXE_FD_SETUP);
}

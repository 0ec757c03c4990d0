// SPDX-License-Identifier: Apache-2.0
/* exe_setup.c: reads the settings that exec-helper handed over. Runs in: executor, as root. */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "executor/exe_start.h"

int
exe_setup_read(struct exe *x)
{
	const struct exe_setup *s = mmap(NULL, sizeof *s, PROT_READ, MAP_PRIVATE, EXE_FD_SETUP, 0);

	x->pidfd = x->task_dir = x->signals = x->kill_fd = x->events_fd = x->oom_fd = -1;
	x->lease_fd = x->lease_timer = x->api = x->resolv_conf = x->alive = -1;
	for (size_t i = 0; i < ELEMENTSOF(x->ends); i++)
		x->ends[i] = x->above[i] = -1;
	for (size_t i = 0; i < ELEMENTSOF(x->logs); i++)
		x->logs[i].pipe = x->logs[i].file = x->logs[i].times = -1;
	for (size_t i = 0; i < EXE_PEERS_MAX; i++)
		x->peers[i] = -1;
	x->listen = EXE_FD_LISTEN;
	x->journal.fd = -1;
	/* exec-helper made the memfd and sealed it. */
	if (s == MAP_FAILED || s->magic != EXE_SETUP_MAGIC ||
	    s->size != EXE_SETUP_SIZE(s->n_mounts))
		return exe_failed(x, EXE_STEP_SPEC, s == MAP_FAILED ? errno : EBADMSG, 1);
	x->setup = s;
	x->keep = s->keep;
	x->session = s->session != 0;
	x->container = driver_has_containers(s->driver);
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
	if (x->journal.fd < 0) {
		(void)munmap((void *)(uintptr_t)x->setup, sizeof *x->setup);
		x->setup = NULL;
	}
	(void)close(EXE_FD_SPEC);
	(void)close(EXE_FD_SETUP);
}

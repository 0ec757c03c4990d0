/* SPDX-License-Identifier: Apache-2.0 */
/* proc_many.h: the loop of a helper that works on many requests at once. Runs in: csi-helper,
 * heartbeat, check-helper, listener. */
#ifndef DROVER_COMMON_PROC_MANY_H
#define DROVER_COMMON_PROC_MANY_H

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/proc.h"

#define PROC_FDS_MAX 256

/* One turn of the loop: wait, then handle what came. */
struct proc_turn {
	int timeout_ms; /* how long to wait; -1 at first: no limit */
	bool sends;     /* packets wait until FD_IPC accepts them; then: it accepts some */
	size_t n;       /* the process's own descriptors; two more may follow */
	struct pollfd fds[PROC_FDS_MAX + 2];
};

/*
 * What a process does in its turns. Each function returns 1 to continue, 0 to end the process
 * properly, or -errno with *e: -EPIPE and -ECONNRESET mean that the supervisor is gone, anything
 * else is an error that is logged.
 */
struct proc_many {
	const struct proc_spec *spec;
	unsigned hang_s; /* a turn that takes longer ends the process by SIGALRM; 0: no limit */
	/* Does what is due, and fills in the turn. */
	int (*prepare)(void *state, struct proc_turn *turn, struct err *e);
	/* Handles the events on the process's own descriptors. */
	int (*ready)(void *state, const struct proc_turn *turn, struct err *e);
	/* Handles one message other than IPC_HELLO_REQ; returns 0 or -errno. */
	int (*handle)(void *state, struct ipc_packet *p, struct err *e);
};

/* Runs turns until the launcher or the supervisor is gone. Returns the exit code. */
int proc_serve_many(const struct proc_many *m, void *state);

/* Called first in main. A stop of the systemd unit sends SIGTERM to all processes at once, but
 * while the agent drains this one is still needed: it ends when its sockets are closed. */
static inline void
proc_many_outlive_sigterm(void)
{
	(void)signal(SIGTERM, SIG_IGN);
}

#endif

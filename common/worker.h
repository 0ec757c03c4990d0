/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker.h: child processes of a helper, for what can hang or take long. Runs in: mount-helper,
 * file-helper.
 *
 * The helper goes on with other requests while a worker works. A worker sends one struct
 * worker_result and exits; one that is late is killed, and if even that does not end it (a FUSE
 * daemon that took a request and never answers it) it is abandoned and counted.
 */
#ifndef DROVER_COMMON_WORKER_H
#define DROVER_COMMON_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/err.h"
#include "common/ipc.h"
#include "common/mount_proof.h"
#include "common/proc.h"

#define WORKERS_MAX     32 /* at work at one time */
#define WORKERS_STUCK   16 /* that outlived SIGKILL: beyond that nothing more is started */
#define WORKER_FDS_MAX  8
#define WORKER_FIRST_FD 3 /* where the descriptors are in the worker */

struct worker;

/* What a worker sends back before it exits. */
struct worker_result {
	int r; /* negative: e says why */
	struct err e;
	int fd;                   /* -1: none; sent along */
	bool flag;                /* the work's own */
	struct mount_proof proof; /* the same */
};

/* Runs in the worker. fd is WORKER_FIRST_FD, the first of the descriptors that it was given; it has
 * no others. Sets what it has to say in ret. */
typedef int worker_fn(int fd, const void *arg, struct worker_result *ret, struct err *e);
/* Runs in the helper, with proc_spec.state, when the work has succeeded: answers. res->fd is closed
 * after it. */
typedef void worker_done(void *state, const struct worker *w, struct worker_result *res);

struct worker {
	pid_t pid; /* 0: a free slot */
	int sock;
	unsigned type; /* of the request that waits for it; 0: none does */
	uint32_t serial;
	uint64_t deadline_ms;
	worker_fn *fn;
	worker_done *done;
	char what[160]; /* "prove volume x": stands in the error when nothing comes back */
};

struct workers {
	const struct proc_spec *spec;
	const struct ipc_packet *request; /* that is being handled */
	struct worker v[WORKERS_MAX];
	pid_t stuck[WORKERS_STUCK + WORKERS_MAX];
	unsigned n_stuck;
};

/*
 * Forks a worker that runs fn(WORKER_FIRST_FD, arg) with the n descriptors and is gone after
 * timeout_ms. Returns PROC_LATER: done() or an error answers req (NULL: nobody waits). done NULL:
 * the reply has no fields, and worker_result.fd is its descriptor. -EBUSY with WORKERS_STUCK
 * workers that do not die. The descriptors stay the caller's.
 */
int worker_start(struct workers *s, const struct ipc_packet *req, unsigned timeout_ms,
    const int *fds, size_t n, worker_fn *fn, const void *arg, worker_done *done, const char *what,
    struct err *e);
/* Takes results, ends the overdue, reaps. Between requests. */
void workers_collect(struct workers *s);
/* How long until the next deadline; -1: none is at work. */
int workers_timeout(const struct workers *s);
/* Is one at work that runs fn? */
bool workers_run(const struct workers *s, worker_fn *fn);

#endif

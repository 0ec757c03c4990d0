/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker.h: child processes of a helper, for operations that can hang or take long. Runs in:
 * mount-helper, file-helper, job-parser, fetcher, image-fetcher, template-renderer.
 *
 * The helper continues with other requests while a worker works. A worker sends one struct
 * worker_result and exits. One that is late is killed; if even that does not end it (a FUSE daemon
 * took a request and never answers it), it is abandoned and counted.
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

#define WORKERS_MAX     32 /* workers at one time */
#define WORKERS_STUCK   16 /* abandoned workers: with so many, no more are started */
#define WORKER_FDS_MAX  8
#define WORKER_FIRST_FD 3 /* the first of the worker's descriptors */

struct worker;

/* The result that a worker sends before it exits. */
struct worker_result {
	int r; /* negative: an error, described by e */
	struct err e;
	int fd;                   /* sent with the result; -1 if there is none */
	bool flag;                /* meaning depends on the operation */
	struct mount_proof proof; /* as flag */
	uint64_t bytes, files;    /* as flag */
};

/* Runs in the worker. fd is WORKER_FIRST_FD, the first of the descriptors that it was given; it has
 * no others. Sets its result in *ret. */
typedef int worker_fn(int fd, const void *arg, struct worker_result *ret, struct err *e);
/* Runs in the helper after the worker succeeded and answers the request. state is proc_spec.state.
 * res->fd is closed after it. */
typedef void worker_done(void *state, const struct worker *w, struct worker_result *res);

struct worker {
	pid_t pid; /* 0: a free slot */
	int sock;
	unsigned type; /* type of the request to answer; 0 if there is none */
	uint32_t serial;
	uint64_t deadline_ms;
	worker_fn *fn;
	worker_done *done;
	char what[160]; /* "prove volume x": for the error if the worker does not answer */
};

struct workers {
	const struct proc_spec *spec;
	const struct ipc_packet *request; /* the request that is being handled */
	struct worker v[WORKERS_MAX];
	pid_t stuck[WORKERS_STUCK + WORKERS_MAX];
	unsigned n_stuck;
};

/*
 * Forks a worker that runs fn(WORKER_FIRST_FD, arg) with the n descriptors, which stay the
 * caller's, and is killed after timeout_ms. Returns PROC_LATER: done() or an error answers req
 * later (req NULL: there is no request to answer). If done is NULL the reply has no fields, and
 * worker_result.fd is its descriptor. Returns -EBUSY with *e if WORKERS_STUCK workers hang, or
 * another -errno.
 */
int worker_start(struct workers *s, const struct ipc_packet *req, unsigned timeout_ms,
    const int *fds, size_t n, worker_fn *fn, const void *arg, worker_done *done, const char *what,
    struct err *e);
/* Handles results, kills overdue workers, reaps. To be called between requests. */
void workers_collect(struct workers *s);
/* Returns the ms until the next deadline, or -1 if no worker runs. */
int workers_timeout(const struct workers *s);
/* Returns whether a worker runs fn. */
bool workers_run(const struct workers *s, worker_fn *fn);

#endif

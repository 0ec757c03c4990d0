// SPDX-License-Identifier: Apache-2.0
/* fet_main.c: the fetcher, from its constant. It fetches artifacts, each in a worker, into its
 * staging directory, and keeps no state between two requests. The supervisor starts it on demand.
 * Runs in: fetcher. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/config_map.h"
#include "common/crash.h"
#include "common/fd.h"
#include "common/id.h"
#include "common/log.h"
#include "fetcher/fet.h"
#include "fetcher/fet_filter.h"
#include "fetcher/fet_slow.h"

static const struct proc_spec fetcher;
static struct workers workers = { .spec = &fetcher };

/* The artifacts that are being fetched, by the position of their progress in shared memory. */
struct fetch {
	struct id staging;
	uint32_t serial; /* of the request; 0: the entry is free */
	struct fet_pace pace;
};

static struct {
	int staging_fd;
	struct fetch v[WORKERS_MAX];
	struct fet_progress *told; /* [WORKERS_MAX] */
} state = { .staging_fd = -1 };

/* libcurl, also git's, reads this variable in lower case only. */
static void
rename_proxy(void)
{
	const char *proxy = getenv("HTTP_PROXY");

	if (proxy)
		(void)setenv("http_proxy", proxy, 0);
}

/* file-helper made the directory. */
static int
open_staging(void *unused, const struct proc_args *args, struct err *e)
{
	const struct agent_config *config = config_map(FD_CONFIG, e);
	char path[CONFIG_PATH_SIZE + 32];

	if (!config)
		return e->code;
	(void)close(FD_CONFIG);
	(void)umask(0);
	rename_proxy();
	(void)snprintf(path, sizeof path, "%s/alloc/.fetch", args->data_dir);
	state.staging_fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (state.staging_fd < 0)
		return err_set(e, -errno, "open %s", path);
	state.told = mmap(NULL, WORKERS_MAX * sizeof *state.told, PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (state.told == MAP_FAILED)
		return err_set(e, -errno, "make the memory for progress");
	return fet_landlock(config, state.staging_fd, e);
}

static struct fetch *
find(const struct id *staging)
{
	for (struct fetch *at = state.v; at < state.v + WORKERS_MAX; at++)
		if (at->serial && id_equal(&at->staging, staging))
			return at;
	return NULL;
}

/* Returns the worker of the entry; NULL: it has ended. */
static const struct worker *
worker_of(const struct fetch *at)
{
	for (const struct worker *w = workers.v; w < workers.v + WORKERS_MAX; w++)
		if (w->pid > 0 && w->serial == at->serial)
			return w;
	return NULL;
}

static struct fetch *
free_entry(void)
{
	for (struct fetch *at = state.v; at < state.v + WORKERS_MAX; at++)
		if (!at->serial || !worker_of(at))
			return at;
	return NULL;
}

static void
answer_got(void *unused, const struct worker *w, struct worker_result *res)
{
	struct fet_artifact_get_rep rep = { .bytes = res->bytes, .files = res->files };
	struct err none = { 0 }, e = { 0 };

	CRASH_POINT(FET_AFTER_GET);
	(void)proc_answer(&fetcher, w->type, w->serial, 0, &rep, -1, &none, &e);
}

static int
get(const struct ipc_packet *p, struct err *e)
{
	const struct fet_artifact_get_req *req = p->msg;
	struct fetch *at = free_entry();
	cleanup_close int dir = -1;
	char name[ID_HEX_SIZE];
	struct fet_job job;

	if (!at || id_is_zero(&req->staging) || find(&req->staging) || req->timeout_ms == 0)
		return err_say(e, -EINVAL, "the request for an artifact is not valid");
	id_to_hex(&req->staging, name);
	if (mkdirat(state.staging_fd, name, 0700) < 0)
		return err_set(e, -errno, "make the staging directory of an artifact");
	dir = fd_open_beneath(state.staging_fd, name, O_RDONLY | O_DIRECTORY, 0);
	if (dir < 0)
		return err_set(e, dir, "open the staging directory of an artifact");
	CRASH_POINT(FET_BEFORE_GET);
	*at = (struct fetch){ req->staging, p->serial, { .since_ms = clock_ms() } };
	job.told = &state.told[at - state.v];
	*job.told = (struct fet_progress){ 0 };
	return worker_start(&workers, p, req->timeout_ms, (int[]){ dir, p->fds[0] }, 2, fet_get,
	    &job, answer_got, "fetch the artifact", e);
}

static int
tell_progress(const struct fet_artifact_progress_req *req, struct fet_artifact_progress_rep *rep,
    struct err *e)
{
	const struct fetch *at = find(&req->staging);

	if (!at || !worker_of(at))
		return err_say(e, -ENOENT, "this artifact is not being fetched");
	rep->bytes = state.told[at - state.v].bytes;
	rep->total = state.told[at - state.v].total;
	return 0;
}

/* A worker is the leader of a process group, to which the programs that it runs belong. */
static void
cancel(const struct fet_artifact_cancel_ev *ev)
{
	const struct fetch *at = find(&ev->staging);
	const struct worker *w = at ? worker_of(at) : NULL;

	if (w && kill(-w->pid, SIGKILL) < 0)
		(void)kill(w->pid, SIGKILL);
}

static void
give_up_slowest(const struct fet_others_wait_ev *ev)
{
	struct fet_progress *slowest = NULL;
	uint64_t least = FET_SLOW_RATE;

	for (size_t i = 0; i < WORKERS_MAX; i++) {
		struct fetch *at = &state.v[i];
		uint64_t rate;

		if (!at->serial || !worker_of(at) ||
		    !fet_pace_is_slow(&at->pace, &state.told[i], clock_ms(), ev->slow_ms, &rate))
			continue;
		if (rate < least)
			slowest = &state.told[i];
		if (rate < least)
			least = rate;
	}
	if (slowest)
		slowest->give_up = true;
}

static int
handle_request(void *unused, const struct ipc_packet *p, void *rep, int *ret_fd, struct err *e)
{
	switch (p->type) {
	case FET_ARTIFACT_GET_REQ:
		return get(p, e);
	case FET_ARTIFACT_PROGRESS_REQ:
		return tell_progress(p->msg, rep, e);
	case FET_ARTIFACT_CANCEL_EV:
		cancel(p->msg);
		return PROC_LATER;
	case FET_OTHERS_WAIT_EV:
		give_up_slowest(p->msg);
		return PROC_LATER;
	}
	return -EPROTO;
}

static void
collect(void *unused)
{
	workers_collect(&workers);
}

static int
next_timeout(void *unused)
{
	return workers_timeout(&workers);
}

static const struct proc_spec fetcher = {
	.name = "fetcher",
	.peer = IPC_FETCHER,
	.no_new_privs = true,
	.filter = &fet_prog,
	.handle = handle_request,
	.init = open_staging,
	.between = collect,
	.timeout_ms = next_timeout,
};

int
main(int argc, char **argv)
{
	return proc_main(&fetcher, argc, argv);
}

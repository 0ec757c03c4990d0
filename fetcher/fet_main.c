// SPDX-License-Identifier: Apache-2.0
/* fet_main.c: the fetcher, from its constant. It fetches artifacts, each in a worker, into its
 * staging directory, and keeps no state between two requests. The supervisor starts it on demand.
 * Runs in: fetcher. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/config_map.h"
#include "common/crash.h"
#include "common/fd.h"
#include "common/id.h"
#include "common/log.h"
#include "common/worker_table.h"
#include "fetcher/fet.h"
#include "fetcher/fet_filter.h"
#include "fetcher/fet_slow.h"

static const struct proc_spec fetcher;
static struct workers workers = { .spec = &fetcher };

/* The artifacts that are being fetched, by the id of their staging directory. */
static struct worker_table artifacts = { .workers = &workers,
	.told_size = sizeof(struct fet_progress) };
static struct fet_pace paces[WORKERS_MAX]; /* by the number of the artifact's entry */
static int staging_fd = -1;
static const struct config_artifact *artifact_config;

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
	int r;

	if (!config)
		return e->code;
	artifact_config = &config->artifact;
	(void)close(FD_CONFIG);
	(void)umask(0);
	rename_proxy();
	(void)snprintf(path, sizeof path, "%s/alloc/.fetch", args->data_dir);
	staging_fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (staging_fd < 0)
		return err_set(e, -errno, "open %s", path);
	r = worker_table_open(&artifacts, e);
	if (r == 0)
		r = fet_landlock(artifact_config, staging_fd, e);
	if (r > 0)
		log_info("this kernel has no Landlock, so the fetcher can read what its user can");
	return r < 0 ? r : 0;
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
	const int i = worker_table_add(&artifacts, &req->staging, p->serial);
	cleanup_close int dir = -1;
	char name[ID_HEX_SIZE];
	struct fet_job job = { .config = artifact_config };

	if (i < 0 || req->timeout_ms == 0)
		return err_say(e, -EINVAL, "the request for an artifact is not valid");
	id_to_hex(&req->staging, name);
	if (mkdirat(staging_fd, name, 0700) < 0)
		return err_set(e, -errno, "make the staging directory of an artifact");
	dir = fd_open_beneath(staging_fd, name, O_RDONLY | O_DIRECTORY, 0);
	if (dir < 0)
		return err_set(e, dir, "open the staging directory of an artifact");
	CRASH_POINT(FET_BEFORE_GET);
	paces[i] = (struct fet_pace){ .since_ms = clock_ms() };
	job.told = worker_table_told(&artifacts, i);
	return worker_start(&workers, p, req->timeout_ms, (int[]){ dir, p->fds[0] }, 2, fet_get,
	    &job, answer_got, "fetch the artifact", e);
}

static int
tell_progress(const struct fet_artifact_progress_req *req, struct fet_artifact_progress_rep *rep,
    struct err *e)
{
	const int i = worker_table_find(&artifacts, &req->staging);
	const struct fet_progress *told;

	if (i < 0)
		return err_say(e, -ENOENT, "this artifact is not being fetched");
	told = worker_table_told(&artifacts, i);
	rep->bytes = told->bytes;
	rep->total = told->total;
	return 0;
}

static void
give_up_slowest(const struct fet_others_wait_ev *ev)
{
	struct fet_progress *slowest = NULL;
	uint64_t least = FET_SLOW_RATE;

	for (int i = 0; i < WORKERS_MAX; i++) {
		struct fet_progress *told = worker_table_told(&artifacts, i);
		uint64_t rate;

		if (!worker_table_runs(&artifacts, i) ||
		    !fet_pace_is_slow(&paces[i], told, clock_ms(), ev->slow_ms, &rate))
			continue;
		if (rate < least)
			slowest = told;
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
		worker_table_cancel(
		    &artifacts, &((const struct fet_artifact_cancel_ev *)p->msg)->staging);
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

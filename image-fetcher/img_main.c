// SPDX-License-Identifier: Apache-2.0
/* img_main.c: the image-fetcher, from its constant. It fetches container images, each in a worker,
 * from registries and archives into the store's directory of blobs, and keeps no state between two
 * requests. The supervisor starts it on demand. Runs in: image-fetcher. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/crash.h"
#include "common/fd.h"
#include "common/id.h"
#include "common/landlock.h"
#include "common/log.h"
#include "common/worker_table.h"
#include "image-fetcher/img.h"
#include "image-fetcher/img_archive.h"
#include "image-fetcher/img_filter.h"
#include "proto/listen_config.h"

static const struct proc_spec image_fetcher;
static struct workers workers = { .spec = &image_fetcher };

/* The images that are being fetched. */
static struct worker_table images = { .workers = &workers,
	.told_size = sizeof(struct img_progress) };
static bool has_auth_file;

/* Directories of skopeo's configuration: policies, mirrors, certificates of registries. */
static const char *const configuration[] = { "/etc/containers", "/usr/share/containers",
	"/etc/docker/certs.d" };

static int
restrict_files(struct err *e)
{
	cleanup_close int rules = landlock_new(e);
	int r;

	if (rules == -ENOSYS) {
		log_info("this kernel has no Landlock, so the image-fetcher can read what its user "
			 "can");
		return 0;
	}
	if (rules < 0)
		return rules;
	r = landlock_permit_fd(rules, FD_DATA, LANDLOCK_READ | LANDLOCK_WRITE, e);
	if (r == 0)
		r = landlock_permit_network_programs(rules, e);
	for (size_t i = 0; r == 0 && i < ELEMENTSOF(configuration); i++)
		r = landlock_permit(rules, configuration[i], LANDLOCK_READ, e);
	return r == 0 ? landlock_enforce(rules, e) : r;
}

static int
prepare(void *unused, const struct proc_args *args, struct err *e)
{
	int r;

	(void)umask(022);
	has_auth_file = fcntl(FD_FILES + FILE_IMAGE_AUTH, F_GETFD) >= 0;
	r = worker_table_open(&images, e);
	return r < 0 ? r : restrict_files(e);
}

static void
answer_pulled(void *unused, const struct worker *w, struct worker_result *res)
{
	struct img_image_pull_rep rep = { .bytes = res->bytes };
	struct err none = { 0 }, e = { 0 };

	CRASH_POINT(IMG_AFTER_PULL);
	(void)proc_answer(&image_fetcher, w->type, w->serial, 0, &rep, res->fd, &none, &e);
}

static int
pull(const struct ipc_packet *p, struct err *e)
{
	const struct img_image_pull_req *req = p->msg;
	const int i = worker_table_add(&images, &req->pull, p->serial);
	struct img_job job = { .idle_ms = req->idle_ms, .has_auth_file = has_auth_file };

	if (i < 0 || req->timeout_ms == 0 || req->idle_ms == 0 || req->idle_ms > INT32_MAX)
		return err_say(e, -EINVAL, "the request for an image is not valid");
	job.told = worker_table_told(&images, i);
	return worker_start(&workers, p, req->timeout_ms,
	    (int[]){ FD_DATA, p->fds[0], FD_FILES + FILE_IMAGE_AUTH }, has_auth_file ? 3 : 2,
	    img_pull, &job, answer_pulled, "fetch the image", e);
}

static void
answer_loaded(void *unused, const struct worker *w, struct worker_result *res)
{
	struct img_archive_load_rep rep = { .bytes = res->bytes };
	struct err none = { 0 }, e = { 0 };

	(void)proc_answer(&image_fetcher, w->type, w->serial, 0, &rep, res->fd, &none, &e);
}

static bool
is_valid(const struct img_archive_load_req *req)
{
	return req->timeout_ms > 0 && req->timeout_ms <= INT32_MAX && strlen(req->digest) == 64 &&
	       img_is_word(req->architecture) && img_is_word(req->variant) &&
	       img_is_word(req->reference);
}

static int
load(const struct ipc_packet *p, struct err *e)
{
	const struct img_archive_load_req *req = p->msg;
	const int i = is_valid(req) ? worker_table_add(&images, &req->pull, p->serial) : -1;
	struct img_load_job job = { .req = req };

	if (i < 0)
		return err_say(e, -EINVAL, "the request for an image is not valid");
	job.told = worker_table_told(&images, i);
	return worker_start(&workers, p, req->timeout_ms, (int[]){ FD_DATA, p->fds[0] }, 2,
	    img_load, &job, answer_loaded, "load the image", e);
}

static int
digest(const struct ipc_packet *p, struct err *e)
{
	const struct img_archive_digest_req *req = p->msg;

	if (req->timeout_ms == 0 || worker_table_add(&images, &req->pull, p->serial) < 0)
		return err_say(e, -EINVAL, "the request for an archive is not valid");
	return worker_start(&workers, p, req->timeout_ms, (int[]){ p->fds[0] }, 1,
	    img_archive_digest, &req->max_bytes, NULL, "read the archive", e);
}

static int
tell_progress(
    const struct img_image_progress_req *req, struct img_image_progress_rep *rep, struct err *e)
{
	const int i = worker_table_find(&images, &req->pull);
	const struct img_progress *told;

	if (i < 0)
		return err_say(e, -ENOENT, "this image is not being fetched");
	told = worker_table_told(&images, i);
	rep->bytes = told->bytes;
	rep->total = told->total;
	return 0;
}

static int
handle_request(void *unused, const struct ipc_packet *p, void *rep, int *ret_fd, struct err *e)
{
	switch (p->type) {
	case IMG_IMAGE_PULL_REQ:
		return pull(p, e);
	case IMG_ARCHIVE_DIGEST_REQ:
		return digest(p, e);
	case IMG_ARCHIVE_LOAD_REQ:
		return load(p, e);
	case IMG_IMAGE_PROGRESS_REQ:
		return tell_progress(p->msg, rep, e);
	case IMG_BLOBS_DROP_REQ:
		img_blobs_remove(FD_DATA, "");
		return 0;
	case IMG_IMAGE_CANCEL_EV:
		worker_table_cancel(&images, &((const struct img_image_cancel_ev *)p->msg)->pull);
		return PROC_LATER;
	}
	return -EPROTO;
}

static void
collect(void *unused)
{
	workers_collect(&workers);
	if (!workers_run(&workers, img_pull) && !workers_run(&workers, img_load))
		img_blobs_remove(FD_DATA, ".");
}

static int
next_timeout(void *unused)
{
	return workers_timeout(&workers);
}

static const struct proc_spec image_fetcher = {
	.name = "image-fetcher",
	.peer = IPC_IMAGE_FETCHER,
	.no_new_privs = true,
	.filter = &img_prog,
	.handle = handle_request,
	.init = prepare,
	.between = collect,
	.timeout_ms = next_timeout,
};

int
main(int argc, char **argv)
{
	return proc_main(&image_fetcher, argc, argv);
}

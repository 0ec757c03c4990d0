// SPDX-License-Identifier: Apache-2.0
/*
 * unp_main.c: the image-unpacker, from its constant. It unpacks the layers of container images,
 * each in a worker. The supervisor starts it on demand. Runs in: image-unpacker.
 *
 * It is root of a user namespace of its own, so its capabilities are over the files of the store's
 * layers alone; the store is its root directory, and it has no network.
 */
#include <errno.h>
#include <linux/capability.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "common/crash.h"
#include "image-unpacker/unp.h"
#include "image-unpacker/unp_filter.h"

#define MEMORY_BYTES ((rlim_t)1 << 29) /* of a worker */

static const struct proc_spec image_unpacker;
static struct workers workers = { .spec = &image_unpacker };
static bool cleaned; /* since the last worker ended */

static int
enter_store(void *unused, const struct proc_args *args, struct err *e)
{
	(void)umask(0);
	(void)setlocale(LC_CTYPE, "C.UTF-8"); /* names in archives are UTF-8 */
	return privs_chroot(FD_DATA, e);
}

static int
limit_memory(struct err *e)
{
#ifdef __SANITIZE_ADDRESS__
	return 0;
#else
	const struct rlimit memory = { MEMORY_BYTES, MEMORY_BYTES };

	return setrlimit(RLIMIT_DATA, &memory) < 0
		   ? err_set(e, -errno, "limit a worker of the image-unpacker")
		   : 0;
#endif
}

static int
unpack_layer(int fd, const void *job, struct worker_result *ret, struct err *e)
{
	int r = limit_memory(e);

	return r < 0 ? r : unp_layer_unpack(fd, job, ret, e);
}

static void
answer_unpacked(void *unused, const struct worker *w, struct worker_result *res)
{
	struct unp_layer_unpack_rep rep = { .bytes = res->bytes, .files = res->files };
	struct err none = { 0 }, e = { 0 };

	CRASH_POINT(UNP_AFTER_UNPACK);
	(void)proc_answer(&image_unpacker, w->type, w->serial, 0, &rep, -1, &none, &e);
}

static bool
is_digest(const char *text)
{
	return strlen(text) == 64 && strspn(text, "0123456789abcdef") == 64;
}

static int
unpack(const struct ipc_packet *p, struct err *e)
{
	const struct unp_layer_unpack_req *req = p->msg;
	struct unp_job job = { .max_bytes = req->max_bytes, .max_files = req->max_files };

	if (!is_digest(req->blob) || !is_digest(req->layer) || req->timeout_ms == 0)
		return err_say(e, -EINVAL, "the request for a layer is not valid");
	(void)strcpy(job.blob, req->blob);
	(void)strcpy(job.layer, req->layer);
	cleaned = false;
	return worker_start(&workers, p, req->timeout_ms, NULL, 0, unpack_layer, &job,
	    answer_unpacked, "unpack the layer", e);
}

static int
remove_layer(const struct ipc_packet *p, struct err *e)
{
	const struct unp_layer_remove_req *req = p->msg;
	struct unp_job job = { 0 };

	if (!is_digest(req->layer))
		return err_say(e, -EINVAL, "a layer is named by 64 hexadecimal digits");
	(void)strcpy(job.layer, req->layer);
	cleaned = false;
	return worker_start(
	    &workers, p, 600000, NULL, 0, unp_layer_remove, &job, NULL, "remove the layer", e);
}

static int
handle_request(void *unused, const struct ipc_packet *p, void *rep, int *ret_fd, struct err *e)
{
	switch (p->type) {
	case UNP_LAYER_UNPACK_REQ:
		return unpack(p, e);
	case UNP_LAYER_REMOVE_REQ:
		return remove_layer(p, e);
	case UNP_LAYER_LIST_REQ:
		return worker_start(
		    &workers, p, 25000, NULL, 0, unp_layer_list, NULL, NULL, "list the layers", e);
	}
	return -EPROTO;
}

static void
collect(void *unused)
{
	workers_collect(&workers);
	if (cleaned || workers_run(&workers, unpack_layer) ||
	    workers_run(&workers, unp_layer_remove))
		return;
	unp_layers_clean();
	cleaned = true;
}

static int
next_timeout(void *unused)
{
	return workers_timeout(&workers);
}

static const struct proc_spec image_unpacker = {
	.name = "image-unpacker",
	.peer = IPC_IMAGE_UNPACKER,
	.stays_root = true,
	.own_namespace = true,
	.caps = CAP_BIT(CHOWN) | CAP_BIT(DAC_OVERRIDE) | CAP_BIT(FOWNER) | CAP_BIT(FSETID) |
		CAP_BIT(SETFCAP),
	.no_new_privs = true,
	.lock_securebits = true,
	.filter = &unp_prog,
	.handle = handle_request,
	.init = enter_store,
	.between = collect,
	.timeout_ms = next_timeout,
};

int
main(int argc, char **argv)
{
	return proc_main(&image_unpacker, argc, argv);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * hook_csi.c: the alloc's CSI volumes: each is claimed at the source and then mounted; after the
 * tasks unmounted and released, all of them, whatever fails. Runs in: supervisor.
 */
#include <errno.h>
#include <string.h>

#include "supervisor/alloc/alloc_runner.h"
#include "supervisor/volume/volumes.h"

/* Steps to the next request of type csi, from ar->csi_at on. */
static const struct volume_request *
next_request(struct alloc_runner *ar)
{
	const struct task_group *g = ar->sa->group;

	for (; ar->csi_at < g->volumes.n; ar->csi_at++)
		if (g->volumes.v[ar->csi_at].value.type == VOLUME_CSI)
			return &g->volumes.v[ar->csi_at].value;
	return NULL;
}

static void mount_next(struct alloc_runner *ar);
static void unmount_next(struct alloc_runner *ar);

static void
on_mounted(struct sup *sup, void *arg, int r, const struct err *e)
{
	struct alloc_runner *ar = arg;
	struct err why = { 0 };

	if (r < 0) {
		alloc_hook_done(ar, err_say(&why, r, "mounting volumes: %s", e->msg), &why);
		return;
	}
	ar->csi_at++;
	mount_next(ar);
}

static void
on_claimed(struct sup *sup, void *arg, int r, const struct csi_volume *volume, const struct err *e)
{
	struct alloc_runner *ar = arg;
	struct err why = { 0 };

	if (r < 0) {
		alloc_hook_done(ar, err_say(&why, r, "claiming volumes: %s", e->msg), &why);
		return;
	}
	volume_mount(sup, ar->sa, next_request(ar), volume, on_mounted, ar);
}

static void
mount_next(struct alloc_runner *ar)
{
	const struct volume_request *request = next_request(ar);

	if (!request) {
		alloc_hook_done(ar, 0, NULL);
		return;
	}
	ar->sup->source->ops->claim(ar->sup->source, ar->sa, request, on_claimed, ar);
}

static void
begin_mounts(struct alloc_runner *ar)
{
	ar->csi_at = 0;
	mount_next(ar);
}

static void
on_unmounted(struct sup *sup, void *arg, int r, const struct err *e)
{
	struct alloc_runner *ar = arg;
	const struct volume_request *request = next_request(ar);

	/* A volume that could not be unmounted keeps its claim: nobody else may write to it.
	 * volumes.c tries on. */
	if (r < 0 && ar->csi_text[0] == '\0')
		(void)strcpy(ar->csi_text, e->msg);
	if (r >= 0)
		sup->source->ops->release(sup->source, ar->sa, request);
	ar->csi_at++;
	unmount_next(ar);
}

static void
unmount_next(struct alloc_runner *ar)
{
	const struct volume_request *request = next_request(ar);
	struct err e = { 0 };

	if (request)
		volume_unmount(ar->sup, ar->sa, request, on_unmounted, ar);
	else if (ar->csi_text[0])
		alloc_hook_done(ar, err_say(&e, -EIO, "%s", ar->csi_text), &e);
	else
		alloc_hook_done(ar, 0, NULL);
}

static void
begin_unmounts(struct alloc_runner *ar)
{
	ar->csi_at = 0;
	ar->csi_text[0] = '\0';
	unmount_next(ar);
}

const struct alloc_hook alloc_hook_csi = {
	.name = "csi_hook", .prerun = begin_mounts, .postrun = begin_unmounts
};

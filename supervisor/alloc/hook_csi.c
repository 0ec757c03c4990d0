// SPDX-License-Identifier: Apache-2.0
/*
 * hook_csi.c: the alloc's CSI volumes: each is claimed at the source and then mounted; after the
 * tasks unmounted and released, all of them, whatever fails. Runs in: supervisor.
 */
#include <errno.h>
#include <string.h>
#include <systemd/sd-event.h>

#include "supervisor/alloc/alloc_runner.h"
#include "supervisor/volume/volumes.h"

#define PLUGIN_LOOK_USEC 100000
#define PLUGIN_LOOKS_MAX                                                                           \
	600 /* a minute: twice the time in which a plugin has to become healthy                    \
	     */

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

static int
on_look_again(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct alloc_runner *ar = userdata;

	ar->retry = sd_event_source_disable_unref(ar->retry);
	if (ar->stopping)
		alloc_hook_done(ar, 0, NULL);
	else
		mount_next(ar);
	return 0;
}

/* After a restart of the agent the plugin may be looked at later than its volumes' allocs. */
static bool
wait_for_plugin(struct alloc_runner *ar)
{
	if (ar->csi_looks >= PLUGIN_LOOKS_MAX ||
	    sd_event_add_time_relative(ar->sup->event, &ar->retry, CLOCK_MONOTONIC,
		PLUGIN_LOOK_USEC, 0, on_look_again, ar) < 0)
		return false;
	ar->csi_looks++;
	return true;
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
	if (!volume_can_mount(sup, ar->sa, next_request(ar), volume) && wait_for_plugin(ar))
		return;
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
	ar->csi_looks = 0;
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

// SPDX-License-Identifier: Apache-2.0
/*
 * volume_repair.c: finds volumes that were unmounted by somebody else, and mounts that no row
 * explains. poll(2) reports a change of mountinfo (proc(5)), so a node where nothing is mounted or
 * unmounted never wakes for it. Runs in: supervisor.
 */
#include "supervisor/volume/volume_repair.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "common/mountinfo.h"
#include "supervisor/core/journal.h"
#include "supervisor/core/sup_calls.h"
#include "supervisor/node/mounts.h"
#include "supervisor/volume/mount.h"
#include "supervisor/volume/volume_place.h"

/* A burst of changes, such as the start of a task, is one comparison. */
#define CHANGE_USEC 3000000
#define AGAIN_USEC  60000000 /* while something is still to be repaired */

struct volume_repair {
	struct sup *sup;
	int fd;
	sd_event_source *io;
	struct sup_timer timer;
	bool soon; /* the timer is that of a change */
};

/* A mount below csi/, taken apart. */
struct found {
	struct volume_place place;
	bool staging;
};

/* An orphan that is being unmounted. */
struct orphan {
	struct volume_place place;
	char path[640];
};

static void
on_removed(struct sup *sup, void *arg, int r, const void *msg, int fd, const struct err *e)
{
	cleanup_free struct orphan *o = arg;

	if (r < 0)
		journal_warn(JOURNAL_VOLUME, NULL, "%s was unmounted, but its directory stays: %s",
		    o->path, e->msg);
}

static void
on_unmounted(struct sup *sup, void *arg, int r, const void *msg, int fd, const struct err *e)
{
	struct file_volume_dir_remove_req req = { 0 };
	struct orphan *o = arg;

	if (r < 0) {
		journal_warn(JOURNAL_VOLUME, NULL,
		    "%s is mounted, but no allocation uses it, and it cannot be unmounted: %s",
		    o->path, e->msg);
		free(o);
		return;
	}
	journal_warn(JOURNAL_VOLUME, NULL,
	    "%s was mounted, but no allocation uses it: drover has unmounted it; usually a "
	    "cancelled call to plugin %s took effect late",
	    o->path, o->place.plugin);
	req.place = o->place;
	(void)file_call_volume_dir_remove(sup, &req, on_removed, o);
}

static void
unmount_orphan(struct sup *sup, const struct found *f, const char *path)
{
	struct mnt_volume_unmount_req req = { .place = f->place };
	struct orphan *o = mem_new(struct orphan);

	o->place = f->place;
	(void)snprintf(o->path, sizeof o->path, "%s", path);
	(void)mnt_call_volume_unmount(sup, &req, on_unmounted, o);
}

/* Returns whether the volume of a staging directory is published for any alloc. */
static bool
is_published(const struct found *staged, const char *paths)
{
	struct found f;

	for (; *paths; paths += strlen(paths) + 1)
		if (volume_place_parse(paths, &f.place, &f.staging) && !f.staging &&
		    f.place.kind == staged->place.kind &&
		    strcmp(f.place.plugin, staged->place.plugin) == 0 &&
		    strcmp(f.place.volume, staged->place.volume) == 0)
			return true;
	return false;
}

static bool
is_orphan(struct sup *sup, const char *path, const char *paths, struct found *ret)
{
	const struct sup_alloc *sa;

	if (!volume_place_parse(path, &ret->place, &ret->staging) ||
	    volume_path_is_known(sup, path + strlen("csi/")))
		return false;
	if (ret->staging)
		return !is_published(ret, paths);
	sa = alloc_find(sup, &ret->place.alloc);
	return !sa || alloc_client_terminal(&sa->a);
}

/* Returns whether any was found. Allocs whose rows could not be read may still run. */
static bool
unmount_orphans(struct sup *sup)
{
	const char *paths;
	struct found f;
	bool any = false;

	if (sup->allocs->n_unreadable > 0 || mounts_list(sup, &paths) < 0)
		return false;
	for (const char *at = paths; *at; at += strlen(at) + 1)
		if (is_orphan(sup, at, paths, &f)) {
			unmount_orphan(sup, &f, at);
			any = true;
		}
	return any;
}

/* Returns whether the mount is at rest and not what its alloc needs. */
static bool
is_lost(const struct mount *m)
{
	if (m->unmounting || m->busy || m->waiting || m->cb || !m->begun)
		return false;
	return m->step == MOUNT_MOUNTING || (m->step == MOUNT_PUBLISHED && mount_is_missing(m));
}

/* Returns whether any mount is still to be mounted, so that it is to be checked again. */
static bool
report_lost(struct sup *sup)
{
	struct mount *m;
	bool any = false;

	LIST_FOREACH (m, &sup->volumes->mounts, link) {
		bool lost = is_lost(m);

		any |= lost || (m->begun && !m->unmounting && m->step == MOUNT_MOUNTING);
		if (lost && sup->volumes->lost)
			sup->volumes->lost(sup, &m->rec.alloc_id, m->rec.alias);
	}
	return any;
}

static void
compare(void *arg)
{
	struct volume_repair *vr = arg;
	bool lost = report_lost(vr->sup), orphans = unmount_orphans(vr->sup);

	vr->soon = false;
	if (lost || orphans || !vr->io)
		sup_timer_set(vr->sup, &vr->timer, CLOCK_MONOTONIC, AGAIN_USEC, compare, vr);
}

static void
compare_soon(struct volume_repair *vr)
{
	if (vr->soon)
		return;
	vr->soon = true;
	sup_timer_set(vr->sup, &vr->timer, CLOCK_MONOTONIC, CHANGE_USEC, compare, vr);
}

static int
on_change(sd_event_source *io, int fd, uint32_t events, void *arg)
{
	compare_soon(arg);
	return 0;
}

struct volume_repair *
volume_repair_new(struct sup *sup)
{
	struct volume_repair *vr = mem_new(struct volume_repair);
	int r;

	vr->sup = sup;
	vr->fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	r = vr->fd < 0 ? -errno
		       : sd_event_add_io(sup->event, &vr->io, vr->fd, EPOLLPRI, on_change, vr);
	if (r < 0)
		journal_warn(JOURNAL_VOLUME, NULL,
		    "mounts are compared only once a minute: watch mountinfo: %s", strerror(-r));
	compare_soon(vr);
	return vr;
}

void
volume_repair_free(struct volume_repair *vr)
{
	if (!vr)
		return;
	sup_timer_cancel(&vr->timer);
	sd_event_source_unref(vr->io);
	close_p(&vr->fd);
	free(vr);
}

bool
volume_mount_is_orphan(struct sup *sup, const char *path)
{
	const char *paths;
	struct found f;

	return sup->allocs->n_unreadable == 0 && mounts_list(sup, &paths) == 0 &&
	       is_orphan(sup, path, paths, &f);
}

void
volume_repair_now(struct sup *sup)
{
	compare(sup->volumes->repair);
}

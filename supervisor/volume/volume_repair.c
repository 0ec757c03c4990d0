// SPDX-License-Identifier: Apache-2.0
/*
 * volume_repair.c: finds volumes that were unmounted by somebody else, and mounts that no row
 * explains. poll(2) reports a change of mountinfo (proc(5)), so a node where nothing is mounted or
 * unmounted never wakes for it. mountinfo does not tell that the process of a FUSE file system has
 * ended, nor that a device node has gone: mount-helper is asked for these, one after the other,
 * once a minute and when a plugin answers or no longer does. Runs in: supervisor.
 */
#include "supervisor/volume/volume_repair.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "common/mountinfo.h"
#include "supervisor/core/changed.h"
#include "supervisor/core/journal.h"
#include "supervisor/core/sup_calls.h"
#include "supervisor/node/mounts.h"
#include "supervisor/volume/mount.h"
#include "supervisor/volume/volume_place.h"

/* A burst of changes, such as the start of a task, is one comparison. */
#define CHANGE_USEC 3000000
#define AGAIN_USEC  60000000 /* while something is still to be repaired */
#define ASK_USEC    60000000
#define PLUGIN_USEC 1000000 /* after a change of a plugin: its file systems may end after it */

struct volume_repair {
	struct sup *sup;
	int fd;
	sd_event_source *io;
	struct sup_timer timer;
	bool soon; /* the timer is that of a change */
	struct changed_watch plugins;
	uint64_t plugins_state; /* their channels and health, as one number */
	struct sup_timer ask;
	unsigned round; /* of asking for all mounts */
	bool asking;    /* mount-helper is asked for the mount of this alloc: */
	struct id asked_alloc;
	char *asked_alias;
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
	    mount_find_place(sup, &ret->place, ret->staging))
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

static bool
is_at_rest(const struct mount *m)
{
	return !m->unmounting && !m->busy && !m->waiting && !m->cb && m->begun;
}

/* Returns whether a volume that only its plugin can mount again waits for it. */
static bool
waits_for_plugin(const struct mount *m)
{
	const struct plugin *p = plugin_find(m->sup, m->rec.plugin, CSI_PLUGIN_NODE);

	return m->rec.lost == VOLUME_LOST_SOURCE && (!p || !plugin_is_healthy(p));
}

/* Returns whether the mount is at rest and not what its alloc needs. */
static bool
is_lost(const struct mount *m)
{
	if (!is_at_rest(m))
		return false;
	if (m->step == MOUNT_MOUNTING)
		return !waits_for_plugin(m);
	return m->step == MOUNT_PUBLISHED && (mount_is_missing(m) || mount_staging_is_missing(m));
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

/* --- FUSE file systems and devices --- */

static void ask_next(struct volume_repair *vr);

/* Returns the number of the plugin's channel; 0 if it does not run. A new process has a new one. */
static uint64_t
channel_of(const struct mount *m)
{
	const struct plugin *p = plugin_find(m->sup, m->rec.plugin, CSI_PLUGIN_NODE);

	return p ? plugin_channel(p) : 0;
}

static struct mount *
find_asked(const struct volume_repair *vr)
{
	struct mount *m = NULL;

	while ((m = mount_next_of_alloc(vr->sup, &vr->asked_alloc, m)))
		if (str_eq(m->rec.alias, vr->asked_alias) && m->step == MOUNT_PUBLISHED)
			return m;
	return NULL;
}

static void
on_asked(struct sup *sup, void *arg, int r, const void *msg, int fd, const struct err *e)
{
	const struct mnt_volume_prove_rep *rep = msg;
	struct volume_repair *vr = arg;
	struct mount *m = find_asked(vr);

	vr->asking = false;
	if (m && r == -ETIMEDOUT)
		m->hung_channel = channel_of(m);
	if (m && is_at_rest(m) && mount_has_ended(m, r, r < 0 ? NULL : &rep->proof) &&
	    sup->volumes->lost)
		sup->volumes->lost(sup, &m->rec.alloc_id, m->rec.alias);
	ask_next(vr);
}

static bool
is_watched(const struct mount *m)
{
	return m->step == MOUNT_PUBLISHED && (m->rec.block || m->rec.fs_type == FUSE_SUPER_MAGIC);
}

/* A file system that hangs is not asked again before its plugin has a new process, because each
 * time a worker of mount-helper may hang with it. */
static void
ask_next(struct volume_repair *vr)
{
	struct mnt_volume_prove_req req = { 0 };
	struct mount *m;

	LIST_FOREACH (m, &vr->sup->volumes->mounts, link)
		if (is_watched(m) && m->asked != vr->round && is_at_rest(m) &&
		    (m->hung_channel == 0 || m->hung_channel != channel_of(m)))
			break;
	if (!m)
		return;
	m->asked = vr->round;
	vr->asked_alloc = m->rec.alloc_id;
	str_set(&vr->asked_alias, m->rec.alias);
	vr->asking = true;
	req.place = m->state.place;
	req.block = m->rec.block;
	(void)mnt_call_volume_prove(vr->sup, &req, on_asked, vr);
}

static bool
watches_any(struct sup *sup)
{
	const struct mount *m;

	LIST_FOREACH (m, &sup->volumes->mounts, link)
		if (is_watched(m))
			return true;
	return false;
}

static void
ask_all(void *arg)
{
	struct volume_repair *vr = arg;

	vr->round++;
	if (!vr->asking)
		ask_next(vr);
	if (watches_any(vr->sup))
		sup_timer_set(vr->sup, &vr->ask, CLOCK_MONOTONIC, ASK_USEC, ask_all, vr);
}

static void
on_plugins_changed(struct sup *sup, struct changed_watch *w)
{
	struct volume_repair *vr = container_of(w, struct volume_repair, plugins);
	uint64_t state = 0;

	for (struct plugin *p = NULL; (p = plugin_next(sup, p));)
		state = state * 31 + plugin_channel(p) * 2 + plugin_is_healthy(p);
	if (state == vr->plugins_state) /* it was only asked again */
		return;
	vr->plugins_state = state;
	sup_timer_set(sup, &vr->ask, CLOCK_MONOTONIC, PLUGIN_USEC, ask_all, vr);
	(void)report_lost(sup);
}

/* --- changes of mountinfo --- */

static void
compare(void *arg)
{
	struct volume_repair *vr = arg;
	bool lost = report_lost(vr->sup), orphans = unmount_orphans(vr->sup);

	vr->soon = false;
	if (lost || orphans || !vr->io)
		sup_timer_set(vr->sup, &vr->timer, CLOCK_MONOTONIC, AGAIN_USEC, compare, vr);
	if (!sup_timer_is_set(&vr->ask) && watches_any(vr->sup))
		sup_timer_set(vr->sup, &vr->ask, CLOCK_MONOTONIC, ASK_USEC, ask_all, vr);
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
	vr->plugins.fn = on_plugins_changed;
	changed_watch(sup, CHANGED_PLUGINS, &vr->plugins);
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
	changed_unwatch(vr->sup, &vr->plugins);
	sup_timer_cancel(&vr->timer);
	sup_timer_cancel(&vr->ask);
	free(vr->asked_alias);
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

// SPDX-License-Identifier: Apache-2.0
/*
 * mount_clear.c: removes what is left of a volume whose FUSE file system has lost its process, or
 * whose device is gone, so that it can be staged and published again. All its mounts on this node
 * have ended with it, and the plugin must have unpublished all of them before it unstages. What the
 * plugin refuses to unmount is unmounted without it. Runs in: supervisor.
 */
#include <errno.h>

#include "supervisor/core/sup_calls.h"
#include "supervisor/volume/mount.h"
#include "supervisor/volume/volume_calls.h"

bool
mount_has_ended(const struct mount *m, int r, const struct mount_proof *found)
{
	if (!m->rec.block)
		return r == -ENOTCONN; /* fuse(4): its connection is closed */
	if (r < 0)
		return r == -ENOENT || r == -ENODEV || r == -EINVAL;
	return found->rdev_major != m->rec.rdev_major || found->rdev_minor != m->rec.rdev_minor;
}

bool
mount_is_refused(const CsiCallRep *rep, int r)
{
	return r < 0 && rep && r != -ECONNRESET && r != -ETIMEDOUT && r != -EAGAIN;
}

static void
send_call(struct mount *m, const struct mount_record *rec, volume_send *send, plugin_call_cb *cb)
{
	const struct volume_call call = { .sup = m->sup, .rec = rec, .cb = cb, .arg = m };

	m->plugin_call = send(&call);
}

/* Returns false, after the end of the mounting, if the call was not answered. */
static bool
end_call(struct mount *m, int r, const CsiCallRep *rep, const struct err *e)
{
	mount_note_effect(m);
	m->plugin_call = NULL;
	if (r >= 0 || mount_is_refused(rep, r))
		return true;
	mount_finish(m, r, e);
	return false;
}

/* --- what is published --- */

static void clear_next(struct mount *m);

static void
on_target_unmounted(struct sup *sup, void *arg, int r, const void *msg, int fd, const struct err *e)
{
	struct mount *m = arg, *o = m->clearing;

	m->call = 0;
	if (r < 0) {
		mount_finish(m, r, e);
		return;
	}
	mount_set_lost(o, VOLUME_LOST_SOURCE);
	mount_set_step(o, MOUNT_MOUNTING);
	clear_next(m);
}

static void
on_unpublished(struct sup *sup, void *arg, int r, const CsiCallRep *rep, const struct err *e)
{
	struct mount *m = arg;
	struct mnt_volume_unmount_req req = { .place = m->clearing->state.place, .detach = true };

	if (!end_call(m, r, rep, e))
		return;
	req.has_proof = m->clearing->state.proof.mnt_id != 0;
	if (req.has_proof)
		req.proof = m->clearing->state.proof;
	m->call = mnt_call_volume_unmount(m->sup, &req, on_target_unmounted, m);
}

static void
on_checked(struct sup *sup, void *arg, int r, const void *msg, int fd, const struct err *e)
{
	const struct mnt_volume_prove_rep *rep = msg;
	struct mount *m = arg;

	m->call = 0;
	if (mount_has_ended(m->clearing, r, r < 0 ? NULL : &rep->proof))
		send_call(m, &m->clearing->rec, volume_send_unpublish, on_unpublished);
	else
		clear_next(m);
}

/* Checks the next published mount of the volume: another alloc's may have a file system of its own.
 * They stay in the list, because a volume has one call at a time, which is this one's. */
static void
clear_next(struct mount *m)
{
	struct mnt_volume_prove_req req = { .block = m->rec.block };
	struct mount *o = m->clearing;
	struct err e = { 0 };

	if (m->cancelled) {
		mount_finish(m, err_say(&e, -ECANCELED, "the mount was cancelled"), &e);
		return;
	}
	do
		o = mount_next_of_volume(m, o);
	while (o && o != m && (o->step != MOUNT_PUBLISHED || o->unmounting));
	m->clearing = o;
	if (!o) {
		mount_begin_next(m);
		return;
	}
	req.place = o->state.place;
	m->call = mnt_call_volume_prove(m->sup, &req, on_checked, m);
}

void
mount_clear_targets(struct mount *m)
{
	const struct plugin *p = plugin_find(m->sup, m->rec.plugin, CSI_PLUGIN_NODE);
	struct err e = { 0 };

	m->cleared = true;
	m->clearing = NULL;
	mount_set_lost(m, VOLUME_LOST_SOURCE);
	if (p && plugin_is_healthy(p))
		clear_next(m);
	else
		mount_finish(m,
		    err_say(
			&e, -EHOSTDOWN, "plugin %s does not answer on this node", m->rec.plugin),
		    &e);
}

/* --- what is staged --- */

static struct volume_place
staging_of(const struct mount *m)
{
	struct volume_place place = m->state.place;

	place.alloc = (struct id){ 0 };
	(void)IPC_TEXT_SET(place.usage, m->rec.staging);
	return place;
}

static void
on_staging_unmounted(
    struct sup *sup, void *arg, int r, const void *msg, int fd, const struct err *e)
{
	struct mount *m = arg;

	m->call = 0;
	if (r < 0)
		mount_finish(m, r, e);
	else
		mount_begin_next(m);
}

static void
on_unstaged(struct sup *sup, void *arg, int r, const CsiCallRep *rep, const struct err *e)
{
	struct mount *m = arg;
	const struct mnt_volume_unmount_req req = { .place = staging_of(m), .detach = true };

	if (end_call(m, r, rep, e))
		m->call = mnt_call_volume_unmount(m->sup, &req, on_staging_unmounted, m);
}

static void
on_staging_checked(struct sup *sup, void *arg, int r, const void *msg, int fd, const struct err *e)
{
	struct mount *m = arg;

	m->call = 0;
	if (r == -ENOTCONN)
		send_call(m, &m->rec, volume_send_unstage, on_unstaged);
	else
		mount_begin_next(m);
}

void
mount_clear_staging(struct mount *m)
{
	const struct mnt_volume_prove_req req = { .place = staging_of(m) };

	m->call = mnt_call_volume_prove(m->sup, &req, on_staging_checked, m);
}

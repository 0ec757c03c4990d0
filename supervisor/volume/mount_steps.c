// SPDX-License-Identifier: Apache-2.0
/*
 * mount_steps.c: the steps of mounting and unmounting one volume for one alloc. All mounts of a
 * volume on this node share one staging directory, that of the first. Unmounting always begins with
 * the first step, because a call that failed earlier may have taken effect since. Runs in:
 * supervisor.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "common/list.h"
#include "common/mem.h"
#include "supervisor/core/journal.h"
#include "supervisor/core/sup_calls.h"
#include "supervisor/node/mounts.h"
#include "supervisor/volume/mount.h"
#include "supervisor/volume/plugin_calls.h"
#include "supervisor/volume/volume_calls.h"

/* One action makes one call, whose callback ends in mount_begin_next() or mount_finish(). */
struct mount_action {
	enum mount_step step; /* of the row during the action */
	bool staging;         /* concerns the staging directory, not the alloc's */
	void (*begin)(struct mount *m);
	volume_send *send; /* for call_plugin() */
};

static void make_dir(struct mount *m), call_plugin(struct mount *m), prove(struct mount *m),
    probe(struct mount *m), remove_dir(struct mount *m), settle(struct mount *m),
    expand(struct mount *m);

/* If make_dir() finds something mounted there, or staged for another alloc, the next action, which
 * is the plugin's, is already done and is skipped. */
static const struct mount_action way_again[] = {
	{ MOUNT_MOUNTING, false, mount_clear_targets, NULL },
	{ MOUNT_MOUNTING, true, mount_clear_staging, NULL },
	{ MOUNT_MOUNTING, true, make_dir, NULL },
	{ MOUNT_MOUNTING, true, call_plugin, volume_send_stage },
	{ MOUNT_MOUNTING, false, make_dir, NULL },
	{ MOUNT_MOUNTING, false, call_plugin, volume_send_publish },
	{ MOUNT_MOUNTING, false, prove, NULL },
	{ MOUNT_MOUNTING, false, expand, NULL },
	{ MOUNT_PUBLISHED, false, NULL, NULL },
};
static const struct mount_action *const way_in = &way_again[2];
/* After a restart of the agent: checks that the volume is still mounted. */
static const struct mount_action check_again[] = {
	{ MOUNT_PUBLISHED, false, prove, NULL },
	{ MOUNT_PUBLISHED, false, NULL, NULL },
};
static const struct mount_action way_out[] = {
	{ MOUNT_UNPUBLISHING, false, probe, NULL },
	{ MOUNT_UNPUBLISHING, false, call_plugin, volume_send_unpublish },
	{ MOUNT_UNPUBLISHING, false, remove_dir, NULL },
	{ MOUNT_UNSTAGING, true, call_plugin, volume_send_unstage },
	{ MOUNT_UNSTAGING, true, remove_dir, NULL },
	{ MOUNT_UNSTAGING, false, settle, NULL },
	{ MOUNT_GONE, false, NULL, NULL },
};
static const struct mount_action *const settling = &way_out[5], *const gone = &way_out[6];

/*
 * Returns another mount that uses the staged volume; NULL if there is none. For a mount that is
 * being unmounted, one that has come to unstaging is none: it may have left that to this mount, and
 * is only checked for late effects. Nor is one that is settling.
 */
static const struct mount *
other_user(const struct mount *m)
{
	struct mount *o = NULL;

	while ((o = mount_next_of_volume(m, o)))
		if (o != m && o->begun && o->rec.stages && o->step != MOUNT_GONE && !o->settling &&
		    !(m->unmounting && o->step == MOUNT_UNSTAGING) &&
		    str_eq(o->rec.staging, m->rec.staging))
			return o;
	return NULL;
}

/* Returns true if the action does not apply: the plugin does not stage, or others use the staged
 * volume. */
static bool
is_skipped(const struct mount *m)
{
	return m->at->staging && (!m->rec.stages || (m->unmounting && other_user(m)));
}

static void
begin_action(struct mount *m, const struct mount_action *at)
{
	m->begun |= !m->unmounting;
	for (m->at = at; is_skipped(m); m->at++)
		;
	if (m->step != m->at->step)
		mount_set_step(m, m->at->step);
	if (m->at->begin) {
		m->at->begin(m);
		return;
	}
	if (m->step == MOUNT_GONE && m->sup->volumes->gone)
		m->sup->volumes->gone(m->sup, &m->rec.alloc_id, m->rec.alias);
	if (m->begun && m->at != &check_again[1])
		mount_report(m, NULL);
	mount_finish(m, 0, m->note.code < 0 ? &m->note : NULL);
}

void
mount_begin_next(struct mount *m)
{
	struct err e = { 0 };

	if (m->cancelled && !m->unmounting)
		mount_finish(m, err_say(&e, -ECANCELED, "the mount was cancelled"), &e);
	else
		begin_action(m, m->at + 1);
}

static struct volume_place
place_of(const struct mount *m)
{
	struct volume_place place = m->state.place;

	if (m->at->staging) {
		place.alloc = (struct id){ 0 };
		(void)IPC_TEXT_SET(place.usage, m->rec.staging);
	}
	return place;
}

/* Returns 1 if something is mounted on the staging directory, or the alloc's; 0; or -errno. */
static int
is_mounted(const struct mount *m, bool staging, struct err *e)
{
	char path[MOUNT_PATH_SIZE];
	int r;

	mount_path(m, staging, path);
	r = mounts_has(m->sup, path);
	return r < 0 ? err_set(e, r, "read the mounts of this machine") : r;
}

bool
mount_is_missing(const struct mount *m)
{
	struct err e = { 0 };

	return !m->rec.block && is_mounted(m, false, &e) == 0;
}

bool
mount_staging_is_missing(const struct mount *m)
{
	struct err e = { 0 };

	return m->rec.stages && !m->rec.staged_bare && is_mounted(m, true, &e) == 0;
}

/* --- the shared staging directory --- */

/* Takes the staging directory of another mount of the volume, or its own. */
static void
choose_staging(struct mount *m)
{
	struct mount *o = NULL;

	while ((o = mount_next_of_volume(m, o)))
		if (o != m && o->begun && o->rec.stages && o->step != MOUNT_GONE)
			break;
	str_set(&m->rec.staging, o ? o->rec.staging : m->rec.usage);
	turn_write(m->sup, &m->row);
	turn_durable(m->sup);
}

/* Notes with what the volume is staged, or only published if the plugin does not stage. */
static void
note_staged(struct mount *m)
{
	const struct mount_options *options = m->volume.mount_options;

	str_set(&m->rec.staged_fs_type, options ? options->fs_type : NULL);
	m->rec.staged_access = m->capability.access_mode;
	turn_write(m->sup, &m->row);
}

/* After NodeStage: notes whether the plugin has mounted something. */
static void
note_bare(struct mount *m)
{
	struct err e = { 0 };

	m->rec.staged_bare = is_mounted(m, true, &e) == 0;
	turn_write(m->sup, &m->row);
}

static bool
is_reader_mode(enum csi_access access)
{
	return access == CSI_SINGLE_NODE_READER || access == CSI_MULTI_NODE_READER;
}

/* Checks that what was staged for another mount can serve this one too. */
static int
join_staging(struct mount *m, struct err *e)
{
	const struct mount_options *options = m->volume.mount_options;
	const char *fs_type = str(options ? options->fs_type : NULL);
	const struct mount *o = other_user(m);
	const struct mount_record *other = o ? &o->rec : &m->rec;
	char what[160] = "";

	if (other->block != m->rec.block)
		(void)snprintf(what, sizeof what, "as %s, not as %s",
		    csi_attachment_names[other->block ? CSI_BLOCK_DEVICE : CSI_FILE_SYSTEM],
		    csi_attachment_names[m->rec.block ? CSI_BLOCK_DEVICE : CSI_FILE_SYSTEM]);
	else if (*fs_type && *str(other->staged_fs_type) && !str_eq(fs_type, other->staged_fs_type))
		(void)snprintf(what, sizeof what, "with file system %.32s, not %.32s",
		    other->staged_fs_type, fs_type);
	else if (is_reader_mode(other->staged_access) && !is_reader_mode(m->capability.access_mode))
		(void)snprintf(what, sizeof what, "read-only (%s), not for %s",
		    csi_access_names[other->staged_access],
		    csi_access_names[m->capability.access_mode]);
	if (*what)
		return err_say(e, -EBUSY,
		    "volume %s is staged on this node for allocation %.8s %s: a volume has one "
		    "staging on a node; stop that allocation first, or request the same",
		    m->rec.volume_id, other->alloc, what);
	if (o) {
		str_set(&m->rec.staged_fs_type, other->staged_fs_type);
		m->rec.staged_access = other->staged_access;
		m->rec.staged_bare = other->staged_bare;
	}
	return 0;
}

/* Returns whether the plugin has staged the volume for another alloc, which uses it, and has
 * mounted nothing on the staging directory. */
static bool
is_staged_bare(const struct mount *m)
{
	const struct mount *o = other_user(m);

	return o && o->step == MOUNT_PUBLISHED && o->rec.staged_bare;
}

/* --- directories --- */

static void
on_staging_checked(struct sup *sup, void *arg, int r, const void *msg, int fd, const struct err *e)
{
	struct mount *m = arg;

	m->call = 0;
	if (r == -ENOTCONN && !m->cleared) {
		begin_action(m, way_again);
		return;
	}
	m->at++; /* it is staged */
	mount_begin_next(m);
}

/* Checks that the staged file system still answers: the process of a FUSE file system may have
 * ended. */
static void
check_staging(struct mount *m)
{
	const struct mnt_volume_prove_req req = { .place = place_of(m) };

	m->call = mnt_call_volume_prove(m->sup, &req, on_staging_checked, m);
}

static void
on_dir_made(struct sup *sup, void *arg, int r, const void *msg, int fd, const struct err *e)
{
	struct mount *m = arg;
	struct err why = { 0 };

	m->call = 0;
	if (r >= 0) {
		r = is_mounted(m, m->at->staging, &why);
		e = &why;
	}
	if (r == 0 && m->at->staging)
		r = is_staged_bare(m);
	if (r == 1 && m->at->staging && join_staging(m, &why) < 0)
		r = why.code;
	if (r < 0) {
		mount_finish(m, r, e);
		return;
	}
	if (r == 1 && m->at->staging) {
		check_staging(m);
		return;
	}
	if (r == 0 && m->at->staging)
		note_staged(m);
	m->at += r == 1; /* already mounted */
	mount_begin_next(m);
}

static void
make_dir(struct mount *m)
{
	const struct file_volume_dir_make_req req = { .place = place_of(m) };

	m->call = file_call_volume_dir_make(m->sup, &req, on_dir_made, m);
}

static void
on_unmounted(struct sup *sup, void *arg, int r, const void *msg, int fd, const struct err *e)
{
	struct mount *m = arg;

	m->call = 0;
	m->detached = false; /* not twice */
	if (r < 0) {
		mount_finish(m, r, e);
		return;
	}
	if (m->refused.code < 0)
		(void)err_say(&m->note, -EBUSY,
		    "the file system of volume %s has ended, and its plugin could not unmount it: "
		    "drover has unmounted it",
		    m->rec.volume_id);
	else
		(void)err_say(&m->note, -EBUSY,
		    "plugin %s said that volume %s is %s, but it was still mounted: drover has "
		    "unmounted it",
		    m->rec.plugin, m->rec.volume_id, m->at->staging ? "unstaged" : "unpublished");
	journal_warn(JOURNAL_VOLUME, ABOUT_MOUNT(m), "%s", m->note.msg);
	remove_dir(m);
}

/* The plugin has said that the volume is not mounted, but it is, or cannot unmount what has ended:
 * unmounts it without the plugin. */
static void
unmount_here(struct mount *m)
{
	struct mnt_volume_unmount_req req = { .place = place_of(m), .detach = m->refused.code < 0 };

	req.has_proof = !m->at->staging && m->state.proof.mnt_id != 0;
	if (req.has_proof)
		req.proof = m->state.proof;
	m->call = mnt_call_volume_unmount(m->sup, &req, on_unmounted, m);
}

static void
on_refused_checked(struct sup *sup, void *arg, int r, const void *msg, int fd, const struct err *e)
{
	struct mount *m = arg;

	m->call = 0;
	if (r == -ENOTCONN)
		unmount_here(m);
	else
		mount_finish(m, m->refused.code, &m->refused);
}

/* The plugin has refused, and the volume is mounted: perhaps its file system has ended, so that the
 * plugin cannot look at it. */
static void
check_refused(struct mount *m)
{
	const struct mnt_volume_prove_req req = { .place = place_of(m), .block = m->rec.block };

	m->call = mnt_call_volume_prove(m->sup, &req, on_refused_checked, m);
}

static void
on_dir_removed(struct sup *sup, void *arg, int r, const void *msg, int fd, const struct err *e)
{
	struct mount *m = arg;

	m->call = 0;
	if (r == -EBUSY && m->detached) {
		unmount_here(m);
		return;
	}
	if (r == -EBUSY && m->refused.code < 0) {
		check_refused(m);
		return;
	}
	if (r < 0) {
		mount_finish(m, r, m->refused.code < 0 ? &m->refused : e);
		return;
	}
	if (m->refused.code < 0)
		journal_warn(JOURNAL_VOLUME, ABOUT_MOUNT(m),
		    "volume %s: %s; ignored, because nothing is mounted there", m->rec.volume_id,
		    m->refused.msg);
	m->refused.code = 0;
	mount_begin_next(m);
}

static void
remove_dir(struct mount *m)
{
	const struct file_volume_dir_remove_req req = { .place = place_of(m) };

	m->call = file_call_volume_dir_remove(m->sup, &req, on_dir_removed, m);
}

/* --- calls to the plugin --- */

/* Returns true if the plugin has refused to unmount, and it is worth to look whether anything is
 * mounted there at all. */
static bool
may_forgive(const struct mount *m, const CsiCallRep *rep, int r)
{
	return m->unmounting && mount_is_refused(rep, r);
}

static void
on_called(struct sup *sup, void *arg, int r, const CsiCallRep *rep, const struct err *e)
{
	struct mount *m = arg;

	mount_note_effect(m);
	m->plugin_call = NULL;
	m->detached = m->unmounting && r >= 0;
	if (r >= 0 && !m->unmounting && m->at->staging)
		note_bare(m);
	if (r < 0 && !may_forgive(m, rep, r)) {
		mount_finish(m, r, e);
		return;
	}
	if (r < 0)
		m->refused = *e;
	/* A directory that is not mounted does not mean that nothing is staged. */
	if (r < 0 && m->at->staging)
		check_refused(m);
	else
		mount_begin_next(m);
}

static void
send_call(struct mount *m, volume_send *send, plugin_call_cb *cb)
{
	const struct volume_call call = { .sup = m->sup,
		.rec = &m->rec,
		.volume = &m->volume,
		.capability = &m->capability,
		.cb = cb,
		.arg = m };

	m->plugin_call = send(&call);
}

static void
call_plugin(struct mount *m)
{
	send_call(m, m->at->send, on_called);
}

static void
on_probed(struct sup *sup, void *arg, int r, const CsiCallRep *rep, const struct err *e)
{
	struct mount *m = arg;

	m->plugin_call = NULL;
	/* A plugin that is not well may unmount nevertheless. */
	if (r == -EHOSTDOWN)
		mount_finish(m, r, e);
	else
		mount_begin_next(m);
}

static void
probe(struct mount *m)
{
	if (m->rec.unsure)
		send_call(m, volume_send_probe, on_probed);
	else
		mount_begin_next(m);
}

/* The volume can be used with its old size, too. */
static void
on_expanded(struct sup *sup, void *arg, int r, const CsiCallRep *rep, const struct err *e)
{
	struct mount *m = arg;

	m->plugin_call = NULL;
	if (sup->volumes->grown)
		sup->volumes->grown(
		    sup, m->rec.namespace, m->rec.volume_id, m->volume.node_expansion, r, e);
	mount_begin_next(m);
}

/* Expands a volume whose new size the node does not know yet. */
static void
expand(struct mount *m)
{
	struct err e = { 0 };
	int r;

	if (!m->volume.node_expansion) {
		mount_begin_next(m);
		return;
	}
	r = plugin_check_node_expands(m->sup, m->rec.plugin, &e);
	if (r < 0)
		on_expanded(m->sup, m, r, NULL, &e);
	else
		send_call(m, volume_send_due_expand, on_expanded);
}

/* --- the proof, and the last look --- */

/* What was published in this mounting has nothing in common with an earlier device. */
static bool
is_to_clear(const struct mount *m, int r, const struct mnt_volume_prove_rep *rep)
{
	if (m->cleared || (m->rec.block && m->at != check_again))
		return false;
	return mount_has_ended(m, r, r < 0 ? NULL : &rep->proof);
}

/* Checks that the plugin has not published its staging directory while nothing is mounted there: a
 * task would write to this machine's disk. A plugin may stage without a mount, if it publishes
 * something else. Whether the staging directory is a mount point does not matter: publishing it
 * twice at one path also mounts it on itself, because these mounts propagate to each other. */
static int
refuse_bare_staging(const struct mount *m, const struct mount_proof *proof, struct err *e)
{
	char staging[MOUNT_PATH_SIZE], target[MOUNT_PATH_SIZE];
	struct stat st;
	int r;

	if (!m->rec.stages || m->rec.block)
		return 0;
	if (stat(m->sup->args.data_dir, &st) < 0)
		return err_set(e, -errno, "stat the data directory");
	if (proof->dev_major != major(st.st_dev) || proof->dev_minor != minor(st.st_dev))
		return 0; /* another file system than that of the staging directory */
	mount_path(m, true, staging);
	mount_path(m, false, target);
	r = mounts_shows(target, staging);
	if (r < 0)
		return err_set(e, r, "read the mounts of this machine");
	return r != 1 ? r
		      : err_say(e, -ENODEV,
			    "plugin %s published volume %s, but what it mounted is its staging "
			    "directory, on which nothing is mounted: a task would write to the "
			    "disk of this machine. NodeStageVolume has not staged the volume, or "
			    "somebody else has unmounted it",
			    m->rec.plugin, m->rec.volume);
}

static void
on_proven(struct sup *sup, void *arg, int r, const void *msg, int fd, const struct err *e)
{
	const struct mnt_volume_prove_rep *rep = msg;
	struct mount *m = arg;
	struct err why = { 0 };

	m->call = 0;
	if (is_to_clear(m, r, rep)) {
		begin_action(m, way_again);
		return;
	}
	if (r < 0) {
		(void)err_say(&why, r, "plugin %s published volume %s, but %s", m->rec.plugin,
		    m->rec.volume, e->msg);
		mount_finish(m, why.code, &why);
		return;
	}
	r = refuse_bare_staging(m, &rep->proof, &why);
	if (r < 0) {
		mount_finish(m, r, &why);
		return;
	}
	m->state.proof = rep->proof;
	mount_record_from_proof(&m->rec, &m->state.proof);
	m->rec.unsure = false;
	turn_write(m->sup, &m->row);
	mount_begin_next(m);
}

static void
prove(struct mount *m)
{
	const struct mnt_volume_prove_req req = { .place = m->state.place, .block = m->rec.block };

	m->call = mnt_call_volume_prove(m->sup, &req, on_proven, m);
}

/* After a call whose effect is unknown: checks now and once more, some time later, that no late
 * mount has appeared. If one has, it is unmounted from the first step on. */
static void
settle(struct mount *m)
{
	struct err e = { 0 };
	int r = m->rec.unsure ? is_mounted(m, false, &e) : 0;

	if (r == 0 && m->rec.unsure && m->rec.stages && !other_user(m))
		r = is_mounted(m, true, &e);
	if (r < 0) {
		mount_finish(m, r, &e);
	} else if (r > 0) {
		journal_warn(JOURNAL_VOLUME, ABOUT_MOUNT(m),
		    "volume %s: an earlier call took effect late, and is undone", m->rec.volume_id);
		m->settling = false;
		begin_action(m, way_out);
	} else if (m->rec.unsure && !m->settling) {
		m->settling = true;
		mount_advance_after(m, m->settle_usec);
		mount_pause(m);
	} else {
		m->settling = m->rec.unsure = false;
		mount_begin_next(m);
	}
}

static enum volume_lost
find_lost(const struct mount *m)
{
	if (mount_is_missing(m))
		return VOLUME_LOST_MOUNT;
	return mount_staging_is_missing(m) ? VOLUME_LOST_STAGING : VOLUME_LOST_NOTHING;
}

void
mount_begin(struct mount *m)
{
	m->refused.code = 0;
	if (!m->settling)
		m->note.code = 0;
	if (!m->unmounting) {
		m->settling = m->cleared = false;
		if (!m->begun)
			note_staged(m);
		if (!m->begun && m->rec.stages)
			choose_staging(m);
		if (m->step == MOUNT_PUBLISHED)
			mount_set_lost(m, find_lost(m));
		begin_action(m, m->step == MOUNT_PUBLISHED && m->rec.lost == VOLUME_LOST_NOTHING
				    ? check_again
				    : way_in);
	} else {
		begin_action(m, !m->begun ? gone : m->settling ? settling : way_out);
	}
}

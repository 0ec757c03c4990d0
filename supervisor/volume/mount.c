// SPDX-License-Identifier: Apache-2.0
/* mount.c: one mount of a volume: its row, and the steps of mounting and unmounting. Runs in:
 * supervisor. */
#include "supervisor/volume/mount.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <systemd/sd-event.h>

#include "common/cleanup.h"
#include "common/list.h"
#include "common/mem.h"
#include "supervisor/core/journal.h"
#include "supervisor/core/store.h"
#include "supervisor/core/sup_calls.h"
#include "supervisor/core/sup_timer.h"
#include "supervisor/node/mounts.h"
#include "supervisor/node/node_state.h"
#include "supervisor/volume/plugin_calls.h"
#include "supervisor/volume/volume_calls.h"

#define RETRY_USEC     5000000
#define RETRY_MAX_USEC 60000000

static int
write_row(struct sup *sup, struct dirty *d, struct err *e)
{
	struct mount *m = container_of(d, struct mount, row);
	cleanup_free char *key = mem_printf("%s/%s", m->rec.alloc, m->rec.alias);
	struct text t = { 0 };
	int r;

	if (m->step == MOUNT_GONE)
		return STORE_EXEC(sup->store, STMT_MOUNT_DELETE, e, SV_TEXT(key));
	m->rec.step = m->step;
	model_to_text(&mount_record_type, &m->rec, MODEL_COMPACT, &t);
	r = STORE_EXEC(sup->store, STMT_MOUNT_PUT, e, SV_TEXT(key), SV_TEXT(t.text));
	text_done(&t);
	return r;
}

void
mount_free(struct mount *m)
{
	LIST_REMOVE(m, link);
	turn_forget_write(m->sup, &m->row);
	child_call_cancel(m->sup, m->call);
	plugin_call_cancel(m->plugin_call);
	sup_timer_cancel(&m->timer);
	mount_record_done(&m->rec);
	csi_volume_done(&m->volume);
	free(m);
}

static void
on_written(struct sup *sup, struct dirty *d)
{
	struct mount *m = container_of(d, struct mount, row);

	if (m->step == MOUNT_GONE)
		mount_free(m);
}

void
mount_set_step(struct mount *m, enum mount_step step)
{
	m->step = step;
	m->state.published = step == MOUNT_PUBLISHED;
	turn_write(m->sup, &m->row);
	/*
	 * The row is synced before the first call of mounting or unmounting, and at the end, which
	 * releases the claim. A step in between may be lost in a power cut: mounting and unmounting
	 * can begin again from any of them.
	 */
	if (step == MOUNT_MOUNTING || step == MOUNT_UNPUBLISHING || step == MOUNT_GONE)
		turn_durable(m->sup);
}

struct mount *
mount_new(struct sup *sup)
{
	struct mount *m = mem_new(struct mount);

	m->sup = sup;
	m->row.write = write_row;
	m->row.point = CRASH_ROW_MOUNT;
	m->row.written = on_written;
	m->retry_usec = RETRY_USEC;
	mount_record_init(&m->rec);
	csi_volume_init(&m->volume);
	LIST_INSERT_HEAD(&sup->volumes->mounts, m, link);
	return m;
}

void
mount_fill_state(struct mount *m)
{
	struct mount_record *rec = &m->rec;

	m->state.place.kind = (enum plugin_kind)rec->kind;
	(void)IPC_TEXT_SET(m->state.place.plugin, rec->plugin);
	(void)IPC_TEXT_SET(m->state.place.volume, rec->volume);
	(void)IPC_TEXT_SET(m->state.place.usage, rec->usage);
	m->state.place.alloc = rec->alloc_id;
	m->state.read_only = rec->read_only;
	m->state.published = rec->step == MOUNT_PUBLISHED;
	mount_record_to_proof(rec, &m->state.proof);
	m->step = (enum mount_step)rec->step;
}

static bool
same_volume(const struct mount *a, const struct mount *b)
{
	return str_eq(a->rec.plugin, b->rec.plugin) && str_eq(a->rec.volume, b->rec.volume);
}

/* Returns true if another mount of the volume has a call out: a volume has one call at a time. */
static bool
volume_is_busy(const struct mount *m)
{
	const struct mount *o;

	LIST_FOREACH (o, &m->sup->volumes->mounts, link)
		if (o != m && o->busy && same_volume(o, m))
			return true;
	return false;
}

/* Advances the next mount that waits for the volume. */
static void
wake_next(struct mount *m)
{
	struct mount *o;

	LIST_FOREACH (o, &m->sup->volumes->mounts, link) {
		if (!o->waiting || !same_volume(o, m))
			continue;
		o->waiting = false;
		mount_advance(o);
		return;
	}
}

static void
on_retry(void *arg)
{
	struct mount *m = arg;

	mount_advance(m);
}

/* Adds an event of the node, as Nomad's client does. *e is the failure; NULL: it succeeded. */
static void
report_to_node(const struct mount *m, const struct err *e)
{
	cleanup_done(node_event) struct node_event ev;

	node_event_init(&ev);
	str_set(&ev.subsystem, "Storage");
	str_set(&ev.message, m->unmounting ? "Unmount volume" : "Mount volume");
	string_map_set(&ev.details, "volume_id", m->rec.volume_id);
	string_map_set(&ev.details, "alloc_id", m->rec.alloc);
	string_map_set(&ev.details, "success", e ? "false" : "true");
	if (e)
		string_map_set(&ev.details, "error", e->msg);
	node_event_add(m->sup, &ev);
}

void
mount_finish(struct mount *m, int r, const struct err *e)
{
	volume_cb *cb = m->cb;

	/* Repeated failures of unmounting are the first one's. */
	if (r < 0 && r != -ECANCELED && (!m->unmounting || m->retry_usec == RETRY_USEC))
		report_to_node(m, e);

	m->busy = false;
	m->cb = NULL;
	csi_volume_done(&m->volume);
	csi_volume_init(&m->volume);
	if (r < 0 && m->unmounting) {
		if (!cb)
			journal_warn(JOURNAL_VOLUME, ABOUT_MOUNT(m),
			    "volume %s: %s; retried in %llu s", m->rec.volume, e->msg,
			    (unsigned long long)m->retry_usec / 1000000);
		sup_timer_set(m->sup, &m->timer, CLOCK_MONOTONIC, m->retry_usec, on_retry, m);
		m->retry_usec =
		    m->retry_usec * 2 < RETRY_MAX_USEC ? m->retry_usec * 2 : RETRY_MAX_USEC;
	}
	wake_next(m);
	if (cb)
		cb(m->sup, m->arg, r, e);
}

/* Returns true if the mount of another alloc uses the same staged volume. */
static bool
staging_is_shared(const struct mount *m)
{
	const struct mount *o;

	LIST_FOREACH (o, &m->sup->volumes->mounts, link)
		if (o != m && o->begun && o->step != MOUNT_GONE && same_volume(o, m) &&
		    str_eq(o->rec.usage, m->rec.usage))
			return true;
	return false;
}

/* One action makes one call, whose callback ends in begin_next() or mount_finish(). */
struct action {
	enum mount_step step; /* of the row during the action */
	bool staging;         /* concerns the staging directory, not the alloc's */
	void (*begin)(struct mount *m);
	volume_send *send; /* for call_plugin() */
};

static void make_dir(struct mount *m), call_plugin(struct mount *m), prove(struct mount *m),
    remove_dir(struct mount *m);

/* If make_dir() finds something mounted there, the next action, which is the plugin's, is already
 * done and is skipped. */
static const struct action way_in[] = {
	{ MOUNT_MOUNTING, true, make_dir, NULL },
	{ MOUNT_MOUNTING, true, call_plugin, volume_send_stage },
	{ MOUNT_MOUNTING, false, make_dir, NULL },
	{ MOUNT_MOUNTING, false, call_plugin, volume_send_publish },
	{ MOUNT_MOUNTING, false, prove, NULL },
	{ MOUNT_PUBLISHED, false, NULL, NULL },
};
/* After a restart of the agent: checks that the volume is still mounted. */
static const struct action check_again[] = {
	{ MOUNT_PUBLISHED, false, prove, NULL },
	{ MOUNT_PUBLISHED, false, NULL, NULL },
};
static const struct action way_out[] = {
	{ MOUNT_UNPUBLISHING, false, call_plugin, volume_send_unpublish },
	{ MOUNT_UNPUBLISHING, false, remove_dir, NULL },
	{ MOUNT_UNSTAGING, true, call_plugin, volume_send_unstage },
	{ MOUNT_UNSTAGING, true, remove_dir, NULL },
	{ MOUNT_GONE, false, NULL, NULL },
};
static const struct action *const unstaging = &way_out[2], *const gone = &way_out[4];

/* Returns true if the action does not apply: the plugin does not stage, or others use the staged
 * volume. */
static bool
is_skipped(const struct mount *m)
{
	return m->at->staging && (!m->rec.stages || (m->unmounting && staging_is_shared(m)));
}

static void
begin_action(struct mount *m, const struct action *at)
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
		report_to_node(m, NULL);
	mount_finish(m, 0, NULL);
}

static void
begin_next(struct mount *m)
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

	if (m->at->staging)
		place.alloc = (struct id){ 0 };
	return place;
}

static int
is_mounted(const struct mount *m, struct err *e)
{
	const struct mount_record *rec = &m->rec;
	bool staging = m->at->staging;
	char path[640];
	int r;

	(void)snprintf(path, sizeof path, "csi/%s/%s/%s%s/%s/%s", csi_plugin_kind_names[rec->kind],
	    rec->plugin, staging ? "staging" : "per-alloc/", staging ? "" : rec->alloc, rec->volume,
	    rec->usage);
	r = mounts_has(m->sup, path);
	return r < 0 ? err_set(e, r, "read the mounts of this machine") : r;
}

static void
on_dir(struct sup *sup, void *arg, int r, const void *msg, int fd, const struct err *e)
{
	struct mount *m = arg;
	struct err why = { 0 };

	m->call = 0;
	if (r >= 0 && !m->unmounting) {
		r = is_mounted(m, &why);
		e = &why;
	}
	if (r < 0) {
		mount_finish(m, r, e);
		return;
	}
	m->at += r == 1; /* already mounted */
	begin_next(m);
}

static void
make_dir(struct mount *m)
{
	const struct file_volume_dir_make_req req = { .place = place_of(m) };

	m->call = file_call_volume_dir_make(m->sup, &req, on_dir, m);
}

static void
remove_dir(struct mount *m)
{
	const struct file_volume_dir_remove_req req = { .place = place_of(m) };

	m->call = file_call_volume_dir_remove(m->sup, &req, on_dir, m);
}

static void
on_called(struct sup *sup, void *arg, int r, const CsiCallRep *rep, const struct err *e)
{
	struct mount *m = arg;

	m->plugin_call = NULL;
	/* For unmounting, a volume that the plugin does not know is unmounted. */
	if (r < 0 && !(m->unmounting && r == -ENOENT))
		mount_finish(m, r, e);
	else
		begin_next(m);
}

static void
call_plugin(struct mount *m)
{
	const struct volume_call call = { .sup = m->sup,
		.rec = &m->rec,
		.volume = &m->volume,
		.capability = &m->capability,
		.cb = on_called,
		.arg = m };

	m->plugin_call = m->at->send(&call);
}

static void
on_proven(struct sup *sup, void *arg, int r, const void *msg, int fd, const struct err *e)
{
	const struct mnt_volume_prove_rep *rep = msg;
	struct mount *m = arg;
	struct err why = { 0 };

	m->call = 0;
	if (r < 0) {
		(void)err_say(&why, r, "plugin %s published volume %s, but %s", m->rec.plugin,
		    m->rec.volume, e->msg);
		mount_finish(m, why.code, &why);
		return;
	}
	m->state.proof = rep->proof;
	mount_record_from_proof(&m->rec, &m->state.proof);
	turn_write(m->sup, &m->row);
	begin_next(m);
}

static void
prove(struct mount *m)
{
	const struct mnt_volume_prove_req req = { .place = m->state.place, .block = m->rec.block };

	m->call = mnt_call_volume_prove(m->sup, &req, on_proven, m);
}

void
mount_advance(struct mount *m)
{
	if (m->busy || m->step == MOUNT_GONE)
		return;
	if (volume_is_busy(m)) {
		m->waiting = true;
		return;
	}
	m->busy = true;
	if (m->unmounting)
		begin_action(m, !m->begun                    ? gone
				: m->step == MOUNT_UNSTAGING ? unstaging
							     : way_out);
	else
		begin_action(m, m->step == MOUNT_PUBLISHED ? check_again : way_in);
}

void
mount_undo(struct mount *m)
{
	sup_timer_cancel(&m->timer);
	m->retry_usec = RETRY_USEC;
	m->unmounting = true;
	mount_advance(m);
}

struct expansion {
	struct mount *m;
	volume_size_cb *cb;
	void *arg;
};

/* A request that came during the call (to mount again, to unmount) begins now. */
static void
on_expanded(struct sup *sup, void *arg, int r, const CsiCallRep *rep, const struct err *e)
{
	cleanup_free struct expansion *x = arg;
	struct mount *m = x->m;
	int64_t capacity = 0;

	m->plugin_call = NULL;
	m->busy = m->growing = false;
	if (r >= 0 && rep->answer_case == CSI_CALL_REP__ANSWER_NODE_EXPAND_VOLUME)
		capacity = rep->node_expand_volume->capacity_bytes;
	if (m->unmounting || m->cb)
		mount_advance(m);
	else
		wake_next(m);
	x->cb(sup, x->arg, r, capacity, e);
}

int
mount_expand(struct mount *m, int64_t required_bytes, int64_t limit_bytes, volume_size_cb *cb,
    void *arg, struct err *e)
{
	struct volume_call call = { .sup = m->sup, .rec = &m->rec, .cb = on_expanded };
	struct expansion *x;

	if (m->busy || m->unmounting || volume_is_busy(m))
		return err_say(e, -EAGAIN,
		    "CSI client error (retryable): another call for volume %s has not ended yet",
		    m->rec.volume_id);
	x = mem_new(struct expansion);
	*x = (struct expansion){ .m = m, .cb = cb, .arg = arg };
	m->busy = m->growing = true;
	call.arg = x;
	m->plugin_call = volume_send_expand(&call, required_bytes, limit_bytes);
	return 0;
}

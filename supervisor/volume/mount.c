// SPDX-License-Identifier: Apache-2.0
/* mount.c: one mount of a volume: its row, and its turn among the mounts of the volume. Runs in:
 * supervisor. */
#include "supervisor/volume/mount.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <systemd/sd-event.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/list.h"
#include "common/mem.h"
#include "supervisor/core/journal.h"
#include "supervisor/core/store.h"
#include "supervisor/core/sup_calls.h"
#include "supervisor/core/sup_timer.h"
#include "supervisor/node/node_events.h"
#include "supervisor/node/node_state.h"
#include "supervisor/volume/plugin_calls.h"
#include "supervisor/volume/volume_calls.h"
#include "supervisor/volume/volume_stats.h"
#include "supervisor/volume/volume_watch.h"

/* A request of mount_expand(). */
struct growth {
	STAILQ_ENTRY(growth) next;
	int64_t required_bytes, limit_bytes;
	struct csi_volume volume; /* only its secrets are set */
	volume_size_cb *cb;
	void *arg;
};

static void
free_growth(struct growth *g)
{
	csi_volume_done(&g->volume); /* overwrites the secrets */
	free(g);
}

#define RETRY_USEC     5000000
#define RETRY_MAX_USEC 60000000

/* How long a call with an unknown effect is waited for: a part of the time that it took, because a
 * plugin that is slow may also be slow to take effect; at least, and at most. */
#define SETTLE_PART     4
#define SETTLE_USEC     2000000
#define SETTLE_MAX_USEC 15000000

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

static void
unindex(struct mount *m)
{
	if (!m->indexed)
		return;
	hash_remove(&m->sup->volumes->by_volume, &m->by_volume);
	hash_remove(&m->sup->volumes->by_alloc, &m->by_alloc);
	hash_remove(&m->sup->volumes->by_id, &m->by_id);
	m->indexed = false;
}

/* Of a volume: its plugin and its name in paths, or its namespace and its id. */
static uint64_t
volume_hash(const char *a, const char *b)
{
	return hash_string(str(a)) * 31 + hash_string(str(b));
}

void
mount_free(struct mount *m)
{
	struct growth *g;

	volume_stats_leave(m);
	LIST_REMOVE(m, link);
	unindex(m);
	turn_forget_write(m->sup, &m->row);
	child_call_cancel(m->sup, m->call);
	plugin_call_cancel(m->plugin_call);
	sup_timer_cancel(&m->timer);
	while ((g = STAILQ_FIRST(&m->growths))) {
		STAILQ_REMOVE_HEAD(&m->growths, next);
		free_growth(g);
	}
	mount_record_done(&m->rec);
	csi_volume_done(&m->volume);
	free(m->trouble.error);
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
	if (m->state.published) {
		volume_stats_watch(m->sup);
		volume_watch_mounted(m->sup->volumes->watch);
	}
	turn_write(m->sup, &m->row);
	/*
	 * The row is synced before the first call of mounting or unmounting, and at the end, which
	 * releases the claim. A step in between may be lost in a power cut: mounting and unmounting
	 * can begin again from any of them.
	 */
	if (step == MOUNT_MOUNTING || step == MOUNT_UNPUBLISHING || step == MOUNT_GONE)
		turn_durable(m->sup);
}

void
mount_set_lost(struct mount *m, enum volume_lost lost)
{
	m->rec.lost = lost;
	m->state.lost = lost;
	turn_write(m->sup, &m->row);
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
	m->settle_usec = SETTLE_USEC;
	mount_record_init(&m->rec);
	csi_volume_init(&m->volume);
	STAILQ_INIT(&m->growths);
	LIST_INSERT_HEAD(&sup->volumes->mounts, m, link);
	return m;
}

void
mount_fill_state(struct mount *m)
{
	struct mount_record *rec = &m->rec;
	struct volumes *vs = m->sup->volumes;

	unindex(m);
	hash_add(&vs->by_volume, &m->by_volume, volume_hash(rec->plugin, rec->volume));
	hash_add(&vs->by_alloc, &m->by_alloc, hash_id(&rec->alloc_id));
	hash_add(&vs->by_id, &m->by_id, volume_hash(rec->namespace, rec->volume_id));
	m->indexed = true;
	m->state.place.kind = (enum plugin_kind)rec->kind;
	(void)IPC_TEXT_SET(m->state.place.plugin, rec->plugin);
	(void)IPC_TEXT_SET(m->state.place.volume, rec->volume);
	(void)IPC_TEXT_SET(m->state.place.usage, rec->usage);
	m->state.place.alloc = rec->alloc_id;
	m->state.read_only = rec->read_only;
	m->state.published = rec->step == MOUNT_PUBLISHED;
	m->state.lost = (enum volume_lost)rec->lost;
	mount_record_to_proof(rec, &m->state.proof);
	m->step = (enum mount_step)rec->step;
}

struct mount *
mount_next_of_volume(const struct mount *m, struct mount *at)
{
	struct hash_link *l =
	    at ? hash_next(&at->by_volume)
	       : hash_first(&m->sup->volumes->by_volume, volume_hash(m->rec.plugin, m->rec.volume));

	for (; l; l = hash_next(l)) {
		struct mount *o = container_of(l, struct mount, by_volume);

		if (str_eq(o->rec.plugin, m->rec.plugin) && str_eq(o->rec.volume, m->rec.volume))
			return o;
	}
	return NULL;
}

struct mount *
mount_next_of_alloc(struct sup *sup, const struct id *alloc, struct mount *at)
{
	struct hash_link *l =
	    at ? hash_next(&at->by_alloc) : hash_first(&sup->volumes->by_alloc, hash_id(alloc));

	for (; l; l = hash_next(l)) {
		struct mount *o = container_of(l, struct mount, by_alloc);

		if (id_equal(&o->rec.alloc_id, alloc))
			return o;
	}
	return NULL;
}

struct mount *
mount_next_of_id(struct sup *sup, const char *namespace, const char *id, struct mount *at)
{
	struct hash_link *l = at ? hash_next(&at->by_id)
				 : hash_first(&sup->volumes->by_id, volume_hash(namespace, id));

	for (; l; l = hash_next(l)) {
		struct mount *o = container_of(l, struct mount, by_id);

		if (str_eq(o->rec.namespace, namespace) && str_eq(o->rec.volume_id, id))
			return o;
	}
	return NULL;
}

void
mount_path(const struct mount *m, bool staging, char buf[MOUNT_PATH_SIZE])
{
	const struct mount_record *rec = &m->rec;

	(void)snprintf(buf, MOUNT_PATH_SIZE, "csi/%s/%s/%s%s/%s/%s",
	    csi_plugin_kind_names[rec->kind], rec->plugin, staging ? "staging" : "per-alloc/",
	    staging ? "" : rec->alloc, rec->volume, staging ? rec->staging : rec->usage);
}

static bool
is_place_of(const struct mount *m, const struct volume_place *place, bool staging)
{
	const struct mount_record *rec = &m->rec;

	return rec->kind == (enum csi_plugin_kind)place->kind &&
	       str_eq(rec->plugin, place->plugin) && str_eq(rec->volume, place->volume) &&
	       str_eq(staging ? rec->staging : rec->usage, place->usage);
}

struct mount *
mount_find_place(struct sup *sup, const struct volume_place *place, bool staging)
{
	struct hash_link *l =
	    hash_first(&sup->volumes->by_volume, volume_hash(place->plugin, place->volume));
	struct mount *m = NULL;

	if (!staging) {
		while ((m = mount_next_of_alloc(sup, &place->alloc, m)) &&
		       !is_place_of(m, place, false))
			;
		return m;
	}
	for (; l; l = hash_next(l)) {
		m = container_of(l, struct mount, by_volume);
		if (is_place_of(m, place, true))
			return m;
	}
	return NULL;
}

/* Returns true if another mount of the volume has a call out: a volume has one call at a time. */
static bool
volume_is_busy(const struct mount *m)
{
	struct mount *o = NULL;

	while ((o = mount_next_of_volume(m, o)))
		if (o != m && o->busy)
			return true;
	return false;
}

/* Advances the next mount that waits for the volume. */
static void
wake_next(struct mount *m)
{
	struct mount *o = NULL;

	while ((o = mount_next_of_volume(m, o))) {
		if (!o->waiting)
			continue;
		o->waiting = false;
		mount_advance(o);
		return;
	}
}

void
mount_pause(struct mount *m)
{
	m->busy = false;
	wake_next(m);
}

void
mount_note_effect(struct mount *m)
{
	uint64_t usec;

	if (!m->plugin_call || !plugin_call_is_unknown(m->plugin_call))
		return;
	usec = SETTLE_USEC + plugin_call_usec(m->plugin_call) / SETTLE_PART;
	m->settle_usec = usec < SETTLE_MAX_USEC ? usec : SETTLE_MAX_USEC;
	m->rec.unsure = true;
	turn_write(m->sup, &m->row);
}

void
mount_cancel_call(struct mount *m)
{
	mount_note_effect(m);
	plugin_call_cancel(m->plugin_call);
	m->plugin_call = NULL;
}

static void
on_retry(void *arg)
{
	struct mount *m = arg;

	mount_advance(m);
}

void
mount_report(const struct mount *m, const struct err *e)
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
mount_advance_after(struct mount *m, uint64_t usec)
{
	sup_timer_set(m->sup, &m->timer, CLOCK_MONOTONIC, usec, on_retry, m);
}

/* Keeps what has failed, and when it is tried next, for those who ask. */
static void
note_trouble(struct mount *m, const struct err *e)
{
	struct volume_trouble *t = &m->trouble;

	str_set(&t->error, e->msg);
	if (t->tries++ == 0)
		t->since_ns = clock_real_ns();
	t->next_ns = clock_real_ns() + (int64_t)m->retry_usec * 1000;
}

void
mount_finish(struct mount *m, int r, const struct err *e)
{
	volume_cb *cb = m->cb;

	/* Repeated failures of unmounting are the first one's. */
	if (r < 0 && r != -ECANCELED && (!m->unmounting || m->retry_usec == RETRY_USEC))
		mount_report(m, e);
	m->busy = false;
	m->cb = NULL;
	if (r >= 0)
		m->trouble.tries = 0;
	csi_volume_done(&m->volume);
	csi_volume_init(&m->volume);
	if (r < 0 && m->unmounting) {
		note_trouble(m, e);
		if (!cb)
			journal_warn(JOURNAL_VOLUME, ABOUT_MOUNT(m),
			    "volume %s: %s; tried %u times, again in %llu s", m->rec.volume, e->msg,
			    m->trouble.tries, (unsigned long long)m->retry_usec / 1000000);
		mount_advance_after(m, m->retry_usec);
		m->retry_usec =
		    m->retry_usec * 2 < RETRY_MAX_USEC ? m->retry_usec * 2 : RETRY_MAX_USEC;
	}
	m->waiting = !STAILQ_EMPTY(&m->growths);
	wake_next(m);
	if (cb)
		cb(m->sup, m->arg, r, e);
}

/* A request that came during the call (to mount again, to unmount) begins now. */
static void
on_grown(struct sup *sup, void *arg, int r, const CsiCallRep *rep, const struct err *e)
{
	struct mount *m = arg;
	struct growth *g = STAILQ_FIRST(&m->growths);
	int64_t capacity = 0;

	STAILQ_REMOVE_HEAD(&m->growths, next);
	m->plugin_call = NULL;
	m->busy = m->growing = false;
	if (r >= 0 && rep->answer_case == CSI_CALL_REP__ANSWER_NODE_EXPAND_VOLUME)
		capacity = rep->node_expand_volume->capacity_bytes;
	if (m->unmounting || m->cb || !STAILQ_EMPTY(&m->growths))
		mount_advance(m);
	else
		wake_next(m);
	g->cb(sup, g->arg, r, capacity, e);
	free_growth(g);
}

static void
send_growth(struct mount *m)
{
	const struct volume_call call = { .sup = m->sup, .rec = &m->rec, .cb = on_grown, .arg = m };
	const struct growth *g = STAILQ_FIRST(&m->growths);
	const struct volume_size size = { g->required_bytes, g->limit_bytes, &g->volume.secrets };

	m->growing = true;
	m->plugin_call = volume_send_expand(&call, &size);
}

/* The mount is to go, so what waited for its turn is over. */
static void
end_growths(struct mount *m)
{
	struct err e = { 0 };
	struct growth *g;
	int r = err_say(&e, -ENOTCONN, "volume %s is being unmounted", m->rec.volume_id);

	while ((g = STAILQ_FIRST(&m->growths))) {
		STAILQ_REMOVE_HEAD(&m->growths, next);
		g->cb(m->sup, g->arg, r, 0, &e);
		free_growth(g);
	}
}

void
mount_advance(struct mount *m)
{
	if (m->busy || m->step == MOUNT_GONE)
		return;
	volume_stats_yield(m);
	if (m->unmounting)
		end_growths(m);
	if (volume_is_busy(m)) {
		m->waiting = true;
		return;
	}
	m->busy = true;
	if (!m->unmounting && !m->cb && !STAILQ_EMPTY(&m->growths))
		send_growth(m);
	else
		mount_begin(m);
}

void
mount_undo(struct mount *m)
{
	sup_timer_cancel(&m->timer);
	m->retry_usec = RETRY_USEC;
	m->settling = false;
	m->unmounting = true;
	mount_advance(m);
}

void
mount_expand(struct mount *m, const struct volume_size *size, volume_size_cb *cb, void *arg)
{
	struct growth *g = mem_new(struct growth);

	*g = (struct growth){ .required_bytes = size->required_bytes,
		.limit_bytes = size->limit_bytes,
		.cb = cb,
		.arg = arg };
	csi_volume_init(&g->volume);
	for (size_t i = 0; size->secrets && i < size->secrets->n; i++)
		string_map_set(
		    &g->volume.secrets, size->secrets->v[i].key, size->secrets->v[i].value);
	STAILQ_INSERT_TAIL(&m->growths, g, next);
	mount_advance(m);
}

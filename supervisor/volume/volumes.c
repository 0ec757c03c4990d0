// SPDX-License-Identifier: Apache-2.0
/* volumes.c: volumes on this node: staged, published, proven, and taken away again. Runs in:
 * supervisor. */
#include "supervisor/volume/volumes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-event.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "supervisor/alloc/alloc_runner.h"
#include "supervisor/store/store.h"
#include "supervisor/sup_calls.h"
#include "supervisor/sup_turn.h"
#include "supervisor/volume/plugins.h"
#include "supervisor/volume/volume_calls.h"

#define CALL_TIMEOUT_MS 120000 /* semantics.md 6.6 */
#define RETRY_USEC      5000000
#define RETRY_MAX_USEC  60000000

/* How far a mount is; the number is in its row. What a crash leaves at a -ING step is done again:
 * all calls are idempotent. */
enum mount_step {
	MOUNT_MOUNTING = 1,
	MOUNT_PUBLISHED = 3,
	MOUNT_UNPUBLISHING = 4,
	MOUNT_UNSTAGING = 5,
	MOUNT_GONE = 6, /* the row goes */
};

struct mount {
	struct mount *next;
	struct sup *sup;
	struct dirty row;
	struct mount_record rec; /* what is in the row */
	struct volume_mount_state state;
	struct csi_volume volume; /* while it is being mounted: secrets are in no row */
	struct csi_capability capability;
	enum mount_step step;
	const struct action *at; /* while it is busy */
	bool busy, waiting;      /* a call is out; or another mount of the volume is busy */
	bool unmounting;         /* the direction */
	bool cancelled;          /* nobody wants it mounted any more */
	bool begun;              /* something may be there to undo; else there is only the row */
	uint64_t call;
	struct plugin_call *plugin_call;
	struct sd_event_source *timer;
	uint64_t retry_usec;
	volume_cb *cb;
	void *arg;
};

struct volumes {
	struct mount *first;
};

static void advance(struct mount *m);

/* --- rows --- */

static int
write_row(struct sup *sup, struct dirty *d, struct err *e)
{
	struct mount *m = (struct mount *)(void *)((char *)d - offsetof(struct mount, row));
	struct text t = { 0 };
	int r;

	if (m->step == MOUNT_GONE)
		return STORE_EXEC(sup->store, STMT_MOUNT_DELETE, e, SV_TEXT(m->rec.key));
	m->rec.step = m->step;
	r = model_to_text(&mount_record_type, &m->rec, MODEL_COMPACT, &t);
	if (r < 0)
		return err_set(e, r, "write the row of volume %s", m->rec.volume);
	r = STORE_EXEC(sup->store, STMT_MOUNT_PUT, e, SV_TEXT(m->rec.key), SV_TEXT(t.text));
	text_done(&t);
	return r;
}

static void
mount_free(struct mount *m)
{
	struct mount **at = &m->sup->volumes->first;

	while (*at != m)
		at = &(*at)->next;
	*at = m->next;
	turn_forget_write(m->sup, &m->row);
	child_call_cancel(m->sup, m->call);
	plugin_call_cancel(m->plugin_call);
	m->timer = sd_event_source_disable_unref(m->timer);
	mount_record_done(&m->rec);
	csi_volume_done(&m->volume);
	free(m);
}

static void
on_written(struct sup *sup, struct dirty *d)
{
	struct mount *m = (struct mount *)(void *)((char *)d - offsetof(struct mount, row));

	if (m->step == MOUNT_GONE)
		mount_free(m);
}

static void
set_step(struct mount *m, enum mount_step step)
{
	m->step = step;
	m->state.published = step == MOUNT_PUBLISHED;
	turn_write(m->sup, &m->row);
	/*
	 * Synced is what stands before the first call of a direction, and the end, which frees a
	 * claim. What a power cut takes of the steps between changes nothing: mounting and undoing
	 * begin again from each of them.
	 */
	if (step == MOUNT_MOUNTING || step == MOUNT_UNPUBLISHING || step == MOUNT_GONE)
		turn_durable(m->sup);
}

static struct mount *
mount_new(struct sup *sup)
{
	struct mount *m = calloc(1, sizeof *m);

	if (!m)
		return NULL;
	m->sup = sup;
	m->row.write = write_row;
	m->row.written = on_written;
	m->retry_usec = RETRY_USEC;
	mount_record_init(&m->rec);
	csi_volume_init(&m->volume);
	m->next = sup->volumes->first;
	sup->volumes->first = m;
	return m;
}

/* What a request to the privileged side holds; the strings are the record's. */
static void
fill_state(struct mount *m)
{
	struct mount_record *rec = &m->rec;

	volume_place__init(&m->state.place);
	mount_proof__init(&m->state.proof);
	m->state.place.kind = (PluginKind)rec->kind;
	m->state.place.plugin = rec->plugin;
	m->state.place.volume = rec->volume;
	m->state.place.usage = rec->usage;
	m->state.place.alloc = (ProtobufCBinaryData){ .data = rec->alloc_id.b, .len = ID_BYTES };
	m->state.read_only = rec->read_only;
	m->state.published = rec->step == MOUNT_PUBLISHED;
	mount_record_to_proof(rec, &m->state.proof);
	m->step = (enum mount_step)rec->step;
}

static int
load_row(void *arg, const struct store_row *row, struct err *e)
{
	const char *json = store_col_text(row, 1);
	struct sup *sup = arg;
	struct err why = { 0 };
	struct mount *m = mount_new(sup);

	if (!m)
		return err_set(e, -ENOMEM, "read state.db");
	if (model_from_text(&mount_record_type, json, strlen(json), &m->rec, &why) < 0 ||
	    str_set(&m->rec.key, store_col_text(row, 0)) < 0 ||
	    !id_from_uuid(str(m->rec.alloc), &m->rec.alloc_id)) {
		log_error("state.db: a mount row is left alone: %s", why.msg);
		mount_free(m);
		return 0;
	}
	fill_state(m);
	m->begun = true;
	return 0;
}

int
volumes_new(struct sup *sup, struct err *e)
{
	sup->volumes = calloc(1, sizeof *sup->volumes);
	if (!sup->volumes)
		return err_set(e, -ENOMEM, "make the list of mounts");
	return store_each(sup->store, STMT_MOUNT_ALL, NULL, 0, load_row, sup, e);
}

void
volumes_free(struct sup *sup)
{
	if (!sup->volumes)
		return;
	while (sup->volumes->first)
		mount_free(sup->volumes->first);
	free(sup->volumes);
	sup->volumes = NULL;
}

static struct mount *
find(struct sup *sup, const struct sup_alloc *sa, const char *alias)
{
	for (struct mount *m = sup->volumes->first; m; m = m->next)
		if (m->step != MOUNT_GONE && id_equal(&m->rec.alloc_id, &sa->id) &&
		    str_eq(m->rec.alias, alias))
			return m;
	return NULL;
}

const struct volume_mount_state *
volume_find(struct sup *sup, const struct sup_alloc *sa, const char *alias)
{
	struct mount *m = find(sup, sa, alias);

	return m ? &m->state : NULL;
}

bool
volume_plugin_has_mounts(struct sup *sup, const char *plugin)
{
	for (struct mount *m = sup->volumes->first; m; m = m->next)
		if (m->step != MOUNT_GONE && str_eq(m->rec.plugin, plugin))
			return true;
	return false;
}

bool
volume_has_mounts(struct sup *sup, const char *namespace, const char *id)
{
	for (struct mount *m = sup->volumes->first; m; m = m->next)
		if (m->step != MOUNT_GONE && str_eq(m->rec.namespace, namespace) &&
		    str_eq(m->rec.volume_id, id))
			return true;
	return false;
}

/* --- one volume, one call at a time --- */

static bool
same_volume(const struct mount *a, const struct mount *b)
{
	return str_eq(a->rec.plugin, b->rec.plugin) && str_eq(a->rec.volume, b->rec.volume);
}

static bool
volume_busy(const struct mount *m)
{
	for (const struct mount *o = m->sup->volumes->first; o; o = o->next)
		if (o != m && o->busy && same_volume(o, m))
			return true;
	return false;
}

/* Lets the next one go that waited for this volume. */
static void
wake_next(struct mount *m)
{
	for (struct mount *o = m->sup->volumes->first; o; o = o->next) {
		if (!o->waiting || !same_volume(o, m))
			continue;
		o->waiting = false;
		advance(o);
		return;
	}
}

static int
on_retry(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct mount *m = userdata;

	m->timer = sd_event_source_disable_unref(m->timer);
	advance(m);
	return 0;
}

static void
finish(struct mount *m, int r, const struct err *e)
{
	volume_cb *cb = m->cb;

	m->busy = false;
	m->cb = NULL;
	csi_volume_done(&m->volume);
	csi_volume_init(&m->volume);
	if (r < 0 && m->unmounting) {
		if (!cb)
			log_warn("volume %s: %s; tried again in %llu s", m->rec.volume, e->msg,
			    (unsigned long long)m->retry_usec / 1000000);
		(void)sd_event_add_time_relative(
		    m->sup->event, &m->timer, CLOCK_MONOTONIC, m->retry_usec, 0, on_retry, m);
		m->retry_usec =
		    m->retry_usec * 2 < RETRY_MAX_USEC ? m->retry_usec * 2 : RETRY_MAX_USEC;
	}
	wake_next(m);
	if (cb)
		cb(m->sup, m->arg, r, e);
}

/* Is another alloc's mount on the same staged one? It keeps it. */
static bool
staging_is_shared(const struct mount *m)
{
	for (const struct mount *o = m->sup->volumes->first; o; o = o->next)
		if (o != m && o->begun && o->step != MOUNT_GONE && same_volume(o, m) &&
		    str_eq(o->rec.usage, m->rec.usage))
			return true;
	return false;
}

/* Nothing of it is mounted any more: the source gets the claim back. */
static void
release(struct mount *m)
{
	struct sup_alloc *sa = alloc_find(m->sup, &m->rec.alloc_id);

	for (size_t i = 0; sa && i < sa->group->volumes.n; i++)
		if (str_eq(sa->group->volumes.v[i].key, m->rec.alias))
			m->sup->source->ops->release(
			    m->sup->source, sa, &sa->group->volumes.v[i].value);
	if (sa && sa->runner)
		alloc_runner_volume_gone(sa->runner);
}

/* --- the way in and the way out --- */

/* One thing to do: begin() makes one call, whose callback ends in next() or finish(). */
struct action {
	enum mount_step step; /* what the row says meanwhile */
	bool staging;         /* with the staging directory, not the alloc's */
	void (*begin)(struct mount *m);
	volume_send *send; /* of ask_plugin() */
};

static void make_dir(struct mount *m), ask_plugin(struct mount *m), prove(struct mount *m),
    remove_dir(struct mount *m);

/* Where make_dir() finds a mount, the plugin's part has been done already: it is left out. */
static const struct action way_in[] = {
	{ MOUNT_MOUNTING, true, make_dir, NULL },
	{ MOUNT_MOUNTING, true, ask_plugin, volume_send_stage },
	{ MOUNT_MOUNTING, false, make_dir, NULL },
	{ MOUNT_MOUNTING, false, ask_plugin, volume_send_publish },
	{ MOUNT_MOUNTING, false, prove, NULL },
	{ MOUNT_PUBLISHED, false, NULL, NULL },
};
/* After a restart of the agent: is it still there? */
static const struct action look_again[] = {
	{ MOUNT_PUBLISHED, false, prove, NULL },
	{ MOUNT_PUBLISHED, false, NULL, NULL },
};
static const struct action way_out[] = {
	{ MOUNT_UNPUBLISHING, false, ask_plugin, volume_send_unpublish },
	{ MOUNT_UNPUBLISHING, false, remove_dir, NULL },
	{ MOUNT_UNSTAGING, true, ask_plugin, volume_send_unstage },
	{ MOUNT_UNSTAGING, true, remove_dir, NULL },
	{ MOUNT_GONE, false, NULL, NULL },
};
static const struct action *const unstaging = &way_out[2], *const gone = &way_out[4];

static bool
is_left_out(const struct mount *m)
{
	return m->at->staging && (!m->rec.stages || (m->unmounting && staging_is_shared(m)));
}

static void
begin(struct mount *m, const struct action *at)
{
	m->begun |= !m->unmounting;
	for (m->at = at; is_left_out(m); m->at++)
		;
	if (m->step != m->at->step)
		set_step(m, m->at->step);
	if (m->at->begin) {
		m->at->begin(m);
		return;
	}
	if (m->step == MOUNT_GONE)
		release(m);
	finish(m, 0, NULL);
}

static void
next(struct mount *m)
{
	struct err e = { 0 };

	if (m->cancelled && !m->unmounting)
		finish(m, err_say(&e, -ECANCELED, "it is not wanted any more"), &e);
	else
		begin(m, m->at + 1);
}

static VolumePlace
place_of(const struct mount *m)
{
	VolumePlace place = m->state.place;

	if (m->at->staging)
		place.alloc = (ProtobufCBinaryData){ 0 };
	return place;
}

static void
on_dir(struct sup *sup, void *arg, int r, const ProtobufCMessage *msg, int fd, const struct err *e)
{
	const MntVolumeDirMakeRep *made = (const MntVolumeDirMakeRep *)(const void *)msg;
	struct mount *m = arg;

	m->call = 0;
	if (r < 0) {
		finish(m, r, e);
		return;
	}
	if (!m->unmounting && made->is_mount)
		m->at++;
	next(m);
}

static void
make_dir(struct mount *m)
{
	MntVolumeDirMakeReq req = MNT_VOLUME_DIR_MAKE_REQ__INIT;
	VolumePlace place = place_of(m);

	req.place = &place;
	m->call = mnt_call_volume_dir_make(m->sup, &req, on_dir, m);
}

static void
remove_dir(struct mount *m)
{
	MntVolumeDirRemoveReq req = MNT_VOLUME_DIR_REMOVE_REQ__INIT;
	VolumePlace place = place_of(m);

	req.place = &place;
	m->call = mnt_call_volume_dir_remove(m->sup, &req, on_dir, m);
}

static void
on_called(struct sup *sup, void *arg, int r, const CsiCallRep *rep, const struct err *e)
{
	struct mount *m = arg;

	m->plugin_call = NULL;
	/* On the way out a volume that the plugin does not know is one that it has let go. */
	if (r < 0 && !(m->unmounting && r == -ENOENT))
		finish(m, r, e);
	else
		next(m);
}

static void
ask_plugin(struct mount *m)
{
	m->plugin_call =
	    m->at->send(m->sup, &m->rec, &m->volume, &m->capability, CALL_TIMEOUT_MS, on_called, m);
}

static void
on_proven(
    struct sup *sup, void *arg, int r, const ProtobufCMessage *msg, int fd, const struct err *e)
{
	const MntVolumeProveRep *rep = (const MntVolumeProveRep *)(const void *)msg;
	struct mount *m = arg;
	struct err why = { 0 };

	m->call = 0;
	if (r < 0 || !rep->proof) {
		(void)err_say(&why, r < 0 ? r : -EPROTO, "plugin %s published volume %s, but %s",
		    m->rec.plugin, m->rec.volume, r < 0 ? e->msg : "its mount was not proven");
		finish(m, why.code, &why);
		return;
	}
	mount_record_from_proof(&m->rec, rep->proof);
	mount_record_to_proof(&m->rec, &m->state.proof);
	turn_write(m->sup, &m->row);
	next(m);
}

static void
prove(struct mount *m)
{
	MntVolumeProveReq req = MNT_VOLUME_PROVE_REQ__INIT;

	req.place = &m->state.place;
	m->call = mnt_call_volume_prove(m->sup, &req, on_proven, m);
}

/* From wherever it is, into its direction. */
static void
advance(struct mount *m)
{
	if (m->busy || m->step == MOUNT_GONE)
		return;
	if (volume_busy(m)) {
		m->waiting = true;
		return;
	}
	m->busy = true;
	if (m->unmounting)
		begin(m, !m->begun ? gone : m->step == MOUNT_UNSTAGING ? unstaging : way_out);
	else
		begin(m, m->step == MOUNT_PUBLISHED ? look_again : way_in);
}

/* --- what others call --- */

/* One that is planned only is as new: its plugin may be another by now. */
static struct mount *
mount_make(struct sup *sup, struct sup_alloc *sa, const struct volume_request *request,
    const struct csi_volume *volume, struct err *e)
{
	struct plugin *p = plugin_find(sup, str(volume->plugin_id), CSI_PLUGIN_NODE);
	struct mount *m = find(sup, sa, str(request->name));
	cleanup_done(mount_record) struct mount_record rec;

	mount_record_init(&rec);
	if (m && m->begun)
		return m;

	if (!p || !plugin_node_info(p)) {
		(void)err_say(e, -EAGAIN, "plugin %s for volume %s does not run on this node",
		    str(volume->plugin_id), str(volume->id));
		return NULL;
	}
	if (mount_record_fill(&rec, sa, request, volume, p) < 0 || (!m && !(m = mount_new(sup)))) {
		(void)err_set(e, -ENOMEM, "mount volume %s", str(volume->id));
		return NULL;
	}
	rec.step = MOUNT_MOUNTING;
	if (model_equal(&mount_record_type, &m->rec, &rec))
		return m;
	mount_record_done(&m->rec);
	m->rec = rec;
	mount_record_init(&rec);
	fill_state(m);
	set_step(m, MOUNT_MOUNTING);
	return m;
}

void
volume_plan(struct sup *sup, struct sup_alloc *sa, const struct volume_request *request,
    const struct csi_volume *volume)
{
	struct err e = { 0 };

	if (!mount_make(sup, sa, request, volume, &e))
		log_debug("%s", e.msg); /* tried again, and told, when it is to be mounted */
}

bool
volume_can_mount(struct sup *sup, const struct sup_alloc *sa, const struct volume_request *request,
    const struct csi_volume *volume)
{
	const struct mount *m = find(sup, sa, str(request->name));
	struct plugin *p = plugin_find(sup, str(volume->plugin_id), CSI_PLUGIN_NODE);

	return (m && m->step == MOUNT_PUBLISHED) || (p && plugin_node_info(p));
}

void
volume_mount(struct sup *sup, struct sup_alloc *sa, const struct volume_request *request,
    const struct csi_volume *volume, volume_cb *cb, void *arg)
{
	struct err e = { 0 };
	struct mount *m = mount_make(sup, sa, request, volume, &e);

	if (!m) {
		cb(sup, arg, e.code, &e);
		return;
	}
	m->timer = sd_event_source_disable_unref(m->timer);
	csi_volume_done(&m->volume);
	if (csi_volume_copy(volume, &m->volume) < 0) {
		(void)err_set(&e, -ENOMEM, "mount volume %s", str(volume->id));
		cb(sup, arg, e.code, &e);
		return;
	}
	m->capability = (struct csi_capability){ .attachment_mode = request->attachment_mode,
		.access_mode = request->access_mode };
	m->unmounting = m->cancelled = false;
	m->cb = cb;
	m->arg = arg;
	advance(m);
}

void
volume_unmount(struct sup *sup, struct sup_alloc *sa, const struct volume_request *request,
    volume_cb *cb, void *arg)
{
	struct mount *m = find(sup, sa, str(request->name));

	if (!m) {
		cb(sup, arg, 0, NULL);
		return;
	}
	m->timer = sd_event_source_disable_unref(m->timer);
	m->unmounting = true;
	m->cb = cb;
	m->arg = arg;
	advance(m);
}

void
volume_mount_cancel(struct sup *sup, const struct sup_alloc *sa, const char *alias)
{
	struct mount *m = find(sup, sa, alias);
	struct err e = { 0 };

	if (!m || !m->cb || m->unmounting)
		return;
	m->cancelled = true;
	if (!m->waiting && !m->plugin_call)
		return; /* mount-helper answers soon */
	m->waiting = false;
	plugin_call_cancel(m->plugin_call);
	m->plugin_call = NULL;
	finish(m, err_say(&e, -ECANCELED, "it is not wanted any more"), &e);
}

void
volume_unmount_leave(struct sup *sup, const struct sup_alloc *sa, const char *alias)
{
	struct mount *m = find(sup, sa, alias);

	if (m && m->unmounting)
		m->cb = NULL;
}

bool
volume_say_pending(
    struct sup *sup, const struct sup_alloc *sa, const char *alias, char *buf, size_t size)
{
	const struct mount *m = find(sup, sa, alias);
	char what[256];

	if (!m || (!m->busy && !m->waiting))
		return false;
	if (m->plugin_call)
		plugin_call_say(m->plugin_call, what, sizeof what);
	else
		(void)snprintf(what, sizeof what, "%s",
		    m->waiting ? "another allocation's call for it has not ended yet"
			       : "mount-helper has not answered yet");
	(void)snprintf(buf, size, "volume %s: %s", m->rec.volume_id, what);
	return true;
}

bool
volume_alloc_has_mounts(struct sup *sup, const struct sup_alloc *sa)
{
	for (struct mount *m = sup->volumes->first; m; m = m->next)
		if (m->step != MOUNT_GONE && id_equal(&m->rec.alloc_id, &sa->id))
			return true;
	return false;
}

static void
undo_alone(struct mount *m)
{
	m->timer = sd_event_source_disable_unref(m->timer);
	m->retry_usec = RETRY_USEC;
	m->unmounting = true;
	advance(m);
}

void
volumes_undo_left(struct sup *sup)
{
	for (struct mount *m = sup->volumes->first; m; m = m->next) {
		const struct sup_alloc *sa = alloc_find(sup, &m->rec.alloc_id);

		/* An alloc whose row could not be read may still run. */
		if (m->step != MOUNT_GONE && !(sa && sa->runner) &&
		    (sa || sup->allocs->n_unreadable == 0))
			undo_alone(m);
	}
}

void
volumes_plugin_answers(struct sup *sup, const char *plugin)
{
	for (struct mount *m = sup->volumes->first; m; m = m->next)
		if (m->timer && str_eq(m->rec.plugin, plugin))
			undo_alone(m);
}

void
volumes_warn_left(struct sup *sup)
{
	for (const struct mount *m = sup->volumes->first; m; m = m->next)
		if (m->step != MOUNT_GONE)
			log_warn("volume %s of allocation %.8s stays mounted and claimed: plugin "
				 "%s has not let it go; this goes on when agent and plugin run "
				 "again",
			    m->rec.volume_id, m->rec.alloc, m->rec.plugin);
}

bool
volume_path_is_known(struct sup *sup, const char *path)
{
	char staging[600], publish[600];

	for (const struct mount *m = sup->volumes->first; m; m = m->next) {
		const struct mount_record *r = &m->rec;
		const char *kind = csi_plugin_kind_names[r->kind];

		(void)snprintf(staging, sizeof staging, "%s/%s/staging/%s/%s", kind, r->plugin,
		    r->volume, r->usage);
		(void)snprintf(publish, sizeof publish, "%s/%s/per-alloc/%s/%s/%s", kind, r->plugin,
		    r->alloc, r->volume, r->usage);
		if (strncmp(path, staging, strlen(path)) == 0 ||
		    strncmp(path, publish, strlen(path)) == 0)
			return true;
	}
	return false;
}

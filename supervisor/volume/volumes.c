// SPDX-License-Identifier: Apache-2.0
/* volumes.c: the mounts of volumes on this node, for the layers above. Runs in: supervisor. */
#include "supervisor/volume/volumes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-event.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/log.h"
#include "common/mem.h"
#include "supervisor/core/journal.h"
#include "supervisor/core/store.h"
#include "supervisor/core/sup_turn.h"
#include "supervisor/node/mounts.h"
#include "supervisor/volume/call_args.h"
#include "supervisor/volume/mount.h"
#include "supervisor/volume/plugin_calls.h"
#include "supervisor/volume/volume_repair.h"
#include "supervisor/volume/volume_stats.h"
#include "supervisor/volume/volume_watch.h"

static int
load_row(void *arg, const struct store_row *row, struct err *e)
{
	const char *json = store_col_text(row, 1);
	struct sup *sup = arg;
	struct err why = { 0 };
	struct mount *m = mount_new(sup);

	if (model_from_text(&mount_record_type, json, strlen(json), &m->rec, &why) < 0 ||
	    !id_from_uuid(str(m->rec.alloc), &m->rec.alloc_id)) {
		journal_error(
		    JOURNAL_STATE, NULL, "state.db: the row of a mount is ignored: %s", why.msg);
		mount_free(m);
		return 0;
	}
	/* Nothing is mounted after a reboot; the same steps mount it again. */
	if (!str_eq(m->rec.boot_id, sup->boot_id) && m->rec.step == MOUNT_PUBLISHED)
		m->rec.step = MOUNT_MOUNTING;
	/* A call may have been out when the agent ended. */
	if (m->rec.step != MOUNT_PUBLISHED)
		m->rec.unsure |= str_eq(m->rec.boot_id, sup->boot_id);
	if (!m->rec.staging)
		str_set(&m->rec.staging, m->rec.usage);
	str_set(&m->rec.boot_id, sup->boot_id);
	mount_fill_state(m);
	m->begun = true;
	return 0;
}

int
volumes_new(struct sup *sup, struct err *e)
{
	sup->volumes = mem_new(struct volumes);
	sup->volumes->repair = volume_repair_new(sup);
	sup->volumes->stats = volume_stats_new(sup);
	sup->volumes->watch = volume_watch_new(sup);
	return store_each(sup->store, STMT_MOUNT_ALL, NULL, 0, load_row, sup, e);
}

void
volumes_free(struct sup *sup)
{
	if (!sup->volumes)
		return;
	volume_repair_free(sup->volumes->repair);
	volume_watch_free(sup->volumes->watch);
	while (!LIST_EMPTY(&sup->volumes->mounts))
		mount_free(LIST_FIRST(&sup->volumes->mounts));
	volume_stats_free(sup->volumes->stats);
	hash_done(&sup->volumes->by_volume);
	hash_done(&sup->volumes->by_alloc);
	hash_done(&sup->volumes->by_id);
	free_p(&sup->volumes);
}

static struct mount *
find_mount(struct sup *sup, const struct sup_alloc *sa, const char *alias)
{
	struct mount *m = NULL;

	while ((m = mount_next_of_alloc(sup, &sa->id, m)))
		if (m->step != MOUNT_GONE && str_eq(m->rec.alias, alias))
			return m;
	return NULL;
}

const struct volume_mount_state *
volume_find(struct sup *sup, const struct sup_alloc *sa, const char *alias)
{
	struct mount *m = find_mount(sup, sa, alias);

	return m ? &m->state : NULL;
}

bool
volume_get_mounted(
    struct sup *sup, const struct sup_alloc *sa, const char *alias, struct csi_volume *ret)
{
	const struct mount *m = find_mount(sup, sa, alias);

	if (!m || m->step != MOUNT_PUBLISHED)
		return false;
	str_set(&ret->id, m->rec.volume_id);
	str_set(&ret->namespace, m->rec.namespace);
	str_set(&ret->external_id, m->rec.external_id);
	str_set(&ret->plugin_id, m->rec.plugin);
	return true;
}

bool
volume_plugin_has_mounts(struct sup *sup, const char *plugin, enum csi_plugin_kind kind)
{
	struct mount *m;

	LIST_FOREACH (m, &sup->volumes->mounts, link)
		if (m->step != MOUNT_GONE && m->rec.kind == kind && str_eq(m->rec.plugin, plugin))
			return true;
	return false;
}

size_t
volumes_of_plugin(struct sup *sup, const char *plugin)
{
	struct mount *m;
	size_t n = 0;

	/* A volume is counted at the first of its mounts. */
	LIST_FOREACH (m, &sup->volumes->mounts, link)
		n += str_eq(m->rec.plugin, plugin) && mount_next_of_volume(m, NULL) == m;
	return n;
}

int
volume_refuse_mounted(struct sup *sup, const char *plugin, const char *external_id, struct err *e)
{
	struct mount *m;

	LIST_FOREACH (m, &sup->volumes->mounts, link)
		if (m->step != MOUNT_GONE && str_eq(m->rec.plugin, plugin) &&
		    str_eq(m->rec.external_id, external_id))
			return err_say(e, -EBUSY,
			    "FailedPrecondition: volume %s is mounted on this node for allocation "
			    "%.8s",
			    m->rec.volume_id, m->rec.alloc);
	return 0;
}

bool
volume_is_mounted_for(struct sup *sup, const char *alloc_id, const char *namespace, const char *id)
{
	struct mount *m = NULL;

	while ((m = mount_next_of_id(sup, namespace, id, m)))
		if (m->step != MOUNT_GONE && str_eq(m->rec.alloc, alloc_id))
			return true;
	return false;
}

void
volume_retry_unmounts(struct sup *sup, const char *namespace, const char *id)
{
	struct mount *m = NULL;

	while ((m = mount_next_of_id(sup, namespace, id, m)))
		if (sup_timer_is_set(&m->timer) && !m->settling)
			mount_undo(m);
}

/* Returns the alloc's mount, or makes it. The record of a mount that has not begun is made again,
 * because the plugin may have changed. */
static struct mount *
make_mount(struct sup *sup, struct sup_alloc *sa, const struct volume_request *request,
    const struct csi_volume *volume, struct err *e)
{
	struct plugin *p = plugin_find(sup, str(volume->plugin_id), CSI_PLUGIN_NODE);
	struct mount *m = find_mount(sup, sa, str(request->name));
	cleanup_done(mount_record) struct mount_record rec;

	mount_record_init(&rec);
	if (m && m->begun)
		return m;
	if (!p || !plugin_node_info(p)) {
		(void)err_say(e, -EAGAIN, "plugin %s for volume %s does not run on this node",
		    str(volume->plugin_id), str(volume->id));
		return NULL;
	}
	mount_record_fill(&rec, sa, request, volume, p, sup->boot_id);
	if (!m)
		m = mount_new(sup);
	rec.step = MOUNT_MOUNTING;
	if (model_equal(&mount_record_type, &m->rec, &rec))
		return m;
	mount_record_done(&m->rec);
	m->rec = rec;
	mount_record_init(&rec);
	mount_fill_state(m);
	mount_set_step(m, MOUNT_MOUNTING);
	return m;
}

void
volume_plan(struct sup *sup, struct sup_alloc *sa, const struct volume_request *request,
    const struct csi_volume *volume)
{
	struct err e = { 0 };

	if (!make_mount(sup, sa, request, volume, &e))
		log_debug("%s", e.msg); /* volume_mount() tries again and reports it */
}

bool
volume_can_mount(struct sup *sup, const struct sup_alloc *sa, const struct volume_request *request,
    const struct csi_volume *volume)
{
	const struct mount *m = find_mount(sup, sa, str(request->name));
	struct plugin *p = plugin_find(sup, str(volume->plugin_id), CSI_PLUGIN_NODE);

	return (m && m->step == MOUNT_PUBLISHED) || (p && plugin_node_info(p));
}

void
volume_mount(struct sup *sup, struct sup_alloc *sa, const struct volume_request *request,
    const struct csi_volume *volume, volume_cb *cb, void *arg)
{
	struct err e = { 0 };
	struct mount *m = NULL;

	if (call_args_check(volume, &e) == 0 && call_args_check_secrets(volume, &e) == 0)
		m = make_mount(sup, sa, request, volume, &e);
	if (!m) {
		cb(sup, arg, e.code, &e);
		return;
	}
	sup_timer_cancel(&m->timer);
	csi_volume_done(&m->volume);
	csi_volume_copy(volume, &m->volume);
	mount_options_merge(&m->volume.mount_options, request->mount_options);
	m->capability = (struct csi_capability){ .attachment_mode = request->attachment_mode,
		.access_mode = request->access_mode };
	m->unmounting = m->cancelled = false;
	m->cb = cb;
	m->arg = arg;
	mount_advance(m);
}

void
volume_unmount(struct sup *sup, struct sup_alloc *sa, const struct volume_request *request,
    volume_cb *cb, void *arg)
{
	struct mount *m = find_mount(sup, sa, str(request->name));

	if (!m) {
		cb(sup, arg, 0, NULL);
		return;
	}
	sup_timer_cancel(&m->timer);
	m->unmounting = true;
	m->cb = cb;
	m->arg = arg;
	mount_advance(m);
}

void
volume_mount_cancel(struct sup *sup, const struct sup_alloc *sa, const char *alias)
{
	struct mount *m = find_mount(sup, sa, alias);
	struct err e = { 0 };

	if (!m || !m->cb || m->unmounting)
		return;
	m->cancelled = true;
	/* A helper answers soon, and the call of volume_expand_here() is not part of the mounting.
	 */
	if (m->growing || (!m->waiting && !m->plugin_call))
		return;
	m->waiting = false;
	mount_cancel_call(m);
	mount_finish(m, err_say(&e, -ECANCELED, "the mount was cancelled"), &e);
}

void
volume_unmount_leave(struct sup *sup, const struct sup_alloc *sa, const char *alias)
{
	struct mount *m = find_mount(sup, sa, alias);

	if (m && m->unmounting)
		m->cb = NULL;
}

static struct mount *
find_published(struct sup *sup, const struct sup_alloc *sa, const char *volume)
{
	struct mount *m = NULL;

	while ((m = mount_next_of_alloc(sup, &sa->id, m)))
		if (m->step == MOUNT_PUBLISHED && str_eq(m->rec.volume_id, volume))
			return m;
	return NULL;
}

void
volume_expand_here(struct sup *sup, const struct sup_alloc *sa, const char *volume,
    const struct volume_size *size, volume_size_cb *cb, void *arg)
{
	struct mount *m = sa ? find_published(sup, sa, volume) : NULL;
	struct err e = { 0 };

	if (m) {
		mount_expand(m, size, cb, arg);
		return;
	}
	(void)err_say(&e, -ENOTCONN, "volume %s is not mounted for that allocation", volume);
	cb(sup, arg, e.code, 0, &e);
}

const struct volume_trouble *
volume_trouble_of(struct sup *sup, const char *namespace, const char *id, const char **ret_alloc)
{
	struct mount *m = NULL;

	while ((m = mount_next_of_id(sup, namespace, id, m))) {
		if (m->step == MOUNT_GONE || m->trouble.tries == 0)
			continue;
		*ret_alloc = m->rec.alloc;
		return &m->trouble;
	}
	return NULL;
}

void
volume_trouble_say(const struct volume_trouble *t, char *buf, size_t size)
{
	int64_t now = clock_real_ns(), next = t->next_ns > now ? t->next_ns - now : 0;

	(void)snprintf(buf, size, "%.380s; tried %u time%s in %lld s, and again in %lld s",
	    t->error, t->tries, t->tries == 1 ? "" : "s",
	    (long long)((now - t->since_ns) / NS_PER_S),
	    (long long)((next + NS_PER_S - 1) / NS_PER_S));
}

bool
mount_say_pending(const struct mount *m, char *buf, size_t size)
{
	char what[ERR_MSG_SIZE];

	if ((!m->busy && !m->waiting && !sup_timer_is_set(&m->timer)))
		return false;
	if (m->plugin_call)
		plugin_call_say(m->plugin_call, what, sizeof what);
	else if (m->settling)
		(void)snprintf(what, sizeof what,
		    "unmounted, and checked again after a few seconds, because an earlier call may "
		    "still take effect");
	else if (sup_timer_is_set(&m->timer))
		volume_trouble_say(&m->trouble, what, sizeof what);
	else
		(void)snprintf(what, sizeof what, "%s",
		    m->waiting ? "waits for the call of another allocation"
			       : "waits for a helper's answer");
	(void)snprintf(buf, size, "volume %s: %s", m->rec.volume_id, what);
	return true;
}

bool
volume_say_pending(
    struct sup *sup, const struct sup_alloc *sa, const char *alias, char *buf, size_t size)
{
	const struct mount *m = find_mount(sup, sa, alias);

	return m && mount_say_pending(m, buf, size);
}

bool
volume_alloc_has_mounts(struct sup *sup, const struct sup_alloc *sa)
{
	struct mount *m = NULL;

	while ((m = mount_next_of_alloc(sup, &sa->id, m)))
		if (m->step != MOUNT_GONE)
			return true;
	return false;
}

void
volumes_report_gone(struct sup *sup, volume_gone_cb *cb)
{
	sup->volumes->gone = cb;
}

void
volumes_report_grown(struct sup *sup, volume_grown_cb *cb)
{
	sup->volumes->grown = cb;
}

void
volumes_report_lost(struct sup *sup, volume_lost_cb *cb)
{
	sup->volumes->lost = cb;
}

void
volumes_report_state(struct sup *sup, volume_state_cb *cb)
{
	sup->volumes->state = cb;
}

void
volumes_undo_left(struct sup *sup, bool (*has_hooks)(const struct sup_alloc *sa))
{
	struct mount *m;

	LIST_FOREACH (m, &sup->volumes->mounts, link) {
		const struct sup_alloc *sa = alloc_find(sup, &m->rec.alloc_id);

		/* An alloc whose row could not be read may still run. */
		if (m->step != MOUNT_GONE && !has_hooks(sa) &&
		    (sa || sup->allocs->n_unreadable == 0))
			mount_undo(m);
	}
}

void
volumes_compare_soon(struct sup *sup)
{
	volume_watch_soon(sup->volumes->watch);
}

void
volumes_plugin_answers(struct sup *sup, const char *plugin)
{
	struct mount *m;

	LIST_FOREACH (m, &sup->volumes->mounts, link)
		if (sup_timer_is_set(&m->timer) && !m->settling && str_eq(m->rec.plugin, plugin))
			mount_undo(m);
	volumes_compare_soon(sup);
}

void
volumes_warn_left(struct sup *sup)
{
	struct mount *m;

	LIST_FOREACH (m, &sup->volumes->mounts, link)
		if (m->step != MOUNT_GONE)
			journal_warn(JOURNAL_VOLUME, ABOUT_MOUNT(m),
			    "volume %s of allocation %.8s stays mounted and claimed: plugin "
			    "%s has not unmounted it; this is retried when agent and plugin "
			    "run again",
			    m->rec.volume_id, m->rec.alloc, m->rec.plugin);
}

/* Returns true if dir is path or above it. */
static bool
leads_to(const char *dir, const char *path)
{
	size_t len = strlen(dir);

	return strncmp(dir, path, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

bool
volume_path_is_known(struct sup *sup, const char *path)
{
	const size_t skip = strlen("csi/");
	char staging[MOUNT_PATH_SIZE], publish[MOUNT_PATH_SIZE];
	struct mount *m;

	LIST_FOREACH (m, &sup->volumes->mounts, link) {
		mount_path(m, true, staging);
		mount_path(m, false, publish);
		if (leads_to(path, staging + skip) || leads_to(path, publish + skip))
			return true;
	}
	return false;
}

void
volume_published_each(const struct sup *sup, volume_published_cb *found, void *arg)
{
	const struct mount *m;

	LIST_FOREACH (m, &sup->volumes->mounts, link)
		if (m->step == MOUNT_PUBLISHED)
			found(
			    arg, m->rec.namespace, m->rec.volume_id, &m->state.place, m->rec.block);
}

int
volume_unmounted_each(const struct sup *sup, void (*found)(void *arg, const char *path), void *arg)
{
	const struct mount *m;
	char path[MOUNT_PATH_SIZE];
	int r = 0;

	LIST_FOREACH (m, &sup->volumes->mounts, link) {
		if (m->step != MOUNT_PUBLISHED || m->rec.block)
			continue;
		mount_path(m, false, path);
		r = mounts_has(sup, path);
		if (r < 0)
			break;
		if (r == 0)
			found(arg, path);
	}
	return r < 0 ? r : 0;
}

// SPDX-License-Identifier: Apache-2.0
/* local_api_volume_create.c: creates and deletes volumes through their plugins, over the API. Runs
 * in: supervisor. */
#include <errno.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "supervisor/server/api/local_api.h"
#include "supervisor/server/job/local_marks.h"
#include "supervisor/volume/plugins.h"
#include "supervisor/volume/controller_calls.h"
#include "supervisor/volume/volumes.h"

/* A volume that is created or deleted. Its row is durable before the plugin is called. */
struct volume_op {
	struct api_req *req;
	struct local_volume *lv;
	bool was_new; /* this request made the row */
};

/* Returns true for an error that means: the plugin refused, and made no volume. */
static bool
is_refused(int r)
{
	return r == -EINVAL || r == -EEXIST || r == -EACCES || r == -ENOSPC || r == -ERANGE ||
	       r == -EOPNOTSUPP || r == -ENOENT;
}

/* Returns true for an error that means: the plugin was not called. */
static bool
is_uncalled(int r)
{
	return r == -EHOSTDOWN || r == -ENOMEM || r == -EBUSY;
}

static void
on_created(struct sup *sup, void *arg, int r, const struct err *e)
{
	cleanup_free struct volume_op *op = arg;
	struct local *l = local_of_sup(sup);
	struct local_volume *lv = op->lv;
	struct err why = { 0 };

	lv->busy = NULL;
	if (r >= 0 && *str(lv->vol.external_id) &&
	    local_api_check_external(l, &lv->vol, &why) < 0) {
		/* The plugin answered with a volume that is registered already. */
		str_set(&lv->vol.external_id, NULL);
		r = why.code;
		e = &why;
	}
	if (r >= 0 && *str(lv->vol.external_id)) {
		local_volume_changed(l, lv);
		local_mark_node(l);
		local_api_reply_volume(sup, op->req, lv);
		return;
	}
	api_reply_error(op->req, r == -EINVAL || r == -EOPNOTSUPP ? 400 : 500,
	    "create volume \"%s\": %s", lv->vol.id, r < 0 ? e->msg : "the plugin returned no id");
	/* If it is not known whether the plugin made the volume, the row stays, so that the volume
	 * can be created again or deleted. */
	if (op->was_new && (is_refused(r) || is_uncalled(r)))
		local_volume_forget(l, lv);
	else
		local_volume_changed(l, lv);
}

static int
check_creator(struct local *l, const struct csi_volume *vol, struct err *e)
{
	cleanup_done(csi_plugin) struct csi_plugin plugin;
	bool can = false, healthy = false, unknown = false;

	if (!local_plugin_get(l, vol->plugin_id, &plugin))
		return err_say(e, -EINVAL,
		    "volume \"%s\": no plugin \"%s\" answers on this node: a task with a "
		    "csi_plugin block of this id must run; its events say why it is not healthy",
		    vol->id, vol->plugin_id);
	for (size_t i = 0; i < plugin.controllers.n; i++) {
		const struct csi_info *info = &plugin.controllers.v[i].value;

		can |= info->controller_info && info->controller_info->supports_create_delete;
		healthy |= info->healthy;
		unknown |= !info->controller_info;
	}
	if (!can && unknown)
		return err_say(e, -EAGAIN,
		    "volume \"%s\": the controller of plugin \"%s\" has not answered yet: repeat "
		    "it "
		    "when the plugin is healthy",
		    vol->id, vol->plugin_id);
	if (!can)
		return err_say(e, -EINVAL,
		    "volume \"%s\": plugin \"%s\" has no controller that creates volumes", vol->id,
		    vol->plugin_id);
	if (!healthy)
		return err_say(e, -EAGAIN,
		    "volume \"%s\": the controller of plugin \"%s\" is not healthy", vol->id,
		    vol->plugin_id);
	return 0;
}

/* Checks whether lv, which has the id of *vol, may be created again: only with the same parameters,
 * or larger. */
static int
check_repeat(const struct local_volume *lv, struct csi_volume *vol, bool *ret_larger, struct err *e)
{
	const int64_t min = vol->requested_capacity_min, max = vol->requested_capacity_max;
	char field[128];

	*ret_larger = false;
	if (lv->busy)
		return err_say(e, -EBUSY, "volume \"%s\" is being %s", vol->id, lv->busy);
	if (*str(lv->vol.external_id) && min > lv->vol.capacity && (max == 0 || max >= min)) {
		*ret_larger = true;
		vol->requested_capacity_min = lv->vol.requested_capacity_min;
		vol->requested_capacity_max = lv->vol.requested_capacity_max;
	}
	if (!*str(vol->name))
		str_set(&vol->name, lv->vol.name);
	if (csi_volume_creation_differs(&lv->vol, vol, field, sizeof field))
		return err_say(
		    e, -EEXIST, "volume \"%s\" exists already, with another %s", vol->id, field);
	vol->requested_capacity_min = min;
	vol->requested_capacity_max = max;
	return 0;
}

/* A repeated request changes nothing but the secrets, which it takes from *vol. */
static void
take_secrets(struct local *l, struct local_volume *lv, struct csi_volume *vol)
{
	struct string_map old = lv->vol.secrets;

	if (!string_maps_differ(&old, &vol->secrets) && lv->vol.secrets_lost == vol->secrets_lost)
		return;
	lv->vol.secrets_lost = vol->secrets_lost;
	lv->vol.secrets = vol->secrets;
	vol->secrets = old;
	local_volume_changed(l, lv);
}

/* Makes the volume's row, and calls the plugin. lv is the present row, of an earlier creation whose
 * end is unknown, or NULL. CSI allows the same call again. */
static void
begin_creation(
    struct sup *sup, struct api_req *req, struct local_volume *lv, struct csi_volume *vol)
{
	struct volume_op *op = mem_new(struct volume_op);
	struct local *l = local_of_sup(sup);

	op->req = req;
	op->was_new = !lv;
	if (lv)
		local_api_replace_volume(l, lv, vol);
	op->lv = lv ?: local_volume_new(l, vol);
	op->lv->busy = "created";
	volume_create(sup, &op->lv->vol, on_created, op);
}

/* A creation that waits for the plugin's capacity. */
struct capacity_wait {
	struct api_req *req;
	struct csi_volume vol;
};

static void create(struct sup *sup, struct api_req *req, struct csi_volume *vol, bool has_room);

/* Checks that the plugin can make a volume of this size at all. */
static int
check_capacity(const struct csi_volume *vol, const struct csi_capacity *c, struct err *e)
{
	const long long min = vol->requested_capacity_min, max = vol->requested_capacity_max;
	const char *plugin = str(vol->plugin_id);

	if (c->available > 0 && min > c->available)
		return err_say(e, -ENOSPC,
		    "create volume \"%s\": plugin \"%s\" has %lld bytes left for such volumes, and "
		    "capacity_min is %lld",
		    vol->id, plugin, (long long)c->available, min);
	if (c->largest > 0 && min > c->largest)
		return err_say(e, -EINVAL,
		    "create volume \"%s\": plugin \"%s\" makes volumes of at most %lld bytes, and "
		    "capacity_min is %lld",
		    vol->id, plugin, (long long)c->largest, min);
	if (max > 0 && max < c->smallest)
		return err_say(e, -EINVAL,
		    "create volume \"%s\": plugin \"%s\" makes volumes of at least %lld bytes, and "
		    "capacity_max is %lld",
		    vol->id, plugin, (long long)c->smallest, max);
	return 0;
}

/* If the capacity is unknown, the plugin decides; 0 may be the answer of one that needs to know
 * more than GetCapacity says, such as the source of the volume. */
static void
on_capacity(
    struct sup *sup, void *arg, int r, const struct csi_capacity *capacity, const struct err *e)
{
	cleanup_free struct capacity_wait *w = arg;
	struct err why = { 0 };

	if (r >= 0 && check_capacity(&w->vol, capacity, &why) < 0)
		api_reply_error(w->req, local_api_volume_status(why.code), "%s", why.msg);
	else
		create(sup, w->req, &w->vol, true);
	csi_volume_done(&w->vol);
}

/* Empties *vol. The answer may come within the call. */
static void
ask_capacity(struct sup *sup, struct api_req *req, struct csi_volume *vol)
{
	struct capacity_wait *w = mem_new(struct capacity_wait);

	w->req = req;
	w->vol = *vol;
	csi_volume_init(vol);
	volume_capacity(sup, &w->vol, on_capacity, w);
}

/* has_room: the plugin has been asked for its capacity. */
static void
create(struct sup *sup, struct api_req *req, struct csi_volume *vol, bool has_room)
{
	struct local *l = local_of_sup(sup);
	struct local_volume *lv = local_volume_find(l, vol->namespace, vol->id);
	bool larger = false;
	struct err e = { 0 };
	int r = lv ? check_repeat(lv, vol, &larger, &e) : 0;

	if (r >= 0 && larger) {
		local_api_expand_volume(sup, req, lv, vol);
		return;
	}
	if (r >= 0 && lv && *str(lv->vol.external_id)) {
		take_secrets(l, lv, vol);
		if (lv->vol.node_expansion)
			local_api_resume_expansion(sup, req, lv);
		else
			local_api_reply_volume(sup, req, lv); /* its answer may have been lost */
		return;
	}
	if (r >= 0)
		r = check_creator(l, vol, &e);
	if (r < 0) {
		api_reply_error(req, local_api_volume_status(r), "%s", e.msg);
		return;
	}
	str_set(&vol->external_id, NULL);
	/* The plugin is not asked for its capacity if an earlier request may have made the volume,
	 * whose size is then already subtracted, nor for a copy, because GetCapacity does not name
	 * the source. */
	if (lv || has_room || *str(vol->snapshot_id) || *str(vol->clone_id))
		begin_creation(sup, req, lv, vol);
	else
		ask_capacity(sup, req, vol);
}

void
local_api_create_volume(struct sup *sup, struct api_req *req)
{
	cleanup_done(csi_volume) struct csi_volume vol;
	struct err e = { 0 };
	int r = local_api_count_volumes(req, &e);

	csi_volume_init(&vol);
	if (r > 1)
		r = err_say(&e, -EINVAL, "only one volume can be created by a request");
	if (r >= 0)
		r = local_api_read_volume(req, 0, &vol, &e);
	if (r < 0)
		api_reply_error(req, local_api_volume_status(r), "%s", e.msg);
	else
		create(sup, req, &vol, false);
}

static void
on_deleted(struct sup *sup, void *arg, int r, const struct err *e)
{
	cleanup_free struct volume_op *op = arg;
	struct local *l = local_of_sup(sup);
	struct local_volume *lv = op->lv;

	lv->busy = NULL;
	if (r < 0) {
		api_reply_error(op->req, r == -EOPNOTSUPP ? 400 : 500, "delete volume \"%s\": %s",
		    lv->vol.id, e->msg);
		local_mark_node(l);
		return;
	}
	local_volume_forget(l, lv);
	api_reply_text(op->req, 200, "application/json", "", 0);
}

/* Deletes it with its secrets and those of the request. */
static void
begin_deletion(struct sup *sup, struct volume_op *op)
{
	cleanup_done(csi_volume) struct csi_volume vol;

	csi_volume_init(&vol);
	csi_volume_copy(&op->lv->vol, &vol);
	local_api_read_secrets(op->req, &vol.secrets);
	volume_delete(sup, &vol, on_deleted, op);
}

/* If the end of the volume's creation is unknown, only the plugin knows its id, so it is created
 * again before it is deleted. */
static void
on_created_to_delete(struct sup *sup, void *arg, int r, const struct err *e)
{
	struct volume_op *op = arg;

	if (r < 0) {
		on_deleted(sup, op, is_refused(r) ? 0 : r, e);
		return;
	}
	local_volume_changed(local_of_sup(sup), op->lv);
	begin_deletion(sup, op);
}

void
local_api_delete_volume(struct sup *sup, struct api_req *req)
{
	struct local_volume *lv = local_api_find_volume(sup, req);
	struct volume_op *op;

	if (!lv || !local_api_check_unused(req, lv))
		return;
	op = mem_new(struct volume_op);
	*op = (struct volume_op){ .req = req, .lv = lv };
	lv->busy = "deleted";
	turn_write(sup, &lv->row);
	if (*str(lv->vol.external_id))
		begin_deletion(sup, op);
	else
		volume_create(sup, &lv->vol, on_created_to_delete, op);
}

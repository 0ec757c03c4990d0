// SPDX-License-Identifier: Apache-2.0
/* local_api_volumes.c: shows, registers, creates and deletes volumes over the API. Runs in:
 * supervisor. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "supervisor/server/api/local_api.h"
#include "supervisor/server/job/local_namespaces.h"
#include "supervisor/server/claim/claims.h"
#include "supervisor/volume/plugins.h"
#include "supervisor/volume/volumes.h"
#include "supervisor/server/job/local_marks.h"
#include "supervisor/server/claim/local_claims.h"

bool
local_api_wants_csi(const struct api_req *req)
{
	const char *type = api_query(req, "type");

	return type && strcmp(type, "csi") == 0;
}

static bool
query_fits(const struct api_req *req, const char *name, const char *value)
{
	const char *wanted = api_query(req, name);

	return !wanted || !*wanted || str_eq(wanted, value);
}

void
local_api_fill_stub(struct alloc *ret, const struct sup_alloc *sa)
{
	alloc_copy(&sa->a, ret);
	alloc_fill_stub(ret, &sa->job->job);
}

static void
add_alloc_stubs(struct local *l, struct csi_volume *view, const struct strings *ids)
{
	for (size_t i = 0; i < ids->n; i++) {
		struct id id;
		const struct sup_alloc *sa =
		    id_from_uuid(ids->v[i], &id) ? alloc_find(l->base.sup, &id) : NULL;

		if (sa)
			local_api_fill_stub(list_add(alloc, &view->allocations), sa);
	}
}

/* Copies the volume, with the fields that only the API shows, into *ret, which must hold nothing.
 */
static void
view_volume(struct local *l, struct local_volume *lv, bool with_allocs, struct csi_volume *ret)
{
	csi_volume_copy(&lv->vol, ret);
	local_volume_refresh(l, ret);
	ret->schedulable = ret->schedulable && !lv->busy;
	csi_volume_fill_view(ret);
	if (!with_allocs)
		return;
	add_alloc_stubs(l, ret, &ret->read_allocs);
	add_alloc_stubs(l, ret, &ret->write_allocs);
}

void
local_api_list_volumes(struct sup *sup, struct api_req *req)
{
	struct local *l = local_of_sup(sup);
	size_t n;
	cleanup_free struct local_key **volumes = local_volumes_sorted(l, &n);
	struct api_list list;

	api_list_begin_named(&list, req);
	for (size_t i = 0; local_api_wants_csi(req) && i < n; i++) {
		struct local_volume *lv = local_volume_of(volumes[i]);
		cleanup_done(csi_volume) struct csi_volume view;

		csi_volume_init(&view);
		if (!api_prefix_fits(req, lv->vol.id) ||
		    !api_namespace_fits(req, lv->vol.namespace) ||
		    !query_fits(req, "plugin_id", lv->vol.plugin_id))
			continue;
		view_volume(l, lv, false, &view);
		api_list_add(&list, &csi_volume_stub_type, &view);
	}
	api_list_reply(&list, req);
}

struct local_volume *
local_api_find_volume(struct sup *sup, struct api_req *req)
{
	struct local_volume *lv =
	    local_volume_find(local_of_sup(sup), api_namespace(req), api_param(req, 0));

	if (!lv)
		api_reply_error(req, 404, "volume not found");
	return lv;
}

void
local_api_get_volume(struct sup *sup, struct api_req *req)
{
	struct local_volume *lv = local_api_find_volume(sup, req);
	cleanup_done(csi_volume) struct csi_volume view;

	csi_volume_init(&view);
	if (!lv)
		return;
	view_volume(local_of_sup(sup), lv, true, &view);
	api_reply_model(req, &csi_volume_view_type, &view);
}

static int
check_volume(struct local *l, const struct csi_volume *vol, struct err *e)
{
	struct problems p = { 0 };
	int r;

	if (!local_namespace_find(l, str(vol->namespace)))
		model_problem(&p, "volume \"%.140s\" is in nonexistent namespace \"%.140s\"",
		    str(vol->id), str(vol->namespace));
	if (*str(vol->plugin_id) && !name_is_component(vol->plugin_id))
		model_problem(&p, "plugin id \"%.140s\" is not a name", vol->plugin_id);
	csi_volume_validate(vol, &p);
	r = problems_err(&p, e);
	problems_done(&p);
	return r;
}

/* Reads the i-th volume of {"Volumes":[…]}. If the path has an id, it must be that of the volume.
 */
static int
read_volume(struct api_req *req, size_t i, struct csi_volume *ret, struct err *e)
{
	const json_t *list = json_object_get(api_body(req, e), "Volumes");
	const char *id = api_param(req, 0);
	int r = model_from_json(&csi_volume_request_type, json_array_get(list, i), ret, e);

	if (r < 0)
		return r;
	if (!ret->id && id)
		str_set(&ret->id, id);
	if (!ret->namespace)
		str_set(&ret->namespace, api_namespace(req));
	if (!ret->name)
		str_set(&ret->name, ret->id);
	model_defaults(&csi_volume_type, ret);
	if (id && strcmp(id, ret->id) != 0)
		return err_say(
		    e, -EINVAL, "volume ID \"%.140s\" does not match the id in the path", ret->id);
	return check_volume(local_of_sup(api_req_sup(req)), ret, e);
}

/* Returns how many volumes the body has (at least one), or -EINVAL. */
static int
count_volumes(struct api_req *req, struct err *e)
{
	const json_t *body = api_body(req, e), *list = json_object_get(body, "Volumes");

	if (!body)
		return -EINVAL;
	if (!json_is_array(list) || json_array_size(list) == 0 || json_array_size(list) > 1000)
		return err_say(e, -EINVAL, "the body has no list Volumes with 1 to 1000 volumes");
	for (size_t i = 0; i < json_array_size(list); i++) {
		if (!json_is_object(json_array_get(list, i)))
			return err_say(e, -EINVAL, "Volumes[%zu]: expected an object", i);
	}
	return (int)json_array_size(list);
}

int
local_api_volume_status(int r)
{
	switch (r) {
	case -EINVAL:
		return 400;
	case -ENOENT:
		return 404;
	case -EEXIST:
	case -EBUSY:
		return 409;
	default:
		return 500;
	}
}

/* Refuses changes of a volume in use, and of fields that cannot change. */
static int
check_change(const struct local_volume *lv, const struct csi_volume *vol, struct err *e)
{
	const struct csi_volume *has = &lv->vol;

	if (lv->busy)
		return err_say(e, -EBUSY, "volume \"%s\" is being %s", has->id, lv->busy);
	if (volume_in_use(has))
		return err_say(e, -EBUSY, "volume in use: %s", has->id);
	if (!str_eq(has->plugin_id, vol->plugin_id) ||
	    !str_eq(has->external_id, vol->external_id) || !str_eq(has->name, vol->name))
		return err_say(e, -EEXIST,
		    "volume \"%s\" exists with another name, plugin or external id, which cannot "
		    "change",
		    has->id);
	return 0;
}

/* Replaces the contents of lv by those of *vol, which is emptied. */
static void
replace_volume(struct local *l, struct local_volume *lv, struct csi_volume *vol)
{
	vol->create_index = lv->vol.create_index;
	vol->create_time = lv->vol.create_time;
	csi_volume_done(&lv->vol);
	lv->vol = *vol;
	csi_volume_init(vol);
	local_volume_changed(l, lv);
}

/* Leaves the volume in *ret. Returns 0 or -errno. */
static int
register_volume(struct local *l, struct csi_volume *vol, struct local_volume **ret, struct err *e)
{
	struct local_volume *lv = *ret = local_volume_find(l, vol->namespace, vol->id);
	int r;

	if (!*str(vol->external_id))
		return err_say(e, -EINVAL, "volume \"%s\": ExternalID is missing", vol->id);
	if (!lv) {
		*ret = local_volume_new(l, vol);
		return 0;
	}
	r = check_change(lv, vol, e);
	if (r < 0)
		return r;
	replace_volume(l, lv, vol);
	return 0;
}

/* Adds lv as the API shows it. */
static void
append_view(struct local *l, json_t *list, struct local_volume *lv)
{
	cleanup_done(csi_volume) struct csi_volume view;

	view_volume(l, lv, false, &view);
	(void)json_array_append_new(list, model_to_json(&csi_volume_view_type, &view, 0));
}

/* Takes over the list. */
static void
reply_volumes(struct api_req *req, json_t *list)
{
	struct err e = { 0 };
	bool override = json_is_true(json_object_get(api_body(req, &e), "PolicyOverride"));

	api_reply_json(req, json_pack("{s:o, s:s}", "Volumes", list, "Warnings",
				override ? LOCAL_NO_POLICIES : ""));
}

void
local_api_register_volumes(struct sup *sup, struct api_req *req)
{
	struct local *l = local_of_sup(sup);
	json_t *list = json_array();
	struct err e = { 0 };
	int n = count_volumes(req, &e), r = n;

	for (int i = 0; i < n && r >= 0; i++) {
		cleanup_done(csi_volume) struct csi_volume vol;
		struct local_volume *lv;

		csi_volume_init(&vol);
		r = read_volume(req, (size_t)i, &vol, &e);
		if (r >= 0)
			r = register_volume(l, &vol, &lv, &e);
		if (r >= 0)
			append_view(l, list, lv);
	}
	if (r < 0) {
		json_decref(list);
		api_reply_error(req, local_api_volume_status(r), "%s", e.msg);
	} else {
		reply_volumes(req, list);
	}
	local_mark_node(l);
}

/* A volume that is created or deleted. Its row is durable before the plugin is called. */
struct volume_op {
	struct api_req *req;
	struct local_volume *lv;
	bool was_new; /* this request made the row */
};

void
local_api_reply_volume(struct sup *sup, struct api_req *req, struct local_volume *lv)
{
	json_t *list = json_array();

	append_view(local_of_sup(sup), list, lv);
	reply_volumes(req, list);
}

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

	lv->busy = NULL;
	if (r >= 0 && *str(lv->vol.external_id)) {
		local_volume_changed(l, lv);
		local_mark_node(l);
		local_api_reply_volume(sup, op->req, lv);
		return;
	}
	api_reply_error(op->req, r == -EINVAL ? 400 : 500, "create volume \"%s\": %s", lv->vol.id,
	    r < 0 ? e->msg : "the plugin returned no id");
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
	bool can = false, healthy = false;

	if (!local_plugin_get(l, vol->plugin_id, &plugin))
		return err_say(e, -EINVAL,
		    "volume \"%s\": no plugin \"%s\" answers on this node: a task with a "
		    "csi_plugin block of this id must run; its events say why it is not healthy",
		    vol->id, vol->plugin_id);
	for (size_t i = 0; i < plugin.controllers.n; i++) {
		const struct csi_info *info = &plugin.controllers.v[i].value;

		can |= info->controller_info && info->controller_info->supports_create_delete;
		healthy |= info->healthy;
	}
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
	if (csi_volume_creation_differs(&lv->vol, vol, field, sizeof field))
		return err_say(
		    e, -EEXIST, "volume \"%s\" exists already, with another %s", vol->id, field);
	vol->requested_capacity_min = min;
	vol->requested_capacity_max = max;
	return 0;
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
		replace_volume(l, lv, vol);
	op->lv = lv ?: local_volume_new(l, vol);
	op->lv->busy = "created";
	volume_create(sup, &op->lv->vol, on_created, op);
}

void
local_api_create_volume(struct sup *sup, struct api_req *req)
{
	struct local *l = local_of_sup(sup);
	cleanup_done(csi_volume) struct csi_volume vol;
	struct local_volume *lv;
	bool larger = false;
	struct err e = { 0 };
	int r = count_volumes(req, &e);

	csi_volume_init(&vol);
	if (r > 1)
		r = err_say(&e, -EINVAL, "only one volume can be created by a request");
	if (r >= 0)
		r = read_volume(req, 0, &vol, &e);
	lv = r >= 0 ? local_volume_find(l, vol.namespace, vol.id) : NULL;
	if (lv)
		r = check_repeat(lv, &vol, &larger, &e);
	if (r >= 0 && larger) {
		local_api_expand_volume(sup, req, lv, &vol);
		return;
	}
	if (r >= 0 && lv && *str(lv->vol.external_id)) {
		local_api_reply_volume(sup, req, lv); /* its answer may have been lost */
		return;
	}
	if (r >= 0)
		r = check_creator(l, &vol, &e);
	if (r < 0) {
		api_reply_error(req, local_api_volume_status(r), "%s", e.msg);
		return;
	}
	str_set(&vol.external_id, NULL);
	begin_creation(sup, req, lv, &vol);
}

static void
on_deleted(struct sup *sup, void *arg, int r, const struct err *e)
{
	cleanup_free struct volume_op *op = arg;
	struct local *l = local_of_sup(sup);
	struct local_volume *lv = op->lv;

	lv->busy = NULL;
	if (r < 0) {
		api_reply_error(op->req, 500, "delete volume \"%s\": %s", lv->vol.id, e->msg);
		local_mark_node(l);
		return;
	}
	local_volume_forget(l, lv);
	api_reply_text(op->req, 200, "application/json", "", 0);
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
	volume_delete(sup, &op->lv->vol, on_deleted, op);
}

bool
local_api_check_unused(struct api_req *req, const struct local_volume *lv)
{
	if (lv->busy)
		api_reply_error(req, 409, "volume \"%s\" is being %s", lv->vol.id, lv->busy);
	else if (lv->vol.write_claims.n > 0)
		api_reply_error(req, 409, "volume in use: %s (written by allocation %s)",
		    lv->vol.id, lv->vol.write_claims.v[0].key);
	else if (lv->vol.read_claims.n > 0)
		api_reply_error(req, 409, "volume in use: %s (read by allocation %s)", lv->vol.id,
		    lv->vol.read_claims.v[0].key);
	else
		return true;
	return false;
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
		volume_delete(sup, &lv->vol, on_deleted, op);
	else
		volume_create(sup, &lv->vol, on_created_to_delete, op);
}

// SPDX-License-Identifier: Apache-2.0
/* local_api_volumes.c: shows volumes over the API. Runs in: supervisor. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "supervisor/server/api/local_api.h"
#include "supervisor/server/job/local_namespaces.h"
#include "supervisor/server/claim/claims.h"
#include "supervisor/volume/capability_gate.h"
#include "supervisor/volume/controller_calls.h"
#include "supervisor/volume/plugins.h"
#include "supervisor/volume/volume_stats.h"
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
	ret->here = volume_here_make(l->base.sup, lv->vol.namespace, lv->vol.id);
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

/* Takes over at, what the controller said (NULL: it was not asked). The volume may have been
 * deregistered since the request came. */
static void
reply_view(struct sup *sup, struct api_req *req, struct volume_at_controller *at)
{
	struct local_volume *lv = local_api_find_volume(sup, req);
	cleanup_done(csi_volume) struct csi_volume view;

	csi_volume_init(&view);
	if (!lv) {
		volume_at_controller_free(at);
		return;
	}
	view_volume(local_of_sup(sup), lv, true, &view);
	view.at_controller = at;
	api_reply_model(req, &csi_volume_view_type, &view);
}

static void
on_got(struct sup *sup, void *arg, int r, const struct rpc_csi_entry *entry, const struct err *e)
{
	struct volume_at_controller *at = volume_at_controller_new();

	if (r < 0)
		str_set(&at->error, e->msg);
	for (size_t i = 0; i < entry->published_external_node_ids.n; i++)
		strings_add(&at->nodes, entry->published_external_node_ids.v[i]);
	if (entry->is_abnormal || *str(entry->status))
		at->condition = entry->is_abnormal ? CONDITION_ABNORMAL : CONDITION_NORMAL;
	str_set(&at->condition_message, entry->status);
	reply_view(sup, arg, at);
}

/* The plugin's node was asked; now its controller is, if it can be. */
static void
on_stats(struct sup *sup, void *arg)
{
	struct api_req *req = arg;
	struct local_volume *lv =
	    local_volume_find(local_of_sup(sup), api_namespace(req), api_param(req, 0));

	if (lv && *str(lv->vol.external_id) &&
	    capability_has_call(
		sup, str(lv->vol.plugin_id), CSI_CALL_REQ__CALL_CONTROLLER_GET_VOLUME))
		volume_get(sup, &lv->vol, on_got, req);
	else
		reply_view(sup, req, NULL);
}

/* With ?refresh=true the plugin is asked first how full the volume is, about its condition, and
 * where it is published. */
void
local_api_get_volume(struct sup *sup, struct api_req *req)
{
	bool refresh = false;
	struct err e = { 0 };

	if (api_query_bool(req, "refresh", &refresh, &e) < 0)
		api_reply_error(req, 400, "invalid refresh value");
	else if (refresh)
		volume_stats_ask(sup, api_namespace(req), api_param(req, 0), on_stats, req);
	else
		reply_view(sup, req, NULL);
}

int
local_api_volume_status(int r)
{
	switch (r) {
	case -EINVAL:
	case -EOPNOTSUPP:
		return 400;
	case -EPERM:
		return 403;
	case -ENOENT:
		return 404;
	case -EEXIST:
	case -EBUSY:
		return 409;
	default:
		return 500;
	}
}

void
local_api_append_volume(struct local *l, json_t *list, struct local_volume *lv)
{
	cleanup_done(csi_volume) struct csi_volume view;

	view_volume(l, lv, false, &view);
	(void)json_array_append_new(list, model_to_json(&csi_volume_view_type, &view, 0));
}

void
local_api_reply_volumes(struct api_req *req, json_t *list)
{
	struct err e = { 0 };
	bool override = json_is_true(json_object_get(api_body(req, &e), "PolicyOverride"));

	api_reply_json(req, json_pack("{s:o, s:s}", "Volumes", list, "Warnings",
				override ? LOCAL_NO_POLICIES : ""));
}

void
local_api_reply_volume(struct sup *sup, struct api_req *req, struct local_volume *lv)
{
	json_t *list = json_array();

	local_api_append_volume(local_of_sup(sup), list, lv);
	local_api_reply_volumes(req, list);
}

bool
local_api_check_unused(struct api_req *req, const struct local_volume *lv)
{
	struct err e = { 0 };

	if (lv->busy)
		api_reply_error(req, 409, "volume \"%s\" is being %s", lv->vol.id, lv->busy);
	else if (lv->vol.write_claims.n > 0)
		api_reply_error(req, 409, "volume in use: %s (written by allocation %s)",
		    lv->vol.id, lv->vol.write_claims.v[0].key);
	else if (lv->vol.read_claims.n > 0)
		api_reply_error(req, 409, "volume in use: %s (read by allocation %s)", lv->vol.id,
		    lv->vol.read_claims.v[0].key);
	else if (volume_refuse_mounted(
		     api_req_sup(req), str(lv->vol.plugin_id), str(lv->vol.external_id), &e) < 0)
		api_reply_error(req, 409, "%s", e.msg);
	else
		return true;
	return false;
}

// SPDX-License-Identifier: Apache-2.0
/* local_api_controller.c: calls of plugins' controllers over the API: lists a
 * plugin's volumes, makes and deletes snapshots. Runs in: supervisor. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "supervisor/server/api/local_api.h"
#include "supervisor/volume/call_args.h"
#include "supervisor/volume/controller_calls.h"
#include "supervisor/volume/plugins.h"
#include "supervisor/server/job/local_marks.h"

/* Returns the query's plugin, if its controller runs here; otherwise answers and returns NULL. */
static const char *
check_plugin(struct sup *sup, struct api_req *req, const char *id)
{
	if (!id || !*id)
		api_reply_error(req, 400, "plugin_id is missing");
	else if (!plugin_find(sup, id, CSI_PLUGIN_CONTROLLER))
		api_reply_error(req, 404, "plugin \"%.140s\" has no controller on this node", id);
	else
		return id;
	return NULL;
}

static void
reply_list(struct api_req *req, int r, const struct type *type, const void *list, const char *name,
    const char *next_token, const struct err *e)
{
	cleanup_json json_t *body = NULL;

	if (r < 0) {
		api_reply_error(req, local_api_volume_status(r), "%s", e->msg);
		return;
	}
	body = model_to_json(type, list, 0);
	api_reply_json(req, json_pack("{s:O, s:s}", name, json_object_get(body, "Entries"),
				"NextToken", str(next_token)));
}

static void
on_external(struct sup *sup, void *arg, int r, const struct rpc_csi_rep *list, const struct err *e)
{
	reply_list(arg, r, &rpc_csi_rep_type, list, "Volumes", list->next_token, e);
}

static int64_t
per_page(const struct api_req *req)
{
	const char *text = api_query(req, "per_page");

	return text ? strtoll(text, NULL, 10) : 0;
}

static const char *
next_token(const struct api_req *req)
{
	return str(api_query(req, "next_token"));
}

void
local_api_list_external(struct sup *sup, struct api_req *req)
{
	const char *plugin = check_plugin(sup, req, api_query(req, "plugin_id"));

	if (plugin)
		volume_list(sup, plugin, per_page(req), next_token(req), 0, on_external, req);
}

void
local_api_read_secrets(const struct api_req *req, struct string_map *ret)
{
	const char *header = api_header(req, "X-Nomad-CSI-Secrets");
	cleanup_free char *text = header ? mem_strdup(header) : NULL;
	char *save = NULL;

	for (char *pair = text ? strtok_r(text, ",", &save) : NULL; pair;
	     pair = strtok_r(NULL, ",", &save)) {
		char *value = strchr(pair, '=');

		if (!value)
			continue;
		*value++ = '\0';
		string_map_set(ret, pair, value);
	}
}

static void
on_snapshots(struct sup *sup, void *arg, int r, const struct rpc_csi_snapshots_rep *list,
    const struct err *e)
{
	reply_list(arg, r, &rpc_csi_snapshots_rep_type, list, "Snapshots", list->next_token, e);
}

void
local_api_list_snapshots(struct sup *sup, struct api_req *req)
{
	const char *plugin = check_plugin(sup, req, api_query(req, "plugin_id"));
	cleanup_done(csi_volume) struct csi_volume vol;

	csi_volume_init(&vol);
	if (!plugin)
		return;
	local_api_read_secrets(req, &vol.secrets);
	snapshot_list(sup, plugin, per_page(req), next_token(req), &vol.secrets, on_snapshots, req);
}

int
local_api_read_map(const json_t *body, const char *member, struct string_map *ret, struct err *e)
{
	json_t *map = json_object_get(body, member), *value;
	const char *key;

	if (map && !json_is_null(map) && !json_is_object(map))
		return err_say(e, -EINVAL, "%s is no object", member);
	json_object_foreach (map, key, value) {
		if (!json_is_string(value))
			return err_say(
			    e, -EINVAL, "%s: the value of %.140s is no text", member, key);
		string_map_set(ret, key, json_string_value(value));
	}
	return 0;
}

/* Reads the snapshot of {"Snapshots":[…]}: sets the plugin and the names of its volume in *ret, the
 * volume's secrets with those of the request, and the request's parameters; *ret_name is its name.
 */
static int
read_snapshot(struct sup *sup, struct api_req *req, struct csi_volume *ret, const char **ret_name,
    struct err *e)
{
	json_t *body = api_body(req, e), *list = json_object_get(body, "Snapshots");
	const json_t *s = json_array_get(list, 0);
	const char *source = json_string_value(json_object_get(s, "SourceVolumeID"));
	const struct local_volume *lv;

	if (!body)
		return -EINVAL;
	if (json_array_size(list) != 1 || !source)
		return err_say(e, -EINVAL,
		    "the body has no list Snapshots with one snapshot that has a SourceVolumeID");
	lv = local_volume_find(local_of_sup(sup), api_namespace(req), source);
	if (!lv || !*str(lv->vol.external_id))
		return err_say(e, -ENOENT, "volume not found: %.140s", source);
	*ret_name = str(json_string_value(json_object_get(s, "Name")));
	str_set(&ret->id, lv->vol.id);
	str_set(&ret->plugin_id, lv->vol.plugin_id);
	str_set(&ret->external_id, lv->vol.external_id);
	ret->secrets_lost = lv->vol.secrets_lost;
	for (size_t i = 0; i < lv->vol.secrets.n; i++)
		string_map_set(&ret->secrets, lv->vol.secrets.v[i].key, lv->vol.secrets.v[i].value);
	if (local_api_read_map(s, "Secrets", &ret->secrets, e) < 0 ||
	    local_api_read_map(s, "Parameters", &ret->parameters, e) < 0)
		return -EINVAL;
	return call_args_check(ret, e);
}

void
local_api_create_snapshot(struct sup *sup, struct api_req *req)
{
	cleanup_done(csi_volume) struct csi_volume vol;
	struct err e = { 0 };
	const char *name = "";
	int r;

	csi_volume_init(&vol);
	r = read_snapshot(sup, req, &vol, &name, &e);
	if (r < 0)
		api_reply_error(req, local_api_volume_status(r), "%s", e.msg);
	else if (check_plugin(sup, req, vol.plugin_id))
		snapshot_create(sup, &vol, name, on_snapshots, req);
}

static void
on_snapshot_deleted(struct sup *sup, void *arg, int r, const struct err *e)
{
	if (r < 0)
		api_reply_error(arg, local_api_volume_status(r), "%s", e->msg);
	else
		api_reply_text(arg, 200, "application/json", "", 0);
}

void
local_api_delete_snapshot(struct sup *sup, struct api_req *req)
{
	const char *plugin = check_plugin(sup, req, api_query(req, "plugin_id"));
	const char *id = str(api_query(req, "snapshot_id"));
	cleanup_done(csi_volume) struct csi_volume vol;

	csi_volume_init(&vol);
	if (!plugin)
		return;
	if (!*id) {
		api_reply_error(req, 400, "snapshot_id is missing");
		return;
	}
	local_api_read_secrets(req, &vol.secrets);
	snapshot_delete(sup, plugin, id, &vol.secrets, on_snapshot_deleted, req);
}

/* --- group snapshots --- */

/* Adds the volume's secrets and external id to those of the call. */
static int
add_source(
    const struct local_volume *lv, struct csi_volume *call, struct strings *ids, struct err *e)
{
	const struct string_map *secrets = &lv->vol.secrets;

	if (!str_eq(lv->vol.plugin_id, call->plugin_id))
		return err_say(e, -EINVAL, "volume \"%s\" is of plugin \"%s\", not \"%s\"",
		    lv->vol.id, str(lv->vol.plugin_id), call->plugin_id);
	for (size_t i = 0; i < secrets->n; i++) {
		const char *key = secrets->v[i].key, *value = str(secrets->v[i].value);
		const char *other = string_map_get(&call->secrets, key);

		if (other && strcmp(other, value) != 0)
			return err_say(e, -EINVAL,
			    "volume \"%s\" has another secret \"%.64s\" than the volumes before: a "
			    "group snapshot has one",
			    lv->vol.id, key);
		string_map_set(&call->secrets, key, value);
	}
	call->secrets_lost |= lv->vol.secrets_lost;
	strings_add(ids, lv->vol.external_id);
	return 0;
}

/* Reads {"PluginID", "Name", "SourceVolumeIDs", "Secrets", "Parameters"}. */
static int
read_group(struct sup *sup, struct api_req *req, struct csi_volume *call, struct strings *ids,
    struct err *e)
{
	json_t *body = api_body_object(req, e), *item;
	const json_t *sources = json_object_get(body, "SourceVolumeIDs");
	size_t i;
	int r = 0;

	if (!body)
		return -EINVAL;
	str_set(&call->plugin_id, json_string_value(json_object_get(body, "PluginID")));
	str_set(&call->name, json_string_value(json_object_get(body, "Name")));
	if (!*str(call->plugin_id) || !*str(call->name) || json_array_size(sources) == 0)
		return err_say(e, -EINVAL, "PluginID, Name or SourceVolumeIDs is missing");
	str_set(&call->id, call->name);
	json_array_foreach (sources, i, item) {
		const char *id = json_string_value(item);
		const struct local_volume *lv =
		    id ? local_volume_find(local_of_sup(sup), api_namespace(req), id) : NULL;

		if (r < 0)
			break;
		r = lv && *str(lv->vol.external_id)
			? add_source(lv, call, ids, e)
			: err_say(e, -ENOENT, "volume not found: %.140s", str(id));
	}
	if (r == 0)
		r = local_api_read_map(body, "Secrets", &call->secrets, e);
	if (r == 0)
		r = local_api_read_map(body, "Parameters", &call->parameters, e);
	return r < 0 ? r : call_args_check(call, e);
}

void
local_api_create_group(struct sup *sup, struct api_req *req)
{
	cleanup_done(csi_volume) struct csi_volume call;
	struct strings ids = { 0 };
	struct err e = { 0 };
	int r;

	csi_volume_init(&call);
	r = read_group(sup, req, &call, &ids, &e);
	if (r < 0)
		api_reply_error(req, local_api_volume_status(r), "%s", e.msg);
	else if (check_plugin(sup, req, call.plugin_id))
		group_snapshot_create(sup, &call, call.name, &ids, on_snapshots, req);
	strings_done(&ids);
}

/* Reads the query's group and its snapshots. Returns its id, or NULL after an answer. */
static const char *
read_group_query(
    struct sup *sup, struct api_req *req, struct csi_volume *call, struct strings *snapshots)
{
	const char *id = str(api_query(req, "group_snapshot_id")), *snapshot;

	str_set(&call->plugin_id, check_plugin(sup, req, api_query(req, "plugin_id")));
	if (!call->plugin_id)
		return NULL;
	for (unsigned i = 0; (snapshot = api_query_nth(req, "snapshot_id", i)); i++)
		strings_add(snapshots, snapshot);
	local_api_read_secrets(req, &call->secrets);
	if (*id && snapshots->n > 0)
		return id;
	api_reply_error(
	    req, 400, "group_snapshot_id, or the snapshot_id of each snapshot, is missing");
	return NULL;
}

static void
use_group(struct sup *sup, struct api_req *req, bool deletes)
{
	cleanup_done(csi_volume) struct csi_volume call;
	struct strings snapshots = { 0 };
	const char *id;

	csi_volume_init(&call);
	id = read_group_query(sup, req, &call, &snapshots);
	if (id && deletes)
		group_snapshot_delete(sup, &call, id, &snapshots, on_snapshot_deleted, req);
	else if (id)
		group_snapshot_get(sup, &call, id, &snapshots, on_snapshots, req);
	strings_done(&snapshots);
}

void
local_api_get_group(struct sup *sup, struct api_req *req)
{
	use_group(sup, req, false);
}

void
local_api_delete_group(struct sup *sup, struct api_req *req)
{
	use_group(sup, req, true);
}

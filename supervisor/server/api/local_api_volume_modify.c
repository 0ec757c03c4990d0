// SPDX-License-Identifier: Apache-2.0
/* local_api_volume_modify.c: changes the mutable parameters of volumes through their plugins, over
 * the API. Runs in: supervisor. */
#include <errno.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "supervisor/server/api/local_api.h"
#include "supervisor/server/job/local_marks.h"
#include "supervisor/volume/call_args.h"
#include "supervisor/volume/controller_calls.h"

/* A request that waits for the plugin. */
struct modification {
	struct api_req *req;
	struct local_volume *lv;
	struct string_map changes;
};

static void
end_modification(struct modification *m)
{
	for (size_t i = 0; i < m->changes.n; i++) {
		free(m->changes.v[i].key);
		free(m->changes.v[i].value);
	}
	free(m->changes.v);
	free(m);
}

static void
on_modified(struct sup *sup, void *arg, int r, const struct err *e)
{
	struct modification *m = arg;
	struct local_volume *lv = m->lv;

	lv->busy = NULL;
	local_mark_node(local_of_sup(sup));
	for (size_t i = 0; r >= 0 && i < m->changes.n; i++)
		string_map_set(
		    &lv->vol.mutable_parameters, m->changes.v[i].key, str(m->changes.v[i].value));
	local_volume_changed(local_of_sup(sup), lv);
	if (r < 0)
		api_reply_error(m->req, local_api_volume_status(r), "modify volume \"%s\": %s",
		    lv->vol.id, e->msg);
	else
		local_api_reply_volume(sup, m->req, lv);
	end_modification(m);
}

/* Reads {"MutableParameters": {KEY: VALUE}} into *ret. */
static int
read_changes(struct api_req *req, struct string_map *ret, struct err *e)
{
	const json_t *body = api_body_object(req, e);

	if (!body || local_api_read_map(body, "MutableParameters", ret, e) < 0)
		return -EINVAL;
	return ret->n > 0 ? 0
			  : err_say(e, -EINVAL,
				"MutableParameters is missing: there is nothing to "
				"modify");
}

void
local_api_modify_volume(struct sup *sup, struct api_req *req)
{
	struct local_volume *lv = NULL;
	struct modification *m = mem_new(struct modification);
	cleanup_done(csi_volume) struct csi_volume vol;
	struct err e = { 0 };
	int r;

	csi_volume_init(&vol);
	*m = (struct modification){ .req = req };
	r = read_changes(req, &m->changes, &e);
	if (r >= 0 && !(lv = m->lv = local_api_find_volume(sup, req))) {
		end_modification(m);
		return;
	}
	if (r >= 0 && (lv->busy || !*str(lv->vol.external_id)))
		r = err_say(&e, -EBUSY, "volume \"%s\" is being %s", lv->vol.id,
		    lv->busy ?: "created: create it again first");
	if (r >= 0) {
		str_set(&vol.id, lv->vol.id);
		str_set(&vol.plugin_id, lv->vol.plugin_id);
		str_set(&vol.external_id, lv->vol.external_id);
		vol.secrets_lost = lv->vol.secrets_lost;
		for (size_t i = 0; i < lv->vol.secrets.n; i++)
			string_map_set(
			    &vol.secrets, lv->vol.secrets.v[i].key, lv->vol.secrets.v[i].value);
		for (size_t i = 0; i < m->changes.n; i++)
			string_map_set(
			    &vol.mutable_parameters, m->changes.v[i].key, m->changes.v[i].value);
		r = call_args_check(&vol, &e);
	}
	if (r < 0) {
		api_reply_error(req, local_api_volume_status(r), "%s", e.msg);
		end_modification(m);
		return;
	}
	lv->busy = "modified";
	volume_modify(sup, &vol, on_modified, m);
}

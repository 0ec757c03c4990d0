// SPDX-License-Identifier: Apache-2.0
/* local_api_volume_register.c: registers volumes over the API, after their plugin has confirmed
 * that they exist and can be used as requested. Runs in: supervisor. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "supervisor/server/api/local_api.h"
#include "supervisor/server/claim/volume_merge.h"
#include "supervisor/server/job/local_marks.h"
#include "supervisor/server/job/local_namespaces.h"
#include "supervisor/volume/call_args.h"
#include "supervisor/volume/controller_calls.h"
#include "supervisor/volume/volumes.h"

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
	return r < 0 ? r : call_args_check(vol, e);
}

static const json_t *
volume_json(struct api_req *req, size_t i)
{
	struct err e = { 0 };

	return json_array_get(json_object_get(api_body(req, &e), "Volumes"), i);
}

int
local_api_read_volume(struct api_req *req, size_t i, struct csi_volume *ret, struct err *e)
{
	bool secrets = json_is_object(json_object_get(volume_json(req, i), "Secrets"));
	struct local *l = local_of_sup(api_req_sup(req));
	const char *id = api_param(req, 0);
	const struct local_volume *lv;
	int r = model_from_json(&csi_volume_request_type, volume_json(req, i), ret, e);

	if (r < 0)
		return r;
	if (!ret->id && id)
		str_set(&ret->id, id);
	if (!ret->namespace)
		str_set(&ret->namespace, api_namespace(req));
	if (!api_permits(req, API_NEED_OF_PATH, ret->namespace))
		return err_say(e, -EPERM, "Permission denied");
	model_defaults(&csi_volume_type, ret);
	if (id && strcmp(id, ret->id) != 0)
		return err_say(
		    e, -EINVAL, "volume ID \"%.140s\" does not match the id in the path", ret->id);
	r = check_volume(l, ret, e);
	if (r < 0)
		return r;
	lv = local_volume_find(l, ret->namespace, ret->id);
	if (lv)
		volume_keep_hidden(&lv->vol, secrets, ret);
	else if (!ret->name)
		str_set(&ret->name, ret->id);
	return 0;
}

int
local_api_count_volumes(struct api_req *req, struct err *e)
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

static const struct local_volume *
find_twin(const struct local *l, const struct csi_volume *vol)
{
	size_t n;
	cleanup_free struct local_key **all = local_volumes_sorted(l, &n);

	for (size_t i = 0; i < n; i++) {
		const struct csi_volume *v = &local_volume_of(all[i])->vol;

		if (str_eq(v->plugin_id, vol->plugin_id) &&
		    str_eq(v->external_id, vol->external_id) &&
		    (!str_eq(v->id, vol->id) || !str_eq(v->namespace, vol->namespace)))
			return local_volume_of(all[i]);
	}
	return NULL;
}

int
local_api_check_external(const struct local *l, const struct csi_volume *vol, struct err *e)
{
	const struct local_volume *twin = find_twin(l, vol);

	if (!twin)
		return 0;
	return err_say(e, -EEXIST,
	    "volume \"%.128s\": external id \"%.140s\" of plugin \"%.128s\" is already that of "
	    "volume \"%s\" in namespace \"%s\"; two volumes cannot have one",
	    vol->id, vol->external_id, vol->plugin_id, twin->vol.id, twin->vol.namespace);
}

void
local_api_replace_volume(struct local *l, struct local_volume *lv, struct csi_volume *vol)
{
	vol->create_index = lv->vol.create_index;
	vol->create_time = lv->vol.create_time;
	csi_volume_done(&lv->vol);
	lv->vol = *vol;
	csi_volume_init(vol);
	local_volume_changed(l, lv);
}

/* Sets *ret_validate: whether the plugin's controller has to be asked about the volume. */
static int
check_plugin(struct local *l, const struct csi_volume *vol, bool *ret_validate, struct err *e)
{
	cleanup_done(csi_plugin) struct csi_plugin plugin;

	if (!local_plugin_get(l, vol->plugin_id, &plugin))
		return err_say(e, -EINVAL,
		    "volume \"%s\": plugin \"%s\" does not run on this node, or has not answered "
		    "yet: "
		    "start it first, because it must confirm the volume",
		    vol->id, vol->plugin_id);
	*ret_validate = plugin.controller_required;
	if (plugin.controller_required && plugin.controllers_healthy == 0)
		return err_say(e, -EAGAIN,
		    "volume \"%s\": plugin \"%s\" has no healthy controller on this node, which "
		    "must "
		    "confirm the volume",
		    vol->id, vol->plugin_id);
	return 0;
}

/* A request whose volumes are checked one after the other, and then registered all or none. */
struct registration {
	struct api_req *req;
	size_t n, at;
	struct csi_volume volumes[];
};

static void
registration_free(struct registration *reg)
{
	for (size_t i = 0; i < reg->n; i++)
		csi_volume_done(&reg->volumes[i]);
	free(reg);
}

static void
registration_fail(struct registration *reg, int r, const struct err *e)
{
	api_reply_error(reg->req, local_api_volume_status(r), "%s", e->msg);
	registration_free(reg);
}

static bool
grows(const struct local_volume *lv, const struct csi_volume *vol)
{
	int64_t min = vol->requested_capacity_min;

	return lv && lv->vol.capacity > 0 && min > lv->vol.capacity;
}

/* Fills in what the i-th volume becomes. Returns 0 or -errno. */
static int
prepare(struct local *l, const struct registration *reg, size_t i, struct csi_volume *ret,
    struct err *e)
{
	const struct csi_volume *asked = &reg->volumes[i];
	const struct local_volume *lv = local_volume_find(l, asked->namespace, asked->id);
	int r = 0;

	csi_volume_copy(asked, ret);
	if (!lv && !*str(asked->external_id))
		return err_say(e, -EINVAL, "volume \"%s\": ExternalID is missing", asked->id);
	if (lv && lv->busy)
		return err_say(e, -EBUSY, "volume \"%s\" is being %s", asked->id, lv->busy);
	if (reg->n > 1 && grows(lv, asked))
		return err_say(e, -EINVAL,
		    "volume \"%s\" is to become larger, which needs a request of its own",
		    asked->id);
	if (lv)
		r = volume_merge(&lv->vol, ret, e);
	else if (ret->topologies.n == 0 && ret->requested_topologies)
		for (size_t k = 0; k < ret->requested_topologies->required.n; k++)
			csi_topology_copy(&ret->requested_topologies->required.v[k],
			    list_add(csi_topology, &ret->topologies));
	for (size_t k = 0; r == 0 && k < i; k++)
		if (str_eq(reg->volumes[k].plugin_id, ret->plugin_id) &&
		    str_eq(reg->volumes[k].external_id, ret->external_id))
			r = err_say(e, -EEXIST,
			    "volumes \"%s\" and \"%s\" have the same external id \"%s\"",
			    reg->volumes[k].id, ret->id, ret->external_id);
	return r == 0 ? local_api_check_external(l, ret, e) : r;
}

/* Takes over *vol. */
static struct local_volume *
put_volume(struct local *l, struct csi_volume *vol)
{
	struct local_volume *lv = local_volume_find(l, vol->namespace, vol->id);

	if (!lv)
		return local_volume_new(l, vol);
	local_api_replace_volume(l, lv, vol);
	return lv;
}

/* Registers the only volume, and then expands it: until that succeeds, it has its old size. */
static void
put_larger(struct sup *sup, struct registration *reg, struct csi_volume *vol)
{
	struct local_volume *lv = local_volume_find(local_of_sup(sup), vol->namespace, vol->id);

	vol->requested_capacity_min = lv->vol.requested_capacity_min;
	vol->requested_capacity_max = lv->vol.requested_capacity_max;
	lv = put_volume(local_of_sup(sup), vol);
	local_api_expand_volume(sup, reg->req, lv, &reg->volumes[0]);
}

static void
put_volumes(struct sup *sup, struct registration *reg, struct csi_volume *volumes)
{
	struct local *l = local_of_sup(sup);
	const struct local_volume *lv = local_volume_find(l, volumes[0].namespace, volumes[0].id);
	json_t *list = NULL;

	if (grows(lv, &volumes[0])) {
		put_larger(sup, reg, &volumes[0]);
	} else if (reg->n == 1 && lv && lv->vol.node_expansion) {
		local_api_resume_expansion(sup, reg->req, put_volume(l, &volumes[0]));
	} else {
		list = json_array();
		for (size_t i = 0; i < reg->n; i++)
			local_api_append_volume(l, list, put_volume(l, &volumes[i]));
		local_api_reply_volumes(reg->req, list);
	}
	local_mark_node(l);
	registration_free(reg);
}

/* Other requests may have changed volumes while plugins were asked, so all are checked again. */
static void
finish(struct sup *sup, struct registration *reg)
{
	cleanup_free struct csi_volume *volumes = mem_zeroed(reg->n, sizeof *volumes);
	struct err e = { 0 };
	size_t n = reg->n;
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++)
		r = prepare(local_of_sup(sup), reg, i, &volumes[i], &e);
	if (r < 0)
		registration_fail(reg, r, &e);
	else
		put_volumes(sup, reg, volumes);
	for (size_t i = 0; i < n; i++)
		csi_volume_done(&volumes[i]);
}

static void check_next(struct sup *sup, struct registration *reg);

static void
on_validated(struct sup *sup, void *arg, int r, const struct err *e)
{
	struct registration *reg = arg;
	struct err why = { 0 };

	if (r < 0) {
		(void)err_say(
		    &why, r, "register volume \"%s\": %s", reg->volumes[reg->at].id, e->msg);
		registration_fail(reg, r, &why);
		return;
	}
	reg->at++;
	check_next(sup, reg);
}

/* Checks the volumes from reg->at on, up to the next one about which a plugin has to be asked. */
static void
check_next(struct sup *sup, struct registration *reg)
{
	struct local *l = local_of_sup(sup);
	struct err e = { 0 };

	for (; reg->at < reg->n; reg->at++) {
		cleanup_done(csi_volume) struct csi_volume vol;
		bool validate = false;
		int r;

		csi_volume_init(&vol);
		r = prepare(l, reg, reg->at, &vol, &e);
		if (r == 0)
			r = check_plugin(l, &vol, &validate, &e);
		if (r < 0) {
			registration_fail(reg, r, &e);
			return;
		}
		if (validate) {
			volume_validate(sup, &vol, on_validated, reg);
			return;
		}
	}
	finish(sup, reg);
}

void
local_api_register_volumes(struct sup *sup, struct api_req *req)
{
	struct err e = { 0 };
	int n = local_api_count_volumes(req, &e), r = n;
	struct registration *reg;

	if (n < 0) {
		api_reply_error(req, local_api_volume_status(n), "%s", e.msg);
		return;
	}
	reg = mem_zeroed(1, sizeof *reg + (size_t)n * sizeof *reg->volumes);
	reg->req = req;
	reg->n = (size_t)n;
	for (size_t i = 0; i < reg->n && r >= 0; i++)
		r = local_api_read_volume(req, i, &reg->volumes[i], &e);
	if (r < 0)
		registration_fail(reg, r, &e);
	else
		check_next(sup, reg);
}

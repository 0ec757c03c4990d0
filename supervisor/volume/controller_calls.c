// SPDX-License-Identifier: Apache-2.0
/* controller_calls.c: the calls to the controller of a CSI plugin. Runs in: supervisor. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "supervisor/volume/call_args.h"
#include "supervisor/volume/capability_check.h"
#include "supervisor/volume/capability_gate.h"
#include "supervisor/volume/controller_calls.h"
#include "supervisor/volume/plugin_calls.h"
#include "supervisor/volume/volumes.h"

#define QUERY_TIMEOUT_MS 10000
#define LIST_PAGE_MAX    50

/* A call that waits for its answer, and the one of the callbacks that gets it. */
struct controller_call {
	/* volume_create(): filled in from the answer; volume_validate(): a copy to compare with */
	struct csi_volume *volume;
	union {
		volume_cb *done;
		volume_attach_cb *attached;
		volume_expand_cb *expanded;
		volume_capacity_cb *capacity;
		volume_get_cb *got;
		volume_list_cb *listed;
		snapshot_list_cb *snapshots;
	};
	void *arg;
	char plugin[];
};

static struct controller_call *
call_new(const char *plugin, void *arg)
{
	struct controller_call *c = mem_zeroed(1, sizeof *c + strlen(plugin) + 1);

	(void)strcpy(c->plugin, plugin);
	c->arg = arg;
	return c;
}

static void
send_within(struct sup *sup, struct controller_call *c, const struct csi_volume *vol,
    const CsiCallReq *req, uint64_t timeout_ms, plugin_call_cb *cb)
{
	struct err e = { 0 };
	int r = vol ? call_args_check_secrets(vol, &e) : 0;

	if (r == 0)
		r = capability_gate(sup, c->plugin, req, &e);
	if (r < 0)
		cb(sup, c, r, NULL, &e);
	else
		(void)plugin_call(
		    sup, c->plugin, CSI_PLUGIN_CONTROLLER, req, (unsigned)timeout_ms, cb, c);
}

static void
send_call(struct sup *sup, struct controller_call *c, const struct csi_volume *vol,
    const CsiCallReq *req, plugin_call_cb *cb)
{
	send_within(sup, c, vol, req, sup->config->csi_call_timeout_ms, cb);
}

/* Somebody waits for the answer, who gets the others without it. */
static void
send_query(struct sup *sup, struct controller_call *c, const CsiCallReq *req, plugin_call_cb *cb)
{
	uint64_t limit = sup->config->csi_call_timeout_ms;

	send_within(sup, c, NULL, req, limit < QUERY_TIMEOUT_MS ? limit : QUERY_TIMEOUT_MS, cb);
}

static int
refuse_empty(const struct controller_call *c, const char *call, struct err *e)
{
	return err_say(e, -EPROTO, "%s of plugin %s: the answer is empty", call, c->plugin);
}

static void
take_map(struct string_map *to, Csi__V1__StringEntry *const *from, size_t n)
{
	for (size_t i = 0; i < n; i++)
		string_map_set(to, from[i]->key, from[i]->value);
}

static int
take_volume(struct csi_volume *vol, const Csi__V1__CreateVolumeResponse *rep, struct err *e)
{
	const Csi__V1__Volume *v = rep->volume;

	if (!v || v->volume_id[0] == '\0')
		return err_say(e, -EPROTO,
		    "CreateVolume of plugin %s: the plugin gave the volume no id", vol->plugin_id);
	str_set(&vol->external_id, v->volume_id);
	vol->capacity = v->capacity_bytes;
	take_map(&vol->context, v->volume_context, v->n_volume_context);
	for (size_t i = 0; i < v->n_accessible_topology; i++) {
		const Csi__V1__Topology *t = v->accessible_topology[i];
		struct csi_topology *mine = list_add(csi_topology, &vol->topologies);

		take_map(&mine->segments, t->segments, t->n_segments);
	}
	return 0;
}

static void
on_created(struct sup *sup, void *arg, int r, const CsiCallRep *rep, const struct err *e)
{
	cleanup_free struct controller_call *c = arg;
	struct err why = { 0 };

	if (r >= 0) {
		r = rep->answer_case == CSI_CALL_REP__ANSWER_CREATE_VOLUME
			? take_volume(c->volume, rep->create_volume, &why)
			: refuse_empty(c, "CreateVolume", &why);
		e = &why;
	}
	c->done(sup, c->arg, r, r < 0 ? e : NULL);
}

static void
on_done(struct sup *sup, void *arg, int r, const CsiCallRep *rep, const struct err *e)
{
	cleanup_free struct controller_call *c = arg;

	c->done(sup, c->arg, r, e);
}

void
volume_create(struct sup *sup, struct csi_volume *vol, volume_cb *cb, void *arg)
{
	Csi__V1__CreateVolumeRequest create = CSI__V1__CREATE_VOLUME_REQUEST__INIT;
	struct controller_call *c = call_new(str(vol->plugin_id), arg);
	Csi__V1__CapacityRange range = CSI__V1__CAPACITY_RANGE__INIT;
	cleanup_call_args struct call_args args = { 0 };
	CsiCallReq req = CSI_CALL_REQ__INIT;

	create.name = vol->name ? vol->name : vol->id;
	range.required_bytes = vol->requested_capacity_min;
	range.limit_bytes = vol->requested_capacity_max;
	if (range.required_bytes || range.limit_bytes)
		create.capacity_range = &range;
	create.n_volume_capabilities =
	    call_args_capabilities(&args, vol, &create.volume_capabilities);
	create.volume_content_source = call_args_source(&args, vol);
	create.accessibility_requirements = call_args_topologies(&args, vol->requested_topologies);
	create.n_parameters = call_args_map(&args, &vol->parameters, &create.parameters);
	create.n_mutable_parameters =
	    call_args_map(&args, &vol->mutable_parameters, &create.mutable_parameters);
	create.n_secrets = call_args_map(&args, &vol->secrets, &create.secrets);
	req.call_case = CSI_CALL_REQ__CALL_CREATE_VOLUME;
	req.create_volume = &create;
	c->volume = vol;
	c->done = cb;
	send_call(sup, c, vol, &req, on_created);
}

void
volume_delete(struct sup *sup, const struct csi_volume *vol, volume_cb *cb, void *arg)
{
	Csi__V1__DeleteVolumeRequest delete = CSI__V1__DELETE_VOLUME_REQUEST__INIT;
	struct controller_call *c = call_new(str(vol->plugin_id), arg);
	cleanup_call_args struct call_args args = { 0 };
	CsiCallReq req = CSI_CALL_REQ__INIT;

	delete.volume_id = vol->external_id ? vol->external_id : vol->id;
	delete.n_secrets = call_args_map(&args, &vol->secrets, &delete.secrets);
	req.call_case = CSI_CALL_REQ__CALL_DELETE_VOLUME;
	req.delete_volume = &delete;
	c->done = cb;
	send_call(sup, c, vol, &req, on_done);
}

/* A plugin answers without an error also if it does not support the capabilities. */
static void
on_validated(struct sup *sup, void *arg, int r, const CsiCallRep *rep, const struct err *e)
{
	cleanup_free struct controller_call *c = arg;
	struct err why = { 0 };

	if (r >= 0) {
		r = rep->answer_case == CSI_CALL_REP__ANSWER_VALIDATE_VOLUME_CAPABILITIES
			? capability_check(c->volume, rep->validate_volume_capabilities, &why)
			: refuse_empty(c, "ValidateVolumeCapabilities", &why);
		e = &why;
	}
	csi_volume_free(c->volume);
	c->done(sup, c->arg, r, r < 0 ? e : NULL);
}

void
volume_validate(struct sup *sup, const struct csi_volume *vol, volume_cb *cb, void *arg)
{
	Csi__V1__ValidateVolumeCapabilitiesRequest validate =
	    CSI__V1__VALIDATE_VOLUME_CAPABILITIES_REQUEST__INIT;
	struct controller_call *c = call_new(str(vol->plugin_id), arg);
	cleanup_call_args struct call_args args = { 0 };
	CsiCallReq req = CSI_CALL_REQ__INIT;

	validate.volume_id = vol->external_id;
	validate.n_volume_capabilities =
	    call_args_capabilities(&args, vol, &validate.volume_capabilities);
	validate.n_parameters = call_args_map(&args, &vol->parameters, &validate.parameters);
	validate.n_secrets = call_args_map(&args, &vol->secrets, &validate.secrets);
	validate.n_volume_context = call_args_map(&args, &vol->context, &validate.volume_context);
	req.call_case = CSI_CALL_REQ__CALL_VALIDATE_VOLUME_CAPABILITIES;
	req.validate_volume_capabilities = &validate;
	c->volume = csi_volume_new();
	csi_volume_copy(vol, c->volume);
	c->done = cb;
	send_call(sup, c, vol, &req, on_validated);
}

static void
on_attached(struct sup *sup, void *arg, int r, const CsiCallRep *rep, const struct err *e)
{
	const Csi__V1__ControllerPublishVolumeResponse *p = NULL;
	cleanup_free struct controller_call *c = arg;
	struct string_map context = { 0 };

	if (r >= 0 && rep->answer_case == CSI_CALL_REP__ANSWER_CONTROLLER_PUBLISH_VOLUME)
		p = rep->controller_publish_volume;
	if (p)
		take_map(&context, p->publish_context, p->n_publish_context);
	c->attached(sup, c->arg, r, &context, e);
	for (size_t i = 0; i < context.n; i++) {
		free(context.v[i].key);
		free(context.v[i].value);
	}
	free(context.v);
}

void
volume_attach(struct sup *sup, const struct csi_volume *vol, const char *node, bool read_only,
    volume_attach_cb *cb, void *arg)
{
	Csi__V1__ControllerPublishVolumeRequest publish =
	    CSI__V1__CONTROLLER_PUBLISH_VOLUME_REQUEST__INIT;
	Csi__V1__VolumeCapability **caps;
	struct controller_call *c = call_new(str(vol->plugin_id), arg);
	cleanup_call_args struct call_args args = { 0 };
	CsiCallReq req = CSI_CALL_REQ__INIT;

	c->attached = cb;
	publish.volume_id = vol->external_id;
	publish.node_id = (char *)(uintptr_t)node;
	publish.readonly = read_only;
	if (call_args_capabilities(&args, vol, &caps) > 0)
		publish.volume_capability = caps[0];
	publish.n_secrets = call_args_map(&args, &vol->secrets, &publish.secrets);
	publish.n_volume_context = call_args_map(&args, &vol->context, &publish.volume_context);
	req.call_case = CSI_CALL_REQ__CALL_CONTROLLER_PUBLISH_VOLUME;
	req.controller_publish_volume = &publish;
	send_call(sup, c, vol, &req, on_attached);
}

void
volume_detach(
    struct sup *sup, const struct csi_volume *vol, const char *node, volume_cb *cb, void *arg)
{
	Csi__V1__ControllerUnpublishVolumeRequest unpublish =
	    CSI__V1__CONTROLLER_UNPUBLISH_VOLUME_REQUEST__INIT;
	struct controller_call *c = call_new(str(vol->plugin_id), arg);
	cleanup_call_args struct call_args args = { 0 };
	CsiCallReq req = CSI_CALL_REQ__INIT;

	unpublish.volume_id = vol->external_id;
	unpublish.node_id = (char *)(uintptr_t)node;
	unpublish.n_secrets = call_args_map(&args, &vol->secrets, &unpublish.secrets);
	req.call_case = CSI_CALL_REQ__CALL_CONTROLLER_UNPUBLISH_VOLUME;
	req.controller_unpublish_volume = &unpublish;
	c->done = cb;
	send_call(sup, c, vol, &req, on_done);
}

static void
on_expanded(struct sup *sup, void *arg, int r, const CsiCallRep *rep, const struct err *e)
{
	cleanup_free struct controller_call *c = arg;
	struct err why = { 0 };

	if (r >= 0 && rep->answer_case == CSI_CALL_REP__ANSWER_CONTROLLER_EXPAND_VOLUME)
		c->expanded(sup, c->arg, 0, rep->controller_expand_volume->capacity_bytes,
		    rep->controller_expand_volume->node_expansion_required, NULL);
	else if (r >= 0)
		c->expanded(
		    sup, c->arg, refuse_empty(c, "ControllerExpandVolume", &why), 0, false, &why);
	else
		c->expanded(sup, c->arg, r, 0, false, e);
}

void
volume_expand(struct sup *sup, const struct csi_volume *vol, int64_t required_bytes,
    int64_t limit_bytes, volume_expand_cb *cb, void *arg)
{
	Csi__V1__ControllerExpandVolumeRequest expand =
	    CSI__V1__CONTROLLER_EXPAND_VOLUME_REQUEST__INIT;
	Csi__V1__CapacityRange range = CSI__V1__CAPACITY_RANGE__INIT;
	struct controller_call *c = call_new(str(vol->plugin_id), arg);
	cleanup_call_args struct call_args args = { 0 };
	CsiCallReq req = CSI_CALL_REQ__INIT;
	Csi__V1__VolumeCapability **caps;

	c->expanded = cb;
	expand.volume_id = vol->external_id;
	range.required_bytes = required_bytes;
	range.limit_bytes = limit_bytes;
	expand.capacity_range = &range;
	if (call_args_capabilities(&args, vol, &caps) > 0)
		expand.volume_capability = caps[0];
	expand.n_secrets = call_args_map(&args, &vol->secrets, &expand.secrets);
	req.call_case = CSI_CALL_REQ__CALL_CONTROLLER_EXPAND_VOLUME;
	req.controller_expand_volume = &expand;
	send_call(sup, c, vol, &req, on_expanded);
}

static void
on_capacity(struct sup *sup, void *arg, int r, const CsiCallRep *rep, const struct err *e)
{
	const Csi__V1__GetCapacityResponse *got = NULL;
	cleanup_free struct controller_call *c = arg;
	struct csi_capacity capacity = { 0 };
	struct err why = { 0 };

	if (r >= 0 && rep->answer_case == CSI_CALL_REP__ANSWER_GET_CAPACITY)
		got = rep->get_capacity;
	if (got) {
		capacity.available = got->available_capacity;
		capacity.largest = got->maximum_volume_size ? got->maximum_volume_size->value : 0;
		capacity.smallest = got->minimum_volume_size ? got->minimum_volume_size->value : 0;
	} else if (r >= 0) {
		r = refuse_empty(c, "GetCapacity", &why);
		e = &why;
	}
	c->capacity(sup, c->arg, r, &capacity, r < 0 ? e : NULL);
}

void
volume_capacity(struct sup *sup, const struct csi_volume *vol, volume_capacity_cb *cb, void *arg)
{
	Csi__V1__GetCapacityRequest get = CSI__V1__GET_CAPACITY_REQUEST__INIT;
	struct controller_call *c = call_new(str(vol->plugin_id), arg);
	cleanup_call_args struct call_args args = { 0 };
	const Csi__V1__TopologyRequirement *topologies =
	    call_args_topologies(&args, vol->requested_topologies);
	CsiCallReq req = CSI_CALL_REQ__INIT;

	c->capacity = cb;
	get.n_volume_capabilities = call_args_capabilities(&args, vol, &get.volume_capabilities);
	get.n_parameters = call_args_map(&args, &vol->parameters, &get.parameters);
	/* A request has room for one topology; of several, the volume may get any. */
	if (topologies && topologies->n_requisite == 1)
		get.accessible_topology = topologies->requisite[0];
	req.call_case = CSI_CALL_REQ__CALL_GET_CAPACITY;
	req.get_capacity = &get;
	send_query(sup, c, &req, on_capacity);
}

static void
take_entry(const Csi__V1__ListVolumesResponse__Entry *from, struct rpc_csi_entry *to)
{
	const Csi__V1__ListVolumesResponse__VolumeStatus *status = from->status;
	const Csi__V1__Volume *volume = from->volume;
	const Csi__V1__VolumeContentSource *source = volume ? volume->content_source : NULL;

	if (volume) {
		to->capacity_bytes = volume->capacity_bytes;
		str_set(&to->external_id, volume->volume_id);
		take_map(&to->volume_context, volume->volume_context, volume->n_volume_context);
	}
	if (source && source->type_case == CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_SNAPSHOT)
		str_set(&to->snapshot_id, source->snapshot->snapshot_id);
	if (source && source->type_case == CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_VOLUME)
		str_set(&to->clone_id, source->volume->volume_id);
	for (size_t i = 0; status && i < status->n_published_node_ids; i++)
		strings_add(&to->published_external_node_ids, status->published_node_ids[i]);
	if (status && status->volume_condition) {
		to->is_abnormal = status->volume_condition->abnormal;
		str_set(&to->status, status->volume_condition->message);
	}
}

static void
on_got(struct sup *sup, void *arg, int r, const CsiCallRep *rep, const struct err *e)
{
	cleanup_done(rpc_csi_entry) struct rpc_csi_entry entry;
	const Csi__V1__ControllerGetVolumeResponse *got = NULL;
	cleanup_free struct controller_call *c = arg;
	Csi__V1__ListVolumesResponse__VolumeStatus status =
	    CSI__V1__LIST_VOLUMES_RESPONSE__VOLUME_STATUS__INIT;
	Csi__V1__ListVolumesResponse__Entry from = CSI__V1__LIST_VOLUMES_RESPONSE__ENTRY__INIT;
	struct err why = { 0 };

	rpc_csi_entry_init(&entry);
	if (r >= 0 && rep->answer_case == CSI_CALL_REP__ANSWER_CONTROLLER_GET_VOLUME)
		got = rep->controller_get_volume;
	if (got && got->status) {
		status.n_published_node_ids = got->status->n_published_node_ids;
		status.published_node_ids = got->status->published_node_ids;
		status.volume_condition = got->status->volume_condition;
		from.volume = got->volume;
		from.status = &status;
		take_entry(&from, &entry);
	} else if (r >= 0) {
		r = refuse_empty(c, "ControllerGetVolume", &why);
		e = &why;
	}
	c->got(sup, c->arg, r, &entry, r < 0 ? e : NULL);
}

void
volume_get(struct sup *sup, const struct csi_volume *vol, volume_get_cb *cb, void *arg)
{
	Csi__V1__ControllerGetVolumeRequest get = CSI__V1__CONTROLLER_GET_VOLUME_REQUEST__INIT;
	struct controller_call *c = call_new(str(vol->plugin_id), arg);
	CsiCallReq req = CSI_CALL_REQ__INIT;

	c->got = cb;
	get.volume_id = vol->external_id;
	req.call_case = CSI_CALL_REQ__CALL_CONTROLLER_GET_VOLUME;
	req.controller_get_volume = &get;
	send_query(sup, c, &req, on_got);
}

void
volume_modify(struct sup *sup, const struct csi_volume *vol, volume_cb *cb, void *arg)
{
	Csi__V1__ControllerModifyVolumeRequest modify =
	    CSI__V1__CONTROLLER_MODIFY_VOLUME_REQUEST__INIT;
	struct controller_call *c = call_new(str(vol->plugin_id), arg);
	cleanup_call_args struct call_args args = { 0 };
	CsiCallReq req = CSI_CALL_REQ__INIT;

	modify.volume_id = vol->external_id;
	modify.n_secrets = call_args_map(&args, &vol->secrets, &modify.secrets);
	modify.n_mutable_parameters =
	    call_args_map(&args, &vol->mutable_parameters, &modify.mutable_parameters);
	req.call_case = CSI_CALL_REQ__CALL_CONTROLLER_MODIFY_VOLUME;
	req.controller_modify_volume = &modify;
	c->done = cb;
	send_call(sup, c, vol, &req, on_done);
}

static void
take_list(const Csi__V1__ListVolumesResponse *from, struct rpc_csi_rep *to)
{
	str_set(&to->next_token, from->next_token);
	for (size_t i = 0; i < from->n_entries; i++)
		take_entry(from->entries[i], list_add(rpc_csi_entry, &to->entries));
}

static void
on_listed(struct sup *sup, void *arg, int r, const CsiCallRep *rep, const struct err *e)
{
	cleanup_done(rpc_csi_rep) struct rpc_csi_rep list;
	cleanup_free struct controller_call *c = arg;
	struct err why = { 0 };

	rpc_csi_rep_init(&list);
	if (r >= 0 && rep->answer_case == CSI_CALL_REP__ANSWER_LIST_VOLUMES) {
		take_list(rep->list_volumes, &list);
	} else if (r >= 0) {
		r = refuse_empty(c, "ListVolumes", &why);
		e = &why;
	}
	c->listed(sup, c->arg, r, &list, r < 0 ? e : NULL);
}

/* Limits the page to what fits into one message between the processes. */
static int32_t
page_size(int64_t wanted)
{
	return wanted > 0 && wanted < LIST_PAGE_MAX ? (int32_t)wanted : LIST_PAGE_MAX;
}

void
volume_list(struct sup *sup, const char *plugin, int64_t max, const char *token,
    uint64_t timeout_ms, volume_list_cb *cb, void *arg)
{
	Csi__V1__ListVolumesRequest list = CSI__V1__LIST_VOLUMES_REQUEST__INIT;
	struct controller_call *c = call_new(plugin, arg);
	uint64_t limit = sup->config->csi_call_timeout_ms;
	CsiCallReq req = CSI_CALL_REQ__INIT;

	c->listed = cb;
	list.max_entries = page_size(max);
	list.starting_token = (char *)(uintptr_t)token;
	req.call_case = CSI_CALL_REQ__CALL_LIST_VOLUMES;
	req.list_volumes = &list;
	send_within(sup, c, NULL, &req, timeout_ms > 0 && timeout_ms < limit ? timeout_ms : limit,
	    on_listed);
}

static void
take_snapshot(const Csi__V1__Snapshot *from, struct rpc_csi_snapshots_rep *to)
{
	struct rpc_csi_snapshot *s = list_add(rpc_csi_snapshot, &to->entries);

	str_set(&s->id, from->snapshot_id);
	str_set(&s->external_source_volume_id, from->source_volume_id);
	str_set(&s->group_id, from->group_snapshot_id);
	s->size_bytes = from->size_bytes;
	s->create_time = from->creation_time ? from->creation_time->seconds : 0;
	s->is_ready = from->ready_to_use;
}

static const Csi__V1__VolumeGroupSnapshot *
find_group(const CsiCallRep *rep)
{
	if (rep->answer_case == CSI_CALL_REP__ANSWER_CREATE_VOLUME_GROUP_SNAPSHOT)
		return rep->create_volume_group_snapshot->group_snapshot;
	if (rep->answer_case == CSI_CALL_REP__ANSWER_GET_VOLUME_GROUP_SNAPSHOT)
		return rep->get_volume_group_snapshot->group_snapshot;
	return NULL;
}

static void
take_group(const Csi__V1__VolumeGroupSnapshot *from, struct rpc_csi_snapshots_rep *to)
{
	for (size_t i = 0; i < from->n_snapshots; i++) {
		take_snapshot(from->snapshots[i], to);
		str_set(&to->entries.v[i].group_id, from->group_snapshot_id);
	}
}

/* Takes the snapshots of an answer. Returns false if it has no snapshot or list. */
static bool
take_snapshots(const CsiCallRep *rep, struct rpc_csi_snapshots_rep *to)
{
	if (rep->answer_case == CSI_CALL_REP__ANSWER_CREATE_SNAPSHOT &&
	    rep->create_snapshot->snapshot && *rep->create_snapshot->snapshot->snapshot_id) {
		take_snapshot(rep->create_snapshot->snapshot, to);
		return true;
	}
	if (find_group(rep) && *find_group(rep)->group_snapshot_id) {
		take_group(find_group(rep), to);
		return true;
	}
	if (rep->answer_case != CSI_CALL_REP__ANSWER_LIST_SNAPSHOTS)
		return false;
	for (size_t i = 0; i < rep->list_snapshots->n_entries; i++)
		if (rep->list_snapshots->entries[i]->snapshot)
			take_snapshot(rep->list_snapshots->entries[i]->snapshot, to);
	str_set(&to->next_token, rep->list_snapshots->next_token);
	return true;
}

static void
on_snapshots(struct sup *sup, void *arg, int r, const CsiCallRep *rep, const struct err *e)
{
	cleanup_done(rpc_csi_snapshots_rep) struct rpc_csi_snapshots_rep list;
	cleanup_free struct controller_call *c = arg;
	struct err why = { 0 };

	rpc_csi_snapshots_rep_init(&list);
	if (r >= 0 && !take_snapshots(rep, &list)) {
		r = refuse_empty(c, "the call for snapshots", &why);
		e = &why;
	}
	c->snapshots(sup, c->arg, r, &list, r < 0 ? e : NULL);
}

void
snapshot_list(struct sup *sup, const char *plugin, int64_t max, const char *token,
    const struct string_map *secrets, snapshot_list_cb *cb, void *arg)
{
	Csi__V1__ListSnapshotsRequest list = CSI__V1__LIST_SNAPSHOTS_REQUEST__INIT;
	struct controller_call *c = call_new(plugin, arg);
	cleanup_call_args struct call_args args = { 0 };
	CsiCallReq req = CSI_CALL_REQ__INIT;

	c->snapshots = cb;
	list.max_entries = page_size(max);
	list.starting_token = (char *)(uintptr_t)token;
	list.n_secrets = call_args_map(&args, secrets, &list.secrets);
	req.call_case = CSI_CALL_REQ__CALL_LIST_SNAPSHOTS;
	req.list_snapshots = &list;
	send_call(sup, c, NULL, &req, on_snapshots);
}

void
snapshot_create(struct sup *sup, const struct csi_volume *vol, const char *name,
    snapshot_list_cb *cb, void *arg)
{
	Csi__V1__CreateSnapshotRequest create = CSI__V1__CREATE_SNAPSHOT_REQUEST__INIT;
	struct controller_call *c = call_new(str(vol->plugin_id), arg);
	cleanup_call_args struct call_args args = { 0 };
	CsiCallReq req = CSI_CALL_REQ__INIT;

	c->snapshots = cb;
	create.source_volume_id = vol->external_id;
	create.name = (char *)(uintptr_t)name;
	create.n_secrets = call_args_map(&args, &vol->secrets, &create.secrets);
	create.n_parameters = call_args_map(&args, &vol->parameters, &create.parameters);
	req.call_case = CSI_CALL_REQ__CALL_CREATE_SNAPSHOT;
	req.create_snapshot = &create;
	send_call(sup, c, vol, &req, on_snapshots);
}

void
snapshot_delete(struct sup *sup, const char *plugin, const char *id,
    const struct string_map *secrets, volume_cb *cb, void *arg)
{
	Csi__V1__DeleteSnapshotRequest delete = CSI__V1__DELETE_SNAPSHOT_REQUEST__INIT;
	struct controller_call *c = call_new(plugin, arg);
	cleanup_call_args struct call_args args = { 0 };
	CsiCallReq req = CSI_CALL_REQ__INIT;

	delete.snapshot_id = (char *)(uintptr_t)id;
	delete.n_secrets = call_args_map(&args, secrets, &delete.secrets);
	req.call_case = CSI_CALL_REQ__CALL_DELETE_SNAPSHOT;
	req.delete_snapshot = &delete;
	c->done = cb;
	send_call(sup, c, NULL, &req, on_done);
}

void
group_snapshot_create(struct sup *sup, const struct csi_volume *vol, const char *name,
    const struct strings *external_ids, snapshot_list_cb *cb, void *arg)
{
	Csi__V1__CreateVolumeGroupSnapshotRequest create =
	    CSI__V1__CREATE_VOLUME_GROUP_SNAPSHOT_REQUEST__INIT;
	struct controller_call *c = call_new(str(vol->plugin_id), arg);
	cleanup_call_args struct call_args args = { 0 };
	CsiCallReq req = CSI_CALL_REQ__INIT;

	c->snapshots = cb;
	create.name = (char *)(uintptr_t)name;
	create.n_source_volume_ids = external_ids->n;
	create.source_volume_ids = external_ids->v;
	create.n_secrets = call_args_map(&args, &vol->secrets, &create.secrets);
	create.n_parameters = call_args_map(&args, &vol->parameters, &create.parameters);
	req.call_case = CSI_CALL_REQ__CALL_CREATE_VOLUME_GROUP_SNAPSHOT;
	req.create_volume_group_snapshot = &create;
	send_call(sup, c, vol, &req, on_snapshots);
}

void
group_snapshot_get(struct sup *sup, const struct csi_volume *vol, const char *id,
    const struct strings *snapshots, snapshot_list_cb *cb, void *arg)
{
	Csi__V1__GetVolumeGroupSnapshotRequest get =
	    CSI__V1__GET_VOLUME_GROUP_SNAPSHOT_REQUEST__INIT;
	struct controller_call *c = call_new(str(vol->plugin_id), arg);
	cleanup_call_args struct call_args args = { 0 };
	CsiCallReq req = CSI_CALL_REQ__INIT;

	c->snapshots = cb;
	get.group_snapshot_id = (char *)(uintptr_t)id;
	get.n_snapshot_ids = snapshots->n;
	get.snapshot_ids = snapshots->v;
	get.n_secrets = call_args_map(&args, &vol->secrets, &get.secrets);
	req.call_case = CSI_CALL_REQ__CALL_GET_VOLUME_GROUP_SNAPSHOT;
	req.get_volume_group_snapshot = &get;
	send_call(sup, c, vol, &req, on_snapshots);
}

void
group_snapshot_delete(struct sup *sup, const struct csi_volume *vol, const char *id,
    const struct strings *snapshots, volume_cb *cb, void *arg)
{
	Csi__V1__DeleteVolumeGroupSnapshotRequest delete =
	    CSI__V1__DELETE_VOLUME_GROUP_SNAPSHOT_REQUEST__INIT;
	struct controller_call *c = call_new(str(vol->plugin_id), arg);
	cleanup_call_args struct call_args args = { 0 };
	CsiCallReq req = CSI_CALL_REQ__INIT;

	c->done = cb;
	delete.group_snapshot_id = (char *)(uintptr_t)id;
	delete.n_snapshot_ids = snapshots->n;
	delete.snapshot_ids = snapshots->v;
	delete.n_secrets = call_args_map(&args, &vol->secrets, &delete.secrets);
	req.call_case = CSI_CALL_REQ__CALL_DELETE_VOLUME_GROUP_SNAPSHOT;
	req.delete_volume_group_snapshot = &delete;
	send_call(sup, c, vol, &req, on_done);
}

// SPDX-License-Identifier: Apache-2.0
/* controller_calls.c: what the controller of a CSI plugin is asked. Runs in: supervisor. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "supervisor/volume/call_args.h"
#include "supervisor/volume/controller_calls.h"
#include "supervisor/volume/csi_error.h"
#include "supervisor/volume/plugins.h"
#include "supervisor/volume/volumes.h"

#define CREATE_TIMEOUT_MS 120000
#define LIST_PAGE_MAX     50

struct creation {
	struct csi_volume *volume;
	volume_cb *cb;
	volume_attach_cb *attach_cb; /* of an attachment, instead */
	void *arg;
};

static int
take_volume(struct csi_volume *vol, const Csi__V1__CreateVolumeResponse *rep, struct err *e)
{
	const Csi__V1__Volume *v = rep->volume;

	if (!v || v->volume_id[0] == '\0')
		return err_say(e, -EPROTO,
		    "CreateVolume of plugin %s: the plugin gave the volume no id", vol->plugin_id);
	if (str_set(&vol->external_id, v->volume_id) < 0)
		return err_set(e, -ENOMEM, "create volume %s", vol->id);
	vol->capacity = v->capacity_bytes;
	for (size_t i = 0; i < v->n_volume_context; i++)
		if (string_map_set(
			&vol->context, v->volume_context[i]->key, v->volume_context[i]->value) < 0)
			return err_set(e, -ENOMEM, "create volume %s", vol->id);
	for (size_t i = 0; i < v->n_accessible_topology; i++) {
		const Csi__V1__Topology *t = v->accessible_topology[i];
		struct csi_topology *mine = list_add(csi_topology, &vol->topologies);

		for (size_t k = 0; mine && k < t->n_segments; k++)
			(void)string_map_set(
			    &mine->segments, t->segments[k]->key, t->segments[k]->value);
	}
	return 0;
}

static void
on_created(struct sup *sup, void *arg, int r, const CsiCallRep *rep, const struct err *e)
{
	struct creation *c = arg;
	struct err why = { 0 };

	if (r >= 0) {
		r = rep->answer_case == CSI_CALL_REP__ANSWER_CREATE_VOLUME
			? take_volume(c->volume, rep->create_volume, &why)
			: err_say(&why, -EPROTO,
			      "CreateVolume of plugin %s: no answer in the answer",
			      c->volume->plugin_id);
		e = &why;
	}
	c->cb(sup, c->arg, r, r < 0 ? e : NULL);
	free(c);
}

static void
on_deleted(struct sup *sup, void *arg, int r, const CsiCallRep *rep, const struct err *e)
{
	struct creation *c = arg;

	c->cb(sup, c->arg, r, e);
	free(c);
}

static struct creation *
creation_new(struct csi_volume *vol, volume_cb *cb, void *arg)
{
	struct creation *c = calloc(1, sizeof *c);

	if (!c)
		abort();
	*c = (struct creation){ .volume = vol, .cb = cb, .arg = arg };
	return c;
}

/* NULL: from nothing. */
static Csi__V1__VolumeContentSource *
source_of(const struct csi_volume *vol)
{
	static Csi__V1__VolumeContentSource__SnapshotSource snapshot;
	static Csi__V1__VolumeContentSource__VolumeSource volume;
	static Csi__V1__VolumeContentSource source;

	csi__v1__volume_content_source__init(&source);
	if (*str(vol->snapshot_id)) {
		csi__v1__volume_content_source__snapshot_source__init(&snapshot);
		snapshot.snapshot_id = vol->snapshot_id;
		source.type_case = CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_SNAPSHOT;
		source.snapshot = &snapshot;
	} else if (*str(vol->clone_id)) {
		csi__v1__volume_content_source__volume_source__init(&volume);
		volume.volume_id = vol->clone_id;
		source.type_case = CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_VOLUME;
		source.volume = &volume;
	} else {
		return NULL;
	}
	return &source;
}

void
volume_create(struct sup *sup, struct csi_volume *vol, volume_cb *cb, void *arg)
{
	Csi__V1__CreateVolumeRequest create = CSI__V1__CREATE_VOLUME_REQUEST__INIT;
	Csi__V1__CapacityRange range = CSI__V1__CAPACITY_RANGE__INIT;
	CsiCallReq req = CSI_CALL_REQ__INIT;

	create.name = vol->name ? vol->name : vol->id;
	range.required_bytes = vol->requested_capacity_min;
	range.limit_bytes = vol->requested_capacity_max;
	if (range.required_bytes || range.limit_bytes)
		create.capacity_range = &range;
	create.n_volume_capabilities = call_args_capabilities(vol, &create.volume_capabilities);
	create.volume_content_source = source_of(vol);
	create.accessibility_requirements = call_args_topologies(vol->requested_topologies);
	create.n_parameters = call_args_map(0, &vol->parameters, &create.parameters);
	create.n_secrets = call_args_map(1, &vol->secrets, &create.secrets);
	req.call_case = CSI_CALL_REQ__CALL_CREATE_VOLUME;
	req.create_volume = &create;
	(void)plugin_call(sup, str(vol->plugin_id), CSI_PLUGIN_CONTROLLER, &req, CREATE_TIMEOUT_MS,
	    on_created, creation_new(vol, cb, arg));
}

void
volume_delete(struct sup *sup, const struct csi_volume *vol, volume_cb *cb, void *arg)
{
	Csi__V1__DeleteVolumeRequest delete = CSI__V1__DELETE_VOLUME_REQUEST__INIT;
	CsiCallReq req = CSI_CALL_REQ__INIT;

	delete.volume_id = vol->external_id ? vol->external_id : vol->id;
	delete.n_secrets = call_args_map(0, &vol->secrets, &delete.secrets);
	req.call_case = CSI_CALL_REQ__CALL_DELETE_VOLUME;
	req.delete_volume = &delete;
	(void)plugin_call(sup, str(vol->plugin_id), CSI_PLUGIN_CONTROLLER, &req, CREATE_TIMEOUT_MS,
	    on_deleted, creation_new(NULL, cb, arg));
}

/* --- what servers ask of a controller --- */

/* The plugin may say what it does not support, without an error. */
static void
on_validated(struct sup *sup, void *arg, int r, const CsiCallRep *rep, const struct err *e)
{
	struct creation *c = arg;
	struct err why = { 0 };

	if (r >= 0 && (rep->answer_case != CSI_CALL_REP__ANSWER_VALIDATE_VOLUME_CAPABILITIES ||
			  !rep->validate_volume_capabilities->confirmed)) {
		const char *text =
		    rep->answer_case == CSI_CALL_REP__ANSWER_VALIDATE_VOLUME_CAPABILITIES
			? rep->validate_volume_capabilities->message
			: "";

		r = err_say(&why, -EINVAL, "the plugin does not support these capabilities: %s",
		    *text ? text : "it does not say why");
		e = &why;
	}
	c->cb(sup, c->arg, r, e);
	free(c);
}

void
volume_validate(struct sup *sup, const struct csi_volume *vol, volume_cb *cb, void *arg)
{
	Csi__V1__ValidateVolumeCapabilitiesRequest validate =
	    CSI__V1__VALIDATE_VOLUME_CAPABILITIES_REQUEST__INIT;
	CsiCallReq req = CSI_CALL_REQ__INIT;

	validate.volume_id = vol->external_id;
	validate.n_volume_capabilities = call_args_capabilities(vol, &validate.volume_capabilities);
	validate.n_parameters = call_args_map(0, &vol->parameters, &validate.parameters);
	validate.n_secrets = call_args_map(1, &vol->secrets, &validate.secrets);
	validate.n_volume_context = call_args_map(2, &vol->context, &validate.volume_context);
	req.call_case = CSI_CALL_REQ__CALL_VALIDATE_VOLUME_CAPABILITIES;
	req.validate_volume_capabilities = &validate;
	(void)plugin_call(sup, str(vol->plugin_id), CSI_PLUGIN_CONTROLLER, &req, CREATE_TIMEOUT_MS,
	    on_validated, creation_new(NULL, cb, arg));
}

static void
on_attached(struct sup *sup, void *arg, int r, const CsiCallRep *rep, const struct err *e)
{
	const Csi__V1__ControllerPublishVolumeResponse *p = NULL;
	struct creation *c = arg;
	struct string_map context = { 0 };

	if (r >= 0 && rep->answer_case == CSI_CALL_REP__ANSWER_CONTROLLER_PUBLISH_VOLUME)
		p = rep->controller_publish_volume;
	for (size_t i = 0; p && i < p->n_publish_context; i++)
		(void)string_map_set(
		    &context, p->publish_context[i]->key, p->publish_context[i]->value);
	c->attach_cb(sup, c->arg, r, &context, e);
	for (size_t i = 0; i < context.n; i++) {
		free(context.v[i].key);
		free(context.v[i].value);
	}
	free(context.v);
	free(c);
}

void
volume_attach(struct sup *sup, const struct csi_volume *vol, const char *node, bool read_only,
    volume_attach_cb *cb, void *arg)
{
	Csi__V1__ControllerPublishVolumeRequest publish =
	    CSI__V1__CONTROLLER_PUBLISH_VOLUME_REQUEST__INIT;
	Csi__V1__VolumeCapability **caps;
	struct creation *c = creation_new(NULL, NULL, arg);
	CsiCallReq req = CSI_CALL_REQ__INIT;

	c->attach_cb = cb;
	publish.volume_id = vol->external_id;
	publish.node_id = (char *)(uintptr_t)node;
	publish.readonly = read_only;
	if (call_args_capabilities(vol, &caps) > 0)
		publish.volume_capability = caps[0];
	publish.n_secrets = call_args_map(0, &vol->secrets, &publish.secrets);
	publish.n_volume_context = call_args_map(1, &vol->context, &publish.volume_context);
	req.call_case = CSI_CALL_REQ__CALL_CONTROLLER_PUBLISH_VOLUME;
	req.controller_publish_volume = &publish;
	(void)plugin_call(sup, str(vol->plugin_id), CSI_PLUGIN_CONTROLLER, &req, CREATE_TIMEOUT_MS,
	    on_attached, c);
}

static void
on_detached(struct sup *sup, void *arg, int r, const CsiCallRep *rep, const struct err *e)
{
	struct creation *c = arg;

	if (r < 0 && rep && rep->grpc_status == GRPC_NOT_FOUND)
		r = 0;
	c->cb(sup, c->arg, r, e);
	free(c);
}

void
volume_detach(
    struct sup *sup, const struct csi_volume *vol, const char *node, volume_cb *cb, void *arg)
{
	Csi__V1__ControllerUnpublishVolumeRequest unpublish =
	    CSI__V1__CONTROLLER_UNPUBLISH_VOLUME_REQUEST__INIT;
	CsiCallReq req = CSI_CALL_REQ__INIT;

	unpublish.volume_id = vol->external_id;
	unpublish.node_id = (char *)(uintptr_t)node;
	unpublish.n_secrets = call_args_map(0, &vol->secrets, &unpublish.secrets);
	req.call_case = CSI_CALL_REQ__CALL_CONTROLLER_UNPUBLISH_VOLUME;
	req.controller_unpublish_volume = &unpublish;
	(void)plugin_call(sup, str(vol->plugin_id), CSI_PLUGIN_CONTROLLER, &req, CREATE_TIMEOUT_MS,
	    on_detached, creation_new(NULL, cb, arg));
}

/* --- size, lists, snapshots --- */

/* An answer that is waited for: one of the callbacks. */
struct inquiry {
	const char *plugin;
	volume_expand_cb *expanded;
	volume_list_cb *listed;
	snapshot_list_cb *snapshots;
	void *arg;
	char name[];
};

static struct inquiry *
inquiry_new(const char *plugin, void *arg)
{
	struct inquiry *q = calloc(1, sizeof *q + strlen(plugin) + 1);

	if (!q)
		abort();
	q->plugin = strcpy(q->name, plugin);
	q->arg = arg;
	return q;
}

static int
no_answer(const struct inquiry *q, const char *call, struct err *e)
{
	return err_say(e, -EPROTO, "%s of plugin %s: no answer in the answer", call, q->plugin);
}

static void
on_expanded(struct sup *sup, void *arg, int r, const CsiCallRep *rep, const struct err *e)
{
	cleanup_free struct inquiry *q = arg;
	struct err why = { 0 };

	if (r >= 0 && rep->answer_case == CSI_CALL_REP__ANSWER_CONTROLLER_EXPAND_VOLUME)
		q->expanded(sup, q->arg, 0, rep->controller_expand_volume->capacity_bytes,
		    rep->controller_expand_volume->node_expansion_required, NULL);
	else if (r >= 0)
		q->expanded(
		    sup, q->arg, no_answer(q, "ControllerExpandVolume", &why), 0, false, &why);
	else
		q->expanded(sup, q->arg, r, 0, false, e);
}

void
volume_expand(struct sup *sup, const struct csi_volume *vol, int64_t required_bytes,
    int64_t limit_bytes, volume_expand_cb *cb, void *arg)
{
	Csi__V1__ControllerExpandVolumeRequest expand =
	    CSI__V1__CONTROLLER_EXPAND_VOLUME_REQUEST__INIT;
	Csi__V1__CapacityRange range = CSI__V1__CAPACITY_RANGE__INIT;
	struct inquiry *q = inquiry_new(str(vol->plugin_id), arg);
	CsiCallReq req = CSI_CALL_REQ__INIT;
	Csi__V1__VolumeCapability **caps;

	q->expanded = cb;
	expand.volume_id = vol->external_id;
	range.required_bytes = required_bytes;
	range.limit_bytes = limit_bytes;
	expand.capacity_range = &range;
	if (call_args_capabilities(vol, &caps) > 0)
		expand.volume_capability = caps[0];
	expand.n_secrets = call_args_map(0, &vol->secrets, &expand.secrets);
	req.call_case = CSI_CALL_REQ__CALL_CONTROLLER_EXPAND_VOLUME;
	req.controller_expand_volume = &expand;
	(void)plugin_call(
	    sup, q->plugin, CSI_PLUGIN_CONTROLLER, &req, CREATE_TIMEOUT_MS, on_expanded, q);
}

static int
take_context(const Csi__V1__Volume *from, struct rpc_csi_entry *to)
{
	const Csi__V1__VolumeContentSource *source = from->content_source;
	int r = 0;

	for (size_t i = 0; r == 0 && i < from->n_volume_context; i++)
		r = string_map_set(&to->volume_context, from->volume_context[i]->key,
		    from->volume_context[i]->value);
	if (r == 0 && source && source->type_case == CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_SNAPSHOT)
		r = str_set(&to->snapshot_id, source->snapshot->snapshot_id);
	if (r == 0 && source && source->type_case == CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_VOLUME)
		r = str_set(&to->clone_id, source->volume->volume_id);
	return r;
}

static int
take_entry(const Csi__V1__ListVolumesResponse__Entry *from, struct rpc_csi_entry *to)
{
	const Csi__V1__ListVolumesResponse__VolumeStatus *status = from->status;
	int r = 0;

	if (from->volume) {
		to->capacity_bytes = from->volume->capacity_bytes;
		r = str_set(&to->external_id, from->volume->volume_id);
		r = r < 0 ? r : take_context(from->volume, to);
	}
	for (size_t i = 0; status && r == 0 && i < status->n_published_node_ids; i++)
		r = strings_add(&to->published_external_node_ids, status->published_node_ids[i]);
	if (r == 0 && status && status->volume_condition) {
		to->is_abnormal = status->volume_condition->abnormal;
		r = str_set(&to->status, status->volume_condition->message);
	}
	return r;
}

static int
take_list(const Csi__V1__ListVolumesResponse *from, struct rpc_csi_rep *to)
{
	int r = str_set(&to->next_token, from->next_token);

	for (size_t i = 0; r == 0 && i < from->n_entries; i++) {
		struct rpc_csi_entry *entry = list_add(rpc_csi_entry, &to->entries);

		r = entry ? take_entry(from->entries[i], entry) : -ENOMEM;
	}
	return r;
}

static void
on_listed(struct sup *sup, void *arg, int r, const CsiCallRep *rep, const struct err *e)
{
	cleanup_done(rpc_csi_rep) struct rpc_csi_rep list;
	cleanup_free struct inquiry *q = arg;
	struct err why = { 0 };

	rpc_csi_rep_init(&list);
	if (r >= 0) {
		r = rep->answer_case == CSI_CALL_REP__ANSWER_LIST_VOLUMES
			? take_list(rep->list_volumes, &list)
			: no_answer(q, "ListVolumes", &why);
		if (r == -ENOMEM)
			(void)err_set(&why, r, "list the volumes of plugin %s", q->plugin);
		e = &why;
	}
	q->listed(sup, q->arg, r, &list, r < 0 ? e : NULL);
}

/* What fits into one message between the processes. */
static int32_t
page_size(int64_t wanted)
{
	return wanted > 0 && wanted < LIST_PAGE_MAX ? (int32_t)wanted : LIST_PAGE_MAX;
}

void
volume_list(struct sup *sup, const char *plugin, int64_t max, const char *token, volume_list_cb *cb,
    void *arg)
{
	Csi__V1__ListVolumesRequest list = CSI__V1__LIST_VOLUMES_REQUEST__INIT;
	struct inquiry *q = inquiry_new(plugin, arg);
	CsiCallReq req = CSI_CALL_REQ__INIT;

	q->listed = cb;
	list.max_entries = page_size(max);
	list.starting_token = (char *)(uintptr_t)token;
	req.call_case = CSI_CALL_REQ__CALL_LIST_VOLUMES;
	req.list_volumes = &list;
	(void)plugin_call(
	    sup, q->plugin, CSI_PLUGIN_CONTROLLER, &req, CREATE_TIMEOUT_MS, on_listed, q);
}

static int
take_snapshot(const Csi__V1__Snapshot *from, struct rpc_csi_snapshots_rep *to)
{
	struct rpc_csi_snapshot *s = list_add(rpc_csi_snapshot, &to->entries);

	if (!s || str_set(&s->id, from->snapshot_id) < 0 ||
	    str_set(&s->external_source_volume_id, from->source_volume_id) < 0)
		return -ENOMEM;
	s->size_bytes = from->size_bytes;
	s->create_time = from->creation_time ? from->creation_time->seconds : 0;
	s->is_ready = from->ready_to_use;
	return 0;
}

static int
take_snapshots(const CsiCallRep *rep, struct rpc_csi_snapshots_rep *to)
{
	int r = 0;

	if (rep->answer_case == CSI_CALL_REP__ANSWER_CREATE_SNAPSHOT &&
	    rep->create_snapshot->snapshot && *rep->create_snapshot->snapshot->snapshot_id)
		return take_snapshot(rep->create_snapshot->snapshot, to);
	if (rep->answer_case != CSI_CALL_REP__ANSWER_LIST_SNAPSHOTS)
		return -EPROTO;
	for (size_t i = 0; r == 0 && i < rep->list_snapshots->n_entries; i++)
		if (rep->list_snapshots->entries[i]->snapshot)
			r = take_snapshot(rep->list_snapshots->entries[i]->snapshot, to);
	return r < 0 ? r : str_set(&to->next_token, rep->list_snapshots->next_token);
}

static void
on_snapshots(struct sup *sup, void *arg, int r, const CsiCallRep *rep, const struct err *e)
{
	cleanup_done(rpc_csi_snapshots_rep) struct rpc_csi_snapshots_rep list;
	cleanup_free struct inquiry *q = arg;
	struct err why = { 0 };

	rpc_csi_snapshots_rep_init(&list);
	if (r >= 0) {
		r = take_snapshots(rep, &list);
		if (r == -ENOMEM)
			(void)err_set(&why, r, "snapshots of plugin %s", q->plugin);
		else if (r < 0)
			(void)no_answer(q, "the call for snapshots", &why);
		e = &why;
	}
	q->snapshots(sup, q->arg, r, &list, r < 0 ? e : NULL);
}

void
snapshot_list(struct sup *sup, const char *plugin, int64_t max, const char *token,
    const struct string_map *secrets, snapshot_list_cb *cb, void *arg)
{
	Csi__V1__ListSnapshotsRequest list = CSI__V1__LIST_SNAPSHOTS_REQUEST__INIT;
	struct inquiry *q = inquiry_new(plugin, arg);
	CsiCallReq req = CSI_CALL_REQ__INIT;

	q->snapshots = cb;
	list.max_entries = page_size(max);
	list.starting_token = (char *)(uintptr_t)token;
	list.n_secrets = call_args_map(0, secrets, &list.secrets);
	req.call_case = CSI_CALL_REQ__CALL_LIST_SNAPSHOTS;
	req.list_snapshots = &list;
	(void)plugin_call(
	    sup, q->plugin, CSI_PLUGIN_CONTROLLER, &req, CREATE_TIMEOUT_MS, on_snapshots, q);
}

void
snapshot_create(struct sup *sup, const struct csi_volume *vol, const char *name,
    snapshot_list_cb *cb, void *arg)
{
	Csi__V1__CreateSnapshotRequest create = CSI__V1__CREATE_SNAPSHOT_REQUEST__INIT;
	struct inquiry *q = inquiry_new(str(vol->plugin_id), arg);
	CsiCallReq req = CSI_CALL_REQ__INIT;

	q->snapshots = cb;
	create.source_volume_id = vol->external_id;
	create.name = (char *)(uintptr_t)name;
	create.n_secrets = call_args_map(0, &vol->secrets, &create.secrets);
	create.n_parameters = call_args_map(1, &vol->parameters, &create.parameters);
	req.call_case = CSI_CALL_REQ__CALL_CREATE_SNAPSHOT;
	req.create_snapshot = &create;
	(void)plugin_call(
	    sup, q->plugin, CSI_PLUGIN_CONTROLLER, &req, CREATE_TIMEOUT_MS, on_snapshots, q);
}

void
snapshot_delete(struct sup *sup, const char *plugin, const char *id,
    const struct string_map *secrets, volume_cb *cb, void *arg)
{
	Csi__V1__DeleteSnapshotRequest delete = CSI__V1__DELETE_SNAPSHOT_REQUEST__INIT;
	CsiCallReq req = CSI_CALL_REQ__INIT;

	delete.snapshot_id = (char *)(uintptr_t)id;
	delete.n_secrets = call_args_map(0, secrets, &delete.secrets);
	req.call_case = CSI_CALL_REQ__CALL_DELETE_SNAPSHOT;
	req.delete_snapshot = &delete;
	/* What is not there is deleted, as with volumes on their way out. */
	(void)plugin_call(sup, plugin, CSI_PLUGIN_CONTROLLER, &req, CREATE_TIMEOUT_MS, on_detached,
	    creation_new(NULL, cb, arg));
}

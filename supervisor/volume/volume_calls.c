// SPDX-License-Identifier: Apache-2.0
/* volume_calls.c: CSI requests for volumes and their mounts. Runs in: supervisor. */
#include "supervisor/volume/volume_calls.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "supervisor/volume/csi_error.h"
#include "supervisor/volume/volumes.h"

#define PATH_SIZE         1024
#define ENTRIES_MAX       64
#define CAPABILITIES_MAX  16
#define CREATE_TIMEOUT_MS 120000

/* A request while it is made: what its pointers point to. Messages are copied when they are sent,
 * so one is enough. */
static struct {
	Csi__V1__StringEntry entries[4][ENTRIES_MAX], *lists[4][ENTRIES_MAX];
	Csi__V1__VolumeCapability caps[CAPABILITIES_MAX], *cap_list[CAPABILITIES_MAX];
	Csi__V1__VolumeCapability__BlockVolume block;
	Csi__V1__VolumeCapability__MountVolume mounts[CAPABILITIES_MAX];
	Csi__V1__VolumeCapability__AccessMode modes[CAPABILITIES_MAX];
	char staging[PATH_SIZE], target[PATH_SIZE];
} scratch;

/* A map as protobuf's repeated entries. Beyond ENTRIES_MAX nothing is sent: validation has refused
 * such a volume. */
static size_t
put_map(unsigned slot, const struct string_map *m, Csi__V1__StringEntry ***ret)
{
	size_t n = m->n < ENTRIES_MAX ? m->n : ENTRIES_MAX;

	for (size_t i = 0; i < n; i++) {
		csi__v1__string_entry__init(&scratch.entries[slot][i]);
		scratch.entries[slot][i].key = m->v[i].key;
		scratch.entries[slot][i].value = (char *)(uintptr_t)str(m->v[i].value);
		scratch.lists[slot][i] = &scratch.entries[slot][i];
	}
	*ret = scratch.lists[slot];
	return n;
}

static Csi__V1__VolumeCapability__AccessMode__Mode
access_mode(enum csi_access access)
{
	switch (access) {
	case CSI_SINGLE_NODE_READER:
		return CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__SINGLE_NODE_READER_ONLY;
	case CSI_SINGLE_NODE_WRITER:
		return CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__SINGLE_NODE_WRITER;
	case CSI_MULTI_NODE_READER:
		return CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__MULTI_NODE_READER_ONLY;
	case CSI_MULTI_NODE_SINGLE_WRITER:
		return CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__MULTI_NODE_SINGLE_WRITER;
	case CSI_MULTI_NODE_MULTI_WRITER:
		return CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__MULTI_NODE_MULTI_WRITER;
	case CSI_ACCESS_NONE:
		break;
	}
	return CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__UNKNOWN;
}

static Csi__V1__VolumeCapability *
put_capability(unsigned at, const struct csi_capability *cap, const struct mount_options *options)
{
	Csi__V1__VolumeCapability *c = &scratch.caps[at];
	Csi__V1__VolumeCapability__MountVolume *mount = &scratch.mounts[at];

	csi__v1__volume_capability__init(c);
	csi__v1__volume_capability__access_mode__init(&scratch.modes[at]);
	scratch.modes[at].mode = access_mode(cap->access_mode);
	c->access_mode = &scratch.modes[at];
	if (cap->attachment_mode == CSI_BLOCK_DEVICE) {
		csi__v1__volume_capability__block_volume__init(&scratch.block);
		c->access_type_case = CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_BLOCK;
		c->block = &scratch.block;
	} else {
		csi__v1__volume_capability__mount_volume__init(mount);
		if (options && options->fs_type)
			mount->fs_type = options->fs_type;
		if (options) {
			mount->mount_flags = options->mount_flags.v;
			mount->n_mount_flags = options->mount_flags.n;
		}
		c->access_type_case = CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_MOUNT;
		c->mount = mount;
	}
	scratch.cap_list[at] = c;
	return c;
}

/* Into scratch.cap_list; their number. */
static size_t
put_capabilities(const struct csi_volume *vol)
{
	size_t n = vol->requested_capabilities.n;

	n = n < CAPABILITIES_MAX ? n : CAPABILITIES_MAX;
	for (unsigned i = 0; i < n; i++)
		(void)put_capability(i, &vol->requested_capabilities.v[i], vol->mount_options);
	return n;
}

/* Paths as the plugin sees them, below its root (row G05). */
static void
put_paths(const struct mount_record *rec)
{
	(void)snprintf(scratch.staging, sizeof scratch.staging, "%s/staging/%s/%s",
	    rec->container_root, rec->volume, rec->usage);
	(void)snprintf(scratch.target, sizeof scratch.target, "%s/per-alloc/%s/%s/%s",
	    rec->container_root, rec->alloc, rec->volume, rec->usage);
}

struct plugin_call *
volume_send_stage(struct sup *sup, const struct mount_record *rec, const struct csi_volume *volume,
    const struct csi_capability *cap, unsigned timeout_ms, plugin_call_cb *cb, void *arg)
{
	Csi__V1__NodeStageVolumeRequest stage = CSI__V1__NODE_STAGE_VOLUME_REQUEST__INIT;
	CsiCallReq req = CSI_CALL_REQ__INIT;

	put_paths(rec);
	stage.volume_id = rec->external_id;
	stage.staging_target_path = scratch.staging;
	stage.volume_capability = put_capability(0, cap, volume->mount_options);
	stage.n_secrets = put_map(0, &volume->secrets, &stage.secrets);
	stage.n_publish_context = put_map(2, &volume->publish_context, &stage.publish_context);
	stage.n_volume_context = put_map(1, &volume->context, &stage.volume_context);
	req.call_case = CSI_CALL_REQ__CALL_NODE_STAGE_VOLUME;
	req.node_stage_volume = &stage;
	return plugin_call(sup, rec->plugin, CSI_PLUGIN_NODE, &req, timeout_ms, cb, arg);
}

struct plugin_call *
volume_send_publish(struct sup *sup, const struct mount_record *rec,
    const struct csi_volume *volume, const struct csi_capability *cap, unsigned timeout_ms,
    plugin_call_cb *cb, void *arg)
{
	Csi__V1__NodePublishVolumeRequest publish = CSI__V1__NODE_PUBLISH_VOLUME_REQUEST__INIT;
	CsiCallReq req = CSI_CALL_REQ__INIT;

	put_paths(rec);
	publish.volume_id = rec->external_id;
	if (rec->stages)
		publish.staging_target_path = scratch.staging;
	publish.target_path = scratch.target;
	publish.volume_capability = put_capability(0, cap, volume->mount_options);
	publish.readonly = rec->read_only;
	publish.n_secrets = put_map(0, &volume->secrets, &publish.secrets);
	publish.n_publish_context = put_map(2, &volume->publish_context, &publish.publish_context);
	publish.n_volume_context = put_map(1, &volume->context, &publish.volume_context);
	req.call_case = CSI_CALL_REQ__CALL_NODE_PUBLISH_VOLUME;
	req.node_publish_volume = &publish;
	return plugin_call(sup, rec->plugin, CSI_PLUGIN_NODE, &req, timeout_ms, cb, arg);
}

struct plugin_call *
volume_send_unpublish(struct sup *sup, const struct mount_record *rec,
    const struct csi_volume *volume, const struct csi_capability *cap, unsigned timeout_ms,
    plugin_call_cb *cb, void *arg)
{
	Csi__V1__NodeUnpublishVolumeRequest unpublish =
	    CSI__V1__NODE_UNPUBLISH_VOLUME_REQUEST__INIT;
	CsiCallReq req = CSI_CALL_REQ__INIT;

	put_paths(rec);
	unpublish.volume_id = rec->external_id;
	unpublish.target_path = scratch.target;
	req.call_case = CSI_CALL_REQ__CALL_NODE_UNPUBLISH_VOLUME;
	req.node_unpublish_volume = &unpublish;
	return plugin_call(sup, rec->plugin, CSI_PLUGIN_NODE, &req, timeout_ms, cb, arg);
}

struct plugin_call *
volume_send_unstage(struct sup *sup, const struct mount_record *rec,
    const struct csi_volume *volume, const struct csi_capability *cap, unsigned timeout_ms,
    plugin_call_cb *cb, void *arg)
{
	Csi__V1__NodeUnstageVolumeRequest unstage = CSI__V1__NODE_UNSTAGE_VOLUME_REQUEST__INIT;
	CsiCallReq req = CSI_CALL_REQ__INIT;

	put_paths(rec);
	unstage.volume_id = rec->external_id;
	unstage.staging_target_path = scratch.staging;
	req.call_case = CSI_CALL_REQ__CALL_NODE_UNSTAGE_VOLUME;
	req.node_unstage_volume = &unstage;
	return plugin_call(sup, rec->plugin, CSI_PLUGIN_NODE, &req, timeout_ms, cb, arg);
}

/* --- create and delete --- */

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
	create.volume_capabilities = scratch.cap_list;
	create.n_volume_capabilities = put_capabilities(vol);
	create.n_parameters = put_map(0, &vol->parameters, &create.parameters);
	create.n_secrets = put_map(1, &vol->secrets, &create.secrets);
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
	delete.n_secrets = put_map(0, &vol->secrets, &delete.secrets);
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
	validate.volume_capabilities = scratch.cap_list;
	validate.n_volume_capabilities = put_capabilities(vol);
	validate.n_parameters = put_map(0, &vol->parameters, &validate.parameters);
	validate.n_secrets = put_map(1, &vol->secrets, &validate.secrets);
	validate.n_volume_context = put_map(2, &vol->context, &validate.volume_context);
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
	struct creation *c = creation_new(NULL, NULL, arg);
	CsiCallReq req = CSI_CALL_REQ__INIT;

	c->attach_cb = cb;
	publish.volume_id = vol->external_id;
	publish.node_id = (char *)(uintptr_t)node;
	publish.readonly = read_only;
	if (put_capabilities(vol) > 0)
		publish.volume_capability = scratch.cap_list[0];
	publish.n_secrets = put_map(0, &vol->secrets, &publish.secrets);
	publish.n_volume_context = put_map(1, &vol->context, &publish.volume_context);
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
	unpublish.n_secrets = put_map(0, &vol->secrets, &unpublish.secrets);
	req.call_case = CSI_CALL_REQ__CALL_CONTROLLER_UNPUBLISH_VOLUME;
	req.controller_unpublish_volume = &unpublish;
	(void)plugin_call(sup, str(vol->plugin_id), CSI_PLUGIN_CONTROLLER, &req, CREATE_TIMEOUT_MS,
	    on_detached, creation_new(NULL, cb, arg));
}

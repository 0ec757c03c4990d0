// SPDX-License-Identifier: Apache-2.0
/* csi_bad_answers.c: the correct answers of csi_bad, and their effects: sizes and mounts. Runs in:
 * tests. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "proto/csi.pb-c.h"
#include "tests/peers/csi_bad.h"

static void
pack(struct answer *a, const ProtobufCMessage *msg)
{
	a->len = protobuf_c_message_get_packed_size(msg);
	a->data = realloc(a->data, a->len + 1);
	(void)protobuf_c_message_pack(msg, a->data);
}

/* --- sizes of volumes --- */

static int64_t
read_size(const char *volume, const char *suffix)
{
	char path[1400];
	long long size = 0;
	FILE *f;

	(void)snprintf(path, sizeof path, "%s/%s%s", bad.sizes_dir, volume, suffix);
	f = fopen(path, "re");
	if (f) {
		(void)!fscanf(f, "%lld", &size);
		(void)fclose(f);
	}
	return size;
}

/* Records a size; a volume never becomes smaller. */
static void
record_size(const struct answer *a, const char *suffix)
{
	char path[1400];
	FILE *f;

	if (a->size <= read_size(a->volume, suffix))
		return;
	(void)snprintf(path, sizeof path, "%s/%s%s", bad.sizes_dir, a->volume, suffix);
	f = fopen(path, "we");
	if (!f)
		return;
	(void)fprintf(f, "%lld\n", (long long)a->size);
	(void)fclose(f);
}

static void
grow_volume(const struct answer *a)
{
	record_size(a, "");
}

static void
grow_on_node(const struct answer *a)
{
	record_size(a, ".node");
}

/* --- correct answers --- */

static void
get_plugin_info(struct answer *a, const uint8_t *data, size_t len)
{
	char name[] = "csi-bad.drover", version[] = "1";
	Csi__V1__GetPluginInfoResponse rep = CSI__V1__GET_PLUGIN_INFO_RESPONSE__INIT;

	rep.name = name;
	rep.vendor_version = version;
	pack(a, &rep.base);
}

static void
get_plugin_capabilities(struct answer *a, const uint8_t *data, size_t len)
{
	static const Csi__V1__PluginCapability__Service__Type types[] = {
		CSI__V1__PLUGIN_CAPABILITY__SERVICE__TYPE__CONTROLLER_SERVICE,
		/* With group=yes. */
		CSI__V1__PLUGIN_CAPABILITY__SERVICE__TYPE__GROUP_CONTROLLER_SERVICE,
	};
	Csi__V1__PluginCapability__Service services[ELEMENTSOF(types)];
	Csi__V1__PluginCapability caps[ELEMENTSOF(types)], *list[ELEMENTSOF(types)];
	Csi__V1__GetPluginCapabilitiesResponse rep =
	    CSI__V1__GET_PLUGIN_CAPABILITIES_RESPONSE__INIT;

	for (size_t i = 0; i < ELEMENTSOF(types); i++) {
		csi__v1__plugin_capability__service__init(&services[i]);
		csi__v1__plugin_capability__init(&caps[i]);
		services[i].type = types[i];
		caps[i].type_case = CSI__V1__PLUGIN_CAPABILITY__TYPE_SERVICE;
		caps[i].service = &services[i];
		list[i] = &caps[i];
	}
	rep.n_capabilities = ELEMENTSOF(list) - (bad.grouped ? 0 : 1);
	rep.capabilities = list;
	pack(a, &rep.base);
}

static void
node_get_info(struct answer *a, const uint8_t *data, size_t len)
{
	char node_id[] = "bad-node";
	Csi__V1__NodeGetInfoResponse rep = CSI__V1__NODE_GET_INFO_RESPONSE__INIT;

	rep.node_id = node_id;
	pack(a, &rep.base);
}

static void
node_get_capabilities(struct answer *a, const uint8_t *data, size_t len)
{
	static const Csi__V1__NodeServiceCapability__RPC__Type types[] = {
		/* Of a device, or with state=DIR or sizes=DIR. */
		CSI__V1__NODE_SERVICE_CAPABILITY__RPC__TYPE__EXPAND_VOLUME,
		/* Not with stages=no. */
		CSI__V1__NODE_SERVICE_CAPABILITY__RPC__TYPE__STAGE_UNSTAGE_VOLUME,
	};
	Csi__V1__NodeServiceCapability__RPC rpcs[ELEMENTSOF(types)];
	Csi__V1__NodeServiceCapability caps[ELEMENTSOF(types)], *list[ELEMENTSOF(types)];
	Csi__V1__NodeGetCapabilitiesResponse rep = CSI__V1__NODE_GET_CAPABILITIES_RESPONSE__INIT;
	bool can_expand = bad.device || bad.state_dir || bad.sizes_dir;

	for (size_t i = 0; i < ELEMENTSOF(types); i++) {
		csi__v1__node_service_capability__rpc__init(&rpcs[i]);
		csi__v1__node_service_capability__init(&caps[i]);
		rpcs[i].type = types[i];
		caps[i].type_case = CSI__V1__NODE_SERVICE_CAPABILITY__TYPE_RPC;
		caps[i].rpc = &rpcs[i];
		list[i] = &caps[i];
	}
	rep.capabilities = list + (can_expand ? 0 : 1);
	rep.n_capabilities = ELEMENTSOF(list) - (can_expand ? 0 : 1) - (bad.unstaged ? 1 : 0);
	pack(a, &rep.base);
}

static void
controller_get_capabilities(struct answer *a, const uint8_t *data, size_t len)
{
	static const Csi__V1__ControllerServiceCapability__RPC__Type types[] = {
		CSI__V1__CONTROLLER_SERVICE_CAPABILITY__RPC__TYPE__CREATE_DELETE_VOLUME,
		CSI__V1__CONTROLLER_SERVICE_CAPABILITY__RPC__TYPE__LIST_VOLUMES,
		CSI__V1__CONTROLLER_SERVICE_CAPABILITY__RPC__TYPE__EXPAND_VOLUME,
		CSI__V1__CONTROLLER_SERVICE_CAPABILITY__RPC__TYPE__CREATE_DELETE_SNAPSHOT,
		CSI__V1__CONTROLLER_SERVICE_CAPABILITY__RPC__TYPE__LIST_SNAPSHOTS,
		/* With attach=FILE or state=DIR. */
		CSI__V1__CONTROLLER_SERVICE_CAPABILITY__RPC__TYPE__PUBLISH_UNPUBLISH_VOLUME,
		CSI__V1__CONTROLLER_SERVICE_CAPABILITY__RPC__TYPE__PUBLISH_READONLY,
		/* With state=DIR. */
		CSI__V1__CONTROLLER_SERVICE_CAPABILITY__RPC__TYPE__GET_CAPACITY,
		CSI__V1__CONTROLLER_SERVICE_CAPABILITY__RPC__TYPE__GET_VOLUME,
		CSI__V1__CONTROLLER_SERVICE_CAPABILITY__RPC__TYPE__MODIFY_VOLUME,
	};
	Csi__V1__ControllerServiceCapability__RPC rpcs[ELEMENTSOF(types)];
	Csi__V1__ControllerServiceCapability caps[ELEMENTSOF(types)], *list[ELEMENTSOF(types)];
	Csi__V1__ControllerGetCapabilitiesResponse rep =
	    CSI__V1__CONTROLLER_GET_CAPABILITIES_RESPONSE__INIT;

	for (size_t i = 0; i < ELEMENTSOF(types); i++) {
		csi__v1__controller_service_capability__rpc__init(&rpcs[i]);
		csi__v1__controller_service_capability__init(&caps[i]);
		rpcs[i].type = types[i];
		caps[i].type_case = CSI__V1__CONTROLLER_SERVICE_CAPABILITY__TYPE_RPC;
		caps[i].rpc = &rpcs[i];
		list[i] = &caps[i];
	}
	rep.n_capabilities = ELEMENTSOF(list) - (bad.state_dir ? 0 : bad.attach_log ? 3 : 5);
	rep.capabilities = list;
	pack(a, &rep.base);
}

/* The volume's id is its name, and its context are the parameters. */
static void
create_volume(struct answer *a, const uint8_t *data, size_t len)
{
	Csi__V1__CreateVolumeRequest *req = csi__v1__create_volume_request__unpack(NULL, len, data);
	Csi__V1__CreateVolumeResponse rep = CSI__V1__CREATE_VOLUME_RESPONSE__INIT;
	Csi__V1__Volume volume = CSI__V1__VOLUME__INIT;

	if (!req) {
		a->status = STATUS_INVALID_ARGUMENT;
		return;
	}
	volume.volume_id = req->name;
	volume.n_volume_context = req->n_parameters;
	volume.volume_context = req->parameters;
	if (bad.sizes_dir && req->capacity_range) {
		a->size = volume.capacity_bytes = req->capacity_range->required_bytes;
		a->effect = grow_volume;
	}
	rep.volume = &volume;
	pack(a, &rep.base);
	csi__v1__create_volume_request__free_unpacked(req, NULL);
}

/* The volume gets the required size, and the nodes must expand it too. */
static void
controller_expand(struct answer *a, const uint8_t *data, size_t len)
{
	Csi__V1__ControllerExpandVolumeRequest *req =
	    csi__v1__controller_expand_volume_request__unpack(NULL, len, data);
	Csi__V1__ControllerExpandVolumeResponse rep =
	    CSI__V1__CONTROLLER_EXPAND_VOLUME_RESPONSE__INIT;

	if (!req) {
		a->status = STATUS_INVALID_ARGUMENT;
		return;
	}
	if (req->capacity_range)
		a->size = rep.capacity_bytes = req->capacity_range->required_bytes;
	if (bad.sizes_dir)
		a->effect = grow_volume;
	rep.node_expansion_required = true;
	pack(a, &rep.base);
	csi__v1__controller_expand_volume_request__free_unpacked(req, NULL);
}

static void
put_snapshot(Csi__V1__Snapshot *s, Csi__V1__Timestamp *made, char *id, char *volume)
{
	csi__v1__snapshot__init(s);
	csi__v1__timestamp__init(made);
	made->seconds = 1700000000;
	s->snapshot_id = id;
	s->source_volume_id = volume;
	s->size_bytes = 4096;
	s->creation_time = made;
	s->ready_to_use = true;
}

/* The snapshot's id is its name. */
static void
create_snapshot(struct answer *a, const uint8_t *data, size_t len)
{
	Csi__V1__CreateSnapshotRequest *req =
	    csi__v1__create_snapshot_request__unpack(NULL, len, data);
	Csi__V1__CreateSnapshotResponse rep = CSI__V1__CREATE_SNAPSHOT_RESPONSE__INIT;
	Csi__V1__Timestamp made;
	Csi__V1__Snapshot s;

	if (!req) {
		a->status = STATUS_INVALID_ARGUMENT;
		return;
	}
	put_snapshot(&s, &made, req->name, req->source_volume_id);
	rep.snapshot = &s;
	pack(a, &rep.base);
	csi__v1__create_snapshot_request__free_unpacked(req, NULL);
}

/* A group with one snapshot of the same name. */
static void
pack_group(struct answer *a, char *id)
{
	Csi__V1__CreateVolumeGroupSnapshotResponse rep =
	    CSI__V1__CREATE_VOLUME_GROUP_SNAPSHOT_RESPONSE__INIT;
	Csi__V1__VolumeGroupSnapshot group = CSI__V1__VOLUME_GROUP_SNAPSHOT__INIT;
	Csi__V1__Snapshot s, *list[] = { &s };
	Csi__V1__Timestamp made;

	put_snapshot(&s, &made, id, id);
	s.group_snapshot_id = id;
	group.group_snapshot_id = id;
	group.n_snapshots = 1;
	group.snapshots = list;
	group.creation_time = &made;
	group.ready_to_use = true;
	rep.group_snapshot = &group;
	pack(a, &rep.base); /* that of GetVolumeGroupSnapshot has the same fields */
}

/* The group's id is its name. */
static void
create_group(struct answer *a, const uint8_t *data, size_t len)
{
	Csi__V1__CreateVolumeGroupSnapshotRequest *req =
	    csi__v1__create_volume_group_snapshot_request__unpack(NULL, len, data);

	if (!req) {
		a->status = STATUS_INVALID_ARGUMENT;
		return;
	}
	pack_group(a, req->name);
	csi__v1__create_volume_group_snapshot_request__free_unpacked(req, NULL);
}

static void
get_group(struct answer *a, const uint8_t *data, size_t len)
{
	Csi__V1__GetVolumeGroupSnapshotRequest *req =
	    csi__v1__get_volume_group_snapshot_request__unpack(NULL, len, data);

	if (!req) {
		a->status = STATUS_INVALID_ARGUMENT;
		return;
	}
	pack_group(a, req->group_snapshot_id);
	csi__v1__get_volume_group_snapshot_request__free_unpacked(req, NULL);
}

static void
group_get_capabilities(struct answer *a, const uint8_t *data, size_t len)
{
	Csi__V1__GroupControllerGetCapabilitiesResponse rep =
	    CSI__V1__GROUP_CONTROLLER_GET_CAPABILITIES_RESPONSE__INIT;
	Csi__V1__GroupControllerServiceCapability__RPC rpc =
	    CSI__V1__GROUP_CONTROLLER_SERVICE_CAPABILITY__RPC__INIT;
	Csi__V1__GroupControllerServiceCapability
	    cap = CSI__V1__GROUP_CONTROLLER_SERVICE_CAPABILITY__INIT,
	    *list[] = { &cap };

	rpc.type =
	    CSI__V1__GROUP_CONTROLLER_SERVICE_CAPABILITY__RPC__TYPE__CREATE_DELETE_GET_VOLUME_GROUP_SNAPSHOT;
	cap.type_case = CSI__V1__GROUP_CONTROLLER_SERVICE_CAPABILITY__TYPE_RPC;
	cap.rpc = &rpc;
	rep.n_capabilities = 1;
	rep.capabilities = list;
	pack(a, &rep.base);
}

static void
get_volume(struct answer *a, const uint8_t *data, size_t len)
{
	Csi__V1__ControllerGetVolumeRequest *req =
	    csi__v1__controller_get_volume_request__unpack(NULL, len, data);
	Csi__V1__ControllerGetVolumeResponse rep = CSI__V1__CONTROLLER_GET_VOLUME_RESPONSE__INIT;
	Csi__V1__ControllerGetVolumeResponse__VolumeStatus status =
	    CSI__V1__CONTROLLER_GET_VOLUME_RESPONSE__VOLUME_STATUS__INIT;
	Csi__V1__Volume volume = CSI__V1__VOLUME__INIT;

	if (!req) {
		a->status = STATUS_INVALID_ARGUMENT;
		return;
	}
	volume.volume_id = req->volume_id;
	rep.volume = &volume;
	rep.status = &status;
	pack(a, &rep.base);
	csi__v1__controller_get_volume_request__free_unpacked(req, NULL);
}

/* Always two snapshots, on two pages. */
static void
list_snapshots(struct answer *a, const uint8_t *data, size_t len)
{
	Csi__V1__ListSnapshotsRequest *req =
	    csi__v1__list_snapshots_request__unpack(NULL, len, data);
	Csi__V1__ListSnapshotsResponse rep = CSI__V1__LIST_SNAPSHOTS_RESPONSE__INIT;
	Csi__V1__ListSnapshotsResponse__Entry entry = CSI__V1__LIST_SNAPSHOTS_RESPONSE__ENTRY__INIT,
					      *entries[] = { &entry };
	char one[] = "snap-1", two[] = "snap-2", volume[] = "volume";
	Csi__V1__Timestamp made;
	Csi__V1__Snapshot s;

	if (!req) {
		a->status = STATUS_INVALID_ARGUMENT;
		return;
	}
	put_snapshot(&s, &made, *req->starting_token ? two : one, volume);
	entry.snapshot = &s;
	rep.entries = entries;
	rep.n_entries = 1;
	if (!*req->starting_token)
		rep.next_token = two;
	pack(a, &rep.base);
	csi__v1__list_snapshots_request__free_unpacked(req, NULL);
}

static void
get_capacity(struct answer *a, const uint8_t *data, size_t len)
{
	Csi__V1__GetCapacityResponse rep = CSI__V1__GET_CAPACITY_RESPONSE__INIT;

	rep.available_capacity = 1 << 30;
	pack(a, &rep.base);
}

static void
list_volumes(struct answer *a, const uint8_t *data, size_t len)
{
	Csi__V1__ListVolumesResponse__VolumeStatus status =
	    CSI__V1__LIST_VOLUMES_RESPONSE__VOLUME_STATUS__INIT;
	Csi__V1__ListVolumesResponse__Entry entry = CSI__V1__LIST_VOLUMES_RESPONSE__ENTRY__INIT,
					    *entries[] = { &entry };
	Csi__V1__ListVolumesResponse rep = CSI__V1__LIST_VOLUMES_RESPONSE__INIT;
	Csi__V1__VolumeCondition condition = CSI__V1__VOLUME_CONDITION__INIT;
	Csi__V1__Volume volume = CSI__V1__VOLUME__INIT;
	char id[] = "volume", node[] = "bad-node", text[] = "it creaks", *nodes[] = { node };

	volume.volume_id = id;
	volume.capacity_bytes = 4096;
	condition.abnormal = true;
	condition.message = text;
	status.published_node_ids = nodes;
	status.n_published_node_ids = 1;
	status.volume_condition = &condition;
	entry.volume = &volume;
	entry.status = &status;
	rep.entries = entries;
	rep.n_entries = 1;
	pack(a, &rep.base);
}

static void
log_map(FILE *f, const char *what, Csi__V1__StringEntry **map, size_t n)
{
	for (size_t i = 0; i < n; i++)
		fprintf(f, " %s.%s=%s", what, map[i]->key, map[i]->value);
}

/* The publish context is the volume context. */
static void
echo_context(struct answer *a, const uint8_t *data, size_t len)
{
	Csi__V1__ControllerPublishVolumeRequest *req =
	    csi__v1__controller_publish_volume_request__unpack(NULL, len, data);
	Csi__V1__ControllerPublishVolumeResponse rep =
	    CSI__V1__CONTROLLER_PUBLISH_VOLUME_RESPONSE__INIT;

	if (!req) {
		a->status = STATUS_INVALID_ARGUMENT;
		return;
	}
	rep.n_publish_context = req->n_volume_context;
	rep.publish_context = req->volume_context;
	pack(a, &rep.base);
	csi__v1__controller_publish_volume_request__free_unpacked(req, NULL);
}

/* With attach=FILE: the context names the volume and the node. */
static void
controller_publish(struct answer *a, const uint8_t *data, size_t len)
{
	Csi__V1__ControllerPublishVolumeRequest *req =
	    csi__v1__controller_publish_volume_request__unpack(NULL, len, data);
	Csi__V1__ControllerPublishVolumeResponse rep =
	    CSI__V1__CONTROLLER_PUBLISH_VOLUME_RESPONSE__INIT;
	Csi__V1__StringEntry entry = CSI__V1__STRING_ENTRY__INIT, *entries[] = { &entry };
	char key[] = "device", value[512];
	FILE *f;

	if (!bad.attach_log) {
		echo_context(a, data, len);
		csi__v1__controller_publish_volume_request__free_unpacked(req, NULL);
		return;
	}
	f = fopen(bad.attach_log, "a");
	if (!req || !f) {
		a->status = STATUS_UNIMPLEMENTED;
		return;
	}
	fprintf(f, "attach %s to %s %s mode=%d", req->volume_id, req->node_id,
	    req->readonly ? "read-only" : "writable",
	    req->volume_capability && req->volume_capability->access_mode
		? (int)req->volume_capability->access_mode->mode
		: -1);
	log_map(f, "secret", req->secrets, req->n_secrets);
	log_map(f, "context", req->volume_context, req->n_volume_context);
	if (req->volume_capability && req->volume_capability->access_type_case ==
					  CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_MOUNT)
		for (size_t i = 0; i < req->volume_capability->mount->n_mount_flags; i++)
			fprintf(f, " flag=%s", req->volume_capability->mount->mount_flags[i]);
	fputc('\n', f);
	(void)fclose(f);
	(void)snprintf(value, sizeof value, "%s@%s", req->volume_id, req->node_id);
	entry.key = key;
	entry.value = value;
	rep.n_publish_context = bad.echoes_context ? req->n_volume_context : 1;
	rep.publish_context = bad.echoes_context ? req->volume_context : entries;
	pack(a, &rep.base);
	csi__v1__controller_publish_volume_request__free_unpacked(req, NULL);
}

static void
controller_unpublish(struct answer *a, const uint8_t *data, size_t len)
{
	Csi__V1__ControllerUnpublishVolumeRequest *req =
	    csi__v1__controller_unpublish_volume_request__unpack(NULL, len, data);
	FILE *f = bad.attach_log ? fopen(bad.attach_log, "a") : NULL;

	if (bad.state_dir && req && !f) {
		a->data = calloc(1, 1);
		csi__v1__controller_unpublish_volume_request__free_unpacked(req, NULL);
		return;
	}
	if (!req || !f) {
		a->status = STATUS_UNIMPLEMENTED;
		return;
	}
	fprintf(f, "detach %s from %s", req->volume_id, req->node_id);
	log_map(f, "secret", req->secrets, req->n_secrets);
	fputc('\n', f);
	(void)fclose(f);
	a->data = calloc(1, 1);
	csi__v1__controller_unpublish_volume_request__free_unpacked(req, NULL);
}

/* Confirms all capabilities. */
static void
validate_capabilities(struct answer *a, const uint8_t *data, size_t len)
{
	Csi__V1__ValidateVolumeCapabilitiesRequest *req =
	    csi__v1__validate_volume_capabilities_request__unpack(NULL, len, data);
	Csi__V1__ValidateVolumeCapabilitiesResponse__Confirmed confirmed =
	    CSI__V1__VALIDATE_VOLUME_CAPABILITIES_RESPONSE__CONFIRMED__INIT;
	Csi__V1__ValidateVolumeCapabilitiesResponse rep =
	    CSI__V1__VALIDATE_VOLUME_CAPABILITIES_RESPONSE__INIT;

	if (!req) {
		a->status = STATUS_INVALID_ARGUMENT;
		return;
	}
	confirmed.n_volume_capabilities = req->n_volume_capabilities;
	confirmed.volume_capabilities = req->volume_capabilities;
	rep.confirmed = &confirmed;
	pack(a, &rep.base);
	csi__v1__validate_volume_capabilities_request__free_unpacked(req, NULL);
}

static void
empty_answer(struct answer *a, const uint8_t *data, size_t len)
{
	a->data = calloc(1, 1);
}

static void
node_expand(struct answer *a, const uint8_t *data, size_t len)
{
	Csi__V1__NodeExpandVolumeRequest *req =
	    csi__v1__node_expand_volume_request__unpack(NULL, len, data);

	a->data = calloc(1, 1);
	if (bad.sizes_dir && req && req->capacity_range) {
		a->size = req->capacity_range->required_bytes;
		a->effect = grow_on_node;
		if (a->size > read_size(a->volume, ""))
			bad_log(a, "the volume is smaller");
	}
	csi__v1__node_expand_volume_request__free_unpacked(req, NULL);
}

/* --- mounts --- */

static bool
is_mounted(const char *path)
{
	char parent[1100];
	struct stat a, b;

	(void)snprintf(parent, sizeof parent, "%s/..", path);
	return stat(path, &a) == 0 && stat(parent, &b) == 0 && a.st_dev != b.st_dev;
}

static void
mount_staging(const struct answer *a)
{
	char command[2048];

	if (bad.mounter && !is_mounted(a->staging)) {
		(void)snprintf(command, sizeof command, "%s '%s'", bad.mounter, a->staging);
		(void)!system(command);
	} else if (!bad.device && !is_mounted(a->staging))
		(void)mount(a->volume, a->staging, "tmpfs", 0, "size=64k");
}

static void
mount_device(const struct answer *a)
{
	int fd = open(a->target, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	struct stat has, published;
	char path[1400];

	close_p(&fd);
	(void)snprintf(path, sizeof path, "%s/%s", bad.device, a->volume);
	if (stat(path, &has) < 0)
		(void)snprintf(path, sizeof path, "%s", bad.device);
	if (stat(path, &has) < 0 ||
	    (stat(a->target, &published) == 0 && published.st_rdev == has.st_rdev))
		return;
	(void)mount(path, a->target, NULL, MS_BIND, NULL);
}

static void
mount_target(const struct answer *a)
{
	if (bad.device) {
		mount_device(a);
		return;
	}
	(void)mkdir(a->target, 0700);
	if (is_mounted(a->target))
		return;
	if (!a->staging[0])
		(void)mount(a->volume, a->target, "tmpfs", 0, "size=64k");
	else
		(void)mount(a->staging, a->target, NULL, MS_BIND, NULL);
}

static void
unmount_target(const struct answer *a)
{
	(void)umount2(a->target, 0);
	if (bad.device)
		(void)unlink(a->target);
	else
		(void)rmdir(a->target);
}

static void
unmount_staging(const struct answer *a)
{
	(void)umount2(a->staging, 0);
}

static void
note_options(struct answer *a, const Csi__V1__VolumeCapability *cap)
{
	const Csi__V1__VolumeCapability__MountVolume *m =
	    cap && cap->access_type_case == CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_MOUNT
		? cap->mount
		: NULL;
	size_t n;

	if (!m)
		return;
	n = (size_t)snprintf(a->options, sizeof a->options, " fs=%.32s flags=", m->fs_type);
	for (size_t i = 0; i < m->n_mount_flags && n < sizeof a->options - 64; i++)
		n += (size_t)snprintf(
		    a->options + n, 64, "%s%.32s", i > 0 ? "," : "", m->mount_flags[i]);
}

static void
stage(struct answer *a, const uint8_t *data, size_t len)
{
	Csi__V1__NodeStageVolumeRequest *req =
	    csi__v1__node_stage_volume_request__unpack(NULL, len, data);

	a->data = calloc(1, 1);
	(void)snprintf(a->staging, sizeof a->staging, "%s", req->staging_target_path);
	note_options(a, req->volume_capability);
	a->effect = mount_staging;
	csi__v1__node_stage_volume_request__free_unpacked(req, NULL);
}

static void
publish(struct answer *a, const uint8_t *data, size_t len)
{
	Csi__V1__NodePublishVolumeRequest *req =
	    csi__v1__node_publish_volume_request__unpack(NULL, len, data);

	a->data = calloc(1, 1);
	(void)snprintf(a->staging, sizeof a->staging, "%s", req->staging_target_path);
	(void)snprintf(a->target, sizeof a->target, "%s", req->target_path);
	note_options(a, req->volume_capability);
	a->effect = mount_target;
	csi__v1__node_publish_volume_request__free_unpacked(req, NULL);
}

static void
unpublish(struct answer *a, const uint8_t *data, size_t len)
{
	Csi__V1__NodeUnpublishVolumeRequest *req =
	    csi__v1__node_unpublish_volume_request__unpack(NULL, len, data);

	a->data = calloc(1, 1);
	(void)snprintf(a->target, sizeof a->target, "%s", req->target_path);
	a->effect = unmount_target;
	csi__v1__node_unpublish_volume_request__free_unpacked(req, NULL);
}

static void
unstage(struct answer *a, const uint8_t *data, size_t len)
{
	Csi__V1__NodeUnstageVolumeRequest *req =
	    csi__v1__node_unstage_volume_request__unpack(NULL, len, data);

	a->data = calloc(1, 1);
	(void)snprintf(a->staging, sizeof a->staging, "%s", req->staging_target_path);
	a->effect = unmount_staging;
	csi__v1__node_unstage_volume_request__free_unpacked(req, NULL);
}

static const struct method {
	const char *name;
	void (*answer)(struct answer *a, const uint8_t *data, size_t len);
} methods[] = {
	{ "Probe", empty_answer },
	{ "GetPluginInfo", get_plugin_info },
	{ "GetPluginCapabilities", get_plugin_capabilities },
	{ "NodeGetInfo", node_get_info },
	{ "NodeGetCapabilities", node_get_capabilities },
	{ "ControllerGetCapabilities", controller_get_capabilities },
	{ "CreateVolume", create_volume },
	{ "DeleteVolume", empty_answer },
	{ "ControllerExpandVolume", controller_expand },
	{ "ControllerPublishVolume", controller_publish },
	{ "ControllerUnpublishVolume", controller_unpublish },
	{ "ValidateVolumeCapabilities", validate_capabilities },
	{ "ListVolumes", list_volumes },
	{ "GetCapacity", get_capacity },
	{ "ControllerGetVolume", get_volume },
	{ "ControllerModifyVolume", empty_answer },
	{ "NodeGetVolumeStats", empty_answer },
	{ "GroupControllerGetCapabilities", group_get_capabilities },
	{ "CreateVolumeGroupSnapshot", create_group },
	{ "DeleteVolumeGroupSnapshot", empty_answer },
	{ "GetVolumeGroupSnapshot", get_group },
	{ "CreateSnapshot", create_snapshot },
	{ "DeleteSnapshot", empty_answer },
	{ "ListSnapshots", list_snapshots },
	{ "NodeExpandVolume", node_expand },
	{ "NodeStageVolume", stage },
	{ "NodeUnstageVolume", unstage },
	{ "NodePublishVolume", publish },
	{ "NodeUnpublishVolume", unpublish },
};

bool
bad_answer(struct answer *a, const uint8_t *data, size_t len)
{
	for (size_t i = 0; i < ELEMENTSOF(methods); i++)
		if (strcmp(methods[i].name, a->name) == 0) {
			a->status = 0;
			methods[i].answer(a, data, len);
			return true;
		}
	return false;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * csi_bad.c: a CSI plugin that misbehaves on command. Runs in: tests.
 *
 * csi_bad SOCKET [connection=MODE] [log=FILE] [requests=FILE] [rules=FILE] [mounts=yes]
 *     [attach=FILE] [state=DIR] [strict=yes] [clock=yes] [context=volume]
 *     [group=yes] [expects=yes] [sizes=DIR] [stages=no] [Method=BEHAVIOUR]...
 *
 * log: a line "Method volume" for each call, with " fs=TYPE flags=A,B" if it has a capability, and
 * " rule=RULE" if one applies.
 * requests: a line for each call: the method and its whole request in hexadecimal.
 * rules: the rules are read again from this file, before each call. mounts: NodeStageVolume mounts
 * a tmpfs, whose source is the volume's id, NodePublishVolume binds it, and so on; without staging,
 * NodePublishVolume mounts one. Meanwhile other calls for the volume get ABORTED.
 * attach: the controller also attaches volumes, also read-only, and appends these calls to FILE,
 * one a line. state: the effect of a call is a file in DIR, "volume:ID", "attached:ID",
 * "staged:ID", "published:ID" or "snapshot:ID"; the plugin also attaches volumes, expands them
 * on the node, and tells its capacity; a death leaves a file "died:METHOD:ID". strict: what is
 * there already is refused with ALREADY_EXISTS, and what is not there with NOT_FOUND. clock: each
 * line of the log ends with " ms=TIME" (CLOCK_MONOTONIC). context: the publish context is the
 * volume context. group: the plugin has a GroupController. expects: requests must have the secrets
 * and mount options of csi_bad_expect.h, or the log has a line "bad Method volume: why". sizes: the
 * plugin also expands volumes on the node; "DIR/ID" has the size of the volume and "DIR/ID.node"
 * what the node took over; the node is asked for more before the controller: a line "bad …".
 * stages: without staging.
 *
 * connection: grpc (default); dead (closes at once); silent (never reads nor writes); full (a
 * backlog that stays full); garbage (random bytes, then open); http1 (an answer of HTTP/1.1);
 * goaway (SETTINGS, GOAWAY, open).
 *
 * Behaviour of a method ("NodeStageVolume", "NodeStageVolume/volume" or "*" for all); the first
 * match applies:
 *
 *   ok            a correct answer, but nothing is done (the default)
 *   none          an empty message: no name, capability, node id or volume
 *   nothing       status OK without a message
 *   hang          no answer ever
 *   die           the process ends; with state=DIR once for each method and
 *                 volume, of which the file "died:METHOD:ID" is left
 *   slow:MS       ok, after this time
 *   status:N      gRPC status N
 *   once:N        status N for the first call, ok for the others
 *   again:N       status N for the first two calls, ok for the others
 *   late:MS       UNAVAILABLE at once, and the effect after this time
 *   lost:N        the effect, but status N
 *   killed        the effect, and then the process ends without an answer; with
 *                 state=DIR once, as above
 *   held          ok, once there is a file "release" in DIR
 *   lies          ok, without the effect
 *   noise:N       status N with 3,000 bytes of control characters and invalid UTF-8
 *   long:BYTES    status INTERNAL with a text of so many bytes
 *   echo:N        status N with the bytes of the request as its text
 *   at:K:…        a behaviour for the Kth call only; another rule may follow for the others
 *   first:K:…     a behaviour for the first K calls
 *   drop          the connection is closed during the call
 *   garbage       random bytes instead of a message
 *   huge:BYTES    a message whose first field is a string of so many bytes
 *   many:N        a message with N empty elements in its first field
 *   nul, latin1   a message whose first field is not valid text
 *   twice         ok, with the first field once more
 *   unknown       ok, with an unknown field
 *
 * With CSI_BAD_DEVICE=/dev/loop0 in its environment it publishes that device, by a mount on a file;
 * if it is a directory, the device in it that has the name of the volume.
 * With CSI_BAD_MOUNTER="bindfs /dir" and mounts=yes, NodeStageVolume runs that command with the
 * staging path, instead of mounting a tmpfs.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "contrib/csi-local/csl_grpc.h"
#include "proto/csi.pb-c.h"
#include "tests/peers/csi_bad_expect.h"

#define STATUS_INVALID_ARGUMENT 3
#define STATUS_NOT_FOUND        5
#define STATUS_ALREADY_EXISTS   6
#define STATUS_ABORTED          10
#define STATUS_UNIMPLEMENTED    12
#define STATUS_INTERNAL         13
#define STATUS_UNAVAILABLE      14
#define ANSWER_MAX              (16 * 1024 * 1024)
#define FIELD_1_NUMBER          0x08 /* the tags of fields */
#define FIELD_1_LENGTH          0x0a
#define FIELD_2_LENGTH          0x12

/* An answer in preparation. data is malloc()ed. */
struct answer {
	struct csl_call *call;
	int status;
	const char *message;
	uint8_t *data;
	size_t len;
	unsigned delay_ms;
	bool never;
	bool late;   /* UNAVAILABLE is answered before the delay */
	bool killed; /* the process ends after the effect */
	bool held;   /* until the file "release" */
	const char *name;
	int lost; /* the status after the effect */
	char volume[256];
	/* The effect; its paths are empty if there is none. */
	void (*effect)(const struct answer *a);
	const struct trace *trace; /* NULL: no file changes */
	char staging[1024], target[1024];
	char options[256]; /* for the log */
	int64_t size;
	const uint8_t *request;
	size_t request_len;
};

struct behaviour {
	const char *name;
	void (*apply)(struct answer *a, unsigned long value, unsigned nth);
};

#define RULES_MAX 512

static const char *attach_log; /* NULL: the controller does not attach */
static bool echoes_context;
static char *rules[RULES_MAX];
static int n_rules;
static unsigned n_calls[RULES_MAX]; /* by rule */
static bool mounts, strict, clocked, grouped, expects, unstaged;
static const char *state_dir; /* NULL: effects leave no files */
static const char *device;    /* CSI_BAD_DEVICE: is published instead of a file system */
static const char *mounter;   /* CSI_BAD_MOUNTER */
static const char *sizes_dir; /* NULL: sizes are not recorded */
static const char *log_path, *requests_path, *rules_path;
static char rules_text[65536], *rules_copy;
static pthread_mutex_t busy_lock = PTHREAD_MUTEX_INITIALIZER;
static char busy[256][256]; /* volumes with a call in progress */

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

	(void)snprintf(path, sizeof path, "%s/%s%s", sizes_dir, volume, suffix);
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
	(void)snprintf(path, sizeof path, "%s/%s%s", sizes_dir, a->volume, suffix);
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
	rep.n_capabilities = ELEMENTSOF(list) - (grouped ? 0 : 1);
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
	bool expands = device || state_dir || sizes_dir;

	for (size_t i = 0; i < ELEMENTSOF(types); i++) {
		csi__v1__node_service_capability__rpc__init(&rpcs[i]);
		csi__v1__node_service_capability__init(&caps[i]);
		rpcs[i].type = types[i];
		caps[i].type_case = CSI__V1__NODE_SERVICE_CAPABILITY__TYPE_RPC;
		caps[i].rpc = &rpcs[i];
		list[i] = &caps[i];
	}
	rep.capabilities = list + (expands ? 0 : 1);
	rep.n_capabilities = ELEMENTSOF(list) - (expands ? 0 : 1) - (unstaged ? 1 : 0);
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
	rep.n_capabilities = ELEMENTSOF(list) - (state_dir ? 0 : attach_log ? 1 : 3);
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
	if (sizes_dir && req->capacity_range) {
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
	if (sizes_dir)
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

	if (!attach_log) {
		echo_context(a, data, len);
		csi__v1__controller_publish_volume_request__free_unpacked(req, NULL);
		return;
	}
	f = fopen(attach_log, "a");
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
	rep.n_publish_context = echoes_context ? req->n_volume_context : 1;
	rep.publish_context = echoes_context ? req->volume_context : entries;
	pack(a, &rep.base);
	csi__v1__controller_publish_volume_request__free_unpacked(req, NULL);
}

static void
controller_unpublish(struct answer *a, const uint8_t *data, size_t len)
{
	Csi__V1__ControllerUnpublishVolumeRequest *req =
	    csi__v1__controller_unpublish_volume_request__unpack(NULL, len, data);
	FILE *f = attach_log ? fopen(attach_log, "a") : NULL;

	if (state_dir && req && !f) {
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

static void log_bad(const char *method, const struct answer *a, const char *why);

static void
node_expand(struct answer *a, const uint8_t *data, size_t len)
{
	Csi__V1__NodeExpandVolumeRequest *req =
	    csi__v1__node_expand_volume_request__unpack(NULL, len, data);

	a->data = calloc(1, 1);
	if (sizes_dir && req && req->capacity_range) {
		a->size = req->capacity_range->required_bytes;
		a->effect = grow_on_node;
		if (a->size > read_size(a->volume, ""))
			log_bad("NodeExpandVolume", a, "the volume is smaller");
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

	if (mounter && !is_mounted(a->staging)) {
		(void)snprintf(command, sizeof command, "%s '%s'", mounter, a->staging);
		(void)!system(command);
	} else if (!device && !is_mounted(a->staging))
		(void)mount(a->volume, a->staging, "tmpfs", 0, "size=64k");
}

static void
mount_device(const struct answer *a)
{
	int fd = open(a->target, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	struct stat has, published;
	char path[1400];

	close_p(&fd);
	(void)snprintf(path, sizeof path, "%s/%s", device, a->volume);
	if (stat(path, &has) < 0)
		(void)snprintf(path, sizeof path, "%s", device);
	if (stat(path, &has) < 0 ||
	    (stat(a->target, &published) == 0 && published.st_rdev == has.st_rdev))
		return;
	(void)mount(path, a->target, NULL, MS_BIND, NULL);
}

static void
mount_target(const struct answer *a)
{
	if (device) {
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
	if (device)
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
	{ "ControllerGetVolume", empty_answer },
	{ "ControllerModifyVolume", empty_answer },
	{ "NodeGetVolumeStats", empty_answer },
	{ "GroupControllerGetCapabilities", empty_answer },
	{ "CreateVolumeGroupSnapshot", empty_answer },
	{ "DeleteVolumeGroupSnapshot", empty_answer },
	{ "GetVolumeGroupSnapshot", empty_answer },
	{ "CreateSnapshot", create_snapshot },
	{ "DeleteSnapshot", empty_answer },
	{ "ListSnapshots", list_snapshots },
	{ "NodeExpandVolume", node_expand },
	{ "NodeStageVolume", stage },
	{ "NodeUnstageVolume", unstage },
	{ "NodePublishVolume", publish },
	{ "NodeUnpublishVolume", unpublish },
};

/* --- behaviours: changes to the answers --- */

static void
set_bytes(struct answer *a, const void *data, size_t len)
{
	a->data = realloc(a->data, len + 1);
	memcpy(a->data, data, len);
	a->len = len;
}

static void
do_ok(struct answer *a, unsigned long value, unsigned nth)
{
}

static void
do_none(struct answer *a, unsigned long value, unsigned nth)
{
	a->len = 0;
}

static void
do_nothing(struct answer *a, unsigned long value, unsigned nth)
{
	free_p(&a->data);
}

static void
do_hang(struct answer *a, unsigned long value, unsigned nth)
{
	a->never = true;
}

/* Makes the file that says that the process ended in this call. Returns false if it was there. */
static bool
note_death(const struct answer *a)
{
	char path[1200];
	int fd;

	if (!state_dir)
		return true;
	(void)snprintf(path, sizeof path, "%s/died:%s:%s", state_dir, a->name, a->volume);
	fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
	if (fd < 0)
		return false;
	(void)close(fd);
	return true;
}

static void
do_die(struct answer *a, unsigned long value, unsigned nth)
{
	if (note_death(a))
		_exit(0);
}

static void
do_slow(struct answer *a, unsigned long value, unsigned nth)
{
	a->delay_ms = (unsigned)value;
}

static void
do_status(struct answer *a, unsigned long value, unsigned nth)
{
	a->status = (int)value;
	a->message = "as commanded";
}

static void
do_once(struct answer *a, unsigned long value, unsigned nth)
{
	if (nth == 1)
		do_status(a, value, nth);
}

static void
do_again(struct answer *a, unsigned long value, unsigned nth)
{
	if (nth <= 2)
		do_status(a, value, nth);
}

static void
do_late(struct answer *a, unsigned long value, unsigned nth)
{
	a->late = true;
	a->delay_ms = (unsigned)value;
}

static void
do_lost(struct answer *a, unsigned long value, unsigned nth)
{
	a->lost = (int)value;
}

static void
do_killed(struct answer *a, unsigned long value, unsigned nth)
{
	a->killed = note_death(a);
}

static void
do_held(struct answer *a, unsigned long value, unsigned nth)
{
	a->held = true;
}

static void
do_lies(struct answer *a, unsigned long value, unsigned nth)
{
	a->effect = NULL;
	a->trace = NULL;
}

static void
do_noise(struct answer *a, unsigned long value, unsigned nth)
{
	static char noise[3001];

	for (size_t i = 0; i < sizeof noise - 1; i++)
		noise[i] = "\033[1m\xff\r\n\xc3"[i % 8];
	a->status = (int)value;
	a->message = noise;
}

static void
do_long(struct answer *a, unsigned long value, unsigned nth)
{
	static char text[ANSWER_MAX];

	memset(text, 'x', value < sizeof text ? value : sizeof text - 1);
	a->status = STATUS_INTERNAL;
	a->message = text;
}

/* Bytes between the fields become '.'. */
static void
do_echo(struct answer *a, unsigned long value, unsigned nth)
{
	static char text[16384];
	size_t len = a->request_len < sizeof text - 1 ? a->request_len : sizeof text - 1;

	for (size_t i = 0; i < len; i++)
		text[i] = a->request[i] < ' ' ? '.' : (char)a->request[i];
	text[len] = '\0';
	a->status = (int)value;
	a->message = text;
}

/* Only the server's own connections are connected sockets. */
static void
do_drop(struct answer *a, unsigned long value, unsigned nth)
{
	struct sockaddr_un peer;
	socklen_t len = sizeof peer;

	for (int fd = 3; fd < 1024; fd++, len = sizeof peer)
		if (getpeername(fd, (struct sockaddr *)&peer, &len) == 0)
			(void)shutdown(fd, SHUT_RDWR);
	a->never = true;
}

static void
do_garbage(struct answer *a, unsigned long value, unsigned nth)
{
	uint8_t bytes[256];

	(void)!getrandom(bytes, sizeof bytes, 0);
	bytes[0] = 0x07; /* an invalid wire type */
	set_bytes(a, bytes, sizeof bytes);
}

static size_t
put_varint(uint8_t *at, uint64_t n)
{
	size_t i = 0;

	for (; n > 0x7f; n >>= 7)
		at[i++] = (uint8_t)(n | 0x80);
	at[i++] = (uint8_t)n;
	return i;
}

static void
do_huge(struct answer *a, unsigned long value, unsigned nth)
{
	size_t n = value < ANSWER_MAX ? value : ANSWER_MAX;

	a->data = realloc(a->data, n + 16);
	a->data[0] = FIELD_1_LENGTH;
	a->len = 1 + put_varint(a->data + 1, n);
	memset(a->data + a->len, 'x', n);
	a->len += n;
}

static void
do_many(struct answer *a, unsigned long value, unsigned nth)
{
	size_t n = value < ANSWER_MAX ? value : ANSWER_MAX;

	a->len = 2 * n;
	a->data = realloc(a->data, a->len + 1);
	for (size_t i = 0; i < n; i++) {
		a->data[2 * i] = FIELD_1_LENGTH;
		a->data[2 * i + 1] = 0;
	}
}

static void
do_nul(struct answer *a, unsigned long value, unsigned nth)
{
	set_bytes(a,
	    "\x0a\x03"
	    "a\0b",
	    5);
}

static void
do_latin1(struct answer *a, unsigned long value, unsigned nth)
{
	set_bytes(a,
	    "\x0a\x02"
	    "a\xe4",
	    4);
}

static void
do_twice(struct answer *a, unsigned long value, unsigned nth)
{
	size_t field = a->len > 1 && a->data[0] == FIELD_1_LENGTH ? 2 + (size_t)a->data[1] : 0;

	a->data = realloc(a->data, a->len + field + 1);
	memcpy(a->data + a->len, a->data, field);
	a->len += field;
}

static void
do_unknown(struct answer *a, unsigned long value, unsigned nth)
{
	/* field 1000: "?" */
	static const uint8_t field[] = { 0xc2, 0x3e, 1, '?' };

	a->data = realloc(a->data, a->len + sizeof field + 1);
	memcpy(a->data + a->len, field, sizeof field);
	a->len += sizeof field;
}

static const struct behaviour behaviours[] = {
	{ "ok", do_ok },
	{ "none", do_none },
	{ "nothing", do_nothing },
	{ "hang", do_hang },
	{ "die", do_die },
	{ "slow", do_slow },
	{ "status", do_status },
	{ "once", do_once },
	{ "again", do_again },
	{ "late", do_late },
	{ "lost", do_lost },
	{ "killed", do_killed },
	{ "held", do_held },
	{ "lies", do_lies },
	{ "noise", do_noise },
	{ "long", do_long },
	{ "echo", do_echo },
	{ "drop", do_drop },
	{ "garbage", do_garbage },
	{ "huge", do_huge },
	{ "many", do_many },
	{ "nul", do_nul },
	{ "latin1", do_latin1 },
	{ "twice", do_twice },
	{ "unknown", do_unknown },
};

/* The calls that a rule is for. */
struct span {
	unsigned long first, last;
};

/* Reads "at:K:" or "first:K:" at *name, and moves it behind that. */
static bool
read_span(const char **name, struct span *ret)
{
	static const char at[] = "at:", first[] = "first:";
	bool is_at = strncmp(*name, at, strlen(at)) == 0;
	char *end;

	*ret = (struct span){ 1, ULONG_MAX };
	if (!is_at && strncmp(*name, first, strlen(first)) != 0)
		return true;
	ret->last = strtoul(*name + strlen(is_at ? at : first), &end, 10);
	if (is_at)
		ret->first = ret->last;
	*name = end + 1;
	return ret->last > 0 && *end == ':';
}

static const struct behaviour *
find_behaviour(const char *rule, unsigned long *ret_value, struct span *ret_span)
{
	const char *name = strchr(rule, '=') + 1, *colon;
	size_t len;

	if (!read_span(&name, ret_span))
		return NULL;
	colon = strchr(name, ':');
	len = colon ? (size_t)(colon - name) : strlen(name);

	*ret_value = colon ? strtoul(colon + 1, NULL, 10) : 0;
	for (size_t i = 0; i < ELEMENTSOF(behaviours); i++)
		if (strlen(behaviours[i].name) == len &&
		    strncmp(behaviours[i].name, name, len) == 0)
			return &behaviours[i];
	return NULL;
}

/* --- effects as files --- */

/* The file "kind:volume" that a call makes or removes, with state=DIR. */
struct trace {
	const char *method, *kind;
	bool removes;
};

static const struct trace *
find_trace(const char *method)
{
	static const struct trace traces[] = {
		{ "CreateVolume", "volume", false },
		{ "DeleteVolume", "volume", true },
		{ "CreateSnapshot", "snapshot", false },
		{ "DeleteSnapshot", "snapshot", true },
		{ "ControllerPublishVolume", "attached", false },
		{ "ControllerUnpublishVolume", "attached", true },
		{ "NodeStageVolume", "staged", false },
		{ "NodeUnstageVolume", "staged", true },
		{ "NodePublishVolume", "published", false },
		{ "NodeUnpublishVolume", "published", true },
	};

	for (size_t i = 0; state_dir && i < ELEMENTSOF(traces); i++)
		if (strcmp(traces[i].method, method) == 0)
			return &traces[i];
	return NULL;
}

/* Makes or removes the file of a call's effect, or only looks. Returns whether it was there. */
static bool
state_file(const struct answer *a, bool change)
{
	const struct trace *t = a->trace;
	char path[1200];
	bool was;
	int fd;

	(void)snprintf(path, sizeof path, "%s/%s:%s", state_dir, t->kind, a->volume);
	was = access(path, F_OK) == 0;
	if (!change)
		return was;
	if (!t->removes) {
		fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
		close_p(&fd);
	} else {
		(void)unlink(path);
	}
	return was;
}

static void
note_effect(const struct answer *a)
{
	(void)state_file(a, true);
}

/* With strict=yes: refuses what was done before. */
static void
refuse_again(struct answer *a)
{
	bool makes = !a->trace->removes;

	if (state_file(a, false) != makes)
		return;
	a->status = makes ? STATUS_ALREADY_EXISTS : STATUS_NOT_FOUND;
	a->message = "not idempotent";
	a->effect = NULL;
	a->trace = NULL;
}

/* --- the server --- */

/* Returns the slot of a volume that has a call in progress, or with "" a free one. */
static char *
find_busy(const char *volume)
{
	for (size_t i = 0; i < ELEMENTSOF(busy); i++)
		if (strcmp(busy[i], volume) == 0)
			return busy[i];
	return NULL;
}

/* Makes the volume busy. Returns false if it is already. */
static bool
begin_effect(const struct answer *a)
{
	bool free;
	char *slot;

	(void)pthread_mutex_lock(&busy_lock);
	free = !find_busy(a->volume);
	if (free && (slot = find_busy("")))
		(void)strcpy(slot, a->volume);
	(void)pthread_mutex_unlock(&busy_lock);
	return free;
}

static void
end_effect(const struct answer *a)
{
	char *slot;

	if (a->effect)
		a->effect(a);
	if (a->trace)
		note_effect(a);
	(void)pthread_mutex_lock(&busy_lock);
	slot = find_busy(a->volume);
	if (slot)
		slot[0] = '\0';
	(void)pthread_mutex_unlock(&busy_lock);
}

static void
send_answer(struct answer *a)
{
	if (a->effect || a->trace)
		end_effect(a);
	if (a->killed)
		_exit(0);
	if (a->lost) {
		a->status = a->lost;
		a->message = "as commanded";
	}
	if (!a->late)
		csl_call_answer(a->call, a->status, a->message, a->data, a->len);
	free(a->data);
	free(a);
}

static void *
send_later(void *arg)
{
	struct answer *a = arg;
	char release[1200];

	(void)snprintf(release, sizeof release, "%s/release", state_dir);
	while (a->held && access(release, F_OK) < 0)
		(void)usleep(20000);
	(void)usleep(a->delay_ms * 1000);
	send_answer(a);
	return NULL;
}

static bool
rule_matches(const char *rule, const char *method, const char *volume)
{
	size_t len = strcspn(rule, "=/");

	if (rule[len] == '/' && strncmp(rule + len + 1, volume, strlen(volume)) != 0)
		return false;
	if (rule[len] == '/' && rule[len + 1 + strlen(volume)] != '=')
		return false;
	return (len == 1 && rule[0] == '*') ||
	       (strlen(method) == len && strncmp(rule, method, len) == 0);
}

/* Reads the rules again if their file has changed. */
static void
read_rules(void)
{
	static char text[sizeof rules_text];
	FILE *f = rules_path ? fopen(rules_path, "re") : NULL;
	size_t n;

	if (!f)
		return;
	n = fread(text, 1, sizeof text - 1, f);
	text[n] = '\0';
	(void)fclose(f);
	if (strcmp(text, rules_text) == 0)
		return;
	(void)strcpy(rules_text, text);
	free(rules_copy);
	rules_copy = strdup(text);
	n_rules = 0;
	memset(n_calls, 0, sizeof n_calls);
	for (char *save = NULL, *word = strtok_r(rules_copy, " \n", &save);
	     word && n_rules < RULES_MAX; word = strtok_r(NULL, " \n", &save))
		rules[n_rules++] = word;
}

/* The volume's id is the first field of all requests about one. Lists have a token behind the size
 * of the page instead. */
static void
read_volume(struct answer *a, const uint8_t *data, size_t len)
{
	uint8_t tag = FIELD_1_LENGTH;

	if (len > 2 && data[0] == FIELD_1_NUMBER && data[1] < 128) {
		data += 2;
		len -= 2;
		tag = FIELD_2_LENGTH;
	}
	if (len > 2 && data[0] == tag && data[1] < 128 && (size_t)data[1] + 2 <= len)
		(void)snprintf(
		    a->volume, sizeof a->volume, "%.*s", data[1], (const char *)data + 2);
}

static void
log_call(const char *name, const struct answer *a, const char *rule)
{
	FILE *f = log_path ? fopen(log_path, "ae") : NULL;
	struct timespec now;

	if (!f)
		return;
	fprintf(
	    f, "%s %s%s%s%s", name, a->volume, a->options, rule ? " rule=" : "", rule ? rule : "");
	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	if (clocked)
		fprintf(f, " ms=%lld", (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000);
	(void)fputc('\n', f);
	(void)fclose(f);
}

static void
log_bad(const char *method, const struct answer *a, const char *why)
{
	FILE *f = log_path ? fopen(log_path, "ae") : NULL;

	if (!f)
		return;
	(void)fprintf(f, "bad %s %s: %s\n", method, a->volume, why);
	(void)fclose(f);
}

static void
log_request(const char *name, const uint8_t *data, size_t len)
{
	FILE *f = requests_path ? fopen(requests_path, "ae") : NULL;

	if (!f)
		return;
	(void)fprintf(f, "%s ", name);
	for (size_t i = 0; i < len; i++)
		(void)fprintf(f, "%02x", data[i]);
	(void)fputc('\n', f);
	(void)fclose(f);
}

/* Returns the behaviour of the rule for this call, and the rule in *ret_rule; NULL and NULL if none
 * matches. Counts the call. */
static const struct behaviour *
choose_behaviour(const char *method, const char *volume, const char **ret_rule,
    unsigned long *ret_value, unsigned *ret_nth)
{
	const struct behaviour *b;
	struct span span;

	*ret_rule = NULL;
	for (int i = 0; i < n_rules; i++) {
		if (!strchr(rules[i], '=') || !rule_matches(rules[i], method, volume))
			continue;
		b = find_behaviour(rules[i], ret_value, &span);
		*ret_nth = ++n_calls[i];
		if (*ret_nth < span.first || *ret_nth > span.last)
			continue;
		*ret_rule = rules[i];
		return b;
	}
	return NULL;
}

static void
on_call(void *arg, struct csl_call *call, const char *path, const uint8_t *data, size_t len)
{
	const char *name = strrchr(path, '/') + 1;
	struct answer *a = calloc(1, sizeof *a);
	const struct behaviour *b;
	const char *rule, *wrong;
	unsigned long value;
	unsigned nth;
	pthread_t thread;

	log_request(name, data, len);
	a->call = call;
	a->request = data;
	a->request_len = len;
	a->name = name;
	a->status = STATUS_UNIMPLEMENTED;
	read_volume(a, data, len);
	read_rules();
	for (size_t i = 0; i < ELEMENTSOF(methods); i++)
		if (strcmp(methods[i].name, name) == 0) {
			a->status = 0;
			methods[i].answer(a, data, len);
			a->trace = find_trace(name);
		}
	b = choose_behaviour(name, a->volume, &rule, &value, &nth);
	log_call(name, a, rule);
	wrong = expects ? bad_check_request(name, a->volume, data, len) : NULL;
	if (wrong)
		log_bad(name, a, wrong);
	if (b)
		b->apply(a, value, nth);
	if (a->never)
		return;
	if (!mounts || a->status != 0)
		a->effect = NULL;
	if (a->status != 0)
		a->trace = NULL;
	if (strict && a->trace)
		refuse_again(a);
	if ((a->effect || a->trace) && !begin_effect(a)) {
		a->effect = NULL;
		a->trace = NULL;
		a->delay_ms = 0;
		a->late = false;
		a->status = STATUS_ABORTED;
		a->message = "another call for the volume is in progress";
	}
	if (a->late)
		csl_call_answer(call, STATUS_UNAVAILABLE, "as commanded", NULL, 0);
	if ((a->delay_ms == 0 && !a->held) || pthread_create(&thread, NULL, send_later, a) != 0)
		send_answer(a);
	else
		(void)pthread_detach(thread);
}

static int
listen_on(const char *path, int backlog)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)unlink(path);
	(void)snprintf(at.sun_path, sizeof at.sun_path, "%s", path);
	if (fd < 0 || bind(fd, (const struct sockaddr *)&at, sizeof at) < 0 ||
	    listen(fd, backlog) < 0) {
		perror(path);
		exit(1);
	}
	return fd;
}

/* Serves the modes below HTTP/2, one connection after the other; open ones are never closed. */
_Noreturn static void
serve_raw(const char *path, const char *mode)
{
	static const char http1[] = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
	static const uint8_t goaway[] = { 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 8, 7, 0, 0, 0, 0, 0, 0,
		0, 0, 0, 0, 0, 0, 1 };
	int fd = listen_on(path, strcmp(mode, "full") == 0 ? 0 : 16);
	uint8_t bytes[4096];

	while (strcmp(mode, "full") == 0)
		(void)pause();
	for (;;) {
		int conn = accept(fd, NULL, NULL);

		if (strcmp(mode, "dead") == 0) {
			(void)close(conn);
		} else if (strcmp(mode, "garbage") == 0) {
			(void)!getrandom(bytes, sizeof bytes, 0);
			(void)!write(conn, bytes, sizeof bytes);
		} else if (strcmp(mode, "http1") == 0) {
			(void)!write(conn, http1, sizeof http1 - 1);
		} else if (strcmp(mode, "goaway") == 0) {
			(void)!write(conn, goaway, sizeof goaway);
		}
	}
}

int
main(int argc, char **argv)
{
	static const char *const modes[] = { "dead", "silent", "full", "garbage", "http1",
		"goaway" };
	struct csl_server *server;
	struct err e = { 0 };
	unsigned long value;
	struct span span;

	(void)signal(SIGPIPE, SIG_IGN);
	device = getenv("CSI_BAD_DEVICE");
	mounter = getenv("CSI_BAD_MOUNTER");
	mounts = device != NULL;
	if (argc < 2)
		return 2;
	for (int i = 2; i < argc; i++) {
		for (size_t m = 0; m < ELEMENTSOF(modes); m++)
			if (strncmp(argv[i], "connection=", 11) == 0 &&
			    strcmp(argv[i] + 11, modes[m]) == 0)
				serve_raw(argv[1], modes[m]);
		if (strncmp(argv[i], "log=", 4) == 0) {
			log_path = argv[i] + 4;
		} else if (strncmp(argv[i], "requests=", 9) == 0) {
			requests_path = argv[i] + 9;
		} else if (strncmp(argv[i], "rules=", 6) == 0) {
			rules_path = argv[i] + 6;
		} else if (strncmp(argv[i], "attach=", 7) == 0) {
			attach_log = argv[i] + 7;
		} else if (strncmp(argv[i], "state=", 6) == 0) {
			state_dir = argv[i] + 6;
		} else if (strncmp(argv[i], "sizes=", 6) == 0) {
			sizes_dir = argv[i] + 6;
		} else if (strcmp(argv[i], "stages=no") == 0) {
			unstaged = true;
		} else if (strcmp(argv[i], "expects=yes") == 0) {
			expects = true;
		} else if (strcmp(argv[i], "mounts=yes") == 0) {
			mounts = true;
		} else if (strcmp(argv[i], "strict=yes") == 0) {
			strict = true;
		} else if (strcmp(argv[i], "clock=yes") == 0) {
			clocked = true;
		} else if (strcmp(argv[i], "group=yes") == 0) {
			grouped = true;
		} else if (strcmp(argv[i], "context=volume") == 0) {
			echoes_context = true;
		} else if (n_rules < RULES_MAX && strchr(argv[i], '=') &&
			   find_behaviour(argv[i], &value, &span)) {
			rules[n_rules++] = argv[i];
		} else {
			fprintf(stderr, "csi_bad: '%s' is no rule\n", argv[i]);
			return 2;
		}
	}
	if (csl_server_new(argv[1], on_call, NULL, &server, &e) < 0) {
		fprintf(stderr, "csi_bad: %s\n", e.msg);
		return 1;
	}
	csl_server_run(server);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * csi_told.c: a CSI plugin whose capabilities and failures are files that a test writes while it
 * runs. Runs in: tests.
 *
 * csi_told SOCKET DIR. A published volume is a tmpfs. Files in DIR:
 *   log         each call but Probe and the capabilities: "Method volume path", one a line
 *   plugin, controller, node
 *               the numbers of the capabilities, separated by blanks
 *   segments    the node's topology: "key=value", one a line
 *   created     the topology of new volumes, as segments
 *   max         how many volumes the node takes
 *   usage       what NodeGetVolumeStats says: total, used, available and unit (1 bytes, 2 inodes),
 *               perhaps twice
 *   condition   "1" if the volume is abnormal, else "0", and the message
 *   confirm     "no": the answer to ValidateVolumeCapabilities has no `confirmed`, but the rest of
 *               the file as its message; "modes": only the access modes are confirmed
 *   METHOD      a gRPC status and a message: the answer to each call of this method. If the status
 *               follows "once", the file is removed by the call.
 *   METHOD.hang calls of this method are never answered
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "contrib/csi-local/csl_grpc.h"
#include "proto/csi.pb-c.h"

#define STATUS_INTERNAL      13
#define STATUS_UNIMPLEMENTED 12
#define ITEMS_MAX            32

static const char *dir;

struct answer {
	int status;
	char message[512];
	uint8_t *data;
	size_t len;
};

static void
pack(struct answer *a, const ProtobufCMessage *msg)
{
	a->len = protobuf_c_message_get_packed_size(msg);
	a->data = realloc(a->data, a->len + 1);
	(void)protobuf_c_message_pack(msg, a->data);
}

/* Reads a file of the directory into text. Returns false if there is none. */
static bool
read_file(const char *name, char *text, size_t size)
{
	cleanup_file FILE *f = NULL;
	char path[4096];

	(void)snprintf(path, sizeof path, "%s/%s", dir, name);
	f = fopen(path, "r");
	text[0] = '\0';
	if (f)
		text[fread(text, 1, size - 1, f)] = '\0';
	return f != NULL;
}

static void
log_call(const char *method, const char *volume, const char *path)
{
	cleanup_file FILE *f = NULL;
	char name[4096];

	(void)snprintf(name, sizeof name, "%s/log", dir);
	f = fopen(name, "a");
	if (f)
		fprintf(f, "%s %s %s\n", method, volume, path);
}

/* Reads numbers of a file. Returns how many. */
static size_t
read_numbers(const char *name, int ret[ITEMS_MAX])
{
	char text[512], *save = NULL;
	size_t n = 0;

	(void)read_file(name, text, sizeof text);
	for (char *word = strtok_r(text, " \n", &save); word && n < ITEMS_MAX;
	     word = strtok_r(NULL, " \n", &save))
		ret[n++] = atoi(word);
	return n;
}

struct topology {
	Csi__V1__Topology topology;
	Csi__V1__StringEntry entries[ITEMS_MAX], *list[ITEMS_MAX];
	char text[1024];
};

/* Returns NULL if there is no such file. */
static Csi__V1__Topology *
read_topology(const char *name, struct topology *t)
{
	char *save = NULL;
	size_t n = 0;

	if (!read_file(name, t->text, sizeof t->text))
		return NULL;
	csi__v1__topology__init(&t->topology);
	for (char *line = strtok_r(t->text, "\n", &save); line && n < ITEMS_MAX;
	     line = strtok_r(NULL, "\n", &save)) {
		csi__v1__string_entry__init(&t->entries[n]);
		t->entries[n].key = strsep(&line, "=");
		t->entries[n].value = line;
		t->list[n] = &t->entries[n];
		n++;
	}
	t->topology.n_segments = n;
	t->topology.segments = t->list;
	return &t->topology;
}

static void
get_info(struct answer *a, const uint8_t *data, size_t len)
{
	Csi__V1__GetPluginInfoResponse rep = CSI__V1__GET_PLUGIN_INFO_RESPONSE__INIT;
	char name[] = "csi-told.drover", version[] = "1";

	rep.name = name;
	rep.vendor_version = version;
	pack(a, &rep.base);
}

/* An answer with capabilities is a repeated field 1 of a field 1 (rpc or service) of a field 1
 * (its number), for all three kinds. */
static void
put_capabilities(struct answer *a, const char *name)
{
	int numbers[ITEMS_MAX];
	size_t n = read_numbers(name, numbers);

	a->data = calloc(n + 1, 6);
	for (size_t i = 0; i < n; i++) {
		const uint8_t bytes[] = { 0x0a, 4, 0x0a, 2, 0x08, (uint8_t)numbers[i] };

		memcpy(a->data + a->len, bytes, sizeof bytes);
		a->len += sizeof bytes;
	}
}

static void
get_plugin_capabilities(struct answer *a, const uint8_t *data, size_t len)
{
	put_capabilities(a, "plugin");
}

static void
get_controller_capabilities(struct answer *a, const uint8_t *data, size_t len)
{
	put_capabilities(a, "controller");
}

static void
get_node_capabilities(struct answer *a, const uint8_t *data, size_t len)
{
	put_capabilities(a, "node");
}

static void
get_node_info(struct answer *a, const uint8_t *data, size_t len)
{
	Csi__V1__NodeGetInfoResponse rep = CSI__V1__NODE_GET_INFO_RESPONSE__INIT;
	struct topology t;
	int max[ITEMS_MAX];
	char id[] = "told-node";

	rep.node_id = id;
	if (read_numbers("max", max) > 0)
		rep.max_volumes_per_node = max[0];
	rep.accessible_topology = read_topology("segments", &t);
	pack(a, &rep.base);
}

static void
get_capacity(struct answer *a, const uint8_t *data, size_t len)
{
	Csi__V1__GetCapacityResponse rep = CSI__V1__GET_CAPACITY_RESPONSE__INIT;
	Csi__V1__Int64Value most = CSI__V1__INT64_VALUE__INIT, least = CSI__V1__INT64_VALUE__INIT;

	rep.available_capacity = 10000;
	most.value = 1000;
	least.value = 10;
	rep.maximum_volume_size = &most;
	rep.minimum_volume_size = &least;
	pack(a, &rep.base);
}

static void
get_stats(struct answer *a, const uint8_t *data, size_t len)
{
	Csi__V1__NodeGetVolumeStatsRequest *req =
	    csi__v1__node_get_volume_stats_request__unpack(NULL, len, data);
	Csi__V1__NodeGetVolumeStatsResponse rep = CSI__V1__NODE_GET_VOLUME_STATS_RESPONSE__INIT;
	Csi__V1__VolumeCondition condition = CSI__V1__VOLUME_CONDITION__INIT;
	Csi__V1__VolumeUsage usage[ITEMS_MAX / 4], *list[ITEMS_MAX / 4];
	int numbers[ITEMS_MAX];
	char text[512];

	log_call("NodeGetVolumeStats", req->volume_id, req->volume_path);
	rep.usage = list;
	for (size_t n = read_numbers("usage", numbers) / 4; rep.n_usage < n; rep.n_usage++) {
		const int *from = numbers + rep.n_usage * 4;
		Csi__V1__VolumeUsage *u = list[rep.n_usage] = &usage[rep.n_usage];

		csi__v1__volume_usage__init(u);
		u->total = from[0];
		u->used = from[1];
		u->available = from[2];
		u->unit = (Csi__V1__VolumeUsage__Unit)from[3];
	}
	if (read_file("condition", text, sizeof text)) {
		condition.abnormal = text[0] == '1';
		condition.message = text + 2;
		rep.volume_condition = &condition;
	}
	pack(a, &rep.base);
	csi__v1__node_get_volume_stats_request__free_unpacked(req, NULL);
}

static void
validate(struct answer *a, const uint8_t *data, size_t len)
{
	Csi__V1__ValidateVolumeCapabilitiesRequest *req =
	    csi__v1__validate_volume_capabilities_request__unpack(NULL, len, data);
	Csi__V1__ValidateVolumeCapabilitiesResponse rep =
	    CSI__V1__VALIDATE_VOLUME_CAPABILITIES_RESPONSE__INIT;
	Csi__V1__ValidateVolumeCapabilitiesResponse__Confirmed confirmed =
	    CSI__V1__VALIDATE_VOLUME_CAPABILITIES_RESPONSE__CONFIRMED__INIT;
	Csi__V1__VolumeCapability modes[ITEMS_MAX], *list[ITEMS_MAX];
	char text[512];

	log_call("ValidateVolumeCapabilities", req->volume_id, "");
	confirmed.n_volume_capabilities = req->n_volume_capabilities;
	confirmed.volume_capabilities = req->volume_capabilities;
	if (read_file("confirm", text, sizeof text) && strncmp(text, "modes", 5) == 0) {
		for (size_t i = 0; i < req->n_volume_capabilities && i < ITEMS_MAX; i++) {
			csi__v1__volume_capability__init(list[i] = &modes[i]);
			modes[i].access_mode = req->volume_capabilities[i]->access_mode;
		}
		confirmed.volume_capabilities = list;
	} else if (*text) {
		rep.message = text + strcspn(text, " ") + (strchr(text, ' ') != NULL);
		confirmed.n_volume_capabilities = 0;
	}
	if (strncmp(text, "no", 2) != 0)
		rep.confirmed = &confirmed;
	pack(a, &rep.base);
	csi__v1__validate_volume_capabilities_request__free_unpacked(req, NULL);
}

/* The volume's id is its name. */
static void
create_volume(struct answer *a, const uint8_t *data, size_t len)
{
	Csi__V1__CreateVolumeRequest *req = csi__v1__create_volume_request__unpack(NULL, len, data);
	Csi__V1__CreateVolumeResponse rep = CSI__V1__CREATE_VOLUME_RESPONSE__INIT;
	Csi__V1__Topology *topology;
	Csi__V1__Volume volume = CSI__V1__VOLUME__INIT;
	struct topology t;

	log_call("CreateVolume", req->name, "");
	volume.volume_id = req->name;
	if (req->capacity_range)
		volume.capacity_bytes = req->capacity_range->required_bytes;
	topology = read_topology("created", &t);
	volume.accessible_topology = &topology;
	volume.n_accessible_topology = topology != NULL;
	rep.volume = &volume;
	pack(a, &rep.base);
	csi__v1__create_volume_request__free_unpacked(req, NULL);
}

/* The nodes have to expand the volume too. */
static void
expand_volume(struct answer *a, const uint8_t *data, size_t len)
{
	Csi__V1__ControllerExpandVolumeRequest *req =
	    csi__v1__controller_expand_volume_request__unpack(NULL, len, data);
	Csi__V1__ControllerExpandVolumeResponse rep =
	    CSI__V1__CONTROLLER_EXPAND_VOLUME_RESPONSE__INIT;

	log_call("ControllerExpandVolume", req->volume_id, "");
	rep.capacity_bytes = req->capacity_range->required_bytes;
	rep.node_expansion_required = true;
	pack(a, &rep.base);
	csi__v1__controller_expand_volume_request__free_unpacked(req, NULL);
}

static void
expand_node(struct answer *a, const uint8_t *data, size_t len)
{
	Csi__V1__NodeExpandVolumeRequest *req =
	    csi__v1__node_expand_volume_request__unpack(NULL, len, data);
	Csi__V1__NodeExpandVolumeResponse rep = CSI__V1__NODE_EXPAND_VOLUME_RESPONSE__INIT;

	log_call("NodeExpandVolume", req->volume_id, req->volume_path);
	rep.capacity_bytes = req->capacity_range->required_bytes;
	pack(a, &rep.base);
	csi__v1__node_expand_volume_request__free_unpacked(req, NULL);
}

static void
publish(struct answer *a, const uint8_t *data, size_t len)
{
	Csi__V1__NodePublishVolumeRequest *req =
	    csi__v1__node_publish_volume_request__unpack(NULL, len, data);

	log_call("NodePublishVolume", req->volume_id, req->target_path);
	if (a->status == 0 && ((mkdir(req->target_path, 0700) < 0 && errno != EEXIST) ||
				  mount("told", req->target_path, "tmpfs", 0, "mode=777") < 0)) {
		a->status = STATUS_INTERNAL;
		(void)snprintf(a->message, sizeof a->message, "mount: %s", strerror(errno));
	}
	csi__v1__node_publish_volume_request__free_unpacked(req, NULL);
}

static void
unpublish(struct answer *a, const uint8_t *data, size_t len)
{
	Csi__V1__NodeUnpublishVolumeRequest *req =
	    csi__v1__node_unpublish_volume_request__unpack(NULL, len, data);

	log_call("NodeUnpublishVolume", req->volume_id, req->target_path);
	if (a->status == 0) {
		(void)umount2(req->target_path, MNT_DETACH);
		(void)rmdir(req->target_path);
	}
	csi__v1__node_unpublish_volume_request__free_unpacked(req, NULL);
}

static void
answer_nothing(struct answer *a, const uint8_t *data, size_t len)
{
}

static const struct method {
	const char *name;
	void (*answer)(struct answer *a, const uint8_t *data, size_t len);
	bool logged; /* here, without a volume */
} methods[] = {
	{ "Probe", answer_nothing, false },
	{ "GetPluginInfo", get_info, false },
	{ "GetPluginCapabilities", get_plugin_capabilities, false },
	{ "ControllerGetCapabilities", get_controller_capabilities, false },
	{ "NodeGetCapabilities", get_node_capabilities, false },
	{ "NodeGetInfo", get_node_info, false },
	{ "ValidateVolumeCapabilities", validate, false },
	{ "CreateVolume", create_volume, false },
	{ "DeleteVolume", answer_nothing, true },
	{ "ControllerExpandVolume", expand_volume, false },
	{ "ControllerPublishVolume", answer_nothing, true },
	{ "ControllerUnpublishVolume", answer_nothing, true },
	{ "ListVolumes", answer_nothing, true },
	{ "ListSnapshots", answer_nothing, true },
	{ "CreateSnapshot", answer_nothing, true },
	{ "DeleteSnapshot", answer_nothing, true },
	{ "NodeStageVolume", answer_nothing, true },
	{ "NodeUnstageVolume", answer_nothing, true },
	{ "NodePublishVolume", publish, false },
	{ "NodeUnpublishVolume", unpublish, false },
	{ "NodeExpandVolume", expand_node, false },
	{ "GetCapacity", get_capacity, true },
	{ "NodeGetVolumeStats", get_stats, false },
};

/* Sets the status that a file commands for this method. */
static void
obey(struct answer *a, const char *method)
{
	char text[512], path[4096], *at = text;

	if (!read_file(method, text, sizeof text))
		return;
	if (strncmp(at, "once ", 5) == 0) {
		at += 5;
		(void)snprintf(path, sizeof path, "%s/%s", dir, method);
		(void)unlink(path);
	}
	a->status = (int)strtol(at, &at, 10);
	(void)snprintf(a->message, sizeof a->message, "%s", at + (*at == ' '));
}

static void
on_call(void *arg, struct csl_call *call, const char *path, const uint8_t *data, size_t len)
{
	const char *name = strrchr(path, '/') + 1;
	struct answer a = { .status = STATUS_UNIMPLEMENTED, .data = calloc(1, 1) };
	char hang[64], text[8];

	for (size_t i = 0; i < ELEMENTSOF(methods); i++) {
		if (strcmp(methods[i].name, name) != 0)
			continue;
		a.status = 0;
		obey(&a, name);
		if (methods[i].logged)
			log_call(name, "", "");
		methods[i].answer(&a, data, len);
	}
	(void)snprintf(hang, sizeof hang, "%s.hang", name);
	if (!read_file(hang, text, sizeof text))
		csl_call_answer(call, a.status, a.message, a.data, a.len);
	free(a.data);
}

int
main(int argc, char **argv)
{
	struct csl_server *server;
	struct err e = { 0 };

	(void)signal(SIGPIPE, SIG_IGN);
	if (argc != 3)
		return 2;
	dir = argv[2];
	if (csl_server_new(argv[1], on_call, NULL, &server, &e) < 0) {
		fprintf(stderr, "csi_told: %s\n", e.msg);
		return 1;
	}
	csl_server_run(server);
}

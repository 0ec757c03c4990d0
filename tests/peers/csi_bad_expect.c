// SPDX-License-Identifier: Apache-2.0
/* csi_bad_expect.c: checks that requests have the secrets and mount options that the id of their
 * volume promises. Runs in: tests. */
#include <stdio.h>
#include <string.h>

#include "proto/csi.pb-c.h"
#include "tests/peers/csi_bad.h"

/* The requests about a volume that have secrets. */
static const struct {
	const char *method;
	const ProtobufCMessageDescriptor *request;
} checked[] = {
	{ "CreateVolume", &csi__v1__create_volume_request__descriptor },
	{ "DeleteVolume", &csi__v1__delete_volume_request__descriptor },
	{ "ValidateVolumeCapabilities",
	    &csi__v1__validate_volume_capabilities_request__descriptor },
	{ "ControllerPublishVolume", &csi__v1__controller_publish_volume_request__descriptor },
	{ "ControllerUnpublishVolume", &csi__v1__controller_unpublish_volume_request__descriptor },
	{ "ControllerExpandVolume", &csi__v1__controller_expand_volume_request__descriptor },
	{ "NodeStageVolume", &csi__v1__node_stage_volume_request__descriptor },
	{ "NodePublishVolume", &csi__v1__node_publish_volume_request__descriptor },
	{ "NodeExpandVolume", &csi__v1__node_expand_volume_request__descriptor },
};

/* Returns the elements of a field of messages, and in *ret_n how many there are. */
static void *
find_field(const ProtobufCMessage *msg, const char *name, size_t *ret_n)
{
	const ProtobufCFieldDescriptor *field =
	    protobuf_c_message_descriptor_get_field_by_name(msg->descriptor, name);
	char *at = (char *)msg;

	*ret_n = 0;
	if (!field)
		return NULL;
	if (field->label == PROTOBUF_C_LABEL_REPEATED) {
		*ret_n = *(size_t *)(at + field->quantifier_offset);
		return *(void **)(at + field->offset);
	}
	*ret_n = *(void **)(at + field->offset) ? 1 : 0;
	return at + field->offset;
}

static const char *
check_secrets(const ProtobufCMessage *msg, const char *volume)
{
	static char why[600];
	size_t n;
	Csi__V1__StringEntry **secrets = find_field(msg, "secrets", &n);
	char promised[300];

	(void)snprintf(promised, sizeof promised, "secret of %s", volume);
	if (n == 1 && strcmp(secrets[0]->key, "key") == 0 &&
	    strcmp(secrets[0]->value, promised) == 0)
		return NULL;
	(void)snprintf(why, sizeof why, "%zu secrets, the first is '%.250s'", n,
	    n > 0 ? secrets[0]->value : "");
	return why;
}

/* The context that ControllerPublishVolume has answered, with attach=FILE. */
static const char *
check_context(const ProtobufCMessage *msg, const char *volume)
{
	size_t n;
	Csi__V1__StringEntry **context = find_field(msg, "publish_context", &n);
	char promised[300];

	(void)snprintf(promised, sizeof promised, "%s@bad-node", volume);
	if (n == 1 && strcmp(context[0]->value, promised) == 0)
		return NULL;
	return "not the context of its attachment";
}

static bool
ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), end_len = strlen(end);

	return len > end_len && text[len - end_len - 1] == '-' &&
	       strcmp(text + len - end_len, end) == 0;
}

static const char *
check_options(const Csi__V1__VolumeCapability *cap, const char *volume, bool has_flags)
{
	const Csi__V1__VolumeCapability__MountVolume *m = cap->mount;

	if (cap->access_type_case != CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_MOUNT)
		return NULL;
	if (strcmp(m->fs_type, "storm") != 0)
		return "another file system type";
	if ((m->n_mount_flags > 0) != has_flags)
		return has_flags ? "no mount flags" : "mount flags";
	for (size_t i = 0; i < m->n_mount_flags; i++)
		if (!ends_with(m->mount_flags[i], volume))
			return "another mount flag";
	return NULL;
}

static const char *
check_message(const char *method, const char *volume, const ProtobufCMessage *msg)
{
	static const char *const fields[] = { "volume_capability", "volume_capabilities" };
	bool is_mount =
	    strcmp(method, "NodeStageVolume") == 0 || strcmp(method, "NodePublishVolume") == 0;
	const char *why = check_secrets(msg, volume);

	if (!why && is_mount && bad.attach_log)
		why = check_context(msg, volume);
	for (size_t f = 0; f < sizeof fields / sizeof fields[0]; f++) {
		size_t n;
		Csi__V1__VolumeCapability **caps = find_field(msg, fields[f], &n);

		for (size_t i = 0; !why && i < n; i++)
			why =
			    check_options(caps[i], volume, strcmp(method, "NodeExpandVolume") != 0);
	}
	return why;
}

const char *
bad_check_request(const char *method, const char *volume, const uint8_t *data, size_t len)
{
	for (size_t i = 0; i < sizeof checked / sizeof checked[0]; i++) {
		ProtobufCMessage *msg;
		const char *why;

		if (strcmp(method, checked[i].method) != 0)
			continue;
		msg = protobuf_c_message_unpack(checked[i].request, NULL, len, data);
		if (!msg)
			return "it cannot be decoded";
		why = check_message(method, volume, msg);
		protobuf_c_message_free_unpacked(msg, NULL);
		return why;
	}
	return NULL;
}

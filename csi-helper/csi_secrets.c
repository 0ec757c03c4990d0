// SPDX-License-Identifier: Apache-2.0
/* csi_secrets.c: keeps the secrets of a request out of what the plugin says about it. Runs in:
 * csi-helper. */
#include "csi-helper/csi_secrets.h"

#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "proto/csi.pb-c.h"

#define HIDDEN "[REDACTED]"

static void
add_text(struct csi_secrets *s, const char *text, size_t len)
{
	s->values = mem_need(realloc(s->values, s->len + len + 1));
	memcpy(s->values + s->len, text, len);
	s->values[s->len + len] = '\0';
	s->len += len + 1;
}

/* Adds the line as many programs print a text in quotes. */
static void
add_quoted(struct csi_secrets *s, const char *line, size_t len)
{
	char *text = mem_alloc(2 * len);
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		if (line[i] == '"' || line[i] == '\\')
			text[n++] = '\\';
		text[n++] = line[i];
	}
	if (n > len)
		add_text(s, text, n);
	explicit_bzero(text, n);
	free(text);
}

static void
add_value(struct csi_secrets *s, const char *value)
{
	for (size_t len; *value; value += len + (value[len] != '\0')) {
		len = strcspn(value, "\r\n");
		if (len < CSI_SECRET_BYTES_MIN)
			continue;
		add_text(s, value, len);
		add_quoted(s, value, len);
	}
}

/* Returns the field's elements; none if the message has no such list. */
static void *const *
find_list(const ProtobufCMessage *msg, const char *name, size_t *ret_n)
{
	const ProtobufCFieldDescriptor *f =
	    protobuf_c_message_descriptor_get_field_by_name(msg->descriptor, name);
	void *const *list = NULL;

	*ret_n = 0;
	if (!f || f->label != PROTOBUF_C_LABEL_REPEATED)
		return NULL;
	memcpy(ret_n, (const uint8_t *)msg + f->quantifier_offset, sizeof *ret_n);
	memcpy(&list, (const uint8_t *)msg + f->offset, sizeof list);
	return list;
}

static void
add_flags(struct csi_secrets *s, const Csi__V1__VolumeCapability *cap)
{
	static const char *const names[] = { "pass", "secret", "cred", "token", "key" };
	const char *flag, *value;

	if (!cap || cap->access_type_case != CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_MOUNT)
		return;
	for (size_t i = 0; i < cap->mount->n_mount_flags; i++) {
		flag = cap->mount->mount_flags[i];
		value = strchr(flag, '=');
		for (size_t k = 0; value && k < ELEMENTSOF(names); k++) {
			const char *at = strcasestr(flag, names[k]);

			if (at && at < value) {
				add_value(s, value + 1);
				break;
			}
		}
	}
}

void
csi_secrets_take(struct csi_secrets *ret, const ProtobufCMessage *req)
{
	const ProtobufCFieldDescriptor *f =
	    protobuf_c_message_descriptor_get_field_by_name(req->descriptor, "volume_capability");
	const Csi__V1__VolumeCapability *cap;
	void *const *list;
	size_t n;

	*ret = (struct csi_secrets){ 0 };
	list = find_list(req, "secrets", &n);
	for (size_t i = 0; i < n; i++)
		add_value(ret, ((const Csi__V1__StringEntry *)list[i])->value);
	list = find_list(req, "volume_capabilities", &n);
	for (size_t i = 0; i < n; i++)
		add_flags(ret, list[i]);
	if (f) {
		memcpy(&cap, (const uint8_t *)req + f->offset, sizeof cap);
		add_flags(ret, cap);
	}
}

void
csi_secrets_done(struct csi_secrets *s)
{
	if (s->values)
		explicit_bzero(s->values, s->len);
	free(s->values);
	*s = (struct csi_secrets){ 0 };
}

/* Returns the length of the longest value that the text begins with; 0 if there is none. */
static size_t
value_length(const struct csi_secrets *s, const char *text, size_t len)
{
	size_t longest = 0, n;

	for (size_t at = 0; at < s->len; at += n + 1) {
		n = strlen(s->values + at);
		if (n > longest && n <= len && memcmp(text, s->values + at, n) == 0)
			longest = n;
	}
	return longest;
}

size_t
csi_secrets_hide(const struct csi_secrets *s, const char *text, size_t len, char *ret, size_t size)
{
	size_t at = 0, out = 0, n, put;

	while (at < len && out < size) {
		n = value_length(s, text + at, len - at);
		put = n == 0 ? 1 : strlen(HIDDEN) < size - out ? strlen(HIDDEN) : size - out;
		memcpy(ret + out, n == 0 ? text + at : HIDDEN, put);
		at += n == 0 ? 1 : n;
		out += put;
	}
	return out;
}

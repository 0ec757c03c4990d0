// SPDX-License-Identifier: Apache-2.0
/* csi_secrets.c: keeps the secrets of a request out of what the plugin says about it. Runs in:
 * csi-helper. */
#include "csi-helper/csi_secrets.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "proto/csi.pb-c.h"

#define HIDDEN "[REDACTED]"

static void
add_value(struct csi_secrets *s, const char *value)
{
	size_t n = strlen(value) + 1;

	if (n <= CSI_SECRET_BYTES_MIN)
		return;
	s->values = mem_need(realloc(s->values, s->len + n));
	memcpy(s->values + s->len, value, n);
	s->len += n;
}

void
csi_secrets_take(struct csi_secrets *ret, const ProtobufCMessage *req)
{
	const ProtobufCFieldDescriptor *f =
	    protobuf_c_message_descriptor_get_field_by_name(req->descriptor, "secrets");
	Csi__V1__StringEntry *const *entries;
	size_t n;

	*ret = (struct csi_secrets){ 0 };
	if (!f)
		return;
	memcpy(&n, (const uint8_t *)req + f->quantifier_offset, sizeof n);
	memcpy(&entries, (const uint8_t *)req + f->offset, sizeof entries);
	for (size_t i = 0; i < n; i++)
		add_value(ret, entries[i]->value);
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

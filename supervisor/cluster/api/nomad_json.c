// SPDX-License-Identifier: Apache-2.0
/* nomad_json.c: converts answers of servers to the API's JSON. Runs in: supervisor. */
#include "supervisor/cluster/api/nomad_json.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base64.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/msgpack_read.h"
#include "common/utf8.h"
#include "model/engine/table.h"
#include "model/engine/walk.h"

struct reader {
	struct mp_in in;
	struct text *out;
	unsigned depth;
};

/* How a string is shown, which its member's name decides, because msgpack has only one type. */
enum bytes_as { AS_SEEN, AS_BASE64, AS_ADDRESS };

static int put_value(struct reader *r, enum bytes_as as);

static bool
key_is(const struct mp_item *key, const char *name)
{
	return key->len == strlen(name) && memcmp(key->bytes, name, key->len) == 0;
}

/* Secret members that the API never shows. */
static bool
is_secret(const struct mp_item *key)
{
	return key_is(key, "SecretID") || key_is(key, "Secrets") || key_is(key, "SignedIdentities");
}

static void
put_string(struct reader *r, const struct mp_item *item)
{
	cleanup_free char *s = mem_strndup(item->bytes, item->len);

	text_json_string(r->out, s);
}

static void
put_base64(struct reader *r, const struct mp_item *item)
{
	cleanup_free char *s = mem_alloc(BASE64_SIZE(item->len));

	(void)base64_encode(item->bytes, item->len, s);
	text_json_string(r->out, s);
}

/* The first byte of an encoded time is its version, 1, with which no text begins. */
static bool
put_time(struct reader *r, const struct mp_item *item)
{
	char text[RFC3339_SIZE];
	int64_t ns;

	if (item->len != GO_TIME_SIZE || item->bytes[0] != 1 ||
	    !go_time_parse(item->bytes, item->len, &ns))
		return false;
	if (ns == 0) {
		text_append(r->out, "null", 4);
		return true;
	}
	time_format(ns, text);
	text_json_string(r->out, text);
	return true;
}

/* An address as Go's net.IP, of 4 or 16 bytes. */
static bool
put_address(struct reader *r, const struct mp_item *item)
{
	char text[INET6_ADDRSTRLEN];
	static const uint8_t v4[12] = { [10] = 0xff, [11] = 0xff };
	const bool mapped = item->len == 16 && memcmp(item->bytes, v4, sizeof v4) == 0;

	if (item->len != 4 && item->len != 16)
		return false;
	if (!inet_ntop(item->len == 16 && !mapped ? AF_INET6 : AF_INET,
		item->bytes + (mapped ? sizeof v4 : 0), text, sizeof text))
		return false;
	text_json_string(r->out, text);
	return true;
}

static void
put_bytes(struct reader *r, const struct mp_item *item, enum bytes_as as)
{
	if (as == AS_ADDRESS && put_address(r, item))
		return;
	if (as != AS_BASE64 && put_time(r, item))
		return;
	if (as == AS_BASE64 || !utf8_is_text(item->bytes, item->len))
		put_base64(r, item);
	else
		put_string(r, item);
}

static int
read_key(struct reader *r, struct mp_item *ret)
{
	if (mp_read(&r->in, true, ret) < 0 || ret->kind != MP_BYTES)
		return -EBADMSG;
	return 0;
}

/* A payload or a key is always bytes, even if it looks like text. */
static enum bytes_as
bytes_of(const struct mp_item *key)
{
	if (key_is(key, "Payload") || key_is(key, "PublicKey"))
		return AS_BASE64;
	return key_is(key, "Addr") ? AS_ADDRESS : AS_SEEN;
}

static int
put_map(struct reader *r, uint32_t n)
{
	bool some = false;
	int x = 0;

	text_append(r->out, "{", 1);
	for (uint32_t i = 0; x == 0 && i < n; i++) {
		struct mp_item key;

		x = read_key(r, &key);
		if (x == 0 && is_secret(&key)) {
			x = mp_skip(&r->in);
			continue;
		}
		if (x < 0)
			return x;
		if (some)
			text_append(r->out, ",", 1);
		some = true;
		put_string(r, &key);
		text_append(r->out, ":", 1);
		x = put_value(r, bytes_of(&key));
	}
	text_append(r->out, "}", 1);
	return x;
}

static int
put_array(struct reader *r, uint32_t n)
{
	int x = 0;

	text_append(r->out, "[", 1);
	for (uint32_t i = 0; x == 0 && i < n; i++) {
		if (i > 0)
			text_append(r->out, ",", 1);
		x = put_value(r, AS_SEEN);
	}
	text_append(r->out, "]", 1);
	return x;
}

static void
put_scalar(struct reader *r, const struct mp_item *item, enum bytes_as as)
{
	switch (item->kind) {
	case MP_BOOL:
		text_printf(r->out, "%s", item->boolean ? "true" : "false");
		return;
	case MP_INT:
		text_printf(r->out, "%" PRId64, item->integer);
		return;
	case MP_UINT:
		text_printf(r->out, "%" PRIu64, item->uinteger);
		return;
	case MP_REAL:
		if (isfinite(item->real))
			text_printf(r->out, "%.17g", item->real);
		else
			text_append(r->out, "null", 4);
		return;
	case MP_BYTES:
		put_bytes(r, item, as);
		return;
	default:
		text_append(r->out, "null", 4);
	}
}

static int
put_value(struct reader *r, enum bytes_as as)
{
	struct mp_item item;
	int x = 0;

	if (r->depth == MODEL_DEPTH_MAX || mp_read(&r->in, true, &item) < 0)
		return -EBADMSG;
	r->depth++;
	if (item.kind == MP_MAP)
		x = put_map(r, item.n);
	else if (item.kind == MP_ARRAY)
		x = put_array(r, item.n);
	else
		put_scalar(r, &item, as);
	r->depth--;
	return x;
}

/* Reads one member of the outermost map. A page token with characters that a header may not contain
 * is ignored. */
static void
take_meta(const struct mp_item *key, const struct mp_item *value, struct api_meta *ret)
{
	if (key_is(key, "Index") && value->kind == MP_UINT)
		ret->index = value->uinteger;
	else if (key_is(key, "LastContact") && value->kind == MP_UINT)
		ret->last_contact_ns = (int64_t)value->uinteger;
	else if (key_is(key, "LastContact") && value->kind == MP_INT)
		ret->last_contact_ns = value->integer;
	else if (key_is(key, "KnownLeader") && value->kind == MP_BOOL)
		ret->no_leader = !value->boolean;
	else if (key_is(key, "NextToken") && value->kind == MP_BYTES &&
		 value->len < sizeof ret->next_token) {
		memcpy(ret->next_token, value->bytes, value->len);
		ret->next_token[value->len] = '\0';
		for (const char *c = ret->next_token; *c; c++)
			if (*c < ' ' || *c > '~')
				ret->next_token[0] = '\0';
	}
}

/* Walks the outermost map: finds the member's value and the answer's metadata. */
static int
find_member(struct reader *r, const char *member, struct mp_in *ret, struct api_meta *ret_meta)
{
	struct mp_item head, key, value;
	struct mp_in at;

	*ret = (struct mp_in){ 0 };
	*ret_meta = (struct api_meta){ 0 };
	at = r->in;
	if (mp_read(&at, true, &head) < 0)
		return -EBADMSG;
	if (head.kind != MP_MAP)
		return 0;
	r->in = at;
	for (uint32_t i = 0; i < head.n; i++) {
		if (read_key(r, &key) < 0)
			return -EBADMSG;
		at = r->in;
		if (member && key_is(&key, member))
			*ret = at;
		if (mp_read(&at, true, &value) == 0)
			take_meta(&key, &value, ret_meta);
		if (mp_skip(&r->in) < 0)
			return -EBADMSG;
	}
	return 0;
}

int
nomad_to_json(const void *body, size_t len, const char *member, struct text *t,
    struct api_meta *ret, struct err *e)
{
	const struct mp_in whole = { body, (const uint8_t *)body + len };
	struct reader r = { .in = whole, .out = t };
	struct mp_item item;
	struct mp_in at;
	int x = find_member(&r, member, &at, ret);

	if (x == 0 && member) {
		r.in = at;
		if (!at.at || (mp_read(&at, true, &item) == 0 && item.kind == MP_NIL)) {
			text_append(t, "null", 4);
			return 0;
		}
	} else {
		r.in = whole;
	}
	if (x == 0)
		x = put_value(&r, AS_SEEN);
	return x < 0 ? err_set(e, x, "read the server's answer") : 1;
}

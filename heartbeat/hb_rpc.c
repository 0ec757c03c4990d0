// SPDX-License-Identifier: Apache-2.0
/* hb_rpc.c: encodes and decodes Go's net/rpc on msgpack. Runs in: heartbeat. */
#include "heartbeat/hb_rpc.h"

#include <errno.h>
#include <msgpack.h>
#include <string.h>

#include "common/msgpack_read.h"
#include "common/utf8.h"

#define OBJECTS_MAX (1ull << 40) /* elements that all open containers may announce */

/* --- the end of an object --- */

static unsigned
length_size(uint8_t b)
{
	switch (b) {
	case 0xc4: /* bin, ext, str, array, map */
	case 0xc7:
	case 0xd9:
		return 1;
	case 0xc5:
	case 0xc8:
	case 0xda:
	case 0xdc:
	case 0xde:
		return 2;
	case 0xc6:
	case 0xc9:
	case 0xdb:
	case 0xdd:
	case 0xdf:
		return 4;
	default:
		return 0;
	}
}

/* Begins the body of the current object, with the length that its marker says. */
static int
begin_body(struct hb_rpc_scan *s)
{
	uint8_t b = s->marker;

	if ((b >= 0xc7 && b <= 0xc9) || (b >= 0xd4 && b <= 0xd8))
		s->raw = s->length + 1; /* plus the byte of the type */
	else if ((b >= 0x80 && b <= 0x8f) || b == 0xde || b == 0xdf)
		s->todo += 2 * s->length;
	else if ((b >= 0x90 && b <= 0x9f) || b == 0xdc || b == 0xdd)
		s->todo += s->length;
	else
		s->raw = s->length;
	return s->todo > OBJECTS_MAX ? -EBADMSG : 0;
}

static int
begin_object(struct hb_rpc_scan *s, uint8_t b)
{
	static const uint8_t sizes[] = { 4, 8, 1, 2, 4, 8, 1, 2, 4, 8, 1, 2, 4, 8, 16 };

	if (b == 0xc1)
		return -EBADMSG;
	s->marker = b;
	s->todo--;
	s->length = 0;
	s->n_length = 0;
	s->length_size = length_size(b);
	if (s->length_size)
		return 0;
	if (b >= 0x80 && b <= 0x9f)
		s->length = b & 0x0f;
	else if (b >= 0xa0 && b <= 0xbf)
		s->length = b & 0x1f;
	else if (b >= 0xca && b <= 0xd8) /* numbers, and extensions of a fixed size */
		s->length = sizes[b - 0xca];
	return begin_body(s);
}

ssize_t
hb_rpc_scan(struct hb_rpc_scan *s, const uint8_t *data, size_t len, bool *ret_done)
{
	size_t at = 0;
	int r = 0;

	if (!s->started) {
		s->started = true;
		s->todo = 1;
	}
	while (at < len && (s->todo > 0 || s->raw > 0 || s->n_length < s->length_size)) {
		if (s->n_length < s->length_size) {
			s->length = s->length << 8 | data[at++];
			if (++s->n_length == s->length_size)
				r = begin_body(s);
		} else if (s->raw > 0) {
			size_t n = len - at < s->raw ? len - at : (size_t)s->raw;

			s->raw -= n;
			at += n;
		} else {
			r = begin_object(s, data[at++]);
		}
		if (r < 0)
			return r;
	}
	*ret_done = s->todo == 0 && s->raw == 0 && s->n_length == s->length_size;
	return (ssize_t)at;
}

/* --- encoding heads --- */

static int
write_buf(void *data, const char *bytes, size_t len)
{
	hb_buf_add(data, bytes, len);
	return 0;
}

/* Writes text as Go does, in the older form without a difference between text and bytes. */
static void
pack_text(msgpack_packer *p, const char *text)
{
	size_t len = strlen(text);

	(void)msgpack_pack_v4raw(p, len);
	(void)msgpack_pack_v4raw_body(p, text, len);
}

static void
pack_seq(msgpack_packer *p, uint64_t seq)
{
	pack_text(p, "Seq");
	(void)msgpack_pack_uint64(p, seq);
}

static void
pack_field(msgpack_packer *p, const char *name, const char *value)
{
	pack_text(p, name);
	pack_text(p, value);
}

void
hb_rpc_put_request(struct hb_buf *out, const char *method, uint64_t seq)
{
	msgpack_packer p;

	msgpack_packer_init(&p, out, write_buf);
	(void)msgpack_pack_map(&p, 2);
	pack_seq(&p, seq);
	pack_field(&p, "ServiceMethod", method);
}

void
hb_rpc_put_answer(struct hb_buf *out, const char *method, uint64_t seq, const char *error)
{
	msgpack_packer p;

	msgpack_packer_init(&p, out, write_buf);
	(void)msgpack_pack_map(&p, 3);
	pack_field(&p, "Error", error);
	pack_seq(&p, seq);
	pack_field(&p, "ServiceMethod", method);
	if (error[0])
		(void)msgpack_pack_map(&p, 0);
}

/* A map with one text. */
static void
put_text(struct hb_buf *out, const char *name, const char *value)
{
	msgpack_packer p;

	msgpack_packer_init(&p, out, write_buf);
	(void)msgpack_pack_map(&p, 1);
	pack_field(&p, name, value);
}

void
hb_rpc_put_opener(struct hb_buf *out, const char *method)
{
	put_text(out, "Method", method);
}

void
hb_rpc_put_accept(struct hb_buf *out, const char *error)
{
	put_text(out, "Error", error);
}

/* --- decoding objects --- */

/* A map that is complete and valid msgpack; points into the message. */
struct map {
	struct mp_in in; /* after its head */
	uint32_t n;
};

static int
open_map(const uint8_t *data, size_t len, struct map *ret)
{
	struct mp_in in = { data, data + len }, all = in;
	struct mp_item head;

	if (mp_read(&in, true, &head) < 0 || head.kind != MP_MAP || mp_skip(&all) < 0 ||
	    all.at != all.end)
		return -EBADMSG;
	*ret = (struct map){ in, head.n };
	return 0;
}

/* Returns the last entry of that name, as Go does; nil if there is none. *ret_rest (may be NULL) is
 * the input after its head. */
static struct mp_item
get_field(const struct map *map, const char *name, struct mp_in *ret_rest)
{
	struct mp_in in = map->in, value = { 0 };
	struct mp_item key, found = { .kind = MP_NIL };
	size_t len = strlen(name);

	for (uint32_t i = 0; i < map->n; i++) {
		struct mp_in at = in;

		(void)mp_skip(&in); /* open_map() has scanned all of it, so no call here fails */
		if (mp_read(&at, true, &key) == 0 && key.kind == MP_BYTES && key.len == len &&
		    memcmp(key.bytes, name, len) == 0)
			value = in;
		(void)mp_skip(&in);
	}
	if (value.at)
		(void)mp_read(&value, true, &found);
	if (ret_rest)
		*ret_rest = value;
	return found;
}

static void
get_text(const struct map *map, const char *name, char *ret, size_t size)
{
	struct mp_item item = get_field(map, name, NULL);

	if (item.kind == MP_BYTES)
		(void)utf8_sanitize(ret, size, item.bytes, item.len);
	else
		ret[0] = '\0';
}

/* Returns 0 for a value that is not a number or does not fit. */
static int64_t
get_number(const struct map *map, const char *name)
{
	struct mp_item item = get_field(map, name, NULL);

	if (item.kind == MP_UINT)
		return item.uinteger <= INT64_MAX ? (int64_t)item.uinteger : 0;
	return item.kind == MP_INT ? item.integer : 0;
}

int
hb_rpc_get_head(const uint8_t *data, size_t len, struct hb_rpc_head *ret)
{
	const char *name = "ServiceMethod";
	struct mp_item method, seq;
	struct map map;

	if (open_map(data, len, &map) < 0)
		return -EBADMSG;
	method = get_field(&map, name, NULL);
	if (method.kind == MP_NIL)
		method = get_field(&map, name = "Method", NULL);
	if (method.kind == MP_BYTES && method.len >= sizeof ret->method)
		return -EBADMSG;
	get_text(&map, name, ret->method, sizeof ret->method);
	get_text(&map, "Error", ret->error, sizeof ret->error);
	seq = get_field(&map, "Seq", NULL);
	ret->seq = seq.kind == MP_UINT  ? seq.uinteger
		   : seq.kind == MP_INT ? (uint64_t)seq.integer
					: 0;
	return 0;
}

/* in: positioned at the list's elements. */
static void
get_servers(struct mp_in in, uint32_t n, struct hb_rpc_node *ret)
{
	struct mp_item server;

	for (uint32_t i = 0; i < n && ret->n_servers < HB_RPC_SERVERS; i++) {
		char *addr = ret->servers[ret->n_servers];
		struct mp_in at = in;

		(void)mp_skip(&in);
		if (mp_read(&at, true, &server) < 0 || server.kind != MP_MAP)
			continue;
		get_text(&(struct map){ at, server.n }, "RPCAdvertiseAddr", addr, HB_RPC_ADDR_SIZE);
		if (addr[0])
			ret->n_servers++;
	}
}

int
hb_rpc_get_node(const uint8_t *data, size_t len, struct hb_rpc_node *ret)
{
	struct mp_item servers;
	struct mp_in rest;
	struct map map;

	if (open_map(data, len, &map) < 0)
		return -EBADMSG;
	*ret = (struct hb_rpc_node){ .ttl_ns = get_number(&map, "HeartbeatTTL"),
		.n_nodes = get_number(&map, "NumNodes") };
	servers = get_field(&map, "Servers", &rest);
	if (servers.kind == MP_ARRAY)
		get_servers(rest, servers.n, ret);
	return 0;
}

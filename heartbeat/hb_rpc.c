// SPDX-License-Identifier: Apache-2.0
/* hb_rpc.c: Go's net/rpc on msgpack. Runs in: heartbeat. */
#include "heartbeat/hb_rpc.h"

#include <errno.h>
#include <msgpack.h>
#include <string.h>

#include "common/utf8.h"

#define OBJECTS_MAX (1ull << 40) /* of all that the containers so far promise */

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

/* The object in hand has `length` of whatever its marker counts. */
static int
begin_body(struct hb_rpc_scan *s)
{
	uint8_t b = s->marker;

	if ((b >= 0xc7 && b <= 0xc9) || (b >= 0xd4 && b <= 0xd8))
		s->raw = s->length + 1; /* and the kind */
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
	else if (b >= 0xca && b <= 0xd8) /* numbers, then extensions of a fixed size */
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

/* --- heads out --- */

static int
write_buf(void *data, const char *bytes, size_t len)
{
	return hb_buf_add(data, bytes, len);
}

/* Texts as Go writes them: the older form, which knows no difference between text and bytes. */
static int
pack_text(msgpack_packer *p, const char *text)
{
	size_t len = strlen(text);
	int r = msgpack_pack_v4raw(p, len);

	return r < 0 ? r : msgpack_pack_v4raw_body(p, text, len);
}

int
hb_rpc_put_request(struct hb_buf *out, const char *method, uint64_t seq)
{
	msgpack_packer p;

	msgpack_packer_init(&p, out, write_buf);
	return msgpack_pack_map(&p, 2) < 0 || pack_text(&p, "Seq") < 0 ||
		       msgpack_pack_uint64(&p, seq) < 0 || pack_text(&p, "ServiceMethod") < 0 ||
		       pack_text(&p, method) < 0
		   ? -ENOMEM
		   : 0;
}

int
hb_rpc_put_answer(struct hb_buf *out, const char *method, uint64_t seq, const char *error)
{
	msgpack_packer p;

	msgpack_packer_init(&p, out, write_buf);
	if (msgpack_pack_map(&p, 3) < 0 || pack_text(&p, "Error") < 0 || pack_text(&p, error) < 0 ||
	    pack_text(&p, "Seq") < 0 || msgpack_pack_uint64(&p, seq) < 0 ||
	    pack_text(&p, "ServiceMethod") < 0 || pack_text(&p, method) < 0)
		return -ENOMEM;
	return error[0] && msgpack_pack_map(&p, 0) < 0 ? -ENOMEM : 0;
}

int
hb_rpc_put_opener(struct hb_buf *out, const char *method)
{
	msgpack_packer p;

	msgpack_packer_init(&p, out, write_buf);
	return msgpack_pack_map(&p, 1) < 0 || pack_text(&p, "Method") < 0 ||
		       pack_text(&p, method) < 0
		   ? -ENOMEM
		   : 0;
}

int
hb_rpc_put_accept(struct hb_buf *out, const char *error)
{
	msgpack_packer p;

	msgpack_packer_init(&p, out, write_buf);
	return msgpack_pack_map(&p, 1) < 0 || pack_text(&p, "Error") < 0 || pack_text(&p, error) < 0
		   ? -ENOMEM
		   : 0;
}

/* --- objects in --- */

/* Unpacks one map; every byte of it is there, so its size bounds what is allocated. */
static int
unpack_map(const uint8_t *data, size_t len, msgpack_unpacked *ret)
{
	size_t at = 0;

	msgpack_unpacked_init(ret);
	if (msgpack_unpack_next(ret, (const char *)data, len, &at) == MSGPACK_UNPACK_SUCCESS &&
	    at == len && ret->data.type == MSGPACK_OBJECT_MAP)
		return 0;
	msgpack_unpacked_destroy(ret);
	return -EBADMSG;
}

/* The last entry of that name, as Go has it; NULL if there is none. */
static const msgpack_object *
get(const msgpack_object *map, const char *key)
{
	const msgpack_object *found = NULL;
	size_t len = strlen(key);

	for (uint32_t i = 0; i < map->via.map.size; i++) {
		const msgpack_object_kv *kv = &map->via.map.ptr[i];

		if ((kv->key.type == MSGPACK_OBJECT_STR || kv->key.type == MSGPACK_OBJECT_BIN) &&
		    kv->key.via.str.size == len && memcmp(kv->key.via.str.ptr, key, len) == 0)
			found = &kv->val;
	}
	return found;
}

static void
get_text(const msgpack_object *map, const char *key, char *ret, size_t size)
{
	const msgpack_object *o = get(map, key);

	if (o && (o->type == MSGPACK_OBJECT_STR || o->type == MSGPACK_OBJECT_BIN))
		(void)utf8_sanitize(ret, size, o->via.str.ptr, o->via.str.size);
	else
		ret[0] = '\0';
}

/* What is no number, or does not fit, is 0. */
static int64_t
get_number(const msgpack_object *map, const char *key)
{
	const msgpack_object *o = get(map, key);

	if (o && o->type == MSGPACK_OBJECT_POSITIVE_INTEGER)
		return o->via.u64 <= INT64_MAX ? (int64_t)o->via.u64 : 0;
	return o && o->type == MSGPACK_OBJECT_NEGATIVE_INTEGER ? o->via.i64 : 0;
}

int
hb_rpc_get_head(const uint8_t *data, size_t len, struct hb_rpc_head *ret)
{
	const msgpack_object *method, *seq;
	const char *key = "ServiceMethod";
	msgpack_unpacked u;
	int r = unpack_map(data, len, &u);

	if (r < 0)
		return r;
	method = get(&u.data, key);
	if (!method)
		method = get(&u.data, key = "Method");
	if (method && method->type == MSGPACK_OBJECT_STR &&
	    method->via.str.size >= sizeof ret->method)
		r = -EBADMSG;
	get_text(&u.data, key, ret->method, sizeof ret->method);
	get_text(&u.data, "Error", ret->error, sizeof ret->error);
	seq = get(&u.data, "Seq");
	ret->seq = seq && (seq->type == MSGPACK_OBJECT_POSITIVE_INTEGER ||
			      seq->type == MSGPACK_OBJECT_NEGATIVE_INTEGER)
		       ? seq->via.u64
		       : 0;
	msgpack_unpacked_destroy(&u);
	return r;
}

static void
get_servers(const msgpack_object *list, struct hb_rpc_node *ret)
{
	for (uint32_t i = 0; i < list->via.array.size && ret->n_servers < HB_RPC_SERVERS; i++) {
		const msgpack_object *server = &list->via.array.ptr[i];
		char *addr = ret->servers[ret->n_servers];

		if (server->type != MSGPACK_OBJECT_MAP)
			continue;
		get_text(server, "RPCAdvertiseAddr", addr, HB_RPC_ADDR_SIZE);
		if (addr[0])
			ret->n_servers++;
	}
}

int
hb_rpc_get_node(const uint8_t *data, size_t len, struct hb_rpc_node *ret)
{
	const msgpack_object *servers;
	msgpack_unpacked u;
	int r = unpack_map(data, len, &u);

	if (r < 0)
		return r;
	*ret = (struct hb_rpc_node){ .ttl_ns = get_number(&u.data, "HeartbeatTTL"),
		.n_nodes = get_number(&u.data, "NumNodes") };
	servers = get(&u.data, "Servers");
	if (servers && servers->type == MSGPACK_OBJECT_ARRAY)
		get_servers(servers, ret);
	msgpack_unpacked_destroy(&u);
	return 0;
}

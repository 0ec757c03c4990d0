// SPDX-License-Identifier: Apache-2.0
/* rpc_exec_input.c: decodes input for a running command, and frames of the servers' streams. Both
 * carry raw bytes, so they are not decoded by field tables. Runs in: supervisor. */
#include <errno.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/msgpack_read.h"
#include "supervisor/cluster/rpc/rpc_serve.h"
#include "supervisor/cluster/rpc/rpc_stream.h"

#define DEPTH_MAX 2

static bool
is_key(const struct mp_item *key, const char *name)
{
	return key->kind == MP_BYTES && key->len == strlen(name) &&
	       memcmp(key->bytes, name, key->len) == 0;
}

static int64_t
get_number(const struct mp_item *v)
{
	return v->kind == MP_UINT && v->uinteger <= INT32_MAX ? (int64_t)v->uinteger : 0;
}

/* A map of fields, some of which are such maps themselves. */
struct reader {
	struct {
		const char *key;
		bool *seen;
	} maps[2];
	unsigned from; /* the depth at which the fields begin */
	void (*take)(void *obj, const struct mp_item *key, const struct mp_item *v);
	void *obj;
};

static bool *
map_of(const struct reader *rd, const struct mp_item *key)
{
	for (size_t i = 0; i < ELEMENTSOF(rd->maps); i++)
		if (is_key(key, rd->maps[i].key))
			return rd->maps[i].seen;
	return NULL;
}

static int
read_map(struct mp_in *in, unsigned depth, uint32_t n, const struct reader *rd)
{
	for (uint32_t i = 0; i < n; i++) {
		struct mp_item key, value;
		struct mp_in before;
		int r = mp_read(in, true, &key);
		bool *seen;

		before = *in;
		if (r < 0 || (r = mp_read(in, true, &value)) < 0)
			return r;
		seen = value.kind == MP_MAP && depth + 1 < DEPTH_MAX ? map_of(rd, &key) : NULL;
		if (seen) {
			*seen = true;
			r = read_map(in, depth + 1, value.n, rd);
		} else {
			*in = before;
			r = mp_skip(in);
			if (depth >= rd->from)
				rd->take(rd->obj, &key, &value);
		}
		if (r < 0)
			return r;
	}
	return 0;
}

static bool
read_whole(const void *data, size_t len, const struct reader *rd)
{
	struct mp_in in = { .at = data, .end = (const uint8_t *)data + len };
	struct mp_item head;

	return mp_read(&in, true, &head) >= 0 && head.kind == MP_MAP &&
	       read_map(&in, 0, head.n, rd) >= 0;
}

/* Input. */

static void
take_input_value(void *obj, const struct mp_item *key, const struct mp_item *v)
{
	struct rpc_exec_input *in = obj;

	if (is_key(key, "Data") && v->kind == MP_BYTES) {
		in->data = v->bytes;
		in->len = v->len;
	} else if (is_key(key, "Close") && v->kind == MP_BOOL) {
		in->close = v->boolean;
	} else if (is_key(key, "Height")) {
		in->height = get_number(v);
	} else if (is_key(key, "Width")) {
		in->width = get_number(v);
	}
}

int
rpc_exec_input_parse(const void *data, size_t len, struct rpc_exec_input *ret, struct err *e)
{
	struct rpc_exec_input got = { 0 };
	const struct reader rd = { { { "Stdin", &got.has_stdin }, { "TtySize", &got.has_size } }, 1,
		take_input_value, &got };

	if (!read_whole(data, len, &rd))
		return err_say(e, -EBADMSG, "the input of a command is not a map");
	*ret = got;
	return 0;
}

/* Frames. */

static void
take_frame_value(void *obj, const struct mp_item *key, const struct mp_item *v)
{
	struct rpc_frame *f = obj;

	if ((is_key(key, "Payload") || is_key(key, "Data")) && v->kind == MP_BYTES) {
		f->payload = v->bytes;
		f->len = v->len;
	} else if (is_key(key, "Message") && v->kind == MP_BYTES) {
		f->message = v->bytes;
		f->message_len = v->len;
	} else if (is_key(key, "Code")) {
		f->code = get_number(v);
	}
}

/* Error is {Message, Code} and Event is {Data}; either may be nil. */
int
rpc_frame_parse(const void *data, size_t len, struct rpc_frame *ret, struct err *e)
{
	struct rpc_frame got = { 0 };
	const struct reader rd = { { { "Error", &got.failed }, { "Event", &got.event } }, 0,
		take_frame_value, &got };

	if (!read_whole(data, len, &rd))
		return err_say(e, -EBADMSG, "the server sent an invalid frame");
	*ret = got;
	return 0;
}

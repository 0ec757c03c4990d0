// SPDX-License-Identifier: Apache-2.0
/*
 * rpc_exec_input.c: what a server sends to a command that runs, and the frames of its own streams:
 * bytes that are no text, so no field table's. Runs in: supervisor.
 */
#include <errno.h>
#include <string.h>

#include "common/msgpack_read.h"
#include "model/rpc_serve.h"

#define DEPTH_MAX 2

static bool
is_key(const struct mp_item *key, const char *name)
{
	return key->kind == MP_BYTES && key->len == strlen(name) &&
	       memcmp(key->bytes, name, key->len) == 0;
}

static int64_t
number(const struct mp_item *v)
{
	return v->kind == MP_UINT && v->uinteger <= INT32_MAX ? (int64_t)v->uinteger : 0;
}

static void
take_value(struct rpc_exec_input *in, const struct mp_item *key, const struct mp_item *v)
{
	if (is_key(key, "Data") && v->kind == MP_BYTES) {
		in->data = v->bytes;
		in->len = v->len;
	} else if (is_key(key, "Close") && v->kind == MP_BOOL) {
		in->close = v->boolean;
	} else if (is_key(key, "Height")) {
		in->height = number(v);
	} else if (is_key(key, "Width")) {
		in->width = number(v);
	}
}

/* A map of fields: the outer one, with Stdin and TtySize in it, or one of these. */
static int
read_map(struct mp_in *in, unsigned depth, uint32_t n, struct rpc_exec_input *ret)
{
	for (uint32_t i = 0; i < n; i++) {
		struct mp_item key, value;
		struct mp_in before;
		int r = mp_read(in, true, &key);

		before = *in;
		if (r < 0 || (r = mp_read(in, true, &value)) < 0)
			return r;
		if (value.kind == MP_MAP && depth + 1 < DEPTH_MAX &&
		    (is_key(&key, "Stdin") || is_key(&key, "TtySize"))) {
			*(is_key(&key, "Stdin") ? &ret->has_stdin : &ret->has_size) = true;
			r = read_map(in, depth + 1, value.n, ret);
		} else {
			*in = before;
			r = mp_skip(in);
			if (depth > 0)
				take_value(ret, &key, &value);
		}
		if (r < 0)
			return r;
	}
	return 0;
}

int
rpc_exec_input_parse(const void *data, size_t len, struct rpc_exec_input *ret, struct err *e)
{
	struct mp_in in = { .at = data, .end = (const uint8_t *)data + len };
	struct rpc_exec_input got = { 0 };
	struct mp_item head;

	if (mp_read(&in, true, &head) < 0 || head.kind != MP_MAP ||
	    read_map(&in, 0, head.n, &got) < 0)
		return err_say(e, -EBADMSG, "the input of a command is no map");
	*ret = got;
	return 0;
}

/* --- frames --- */

static void
take_frame_value(struct rpc_frame *f, const struct mp_item *key, const struct mp_item *v)
{
	if ((is_key(key, "Payload") || is_key(key, "Data")) && v->kind == MP_BYTES) {
		f->payload = v->bytes;
		f->len = v->len;
	} else if (is_key(key, "Message") && v->kind == MP_BYTES) {
		f->message = v->bytes;
		f->message_len = v->len;
	} else if (is_key(key, "Code")) {
		f->code = number(v);
	}
}

/* Error is {Message, Code}, Event is {Data}; nil where there is none. */
static int
read_frame(struct mp_in *in, unsigned depth, uint32_t n, struct rpc_frame *ret)
{
	for (uint32_t i = 0; i < n; i++) {
		struct mp_item key, value;
		struct mp_in before;
		int r = mp_read(in, true, &key);

		before = *in;
		if (r < 0 || (r = mp_read(in, true, &value)) < 0)
			return r;
		if (value.kind == MP_MAP && depth + 1 < DEPTH_MAX &&
		    (is_key(&key, "Error") || is_key(&key, "Event"))) {
			*(is_key(&key, "Error") ? &ret->failed : &ret->event) = true;
			r = read_frame(in, depth + 1, value.n, ret);
		} else {
			*in = before;
			r = mp_skip(in);
			take_frame_value(ret, &key, &value);
		}
		if (r < 0)
			return r;
	}
	return 0;
}

int
rpc_frame_parse(const void *data, size_t len, struct rpc_frame *ret, struct err *e)
{
	struct mp_in in = { .at = data, .end = (const uint8_t *)data + len };
	struct rpc_frame got = { 0 };
	struct mp_item head;

	if (mp_read(&in, true, &head) < 0 || head.kind != MP_MAP ||
	    read_frame(&in, 0, head.n, &got) < 0)
		return err_say(e, -EBADMSG, "the server sent a frame that is none");
	*ret = got;
	return 0;
}

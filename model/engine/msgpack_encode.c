/* SPDX-License-Identifier: Apache-2.0 */
/* msgpack_encode.c: encodes any struct as msgpack, with the same bytes as Go's codec. Runs in:
 * supervisor. */
#include <msgpack/pack.h>
#include <string.h>

#include "common/base64.h"
#include "common/mem.h"
#include "model/engine/msgpack.h"
#include "model/engine/table.h"
#include "model/engine/walk.h"

static int
append_bytes(void *arg, const char *bytes, size_t len)
{
	text_append(arg, bytes, len);
	return 0;
}

static void
pack_null(void *arg)
{
	(void)msgpack_pack_nil(arg);
}

static void
pack_boolean(void *arg, bool b)
{
	(void)(b ? msgpack_pack_true(arg) : msgpack_pack_false(arg));
}

/* Go encodes a signed type with a signed form, where msgpack_pack_int64() would encode 200 as
 * unsigned. */
static void
pack_integer(void *arg, int64_t n)
{
	if (n >= INT8_MIN && n <= INT8_MAX)
		(void)msgpack_pack_int8(arg, (int8_t)n);
	else if (n >= INT16_MIN && n <= INT16_MAX)
		(void)msgpack_pack_fix_int16(arg, (int16_t)n);
	else if (n >= INT32_MIN && n <= INT32_MAX)
		(void)msgpack_pack_fix_int32(arg, (int32_t)n);
	else
		(void)msgpack_pack_fix_int64(arg, n);
}

static void
pack_uinteger(void *arg, uint64_t n)
{
	(void)msgpack_pack_uint64(arg, n);
}

static void
pack_real(void *arg, double d)
{
	(void)msgpack_pack_double(arg, d);
}

/* Uses the old raw form, without the newer types for short strings and binary data. */
static void
pack_raw(void *arg, const void *bytes, size_t len)
{
	(void)msgpack_pack_v4raw(arg, len);
	(void)msgpack_pack_v4raw_body(arg, bytes, len);
}

static void
pack_string(void *arg, const char *s, size_t len)
{
	pack_raw(arg, s, len);
}

static void
pack_key(void *arg, const char *s, size_t len, bool plain)
{
	pack_raw(arg, s, len);
}

static void
pack_time(void *arg, int64_t ns)
{
	uint8_t bytes[GO_TIME_SIZE];

	go_time_format(ns, bytes);
	pack_raw(arg, bytes, sizeof(bytes));
}

/* Text that is not valid base64 cannot come from a peer; it is encoded as no bytes. */
static void
pack_bytes(void *arg, const char *base64)
{
	cleanup_free uint8_t *bytes = mem_alloc(strlen(base64) + 1);
	size_t len = 0;

	if (base64_decode(base64, bytes, &len) < 0)
		len = 0;
	pack_raw(arg, bytes, len);
}

/* Copies bytes as they were received. */
static void
pack_verbatim(void *arg, const void *data, size_t len)
{
	msgpack_packer *packer = arg;

	text_append(packer->data, data, len);
}

static void
pack_open(void *arg, bool map, size_t n)
{
	(void)(map ? msgpack_pack_map(arg, n) : msgpack_pack_array(arg, n));
}

static void
pack_close(void *arg, bool map)
{
}

static const struct sink packer_sink = {
	.counts = true,
	.null = pack_null,
	.boolean = pack_boolean,
	.integer = pack_integer,
	.uinteger = pack_uinteger,
	.real = pack_real,
	.string = pack_string,
	.bytes = pack_bytes,
	.raw = pack_verbatim,
	.time = pack_time,
	.open = pack_open,
	.close = pack_close,
	.key = pack_key,
};

void
model_to_msgpack(const struct type *type, const void *obj, enum model_flags flags, struct text *t)
{
	msgpack_packer packer;

	msgpack_packer_init(&packer, t, append_bytes);
	model_walk(type, obj, flags, &packer_sink, &packer);
}

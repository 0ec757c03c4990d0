/* SPDX-License-Identifier: Apache-2.0 */
/* model_recorded.h: recorded bodies: decodes and encodes them, and compares the result with the
 * recording. Runs in: unit tests. */
#ifndef DROVER_TESTS_MODEL_RECORDED_H
#define DROVER_TESTS_MODEL_RECORDED_H

#include <fcntl.h>
#include <string.h>

#include "common/fd.h"
#include "common/msgpack_read.h"
#include "model/engine/msgpack.h"
#include "model/engine/table.h"
#include "model/engine/walk.h"
#include "tests/unit/unit.h"

/* Reads one recorded body. */
static inline struct raw
read_fixture(const char *version, const char *name)
{
	cleanup_free char *path = NULL;
	char *bytes = NULL;
	ssize_t n;

	ck_assert_int_gt(asprintf(&path, "%s/nomad-%s/%s.msgpack", FIXTURES, version, name), 0);
	n = fd_read_file(AT_FDCWD, path, 1 << 20, &bytes);
	ck_assert_msg(n > 0, "%s", path);
	return (struct raw){ .data = bytes, .len = (size_t)n };
}

static inline void
decode(const struct type *type, struct raw raw, void *obj)
{
	struct err e = { 0 };

	ck_assert_msg(model_from_msgpack(type, raw.data, raw.len, obj, WIRE_MEMORY_MAX, &e) == 0,
	    "%s: %s", type->name, e.msg);
}

static inline struct raw
encode(const struct type *type, const void *obj, enum model_flags flags)
{
	struct text t = { 0 };

	model_to_msgpack(type, obj, flags, &t);
	return (struct raw){ .data = t.text, .len = t.len };
}

static inline struct raw
from_hex(const char *hex)
{
	uint8_t *bytes = malloc(strlen(hex) / 2 + 1);
	size_t n = 0;

	for (; *hex; hex += 2, n++)
		ck_assert_int_eq(sscanf(hex, "%2hhx", &bytes[n]), 1);
	return (struct raw){ .data = bytes, .len = n };
}

static inline char *
to_hex(struct raw raw)
{
	char *hex = calloc(2 * raw.len + 1, 1);
	size_t i;

	for (i = 0; i < raw.len; i++)
		(void)sprintf(hex + 2 * i, "%02x", ((const uint8_t *)raw.data)[i]);
	return hex;
}

static inline void
drop(struct raw raw)
{
	free((void *)raw.data);
}

/* Keys in recordings that drover's tables do not have, because it does not use them. */
static const char *const not_ours[] = { "Networks", "IdentitySigningKeyID" };

static inline bool
is_not_ours(struct mp_item key)
{
	size_t i;

	for (i = 0; i < ELEMENTSOF(not_ours); i++)
		if (strlen(not_ours[i]) == key.len && !memcmp(not_ours[i], key.bytes, key.len))
			return true;
	return false;
}

static inline bool
is_zero(struct raw raw)
{
	struct mp_in in = { .at = raw.data, .end = (const uint8_t *)raw.data + raw.len };
	struct mp_item item;
	uint32_t i;

	ck_assert_int_eq(mp_read(&in, true, &item), 0);
	switch (item.kind) {
	case MP_NIL:
		return true;
	case MP_BOOL:
		return !item.boolean;
	case MP_UINT:
		return !item.uinteger;
	case MP_REAL:
		return item.real == 0;
	case MP_BYTES:
		return item.len == 0 ||
		       (item.len == 15 && !memcmp(item.bytes, "\1\0\0\0\0\0\0\0\0", 9));
	case MP_MAP:
		for (i = 0; i < item.n; i++) {
			struct raw value;

			ck_assert_int_eq(mp_skip(&in), 0);
			value.data = in.at;
			ck_assert_int_eq(mp_skip(&in), 0);
			value.len = (size_t)(in.at - (const uint8_t *)value.data);
			if (!is_zero(value))
				return false;
		}
		return true;
	default:
		return item.kind == MP_ARRAY && item.n == 0;
	}
}

/* Returns the value of a key in a map whose head has been read; .data is NULL if it is missing. */
static inline struct raw
find_value(struct mp_in in, uint32_t n, struct mp_item want)
{
	struct mp_item key;
	const uint8_t *at;

	while (n--) {
		ck_assert_int_eq(mp_read(&in, true, &key), 0);
		at = in.at;
		ck_assert_int_eq(mp_skip(&in), 0);
		if (key.len == want.len && !memcmp(key.bytes, want.bytes, key.len))
			return (struct raw){ .data = at, .len = (size_t)(in.at - at) };
	}
	return (struct raw){ 0 };
}

static inline void compare(struct raw ours, struct raw theirs, const char *path);

/* Either map may omit keys with zero values; ours may omit keys that no table has. */
static inline void
compare_maps(
    struct mp_in ours, uint32_t n_ours, struct mp_in theirs, uint32_t n_theirs, const char *path)
{
	struct mp_in in;
	struct mp_item key;
	uint32_t i;

	for (i = 0, in = ours; i < n_ours; i++) {
		cleanup_free char *here = NULL;
		struct raw a, b;

		ck_assert_int_eq(mp_read(&in, true, &key), 0);
		a.data = in.at;
		ck_assert_int_eq(mp_skip(&in), 0);
		a.len = (size_t)(in.at - (const uint8_t *)a.data);
		ck_assert_int_gt(asprintf(&here, "%s.%.*s", path, (int)key.len, key.bytes), 0);
		b = find_value(theirs, n_theirs, key);
		if (b.data)
			compare(a, b, here);
		else
			ck_assert_msg(is_zero(a), "%s: they do not have it", here);
	}
	for (i = 0, in = theirs; i < n_theirs; i++) {
		struct raw b;

		ck_assert_int_eq(mp_read(&in, true, &key), 0);
		b.data = in.at;
		ck_assert_int_eq(mp_skip(&in), 0);
		b.len = (size_t)(in.at - (const uint8_t *)b.data);
		ck_assert_msg(find_value(ours, n_ours, key).data || is_zero(b) || is_not_ours(key),
		    "%s: we lost %.*s", path, (int)key.len, key.bytes);
	}
}

/* Only the zone may differ: ours is UTC. */
static inline bool
same_time(struct mp_item a, struct mp_item b)
{
	return a.kind == MP_BYTES && b.kind == MP_BYTES && a.len == GO_TIME_SIZE &&
	       b.len == GO_TIME_SIZE && *a.bytes == 1 && !memcmp(a.bytes, b.bytes, 13);
}

/* Compares byte for byte, except for the order of a map's keys. */
static inline void
compare(struct raw ours, struct raw theirs, const char *path)
{
	struct mp_in a = { .at = ours.data, .end = (const uint8_t *)ours.data + ours.len };
	struct mp_in b = { .at = theirs.data, .end = (const uint8_t *)theirs.data + theirs.len };
	struct mp_item x, y;
	uint32_t i;

	ck_assert_int_eq(mp_read(&a, true, &x), 0);
	ck_assert_int_eq(mp_read(&b, true, &y), 0);
	if (x.kind == MP_MAP && y.kind == MP_MAP)
		return compare_maps(a, x.n, b, y.n, path);
	if (x.kind != MP_ARRAY || y.kind != MP_ARRAY || x.n != y.n) {
		cleanup_free char *hex_a = to_hex(ours), *hex_b = to_hex(theirs);

		/* Go encodes an empty string behind a pointer as nil. */
		ck_assert_msg(same_time(x, y) || !strcmp(hex_a, hex_b) ||
				  (!strcmp(hex_a, "a0") && y.kind == MP_NIL),
		    "%s: ours %s, theirs %s", path, hex_a, hex_b);
		return;
	}
	for (i = 0; i < x.n; i++) {
		const uint8_t *start_a = a.at, *start_b = b.at;

		ck_assert_int_eq(mp_skip(&a), 0);
		ck_assert_int_eq(mp_skip(&b), 0);
		compare((struct raw){ .data = start_a, .len = (size_t)(a.at - start_a) },
		    (struct raw){ .data = start_b, .len = (size_t)(b.at - start_b) }, path);
	}
}

#endif

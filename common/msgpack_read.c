/* SPDX-License-Identifier: Apache-2.0 */
/* msgpack_read.c: parses the heads of msgpack values. Runs in: supervisor, heartbeat. */
#include "common/msgpack_read.h"

#include <errno.h>
#include <string.h>

/* The rest of a head after its first byte. */
struct form {
	enum mp_kind kind;
	uint8_t size; /* bytes of the number that follows: a value or a length */
	bool is_signed;
};

/* For the first bytes c0 to df. c1 is not valid msgpack. */
static const struct form forms[32] = {
	[0x00] = { MP_NIL, 0, false },
	[0x02] = { MP_BOOL, 0, false },
	[0x03] = { MP_BOOL, 0, false },
	[0x04] = { MP_BYTES, 1, false },
	[0x05] = { MP_BYTES, 2, false },
	[0x06] = { MP_BYTES, 4, false },
	[0x07] = { MP_EXT, 1, false },
	[0x08] = { MP_EXT, 2, false },
	[0x09] = { MP_EXT, 4, false },
	[0x0a] = { MP_REAL, 4, false },
	[0x0b] = { MP_REAL, 8, false },
	[0x0c] = { MP_UINT, 1, false },
	[0x0d] = { MP_UINT, 2, false },
	[0x0e] = { MP_UINT, 4, false },
	[0x0f] = { MP_UINT, 8, false },
	[0x10] = { MP_UINT, 1, true },
	[0x11] = { MP_UINT, 2, true },
	[0x12] = { MP_UINT, 4, true },
	[0x13] = { MP_UINT, 8, true },
	[0x14] = { MP_EXT, 0, false },
	[0x15] = { MP_EXT, 0, false },
	[0x16] = { MP_EXT, 0, false },
	[0x17] = { MP_EXT, 0, false },
	[0x18] = { MP_EXT, 0, false },
	[0x19] = { MP_BYTES, 1, false },
	[0x1a] = { MP_BYTES, 2, false },
	[0x1b] = { MP_BYTES, 4, false },
	[0x1c] = { MP_ARRAY, 2, false },
	[0x1d] = { MP_ARRAY, 4, false },
	[0x1e] = { MP_MAP, 2, false },
	[0x1f] = { MP_MAP, 4, false },
};

static uint64_t
big_endian(const uint8_t *p, size_t n)
{
	uint64_t v = 0;

	while (n--)
		v = v << 8 | *p++;
	return v;
}

static void
set_integer(struct mp_item *item, uint64_t raw, const struct form *f)
{
	unsigned bits = 8u * f->size;
	int64_t n = (int64_t)(raw << (64 - bits)) >> (64 - bits);

	item->kind = MP_UINT;
	item->uinteger = raw;
	if (!f->is_signed || n >= 0)
		return;
	item->kind = MP_INT;
	item->integer = n;
}

static double
real_of(uint64_t raw, size_t size)
{
	uint32_t small = (uint32_t)raw;
	float f;
	double d;

	if (size == sizeof(f)) {
		memcpy(&f, &small, sizeof(f));
		return f;
	}
	memcpy(&d, &raw, sizeof(d));
	return d;
}

/* Parses a head that consists of its first byte; false for any other. */
static bool
read_fixed(uint8_t first, struct mp_item *item)
{
	*item = (struct mp_item){ .kind = MP_UINT, .uinteger = first };
	if (first < 0x80)
		return true;
	if (first >= 0xe0)
		*item = (struct mp_item){ .kind = MP_INT, .integer = (int8_t)first };
	else if (first < 0x90)
		*item = (struct mp_item){ .kind = MP_MAP, .n = first & 0x0f };
	else if (first < 0xa0)
		*item = (struct mp_item){ .kind = MP_ARRAY, .n = first & 0x0f };
	else if (first < 0xc0)
		*item = (struct mp_item){ .kind = MP_BYTES, .len = first & 0x1f };
	else
		return false;
	return true;
}

/* left: bytes after the first one. Returns how many of them belong to the head, or -errno. */
static int
read_number(uint8_t first, const uint8_t *p, size_t left, struct mp_item *item)
{
	const struct form *f = &forms[first & 0x1f];
	uint64_t raw;

	if (first == 0xc1)
		return -EBADMSG;
	if (left < f->size)
		return -EAGAIN;
	raw = big_endian(p, f->size);
	*item = (struct mp_item){ .kind = f->kind };
	if (f->kind == MP_UINT)
		set_integer(item, raw, f);
	else if (f->kind == MP_REAL)
		item->real = real_of(raw, f->size);
	else if (f->kind == MP_BOOL)
		item->boolean = first == 0xc3;
	else if (f->kind == MP_BYTES || (f->kind == MP_EXT && f->size))
		item->len = (uint32_t)raw;
	else if (f->kind == MP_EXT)
		item->len = 1u << (first - 0xd4);
	else
		item->n = (uint32_t)raw;
	return f->size;
}

/* Returns how many values follow the head of a container. */
static uint64_t
follows(const struct mp_item *item)
{
	return item->kind == MP_MAP ? 2 * (uint64_t)item->n : item->kind == MP_ARRAY ? item->n : 0;
}

int
mp_read(struct mp_in *in, bool whole, struct mp_item *ret)
{
	const uint8_t *p = in->at;
	struct mp_item item;
	int n;

	if (p == in->end)
		return -EAGAIN;
	if (!read_fixed(*p, &item)) {
		n = read_number(*p, p + 1, (size_t)(in->end - p - 1), &item);
		if (n < 0)
			return n;
		p += n;
	}
	p++;
	if (item.kind == MP_BYTES || item.kind == MP_EXT) {
		if (item.kind == MP_EXT && p == in->end)
			return -EAGAIN;
		p += item.kind == MP_EXT; /* the byte with its type */
		if ((size_t)(in->end - p) < item.len)
			return -EAGAIN;
		item.bytes = (const char *)p;
		p += item.len;
	}
	if (whole && follows(&item) > (uint64_t)(in->end - p))
		return -EBADMSG;
	in->at = p;
	*ret = item;
	return 0;
}

int
mp_skip(struct mp_in *in)
{
	struct mp_in at = *in;
	struct mp_item item;
	uint64_t left = 1;
	int r;

	for (; left; left--) {
		r = mp_read(&at, true, &item);
		if (r < 0)
			return r;
		left += follows(&item);
	}
	*in = at;
	return 0;
}

int
mp_scan(struct mp_scan *scan, const void *data, size_t len)
{
	struct mp_in in = { .at = (const uint8_t *)data + scan->at,
		.end = (const uint8_t *)data + len };
	struct mp_item item;
	int r = 0;

	if (scan->at == 0)
		scan->left = 1;
	for (; scan->left && r == 0; scan->at = (size_t)(in.at - (const uint8_t *)data)) {
		r = mp_read(&in, false, &item);
		if (r == 0)
			scan->left += follows(&item) - 1;
	}
	return r == -EAGAIN ? 0 : r < 0 ? r : 1;
}

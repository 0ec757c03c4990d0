// SPDX-License-Identifier: Apache-2.0
/* payload.c: encodes and decodes a dispatched job's payload in Snappy's format. Runs in:
 * supervisor. */
#include "model/payload.h"

#include <errno.h>
#include <string.h>

#include "common/id.h"

/* The two lowest bits of an element's first byte. */
enum { LITERAL, COPY_1, COPY_2, COPY_4 };

#define LITERAL_2 61 /* a literal whose length is in the next two bytes */

size_t
payload_pack(const void *data, size_t len, uint8_t *ret)
{
	size_t n = 0;

	for (size_t rest = len; n == 0 || rest; rest >>= 7)
		ret[n++] = (uint8_t)((rest & 0x7f) | (rest > 0x7f ? 0x80 : 0));
	if (len == 0)
		return n;
	ret[n++] = LITERAL_2 << 2 | LITERAL;
	ret[n++] = (uint8_t)(len - 1);
	ret[n++] = (uint8_t)((len - 1) >> 8);
	memcpy(ret + n, data, len);
	return n + len;
}

struct reader {
	const uint8_t *p;
	size_t left;
	uint8_t *out;
	size_t len, size; /* bytes written so far; bytes to write */
};

/* Reads n bytes as a little-endian number. */
static int
take_number(struct reader *r, unsigned n, size_t *ret)
{
	size_t v = 0;

	if (r->left < n)
		return -EBADMSG;
	for (unsigned i = 0; i < n; i++)
		v |= (size_t)r->p[i] << 8 * i;
	r->p += n;
	r->left -= n;
	*ret = v;
	return 0;
}

static int
take_literal(struct reader *r, unsigned tag)
{
	size_t len = tag >> 2;

	if (len >= 60 && take_number(r, (unsigned)len - 59, &len) < 0)
		return -EBADMSG;
	len++;
	if (len > r->left || len > r->size - r->len)
		return -EBADMSG;
	memcpy(r->out + r->len, r->p, len);
	r->len += len;
	r->p += len;
	r->left -= len;
	return 0;
}

/* Copies byte by byte, because the source may overlap the bytes that are written. */
static int
take_copy(struct reader *r, unsigned tag)
{
	size_t len = (tag >> 2) + 1, offset;

	if (take_number(r, (tag & 3) == COPY_4 ? 4 : tag & 3, &offset) < 0)
		return -EBADMSG;
	if ((tag & 3) == COPY_1) {
		len = (tag >> 2 & 7) + 4;
		offset |= (size_t)(tag >> 5) << 8;
	}
	if (offset == 0 || offset > r->len || len > r->size - r->len)
		return -EBADMSG;
	for (; len > 0; len--, r->len++)
		r->out[r->len] = r->out[r->len - offset];
	return 0;
}

static int
take_size(struct reader *r)
{
	size_t byte;

	for (unsigned shift = 0; shift < 32; shift += 7) {
		if (take_number(r, 1, &byte) < 0)
			return -EBADMSG;
		r->size |= (byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return r->size > PAYLOAD_MAX ? -E2BIG : 0;
	}
	return -EBADMSG;
}

int
payload_unpack(const void *packed, size_t len, uint8_t ret[PAYLOAD_MAX], size_t *ret_len)
{
	struct reader r = { .p = packed, .left = len, .out = ret };
	int e = take_size(&r);
	size_t tag;

	while (e == 0 && r.left > 0) {
		e = take_number(&r, 1, &tag);
		if (e == 0)
			e = (tag & 3) == LITERAL ? take_literal(&r, (unsigned)tag)
						 : take_copy(&r, (unsigned)tag);
	}
	if (e == 0 && r.len != r.size)
		e = -EBADMSG;
	if (e == 0)
		*ret_len = r.len;
	return e;
}

int
payload_file_check(const char *file, struct err *e)
{
	if (name_is_path(file))
		return 0;
	return err_say(e, -EINVAL,
	    "dispatch_payload: \"%.140s\" cannot be a file in the task's directory local: each of "
	    "its parts must have 1 to %d letters, digits, '.', '_' and '-' and no leading dot",
	    file, NAME_BYTES_MAX);
}

// SPDX-License-Identifier: Apache-2.0
/* sha1.c: SHA-1. Runs in: supervisor, cli. */
#include "common/sha1.h"

#include <string.h>

static uint32_t
rotate(uint32_t x, unsigned n)
{
	return x << n | x >> (32 - n);
}

static void
take_block(struct sha1 *s)
{
	uint32_t w[80], a = s->h[0], b = s->h[1], c = s->h[2], d = s->h[3], e = s->h[4];

	for (unsigned i = 0; i < 16; i++)
		w[i] = (uint32_t)s->block[4 * i] << 24 | (uint32_t)s->block[4 * i + 1] << 16 |
		       (uint32_t)s->block[4 * i + 2] << 8 | s->block[4 * i + 3];
	for (unsigned i = 16; i < 80; i++)
		w[i] = rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
	for (unsigned i = 0; i < 80; i++) {
		static const uint32_t k[] = { 0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6 };
		uint32_t f = i < 20   ? (b & c) | (~b & d)
			     : i < 40 ? b ^ c ^ d
			     : i < 60 ? (b & c) | (b & d) | (c & d)
				      : b ^ c ^ d;
		uint32_t t = rotate(a, 5) + f + e + k[i / 20] + w[i];

		e = d;
		d = c;
		c = rotate(b, 30);
		b = a;
		a = t;
	}
	s->h[0] += a;
	s->h[1] += b;
	s->h[2] += c;
	s->h[3] += d;
	s->h[4] += e;
}

void
sha1_init(struct sha1 *s)
{
	*s = (struct sha1){ .h = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0 } };
}

void
sha1_add(struct sha1 *s, const void *data, size_t len)
{
	const uint8_t *b = data;

	for (size_t i = 0; i < len; i++) {
		s->block[s->len++ % SHA1_BLOCK] = b[i];
		if (s->len % SHA1_BLOCK == 0)
			take_block(s);
	}
}

void
sha1_end(struct sha1 *s, uint8_t ret[SHA1_SIZE])
{
	static const uint8_t zeros[SHA1_BLOCK];
	uint64_t bits = s->len * 8;
	uint8_t one = 0x80, length[8];

	sha1_add(s, &one, 1);
	sha1_add(s, zeros, (SHA1_BLOCK + 56 - s->len % SHA1_BLOCK) % SHA1_BLOCK);
	for (unsigned i = 0; i < 8; i++)
		length[i] = (uint8_t)(bits >> 8 * (7 - i));
	sha1_add(s, length, sizeof length);
	for (unsigned i = 0; i < SHA1_SIZE; i++)
		ret[i] = (uint8_t)(s->h[i / 4] >> 8 * (3 - i % 4));
}

/* SPDX-License-Identifier: Apache-2.0 */
/* base64.c: encodes and decodes base64. Runs in: supervisor, cli. */
#include "common/base64.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

size_t
base64_encode(const void *data, size_t len, char *ret)
{
	const uint8_t *p = data;
	char *out = ret;
	uint32_t bits;
	size_t n;

	for (; len; len -= n, p += n) {
		n = len < 3 ? len : 3;
		bits = (uint32_t)p[0] << 16 | (n > 1 ? p[1] << 8 : 0) | (n > 2 ? p[2] : 0);
		*out++ = digits[bits >> 18];
		*out++ = digits[bits >> 12 & 63];
		*out++ = n > 1 ? digits[bits >> 6 & 63] : '=';
		*out++ = n > 2 ? digits[bits & 63] : '=';
	}
	*out = '\0';
	return (size_t)(out - ret);
}

size_t
base64url_encode(const void *data, size_t len, char *ret)
{
	size_t n = base64_encode(data, len, ret);

	while (n > 0 && ret[n - 1] == '=')
		ret[--n] = '\0';
	for (char *p = ret; *p; p++)
		*p = (char)(*p == '+' ? '-' : *p == '/' ? '_' : *p);
	return n;
}

/* Returns the value of four base64 digits, of which the last `padding` are '='; negative if a
 * character is not a digit. */
static int32_t
decode_four(const char *p, int padding)
{
	const char *digit;
	int32_t bits = 0;
	int i;

	for (i = 0; i < 4; i++) {
		digit = i < 4 - padding ? strchr(digits, p[i]) : digits;
		if (!digit || !p[i])
			return -EINVAL;
		bits = bits << 6 | (int32_t)(digit - digits);
	}
	return bits;
}

int
base64_decode(const char *text, void *ret, size_t *ret_len)
{
	size_t left = strlen(text);
	uint8_t *out = ret;
	int padding, i;
	int32_t bits;

	if (left % 4)
		return -EINVAL;
	for (; left; left -= 4, text += 4) {
		padding = left > 4 || text[3] != '=' ? 0 : text[2] != '=' ? 1 : 2;
		bits = decode_four(text, padding);
		if (bits < 0 || bits & ((1 << 8 * padding) - 1))
			return -EINVAL;
		for (i = 0; i < 3 - padding; i++)
			*out++ = (uint8_t)(bits >> (16 - 8 * i));
	}
	*ret_len = (size_t)(out - (uint8_t *)ret);
	return 0;
}

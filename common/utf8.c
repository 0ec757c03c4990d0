// SPDX-License-Identifier: Apache-2.0
/* utf8.c: checks and sanitizes text from outside. Runs in: csi-helper. */
#include "common/utf8.h"

#include <stdint.h>
#include <string.h>

size_t
utf8_char_length(const void *data, size_t left)
{
	const uint8_t *s = data;
	uint8_t low = 0x80, high = 0xbf;
	size_t n;

	if (left == 0)
		return 0;
	if (s[0] < 0x80)
		return 1;
	n = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
	if (s[0] < 0xc2 || s[0] > 0xf4 || left < n)
		return 0;
	/* The second byte shows overlong forms, surrogates, and characters beyond U+10FFFF. */
	if (s[0] == 0xe0)
		low = 0xa0;
	else if (s[0] == 0xed)
		high = 0x9f;
	else if (s[0] == 0xf0)
		low = 0x90;
	else if (s[0] == 0xf4)
		high = 0x8f;
	if (s[1] < low || s[1] > high)
		return 0;
	for (size_t i = 2; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	return n;
}

bool
utf8_is_text(const void *data, size_t len)
{
	const uint8_t *s = data;

	while (len > 0) {
		size_t n = utf8_char_length(s, len);

		if (n == 0 || s[0] == 0)
			return false;
		s += n;
		len -= n;
	}
	return true;
}

/* Returns whether the character is C0, DEL or C1: terminals interpret them. */
static bool
is_control(const uint8_t *s, size_t n)
{
	return (n == 1 && (s[0] < ' ' || s[0] == 0x7f)) || (n == 2 && s[0] == 0xc2 && s[1] < 0xa0);
}

size_t
utf8_sanitize(char *ret, size_t size, const void *data, size_t len)
{
	const uint8_t *s = data, *end = s + len;
	size_t at = 0;

	while (s < end) {
		size_t n = utf8_char_length(s, (size_t)(end - s)), out = n;
		const void *from = s;

		if (n == 0) {
			from = "?";
			n = out = 1;
		} else if (is_control(s, n)) {
			from = " ";
			out = 1;
		}
		if (out >= size - at)
			break;
		memcpy(ret + at, from, out);
		at += out;
		s += n;
	}
	ret[at] = '\0';
	return at;
}

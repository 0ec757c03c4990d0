/* SPDX-License-Identifier: Apache-2.0 */
/* go_base64.c: base64 and base32. Runs in: template-renderer. */
#include "template/go_base64.h"

#include <string.h>

static const struct {
	const char *letters;
	unsigned bits, per_group;
} alphabets[] = {
	[GO_BASE64] = { "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", 6, 4 },
	[GO_BASE64_URL] = { "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", 6,
	    4 },
	[GO_BASE32] = { "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 5, 8 },
};

/* Writes each group of bytes as letters of `bits` bits, and fills the last group with "=". */
struct go_value
go_encode_base64(struct arena *a, struct go_value s, enum go_base64 kind)
{
	const char *alphabet = alphabets[kind].letters;
	struct text t = { .arena = a };
	unsigned bits = alphabets[kind].bits, per_group = alphabets[kind].per_group, have = 0;
	uint32_t value = 0;

	text_add(&t, "");
	arena_count_bytes(a, s.len);
	for (size_t i = 0; i < s.len; i++) {
		value = value << 8 | (unsigned char)s.s[i];
		for (have += 8; have >= bits; have -= bits)
			text_bytes(&t, &alphabet[value >> (have - bits) & ((1U << bits) - 1)], 1);
	}
	if (have > 0)
		text_bytes(&t, &alphabet[value << (bits - have) & ((1U << bits) - 1)], 1);
	while (t.len % per_group)
		text_add(&t, "=");
	return go_text_value(&t);
}

/* The sentence about the byte at which a text is wrong. */
static const char *
illegal(struct arena *a, unsigned bits, size_t at)
{
	return arena_printf(
	    a, "illegal base%s data at input byte %zu", bits == 6 ? "64" : "32", at);
}

/* Newlines are skipped. */
const char *
go_decode_base64(struct text *t, struct go_value s, enum go_base64 kind)
{
	const char *alphabet = alphabets[kind].letters;
	unsigned bits = alphabets[kind].bits, per_group = alphabets[kind].per_group;
	unsigned have = 0, in_group = 0;
	uint32_t value = 0;
	size_t i = 0;

	text_add(t, "");
	arena_count_bytes(t->arena, s.len);
	for (; i < s.len; i++) {
		const char *letter = s.s[i] ? strchr(alphabet, s.s[i]) : NULL;

		if (s.s[i] == '\n' || s.s[i] == '\r')
			continue;
		if (!letter)
			break;
		value = value << bits | (uint32_t)(letter - alphabet);
		in_group = (in_group + 1) % per_group;
		have += bits;
		if (have >= 8) {
			have -= 8;
			text_bytes(t, (char[]){ (char)(value >> have) }, 1);
		}
	}
	if (i == s.len)
		return in_group == 0 ? NULL : illegal(t->arena, bits, s.len - in_group);
	if (s.s[i] != '=' || in_group < 2)
		return illegal(t->arena, bits, i);
	for (unsigned missing = per_group - in_group; missing > 0; i++) {
		if (i == s.len)
			return illegal(t->arena, bits, s.len);
		if (s.s[i] == '\n' || s.s[i] == '\r')
			continue;
		if (s.s[i] != '=')
			return illegal(t->arena, bits, i);
		missing--;
	}
	for (; i < s.len; i++)
		if (s.s[i] != '\n' && s.s[i] != '\r')
			return illegal(t->arena, bits, i);
	return NULL;
}

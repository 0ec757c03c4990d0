/* SPDX-License-Identifier: Apache-2.0 */
/* go_strings.c: cuts, splits and maps texts. Runs in: template-renderer. */
#include "template/go_strings.h"

#include <string.h>
#include <unicase.h>

#include "template/go_print.h"
#include "template/go_text.h"

static size_t
last_char(const char *s, size_t len, uint32_t *ret)
{
	size_t n = 1, length;

	while (n < len && n < 4 && ((unsigned char)s[len - n] & 0xc0) == 0x80)
		n++;
	*ret = go_char(s + len - n, n, &length);
	if (length == n)
		return n;
	*ret = GO_BAD_CHAR;
	return 1;
}

static bool
in_set(uint32_t ch, struct go_value set)
{
	size_t n;

	for (size_t i = 0; i < set.len; i += n)
		if (go_char(set.s + i, set.len - i, &n) == ch)
			return true;
	return false;
}

/* set is NULL: spaces. */
static struct go_value
trim(struct go_value s, const struct go_value *set)
{
	const char *p = s.s;
	size_t len = s.len, n;
	uint32_t ch;

	for (; len > 0; p += n, len -= n) {
		ch = go_char(p, len, &n);
		if (set ? !in_set(ch, *set) : !go_is_space(ch))
			break;
	}
	for (; len > 0; len -= n) {
		n = last_char(p, len, &ch);
		if (set ? !in_set(ch, *set) : !go_is_space(ch))
			break;
	}
	return go_string(p, len);
}

struct go_value
go_trim_space(struct go_value s)
{
	return trim(s, NULL);
}

struct go_value
go_trim(struct go_value s, struct go_value set)
{
	return set.len == 0 ? s : trim(s, &set);
}

bool
go_has_prefix(struct go_value s, struct go_value prefix)
{
	return s.len >= prefix.len && memcmp(s.s, prefix.s, prefix.len) == 0;
}

bool
go_has_suffix(struct go_value s, struct go_value suffix)
{
	return s.len >= suffix.len && memcmp(s.s + s.len - suffix.len, suffix.s, suffix.len) == 0;
}

struct go_value
go_trim_prefix(struct go_value s, struct go_value prefix)
{
	return go_has_prefix(s, prefix) ? go_string(s.s + prefix.len, s.len - prefix.len) : s;
}

struct go_value
go_trim_suffix(struct go_value s, struct go_value suffix)
{
	return go_has_suffix(s, suffix) ? go_string(s.s, s.len - suffix.len) : s;
}

bool
go_contains(struct arena *a, struct go_value s, struct go_value part)
{
	arena_count_bytes(a, s.len);
	return memmem(s.s, s.len, part.s, part.len) != NULL;
}

struct go_value
go_split(struct arena *a, struct go_value s, struct go_value sep, int64_t most)
{
	struct go_value parts = go_slice(a, &go_type_strings, 0);
	const char *at = s.s, *end = s.s + s.len, *next;
	size_t n;

	parts.list.room = 0;
	arena_count_bytes(a, s.len);
	if (most == 0)
		return (struct go_value){ .type = &go_type_strings };
	while (most < 0 || (int64_t)parts.list.n + 1 < most) {
		if (sep.len == 0) {
			if (at == end)
				break;
			(void)go_char(at, (size_t)(end - at), &n);
			next = at + n;
			if (next == end)
				break;
		} else {
			next = memmem(at, (size_t)(end - at), sep.s, sep.len);
			if (!next)
				break;
		}
		parts = go_append(a, parts, go_string(at, (size_t)(next - at)));
		at = next + sep.len;
	}
	if (sep.len > 0 || at < end)
		parts = go_append(a, parts, go_string(at, (size_t)(end - at)));
	return parts;
}

struct go_value
go_join(struct arena *a, struct go_value strings, struct go_value sep)
{
	struct text t = { .arena = a };

	for (size_t i = 0; i < strings.list.n; i++) {
		arena_step(a, 1);
		if (i > 0)
			text_bytes(&t, sep.s, sep.len);
		text_bytes(&t, strings.list.items[i].s, strings.list.items[i].len);
	}
	return go_text_value(&t);
}

struct go_value
go_replace(struct arena *a, struct go_value s, struct go_value from, struct go_value to)
{
	struct text t = { .arena = a };
	const char *at = s.s, *end = s.s + s.len, *next;
	size_t n;

	arena_count_bytes(a, s.len);
	if (from.len == 0) {
		for (; at < end; at += n) {
			(void)go_char(at, (size_t)(end - at), &n);
			text_bytes(&t, to.s, to.len);
			text_bytes(&t, at, n);
		}
		text_bytes(&t, to.s, to.len);
		return go_text_value(&t);
	}
	for (; (next = memmem(at, (size_t)(end - at), from.s, from.len)); at = next + from.len) {
		arena_step(a, 1);
		text_bytes(&t, at, (size_t)(next - at));
		text_bytes(&t, to.s, to.len);
	}
	text_bytes(&t, at, (size_t)(end - at));
	return go_text_value(&t);
}

struct go_value
go_map_chars(struct arena *a, struct go_value s, uint32_t (*map)(uint32_t))
{
	struct text t = { .arena = a };
	size_t n;

	arena_count_bytes(a, s.len);
	for (size_t i = 0; i < s.len; i += n)
		go_add_char(&t, map(go_char(s.s + i, s.len - i, &n)));
	return go_text_value(&t);
}

uint32_t
go_upper_char(uint32_t ch)
{
	return uc_toupper(ch);
}

uint32_t
go_lower_char(uint32_t ch)
{
	return uc_tolower(ch);
}

uint32_t
go_title_char(uint32_t ch)
{
	return uc_totitle(ch);
}

struct go_value
go_upper(struct arena *a, struct go_value s)
{
	return go_map_chars(a, s, go_upper_char);
}

struct go_value
go_lower(struct arena *a, struct go_value s)
{
	return go_map_chars(a, s, go_lower_char);
}

struct go_value
go_to_text(struct arena *a, struct go_value v)
{
	struct text t = { .arena = a };

	if (v.type == &go_type_string)
		return v;
	go_print_value(&t, v);
	return go_text_value(&t);
}

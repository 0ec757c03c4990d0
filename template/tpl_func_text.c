/* SPDX-License-Identifier: Apache-2.0 */
/* tpl_func_text.c: functions about texts. Runs in: template-renderer. */
#include <stdlib.h>
#include <string.h>
#include <unicase.h>
#include <unictype.h>
#include <unistr.h>
#include <uniwbrk.h>

#include "template/go_strings.h"
#include "template/go_text.h"
#include "template/tpl_functions.h"

struct go_value
tpl_fn_join(struct go_call *c)
{
	return go_join(c->arena, c->args[1], c->args[0]);
}

struct go_value
tpl_fn_split(struct go_call *c)
{
	struct go_value s = go_trim_space(c->args[1]);

	return s.len == 0 ? go_slice(c->arena, &go_type_strings, 0)
			  : go_split(c->arena, s, c->args[0], -1);
}

/* What has no second separator is left out. */
struct go_value
tpl_fn_split_to_map(struct go_call *c)
{
	struct go_value s = go_trim_space(c->args[2]), sep = c->args[1];
	struct go_value map = go_map(c->arena, &go_type_string_map), parts;

	if (s.len == 0)
		return map;
	parts = go_split(c->arena, s, c->args[0], -1);
	for (size_t i = 0; i < parts.list.n; i++) {
		struct go_value part = parts.list.items[i];
		const char *at = memmem(part.s, part.len, sep.s, sep.len);

		if (at)
			go_map_set(c->arena, map, go_string(part.s, (size_t)(at - part.s)),
			    go_string(at + sep.len, part.len - (size_t)(at - part.s) - sep.len));
	}
	return map;
}

struct go_value
tpl_fn_trim(struct go_call *c)
{
	arena_count_bytes(c->arena, c->args[1].len * (1 + c->args[0].len));
	return go_trim(c->args[1], c->args[0]);
}

struct go_value
tpl_fn_trim_prefix(struct go_call *c)
{
	return go_trim_prefix(c->args[1], c->args[0]);
}

struct go_value
tpl_fn_trim_suffix(struct go_call *c)
{
	return go_trim_suffix(c->args[1], c->args[0]);
}

struct go_value
tpl_fn_trim_space(struct go_call *c)
{
	return go_trim_space(c->args[0]);
}

struct go_value
tpl_fn_replace_all(struct go_call *c)
{
	return go_replace(c->arena, c->args[2], c->args[0], c->args[1]);
}

struct go_value
tpl_fn_upper(struct go_call *c)
{
	return go_upper(c->arena, c->args[0]);
}

struct go_value
tpl_fn_lower(struct go_call *c)
{
	return go_lower(c->arena, c->args[0]);
}

/* The letter at s as a title has it, which may be more than one: "ß" becomes "Ss". */
static void
add_title(struct text *t, const char *s, size_t n)
{
	uint8_t buf[16];
	size_t len = sizeof buf;
	uint8_t *title = u8_totitle((const uint8_t *)s, n, NULL, NULL, buf, &len);

	if (title)
		text_bytes(t, (const char *)title, len);
	if (title != buf)
		free(title);
}

/* Where words begin. Bytes that are no UTF-8 are in words. */
static char *
find_words(struct go_call *c, struct go_value s)
{
	char *breaks = arena_alloc(c->arena, s.len), *text = arena_strndup(c->arena, s.s, s.len);
	size_t n;

	for (size_t i = 0; i < s.len; i += n)
		if (go_char(text + i, s.len - i, &n) == GO_BAD_CHAR && n == 1)
			text[i] = ' ';
	arena_count_bytes(c->arena, 4 * s.len);
	u8_wordbreaks((const uint8_t *)text, s.len, breaks);
	return breaks;
}

/* The first cased letter of each word. */
struct go_value
tpl_fn_title(struct go_call *c)
{
	struct go_value s = c->args[0];
	struct text t = { .arena = c->arena };
	char *breaks = find_words(c, s);
	bool seen = false;
	size_t n;

	text_add(&t, "");
	for (size_t i = 0; i < s.len; i += n) {
		uint32_t ch = go_char(s.s + i, s.len - i, &n);

		seen &= !breaks[i];
		if (!seen && uc_is_property(ch, UC_PROPERTY_CASED)) {
			add_title(&t, s.s + i, n);
			seen = true;
		} else {
			text_bytes(&t, s.s + i, n);
		}
	}
	return go_text_value(&t);
}

/* Spaces before each line that is not empty. */
struct go_value
tpl_fn_indent(struct go_call *c)
{
	struct go_value s = c->args[1];
	struct text t = { .arena = c->arena };
	bool start = true;

	if (c->args[0].i < 0)
		go_call_fail(c, "indent value must be a positive integer");
	if (c->args[0].i > 1000000)
		go_call_fail(c, "the indentation is larger than 1000000");
	text_add(&t, "");
	arena_count_bytes(c->arena, s.len);
	for (size_t i = 0; i < s.len; i++) {
		if (start && s.s[i] != '\n') {
			arena_count_bytes(c->arena, (size_t)c->args[0].i);
			for (int64_t k = 0; k < c->args[0].i; k++)
				text_add(&t, " ");
		}
		text_bytes(&t, s.s + i, 1);
		start = s.s[i] == '\n';
	}
	return go_text_value(&t);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* tpl_sprig_text.c: sprig's functions about texts and paths. Runs in: template-renderer. */
#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <unictype.h>

#include "template/go_print.h"
#include "template/go_strings.h"
#include "template/go_text.h"
#include "template/go_time.h"
#include "template/tpl_sprig.h"

#define REPEAT_MAX 100000000

struct go_value
tpl_fn_sprig_hello(struct go_call *c)
{
	return go_text("Hello!");
}

struct go_value
tpl_fn_sprig_trim_all(struct go_call *c)
{
	return go_trim(c->args[1], c->args[0]);
}

struct go_value
tpl_fn_sprig_contains(struct go_call *c)
{
	return go_bool(go_contains(c->arena, c->args[1], c->args[0]));
}

struct go_value
tpl_fn_sprig_has_prefix(struct go_call *c)
{
	return go_bool(go_has_prefix(c->args[1], c->args[0]));
}

struct go_value
tpl_fn_sprig_has_suffix(struct go_call *c)
{
	return go_bool(go_has_suffix(c->args[1], c->args[0]));
}

struct go_value
tpl_fn_sprig_replace(struct go_call *c)
{
	return go_replace(c->arena, c->args[2], c->args[0], c->args[1]);
}

struct go_value
tpl_fn_sprig_repeat(struct go_call *c)
{
	struct text t = { .arena = c->arena };

	if (c->args[0].i < 0)
		go_call_fail(c, "strings: negative Repeat count");
	if (c->args[0].i > REPEAT_MAX)
		go_call_fail(c, "a text cannot be repeated more than %d times", REPEAT_MAX);
	for (int64_t i = 0; i < c->args[0].i; i++) {
		arena_step(c->arena, 1);
		text_bytes(&t, c->args[1].s, c->args[1].len);
	}
	return go_text_value(&t);
}

static struct go_value
indented(struct go_call *c, const char *before)
{
	struct text pad = { .arena = c->arena }, t = pad;
	struct go_value lines;

	if (c->args[0].i < 0)
		go_call_fail(c, "strings: negative Repeat count");
	if (c->args[0].i > 1000000)
		go_call_fail(c, "the indentation is larger than 1000000");
	text_add(&pad, "\n");
	arena_count_bytes(c->arena, (size_t)c->args[0].i);
	for (int64_t i = 0; i < c->args[0].i; i++)
		text_add(&pad, " ");
	lines = go_replace(c->arena, c->args[1], go_text("\n"), go_text_value(&pad));
	text_add(&t, before);
	text_bytes(&t, pad.text + 1, pad.len - 1);
	text_bytes(&t, lines.s, lines.len);
	return go_text_value(&t);
}

struct go_value
tpl_fn_sprig_indent(struct go_call *c)
{
	return indented(c, "");
}

struct go_value
tpl_fn_sprig_nindent(struct go_call *c)
{
	return indented(c, "\n");
}

static struct go_value
quoted(struct go_call *c, bool single)
{
	struct text t = { .arena = c->arena };

	text_add(&t, "");
	for (size_t i = 0; i < c->n; i++) {
		struct go_value s = go_to_text(c->arena, c->args[i]);

		if (!c->args[i].type)
			continue;
		if (t.len > 0)
			text_add(&t, " ");
		if (single) {
			text_add(&t, "'");
			text_bytes(&t, s.s, s.len);
			text_add(&t, "'");
		} else {
			go_quote(&t, s.s, s.len, false);
		}
	}
	return go_text_value(&t);
}

struct go_value
tpl_fn_sprig_quote(struct go_call *c)
{
	return quoted(c, false);
}

struct go_value
tpl_fn_sprig_squote(struct go_call *c)
{
	return quoted(c, true);
}

struct go_value
tpl_fn_sprig_cat(struct go_call *c)
{
	struct text t = { .arena = c->arena };
	bool first = true;

	text_add(&t, "");
	for (size_t i = 0; i < c->n; i++) {
		if (!c->args[i].type)
			continue;
		if (!first)
			text_add(&t, " ");
		first = false;
		go_print_value(&t, c->args[i]);
	}
	return go_text_value(&t);
}

struct go_value
tpl_fn_sprig_plural(struct go_call *c)
{
	return c->args[c->args[2].i == 1 ? 0 : 1];
}

struct go_value
tpl_fn_sprig_to_string(struct go_call *c)
{
	return go_to_text(c->arena, c->args[0]);
}

struct go_value
tpl_fn_sprig_trunc(struct go_call *c)
{
	struct go_value s = c->args[1];
	int64_t n = c->args[0].i, len = (int64_t)s.len;

	if (n < 0 && len + n > 0)
		return go_string(s.s + len + n, (size_t)-n);
	return n >= 0 && len > n ? go_string(s.s, (size_t)n) : s;
}

struct go_value
tpl_fn_sprig_substr(struct go_call *c)
{
	static const char sentence[] = "runtime error: slice bounds out of range";
	long long from = c->args[0].i, to = c->args[1].i, len = (long long)c->args[2].len;

	if (from >= 0 && (to < 0 || to > len))
		to = len;
	if (to < 0)
		go_call_fail(c, "%s [:" TPL_VALUE("%lld") "]", sentence, to);
	if (to > len)
		go_call_fail(c, "%s [:" TPL_VALUE("%lld") "] with length " TPL_VALUE("%lld"),
		    sentence, to, len);
	if (from > to)
		go_call_fail(c, "%s [" TPL_VALUE("%lld:%lld") "]", sentence, from, to);
	if (from < 0)
		from = 0;
	return go_string(c->args[2].s + from, (size_t)(to - from));
}

static struct go_value
numbered(struct go_call *c, struct go_value parts)
{
	struct go_value map = go_map(c->arena, &go_type_string_map);

	for (size_t i = 0; i < parts.list.n; i++)
		go_map_set(
		    c->arena, map, go_text(arena_printf(c->arena, "_%zu", i)), parts.list.items[i]);
	return map;
}

struct go_value
tpl_fn_sprig_split(struct go_call *c)
{
	return numbered(c, go_split(c->arena, c->args[1], c->args[0], -1));
}

struct go_value
tpl_fn_sprig_splitn(struct go_call *c)
{
	return numbered(c, go_split(c->arena, c->args[2], c->args[0], c->args[1].i));
}

struct go_value
tpl_fn_sprig_split_list(struct go_call *c)
{
	return go_split(c->arena, c->args[1], c->args[0], -1);
}

/* The bytes of a text as characters. */
static void
add_byte(struct text *t, char byte)
{
	go_add_char(t, (unsigned char)byte);
}

struct go_value
tpl_fn_sprig_nospace(struct go_call *c)
{
	struct go_value s = c->args[0];
	struct text t = { .arena = c->arena };
	size_t count = 0;

	text_add(&t, "");
	for (size_t i = 0; i < s.len; i++)
		if (!go_is_space((unsigned char)s.s[i])) {
			add_byte(&t, s.s[i]);
			count++;
		}
	return count == s.len ? s : go_text_value(&t);
}

struct go_value
tpl_fn_sprig_initials(struct go_call *c)
{
	struct text t = { .arena = c->arena };
	bool gap = true;

	text_add(&t, "");
	for (size_t i = 0; i < c->args[0].len; i++) {
		bool space = go_is_space((unsigned char)c->args[0].s[i]);

		if (!space && gap)
			add_byte(&t, c->args[0].s[i]);
		gap = space;
	}
	return go_text_value(&t);
}

/* Whether words of strings.Title end at the character. */
static bool
is_separator(uint32_t ch)
{
	if (ch < 0x80)
		return !isalnum((int)ch) && ch != '_';
	return !go_is_letter(ch) && !go_is_digit(ch) && go_is_space(ch);
}

/* title: the first letter of each word is a capital; else it is a small letter. */
static struct go_value
change_first(struct go_call *c, bool title)
{
	struct go_value s = c->args[0];
	struct text t = { .arena = c->arena };
	bool start = true;
	size_t n;

	text_add(&t, "");
	arena_count_bytes(c->arena, s.len);
	for (size_t i = 0; i < s.len; i += n) {
		uint32_t ch = go_char(s.s + i, s.len - i, &n);
		bool space = title ? is_separator(ch) : go_is_space(ch);

		if (start && !(space && !title))
			go_add_char(&t, title ? go_title_char(ch) : go_lower_char(ch));
		else
			go_add_char(&t, ch);
		start = space;
	}
	return go_text_value(&t);
}

struct go_value
tpl_fn_sprig_title(struct go_call *c)
{
	return change_first(c, true);
}

struct go_value
tpl_fn_sprig_untitle(struct go_call *c)
{
	return change_first(c, false);
}

struct go_value
tpl_fn_sprig_swapcase(struct go_call *c)
{
	struct go_value s = c->args[0];
	struct text t = { .arena = c->arena };
	bool space = true;
	size_t n;

	text_add(&t, "");
	for (size_t i = 0; i < s.len; i += n) {
		uint32_t ch = go_char(s.s + i, s.len - i, &n);

		if (uc_is_general_category(ch, UC_UPPERCASE_LETTER) ||
		    uc_is_general_category(ch, UC_TITLECASE_LETTER)) {
			ch = go_lower_char(ch);
			space = false;
		} else if (uc_is_general_category(ch, UC_LOWERCASE_LETTER)) {
			ch = space ? go_title_char(ch) : go_upper_char(ch);
			space = false;
		} else {
			space = go_is_space(ch);
		}
		go_add_char(&t, ch);
	}
	return go_text_value(&t);
}

static struct go_value
abbreviate(struct go_call *c, struct go_value s, int64_t offset, int64_t width)
{
	struct text t = { .arena = c->arena };
	int64_t len = (int64_t)s.len;
	struct go_value rest;

	if (len <= width)
		return s;
	if (offset > len)
		offset = len;
	if (len - offset < width - 3)
		offset = len - (width - 3);
	if (offset <= 4) {
		text_bytes(&t, s.s, (size_t)(width - 3));
		text_add(&t, "...");
		return go_text_value(&t);
	}
	if (width < 7)
		return go_text("");
	text_add(&t, "...");
	rest = offset + width - 3 < len
		   ? abbreviate(c, go_string(s.s + offset, (size_t)(len - offset)), 0, width - 3)
		   : go_string(s.s + len - (width - 3), (size_t)(width - 3));
	text_bytes(&t, rest.s, rest.len);
	return go_text_value(&t);
}

struct go_value
tpl_fn_sprig_abbrev(struct go_call *c)
{
	return c->args[0].i < 4 ? c->args[1] : abbreviate(c, c->args[1], 0, c->args[0].i);
}

struct go_value
tpl_fn_sprig_abbrevboth(struct go_call *c)
{
	int64_t left = c->args[0].i, right = c->args[1].i;

	return right < 4 || (left > 0 && right < 7) ? c->args[2]
						    : abbreviate(c, c->args[2], left, right);
}

/* Paths. */

/* Without "." and "..", as far as that is known from the text. */
static struct go_value
clean(struct go_call *c, struct go_value path)
{
	struct text t = { .arena = c->arena };
	bool rooted = path.len > 0 && *path.s == '/';
	struct go_value parts = go_split(c->arena, path, go_text("/"), -1);
	struct go_value kept = { .type = &go_type_strings };

	for (size_t i = 0; i < parts.list.n; i++) {
		struct go_value part = parts.list.items[i];
		size_t n = kept.list.n;

		if (part.len == 0 || go_text_is(part, "."))
			continue;
		if (!go_text_is(part, ".."))
			kept = go_append(c->arena, kept, part);
		else if (n > 0 && !go_text_is(kept.list.items[n - 1], ".."))
			kept.list.n--;
		else if (!rooted)
			kept = go_append(c->arena, kept, part);
	}
	if (rooted)
		text_add(&t, "/");
	path = go_join(c->arena, kept, go_text("/"));
	text_bytes(&t, path.s, path.len);
	return t.len > 0 ? go_text_value(&t) : go_text(".");
}

struct go_value
tpl_fn_sprig_clean(struct go_call *c)
{
	return clean(c, c->args[0]);
}

/* Where the last element of the path begins. */
static size_t
last_element(struct go_value path)
{
	size_t n = path.len;

	while (n > 0 && path.s[n - 1] != '/')
		n--;
	return n;
}

struct go_value
tpl_fn_sprig_dir(struct go_call *c)
{
	return clean(c, go_string(c->args[0].s, last_element(c->args[0])));
}

struct go_value
tpl_fn_sprig_base(struct go_call *c)
{
	struct go_value path = c->args[0];
	size_t at;

	if (path.len == 0)
		return go_text(".");
	while (path.len > 0 && path.s[path.len - 1] == '/')
		path.len--;
	at = last_element(path);
	return path.len == 0 ? go_text("/") : go_string(path.s + at, path.len - at);
}

struct go_value
tpl_fn_sprig_ext(struct go_call *c)
{
	struct go_value path = c->args[0];

	for (size_t i = path.len; i > last_element(path); i--)
		if (path.s[i - 1] == '.')
			return go_string(path.s + i - 1, path.len - i + 1);
	return go_text("");
}

struct go_value
tpl_fn_sprig_is_abs(struct go_call *c)
{
	return go_bool(c->args[0].len > 0 && *c->args[0].s == '/');
}

/* Seconds as 1h2m3s. */
struct go_value
tpl_fn_sprig_duration(struct go_call *c)
{
	struct text t = { .arena = c->arena };
	int64_t n = 0;

	if (go_kind(c->args[0]) == GO_STRING) {
		if (go_parse_int(c->args[0].s, c->args[0].len, 10, &n) == -EINVAL)
			n = 0;
	} else if (c->args[0].type == &go_type_int64) {
		n = c->args[0].i;
	}
	go_format_duration(&t, (int64_t)((uint64_t)n * 1000000000U));
	return go_text_value(&t);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* hcl_func_text.c: functions that change a text: case, ends, parts, order. Runs in: cli,
 * job-parser. */
#include <string.h>
#include <unicase.h>
#include <unictype.h>
#include <unistr.h>

#include "hcl/hcl_func.h"
#include "hcl/hcl_normal.h"
#include "lang/text.h"

static struct hcl_value *
text_result(struct hcl_call *c, const char *s, size_t len)
{
	return hcl_normal_string(c->h, s, len);
}

/* The character at s, and its length; U+FFFD of length 1 for what is no UTF-8. */
static ucs4_t
read_char(const char *s, size_t left, size_t *ret_len)
{
	ucs4_t ch = 0xfffd;
	int n = u8_mbtoucr(&ch, (const uint8_t *)s, left);

	*ret_len = n > 0 ? (size_t)n : 1;
	return n > 0 ? ch : 0xfffd;
}

static void
add_char(struct text *t, ucs4_t ch)
{
	uint8_t bytes[6];
	int n = u8_uctomb(bytes, ch, sizeof bytes);

	if (n > 0)
		text_bytes(t, (const char *)bytes, (size_t)n);
}

/* Characters are mapped one by one, so that "ß" stays. */
static struct hcl_value *
map_characters(struct hcl_call *c, ucs4_t (*map)(ucs4_t))
{
	const struct hcl_value *s = c->args[0];
	struct text t = { .arena = hcl_arena(c->h) };
	size_t n;

	hcl_count_bytes(c->h, s->len);
	for (size_t i = 0; i < s->len; i += n)
		add_char(&t, map(read_char(s->string + i, s->len - i, &n)));
	return hcl_text_value(&t);
}

struct hcl_value *
hcl_fn_lower(struct hcl_call *c)
{
	return map_characters(c, uc_tolower);
}

struct hcl_value *
hcl_fn_upper(struct hcl_call *c)
{
	return map_characters(c, uc_toupper);
}

static bool
separates_words(ucs4_t ch)
{
	if (ch < 0x80)
		return !((ch >= '0' && ch <= '9') || (ch >= 'a' && ch <= 'z') ||
			 (ch >= 'A' && ch <= 'Z') || ch == '_');
	return uc_is_property_white_space(ch);
}

struct hcl_value *
hcl_fn_title(struct hcl_call *c)
{
	const struct hcl_value *s = c->args[0];
	struct text t = { .arena = hcl_arena(c->h) };
	ucs4_t before = ' ', ch;
	size_t n;

	hcl_count_bytes(c->h, s->len);
	for (size_t i = 0; i < s->len; i += n, before = ch) {
		ch = read_char(s->string + i, s->len - i, &n);
		add_char(&t, separates_words(before) ? uc_totitle(ch) : ch);
	}
	return hcl_text_value(&t);
}

struct hcl_value *
hcl_fn_chomp(struct hcl_call *c)
{
	const char *s = c->args[0]->string;
	size_t len = c->args[0]->len;

	while (len > 0 && (s[len - 1] == '\n' || s[len - 1] == '\r'))
		len--;
	return text_result(c, s, len);
}

/* Whether a character is cut off at the ends: white space if set is NULL, else those in it. */
static bool
is_cut(ucs4_t ch, const struct hcl_value *set)
{
	size_t n;

	if (!set)
		return uc_is_property_white_space(ch);
	for (size_t i = 0; i < set->len; i += n)
		if (read_char(set->string + i, set->len - i, &n) == ch)
			return true;
	return false;
}

static struct hcl_value *
cut_ends(struct hcl_call *c, const struct hcl_value *set)
{
	const char *s = c->args[0]->string;
	size_t from = 0, to = c->args[0]->len, n, start;

	for (; from < to && is_cut(read_char(s + from, to - from, &n), set); from += n)
		hcl_count_bytes(c->h, set ? set->len : 0);
	for (; to > from; to = start) {
		start = to - 1;
		while (start > from && ((unsigned char)s[start] & 0xc0) == 0x80)
			start--;
		hcl_count_bytes(c->h, set ? set->len : 0);
		if (!is_cut(read_char(s + start, to - start, &n), set))
			break;
	}
	return text_result(c, s + from, to - from);
}

struct hcl_value *
hcl_fn_trim(struct hcl_call *c)
{
	return cut_ends(c, c->args[1]);
}

struct hcl_value *
hcl_fn_trimspace(struct hcl_call *c)
{
	return cut_ends(c, NULL);
}

struct hcl_value *
hcl_fn_trimprefix(struct hcl_call *c)
{
	const struct hcl_value *s = c->args[0], *end = c->args[1];

	if (end->len > s->len || memcmp(s->string, end->string, end->len) != 0)
		return c->args[0];
	return text_result(c, s->string + end->len, s->len - end->len);
}

struct hcl_value *
hcl_fn_trimsuffix(struct hcl_call *c)
{
	const struct hcl_value *s = c->args[0], *end = c->args[1];

	if (end->len > s->len || memcmp(s->string + s->len - end->len, end->string, end->len) != 0)
		return c->args[0];
	return text_result(c, s->string, s->len - end->len);
}

struct hcl_value *
hcl_fn_indent(struct hcl_call *c)
{
	int64_t spaces = hcl_arg_int(c, 0);
	const struct hcl_value *s = c->args[1];
	struct text t = { .arena = hcl_arena(c->h) };

	if (spaces < 0)
		hcl_refuse_argument(c, 0, "the number of spaces must not be negative");
	for (size_t i = 0; i < s->len; i++) {
		text_bytes(&t, s->string + i, 1);
		hcl_count_bytes(c->h, s->string[i] == '\n' ? (size_t)spaces : 0);
		for (int64_t j = 0; j < spaces && s->string[i] == '\n'; j++)
			text_add(&t, " ");
	}
	return hcl_text_value(&t);
}

struct hcl_value *
hcl_fn_join(struct hcl_call *c)
{
	struct text t = { .arena = hcl_arena(c->h) };
	bool known = true, first = true;

	if (c->n < 2)
		hcl_refuse_argument(c, 0, "at least one list is required");
	for (size_t i = 1; i < c->n; i++) {
		c->args[i] = hcl_arg_list(c, i, &hcl_type_string);
		known &= hcl_is_wholly_known(c->args[i]);
	}
	if (!known)
		return hcl_unknown(c->h, &hcl_type_string);
	for (size_t i = 1; i < c->n; i++)
		for (size_t j = 0; j < c->args[i]->len; j++) {
			const struct hcl_value *item = c->args[i]->items[j];

			if (hcl_is_null(item))
				hcl_refuse_argument(c, i, "element %zu is null", j);
			hcl_step(c->h, 1);
			text_bytes(&t, c->args[0]->string, first ? 0 : c->args[0]->len);
			text_bytes(&t, item->string, item->len);
			first = false;
		}
	return hcl_text_value(&t);
}

/* Finds the next occurrence at or after *at; an empty text occurs after each character. Returns
 * whether there is one. */
static bool
find_next(struct hcl_call *c, const struct hcl_value *in, const struct hcl_value *what, size_t *at)
{
	const char *found;
	size_t n;

	hcl_step(c->h, 1);
	if (what->len == 0) {
		if (*at >= in->len)
			return false;
		(void)read_char(in->string + *at, in->len - *at, &n);
		*at += n;
		return true;
	}
	found = memmem(in->string + *at, in->len - *at, what->string, what->len);
	hcl_count_bytes(c->h, found ? (size_t)(found - in->string) - *at : in->len - *at);
	if (found)
		*at = (size_t)(found - in->string);
	return found != NULL;
}

struct hcl_value *
hcl_fn_replace(struct hcl_call *c)
{
	const struct hcl_value *s = c->args[0], *what = c->args[1], *by = c->args[2];
	struct text t = { .arena = hcl_arena(c->h) };
	size_t done = 0, at = 0;

	if (what->len == 0)
		text_bytes(&t, by->string, by->len);
	while (find_next(c, s, what, &at)) {
		text_bytes(&t, s->string + done, at - done);
		text_bytes(&t, by->string, by->len);
		at += what->len;
		done = at;
	}
	text_bytes(&t, s->string + done, s->len - done);
	return hcl_text_value(&t);
}

struct hcl_value *
hcl_fn_split(struct hcl_call *c)
{
	const struct hcl_value *between = c->args[0], *s = c->args[1];
	struct hcl_items items = { .h = c->h };
	size_t done = 0, at = 0, end;

	for (bool found = true; found; done = at) {
		found = find_next(c, s, between, &at);
		end = found ? at : s->len;
		if (found || between->len > 0)
			hcl_items_add(&items, text_result(c, s->string + done, end - done));
		at += between->len;
	}
	return hcl_list(c->h, &hcl_type_string, items.v, items.n);
}

struct hcl_value *
hcl_fn_strlen(struct hcl_call *c)
{
	const struct hcl_value *s = c->args[0];
	const char *begins = hcl_clusters(c->h, s->string, s->len);
	int64_t n = 0;

	for (size_t i = 0; i < s->len; i++)
		n += begins[i];
	return hcl_int(c->h, n);
}

struct hcl_value *
hcl_fn_reverse(struct hcl_call *c)
{
	const struct hcl_value *s = c->args[0];
	const char *begins = hcl_clusters(c->h, s->string, s->len);
	struct text t = { .arena = hcl_arena(c->h) };
	size_t end = s->len;

	for (size_t i = s->len; i-- > 0;)
		if (begins[i]) {
			text_bytes(&t, s->string + i, end - i);
			end = i;
		}
	return hcl_text_value(&t);
}

/* Returns where the nth cluster at or after `from` begins: len if there are fewer. */
static size_t
skip_clusters(const char *begins, size_t len, size_t from, int64_t n)
{
	for (size_t i = from; i < len; i++)
		if (begins[i] && n-- == 0)
			return i;
	return len;
}

/* As in the original, a length of 0 means all of the rest after a negative offset. */
struct hcl_value *
hcl_fn_substr(struct hcl_call *c)
{
	const struct hcl_value *s = c->args[0];
	int64_t offset = hcl_arg_int(c, 1), length = hcl_arg_int(c, 2);
	const char *begins = hcl_clusters(c->h, s->string, s->len);
	size_t from, to = s->len;

	if (offset >= 0 && length == 0)
		return hcl_text(c->h, "");
	if (offset < 0) {
		for (size_t i = 0; i < s->len; i++)
			offset += begins[i];
		if (offset < 0)
			offset = 0;
	}
	from = skip_clusters(begins, s->len, 0, offset);
	if (length > 0)
		to = skip_clusters(begins, s->len, from, length);
	return text_result(c, s->string + from, to - from);
}

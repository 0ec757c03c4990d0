/* SPDX-License-Identifier: Apache-2.0 */
/* hcl_func_json.c: reads JSON (RFC 8259) as values. Numbers keep 512 bits. Runs in: cli,
 * job-parser. */
#include <stdlib.h>
#include <string.h>
#include <unistr.h>

#include "hcl/hcl_doc.h"
#include "hcl/hcl_func.h"
#include "hcl/hcl_functions.h"
#include "hcl/hcl_normal.h"
#include "hcl/hcl_number.h"
#include "lang/text.h"

struct reader {
	struct hcl_call *c;
	const char *s; /* ends with NUL */
	size_t at, len;
};

static struct hcl_value *read_value(struct reader *r);

static void
refuse_json(struct reader *r, const char *expected)
{
	if (r->at >= r->len)
		hcl_refuse_argument(
		    r->c, 0, "expected %s in the JSON, found the end of the text", expected);
	hcl_refuse_argument(r->c, 0, "expected %s in the JSON at byte %zu, found \"%.10s\"",
	    expected, r->at, r->s + r->at);
}

static void
skip_space(struct reader *r)
{
	r->at += strspn(r->s + r->at, " \t\r\n");
}

static bool
skip(struct reader *r, char ch)
{
	skip_space(r);
	if (r->at == r->len || r->s[r->at] != ch)
		return false;
	r->at++;
	return true;
}

static size_t
count_digits(const struct reader *r, size_t at)
{
	return strspn(r->s + at, "0123456789");
}

static struct hcl_value *
read_number(struct reader *r)
{
	size_t from = r->at, digits, first;
	struct hcl_value *v;

	if (r->s[r->at] == '-')
		r->at++;
	first = r->at;
	digits = count_digits(r, r->at);
	r->at += r->s[first] == '0' ? 1 : digits;
	if (digits > 0 && r->s[r->at] == '.') {
		digits = count_digits(r, ++r->at);
		r->at += digits;
	}
	if (digits > 0 && (r->s[r->at] == 'e' || r->s[r->at] == 'E')) {
		r->at++;
		r->at += r->s[r->at] == '+' || r->s[r->at] == '-';
		digits = count_digits(r, r->at);
		r->at += digits;
	}
	if (digits == 0)
		refuse_json(r, "a digit");
	v = hcl_parse_number(r->c->h, r->s + from, r->at - from);
	if (!v)
		hcl_refuse_argument(r->c, 0, "a number in the JSON is too large or too long");
	return v;
}

/* The four hexadecimal digits at this place, or -1. */
static int32_t
read_hex(const struct reader *r, size_t at)
{
	char digits[5] = { 0 };

	memcpy(digits, r->s + at, at + 4 <= r->len ? 4 : 0);
	if (strspn(digits, "0123456789abcdefABCDEF") != 4)
		return -1;
	return (int32_t)strtol(digits, NULL, 16);
}

/* Reads the digits of \u and, for the first half of a pair, the second. Half a pair
 * becomes U+FFFD. */
static void
read_unicode(struct reader *r, struct text *t)
{
	int32_t ch = read_hex(r, r->at), low;
	uint8_t bytes[6];
	int n;

	if (ch < 0)
		refuse_json(r, "four hexadecimal digits");
	r->at += 4;
	if (ch >= 0xd800 && ch < 0xdc00 && strncmp(r->s + r->at, "\\u", 2) == 0) {
		low = read_hex(r, r->at + 2);
		if (low >= 0xdc00 && low < 0xe000) {
			ch = 0x10000 + ((ch - 0xd800) << 10) + (low - 0xdc00);
			r->at += 6;
		}
	}
	n = u8_uctomb(bytes, (ucs4_t)(ch >= 0xd800 && ch < 0xe000 ? 0xfffd : ch), sizeof bytes);
	text_bytes(t, (const char *)bytes, (size_t)n);
}

static void
read_escape(struct reader *r, struct text *t)
{
	static const char names[] = "\"\"\\\\//b\bf\fn\nr\rt\t";
	char ch = r->s[r->at];

	if (ch == 'u') {
		r->at++;
		read_unicode(r, t);
		return;
	}
	for (const char *x = names; *x && ch; x += 2)
		if (*x == ch) {
			text_bytes(t, x + 1, 1);
			r->at++;
			return;
		}
	refuse_json(r, "an escape");
}

/* After the first quote. */
static struct hcl_value *
read_string(struct reader *r)
{
	struct text t = { .arena = hcl_arena(r->c->h) };

	for (size_t from = r->at;; from = r->at) {
		while (r->at < r->len && (unsigned char)r->s[r->at] >= 0x20 && r->s[r->at] != '"' &&
		       r->s[r->at] != '\\')
			r->at++;
		text_bytes(&t, r->s + from, r->at - from);
		if (r->at == r->len || (unsigned char)r->s[r->at] < 0x20)
			refuse_json(r, "a quote");
		if (r->s[r->at++] == '"')
			return hcl_text_value(&t);
		read_escape(r, &t);
	}
}

static struct hcl_value *
read_array(struct reader *r)
{
	struct hcl_items items = { .h = r->c->h };

	if (!skip(r, ']'))
		do
			hcl_items_add(&items, read_value(r));
		while (skip(r, ','));
	else
		return hcl_tuple(r->c->h, NULL, 0);
	if (!skip(r, ']'))
		refuse_json(r, "\",\" or \"]\"");
	return hcl_tuple(r->c->h, items.v, items.n);
}

static int
compare_members(const void *a, const void *b)
{
	const struct hcl_member *x = a, *y = b;
	size_t n = x->key_len < y->key_len ? x->key_len : y->key_len;
	int r = memcmp(x->key, y->key, n);

	return r ? r : x->key_len < y->key_len ? -1 : x->key_len > y->key_len;
}

/* A key may occur more than once if its values have one type; the last counts. */
static struct hcl_value *
make_object(struct reader *r, struct hcl_member *members, size_t n)
{
	struct hcl_value *object = hcl_object(r->c->h, members, n);
	struct hcl_member *sorted;

	if (object->len == n)
		return object;
	sorted = hcl_alloc(r->c->h, n * sizeof *sorted);
	memcpy(sorted, members, n * sizeof *sorted);
	qsort(sorted, n, sizeof *sorted, compare_members);
	for (size_t i = 1; i < n; i++)
		if (compare_members(&sorted[i - 1], &sorted[i]) == 0 &&
		    !hcl_type_equal(hcl_type_of(r->c->h, sorted[i - 1].value),
			hcl_type_of(r->c->h, sorted[i].value)))
			hcl_refuse_argument(r->c, 0,
			    "the JSON has \"%.80s\" twice, with different types", sorted[i].key);
	return object;
}

static struct hcl_value *
read_object(struct reader *r)
{
	struct hcl_items keys = { .h = r->c->h }, values = { .h = r->c->h };
	struct hcl_member *members;

	if (!skip(r, '}')) {
		do {
			if (!skip(r, '"'))
				refuse_json(r, "a key in quotes");
			hcl_items_add(&keys, read_string(r));
			if (!skip(r, ':'))
				refuse_json(r, "\":\"");
			hcl_items_add(&values, read_value(r));
		} while (skip(r, ','));
		if (!skip(r, '}'))
			refuse_json(r, "\",\" or \"}\"");
	}
	members = hcl_alloc(r->c->h, keys.n * sizeof *members);
	for (size_t i = 0; i < keys.n; i++)
		members[i] = (struct hcl_member){ keys.v[i]->string, keys.v[i]->len, values.v[i] };
	return make_object(r, members, keys.n);
}

static struct hcl_value *
read_word(struct reader *r)
{
	static const char *const words[] = { "true", "false", "null" };

	for (size_t i = 0; i < 3; i++)
		if (strncmp(r->s + r->at, words[i], strlen(words[i])) == 0) {
			r->at += strlen(words[i]);
			return i == 2 ? hcl_null(r->c->h, &hcl_type_any)
				      : hcl_bool(r->c->h, i == 0);
		}
	refuse_json(r, "a value");
	return NULL;
}

static struct hcl_value *
read_value(struct reader *r)
{
	struct hcl_value *v;

	hcl_enter(r->c->h, r->c->at);
	if (skip(r, '{'))
		v = read_object(r);
	else if (skip(r, '['))
		v = read_array(r);
	else if (skip(r, '"'))
		v = read_string(r);
	else if (r->s[r->at] == '-' || count_digits(r, r->at) > 0)
		v = read_number(r);
	else
		v = read_word(r);
	hcl_exit(r->c->h);
	return v;
}

struct hcl_value *
hcl_fn_jsondecode(struct hcl_call *c)
{
	struct reader r = { .c = c, .s = c->args[0]->string, .len = c->args[0]->len };
	struct hcl_value *v;

	hcl_count_bytes(c->h, r.len);
	v = read_value(&r);
	skip_space(&r);
	if (r.at < r.len)
		refuse_json(&r, "the end of the text");
	return v;
}

struct hcl_value *
hcl_read_json(struct hcl *h, const struct hcl_source *source)
{
	static const struct hcl_function function = { .name = "jsondecode" };
	struct hcl_value *text = hcl_string(h, source->text, source->len);
	struct hcl_call c = {
		.h = h, .function = &function, .at = { source, 0, 1 }, .n = 1, .args = &text
	};

	return hcl_fn_jsondecode(&c);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* hcl_value.c: makes and compares values. Runs in: cli, job-parser. */
#include "hcl/hcl_value.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/utf8.h"
#include "hcl/hcl_doc.h"
#include "hcl/hcl_number.h"
#include "lang/text.h"

static struct hcl_value *
new_value(struct hcl *h, enum hcl_kind kind)
{
	struct hcl_value *v = hcl_new_object(h, struct hcl_value);

	v->kind = kind;
	return v;
}

struct hcl_value *
hcl_bool(struct hcl *h, bool b)
{
	struct hcl_value *v = new_value(h, HCL_BOOL);

	v->boolean = b;
	return v;
}

struct hcl_value *
hcl_string(struct hcl *h, const char *s, size_t len)
{
	struct hcl_value *v = new_value(h, HCL_STRING);

	v->string = hcl_strndup(h, s, len);
	v->len = len;
	return v;
}

struct hcl_value *
hcl_text(struct hcl *h, const char *s)
{
	return hcl_string(h, s, strlen(s));
}

struct hcl_value *
hcl_null(struct hcl *h, const struct hcl_type *type)
{
	struct hcl_value *v = new_value(h, type->kind);

	v->state = HCL_NULL;
	v->type = type;
	return v;
}

struct hcl_value *
hcl_unknown(struct hcl *h, const struct hcl_type *type)
{
	struct hcl_value *v = new_value(h, type->kind);

	v->state = HCL_UNKNOWN;
	v->has_unknown = true;
	v->type = type;
	return v;
}

/* Functions go through values by recursion, so their depth is limited. */
static void
contain(struct hcl *h, struct hcl_value *v, const struct hcl_value *element)
{
	v->has_unknown |= element->has_unknown;
	if (element->depth + 1 > v->depth)
		v->depth = element->depth + 1;
	if (v->depth > h->limits.depth)
		hcl_fail(h, h->busy_at, "this value is nested more than %u levels deep",
		    h->limits.depth);
}

static struct hcl_value *
new_sequence(struct hcl *h, enum hcl_kind kind, const struct hcl_type *item,
    struct hcl_value **items, size_t n)
{
	struct hcl_value *v = new_value(h, kind);

	if (item)
		v->type = hcl_type_list(h, kind, item);
	v->items = items;
	v->len = n;
	for (size_t i = 0; i < n; i++)
		contain(h, v, items[i]);
	return v;
}

struct hcl_value *
hcl_list(struct hcl *h, const struct hcl_type *item, struct hcl_value **items, size_t n)
{
	return new_sequence(h, HCL_LIST, item, items, n);
}

struct hcl_value *
hcl_tuple(struct hcl *h, struct hcl_value **items, size_t n)
{
	return new_sequence(h, HCL_TUPLE, NULL, items, n);
}

static int
compare_keys(const char *a, size_t a_len, const char *b, size_t b_len)
{
	int r = memcmp(a, b, a_len < b_len ? a_len : b_len);

	return r ? r : a_len < b_len ? -1 : a_len > b_len;
}

static int
compare_members(const void *a, const void *b)
{
	const struct hcl_member *x = a, *y = b;

	return compare_keys(x->key, x->key_len, y->key, y->key_len);
}

/* The sort keeps the order of equal keys, because it is told the position. */
static int
compare_member_pointers(const void *a, const void *b)
{
	const struct hcl_member *x = *(struct hcl_member *const *)a,
				*y = *(struct hcl_member *const *)b;
	int r = compare_members(x, y);

	return r ? r : x < y ? -1 : x > y;
}

static struct hcl_value *
new_mapping(struct hcl *h, enum hcl_kind kind, struct hcl_member *members, size_t n)
{
	struct hcl_member **order = hcl_alloc(h, n * sizeof(struct hcl_member *));
	struct hcl_member *sorted = hcl_alloc(h, n * sizeof *sorted);
	struct hcl_value *v = new_value(h, kind);
	size_t kept = 0;

	hcl_step(h, n);
	for (size_t i = 0; i < n; i++)
		order[i] = &members[i];
	qsort(order, n, sizeof(struct hcl_member *), compare_member_pointers);
	for (size_t i = 0; i < n; i++) {
		if (kept > 0 && compare_members(&sorted[kept - 1], order[i]) == 0)
			kept--;
		sorted[kept++] = *order[i];
		contain(h, v, order[i]->value);
	}
	v->members = sorted;
	v->len = kept;
	return v;
}

struct hcl_value *
hcl_map(struct hcl *h, const struct hcl_type *item, struct hcl_member *members, size_t n)
{
	struct hcl_value *v = new_mapping(h, HCL_MAP, members, n);

	v->type = hcl_type_list(h, HCL_MAP, item);
	return v;
}

struct hcl_value *
hcl_object(struct hcl *h, struct hcl_member *members, size_t n)
{
	return new_mapping(h, HCL_OBJECT, members, n);
}

bool
hcl_is_sequence(const struct hcl_value *v)
{
	return v->kind == HCL_LIST || v->kind == HCL_SET || v->kind == HCL_TUPLE;
}

bool
hcl_is_mapping(const struct hcl_value *v)
{
	return v->kind == HCL_MAP || v->kind == HCL_OBJECT;
}

bool
hcl_is_wholly_known(const struct hcl_value *v)
{
	return !v->has_unknown;
}

struct hcl_value *
hcl_element(struct hcl *h, const struct hcl_value *v, size_t i, struct hcl_value **ret_key)
{
	if (hcl_is_mapping(v)) {
		*ret_key = hcl_string(h, v->members[i].key, v->members[i].key_len);
		return v->members[i].value;
	}
	*ret_key = v->kind == HCL_SET ? v->items[i] : hcl_int(h, (int64_t)i);
	return v->items[i];
}

struct hcl_value *
hcl_get(const struct hcl_value *mapping, const char *key, size_t len)
{
	const struct hcl_member wanted = { .key = key, .key_len = len }, *found;

	found = mapping->len == 0 ? NULL
				  : bsearch(&wanted, mapping->members, mapping->len, sizeof wanted,
					compare_members);
	return found ? found->value : NULL;
}

static bool
equal_contents(struct hcl *h, const struct hcl_value *a, const struct hcl_value *b)
{
	hcl_step(h, 1);
	switch (a->kind) {
	case HCL_BOOL:
		return a->boolean == b->boolean;
	case HCL_NUMBER:
		return hcl_number_compare(a->number, b->number) == 0;
	case HCL_STRING:
		hcl_step(h, a->len / 64);
		return a->len == b->len && memcmp(a->string, b->string, a->len) == 0;
	case HCL_MAP:
	case HCL_OBJECT:
		for (size_t i = 0; i < a->len; i++)
			if (compare_members(&a->members[i], &b->members[i]) != 0 ||
			    !hcl_equal(h, a->members[i].value, b->members[i].value))
				return false;
		return true;
	default:
		for (size_t i = 0; i < a->len; i++)
			if (!hcl_equal(h, a->items[i], b->items[i]))
				return false;
		return true;
	}
}

bool
hcl_equal(struct hcl *h, const struct hcl_value *a, const struct hcl_value *b)
{
	if (a->state == HCL_UNKNOWN || b->state == HCL_UNKNOWN)
		return false;
	if (a->state == HCL_NULL || b->state == HCL_NULL)
		return a->state == b->state;
	if (a->kind != b->kind)
		return false;
	if ((hcl_is_sequence(a) || hcl_is_mapping(a)) && a->len != b->len)
		return false;
	if (a->type && b->type && !hcl_type_equal(a->type, b->type))
		return false;
	return equal_contents(h, a, b);
}

static void append_order_text(struct text *t, const struct hcl_value *v);

/* Whether Go's %q writes the character as it is: all but controls, spaces and marks without a
 * width. */
static bool
is_shown(uint32_t ch)
{
	static const uint32_t hidden[][2] = { { 0x7f, 0xa0 }, { 0xad, 0xad }, { 0x2000, 0x200f },
		{ 0x2028, 0x202f }, { 0x205f, 0x206f }, { 0x3000, 0x3000 }, { 0xe000, 0xf8ff },
		{ 0xfeff, 0xfeff }, { 0xfff0, 0xfffb } };

	for (size_t i = 0; i < sizeof hidden / sizeof hidden[0]; i++)
		if (ch >= hidden[i][0] && ch <= hidden[i][1])
			return false;
	return ch >= ' ';
}

/* The character of n bytes, which are UTF-8. */
static uint32_t
decode(const char *s, size_t n)
{
	uint32_t ch = (unsigned char)*s & (n == 1 ? 0x7f : 0x7f >> n);

	for (size_t i = 1; i < n; i++)
		ch = ch << 6 | ((unsigned char)s[i] & 0x3f);
	return ch;
}

/* As Go's %q. */
static void
append_order_string(struct text *t, const char *s, size_t len)
{
	static const char names[] = "\aa\bb\ff\nn\rr\tt\vv\\\\\"\"";
	char buf[16];
	size_t n;

	text_add(t, "\"");
	for (size_t i = 0; i < len; i += n) {
		uint32_t ch;
		const char *name;

		n = utf8_char_length(s + i, len - i);
		ch = n > 0 ? decode(s + i, n) : (unsigned char)s[i];
		for (name = names; *name && (unsigned char)*name != ch; name += 2)
			;
		if (*name)
			text_bytes(t, (char[]){ '\\', name[1] }, 2);
		else if (n > 0 && is_shown(ch))
			text_bytes(t, s + i, n);
		else
			text_bytes(t, buf,
			    (size_t)snprintf(buf, sizeof buf,
				n == 0 || ch < 0x80 ? "\\x%02x"
				: ch < 0x10000      ? "\\u%04x"
						    : "\\U%08x",
				ch));
		n += n == 0;
	}
	text_add(t, "\"");
}

/* As Go's %.10g. */
static void
append_order_number(struct text *t, const struct hcl_number *n)
{
	char buf[64];

	(void)mpfr_snprintf(buf, sizeof buf, "%.10Rg", n->v);
	text_add(t, mpfr_inf_p(n->v) ? hcl_number_text(hcl_of_arena(t->arena), n) : buf);
}

static void
append_order_elements(struct text *t, const struct hcl_value *v)
{
	bool typed = v->type != NULL, mapping = hcl_is_mapping(v);

	text_add(t, !typed ? "<" : mapping ? "{" : "[");
	for (size_t i = 0; i < v->len; i++) {
		if (mapping && typed) {
			append_order_string(t, v->members[i].key, v->members[i].key_len);
			text_add(t, ":");
		}
		append_order_text(t, mapping ? v->members[i].value : v->items[i]);
		text_add(t, ";");
	}
	text_add(t, !typed ? ">" : mapping ? "}" : "]");
}

/* The text by which go-cty orders the elements of a set that are neither strings nor numbers. */
static void
append_order_text(struct text *t, const struct hcl_value *v)
{
	hcl_step(hcl_of_arena(t->arena), 1);
	if (v->state != HCL_KNOWN)
		text_add(t, v->state == HCL_NULL ? "~" : "?");
	else if (v->kind == HCL_BOOL)
		text_add(t, v->boolean ? "T" : "F");
	else if (v->kind == HCL_NUMBER)
		append_order_number(t, v->number);
	else if (v->kind == HCL_STRING)
		append_order_string(t, v->string, v->len);
	else
		append_order_elements(t, v);
}

/* Numbers of more than ten digits can have the same text. */
static int
compare_exactly(struct hcl *h, const struct hcl_value *a, const struct hcl_value *b)
{
	int r = 0;

	hcl_step(h, 1);
	if (a->state != HCL_KNOWN || b->state != HCL_KNOWN || a->kind != b->kind)
		return 0;
	if (a->kind == HCL_NUMBER)
		return hcl_number_compare(a->number, b->number);
	for (size_t i = 0; r == 0 && i < a->len && i < b->len && hcl_is_sequence(a); i++)
		r = compare_exactly(h, a->items[i], b->items[i]);
	for (size_t i = 0; r == 0 && i < a->len && i < b->len && hcl_is_mapping(a); i++)
		r = compare_exactly(h, a->members[i].value, b->members[i].value);
	return r;
}

int
hcl_compare(struct hcl *h, const struct hcl_value *a, const struct hcl_value *b)
{
	struct text x = { .arena = hcl_arena(h) }, y = { .arena = hcl_arena(h) };
	int r;

	hcl_step(h, 1);
	if (a->state == HCL_KNOWN && b->state == HCL_KNOWN && a->kind == b->kind) {
		if (a->kind == HCL_STRING)
			return compare_keys(a->string, a->len, b->string, b->len);
		if (a->kind == HCL_NUMBER)
			return hcl_number_compare(a->number, b->number);
		if (a->kind == HCL_BOOL)
			return (int)a->boolean - (int)b->boolean;
	}
	append_order_text(&x, a);
	append_order_text(&y, b);
	r = compare_keys(x.text, x.len, y.text, y.len);
	return r ? r : compare_exactly(h, a, b);
}

/* An item of a set with the text by which it is ordered; without one if all items are strings,
 * numbers or booleans. */
struct ordered {
	struct hcl_value *v;
	struct text text;
};

static int
compare_ordered(struct hcl *h, const struct ordered *a, const struct ordered *b)
{
	int r;

	if (!a->text.arena)
		return hcl_compare(h, a->v, b->v);
	hcl_step(h, 1);
	r = compare_keys(a->text.text, a->text.len, b->text.text, b->text.len);
	return r ? r : compare_exactly(h, a->v, b->v);
}

/* A merge sort in the arena: a comparison can leave with an error. */
static void
sort_items(struct hcl *h, struct ordered *items, struct ordered *spare, size_t n)
{
	size_t half = n / 2, a = 0, b = half;

	if (n < 2)
		return;
	sort_items(h, items, spare, half);
	sort_items(h, items + half, spare + half, n - half);
	for (size_t i = 0; i < n; i++)
		spare[i] = b == n || (a < half && compare_ordered(h, &items[a], &items[b]) <= 0)
			       ? items[a++]
			       : items[b++];
	memcpy(items, spare, n * sizeof *items);
}

struct hcl_value *
hcl_set(struct hcl *h, const struct hcl_type *item, struct hcl_value **items, size_t n)
{
	struct hcl_value *v = new_sequence(h, HCL_SET, item, items, n);
	struct ordered *all = hcl_alloc(h, n * sizeof *all);
	bool simple = true;
	size_t kept = 0;

	hcl_step(h, n);
	for (size_t i = 0; i < n; i++)
		simple &= items[i]->state == HCL_KNOWN && items[i]->kind <= HCL_BOOL;
	for (size_t i = 0; i < n; i++) {
		all[i] =
		    (struct ordered){ .v = items[i], .text.arena = simple ? NULL : hcl_arena(h) };
		if (!simple)
			append_order_text(&all[i].text, items[i]);
	}
	sort_items(h, all, hcl_alloc(h, n * sizeof *all), n);
	for (size_t i = 0; i < n; i++)
		if (kept == 0 || !hcl_equal(h, items[kept - 1], all[i].v))
			items[kept++] = all[i].v;
	v->len = kept;
	return v;
}

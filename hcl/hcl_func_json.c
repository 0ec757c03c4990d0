/* SPDX-License-Identifier: Apache-2.0 */
/* hcl_func_json.c: JSON as values. Numbers keep 512 bits. Runs in: cli, job-parser. */
#include <stdlib.h>
#include <string.h>

#include "hcl/hcl_doc.h"
#include "hcl/hcl_func.h"
#include "hcl/hcl_functions.h"
#include "hcl/hcl_normal.h"
#include "hcl/hcl_number.h"
#include "lang/json.h"

static void *
make_null(void *call)
{
	struct hcl_call *c = call;

	return hcl_null(c->h, &hcl_type_any);
}

static void *
make_bool(void *call, bool b)
{
	struct hcl_call *c = call;

	return hcl_bool(c->h, b);
}

static void *
make_number(void *call, const char *s, size_t len)
{
	struct hcl_call *c = call;
	struct hcl_value *v = hcl_parse_number(c->h, s, len);

	if (!v)
		hcl_refuse_argument(c, 0, "a number in the JSON is too large or too long");
	return v;
}

static void *
make_string(void *call, const char *s, size_t len)
{
	struct hcl_call *c = call;

	return hcl_normal_string(c->h, s, len);
}

static void *
make_list(void *call, void **items, size_t n)
{
	struct hcl_call *c = call;

	return hcl_tuple(c->h, (struct hcl_value **)items, n);
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
static void *
make_object(void *call, struct json_member *from, size_t n)
{
	struct hcl_call *c = call;
	struct hcl_member *members = hcl_alloc(c->h, n * sizeof *members), *sorted;
	struct hcl_value *object;

	for (size_t i = 0; i < n; i++) {
		struct hcl_value *key = hcl_normal_string(c->h, from[i].key, from[i].key_len);

		members[i] = (struct hcl_member){ key->string, key->len, from[i].value };
	}
	object = hcl_object(c->h, members, n);
	if (object->len == n)
		return object;
	sorted = hcl_alloc(c->h, n * sizeof *sorted);
	memcpy(sorted, members, n * sizeof *sorted);
	qsort(sorted, n, sizeof *sorted, compare_members);
	for (size_t i = 1; i < n; i++)
		if (compare_members(&sorted[i - 1], &sorted[i]) == 0 &&
		    !hcl_type_equal(
			hcl_type_of(c->h, sorted[i - 1].value), hcl_type_of(c->h, sorted[i].value)))
			hcl_refuse_argument(c, 0,
			    "the JSON has \"%.80s\" twice, with different types", sorted[i].key);
	return object;
}

static void
fail(void *call, size_t at, const char *expected)
{
	struct hcl_call *c = call;
	const struct hcl_value *s = c->args[0];

	if (at >= s->len)
		hcl_refuse_argument(
		    c, 0, "expected %s in the JSON, found the end of the text", expected);
	hcl_refuse_argument(c, 0, "expected %s in the JSON at byte %zu, found \"%.10s\"", expected,
	    at, s->string + at);
}

struct hcl_value *
hcl_fn_jsondecode(struct hcl_call *c)
{
	static const struct json_maker maker = { make_null, make_bool, make_number, make_string,
		make_list, make_object, hcl_call_enter, hcl_call_leave, fail };

	return json_read(hcl_arena(c->h), c->args[0]->string, c->args[0]->len, &maker, c);
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

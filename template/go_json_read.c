/* SPDX-License-Identifier: Apache-2.0 */
/* go_json_read.c: reads JSON: numbers are float64. Runs in: template-renderer. */
#include <string.h>

#include "lang/json.h"
#include "template/go_json.h"
#include "template/go_text.h"

struct reading {
	struct arena *arena;
	const char *s;
	size_t len;
	struct go_value result;
	const char *why;
	bool integers;
};

static void *
box(struct reading *r, struct go_value v)
{
	struct go_value *copy = arena_new(r->arena, struct go_value);

	*copy = v;
	return copy;
}

static void *
make_null(void *reading)
{
	return box(reading, go_nothing);
}

static void *
make_bool(void *reading, bool b)
{
	return box(reading, go_bool(b));
}

static void *
make_number(void *reading, const char *s, size_t len)
{
	struct reading *r = reading;
	double f;
	int64_t i;

	if (r->integers && go_parse_int(s, len, 10, &i) == 0)
		return box(r, go_int(i));
	if (go_parse_float(r->arena, s, len, &f) < 0) {
		r->why = arena_printf(r->arena,
		    "json: cannot unmarshal number " TPL_VALUE(
			"%.*s") " into Go value of type float64",
		    (int)len, s);
		arena_leave(r->arena);
	}
	return box(r, go_float(f));
}

/* Bytes that are no UTF-8 become U+FFFD. */
static struct go_value
clean(struct reading *r, const char *s, size_t len)
{
	struct text t = { .arena = r->arena };
	size_t n;

	for (size_t i = 0; i < len; i += n)
		go_add_char(&t, go_char(s + i, len - i, &n));
	return go_text_value(&t);
}

static void *
make_string(void *reading, const char *s, size_t len)
{
	return box(reading, clean(reading, s, len));
}

static void *
make_list(void *reading, void **items, size_t n)
{
	struct reading *r = reading;
	struct go_value list = go_slice(r->arena, &go_type_anys, n);

	for (size_t i = 0; i < n; i++)
		list.list.items[i] = *(struct go_value *)items[i];
	return box(r, list);
}

static void *
make_object(void *reading, struct json_member *members, size_t n)
{
	struct reading *r = reading;
	struct go_value map = go_map(r->arena, &go_type_dict);

	for (size_t i = 0; i < n; i++)
		go_map_set(r->arena, map, clean(r, members[i].key, members[i].key_len),
		    *(struct go_value *)members[i].value);
	return box(r, map);
}

static void
enter(void *reading)
{
	arena_enter(((struct reading *)reading)->arena);
}

static void
leave(void *reading)
{
	arena_exit(((struct reading *)reading)->arena);
}

/* The original's words for what should be there. */
static const char *
context(const char *expected)
{
	static const char *const words[][2] = { { "a value", "looking for beginning of value" },
		{ "a key in quotes", "looking for beginning of object key string" },
		{ "\":\"", "after object key" },
		{ "\",\" or \"}\"", "after object key:value pair" },
		{ "\",\" or \"]\"", "after array element" },
		{ "the end of the text", "after top-level value" },
		{ "a digit", "in numeric literal" }, { "a quote", "in string literal" },
		{ "an escape", "in string escape code" },
		{ "four hexadecimal digits", "in \\u hexadecimal character escape" } };

	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
		if (strcmp(words[i][0], expected) == 0)
			return words[i][1];
	return expected;
}

static void
fail(void *reading, size_t at, const char *expected)
{
	struct reading *r = reading;
	struct text t = { .arena = r->arena };

	if (at >= r->len) {
		r->why = "unexpected end of JSON input";
	} else {
		text_add(&t, "invalid character ");
		go_quote_char(&t, (unsigned char)r->s[at], false);
		text_add(&t, " ");
		text_add(&t, context(expected));
		r->why = t.text;
	}
	arena_leave(r->arena);
}

static void
read_text(void *reading)
{
	static const struct json_maker maker = { make_null, make_bool, make_number, make_string,
		make_list, make_object, enter, leave, fail };
	struct reading *r = reading;

	r->result = *(struct go_value *)json_read(r->arena, r->s, r->len, &maker, r);
}

static struct go_value
try_json(struct arena *a, struct go_value text, bool integers, const char **ret_why)
{
	struct reading r = { .arena = a,
		.s = arena_strndup(a, text.s, text.len),
		.len = text.len,
		.integers = integers };
	bool ok = arena_try(a, read_text, &r);

	if (!ok && !r.why)
		arena_leave(a); /* after a limit was exceeded */
	*ret_why = r.why;
	return r.result;
}

struct go_value
go_try_json(struct arena *a, struct go_value text, const char **ret_why)
{
	return try_json(a, text, false, ret_why);
}

struct go_value
go_try_json_integers(struct arena *a, struct go_value text, const char **ret_why)
{
	return try_json(a, text, true, ret_why);
}

struct go_value
go_read_json(struct go_call *c, struct go_value text)
{
	const char *why;
	struct go_value v = go_try_json(c->arena, text, &why);

	if (why)
		go_call_fail(c, "%s", why);
	return v;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* tpl_func_builtin.c: the functions of Go's text/template, but comparisons. Runs in:
 * template-renderer. */
#include <stdio.h>
#include <string.h>

#include "template/go_print.h"
#include "template/go_text.h"
#include "template/tpl_functions.h"
#include "template/tpl_run.h"

/* and and or evaluate their arguments one by one, so tpl_call() does it. */
struct go_value
tpl_fn_logic(struct go_call *c)
{
	go_call_fail(c, "it has no value");
}

struct go_value
tpl_fn_not(struct go_call *c)
{
	return go_bool(!go_is_true(c->args[0]));
}

/* Interfaces without a value count as nothing. */
static struct go_value
concrete(struct go_value v)
{
	return go_kind(v) == GO_INTERFACE ? go_nothing : v;
}

struct go_value
tpl_fn_len(struct go_call *c)
{
	bool nil;
	struct go_value v = go_indirect(c->args[0], &nil);

	if (nil)
		go_call_fail(c, "len of nil pointer");
	switch (go_kind(v)) {
	case GO_STRING:
		return go_int((int64_t)v.len);
	case GO_SLICE:
		return go_int((int64_t)v.list.n);
	case GO_MAP:
		return go_int((int64_t)go_map_len(v));
	case GO_CHAN:
		return go_int(0);
	case GO_INVALID:
		go_call_fail(c, "reflect: call of reflect.Value.Type on zero Value");
	default:
		go_call_fail(c, "len of type %s", v.type->name);
	}
}

static size_t
index_argument(struct go_call *c, struct go_value index, size_t most)
{
	if (!index.type)
		go_call_fail(c, "cannot index slice/array with nil");
	if (go_kind(index) != GO_INT && go_kind(index) != GO_UINT)
		go_call_fail(c, "cannot index slice/array with type %s", index.type->name);
	if (index.i < 0 || (uint64_t)index.i > most)
		go_call_fail(c, "index out of range: " TPL_VALUE("%lld"), (long long)index.i);
	return (size_t)index.i;
}

static struct go_value
index_map(struct go_call *c, struct go_value map, struct go_value key)
{
	const struct go_type *type = map.type->key;
	struct go_value *found;

	if (!key.type && type->kind != GO_INTERFACE)
		go_call_fail(c, "value is nil; should be of type %s", type->name);
	if (key.type && !go_assignable(key.type, type)) {
		if ((go_kind(key) != GO_INT && go_kind(key) != GO_UINT) ||
		    (type->kind != GO_INT && type->kind != GO_UINT))
			go_call_fail(
			    c, "value has type %s; should be %s", key.type->name, type->name);
		key.type = type;
	}
	if (go_kind(key) == GO_SLICE || go_kind(key) == GO_MAP)
		go_call_fail(c, "runtime error: hash of unhashable type %s", key.type->name);
	found = go_map_find(map.map, key);
	return found ? tpl_stored(map.type->elem, *found) : go_zero(c->arena, map.type->elem);
}

static struct go_value
index_one(struct go_call *c, struct go_value v, struct go_value index)
{
	size_t i;
	bool nil;

	v = go_indirect(v, &nil);
	if (nil)
		go_call_fail(c, "index of nil pointer");
	switch (go_kind(v)) {
	case GO_MAP:
		return index_map(c, v, index);
	case GO_STRING:
		i = index_argument(c, index, v.len);
		if (i == v.len)
			go_call_fail(c, "reflect: string index out of range");
		return (struct go_value){ .type = &go_type_uint8, .u = (unsigned char)v.s[i] };
	case GO_SLICE:
		i = index_argument(c, index, v.list.n);
		if (i == v.list.n)
			go_call_fail(c, "reflect: slice index out of range");
		return tpl_stored(v.type->elem, v.list.items[i]);
	default:
		go_call_fail(c, "can't index item of type %s", v.type->name);
	}
}

struct go_value
tpl_fn_index(struct go_call *c)
{
	struct go_value v = concrete(c->args[0]);

	if (!v.type)
		go_call_fail(c, "index of untyped nil");
	for (size_t i = 1; i < c->n; i++)
		v = index_one(c, v, concrete(c->args[i]));
	return v;
}

/* Checks the bounds that slice() gets. at: from, to, and the new capacity. */
static void
slice_bounds(struct go_call *c, size_t len, size_t room, size_t at[3])
{
	at[0] = 0;
	at[1] = len;
	at[2] = room;
	for (size_t i = 1; i < c->n; i++)
		at[i - 1] = index_argument(c, concrete(c->args[i]), room);
	if (at[0] > at[1])
		go_call_fail(c, "invalid slice index: " TPL_VALUE("%zu > %zu"), at[0], at[1]);
	if (at[1] > at[2])
		go_call_fail(c, "invalid slice index: " TPL_VALUE("%zu > %zu"), at[1], at[2]);
}

struct go_value
tpl_fn_slice(struct go_call *c)
{
	struct go_value v = concrete(c->args[0]);
	size_t at[3];
	bool nil;

	if (!v.type)
		go_call_fail(c, "slice of untyped nil");
	v = go_indirect(v, &nil);
	if (nil)
		go_call_fail(c, "slice of nil pointer");
	if (c->n > 4)
		go_call_fail(c, "too many slice indexes: %zu", c->n - 1);
	if (go_kind(v) == GO_STRING) {
		if (c->n == 4)
			go_call_fail(c, "cannot 3-index slice a string");
		slice_bounds(c, v.len, v.len, at);
		return go_string(v.s + at[0], at[1] - at[0]);
	}
	if (go_kind(v) != GO_SLICE)
		go_call_fail(c, "can't slice item of type %s", v.type->name);
	slice_bounds(c, v.list.n, v.list.n, at);
	if (v.list.items)
		v.list.items += at[0];
	v.list.n = v.list.room = at[1] - at[0];
	return v;
}

struct go_value
tpl_fn_call(struct go_call *c)
{
	struct go_value f = concrete(c->args[0]);
	struct text name = { .arena = c->arena };

	if (!f.type)
		go_call_fail(c, "call of nil");
	/* No data has a function as its value. */
	if (c->first_arg)
		tpl_node_text(&name, c->first_arg);
	go_call_fail(c, "non-function %s of type %s", name.text ? name.text : "", f.type->name);
}

/* The arguments as one text, as html and its like take them. */
static struct go_value
joined(struct go_call *c)
{
	struct text t = { .arena = c->arena };
	bool nil;

	if (c->n == 1 && go_kind(c->args[0]) == GO_STRING)
		return c->args[0];
	for (size_t i = 0; i < c->n; i++) {
		if (go_kind(c->args[i]) == GO_POINTER)
			c->args[i] = go_indirect(c->args[i], &nil);
		if (!c->args[i].type)
			c->args[i] = go_text("<no value>");
	}
	go_print(&t, c->args, c->n);
	return go_text_value(&t);
}

struct go_value
tpl_fn_html(struct go_call *c)
{
	static const struct {
		char ch;
		const char *by;
	} escapes[] = { { '"', "&#34;" }, { '\'', "&#39;" }, { '&', "&amp;" }, { '<', "&lt;" },
		{ '>', "&gt;" }, { '\0', "\xef\xbf\xbd" } };
	struct go_value s = joined(c);
	struct text t = { .arena = c->arena };

	arena_count_bytes(c->arena, s.len);
	for (size_t i = 0; i < s.len; i++) {
		const char *by = NULL;

		for (size_t k = 0; k < sizeof escapes / sizeof escapes[0]; k++)
			if (escapes[k].ch == s.s[i])
				by = escapes[k].by;
		if (by)
			text_add(&t, by);
		else
			text_bytes(&t, s.s + i, 1);
	}
	return go_text_value(&t);
}

static void
add_js_char(struct text *t, const char *s, size_t n, uint32_t ch)
{
	if (ch < 0x80 && strchr("\\'\"", (int)ch) && ch) {
		text_bytes(t, (char[]){ '\\', (char)ch }, 2);
	} else if (ch < ' ' || (ch < 0x80 && strchr("<>&=", (int)ch)) ||
		   (ch >= 0x80 && !go_is_print(ch))) {
		text_add(t, arena_printf(t->arena, "\\u%04X", ch));
	} else {
		text_bytes(t, s, n);
	}
}

struct go_value
tpl_fn_js(struct go_call *c)
{
	struct go_value s = joined(c);
	struct text t = { .arena = c->arena };
	size_t n;

	arena_count_bytes(c->arena, s.len);
	for (size_t i = 0; i < s.len; i += n) {
		uint32_t ch = go_char(s.s + i, s.len - i, &n);

		add_js_char(&t, s.s + i, n, ch);
	}
	return go_text_value(&t);
}

struct go_value
tpl_fn_urlquery(struct go_call *c)
{
	struct go_value s = joined(c);
	struct text t = { .arena = c->arena };
	char buf[4];

	arena_count_bytes(c->arena, s.len);
	for (size_t i = 0; i < s.len; i++) {
		unsigned char ch = (unsigned char)s.s[i];

		if ((ch >= '0' && ch <= '9') || ((ch | 32) >= 'a' && (ch | 32) <= 'z') ||
		    (ch && strchr("-_.~", ch))) {
			text_bytes(&t, s.s + i, 1);
		} else if (ch == ' ') {
			text_add(&t, "+");
		} else {
			(void)snprintf(buf, sizeof buf, "%%%02X", ch);
			text_add(&t, buf);
		}
	}
	return go_text_value(&t);
}

struct go_value
tpl_fn_print(struct go_call *c)
{
	struct text t = { .arena = c->arena };

	go_print(&t, c->args, c->n);
	return go_text_value(&t);
}

struct go_value
tpl_fn_println(struct go_call *c)
{
	struct text t = { .arena = c->arena };

	go_println(&t, c->args, c->n);
	return go_text_value(&t);
}

struct go_value
tpl_fn_printf(struct go_call *c)
{
	struct text t = { .arena = c->arena };

	go_printf(&t, c->args[0].s, c->args[0].len, c->args + 1, c->n - 1);
	return go_text_value(&t);
}

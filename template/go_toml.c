/* SPDX-License-Identifier: Apache-2.0 */
/* go_toml.c: writes TOML: of a table, first the values, then the tables in it. Runs in:
 * template-renderer. */
#include "template/go_toml.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "template/go_print.h"
#include "template/go_text.h"
#include "template/go_time.h"

#define NIL_IN_ARRAY "toml: cannot encode array with nil element"

struct writer {
	struct text *out;
	const char *why; /* the sentence, after arena_leave() */
	struct go_value value;
};

/* The name of a table, "a.b". level: how many parts it has. */
struct key {
	const char *text;
	unsigned level;
};

static void write_table(struct writer *w, struct key key, struct go_value v);
static void write_element(struct writer *w, struct go_value v);

static void
fail(struct writer *w, const char *why)
{
	w->why = why;
	arena_leave(w->out->arena);
}

static void
new_line(struct writer *w)
{
	if (w->out->len > 0)
		text_add(w->out, "\n");
}

static void
indent(struct writer *w, unsigned level)
{
	for (unsigned i = 1; i < level; i++)
		text_add(w->out, "  ");
}

static void
add_quoted(struct text *out, const char *s, size_t len)
{
	static const char names[] = "\bb\tt\nn\ff\rr\"\"\\\\";
	char buf[8];

	text_add(out, "\"");
	for (size_t i = 0; i < len; i++) {
		unsigned char ch = (unsigned char)s[i];
		const char *name = names;

		while (*name && (unsigned char)*name != ch)
			name += 2;
		if (*name) {
			text_bytes(out, (char[]){ '\\', name[1] }, 2);
		} else if (ch < ' ' || ch == 0x7f) {
			(void)snprintf(buf, sizeof buf, "\\u%04x", ch);
			text_add(out, buf);
		} else {
			text_bytes(out, s + i, 1);
		}
	}
	text_add(out, "\"");
}

static void
add_key(struct text *out, struct go_value key)
{
	bool bare = key.len > 0;

	for (size_t i = 0; i < key.len; i++)
		bare &= (key.s[i] >= '0' && key.s[i] <= '9') ||
			((key.s[i] | 32) >= 'a' && (key.s[i] | 32) <= 'z') || key.s[i] == '_' ||
			key.s[i] == '-';
	if (bare)
		text_bytes(out, key.s, key.len);
	else
		add_quoted(out, key.s, key.len);
}

static struct key
inner_key(struct writer *w, struct key key, struct go_value name)
{
	struct text t = { .arena = w->out->arena };

	if (key.level > 0) {
		text_add(&t, key.text);
		text_add(&t, ".");
	}
	add_key(&t, name);
	return (struct key){ t.text, key.level + 1 };
}

static bool
is_map(struct go_value v)
{
	bool nil;

	v = go_indirect(v, &nil);
	return !nil && ((go_kind(v) == GO_MAP && v.map) ||
			   (go_kind(v) == GO_STRUCT && v.type != &go_type_time));
}

/* A list whose elements are all tables, and at least one. */
static bool
is_table_list(struct writer *w, struct go_value v)
{
	bool all = go_kind(v) == GO_SLICE && v.list.n > 0;

	for (size_t i = 0; go_kind(v) == GO_SLICE && i < v.list.n; i++) {
		if (go_is_nil(v.list.items[i]))
			fail(w, NIL_IN_ARRAY);
		if (go_kind(v.list.items[i]) == GO_CHAN || go_kind(v.list.items[i]) == GO_FUNC)
			fail(w, "unsupported type: chan");
		all &= is_map(v.list.items[i]);
	}
	return all;
}

/* The members of a map or struct, as a map whose order of keys is that of the output. */
static struct go_member *
members_of(struct writer *w, struct go_value v, size_t *ret_n)
{
	struct go_member *members;
	bool nil;

	v = go_indirect(v, &nil);
	if (go_kind(v) == GO_MAP) {
		if (v.type->key->kind != GO_STRING)
			fail(w, "toml: cannot encode a map with non-string key type");
		*ret_n = v.map->n;
		return v.map->v;
	}
	members = arena_alloc(w->out->arena, v.type->n_fields * sizeof *members);
	*ret_n = 0;
	for (size_t i = 0; i < v.type->n_fields; i++)
		if (!v.type->fields[i].hidden)
			members[(*ret_n)++] =
			    (struct go_member){ go_text(v.type->fields[i].name), v.fields[i] };
	return members;
}

static void
write_array(struct writer *w, struct go_value v)
{
	text_add(w->out, "[");
	for (size_t i = 0; i < v.list.n; i++) {
		if (i > 0)
			text_add(w->out, ", ");
		write_element(w, v.list.items[i]);
	}
	text_add(w->out, "]");
}

/* {a = 1, b = 2}; what is nil is left out, but not its comma. */
static void
write_inline_table(struct writer *w, struct go_value v)
{
	size_t n, written = 0;
	struct go_member *members = members_of(w, v, &n);

	text_add(w->out, "{");
	for (int tables = 0; tables < 2; tables++)
		for (size_t i = 0; i < n; i++) {
			struct go_value value = members[i].value;

			if ((is_map(value) || is_table_list(w, value)) != tables)
				continue;
			written++;
			if (go_is_nil(value))
				continue;
			add_key(w->out, members[i].key);
			text_add(w->out, " = ");
			write_element(w, value);
			if (written < n)
				text_add(w->out, ", ");
		}
	text_add(w->out, "}");
}

static void
write_float(struct writer *w, double f)
{
	struct text t = { .arena = w->out->arena };

	if (isnan(f) || isinf(f)) {
		text_add(w->out, isnan(f) ? "nan" : f < 0 ? "-inf" : "inf");
		return;
	}
	go_add_float(&t, f, 'g', -1);
	if (!strpbrk(t.text, ".e"))
		text_add(&t, ".0");
	text_bytes(w->out, t.text, t.len);
}

static void
write_scalar(struct writer *w, struct go_value v)
{
	struct text t = { .arena = w->out->arena };

	if (v.type->string && go_kind(v) == GO_INT && v.type == &go_type_duration) {
		go_print_value(&t, v);
		add_quoted(w->out, t.text, t.len);
	} else if (go_kind(v) == GO_INT) {
		text_add(w->out, arena_printf(t.arena, "%lld", (long long)v.i));
	} else if (go_kind(v) == GO_FLOAT) {
		write_float(w, v.f);
	} else if (v.type == &go_type_time) {
		go_format_time(w->out, go_time_ns(v), GO_RFC3339_NANO, strlen(GO_RFC3339_NANO));
	} else {
		go_print_value(w->out, v);
	}
}

static void
write_element(struct writer *w, struct go_value v)
{
	arena_step(w->out->arena, 1);
	arena_enter(w->out->arena);
	if (go_is_nil(v))
		fail(w, NIL_IN_ARRAY);
	if (go_kind(v) == GO_STRING)
		add_quoted(w->out, v.s, v.len);
	else if (go_kind(v) == GO_SLICE)
		write_array(w, v);
	else if (is_map(v))
		write_inline_table(w, v);
	else if (go_kind(v) == GO_CHAN || go_kind(v) == GO_FUNC)
		fail(w, arena_printf(w->out->arena, "unexpected type: %s", v.type->name));
	else
		write_scalar(w, v);
	arena_exit(w->out->arena);
}

static void
write_table_list(struct writer *w, struct key key, struct go_value v)
{
	if (key.level == 0)
		fail(w, "toml: top-level values must be Go maps or structs");
	for (size_t i = 0; i < v.list.n; i++) {
		new_line(w);
		indent(w, key.level);
		text_add(w->out, arena_printf(w->out->arena, "[[%s]]", key.text));
		text_add(w->out, "\n");
		write_table(w, key, v.list.items[i]);
	}
}

static void
write_member(struct writer *w, struct key outer, struct go_member m)
{
	struct key key = inner_key(w, outer, m.key);

	arena_step(w->out->arena, 1);
	if (go_is_nil(m.value))
		return;
	if (is_table_list(w, m.value)) {
		write_table_list(w, key, m.value);
	} else if (is_map(m.value)) {
		if (key.level == 1)
			new_line(w);
		indent(w, key.level);
		text_add(w->out, arena_printf(w->out->arena, "[%s]", key.text));
		new_line(w);
		write_table(w, key, m.value);
	} else {
		indent(w, key.level);
		add_key(w->out, m.key);
		text_add(w->out, " = ");
		write_element(w, m.value);
		text_add(w->out, "\n");
	}
}

static void
write_table(struct writer *w, struct key key, struct go_value v)
{
	size_t n;
	struct go_member *members = members_of(w, v, &n);

	arena_enter(w->out->arena);
	for (int tables = 0; tables < 2; tables++)
		for (size_t i = 0; i < n; i++)
			if ((is_map(members[i].value) || is_table_list(w, members[i].value)) ==
			    tables)
				write_member(w, key, members[i]);
	arena_exit(w->out->arena);
}

static void
write_top(void *writer)
{
	struct writer *w = writer;
	struct key key = { "", 0 };

	if (is_map(w->value))
		write_table(w, key, w->value);
	else if (is_table_list(w, w->value))
		write_table_list(w, key, w->value);
	else if (!go_is_nil(w->value))
		write_element(w, w->value);
}

const char *
go_write_toml(struct text *out, struct go_value v)
{
	struct writer w = { .out = out, .value = v };

	text_add(out, "");
	if (!arena_try(out->arena, write_top, &w) && !w.why)
		arena_leave(out->arena); /* after a limit was exceeded */
	return w.why;
}

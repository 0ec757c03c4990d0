/* SPDX-License-Identifier: Apache-2.0 */
/* go_json_write.c: writes JSON. Runs in: template-renderer. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "template/go_json.h"
#include "template/go_print.h"
#include "template/go_source.h"
#include "template/go_text.h"
#include "template/go_time.h"

struct writer {
	struct text *out;
	unsigned flags;
	unsigned level;
};

static const char *write_value(struct writer *w, struct go_value v);

static void
add_unicode(struct text *out, uint32_t ch)
{
	char buf[8];

	(void)snprintf(buf, sizeof buf, "\\u%04x", ch);
	text_add(out, buf);
}

/* Whether the character is escaped because of HTML and JavaScript. */
static bool
is_unsafe(const struct writer *w, uint32_t ch)
{
	return ch == 0x2028 || ch == 0x2029 ||
	       ((w->flags & GO_JSON_ESCAPE_HTML) && (ch == '<' || ch == '>' || ch == '&'));
}

static void
write_string(struct writer *w, const char *s, size_t len)
{
	static const char names[] = "\bb\ff\nn\rr\tt\"\"\\\\";
	size_t n;

	text_add(w->out, "\"");
	arena_count_bytes(w->out->arena, len);
	for (size_t i = 0; i < len; i += n) {
		uint32_t ch = go_char(s + i, len - i, &n);
		const char *name = names;

		while (*name && (unsigned char)*name != ch)
			name += 2;
		if (*name)
			text_bytes(w->out, (char[]){ '\\', name[1] }, 2);
		else if (ch < ' ' || is_unsafe(w, ch) || (ch == GO_BAD_CHAR && n == 1))
			add_unicode(w->out, ch);
		else
			text_bytes(w->out, s + i, n);
	}
	text_add(w->out, "\"");
}

/* 1e+21 and 1e-7; else without an exponent. */
static const char *
write_float(struct writer *w, double f)
{
	struct text t = { .arena = w->out->arena };
	bool exponent = f != 0 && (fabs(f) < 1e-6 || fabs(f) >= 1e21);

	go_add_float(&t, f, exponent ? 'e' : 'f', -1);
	if (isnan(f) || isinf(f))
		return arena_printf(w->out->arena, "json: unsupported value: %s", t.text);
	/* e-09 becomes e-9 */
	if (exponent && t.len > 4 && t.text[t.len - 4] == 'e' && t.text[t.len - 3] == '-' &&
	    t.text[t.len - 2] == '0') {
		t.text[t.len - 2] = t.text[t.len - 1];
		t.len--;
	}
	text_bytes(w->out, t.text, t.len);
	return NULL;
}

/* An item of a variable writes itself as %q does; what JSON does not have in it is refused. */
static const char *
write_item(struct writer *w, struct go_value v)
{
	struct text t = { .arena = w->out->arena };
	struct go_value s = v.type->string(t.arena, &v);
	size_t n;

	go_quote(&t, s.s, s.len, false);
	for (size_t i = 0; i < t.len; i += n) {
		uint32_t ch = go_char(t.text + i, t.len - i, &n);

		if (ch == '\\') {
			if (!strchr("\"\\bfnrtu", t.text[i + 1]))
				return arena_printf(t.arena,
				    "json: error calling MarshalJSON for type "
				    "dependency.NomadVarItem: invalid character '%c' in string "
				    "escape code",
				    t.text[i + 1]);
			text_bytes(w->out, t.text + i, 2);
			n = 2;
		} else if (is_unsafe(w, ch)) {
			add_unicode(w->out, ch);
		} else {
			text_bytes(w->out, t.text + i, n);
		}
	}
	return NULL;
}

static void
new_line(struct writer *w)
{
	if (!(w->flags & GO_JSON_INDENT))
		return;
	text_add(w->out, "\n");
	for (unsigned i = 0; i < w->level; i++)
		text_add(w->out, "  ");
}

/* Before the i-th element. */
static void
begin_element(struct writer *w, size_t i)
{
	if (i > 0)
		text_add(w->out, ",");
	else
		w->level++;
	new_line(w);
}

static void
end_elements(struct writer *w, size_t n, const char *close)
{
	if (n > 0) {
		w->level--;
		new_line(w);
	}
	text_add(w->out, close);
}

static void
write_key(struct writer *w, const char *s, size_t len)
{
	write_string(w, s, len);
	text_add(w->out, w->flags & GO_JSON_INDENT ? ": " : ":");
}

static const char *
write_slice(struct writer *w, struct go_value v)
{
	const char *why = NULL;

	text_add(w->out, "[");
	for (size_t i = 0; i < v.list.n && !why; i++) {
		begin_element(w, i);
		why = write_value(w, v.list.items[i]);
	}
	end_elements(w, v.list.n, "]");
	return why;
}

static int
compare_texts(const void *a, const void *b)
{
	const struct go_member *x = a, *y = b;

	return go_compare_text(x->key, y->key);
}

static const char *
write_map(struct writer *w, struct go_value v)
{
	size_t n = go_map_len(v);
	struct go_member *members = arena_alloc(w->out->arena, n * sizeof *members);
	const char *why = NULL;

	if (v.type->key->kind == GO_INTERFACE)
		return arena_printf(w->out->arena, "json: unsupported type: %s", v.type->name);
	for (size_t i = 0; i < n; i++) {
		members[i] = v.map->v[i];
		if (go_kind(members[i].key) == GO_INT)
			members[i].key = go_text(
			    arena_printf(w->out->arena, "%lld", (long long)members[i].key.i));
	}
	qsort(members, n, sizeof *members, compare_texts);
	text_add(w->out, "{");
	for (size_t i = 0; i < n && !why; i++) {
		begin_element(w, i);
		write_key(w, members[i].key.s, members[i].key.len);
		why = write_value(w, members[i].value);
	}
	end_elements(w, n, "}");
	return why;
}

static const char *
write_struct(struct writer *w, struct go_value v)
{
	const char *why = NULL;
	size_t n = 0;

	if (v.type == &go_type_time) {
		struct text t = { .arena = w->out->arena };

		go_format_time(&t, go_time_ns(v), GO_RFC3339_NANO, strlen(GO_RFC3339_NANO));
		write_string(w, t.text, t.len);
		return NULL;
	}
	if (v.type == &go_type_var_item)
		return write_item(w, v);
	text_add(w->out, "{");
	for (size_t i = 0; i < v.type->n_fields && !why; i++) {
		if (v.type->fields[i].hidden)
			continue;
		begin_element(w, n++);
		write_key(w, v.type->fields[i].name, strlen(v.type->fields[i].name));
		why = write_value(w, v.fields[i]);
	}
	end_elements(w, n, "}");
	return why;
}

static const char *
write_contents(struct writer *w, struct go_value v)
{
	bool nil;

	switch (go_kind(v)) {
	case GO_BOOL:
		text_add(w->out, v.boolean ? "true" : "false");
		return NULL;
	case GO_INT:
		text_add(w->out, arena_printf(w->out->arena, "%lld", (long long)v.i));
		return NULL;
	case GO_UINT:
		text_add(w->out, arena_printf(w->out->arena, "%llu", (unsigned long long)v.u));
		return NULL;
	case GO_FLOAT:
		return write_float(w, v.f);
	case GO_STRING:
		write_string(w, v.s, v.len);
		return NULL;
	case GO_FUNC:
	case GO_CHAN:
		return arena_printf(w->out->arena, "json: unsupported type: %s", v.type->name);
	default:
		break;
	}
	if (go_is_nil(v)) {
		text_add(w->out, "null");
		return NULL;
	}
	if (go_kind(v) == GO_SLICE)
		return write_slice(w, v);
	if (go_kind(v) == GO_MAP)
		return write_map(w, v);
	return write_struct(w, go_indirect(v, &nil));
}

static const char *
write_value(struct writer *w, struct go_value v)
{
	const char *why;

	arena_step(w->out->arena, 1);
	arena_enter(w->out->arena);
	why = write_contents(w, v);
	arena_exit(w->out->arena);
	return why;
}

const char *
go_write_json(struct text *out, struct go_value v, unsigned flags)
{
	struct writer w = { .out = out, .flags = flags };

	return write_value(&w, v);
}

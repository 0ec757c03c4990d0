/* SPDX-License-Identifier: Apache-2.0 */
/* go_print.c: prints values of any type. Runs in: template-renderer. */
#include "template/go_print.h"

#include <string.h>

#include "template/go_text.h"

#define ADDRESS 0xc000000000U

static void print_value(struct go_printer *p, struct go_value v, uint32_t verb, unsigned depth);

static void
add_text(struct go_printer *p, const char *s)
{
	text_add(p->out, s);
}

/* %!d(string=hi) */
static void
print_wrong_verb(struct go_printer *p, uint32_t verb)
{
	struct go_value arg = p->arg;

	p->wrong = true;
	add_text(p, "%!");
	go_add_char(p->out, verb);
	add_text(p, "(");
	if (go_kind(arg) == GO_INVALID || go_kind(arg) == GO_INTERFACE) {
		add_text(p, "<nil>");
	} else {
		add_text(p, arg.type->name);
		add_text(p, "=");
		print_value(p, arg, 'v', 0);
	}
	add_text(p, ")");
	p->wrong = false;
}

/* A value that prints itself. */
static bool
print_by_method(struct go_printer *p, struct go_value v, uint32_t verb)
{
	struct go_value text;

	if (p->wrong || p->sharp_v || !v.type || !v.type->string || verb >= 0x80 || !verb ||
	    !strchr("vsxXq", (int)verb))
		return false;
	if (go_kind(v) == GO_POINTER && go_is_nil(v)) {
		go_pad(p, "<nil>", 5);
		return true;
	}
	text = v.type->string(p->out->arena, &v);
	(void)go_format_string(p, text.s, text.len, verb);
	return true;
}

static void
print_map(struct go_printer *p, struct go_value v, uint32_t verb, unsigned depth)
{
	if (p->sharp_v) {
		add_text(p, v.type->name);
		if (go_is_nil(v)) {
			add_text(p, "(nil)");
			return;
		}
	}
	add_text(p, p->sharp_v ? "{" : "map[");
	for (size_t i = 0; i < go_map_len(v); i++) {
		if (i > 0)
			add_text(p, p->sharp_v ? ", " : " ");
		print_value(p, v.map->v[i].key, verb, depth + 1);
		add_text(p, ":");
		print_value(p, v.map->v[i].value, verb, depth + 1);
	}
	add_text(p, p->sharp_v ? "}" : "]");
}

static void
print_struct(struct go_printer *p, struct go_value v, uint32_t verb, unsigned depth)
{
	if (p->sharp_v)
		add_text(p, v.type->name);
	add_text(p, "{");
	for (size_t i = 0; i < v.type->n_fields; i++) {
		if (i > 0)
			add_text(p, p->sharp_v ? ", " : " ");
		if (p->plus_v || p->sharp_v) {
			add_text(p, v.type->fields[i].name);
			add_text(p, ":");
		}
		print_value(p, v.fields[i], verb, depth + 1);
	}
	add_text(p, "}");
}

static void
print_slice(struct go_printer *p, struct go_value v, uint32_t verb, unsigned depth)
{
	if (p->sharp_v) {
		add_text(p, v.type->name);
		if (go_is_nil(v)) {
			add_text(p, "(nil)");
			return;
		}
	}
	add_text(p, p->sharp_v ? "{" : "[");
	for (size_t i = 0; i < v.list.n; i++) {
		if (i > 0)
			add_text(p, p->sharp_v ? ", " : " ");
		print_value(p, v.list.items[i], verb, depth + 1);
	}
	add_text(p, p->sharp_v ? "}" : "]");
}

/* What is printed of a pointer is no real address: it differs from run to run in the original. */
static void
print_address(struct go_printer *p, struct go_value v, uint32_t verb)
{
	bool nil = go_is_nil(v) && go_kind(v) != GO_CHAN && go_kind(v) != GO_FUNC;

	bool sharp = p->sharp;

	if (verb == 'v' && p->sharp_v) {
		add_text(p, "(");
		add_text(p, v.type->name);
		add_text(p, nil ? ")(nil)" : ")(0xc000000000)");
	} else if (verb == 'v' && nil) {
		go_pad(p, "<nil>", 5);
	} else if (verb == 'v' || verb == 'p') {
		p->sharp = !sharp;
		(void)go_format_int(p, nil ? 0 : ADDRESS, false, 'x');
		p->sharp = sharp;
	} else if (verb >= 0x80 || !verb || !strchr("bodxX", (int)verb)) {
		print_wrong_verb(p, verb);
	} else {
		(void)go_format_int(p, nil ? 0 : ADDRESS, false, verb);
	}
}

static void
print_contents(struct go_printer *p, struct go_value v, uint32_t verb, unsigned depth)
{
	bool known = true;

	switch (go_kind(v)) {
	case GO_BOOL:
		known = go_format_bool(p, v.boolean, verb);
		break;
	case GO_INT:
	case GO_UINT:
		known = go_format_int(p, v.u, go_kind(v) == GO_INT, verb);
		break;
	case GO_FLOAT:
		known = go_format_float(p, v.f, verb);
		break;
	case GO_STRING:
		known = go_format_string(p, v.s, v.len, verb);
		break;
	case GO_SLICE:
		print_slice(p, v, verb, depth);
		break;
	case GO_MAP:
		print_map(p, v, verb, depth);
		break;
	case GO_STRUCT:
		print_struct(p, v, verb, depth);
		break;
	case GO_POINTER:
		if (depth == 0 && !go_is_nil(v)) {
			add_text(p, "&");
			v.type = v.type->elem;
			print_value(p, v, verb, depth + 1);
			break;
		}
		print_address(p, v, verb);
		break;
	case GO_FUNC:
	case GO_CHAN:
		print_address(p, v, verb);
		break;
	default: /* a nil in a list or map */
		add_text(p, p->sharp_v ? "interface {}(nil)" : "<nil>");
		break;
	}
	if (!known)
		print_wrong_verb(p, verb);
}

static void
print_value(struct go_printer *p, struct go_value v, uint32_t verb, unsigned depth)
{
	arena_step(p->out->arena, 1);
	if (depth > 0 && v.type)
		p->arg = v;
	if (print_by_method(p, v, verb))
		return;
	arena_enter(p->out->arena);
	print_contents(p, v, verb, depth);
	arena_exit(p->out->arena);
}

void
go_print_verb(struct go_printer *p, struct go_value v, uint32_t verb)
{
	if (go_kind(v) == GO_INTERFACE)
		v = go_nothing;
	p->arg = v;
	if (!v.type) {
		if (verb == 'v' || verb == 'T')
			go_pad(p, "<nil>", 5);
		else
			print_wrong_verb(p, verb);
	} else if (verb == 'w') {
		print_wrong_verb(p, verb);
	} else if (verb == 'T') {
		(void)go_format_string(p, v.type->name, strlen(v.type->name), 's');
	} else if (verb == 'p') {
		if (go_kind(v) == GO_POINTER || go_kind(v) == GO_MAP || go_kind(v) == GO_SLICE ||
		    go_kind(v) == GO_FUNC || go_kind(v) == GO_CHAN)
			print_address(p, v, verb);
		else
			print_wrong_verb(p, verb);
	} else {
		print_value(p, v, verb, 0);
	}
}

void
go_print_value(struct text *out, struct go_value v)
{
	struct go_printer p = { .out = out };

	go_print_verb(&p, v, 'v');
}

void
go_print(struct text *out, const struct go_value *args, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (i > 0 && go_kind(args[i]) != GO_STRING && go_kind(args[i - 1]) != GO_STRING)
			text_add(out, " ");
		go_print_value(out, args[i]);
	}
}

void
go_println(struct text *out, const struct go_value *args, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (i > 0)
			text_add(out, " ");
		go_print_value(out, args[i]);
	}
	text_add(out, "\n");
}

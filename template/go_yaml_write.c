/* SPDX-License-Identifier: Apache-2.0 */
/* go_yaml_write.c: writes YAML with libyaml's emitter, whose translation the original has. Runs in:
 * template-renderer. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistr.h>
#include <yaml.h>

#include "template/go_print.h"
#include "template/go_text.h"
#include "template/go_time.h"
#include "template/go_yaml.h"

struct writer {
	struct go_call *c;
	struct text *out;
	struct go_value value;
	yaml_emitter_t emitter;
	const char *problem;
};

static void write_value(struct writer *w, struct go_value v);

static void
fail(struct writer *w, const char *problem)
{
	w->problem = problem;
	arena_leave(w->out->arena);
}

/* ok: whether the event could be made. */
static void
emit(struct writer *w, yaml_event_t *event, int ok)
{
	arena_step(w->out->arena, 1);
	if (!ok)
		fail(w, "no memory is left to write YAML");
	if (!yaml_emitter_emit(&w->emitter, event))
		fail(w, w->emitter.problem
			    ? arena_printf(w->out->arena, "toYAML: yaml: %s", w->emitter.problem)
			    : "unknown problem generating YAML content");
}

static void
write_scalar(
    struct writer *w, const char *s, size_t len, const char *tag, yaml_scalar_style_t style)
{
	yaml_event_t event;
	int ok = yaml_scalar_event_initialize(&event, NULL, (const yaml_char_t *)tag,
	    (const yaml_char_t *)s, (int)len, !tag, !tag, style);

	arena_count_bytes(w->out->arena, len);
	emit(w, &event, ok);
}

static void
write_plain(struct writer *w, const char *s)
{
	write_scalar(w, s, strlen(s), NULL, YAML_PLAIN_SCALAR_STYLE);
}

/* 12:30 and the like, a number of base 60 in YAML 1.1. */
static bool
is_base_60(struct go_value v)
{
	size_t i = 0, n, parts = 0;

	if (v.len > 0 && (*v.s == '+' || *v.s == '-'))
		i++;
	if (i == v.len || !isdigit((unsigned char)v.s[i]))
		return false;
	while (i < v.len && (isdigit((unsigned char)v.s[i]) || v.s[i] == '_'))
		i++;
	for (; i < v.len && v.s[i] == ':'; i += 1 + n, parts++) {
		for (n = 0; i + 1 + n < v.len && isdigit((unsigned char)v.s[i + 1 + n]); n++)
			;
		if (n < 1 || n > 2 || (n == 2 && v.s[i + 1] > '5'))
			return false;
	}
	if (i < v.len && v.s[i] == '.')
		for (i++; i < v.len && (isdigit((unsigned char)v.s[i]) || v.s[i] == '_'); i++)
			;
	return parts > 0 && i == v.len;
}

static void
write_string(struct writer *w, struct go_value v)
{
	yaml_scalar_style_t style = YAML_DOUBLE_QUOTED_SCALAR_STYLE;
	struct go_value resolved;

	if (u8_check((const uint8_t *)v.s, v.len))
		fail(w, "a text that is not UTF-8 cannot become YAML");
	if (memchr(v.s, '\n', v.len))
		style = YAML_LITERAL_SCALAR_STYLE;
	else if (go_yaml_is_string(w->out->arena, v.s, v.len, &resolved) && !is_base_60(v))
		style = YAML_PLAIN_SCALAR_STYLE;
	write_scalar(w, v.s, v.len, NULL, style);
}

static void
write_float(struct writer *w, double f)
{
	struct text t = { .arena = w->out->arena };

	go_add_float(&t, f, 'g', -1);
	if (strcmp(t.text, "+Inf") == 0)
		write_plain(w, ".inf");
	else if (strcmp(t.text, "-Inf") == 0)
		write_plain(w, "-.inf");
	else
		write_plain(w, strcmp(t.text, "NaN") == 0 ? ".nan" : t.text);
}

static void
write_sequence(struct writer *w, struct go_value v)
{
	yaml_event_t event;

	emit(w, &event,
	    yaml_sequence_start_event_initialize(&event, NULL, NULL, 1, YAML_BLOCK_SEQUENCE_STYLE));
	for (size_t i = 0; i < v.list.n; i++)
		write_value(w, v.list.items[i]);
	emit(w, &event, yaml_sequence_end_event_initialize(&event));
}

static double
key_number(struct go_value v, bool *ret_is)
{
	*ret_is = go_kind(v) == GO_BOOL || go_kind(v) == GO_INT || go_kind(v) == GO_UINT ||
		  go_kind(v) == GO_FLOAT;
	return go_kind(v) == GO_BOOL   ? v.boolean
	       : go_kind(v) == GO_UINT ? (double)v.u
	       : go_kind(v) == GO_INT  ? (double)v.i
				       : v.f;
}

struct cursor {
	struct go_value s;
	size_t at, n;
	uint32_t ch;
};

static bool
look(struct cursor *c)
{
	if (c->at >= c->s.len)
		return false;
	c->ch = go_char(c->s.s + c->at, c->s.len - c->at, &c->n);
	return true;
}

static int64_t
digits_at(struct cursor c, int64_t value, size_t *ret_end)
{
	for (; look(&c) && go_is_digit(c.ch); c.at += c.n)
		value = (int64_t)((uint64_t)value * 10 + c.ch - '0');
	*ret_end = c.at;
	return value;
}

/* Whether all digits before this place, up to the last character that is none, are 0. */
static bool
only_zeros_before(struct go_value s, size_t at)
{
	for (; at > 0 && isdigit((unsigned char)s.s[at - 1]); at--)
		if (s.s[at - 1] != '0')
			return false;
	return true;
}

static bool
is_less(struct cursor *a, struct cursor *b, bool after_digit)
{
	bool letter_a = go_is_letter(a->ch), letter_b = go_is_letter(b->ch);
	int64_t x, y, start = 0;
	size_t end_a, end_b;

	if (letter_a && letter_b)
		return a->ch < b->ch;
	if (letter_a || letter_b)
		return after_digit ? letter_a : letter_b;
	if ((a->ch == '0' || b->ch == '0') && !only_zeros_before(a->s, a->at))
		start = 1;
	x = digits_at(*a, start, &end_a);
	y = digits_at(*b, start, &end_b);
	if (x != y)
		return x < y;
	if (end_a - a->at != end_b - b->at)
		return end_a - a->at < end_b - b->at;
	return a->ch < b->ch;
}

/* Numbers in texts count as numbers: a2 is before a10. */
static bool
is_text_less(struct go_value s, struct go_value t)
{
	struct cursor a = { .s = s }, b = { .s = t };
	bool digit = false;

	for (; look(&a) && look(&b); a.at += a.n, b.at += b.n) {
		if (a.ch != b.ch)
			return is_less(&a, &b, digit);
		digit = go_is_digit(a.ch);
	}
	return a.at >= s.len && b.at < t.len;
}

static bool
is_key_less(struct go_value a, struct go_value b)
{
	bool number_a, number_b;
	double x = key_number(a, &number_a), y = key_number(b, &number_b);

	if (number_a && number_b)
		return x != y ? x < y : go_kind(a) < go_kind(b);
	if (go_kind(a) != GO_STRING || go_kind(b) != GO_STRING)
		return go_kind(a) < go_kind(b);
	return is_text_less(a, b);
}

static int
compare_keys(const void *a, const void *b)
{
	const struct go_member *x = a, *y = b;

	return is_key_less(x->key, y->key) ? -1 : is_key_less(y->key, x->key);
}

static void
begin_mapping(struct writer *w)
{
	yaml_event_t event;

	emit(w, &event,
	    yaml_mapping_start_event_initialize(&event, NULL, NULL, 1, YAML_BLOCK_MAPPING_STYLE));
}

static void
end_mapping(struct writer *w)
{
	yaml_event_t event;

	emit(w, &event, yaml_mapping_end_event_initialize(&event));
}

static void
write_map(struct writer *w, struct go_value v)
{
	size_t n = go_map_len(v);
	struct go_member *members = arena_alloc(w->out->arena, n * sizeof *members);

	arena_step(w->out->arena, 4 * n);
	if (n > 0)
		memcpy(members, v.map->v, n * sizeof *members);
	qsort(members, n, sizeof *members, compare_keys);
	begin_mapping(w);
	for (size_t i = 0; i < n; i++) {
		write_value(w, members[i].key);
		write_value(w, members[i].value);
	}
	end_mapping(w);
}

/* Names of fields are in small letters. */
static void
write_struct(struct writer *w, struct go_value v)
{
	if (v.type == &go_type_time) {
		struct text t = { .arena = w->out->arena };

		go_format_time(&t, go_time_ns(v), GO_RFC3339_NANO, strlen(GO_RFC3339_NANO));
		write_plain(w, t.text);
		return;
	}
	begin_mapping(w);
	for (size_t i = 0; i < v.type->n_fields; i++) {
		char *name = arena_strndup(
		    w->out->arena, v.type->fields[i].name, strlen(v.type->fields[i].name));

		if (v.type->fields[i].hidden)
			continue;
		for (char *c = name; *c; c++)
			*c = (char)tolower((unsigned char)*c);
		write_plain(w, name);
		write_value(w, v.fields[i]);
	}
	end_mapping(w);
}

static void
write_contents(struct writer *w, struct go_value v)
{
	struct text t = { .arena = w->out->arena };
	bool nil;

	switch (go_kind(v)) {
	case GO_BOOL:
		write_plain(w, v.boolean ? "true" : "false");
		break;
	case GO_INT:
		if (v.type == &go_type_duration)
			go_print_value(&t, v);
		write_plain(w, t.text ? t.text : arena_printf(t.arena, "%lld", (long long)v.i));
		break;
	case GO_UINT:
		write_plain(w, arena_printf(t.arena, "%llu", (unsigned long long)v.u));
		break;
	case GO_FLOAT:
		write_float(w, v.f);
		break;
	case GO_STRING:
		write_string(w, v);
		break;
	case GO_SLICE:
		write_sequence(w, v);
		break;
	case GO_MAP:
		write_map(w, v);
		break;
	case GO_STRUCT:
	case GO_POINTER:
		v = go_indirect(v, &nil);
		if (nil)
			write_plain(w, "null");
		else
			write_struct(w, v);
		break;
	case GO_FUNC:
	case GO_CHAN:
		fail(w, arena_printf(t.arena, "cannot marshal type: %s", v.type->name));
		break;
	default:
		write_plain(w, "null");
		break;
	}
}

static void
write_value(struct writer *w, struct go_value v)
{
	arena_enter(w->out->arena);
	write_contents(w, v);
	arena_exit(w->out->arena);
}

static int
append(void *writer, unsigned char *bytes, size_t n)
{
	struct writer *w = writer;

	text_bytes(w->out, (const char *)bytes, n);
	return 1;
}

static void
write_document(void *writer)
{
	struct writer *w = writer;
	yaml_event_t event;

	emit(w, &event, yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING));
	emit(w, &event, yaml_document_start_event_initialize(&event, NULL, NULL, NULL, 1));
	write_value(w, w->value);
	emit(w, &event, yaml_document_end_event_initialize(&event, 1));
	w->emitter.open_ended = 0;
	emit(w, &event, yaml_stream_end_event_initialize(&event));
}

/* libyaml's memory is not in the arena, so its emitter is deleted after errors too. */
void
go_write_yaml(struct go_call *c, struct text *out, struct go_value v)
{
	struct writer *w = arena_new(c->arena, struct writer);
	bool ok;

	w->c = c;
	w->out = out;
	w->value = v;
	if (!yaml_emitter_initialize(&w->emitter))
		go_call_fail(c, "no memory is left to write YAML");
	yaml_emitter_set_output(&w->emitter, append, w);
	yaml_emitter_set_unicode(&w->emitter, 1);
	ok = arena_try(c->arena, write_document, w);
	yaml_emitter_delete(&w->emitter);
	if (!ok && w->problem)
		go_call_fail(c, "%s", w->problem);
	if (!ok)
		arena_leave(c->arena);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* encode.c: walks over a struct by its field table, for any format, and encodes JSON. Runs in:
 * supervisor, cli. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/decimal.h"
#include "common/duration.h"
#include "common/mem.h"
#include "model/engine/msgpack.h"
#include "model/engine/table.h"
#include "model/engine/walk.h"

struct walk {
	const struct sink *sink;
	void *arg;
	enum model_flags flags;
};

static void walk_struct(const struct walk *w, const struct type *type, const void *obj);
static void walk_value(const struct walk *w, const struct field *f, const void *at);

static void
put_string(const struct walk *w, const char *s)
{
	w->sink->string(w->arg, str(s), strlen(str(s)));
}

static void
put_key(const struct walk *w, const char *key)
{
	w->sink->key(w->arg, str(key), strlen(str(key)), false);
}

/* The state of a walk over raw JSON. */
struct raw_walk {
	const struct walk *w;
	bool nulls; /* keep nulls inside lists and objects */
};

static void walk_raw(const struct raw_walk *r, const json_t *json, unsigned depth);

static void
walk_raw_object(const struct raw_walk *r, json_t *json, unsigned depth)
{
	const struct walk *w = r->w;
	const char *key;
	json_t *value;
	size_t n = 0;

	json_object_foreach (json, key, value)
		n += r->nulls || !json_is_null(value);
	w->sink->open(w->arg, true, n);
	json_object_foreach (json, key, value) {
		if (!r->nulls && json_is_null(value))
			continue;
		w->sink->key(w->arg, key, strlen(key), false);
		walk_raw(r, value, depth - 1);
	}
	w->sink->close(w->arg, true);
}

static void
walk_raw_array(const struct raw_walk *r, json_t *json, unsigned depth)
{
	const struct walk *w = r->w;
	json_t *value;
	size_t i, n = 0;

	json_array_foreach (json, i, value)
		n += r->nulls || !json_is_null(value);
	w->sink->open(w->arg, false, n);
	json_array_foreach (json, i, value)
		if (r->nulls || !json_is_null(value))
			walk_raw(r, value, depth - 1);
	w->sink->close(w->arg, false);
}

static void
walk_raw(const struct raw_walk *r, const json_t *json, unsigned depth)
{
	const struct walk *w = r->w;

	if (depth == 0)
		return w->sink->null(w->arg);
	switch (json_typeof(json)) {
	case JSON_OBJECT:
		return walk_raw_object(r, (json_t *)json, depth);
	case JSON_ARRAY:
		return walk_raw_array(r, (json_t *)json, depth);
	case JSON_STRING:
		return w->sink->string(w->arg, json_string_value(json), json_string_length(json));
	case JSON_INTEGER:
		return w->sink->integer(w->arg, json_integer_value(json));
	case JSON_REAL:
		return w->sink->real(w->arg, json_real_value(json));
	case JSON_NULL:
		return w->sink->null(w->arg);
	default:
		return w->sink->boolean(w->arg, json_is_true(json));
	}
}

static void
walk_elements(
    const struct walk *w, const struct any_list *l, const struct type *item, size_t key_size)
{
	size_t i, step = key_size + item->size;

	w->sink->open(w->arg, key_size > 0, l->n);
	for (i = 0; i < l->n; i++) {
		if (key_size)
			put_key(w, *(char **)(l->v + i * step));
		walk_struct(w, item, l->v + i * step + key_size);
	}
	w->sink->close(w->arg, key_size > 0);
}

static void
walk_strings(const struct walk *w, const struct field *f, const struct strings *l)
{
	size_t i;
	bool set = f->kind == FIELD_SET;

	w->sink->open(w->arg, set, l->n);
	for (i = 0; i < l->n; i++) {
		if (set) {
			put_key(w, l->v[i]);
			w->sink->null(w->arg);
		} else {
			put_string(w, l->v[i]);
		}
	}
	w->sink->close(w->arg, set);
}

static void
walk_ints(const struct walk *w, const struct ints *l)
{
	size_t i;

	w->sink->open(w->arg, false, l->n);
	for (i = 0; i < l->n; i++)
		w->sink->integer(w->arg, l->v[i]);
	w->sink->close(w->arg, false);
}

static void
walk_string_map(const struct walk *w, const struct string_map *m)
{
	size_t i;

	w->sink->open(w->arg, true, m->n);
	for (i = 0; i < m->n; i++) {
		put_key(w, m->v[i].key);
		put_string(w, m->v[i].value);
	}
	w->sink->close(w->arg, true);
}

static void
walk_int_map(const struct walk *w, const struct int_map *m)
{
	size_t i;

	w->sink->open(w->arg, true, m->n);
	for (i = 0; i < m->n; i++) {
		put_key(w, m->v[i].key);
		w->sink->integer(w->arg, m->v[i].value);
	}
	w->sink->close(w->arg, true);
}

static void
walk_enum(const struct walk *w, const struct field *f, unsigned value)
{
	if (f->flags & FIELD_AS_NUMBER)
		w->sink->integer(w->arg, value);
	else
		put_string(w, value < f->n_names ? f->names[value] : "");
}

static void
walk_raws(const struct walk *w, const struct raws *l)
{
	size_t i;

	w->sink->open(w->arg, false, l->n);
	for (i = 0; i < l->n; i++)
		w->sink->raw(w->arg, l->v[i].data, l->v[i].len);
	w->sink->close(w->arg, false);
}

/* A string, or bytes that are base64 in memory. */
static void
walk_text(const struct walk *w, const struct field *f, const char *s)
{
	if ((f->flags & FIELD_BYTES) && w->sink->bytes)
		w->sink->bytes(w->arg, str(s));
	else
		put_string(w, s);
}

/* JSON parsers handle 63 bits: a larger number (a file system's id) becomes a string, so that no
 * digit is lost. */
static void
walk_uint(const struct walk *w, uint64_t n)
{
	char text[24];

	if (w->sink->uinteger)
		return w->sink->uinteger(w->arg, n);
	if (n <= INT64_MAX)
		return w->sink->integer(w->arg, (int64_t)n);
	(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)n);
	put_string(w, text);
}

static void
walk_int(const struct walk *w, int64_t n)
{
	if (n == MODEL_UNSET)
		w->sink->null(w->arg);
	else
		w->sink->integer(w->arg, n);
}

static void
walk_duration(const struct walk *w, int64_t ns)
{
	char text[DURATION_SIZE] = "";

	if (ns != 0)
		duration_format(ns, text);
	put_string(w, text);
}

/* Lists, maps, pointers and raw JSON that are not nil. */
static void
walk_held(const struct walk *w, const struct field *f, const void *at)
{
	const struct type *type = f->shown && w->sink->json ? f->shown : f->sub;
	/* Peers that decode msgpack into structs crash at a nil among them; a driver's block has
	 * none. */
	const struct raw_walk raw = { .w = w,
		.nulls = w->sink->json || f->flags & FIELD_AS_OBJECT };

	switch ((enum field_kind)f->kind) {
	case FIELD_POINTER:
		return walk_struct(w, type, *(void *const *)at);
	case FIELD_LIST:
		return walk_elements(w, at, type, 0);
	case FIELD_MAP:
		return walk_elements(w, at, f->sub, MAP_VALUE_OFFSET);
	case FIELD_STRINGS:
	case FIELD_SET:
		return walk_strings(w, f, at);
	case FIELD_INTS:
		return walk_ints(w, at);
	case FIELD_STRING_MAP:
		return walk_string_map(w, at);
	case FIELD_INT_MAP:
		return walk_int_map(w, at);
	case FIELD_RAWS:
		return walk_raws(w, at);
	default:
		return walk_raw(&raw, *(json_t *const *)at, MODEL_DEPTH_MAX);
	}
}

static void
walk_nil(const struct walk *w, const struct field *f)
{
	bool map = f->kind != FIELD_LIST && f->kind != FIELD_STRINGS && f->kind != FIELD_INTS;

	if (!(f->flags & FIELD_NOT_NIL))
		return w->sink->null(w->arg);
	w->sink->open(w->arg, map, 0);
	w->sink->close(w->arg, map);
}

static void
walk_secret(const struct walk *w, const struct field *f, const void *at)
{
	if (f->kind != FIELD_STRINGS || !((const struct strings *)at)->n)
		return w->sink->null(w->arg);
	w->sink->open(w->arg, false, 1);
	put_string(w, "[REDACTED]");
	w->sink->close(w->arg, false);
}

static void
walk_value(const struct walk *w, const struct field *f, const void *at)
{
	if (f->flags & FIELD_SECRET && w->sink->json)
		return walk_secret(w, f, at);
	switch ((enum field_kind)f->kind) {
	case FIELD_BOOL:
		return w->sink->boolean(w->arg, *(const bool *)at);
	case FIELD_OPT_BOOL:
		if (*(const unsigned *)at == OPT_UNSET)
			return w->sink->null(w->arg);
		return w->sink->boolean(w->arg, *(const unsigned *)at == OPT_TRUE);
	case FIELD_DURATION:
		if (f->flags & FIELD_AS_TEXT && w->sink->json)
			return walk_duration(w, *(const int64_t *)at);
		return walk_int(w, *(const int64_t *)at);
	case FIELD_INT:
		return walk_int(w, *(const int64_t *)at);
	case FIELD_UINT:
		return walk_uint(w, *(const uint64_t *)at);
	case FIELD_DOUBLE:
		return w->sink->real(w->arg, *(const double *)at);
	case FIELD_STRING:
		return walk_text(w, f, *(char *const *)at);
	case FIELD_TIME:
		if (w->sink->json && !*(const int64_t *)at)
			return w->sink->null(w->arg);
		return w->sink->time(w->arg, *(const int64_t *)at);
	case FIELD_ENUM:
		return walk_enum(w, f, *(const unsigned *)at);
	case FIELD_STRUCT:
		return walk_struct(w, f->sub, at);
	default:
		if (!*(void *const *)at)
			return walk_nil(w, f);
		return walk_held(w, f, at);
	}
}

static bool
is_shown(const struct walk *w, const struct field *f, const void *obj)
{
	if (f->flags & (w->sink->json ? FIELD_NO_JSON : FIELD_NO_WIRE))
		return false;
	if (f->flags & FIELD_SEALED && w->flags & MODEL_ROW)
		return false;
	/* Peers decode a member that is left out to null. */
	if (f->flags & FIELD_NOT_NIL && !w->sink->json)
		return true;
	return !(w->flags & MODEL_COMPACT || f->flags & FIELD_OMIT_EMPTY) ||
	       !field_is_empty(f, obj);
}

static void
walk_struct(const struct walk *w, const struct type *type, const void *obj)
{
	const struct field *f, *end = type->fields + type->n;
	size_t shown = 0;

	if (type->bare)
		return walk_value(w, type->fields, field_at(type->fields, obj));
	if (w->sink->counts)
		for (f = type->fields; f < end; f++)
			shown += is_shown(w, f, obj);
	w->sink->open(w->arg, true, shown);
	for (f = type->fields; f < end; f++) {
		if (!is_shown(w, f, obj))
			continue;
		if (w->sink->json || !f->wire)
			w->sink->key(w->arg, f->name, f->name_len, true);
		else
			w->sink->key(w->arg, f->wire, strlen(f->wire), true);
		walk_value(w, f, field_at(f, obj));
	}
	w->sink->close(w->arg, true);
}

void
model_walk(const struct type *type, const void *obj, enum model_flags flags,
    const struct sink *sink, void *arg)
{
	const struct walk w = { .sink = sink, .arg = arg, .flags = flags };

	walk_struct(&w, type, obj);
}

struct text_sink {
	struct text *text;
	bool indent;
	bool first; /* the first in its container: no comma before it */
	bool after_key;
	unsigned depth;
};

static void
text_newline(struct text_sink *s)
{
	unsigned i;

	if (!s->indent)
		return;
	text_append(s->text, "\n", 1);
	for (i = 0; i < s->depth; i++)
		text_append(s->text, "  ", 2);
}

/* Appends the comma or line break that a value or a key needs before it. */
static void
text_separate(struct text_sink *s)
{
	if (s->after_key) {
		s->after_key = false;
		return;
	}
	if (s->depth == 0)
		return;
	if (!s->first)
		text_append(s->text, ",", 1);
	s->first = false;
	text_newline(s);
}

static void
text_null(void *arg)
{
	struct text_sink *s = arg;

	text_separate(s);
	text_append(s->text, "null", 4);
}

static void
text_boolean(void *arg, bool b)
{
	struct text_sink *s = arg;

	text_separate(s);
	text_append(s->text, b ? "true" : "false", b ? 4 : 5);
}

static void
text_integer(void *arg, int64_t n)
{
	struct text_sink *s = arg;
	uint64_t rest = n < 0 ? -(uint64_t)n : (uint64_t)n;
	char buf[24], *p = buf + sizeof(buf);

	do
		*--p = (char)('0' + rest % 10);
	while (rest /= 10);
	if (n < 0)
		*--p = '-';
	text_separate(s);
	text_append(s->text, p, (size_t)(buf + sizeof(buf) - p));
}

/* Writes a real with a dot or an exponent, so that it is read as a real again. JSON has no
 * infinity. */
static void
text_real(void *arg, double d)
{
	struct text_sink *s = arg;
	char buf[REAL_TEXT_SIZE + 2];

	if (!isfinite(d))
		return text_null(arg);
	(void)real_format(d, buf);
	if (!strpbrk(buf, ".e"))
		strcat(buf, ".0");
	text_separate(s);
	text_append(s->text, buf, strlen(buf));
}

static void
text_string(void *arg, const char *string, size_t len)
{
	struct text_sink *s = arg;

	text_separate(s);
	text_json_string(s->text, string);
}

static void
text_time(void *arg, int64_t ns)
{
	char buf[RFC3339_SIZE];

	time_format(ns, buf);
	text_string(arg, buf, strlen(buf));
}

static void
text_open(void *arg, bool map, size_t n)
{
	struct text_sink *s = arg;

	text_separate(s);
	text_append(s->text, map ? "{" : "[", 1);
	s->depth++;
	s->first = true;
}

static void
text_close(void *arg, bool map)
{
	struct text_sink *s = arg;

	s->depth--;
	if (!s->first)
		text_newline(s);
	s->first = false;
	text_append(s->text, map ? "}" : "]", 1);
}

static void
text_key(void *arg, const char *key, size_t len, bool plain)
{
	struct text_sink *s = arg;
	char *to;

	text_separate(s);
	s->after_key = true;
	if (!plain) {
		text_json_string(s->text, key);
		text_append(s->text, ": ", s->indent ? 2 : 1);
		return;
	}
	to = text_room(s->text, len + 4);
	*to++ = '"';
	to = mempcpy(to, key, len);
	*to++ = '"';
	*to++ = ':';
	if (s->indent)
		*to++ = ' ';
	text_end(s->text, to);
}

static const struct sink text_sink = {
	.json = true,
	.null = text_null,
	.boolean = text_boolean,
	.integer = text_integer,
	.real = text_real,
	.string = text_string,
	.time = text_time,
	.open = text_open,
	.close = text_close,
	.key = text_key,
};

void
model_to_text(const struct type *type, const void *obj, enum model_flags flags, struct text *t)
{
	struct text_sink s = { .text = t, .indent = flags & MODEL_INDENT };

	model_walk(type, obj, flags, &text_sink, &s);
}

json_t *
model_to_json(const struct type *type, const void *obj, enum model_flags flags)
{
	struct text t = { 0 };
	json_t *made;

	model_to_text(type, obj, flags & MODEL_COMPACT, &t);
	made = mem_need(json_loadb(t.text, t.len, JSON_DECODE_ANY, NULL));
	text_done(&t);
	return made;
}

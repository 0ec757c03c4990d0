/* SPDX-License-Identifier: Apache-2.0 */
/* decode.c: decodes JSON into any struct by its field table. Runs in: supervisor, cli. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "common/duration.h"
#include "common/mem.h"
#include "model/engine/table.h"
#include "model/engine/walk.h"

void
place_format(const struct place *p, char *ret, size_t size)
{
	size_t len;

	ret[0] = '\0';
	if (!p)
		return;
	place_format(p->up, ret, size);
	len = strlen(ret);
	if (!p->name)
		(void)snprintf(ret + len, size - len, "[%zu]", p->index);
	else if (p->key)
		(void)snprintf(ret + len, size - len, "[\"%s\"]", p->name);
	else
		(void)snprintf(ret + len, size - len, "%s%s", len ? "." : "", p->name);
}

bool
place_is_sealed(const struct place *p)
{
	for (; p; p = p->up)
		if (p->sealed)
			return true;
	return false;
}

/* Describes a value for an error sentence, truncated. */
static void
describe_value(const json_t *json, bool secret, char *ret, size_t size)
{
	cleanup_free char *text = NULL;

	if (!json || json_is_object(json) || json_is_array(json)) {
		(void)snprintf(ret, size, "%s",
		    !json                  ? "nothing"
		    : json_is_object(json) ? "an object"
					   : "a list");
		return;
	}
	if (secret) {
		(void)snprintf(ret, size, "something else");
		return;
	}
	text = mem_need(json_text(json, JSON_ENSURE_ASCII));
	if (strlen(text) >= size)
		memcpy(text + size - 5, "...\"", 5);
	(void)snprintf(ret, size, "%s", text);
}

static int
refuse_value(const struct place *at, const char *expected, const json_t *found, struct err *e)
{
	char path[256], what[64];

	place_format(at, path, sizeof(path));
	describe_value(found, place_is_sealed(at), what, sizeof(what));
	return err_say(
	    e, -EINVAL, "%s%sexpected %s, found %s", path, *path ? ": " : "", expected, what);
}

/* Copies the string to the heap; NULL for an empty one. A NUL inside is rejected because it would
 * truncate the string. */
static int
decode_string(const json_t *json, char **ret, const struct place *at, struct err *e)
{
	const char *s = json_string_value(json);

	if (!s)
		return refuse_value(at, "a string", json, e);
	if (strlen(s) != json_string_length(json))
		return refuse_value(at, "a string without NUL", json, e);
	free(*ret);
	*ret = *s ? mem_strdup(s) : NULL;
	return 0;
}

static int
decode_int(const json_t *json, int64_t min, int64_t *ret, const struct place *at, struct err *e)
{
	double d;
	int64_t n;

	if (json_is_integer(json)) {
		n = json_integer_value(json);
	} else if (json_is_real(json)) {
		d = json_real_value(json);
		if (d != trunc(d) || fabs(d) > 9e15)
			return refuse_value(at, "a whole number", json, e);
		n = (int64_t)d;
	} else {
		return refuse_value(at, "a number", json, e);
	}
	if (n < min)
		return refuse_value(
		    at, min < 0 ? "a number within 64 bits" : "a number of 0 or more", json, e);
	*ret = n;
	return 0;
}

/* A string where the number needs 64 bits: see encode.c. */
static int
decode_uint(const json_t *json, uint64_t *ret, const struct place *at, struct err *e)
{
	const char *s = json_string_value(json);
	unsigned long long n;
	char *end;

	if (!s)
		return decode_int(json, 0, (int64_t *)ret, at, e);
	errno = 0;
	n = strtoull(s, &end, 10);
	if (*s < '0' || *s > '9' || *end || errno)
		return refuse_value(at, "a number", json, e);
	*ret = n;
	return 0;
}

static int
decode_bool(const json_t *json, bool *ret, const struct place *at, struct err *e)
{
	if (!json_is_boolean(json))
		return refuse_value(at, "true or false", json, e);
	*ret = json_is_true(json);
	return 0;
}

static int
decode_duration(
    const struct field *f, const json_t *json, int64_t *ret, const struct place *at, struct err *e)
{
	const char *s = json_string_value(json);

	if (!s)
		return decode_int(json, -INT64_MAX, ret, at, e);
	if (!*s && f->flags & FIELD_AS_TEXT) {
		*ret = 0;
		return 0;
	}
	if (duration_parse(s, ret, NULL) < 0)
		return refuse_value(
		    at, "a duration such as \"1m30s\" or a number of nanoseconds", json, e);
	return 0;
}

static int
decode_time(const json_t *json, int64_t *ret, const struct place *at, struct err *e)
{
	const char *s = json_string_value(json);

	if (!s || !time_parse(s, ret))
		return refuse_value(at, "a time such as \"2006-01-02T15:04:05Z\"", json, e);
	return 0;
}

static int
refuse_enum(const struct field *f, const json_t *json, const struct place *at, struct err *e)
{
	char list[256] = "one of";
	size_t len;
	unsigned i;

	for (i = 0; i < f->n_names; i++) {
		if (!*str(f->names[i]))
			continue;
		len = strlen(list);
		(void)snprintf(list + len, sizeof(list) - len, "%s \"%s\"",
		    strcmp(list, "one of") ? "," : "", f->names[i]);
	}
	return refuse_value(at, list, json, e);
}

static int
decode_enum(
    const struct field *f, const json_t *json, unsigned *ret, const struct place *at, struct err *e)
{
	const char *s = json_string_value(json);
	unsigned i;

	if (!s && (f->flags & FIELD_AS_NUMBER) && json_is_integer(json)) {
		if (json_integer_value(json) < 0 || json_integer_value(json) >= f->n_names)
			return refuse_enum(f, json, at, e);
		*ret = (unsigned)json_integer_value(json);
		return 0;
	}
	for (i = 0; s && i < f->n_names; i++) {
		if (strcmp(s, str(f->names[i])))
			continue;
		*ret = i;
		return 0;
	}
	return refuse_enum(f, json, at, e);
}

/* Rejects values that are nested more deeply than the API shows, and strings with a NUL, instead of
 * truncating them. */
static int
check_raw(const json_t *json, unsigned depth, const struct place *at, struct err *e)
{
	const json_t *value;
	const char *key;
	size_t i, len;
	int r = 0;

	if (depth == 0)
		return refuse_value(at, "fewer levels of nesting", json, e);
	if (json_is_string(json) && strlen(json_string_value(json)) != json_string_length(json))
		return refuse_value(at, "a string without NUL", json, e);
	for (i = 0; i < json_array_size(json) && r == 0; i++)
		r = check_raw(json_array_get(json, i), depth - 1, at, e);
	json_object_keylen_foreach ((json_t *)json, key, len, value) {
		if (strlen(key) != len)
			return refuse_value(at, "a key without NUL", json, e);
		r = check_raw(value, depth - 1, at, e);
		if (r < 0)
			return r;
	}
	return r;
}

static int
decode_raw(
    const struct field *f, const json_t *json, json_t **ret, const struct place *at, struct err *e)
{
	int r;

	if ((f->flags & FIELD_AS_OBJECT) && !json_is_object(json))
		return refuse_value(at, "an object", json, e);
	r = check_raw(json, MODEL_DEPTH_MAX, at, e);
	if (r < 0)
		return r;
	json_decref(*ret);
	*ret = mem_need(json_deep_copy(json));
	return 0;
}

static int decode_struct(
    const struct type *type, const json_t *json, void *obj, const struct place *at, struct err *e);

/* n grows element by element, so that after a failure model_done() frees exactly the elements that
 * exist. */
static int
decode_list(const struct field *f, const json_t *json, struct any_list *l, const struct place *at,
    struct err *e)
{
	size_t n = json_array_size(json);
	int r = 0;

	if (!json_is_array(json))
		return refuse_value(at, "a list", json, e);
	l->v = list_alloc(n, f->sub->size);
	while (l->n < n && r == 0) {
		const struct place here = { .up = at, .index = l->n };
		void *item = l->v + l->n * f->sub->size;

		model_init(f->sub, item);
		r = decode_struct(f->sub, json_array_get(json, l->n++), item, &here, e);
	}
	return r;
}

/* Decodes the value of one entry of a map. The key is at the beginning of the entry. */
typedef int decode_entry(
    const struct field *f, const json_t *json, void *entry, const struct place *at, struct err *e);

/* A null struct is skipped like an absent one: a nil inside a map makes peers crash. */
static int
decode_entries(const struct field *f, const json_t *json, void *map, size_t step,
    decode_entry *decode, const struct place *at, struct err *e)
{
	struct any_list *m = map;
	const char *key;
	json_t *value;
	int r;

	if (!json_is_object(json))
		return refuse_value(at, "an object", json, e);
	m->v = list_alloc(json_object_size(json), step);
	json_object_foreach ((json_t *)json, key, value) {
		const struct place here = { .up = at, .name = key, .key = true };
		char *entry = m->v + m->n * step;

		if (f->kind == FIELD_MAP && json_is_null(value))
			continue;
		*(char **)entry = mem_strdup(key);
		m->n++;
		r = decode(f, value, entry, &here, e);
		if (r < 0)
			return r;
	}
	return 0;
}

static int
decode_struct_entry(
    const struct field *f, const json_t *json, void *entry, const struct place *at, struct err *e)
{
	void *value = (char *)entry + MAP_VALUE_OFFSET;

	model_init(f->sub, value);
	return decode_struct(f->sub, json, value, at, e);
}

/* The value may also be a number or a boolean, as in Env and Meta of hand-written jobs, but not a
 * secret. */
static int
decode_text_entry(
    const struct field *f, const json_t *json, void *entry, const struct place *at, struct err *e)
{
	char **value = &((struct string_pair *)entry)->value;

	if (json_is_null(json))
		return 0;
	if (json_is_string(json) || json_is_object(json) || json_is_array(json) ||
	    place_is_sealed(at))
		return decode_string(json, value, at, e);
	*value = mem_need(json_text(json, 0));
	return 0;
}

static int
decode_int_entry(
    const struct field *f, const json_t *json, void *entry, const struct place *at, struct err *e)
{
	return decode_int(json, -INT64_MAX, &((struct int_pair *)entry)->value, at, e);
}

/* Of a set only the keys are stored. */
static int
skip_entry(
    const struct field *f, const json_t *json, void *entry, const struct place *at, struct err *e)
{
	return 0;
}

static int
decode_strings(const json_t *json, struct strings *l, const struct place *at, struct err *e)
{
	size_t n = json_array_size(json);
	char *s;
	int r;

	if (!json_is_array(json))
		return refuse_value(at, "a list of strings", json, e);
	l->v = list_alloc(n, sizeof(*l->v));
	while (l->n < n) {
		const struct place here = { .up = at, .index = l->n };

		s = NULL;
		r = decode_string(json_array_get(json, l->n), &s, &here, e);
		if (r < 0)
			return r;
		l->v[l->n++] = s ? s : mem_strdup("");
	}
	return 0;
}

static int
decode_ints(const json_t *json, struct ints *l, const struct place *at, struct err *e)
{
	size_t n = json_array_size(json);
	int r = 0;

	if (!json_is_array(json))
		return refuse_value(at, "a list of numbers", json, e);
	l->v = list_alloc(n, sizeof(*l->v));
	while (l->n < n && r == 0) {
		const struct place here = { .up = at, .index = l->n };

		r = decode_int(json_array_get(json, l->n), -INT64_MAX, &l->v[l->n], &here, e);
		l->n++;
	}
	return r;
}

static int
decode_pointer(
    const struct type *sub, const json_t *json, void **obj, const struct place *at, struct err *e)
{
	if (!*obj)
		*obj = model_new(sub);
	return decode_struct(sub, json, *obj, at, e);
}

static int
decode_opt_bool(const json_t *json, enum opt_bool *ret, const struct place *at, struct err *e)
{
	bool b = false;
	int r = decode_bool(json, &b, at, e);

	if (r == 0)
		*ret = b ? OPT_TRUE : OPT_FALSE;
	return r;
}

static int
decode_double(const json_t *json, double *ret, const struct place *at, struct err *e)
{
	if (!json_is_number(json))
		return refuse_value(at, "a number", json, e);
	*ret = json_number_value(json);
	return 0;
}

static int
decode_value(
    const struct field *f, const json_t *json, void *obj, const struct place *at, struct err *e)
{
	void *to = field_at(f, obj);

	if (json_is_null(json))
		return 0;
	if (f->kind >= FIELD_LIST && f->kind != FIELD_JSON && ((struct any_list *)to)->v)
		field_done(f, obj); /* the key in another case: the later one wins */
	switch ((enum field_kind)f->kind) {
	case FIELD_BOOL:
		return decode_bool(json, to, at, e);
	case FIELD_OPT_BOOL:
		return decode_opt_bool(json, to, at, e);
	case FIELD_INT:
		return decode_int(json, -INT64_MAX, to, at, e);
	case FIELD_UINT:
		return decode_uint(json, to, at, e);
	case FIELD_DOUBLE:
		return decode_double(json, to, at, e);
	case FIELD_STRING:
		return decode_string(json, to, at, e);
	case FIELD_DURATION:
		return decode_duration(f, json, to, at, e);
	case FIELD_TIME:
		return decode_time(json, to, at, e);
	case FIELD_ENUM:
		return decode_enum(f, json, to, at, e);
	case FIELD_STRUCT:
		return decode_struct(f->sub, json, to, at, e);
	case FIELD_POINTER:
		return decode_pointer(f->sub, json, to, at, e);
	case FIELD_LIST:
		return decode_list(f, json, to, at, e);
	case FIELD_MAP:
		return decode_entries(
		    f, json, to, map_entry_size(f->sub), decode_struct_entry, at, e);
	case FIELD_STRINGS:
		return decode_strings(json, to, at, e);
	case FIELD_SET:
		return decode_entries(f, json, to, sizeof(char *), skip_entry, at, e);
	case FIELD_INTS:
		return decode_ints(json, to, at, e);
	case FIELD_STRING_MAP:
		return decode_entries(
		    f, json, to, sizeof(struct string_pair), decode_text_entry, at, e);
	case FIELD_INT_MAP:
		return decode_entries(
		    f, json, to, sizeof(struct int_pair), decode_int_entry, at, e);
	default:
		return decode_raw(f, json, to, at, e);
	}
}

static bool
is_called(const struct field *f, const char *key, size_t len, bool exactly)
{
	if (f->name_len != len || (f->flags & FIELD_NO_JSON))
		return false;
	return exactly ? memcmp(f->name, key, len) == 0 : strncasecmp(f->name, key, len) == 0;
}

const struct field *
field_find(const struct type *type, const char *key, size_t len, size_t *next)
{
	size_t i, at;
	int exactly;

	for (exactly = 1; exactly >= 0; exactly--) {
		for (i = 0, at = *next; i < type->n; i++, at++) {
			if (at >= type->n)
				at = 0;
			if (!is_called(&type->fields[at], key, len, exactly))
				continue;
			*next = at + 1;
			return &type->fields[at];
		}
	}
	return NULL;
}

static int
decode_struct(
    const struct type *type, const json_t *json, void *obj, const struct place *at, struct err *e)
{
	size_t next = 0, len;
	const char *key;
	json_t *value;
	int r;

	if (type->bare)
		return decode_value(type->fields, json, obj, at, e);
	if (!json_is_object(json))
		return refuse_value(at, "an object", json, e);
	json_object_keylen_foreach ((json_t *)json, key, len, value) {
		const struct field *f = field_find(type, key, len, &next);
		const struct place here = {
			.up = at, .name = f ? f->name : NULL, .sealed = f && f->flags & FIELD_SEALED
		};

		r = f ? decode_value(f, value, obj, &here, e) : 0;
		if (r < 0)
			return r;
	}
	return 0;
}

int
model_from_json(const struct type *type, const json_t *json, void *obj, struct err *e)
{
	int r = decode_struct(type, json, obj, NULL, e);

	if (r < 0)
		model_done(type, obj);
	return r;
}

int
model_from_text(const struct type *type, const char *text, size_t len, void *obj, struct err *e)
{
	cleanup_json json_t *json = NULL;
	json_error_t error;

	json = json_loadb(text, len, 0, &error);
	if (!json)
		return err_say(
		    e, -EINVAL, "line %d, column %d: %s", error.line, error.column, error.text);
	return model_from_json(type, json, obj, e);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* msgpack_decode.c: decodes msgpack into any struct by its field table. The peer may be hostile, so
 * each allocation is first subtracted from a budget. Runs in: supervisor. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/base64.h"
#include "common/mem.h"
#include "common/msgpack_read.h"
#include "common/utf8.h"
#include "model/engine/msgpack.h"
#include "model/engine/table.h"
#include "model/engine/walk.h"

struct decoder {
	struct mp_in in;
	size_t memory; /* remaining budget in bytes */
	struct err *e;
};

/* The most that one value of jansson takes, an empty object, with its entry in the container. */
#define JSON_VALUE_SIZE 256
/* The overhead of malloc for each block. */
#define BLOCK_SIZE 16

static void
describe_item(const struct mp_item *found, char *ret, size_t size)
{
	static const char *const names[] = { [MP_NIL] = "nil",
		[MP_BOOL] = "true or false",
		[MP_EXT] = "an extension",
		[MP_ARRAY] = "a list",
		[MP_MAP] = "a map" };
	char text[40];

	if (found->kind == MP_INT)
		(void)snprintf(ret, size, "%lld", (long long)found->integer);
	else if (found->kind == MP_UINT)
		(void)snprintf(ret, size, "%llu", (unsigned long long)found->uinteger);
	else if (found->kind == MP_REAL)
		(void)snprintf(ret, size, "%g", found->real);
	else if (found->kind == MP_BYTES && utf8_is_text(found->bytes, found->len))
		(void)snprintf(ret, size, "\"%.*s\"",
		    (int)utf8_sanitize(text, sizeof(text), found->bytes, found->len), text);
	else if (found->kind == MP_BYTES)
		(void)snprintf(ret, size, "%u bytes that are not text", found->len);
	else
		(void)snprintf(ret, size, "%s", names[found->kind]);
}

static int
refuse_item(
    struct decoder *d, const struct place *at, const char *expected, const struct mp_item *found)
{
	char path[256], what[64];

	place_format(at, path, sizeof(path));
	if (place_is_sealed(at))
		(void)snprintf(what, sizeof(what), "something else");
	else
		describe_item(found, what, sizeof(what));
	return err_say(
	    d->e, -EINVAL, "%s%sexpected %s, found %s", path, *path ? ": " : "", expected, what);
}

/* r is the return value of mp_read() or mp_skip(). */
static int
say_broken(struct decoder *d, const struct place *at, int r)
{
	char path[256];

	place_format(at, path, sizeof(path));
	return err_say(d->e, -EINVAL, "%s%s%s", path, *path ? ": " : "",
	    r == -EAGAIN ? "the message ends in the middle" : "this is not valid msgpack");
}

static int
pay(struct decoder *d, const struct place *at, size_t n, size_t size)
{
	char path[256];
	size_t sum;

	if (!__builtin_mul_overflow(n, size, &sum) &&
	    !__builtin_add_overflow(sum, BLOCK_SIZE, &sum) && sum <= d->memory) {
		d->memory -= sum;
		return 0;
	}
	place_format(at, path, sizeof(path));
	return err_say(d->e, -EMSGSIZE, "%s%sthis message would need more memory than is allowed",
	    path, *path ? ": " : "");
}

static int
take_item(struct decoder *d, const struct place *at, struct mp_item *ret)
{
	int r = mp_read(&d->in, true, ret);

	return r < 0 ? say_broken(d, at, r) : 0;
}

static int
skip(struct decoder *d, const struct place *at)
{
	int r = mp_skip(&d->in);

	return r < 0 ? say_broken(d, at, r) : 0;
}

/* Consumes the next value if it is nil. */
static bool
take_nil(struct decoder *d)
{
	struct mp_in before = d->in;
	struct mp_item item;

	if (mp_read(&d->in, true, &item) == 0 && item.kind == MP_NIL)
		return true;
	d->in = before;
	return false;
}

/* Reads the head of a list or map. */
static int
take_container(struct decoder *d, const struct place *at, enum mp_kind kind, uint32_t *ret_n)
{
	struct mp_item item;
	int r = take_item(d, at, &item);

	if (r < 0)
		return r;
	if (item.kind != kind)
		return refuse_item(d, at, kind == MP_MAP ? "a map" : "a list", &item);
	*ret_n = item.n;
	return 0;
}

/* Reads the head of a list or map and allocates its elements. list_alloc() rounds up to the next
 * power of two. */
static int
make_list(struct decoder *d, const struct place *at, enum mp_kind kind, size_t size, void *list,
    uint32_t *ret_n)
{
	struct any_list *l = list;
	int r = take_container(d, at, kind, ret_n);

	if (r == 0)
		r = pay(d, at, *ret_n ? 2 * (size_t)*ret_n : 1, size);
	if (r == 0)
		l->v = list_alloc(*ret_n, size);
	return r;
}

/* Copies a string and appends a NUL; *ret is not NULL after success. */
static int
copy_text(struct decoder *d, const struct place *at, const struct mp_item *item, char **ret)
{
	int r;

	if (item->kind != MP_BYTES)
		return refuse_item(d, at, "a string", item);
	if (memchr(item->bytes, '\0', item->len))
		return refuse_item(d, at, "a string without NUL", item);
	r = pay(d, at, item->len + (size_t)1, 1);
	if (r == 0)
		*ret = mem_strndup(item->bytes, item->len);
	return r;
}

static int
take_text(struct decoder *d, const struct place *at, char **ret)
{
	struct mp_item item;
	int r = take_item(d, at, &item);

	return r < 0 ? r : copy_text(d, at, &item, ret);
}

/* Sets *ret to NULL for an empty string. */
static int
decode_string(struct decoder *d, const struct place *at, char **ret)
{
	struct mp_item item;
	char *copy = NULL;
	int r = take_item(d, at, &item);

	if (r == 0 && (item.kind != MP_BYTES || item.len))
		r = copy_text(d, at, &item, &copy);
	if (r < 0)
		return r;
	free(*ret);
	*ret = copy;
	return 0;
}

static int
decode_bytes(struct decoder *d, const struct place *at, char **ret)
{
	struct mp_item item;
	char *text = NULL;
	int r = take_item(d, at, &item);

	if (r == 0 && item.kind != MP_BYTES)
		r = refuse_item(d, at, "bytes", &item);
	if (r == 0 && item.len)
		r = pay(d, at, BASE64_SIZE((size_t)item.len), 1);
	if (r < 0)
		return r;
	if (item.len) {
		text = mem_alloc(BASE64_SIZE((size_t)item.len));
		(void)base64_encode(item.bytes, item.len, text);
	}
	free(*ret);
	*ret = text;
	return 0;
}

/* Accepts a real that is a whole number: values that were JSON once may be encoded so. */
static int
decode_int(struct decoder *d, const struct place *at, int64_t *ret)
{
	struct mp_item item;
	int r = take_item(d, at, &item);

	if (r < 0)
		return r;
	if (item.kind == MP_UINT && item.uinteger <= INT64_MAX)
		*ret = (int64_t)item.uinteger;
	else if (item.kind == MP_INT && item.integer > INT64_MIN)
		*ret = item.integer;
	else if (item.kind == MP_REAL && item.real == trunc(item.real) && fabs(item.real) <= 9e15)
		*ret = (int64_t)item.real;
	else
		return refuse_item(d, at, "a whole number within 64 bits", &item);
	return 0;
}

static int
decode_uint(struct decoder *d, const struct place *at, uint64_t *ret)
{
	struct mp_item item;
	int r = take_item(d, at, &item);

	if (r < 0)
		return r;
	if (item.kind != MP_UINT)
		return refuse_item(d, at, "a whole number of 0 or more", &item);
	*ret = item.uinteger;
	return 0;
}

static int
decode_double(struct decoder *d, const struct place *at, double *ret)
{
	struct mp_item item;
	int r = take_item(d, at, &item);

	if (r < 0)
		return r;
	if (item.kind == MP_REAL)
		*ret = item.real;
	else if (item.kind == MP_UINT)
		*ret = (double)item.uinteger;
	else if (item.kind == MP_INT)
		*ret = (double)item.integer;
	else
		return refuse_item(d, at, "a number", &item);
	return 0;
}

static int
decode_bool(struct decoder *d, const struct place *at, bool *ret)
{
	struct mp_item item;
	int r = take_item(d, at, &item);

	if (r < 0)
		return r;
	if (item.kind == MP_BOOL)
		*ret = item.boolean;
	else if (item.kind == MP_UINT && item.uinteger <= 1)
		*ret = item.uinteger == 1;
	else
		return refuse_item(d, at, "true or false", &item);
	return 0;
}

static int
decode_opt_bool(struct decoder *d, const struct place *at, enum opt_bool *ret)
{
	bool b = false;
	int r = decode_bool(d, at, &b);

	if (r == 0)
		*ret = b ? OPT_TRUE : OPT_FALSE;
	return r;
}

static int
decode_time(struct decoder *d, const struct place *at, int64_t *ret)
{
	struct mp_item item;
	int r = take_item(d, at, &item);

	if (r < 0)
		return r;
	if (item.kind != MP_BYTES || !go_time_parse(item.bytes, item.len, ret))
		return refuse_item(d, at, "a time of 15 bytes", &item);
	return 0;
}

/* An unknown value comes from a newer peer. It is accepted (as 0) only in fields that the node just
 * shows, not in those that it acts on. */
static int
decode_enum(struct decoder *d, const struct field *f, const struct place *at, unsigned *ret)
{
	struct mp_item item;
	unsigned i;
	int r = take_item(d, at, &item);

	if (r < 0)
		return r;
	if (f->flags & FIELD_AS_NUMBER) {
		if (item.kind != MP_UINT || item.uinteger >= f->n_names)
			return refuse_item(d, at, "a known number", &item);
		*ret = (unsigned)item.uinteger;
		return 0;
	}
	if (item.kind != MP_BYTES)
		return refuse_item(d, at, "a string", &item);
	for (i = 0; i < f->n_names; i++) {
		if (strlen(str(f->names[i])) != item.len ||
		    memcmp(str(f->names[i]), item.bytes, item.len))
			continue;
		*ret = i;
		return 0;
	}
	if (!(f->flags & FIELD_NO_EQUAL))
		return refuse_item(d, at, "a known value", &item);
	*ret = 0;
	return 0;
}

static int take_json(struct decoder *d, const struct place *at, unsigned depth, json_t **ret);

static int
take_json_array(struct decoder *d, const struct place *at, uint32_t n, unsigned depth, json_t **ret)
{
	cleanup_json json_t *list = json_array();
	json_t *value;
	uint32_t i;
	int r;

	for (i = 0; i < n; i++) {
		const struct place here = { .up = at, .index = i };

		r = take_json(d, &here, depth, &value);
		if (r < 0)
			return r;
		(void)json_array_append_new(list, value);
	}
	*ret = steal_ptr(&list);
	return 0;
}

static int
take_json_object(
    struct decoder *d, const struct place *at, uint32_t n, unsigned depth, json_t **ret)
{
	cleanup_json json_t *object = json_object();
	json_t *value;
	uint32_t i;
	int r;

	for (i = 0; i < n; i++) {
		cleanup_free char *key = NULL;
		struct place here = { .up = at, .key = true, .name = "" };

		r = take_text(d, at, &key);
		here.name = key;
		if (r == 0)
			r = take_json(d, &here, depth, &value);
		if (r < 0)
			return r;
		if (json_object_set_new(object, key, value) < 0)
			return err_say(d->e, -EINVAL, "a key is not valid UTF-8");
	}
	*ret = steal_ptr(&object);
	return 0;
}

static json_t *
json_of_number(const struct mp_item *item)
{
	double d = item->real;

	if (item->kind == MP_INT)
		return json_integer(item->integer);
	if (item->kind == MP_UINT && item->uinteger <= INT64_MAX)
		return json_integer((json_int_t)item->uinteger);
	if (item->kind == MP_UINT)
		d = (double)item->uinteger;
	return isfinite(d) ? json_real(d) : json_null();
}

static int
take_json(struct decoder *d, const struct place *at, unsigned depth, json_t **ret)
{
	struct mp_item item;
	int r = take_item(d, at, &item);

	if (r == 0 && depth == 0)
		r = refuse_item(d, at, "fewer levels of nesting", &item);
	if (r == 0)
		r = pay(d, at, 1, JSON_VALUE_SIZE + (item.kind == MP_BYTES ? item.len : 0));
	if (r < 0)
		return r;
	if (item.kind == MP_ARRAY)
		return take_json_array(d, at, item.n, depth - 1, ret);
	if (item.kind == MP_MAP)
		return take_json_object(d, at, item.n, depth - 1, ret);
	if (item.kind == MP_EXT || (item.kind == MP_BYTES && !utf8_is_text(item.bytes, item.len)))
		return refuse_item(d, at, "a value that JSON can represent", &item);
	if (item.kind == MP_BYTES)
		*ret = json_stringn(item.bytes, item.len);
	else if (item.kind == MP_BOOL)
		*ret = json_boolean(item.boolean);
	else if (item.kind == MP_NIL)
		*ret = json_null();
	else
		*ret = json_of_number(&item);
	return 0;
}

static int
decode_json(struct decoder *d, const struct field *f, const struct place *at, json_t **ret)
{
	struct mp_in ahead = d->in;
	struct mp_item item;
	json_t *made = NULL;
	int r;

	if ((f->flags & FIELD_AS_OBJECT) && mp_read(&ahead, true, &item) == 0 &&
	    item.kind != MP_MAP)
		return refuse_item(d, at, "a map", &item);
	r = take_json(d, at, MODEL_DEPTH_MAX, &made);
	if (r < 0)
		return r;
	json_decref(*ret);
	*ret = made;
	return 0;
}

static int decode_struct(
    struct decoder *d, const struct type *type, const struct place *at, void *obj);

/* n grows element by element, so that after a failure model_done() frees exactly the elements that
 * exist. */
static int
decode_list(struct decoder *d, const struct type *item, const struct place *at, struct any_list *l)
{
	uint32_t i, n = 0;
	int r = make_list(d, at, MP_ARRAY, item->size, l, &n);

	for (i = 0; i < n && r == 0; i++) {
		const struct place here = { .up = at, .index = i };
		void *to = l->v + l->n * item->size;

		if (take_nil(d))
			continue;
		model_init(item, to);
		l->n++;
		r = decode_struct(d, item, &here, to);
	}
	return r;
}

static int
compare_keys(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Rejects a key that occurs twice: different readers would find different values. entries: each
 * begins with its key. */
static int
check_keys(struct decoder *d, const struct place *at, const struct any_list *m, size_t step)
{
	cleanup_free char **keys = NULL;
	char path[256];
	size_t i;

	if (m->n < 2)
		return 0;
	keys = mem_zeroed(m->n, sizeof(*keys));
	for (i = 0; i < m->n; i++)
		keys[i] = *(char **)(m->v + i * step);
	qsort(keys, m->n, sizeof(*keys), compare_keys);
	for (i = 1; i < m->n && strcmp(keys[i - 1], keys[i]); i++)
		;
	if (i == m->n)
		return 0;
	place_format(at, path, sizeof(path));
	return err_say(d->e, -EINVAL, "%s: the key \"%.100s\" occurs twice", path, keys[i]);
}

/* Decodes the value of one entry of a map. The key is at the beginning of the entry. */
typedef int decode_entry(
    struct decoder *d, const struct field *f, const struct place *at, void *entry);

static int
decode_entries(struct decoder *d, const struct field *f, const struct place *at, void *map,
    size_t step, decode_entry *decode)
{
	struct any_list *m = map;
	uint32_t i, n = 0;
	int r = make_list(d, at, MP_MAP, step, m, &n);

	for (i = 0; i < n && r == 0; i++) {
		struct place here = { .up = at, .key = true };
		char *entry = m->v + m->n * step, *key = NULL;

		r = take_text(d, at, &key);
		if (r < 0)
			return r;
		if (f->kind != FIELD_SET && take_nil(d)) {
			free(key);
			continue;
		}
		here.name = *(char **)entry = key;
		m->n++;
		r = decode(d, f, &here, entry);
	}
	return r < 0 ? r : check_keys(d, at, m, step);
}

static int
decode_struct_entry(struct decoder *d, const struct field *f, const struct place *at, void *entry)
{
	void *value = (char *)entry + MAP_VALUE_OFFSET;

	model_init(f->sub, value);
	return decode_struct(d, f->sub, at, value);
}

static int
decode_text_entry(struct decoder *d, const struct field *f, const struct place *at, void *entry)
{
	return take_text(d, at, &((struct string_pair *)entry)->value);
}

static int
decode_int_entry(struct decoder *d, const struct field *f, const struct place *at, void *entry)
{
	return decode_int(d, at, &((struct int_pair *)entry)->value);
}

/* Of a set only the keys are stored. */
static int
skip_entry(struct decoder *d, const struct field *f, const struct place *at, void *entry)
{
	return skip(d, at);
}

static int
decode_strings(struct decoder *d, const struct place *at, struct strings *l)
{
	uint32_t n = 0;
	int r = make_list(d, at, MP_ARRAY, sizeof(*l->v), l, &n);

	while (l->n < n && r == 0) {
		const struct place here = { .up = at, .index = l->n };

		r = take_text(d, &here, &l->v[l->n]);
		l->n += r == 0;
	}
	return r;
}

static int
decode_ints(struct decoder *d, const struct place *at, struct ints *l)
{
	uint32_t n = 0;
	int r = make_list(d, at, MP_ARRAY, sizeof(*l->v), l, &n);

	while (l->n < n && r == 0) {
		const struct place here = { .up = at, .index = l->n };

		r = decode_int(d, &here, &l->v[l->n++]);
	}
	return r;
}

static int
decode_raws(struct decoder *d, const struct place *at, struct raws *l)
{
	uint32_t i, n = 0;
	int r = make_list(d, at, MP_ARRAY, sizeof(*l->v), l, &n);

	for (i = 0; i < n && r == 0; i++) {
		const uint8_t *start = d->in.at;

		if (take_nil(d))
			continue;
		r = skip(d, at);
		if (r == 0)
			l->v[l->n++] =
			    (struct raw){ .data = start, .len = (size_t)(d->in.at - start) };
	}
	return r;
}

static int
decode_pointer(struct decoder *d, const struct type *sub, const struct place *at, void **obj)
{
	int r = *obj ? 0 : pay(d, at, 1, sub->size);

	if (r < 0)
		return r;
	if (!*obj)
		*obj = model_new(sub);
	return decode_struct(d, sub, at, *obj);
}

/* Decodes lists, maps and other members with data on the heap. */
static int
decode_held(struct decoder *d, const struct field *f, const struct place *at, void *to)
{
	switch ((enum field_kind)f->kind) {
	case FIELD_POINTER:
		return decode_pointer(d, f->sub, at, to);
	case FIELD_LIST:
		return decode_list(d, f->sub, at, to);
	case FIELD_MAP:
		return decode_entries(d, f, at, to, map_entry_size(f->sub), decode_struct_entry);
	case FIELD_STRINGS:
		return decode_strings(d, at, to);
	case FIELD_SET:
		return decode_entries(d, f, at, to, sizeof(char *), skip_entry);
	case FIELD_INTS:
		return decode_ints(d, at, to);
	case FIELD_STRING_MAP:
		return decode_entries(d, f, at, to, sizeof(struct string_pair), decode_text_entry);
	case FIELD_INT_MAP:
		return decode_entries(d, f, at, to, sizeof(struct int_pair), decode_int_entry);
	case FIELD_RAWS:
		return decode_raws(d, at, to);
	default:
		return decode_json(d, f, at, to);
	}
}

static int
decode_value(struct decoder *d, const struct field *f, const struct place *at, void *obj)
{
	void *to = field_at(f, obj);

	if (take_nil(d))
		return 0;
	if (f->kind >= FIELD_LIST && f->kind != FIELD_JSON && ((struct any_list *)to)->v)
		field_done(f, obj); /* the same key twice: the later value wins */
	switch ((enum field_kind)f->kind) {
	case FIELD_BOOL:
		return decode_bool(d, at, to);
	case FIELD_OPT_BOOL:
		return decode_opt_bool(d, at, to);
	case FIELD_INT:
	case FIELD_DURATION:
		return decode_int(d, at, to);
	case FIELD_UINT:
		return decode_uint(d, at, to);
	case FIELD_DOUBLE:
		return decode_double(d, at, to);
	case FIELD_STRING:
		return f->flags & FIELD_BYTES ? decode_bytes(d, at, to) : decode_string(d, at, to);
	case FIELD_TIME:
		return decode_time(d, at, to);
	case FIELD_ENUM:
		return decode_enum(d, f, at, to);
	case FIELD_STRUCT:
		return decode_struct(d, f->sub, at, to);
	default:
		return decode_held(d, f, at, to);
	}
}

static bool
is_called(const struct field *f, const struct mp_item *key)
{
	const char *name = f->wire ? f->wire : f->name;
	size_t len = f->wire ? strlen(f->wire) : f->name_len;

	return !(f->flags & FIELD_NO_WIRE) && len == key->len && !memcmp(name, key->bytes, len);
}

/* Go sends maps in the order of its struct or sorted, so the search starts after the last key
 * found. */
static const struct field *
find_field(const struct type *type, const struct mp_item *key, size_t *next)
{
	const struct field *f;
	size_t i, at;

	for (i = 0, at = *next; i < type->n; i++, at++) {
		if (at >= type->n)
			at = 0;
		f = &type->fields[at];
		if (!is_called(f, key))
			continue;
		*next = at + 1;
		return f;
	}
	return NULL;
}

static int
decode_struct(struct decoder *d, const struct type *type, const struct place *at, void *obj)
{
	size_t next = 0;
	struct mp_item key;
	uint32_t i, n = 0;
	int r;

	if (type->bare)
		return decode_value(d, type->fields, at, obj);
	r = take_container(d, at, MP_MAP, &n);
	for (i = 0; i < n && r == 0; i++) {
		const struct field *f = NULL;
		struct place here = { .up = at };

		r = take_item(d, at, &key);
		if (r == 0 && key.kind == MP_BYTES)
			f = find_field(type, &key, &next);
		here.name = f ? f->name : "?";
		here.sealed = f && f->flags & FIELD_SEALED;
		if (r == 0)
			r = f ? decode_value(d, f, &here, obj) : skip(d, &here);
	}
	return r;
}

int
model_from_msgpack(const struct type *type, const void *data, size_t len, void *obj,
    size_t memory_max, struct err *e)
{
	struct decoder d = { .in = { .at = data, .end = (const uint8_t *)data + len },
		.memory = memory_max,
		.e = e };
	int r = 0;

	if (!take_nil(&d))
		r = decode_struct(&d, type, NULL, obj);
	if (r == 0 && d.in.at != d.in.end)
		r = err_say(e, -EINVAL, "there are bytes after the message's end");
	if (r < 0)
		model_done(type, obj);
	return r;
}

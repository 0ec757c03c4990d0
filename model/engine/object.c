/* SPDX-License-Identifier: Apache-2.0 */
/* object.c: makes, frees, copies and completes any struct by its field table. Runs in: supervisor,
 * cli. */
#include <string.h>

#include "common/mem.h"
#include "model/engine/msgpack.h"
#include "model/engine/table.h"
#include "model/engine/walk.h"

/* Returns the capacity for n items. Lists do not store their capacity, so it follows from n. Most
 * lists are short, and an allocation has many of them: short ones waste one item at most. */
static size_t
room_for(size_t n)
{
	size_t room = 16;

	if (n <= 2)
		return n ? n : 1;
	if (n <= room)
		return n + n % 2;
	while (room < n)
		room *= 2;
	return room;
}

void *
list_alloc(size_t n, size_t item_size)
{
	return mem_zeroed(room_for(n), item_size);
}

void
list_grow(void *list, size_t item_size)
{
	struct any_list *l = list;

	if (!l->v || l->n == room_for(l->n))
		l->v = mem_resize(l->v, room_for(l->n + 1), item_size);
}

static void
init_field(const struct field *f, void *at)
{
	if (f->kind == FIELD_STRUCT)
		model_init(f->sub, at);
	else if ((f->flags & FIELD_CAN_UNSET) && f->kind != FIELD_OPT_BOOL)
		*(int64_t *)at = MODEL_UNSET;
}

void
model_init(const struct type *type, void *obj)
{
	size_t i;

	memset(obj, 0, type->size);
	for (i = 0; i < type->n; i++)
		init_field(&type->fields[i], field_at(&type->fields[i], obj));
}

/* Frees every element of a list or map: the key at 0 if it has one, and the struct after it. */
static void
free_elements(struct any_list *l, const struct type *item, size_t key_size)
{
	size_t i, step = key_size + item->size;

	for (i = 0; i < l->n; i++) {
		model_done(item, l->v + i * step + key_size);
		if (key_size)
			free(*(char **)(l->v + i * step));
	}
	free(l->v);
}

static void
free_int_map(struct int_map *m)
{
	size_t i;

	for (i = 0; i < m->n; i++)
		free(m->v[i].key);
	free(m->v);
}

static void
free_string_map(struct string_map *m)
{
	size_t i;

	for (i = 0; i < m->n; i++) {
		free(m->v[i].key);
		free(m->v[i].value);
	}
	free(m->v);
}

static void
wipe_text(char *text)
{
	if (text)
		explicit_bzero(text, strlen(text));
}

static void
wipe_field(const struct field *f, void *at)
{
	const struct string_map *map = at;
	const struct strings *list = at;

	for (size_t i = 0; f->kind == FIELD_STRING_MAP && i < map->n; i++)
		wipe_text(map->v[i].value);
	for (size_t i = 0; f->kind == FIELD_STRINGS && i < list->n; i++)
		wipe_text(list->v[i]);
}

static size_t
field_size(const struct field *f)
{
	switch ((enum field_kind)f->kind) {
	case FIELD_BOOL:
		return sizeof(bool);
	case FIELD_OPT_BOOL:
	case FIELD_ENUM:
		return sizeof(unsigned);
	case FIELD_STRUCT:
		return f->sub->size;
	case FIELD_LIST:
	case FIELD_MAP:
	case FIELD_STRINGS:
	case FIELD_INTS:
	case FIELD_STRING_MAP:
	case FIELD_INT_MAP:
	case FIELD_SET:
	case FIELD_RAWS:
		return sizeof(struct any_list);
	default:
		return 8;
	}
}

void
field_done(const struct field *f, void *obj)
{
	void *at = field_at(f, obj);

	if (f->flags & FIELD_SEALED)
		wipe_field(f, at);
	switch ((enum field_kind)f->kind) {
	case FIELD_STRING:
		free(*(char **)at);
		break;
	case FIELD_STRUCT:
		model_done(f->sub, at);
		return;
	case FIELD_POINTER:
		model_free(f->sub, *(void **)at);
		break;
	case FIELD_LIST:
		free_elements(at, f->sub, 0);
		break;
	case FIELD_MAP:
		free_elements(at, f->sub, MAP_VALUE_OFFSET);
		break;
	case FIELD_STRINGS:
	case FIELD_SET:
		strings_done(at);
		break;
	case FIELD_INTS:
		free(((struct ints *)at)->v);
		break;
	case FIELD_RAWS:
		free(((struct raws *)at)->v);
		break;
	case FIELD_STRING_MAP:
		free_string_map(at);
		break;
	case FIELD_INT_MAP:
		free_int_map(at);
		break;
	case FIELD_JSON:
		json_decref(*(json_t **)at);
		break;
	default:
		break;
	}
	memset(at, 0, field_size(f));
	init_field(f, at);
}

void
model_done(const struct type *type, void *obj)
{
	size_t i;

	for (i = 0; i < type->n; i++)
		field_done(&type->fields[i], obj);
}

void *
model_new(const struct type *type)
{
	void *obj = mem_alloc(type->size);

	model_init(type, obj);
	return obj;
}

void
model_free(const struct type *type, void *obj)
{
	if (!obj)
		return;
	model_done(type, obj);
	free(obj);
}

void
field_swap(const struct field *f, void *a, void *b)
{
	char *x = field_at(f, a), *y = field_at(f, b), kept;
	size_t i, n = field_size(f);

	for (i = 0; i < n; i++) {
		kept = x[i];
		x[i] = y[i];
		y[i] = kept;
	}
}

static bool
struct_is_empty(const struct type *type, const void *obj)
{
	size_t i;

	for (i = 0; i < type->n; i++)
		if (!field_is_empty(&type->fields[i], obj))
			return false;
	return true;
}

bool
field_is_empty(const struct field *f, const void *obj)
{
	const void *at = field_at(f, obj);

	switch ((enum field_kind)f->kind) {
	case FIELD_BOOL:
		return !*(const bool *)at;
	case FIELD_OPT_BOOL:
	case FIELD_ENUM:
		return !*(const unsigned *)at;
	case FIELD_INT:
	case FIELD_DURATION:
	case FIELD_TIME:
		return *(const int64_t *)at == (f->flags & FIELD_CAN_UNSET ? MODEL_UNSET : 0);
	case FIELD_UINT:
		return !*(const uint64_t *)at;
	case FIELD_DOUBLE:
		return *(const double *)at == 0.0;
	case FIELD_STRING:
		return !*str(*(char *const *)at);
	case FIELD_STRUCT:
		return struct_is_empty(f->sub, at);
	default: /* all others begin with a pointer: nil is empty, [] is not */
		return !*(void *const *)at;
	}
}

static void
copy_elements(
    const struct any_list *from, struct any_list *to, const struct type *item, size_t key_size)
{
	size_t step = key_size + item->size;

	to->v = list_alloc(from->n, step);
	for (; to->n < from->n; to->n++) {
		const char *src = from->v + to->n * step;
		char *dst = to->v + to->n * step;

		if (key_size)
			*(char **)dst = mem_strdup(str(*(char *const *)src));
		model_copy(item, src + key_size, dst + key_size);
	}
}

static void
copy_strings(const struct strings *from, struct strings *to)
{
	to->v = list_alloc(from->n, sizeof(*to->v));
	for (; to->n < from->n; to->n++)
		to->v[to->n] = mem_strdup(str(from->v[to->n]));
}

static void
copy_ints(const struct ints *from, struct ints *to)
{
	to->v = list_alloc(from->n, sizeof(*to->v));
	memcpy(to->v, from->v, from->n * sizeof(*to->v));
	to->n = from->n;
}

/* Copies only pointers: the bytes still belong to the message. */
static void
copy_raws(const struct raws *from, struct raws *to)
{
	to->v = list_alloc(from->n, sizeof(*to->v));
	memcpy(to->v, from->v, from->n * sizeof(*to->v));
	to->n = from->n;
}

static void
copy_string_map(const struct string_map *from, struct string_map *to)
{
	to->v = list_alloc(from->n, sizeof(*to->v));
	for (; to->n < from->n; to->n++)
		to->v[to->n] = (struct string_pair){
			.key = mem_strdup(str(from->v[to->n].key)),
			.value = mem_strdup(str(from->v[to->n].value)),
		};
}

static void
copy_int_map(const struct int_map *from, struct int_map *to)
{
	to->v = list_alloc(from->n, sizeof(*to->v));
	for (; to->n < from->n; to->n++)
		to->v[to->n] = (struct int_pair){
			.key = mem_strdup(str(from->v[to->n].key)),
			.value = from->v[to->n].value,
		};
}

static void
copy_field(const struct field *f, const void *from, void *to)
{
	const void *src = field_at(f, from);
	void *dst = field_at(f, to);

	if (f->kind == FIELD_STRUCT) {
		model_copy(f->sub, src, dst);
		return;
	}
	if (f->kind < FIELD_STRUCT && f->kind != FIELD_STRING) {
		memcpy(dst, src, field_size(f));
		return;
	}
	if (!*(void *const *)src)
		return;
	switch ((enum field_kind)f->kind) {
	case FIELD_STRING:
		*(char **)dst = mem_strdup(*(char *const *)src);
		break;
	case FIELD_POINTER:
		*(void **)dst = mem_alloc(f->sub->size);
		model_copy(f->sub, *(void *const *)src, *(void **)dst);
		break;
	case FIELD_LIST:
		copy_elements(src, dst, f->sub, 0);
		break;
	case FIELD_MAP:
		copy_elements(src, dst, f->sub, MAP_VALUE_OFFSET);
		break;
	case FIELD_STRINGS:
	case FIELD_SET:
		copy_strings(src, dst);
		break;
	case FIELD_INTS:
		copy_ints(src, dst);
		break;
	case FIELD_STRING_MAP:
		copy_string_map(src, dst);
		break;
	case FIELD_INT_MAP:
		copy_int_map(src, dst);
		break;
	case FIELD_RAWS:
		copy_raws(src, dst);
		break;
	default: /* FIELD_JSON */
		*(json_t **)dst = mem_need(json_deep_copy(*(json_t *const *)src));
		break;
	}
}

void
model_copy(const struct type *type, const void *from, void *to)
{
	size_t i;

	model_init(type, to);
	for (i = 0; i < type->n; i++)
		copy_field(&type->fields[i], from, to);
}

static void
default_elements(const struct any_list *l, const struct type *item, size_t key_size)
{
	size_t i;

	for (i = 0; i < l->n; i++)
		model_defaults(item, l->v + i * (key_size + item->size) + key_size);
}

static void
default_value(const struct field *f, void *at)
{
	if (f->kind == FIELD_STRING) {
		if (!*str(*(char **)at))
			str_set(at, f->text);
	} else if (f->kind == FIELD_OPT_BOOL || f->kind == FIELD_ENUM) {
		if (!*(unsigned *)at)
			*(unsigned *)at = (unsigned)f->number;
	} else if (*(int64_t *)at == MODEL_UNSET) {
		*(int64_t *)at = f->number;
	}
}

static void
default_field(const struct field *f, void *at)
{
	if (f->kind == FIELD_STRUCT)
		model_defaults(f->sub, at);
	else if (f->kind == FIELD_POINTER && *(void **)at)
		model_defaults(f->sub, *(void **)at);
	else if (f->kind == FIELD_LIST || f->kind == FIELD_MAP)
		default_elements(at, f->sub, f->kind == FIELD_MAP ? MAP_VALUE_OFFSET : 0);
	else if (f->flags & FIELD_HAS_DEFAULT)
		default_value(f, at);
}

void
model_defaults(const struct type *type, void *obj)
{
	size_t i;

	for (i = 0; i < type->n; i++)
		default_field(&type->fields[i], field_at(&type->fields[i], obj));
}

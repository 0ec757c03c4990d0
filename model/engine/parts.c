/* SPDX-License-Identifier: Apache-2.0 */
/* parts.c: counts list elements and texts of an object by its field table. Runs in: supervisor,
 * cli. */
#include "model/engine/parts.h"

#include <string.h>

#include "model/engine/table.h"
#include "model/engine/walk.h"

static void count_struct(const struct type *type, const void *obj, struct parts *p);

static void
note(struct part *largest, const char *name, size_t size)
{
	if (size > largest->size)
		*largest = (struct part){ .size = size, .name = name };
}

static void
note_list(struct parts *p, const char *name, size_t n)
{
	p->n += n;
	note(&p->list, name, n);
}

static void
count_text(const struct field *f, const char *text, struct parts *p)
{
	if (f->flags & FIELD_BYTES)
		return;
	p->bytes += strlen(str(text));
	if (!(f->flags & FIELD_LONG))
		note(&p->text, f->name, strlen(str(text)));
}

static void
count_strings(const struct field *f, const struct strings *l, struct parts *p)
{
	note_list(p, f->name, l->n);
	for (size_t i = 0; i < l->n; i++)
		p->bytes += strlen(str(l->v[i]));
}

static void
count_elements(const struct field *f, const struct any_list *l, size_t key_size, struct parts *p)
{
	note_list(p, f->name, l->n);
	for (size_t i = 0; i < l->n; i++)
		count_struct(f->sub, l->v + i * (key_size + f->sub->size) + key_size, p);
}

/* Lists of strings, such as a command's arguments, count only in the sum: their elements are never
 * compared in pairs. */
static void
count_json(const char *name, const json_t *json, struct parts *p)
{
	const json_t *v;
	const char *key;
	size_t i;

	if (json_is_object(json_array_get(json, 0)))
		note_list(p, name, json_array_size(json));
	else
		p->n += json_array_size(json);
	json_array_foreach (json, i, v)
		count_json(name, v, p);
	json_object_foreach ((json_t *)json, key, v)
		count_json(name, v, p);
}

static void
count_field(const struct field *f, const void *at, struct parts *p)
{
	switch ((enum field_kind)f->kind) {
	case FIELD_STRUCT:
		count_struct(f->sub, at, p);
		break;
	case FIELD_POINTER:
		if (*(void *const *)at)
			count_struct(f->sub, *(void *const *)at, p);
		break;
	case FIELD_LIST:
		count_elements(f, at, 0, p);
		break;
	case FIELD_MAP:
		count_elements(f, at, MAP_VALUE_OFFSET, p);
		break;
	case FIELD_STRING:
		count_text(f, *(char *const *)at, p);
		break;
	case FIELD_STRINGS:
	case FIELD_SET:
		count_strings(f, at, p);
		break;
	case FIELD_INTS:
		note_list(p, f->name, ((const struct ints *)at)->n);
		break;
	case FIELD_JSON:
		count_json(f->name, *(json_t *const *)at, p);
		break;
	default:
		break;
	}
}

static void
count_struct(const struct type *type, const void *obj, struct parts *p)
{
	for (size_t i = 0; i < type->n; i++)
		count_field(&type->fields[i], field_at(&type->fields[i], obj), p);
}

struct parts
model_parts(const struct type *type, const void *obj)
{
	struct parts p = { .list.name = "", .text.name = "" };

	count_struct(type, obj, &p);
	return p;
}

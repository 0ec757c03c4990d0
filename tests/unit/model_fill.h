/* SPDX-License-Identifier: Apache-2.0 */
/* model_fill.h: sets every field of a struct by its field table. Runs in: unit tests. */
#ifndef DROVER_TESTS_MODEL_FILL_H
#define DROVER_TESTS_MODEL_FILL_H

#include <stdio.h>
#include <string.h>

#include "model/engine/table.h"
#include "model/engine/walk.h"
#include "tests/unit/unit.h"

static inline char *
make_text(int *seed)
{
	char *s = NULL;

	ck_assert_int_gt(asprintf(&s, "t%d \"\\/\n\t\x01 é€😀", ++*seed), 0);
	return s;
}

/* Fields with one of these flags stay empty. */
static unsigned fill_skips;

static inline void fill(const struct type *type, void *obj, int *seed);

/* Lists and maps get two elements. */
static inline void
fill_field(const struct field *f, void *obj, int *seed)
{
	char *at = field_at(f, obj), *text;
	int i;

	switch ((enum field_kind)f->kind) {
	case FIELD_BOOL:
		*(bool *)at = true;
		return;
	case FIELD_OPT_BOOL:
		*(enum opt_bool *)at = ++*seed & 1 ? OPT_TRUE : OPT_FALSE;
		return;
	case FIELD_INT:
	case FIELD_DURATION:
		*(int64_t *)at = -++*seed * 1000000007ll;
		return;
	case FIELD_UINT:
		*(uint64_t *)at = UINT64_MAX - (unsigned)++*seed;
		return;
	case FIELD_DOUBLE:
		*(double *)at = ++*seed / 3.0;
		return;
	case FIELD_STRING:
		*(char **)at = f->flags & FIELD_BYTES ? strdup("AAEC/w==") : make_text(seed);
		return;
	case FIELD_RAWS:
		return;
	case FIELD_TIME:
		*(int64_t *)at = 1700000000000000000 + ++*seed;
		return;
	case FIELD_ENUM:
		*(unsigned *)at = 1 + (unsigned)++*seed % (f->n_names - 1u);
		return;
	case FIELD_STRUCT:
		fill(f->sub, at, seed);
		return;
	case FIELD_POINTER:
		*(void **)at = model_new(f->sub);
		fill(f->sub, *(void **)at, seed);
		return;
	case FIELD_JSON:
		*(json_t **)at = json_pack("{s:[i,f,s,b],s:{}}", "a", ++*seed, 0.1, "x\"y", 1, "o");
		if (f->flags & FIELD_AS_OBJECT) /* without this flag msgpack leaves it out */
			json_object_set_new(*(json_t **)at, "null", json_null());
		return;
	default:
		break;
	}
	for (i = 0; i < 2; i++) {
		text = make_text(seed);
		if (f->kind == FIELD_LIST)
			fill(f->sub, model_list_add(f->sub, at), seed);
		else if (f->kind == FIELD_MAP)
			fill(f->sub, model_map_put(f->sub, at, text), seed);
		else if (f->kind == FIELD_STRING_MAP)
			string_map_set((struct string_map *)at, text, i ? text : "");
		else if (f->kind == FIELD_INT_MAP)
			*int_map_at((struct int_map *)at, text) = -++*seed;
		else if (f->kind == FIELD_INTS)
			((struct ints *)at)->n = 0;
		else
			strings_add((struct strings *)at, i ? text : "");
		free(text);
	}
	if (f->kind == FIELD_INTS) {
		struct ints *l = (struct ints *)at;

		l->v = list_alloc(3, sizeof(*l->v));
		l->n = 3;
		l->v[1] = -5;
	}
}

static inline void
fill(const struct type *type, void *obj, int *seed)
{
	size_t i;

	for (i = 0; i < type->n; i++)
		/* A field with `shown` is encoded by another table, so less comes back. */
		if (!type->fields[i].shown && !(type->fields[i].flags & fill_skips))
			fill_field(&type->fields[i], obj, seed);
}

static inline void
assert_same(const struct type *type, const void *a, const void *b)
{
	char where[200] = "";

	ck_assert_msg(!model_differs(type, a, b, 0, where, sizeof(where)), "%s: %s differs",
	    type->name, where);
}

#endif

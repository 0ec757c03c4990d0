// SPDX-License-Identifier: Apache-2.0
/* unknown.c: finds members of JSON that no field table has. Runs in: supervisor, cli. */
#include "common/cleanup.h"
#include "common/similar.h"
#include "model/engine/walk.h"

#define REPORTED_MAX 20 /* each search for a similar name takes time */

static void find_in_struct(
    const struct type *type, const json_t *json, const struct place *at, struct problems *p);

static void
report(const struct type *type, const char *key, const struct place *at, struct problems *p)
{
	const struct place here = { .up = at, .name = key };
	const char *names[128], *similar;
	char path[256];
	size_t n = 0;

	for (size_t i = 0; i < type->n && n < ELEMENTSOF(names); i++)
		if (!(type->fields[i].flags & FIELD_NO_JSON))
			names[n++] = type->fields[i].name;
	place_format(&here, path, sizeof path);
	similar = similar_name(key, names, n);
	if (similar)
		model_problem(
		    p, "%s is not known and has no effect: did you mean \"%s\"?", path, similar);
	else
		model_problem(p, "%s is not known and has no effect", path);
}

bool
json_says_nothing(const json_t *json)
{
	const json_t *member;
	const char *key;

	if (json_is_object(json)) {
		json_object_foreach ((json_t *)json, key, member)
			if (!json_says_nothing(member))
				return false;
		return true;
	}
	return !json || json_is_null(json) || json_is_false(json) ||
	       (json_is_array(json) && !json_array_size(json)) ||
	       (json_is_string(json) && !json_string_length(json)) ||
	       (json_is_integer(json) && !json_integer_value(json));
}

static void
find_in_value(const struct field *f, const json_t *json, const struct place *at, struct problems *p)
{
	const json_t *value;
	const char *key;
	size_t i;

	if (f->kind == FIELD_STRUCT || f->kind == FIELD_POINTER)
		find_in_struct(f->sub, json, at, p);
	if (f->kind == FIELD_LIST)
		json_array_foreach (json, i, value) {
			const struct place here = { .up = at, .index = i };

			find_in_struct(f->sub, value, &here, p);
		}
	if (f->kind == FIELD_MAP)
		json_object_foreach ((json_t *)json, key, value) {
			const struct place here = { .up = at, .name = key, .key = true };

			find_in_struct(f->sub, value, &here, p);
		}
}

static void
find_in_struct(
    const struct type *type, const json_t *json, const struct place *at, struct problems *p)
{
	size_t next = 0, len;
	const char *key;
	json_t *value;

	if (type->bare) {
		find_in_value(type->fields, json, at, p);
		return;
	}
	json_object_keylen_foreach ((json_t *)json, key, len, value) {
		const struct field *f = field_find(type, key, len, &next);
		const struct place here = { .up = at, .name = f ? f->name : NULL };

		if (p->list.n >= REPORTED_MAX)
			return;
		if (f)
			find_in_value(f, value, &here, p);
		else if (!json_says_nothing(value))
			report(type, key, at, p);
	}
}

void
model_find_unknown(const struct type *type, const json_t *json, struct problems *p)
{
	find_in_struct(type, json, NULL, p);
}

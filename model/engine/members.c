/* SPDX-License-Identifier: Apache-2.0 */
/* members.c: strings, lists and maps that are members of structs. Runs in: supervisor, cli. */
#include <stdarg.h>
#include <string.h>

#include "common/mem.h"
#include "model/engine/table.h"
#include "model/engine/walk.h"

bool
str_eq(const char *a, const char *b)
{
	return strcmp(str(a), str(b)) == 0;
}

void
str_set(char **s, const char *value)
{
	char *copy = NULL;

	if (value && *value)
		copy = mem_strdup(value);
	free(*s);
	*s = copy;
}

void
str_setf(char **s, const char *fmt, ...)
{
	va_list args;
	char *made;

	va_start(args, fmt);
	made = mem_vprintf(fmt, args);
	va_end(args);
	free(*s);
	*s = made;
}

void
strings_add(struct strings *l, const char *s)
{
	list_grow(l, sizeof(*l->v));
	l->v[l->n++] = mem_strdup(str(s));
}

bool
strings_has(const struct strings *l, const char *s)
{
	size_t i;

	for (i = 0; i < l->n; i++)
		if (str_eq(l->v[i], s))
			return true;
	return false;
}

bool
strings_remove(struct strings *l, const char *s)
{
	size_t i;

	for (i = 0; i < l->n; i++) {
		if (!str_eq(l->v[i], s))
			continue;
		free(l->v[i]);
		memmove(&l->v[i], &l->v[i + 1], (--l->n - i) * sizeof(*l->v));
		return true;
	}
	return false;
}

void
strings_done(struct strings *l)
{
	size_t i;

	for (i = 0; i < l->n; i++)
		free(l->v[i]);
	free(l->v);
	*l = (struct strings){ 0 };
}

const char *
string_map_get(const struct string_map *m, const char *key)
{
	size_t i;

	for (i = 0; i < m->n; i++)
		if (str_eq(m->v[i].key, key))
			return str(m->v[i].value);
	return NULL;
}

void
string_map_set(struct string_map *m, const char *key, const char *value)
{
	char *copy;
	size_t i;

	for (i = 0; i < m->n; i++) {
		if (!str_eq(m->v[i].key, key))
			continue;
		copy = mem_strdup(str(value));
		free(m->v[i].value);
		m->v[i].value = copy;
		return;
	}
	string_map_append(m, key, value);
}

void
string_map_done(struct string_map *m)
{
	for (size_t i = 0; i < m->n; i++) {
		free(m->v[i].key);
		free(m->v[i].value);
	}
	free(m->v);
	*m = (struct string_map){ 0 };
}

void
string_map_append(struct string_map *m, const char *key, const char *value)
{
	list_grow(m, sizeof(*m->v));
	m->v[m->n++] =
	    (struct string_pair){ .key = mem_strdup(key), .value = mem_strdup(str(value)) };
}

void
string_map_remove(struct string_map *m, const char *key)
{
	for (size_t i = 0; i < m->n; i++) {
		if (!str_eq(m->v[i].key, key))
			continue;
		free(m->v[i].key);
		free(m->v[i].value);
		memmove(&m->v[i], &m->v[i + 1], (--m->n - i) * sizeof(*m->v));
		return;
	}
}

int64_t *
int_map_at(struct int_map *m, const char *key)
{
	size_t i;

	for (i = 0; i < m->n; i++)
		if (str_eq(m->v[i].key, key))
			return &m->v[i].value;
	list_grow(m, sizeof(*m->v));
	m->v[m->n] = (struct int_pair){ .key = mem_strdup(key) };
	return &m->v[m->n++].value;
}

void *
model_list_add(const struct type *item, void *list)
{
	struct any_list *l = list;
	char *at;

	list_grow(l, item->size);
	at = l->v + l->n++ * item->size;
	model_init(item, at);
	return at;
}

void
model_list_remove(const struct type *item, void *list, size_t index)
{
	struct any_list *l = list;
	char *at = l->v + index * item->size;

	model_done(item, at);
	l->n--;
	memmove(at, at + item->size, (l->n - index) * item->size);
}

/* Returns the entry with this key, or NULL. */
static char *
find_entry(const struct type *item, const struct any_list *m, const char *key)
{
	size_t i, step = map_entry_size(item);

	for (i = 0; i < m->n; i++)
		if (str_eq(*(char **)(m->v + i * step), key))
			return m->v + i * step;
	return NULL;
}

void *
model_map_get(const struct type *item, const void *map, const char *key)
{
	char *entry = find_entry(item, map, key);

	return entry ? entry + MAP_VALUE_OFFSET : NULL;
}

void *
model_map_put(const struct type *item, void *map, const char *key)
{
	struct any_list *m = map;
	char *entry = find_entry(item, m, key);

	if (entry)
		return entry + MAP_VALUE_OFFSET;
	list_grow(m, map_entry_size(item));
	entry = m->v + m->n++ * map_entry_size(item);
	*(char **)entry = mem_strdup(str(key));
	model_init(item, entry + MAP_VALUE_OFFSET);
	return entry + MAP_VALUE_OFFSET;
}

bool
model_map_remove(const struct type *item, void *map, const char *key)
{
	struct any_list *m = map;
	char *entry = find_entry(item, m, key);
	size_t step = map_entry_size(item);

	if (!entry)
		return false;
	free(*(char **)entry);
	model_done(item, entry + MAP_VALUE_OFFSET);
	m->n--;
	memmove(entry, entry + step, (size_t)(m->v + m->n * step - entry));
	return true;
}

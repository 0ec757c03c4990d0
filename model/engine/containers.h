/* SPDX-License-Identifier: Apache-2.0 */
/* containers.h: the members of model structs: strings, lists and maps. Runs in: supervisor, cli. */
#ifndef DROVER_MODEL_ENGINE_CONTAINERS_H
#define DROVER_MODEL_ENGINE_CONTAINERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum opt_bool { OPT_UNSET, OPT_FALSE, OPT_TRUE };

struct strings {
	char **v;
	size_t n;
};

struct ints {
	int64_t *v;
	size_t n;
};

struct string_pair {
	char *key, *value;
};

struct string_map {
	struct string_pair *v;
	size_t n;
};

struct int_pair {
	char *key;
	int64_t value;
};

struct int_map {
	struct int_pair *v;
	size_t n;
};

/* A list of structs; and a map from strings to structs, in the order in which keys were added. */
#define MODEL_LIST(item)                                                                           \
	struct {                                                                                   \
		item *v;                                                                           \
		size_t n;                                                                          \
	}
#define MODEL_MAP(item)                                                                            \
	struct {                                                                                   \
		struct {                                                                           \
			char *key;                                                                 \
			item value;                                                                \
		} * v;                                                                             \
		size_t n;                                                                          \
	}

struct type;

static inline const char *
str(const char *s)
{
	return s ? s : "";
}
bool str_eq(const char *a, const char *b); /* NULL equals "" */
/* Replaces *s with a copy of value (NULL if it is empty). */
void str_set(char **s, const char *value);
void str_setf(char **s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

void strings_add(struct strings *l, const char *s);
bool strings_has(const struct strings *l, const char *s);
bool strings_remove(struct strings *l, const char *s); /* whether it was in the list */
void strings_done(struct strings *l);

const char *string_map_get(const struct string_map *m, const char *key); /* NULL if not found */
void string_map_set(struct string_map *m, const char *key, const char *value);
/* As string_map_set(), for a key that is known to be new. */
void string_map_append(struct string_map *m, const char *key, const char *value);
void string_map_remove(struct string_map *m, const char *key);
/* Frees the contents; *m is empty then. */
void string_map_done(struct string_map *m);
bool string_maps_differ(const struct string_map *a, const struct string_map *b);
int64_t *int_map_at(struct int_map *m, const char *key); /* adds it as 0 if it is new */

/*
 * For MODEL_LIST and MODEL_MAP members; elements move when the list grows. list_add() returns the
 * new element, initialised. map_get() returns the value or NULL; map_put() finds or adds it.
 */
void *model_list_add(const struct type *item, void *list);
void model_list_remove(const struct type *item, void *list, size_t index);
void *model_map_get(const struct type *item, const void *map, const char *key);
void *model_map_put(const struct type *item, void *map, const char *key);
bool model_map_remove(const struct type *item, void *map, const char *key);

#define list_add(item, list)       ((struct item *)model_list_add(&item##_type, (list)))
#define list_remove(item, list, i) model_list_remove(&item##_type, (list), (i))
#define map_get(item, map, key)    ((struct item *)model_map_get(&item##_type, (map), (key)))
#define map_put(item, map, key)    ((struct item *)model_map_put(&item##_type, (map), (key)))
#define map_remove(item, map, key) model_map_remove(&item##_type, (map), (key))

#endif

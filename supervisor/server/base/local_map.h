/* SPDX-License-Identifier: Apache-2.0 */
/* local_map.h: a map of named objects, which embed their entry. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_BASE_LOCAL_MAP_H
#define DROVER_SUPERVISOR_SERVER_BASE_LOCAL_MAP_H

#include <stdbool.h>

#include "common/hash.h"

struct local;

/* Embedded in the object, to which the name belongs. */
struct local_key {
	struct hash_link link;
	const char *name;
};

/* All zeros is an empty map. */
struct local_map {
	struct hash_table table;
};

struct local_key *local_map_find(const struct local_map *m, const char *name); /* or NULL */
/* Adds key under a name that is not in the map yet. */
void local_map_add(struct local_map *m, struct local_key *key, const char *name);
void local_map_remove(struct local_map *m, struct local_key *key);
/* Returns all keys, sorted by name: an array of *ret_n that the caller frees. */
struct local_key **local_map_sorted(const struct local_map *m, size_t *ret_n);
/* The same for the keys that fits() accepts. */
struct local_key **local_map_select(const struct local_map *m,
    bool (*fits)(const void *arg, struct local_key *key), const void *arg, size_t *ret_n);
/* Frees the map. Calls drop, if it is not NULL, for each key, which it may free. */
void local_map_done(
    struct local_map *m, struct local *l, void (*drop)(struct local *l, struct local_key *key));

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* local_map.h: a hash table of named objects, linked through the objects. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_BASE_LOCAL_MAP_H
#define DROVER_SUPERVISOR_SERVER_BASE_LOCAL_MAP_H

#include <stddef.h>
#include <stdint.h>

/* Embedded. name belongs to the object. */
struct local_key {
	struct local_key *next;
	const char *name;
	uint64_t hash;
};

/* Zero is an empty one. */
struct local_map {
	struct local_key **buckets;
	size_t n_buckets, n;
};

struct local_key *local_map_find(const struct local_map *m, const char *name);
/* The name must be new. 0 or -ENOMEM. */
int local_map_add(struct local_map *m, struct local_key *key, const char *name);
void local_map_remove(struct local_map *m, struct local_key *key);
/* Every key, sorted by name: an array of m->n that the caller frees; NULL: no memory, or empty. */
struct local_key **local_map_sorted(const struct local_map *m);
void local_map_done(struct local_map *m); /* does not free the objects */

#endif

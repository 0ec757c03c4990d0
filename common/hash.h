/* SPDX-License-Identifier: Apache-2.0 */
/* hash.h: hash tables that are linked through their elements. Runs in: supervisor. */
#ifndef DROVER_COMMON_HASH_H
#define DROVER_COMMON_HASH_H

#include <stddef.h>
#include <stdint.h>

#include "common/id.h"

/* Embedded in an element, once for each table that it is in. */
struct hash_link {
	struct hash_link *next;
	uint64_t hash;
};

/* Zero is an empty table. The number of buckets is 0 or a power of two. */
struct hash_table {
	struct hash_link **buckets;
	size_t n_buckets, n;
};

/* FNV-1a. It does not resist an attacker who chooses many strings. */
uint64_t hash_string(const char *s);
/* Random ids are distributed as well as a hash of them. */
uint64_t hash_id(const struct id *id);

/* Adds an element; several may have the same hash. */
void hash_add(struct hash_table *t, struct hash_link *l, uint64_t hash);
/* Removes an element that is in the table. */
void hash_remove(struct hash_table *t, struct hash_link *l);
/* Return the first element with this hash and the next one with the same hash, or NULL. The caller
 * compares their keys. */
struct hash_link *hash_first(const struct hash_table *t, uint64_t hash);
struct hash_link *hash_next(const struct hash_link *l);
/* Returns the element after l, in no particular order: from NULL to NULL. */
struct hash_link *hash_each(const struct hash_table *t, const struct hash_link *l);
/* Frees the buckets, not the elements. */
void hash_done(struct hash_table *t);

#endif

// SPDX-License-Identifier: Apache-2.0
/* local_map.c: things by name. Runs in: supervisor. */
#include "supervisor/server/base/local_map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS_FIRST 64

/* FNV-1a. Collisions cannot be an attack: only operators choose the names. */
static uint64_t
hash_name(const char *name)
{
	uint64_t h = 0xcbf29ce484222325ull;

	for (; *name; name++)
		h = (h ^ (unsigned char)*name) * 0x100000001b3ull;
	return h;
}

static struct local_key **
bucket_of(const struct local_map *m, uint64_t hash)
{
	return &m->buckets[hash & (m->n_buckets - 1)];
}

struct local_key *
local_map_find(const struct local_map *m, const char *name)
{
	uint64_t hash = hash_name(name);

	if (m->n == 0)
		return NULL;
	for (struct local_key *k = *bucket_of(m, hash); k; k = k->next) {
		if (k->hash == hash && strcmp(k->name, name) == 0)
			return k;
	}
	return NULL;
}

static int
grow_map(struct local_map *m)
{
	struct local_map bigger = { .n_buckets = m->n_buckets ? m->n_buckets * 2 : BUCKETS_FIRST,
		.n = m->n };

	bigger.buckets = calloc(bigger.n_buckets, sizeof *bigger.buckets);
	if (!bigger.buckets)
		return -ENOMEM;
	for (size_t i = 0; i < m->n_buckets; i++) {
		struct local_key *k = m->buckets[i];

		while (k) {
			struct local_key *next = k->next, **bucket = bucket_of(&bigger, k->hash);

			k->next = *bucket;
			*bucket = k;
			k = next;
		}
	}
	free(m->buckets);
	*m = bigger;
	return 0;
}

int
local_map_add(struct local_map *m, struct local_key *key, const char *name)
{
	struct local_key **bucket;

	if (m->n >= m->n_buckets && grow_map(m) < 0 && m->n_buckets == 0)
		return -ENOMEM;
	key->name = name;
	key->hash = hash_name(name);
	bucket = bucket_of(m, key->hash);
	key->next = *bucket;
	*bucket = key;
	m->n++;
	return 0;
}

void
local_map_remove(struct local_map *m, struct local_key *key)
{
	struct local_key **at;

	if (m->n == 0)
		return;
	for (at = bucket_of(m, key->hash); *at && *at != key;)
		at = &(*at)->next;
	if (!*at)
		return;
	*at = key->next;
	m->n--;
}

static int
compare_names(const void *a, const void *b)
{
	const struct local_key *const *x = a, *const *y = b;

	return strcmp((*x)->name, (*y)->name);
}

struct local_key **
local_map_sorted(const struct local_map *m)
{
	struct local_key **list = m->n ? calloc(m->n, sizeof *list) : NULL;
	size_t n = 0;

	if (!list)
		return NULL;
	for (size_t i = 0; i < m->n_buckets; i++) {
		for (struct local_key *k = m->buckets[i]; k; k = k->next)
			list[n++] = k;
	}
	qsort(list, n, sizeof *list, compare_names);
	return list;
}

void
local_map_done(struct local_map *m)
{
	free(m->buckets);
	*m = (struct local_map){ 0 };
}

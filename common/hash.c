// SPDX-License-Identifier: Apache-2.0
/* hash.c: hash tables that are linked through their elements. Runs in: supervisor. */
#include "common/hash.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

#define BUCKETS_FIRST 64

uint64_t
hash_string(const char *s)
{
	uint64_t h = 0xcbf29ce484222325ull;

	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * 0x100000001b3ull;
	return h;
}

uint64_t
hash_id(const struct id *id)
{
	uint64_t h;

	memcpy(&h, id->b, sizeof h);
	return h;
}

static struct hash_link **
bucket_of(const struct hash_table *t, uint64_t hash)
{
	return &t->buckets[hash & (t->n_buckets - 1)];
}

static void
put_link(struct hash_table *t, struct hash_link *l)
{
	struct hash_link **bucket = bucket_of(t, l->hash);

	l->next = *bucket;
	*bucket = l;
}

static void
grow_table(struct hash_table *t)
{
	struct hash_table bigger = { .n_buckets = t->n_buckets ? 2 * t->n_buckets : BUCKETS_FIRST,
		.n = t->n };
	struct hash_link *next;

	bigger.buckets = mem_zeroed(bigger.n_buckets, sizeof *bigger.buckets);
	for (size_t i = 0; i < t->n_buckets; i++) {
		for (struct hash_link *l = t->buckets[i]; l; l = next) {
			next = l->next;
			put_link(&bigger, l);
		}
	}
	free(t->buckets);
	*t = bigger;
}

void
hash_add(struct hash_table *t, struct hash_link *l, uint64_t hash)
{
	if (t->n >= t->n_buckets)
		grow_table(t);
	l->hash = hash;
	put_link(t, l);
	t->n++;
}

void
hash_remove(struct hash_table *t, struct hash_link *l)
{
	struct hash_link **at = bucket_of(t, l->hash);

	while (*at != l)
		at = &(*at)->next;
	*at = l->next;
	t->n--;
}

static struct hash_link *
find_hash(struct hash_link *l, uint64_t hash)
{
	while (l && l->hash != hash)
		l = l->next;
	return l;
}

struct hash_link *
hash_first(const struct hash_table *t, uint64_t hash)
{
	return t->n ? find_hash(*bucket_of(t, hash), hash) : NULL;
}

struct hash_link *
hash_next(const struct hash_link *l)
{
	return find_hash(l->next, l->hash);
}

struct hash_link *
hash_each(const struct hash_table *t, const struct hash_link *l)
{
	size_t i = l ? (l->hash & (t->n_buckets - 1)) + 1 : 0;

	if (l && l->next)
		return l->next;
	while (i < t->n_buckets && !t->buckets[i])
		i++;
	return i < t->n_buckets ? t->buckets[i] : NULL;
}

void
hash_done(struct hash_table *t)
{
	free(t->buckets);
	*t = (struct hash_table){ 0 };
}

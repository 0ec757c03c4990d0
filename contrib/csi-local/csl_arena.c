// SPDX-License-Identifier: Apache-2.0
/* csl_arena.c: memory that lives as long as one call. Runs in: drover-csi-local. */
#include "contrib/csi-local/csl_arena.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

/* Precedes each piece. Its size keeps what follows aligned for every type. */
union piece {
	union piece *previous;
	max_align_t align;
};

static void *
piece_add(struct csl_arena *a, void *memory)
{
	union piece *p = memory;

	p->previous = a->last;
	a->last = p;
	return p + 1;
}

/* The caller's message decides the size, so running out of memory fails the unpacking and does not
 * end the plugin. */
static void *
protobuf_alloc(void *arena, size_t size)
{
	void *memory =
	    size < SIZE_MAX - sizeof(union piece) ? malloc(sizeof(union piece) + size) : NULL;

	return memory ? piece_add(arena, memory) : NULL;
}

static void
protobuf_free(void *arena, void *p)
{
	(void)arena;
	(void)p;
}

void
csl_arena_init(struct csl_arena *a)
{
	*a = (struct csl_arena){ .protobuf = { protobuf_alloc, protobuf_free, a } };
}

void
csl_arena_done(struct csl_arena *a)
{
	for (union piece *p = a->last, *previous; p; p = previous) {
		previous = p->previous;
		free(p);
	}
	a->last = NULL;
}

void *
csl_alloc(struct csl_arena *a, size_t n, size_t size)
{
	return piece_add(a, mem_zeroed(n * size / sizeof(union piece) + 2, sizeof(union piece)));
}

char *
csl_copy(struct csl_arena *a, const char *text)
{
	return strcpy(csl_alloc(a, strlen(text) + 1, 1), text);
}

void *
csl_grown(struct csl_arena *a, const void *at, size_t n)
{
	void **grown = csl_alloc(a, n + 1, sizeof *grown);

	if (n > 0)
		memcpy(grown, at, n * sizeof *grown);
	return grown;
}

const char *
csl_pairs_get(Csi__V1__StringEntry *const *at, size_t n, const char *key)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(at[i]->key, key) == 0)
			return at[i]->value;
	return NULL;
}

void
csl_pairs_set(
    struct csl_arena *a, Csi__V1__StringEntry ***at, size_t *n, const char *key, const char *value)
{
	Csi__V1__StringEntry *pair;

	for (size_t i = 0; i < *n; i++)
		if (strcmp((*at)[i]->key, key) == 0) {
			(*at)[i]->value = csl_copy(a, value);
			return;
		}
	pair = csl_alloc(a, 1, sizeof *pair);
	csi__v1__string_entry__init(pair);
	pair->key = csl_copy(a, key);
	pair->value = csl_copy(a, value);
	*at = csl_grown(a, *at, *n);
	(*at)[(*n)++] = pair;
}

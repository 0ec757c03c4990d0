/* SPDX-License-Identifier: Apache-2.0 */
/* csl_arena.h: memory that lives as long as one call. Runs in: drover-csi-local. */
#ifndef DROVER_CONTRIB_CSI_LOCAL_CSL_ARENA_H
#define DROVER_CONTRIB_CSI_LOCAL_CSL_ARENA_H

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>

#include "proto/csi.pb-c.h"

struct csl_arena {
	void *last;
	/* Unpacks messages into the arena: they are freed with it, and only with it. */
	ProtobufCAllocator protobuf;
};

/* Keys and values, as in a map of CSI. */
struct csl_pairs {
	Csi__V1__StringEntry **at;
	size_t n;
};

void csl_arena_init(struct csl_arena *a);
void csl_arena_done(struct csl_arena *a);

/* Return memory of the arena; zeroed, never NULL. */
void *csl_alloc(struct csl_arena *a, size_t n, size_t size);
char *csl_copy(struct csl_arena *a, const char *text);
/* Returns a copy of the array of n pointers with room for one more. */
void *csl_grown(struct csl_arena *a, const void *at, size_t n);

/* Returns the value of key, or NULL. */
const char *csl_pairs_get(Csi__V1__StringEntry *const *at, size_t n, const char *key);
/* Adds a pair, or changes the value of its key. */
void csl_pairs_set(
    struct csl_arena *a, Csi__V1__StringEntry ***at, size_t *n, const char *key, const char *value);

#endif

// SPDX-License-Identifier: Apache-2.0
/* csl_index.c: a sorted list of keys, each with an id. Runs in: drover-csi-local. */
#include "contrib/csi-local/csl_index.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

struct entry {
	char *key;
	char id[ID_HEX_SIZE];
};

/* There are at most thousands of volumes, so moving the tail is cheaper than a tree. */
struct csl_index {
	struct entry *at;
	size_t n;
};

struct csl_index *
csl_index_new(void)
{
	return mem_new(struct csl_index);
}

size_t
csl_index_from(const struct csl_index *x, const char *key)
{
	size_t low = 0, high = x->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(x->at[middle].key, key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const char *
csl_index_at(const struct csl_index *x, size_t i)
{
	return i < x->n ? x->at[i].id : NULL;
}

const char *
csl_index_get(const struct csl_index *x, const char *key)
{
	size_t i = csl_index_from(x, key);

	return i < x->n && strcmp(x->at[i].key, key) == 0 ? x->at[i].id : NULL;
}

void
csl_index_add(struct csl_index *x, const char *key, const char *id)
{
	size_t i = csl_index_from(x, key);

	if (i == x->n || strcmp(x->at[i].key, key) != 0) {
		x->at = mem_resize(x->at, x->n + 1, sizeof *x->at);
		memmove(x->at + i + 1, x->at + i, (x->n - i) * sizeof *x->at);
		x->at[i].key = mem_strdup(key);
		x->n++;
	}
	(void)strcpy(x->at[i].id, id);
}

void
csl_index_drop(struct csl_index *x, const char *key)
{
	size_t i = csl_index_from(x, key);

	if (i == x->n || strcmp(x->at[i].key, key) != 0)
		return;
	free(x->at[i].key);
	x->n--;
	memmove(x->at + i, x->at + i + 1, (x->n - i) * sizeof *x->at);
}

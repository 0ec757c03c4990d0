// SPDX-License-Identifier: Apache-2.0
/* csl_busy.c: the volumes that calls are working on. Runs in: drover-csi-local. */
#include "contrib/csi-local/csl_busy.h"

#include <pthread.h>
#include <string.h>

#include "common/mem.h"

/* As many keys as there are calls at once, so a list without order is enough. */
struct csl_busy {
	pthread_mutex_t mutex;
	const char **keys;
	size_t n;
};

struct csl_busy *
csl_busy_new(void)
{
	struct csl_busy *b = mem_new(struct csl_busy);

	(void)pthread_mutex_init(&b->mutex, NULL);
	return b;
}

static size_t
find_key(const struct csl_busy *b, const char *key)
{
	size_t i = 0;

	while (i < b->n && strcmp(b->keys[i], key) != 0)
		i++;
	return i;
}

bool
csl_busy_add(struct csl_busy *b, const char *key)
{
	bool added;

	(void)pthread_mutex_lock(&b->mutex);
	added = find_key(b, key) == b->n;
	if (added) {
		b->keys = mem_resize(b->keys, b->n + 1, sizeof *b->keys);
		b->keys[b->n++] = key;
	}
	(void)pthread_mutex_unlock(&b->mutex);
	return added;
}

void
csl_busy_drop(struct csl_busy *b, const char *key)
{
	(void)pthread_mutex_lock(&b->mutex);
	b->keys[find_key(b, key)] = b->keys[b->n - 1];
	b->n--;
	(void)pthread_mutex_unlock(&b->mutex);
}

// SPDX-License-Identifier: Apache-2.0
/* local_map.c: a map of named objects. Runs in: supervisor. */
#include "supervisor/server/base/local_map.h"

#include <stdlib.h>
#include <string.h>

#include "common/list.h"
#include "common/mem.h"

static struct local_key *
key_of(struct hash_link *link)
{
	return container_of(link, struct local_key, link);
}

struct local_key *
local_map_find(const struct local_map *m, const char *name)
{
	struct hash_link *link = hash_first(&m->table, hash_string(name));

	while (link && strcmp(key_of(link)->name, name) != 0)
		link = hash_next(link);
	return link ? key_of(link) : NULL;
}

/* Names are chosen by operators, so nobody attacks the hash. */
void
local_map_add(struct local_map *m, struct local_key *key, const char *name)
{
	key->name = name;
	hash_add(&m->table, &key->link, hash_string(name));
}

void
local_map_remove(struct local_map *m, struct local_key *key)
{
	hash_remove(&m->table, &key->link);
}

static int
compare_names(const void *a, const void *b)
{
	const struct local_key *const *x = a, *const *y = b;

	return strcmp((*x)->name, (*y)->name);
}

struct local_key **
local_map_select(const struct local_map *m, bool (*fits)(const void *arg, struct local_key *key),
    const void *arg, size_t *ret_n)
{
	struct local_key **list = mem_zeroed(m->table.n, sizeof *list);
	size_t n = 0;

	for (struct hash_link *link = NULL; (link = hash_each(&m->table, link));)
		if (fits(arg, key_of(link)))
			list[n++] = key_of(link);
	qsort(list, n, sizeof *list, compare_names);
	*ret_n = n;
	return list;
}

static bool
fits_always(const void *arg, struct local_key *key)
{
	return true;
}

struct local_key **
local_map_sorted(const struct local_map *m, size_t *ret_n)
{
	return local_map_select(m, fits_always, NULL, ret_n);
}

void
local_map_done(
    struct local_map *m, struct local *l, void (*drop)(struct local *l, struct local_key *key))
{
	struct hash_link *link = hash_each(&m->table, NULL), *next;

	for (; drop && link; link = next) {
		next = hash_each(&m->table, link);
		drop(l, key_of(link));
	}
	hash_done(&m->table);
}

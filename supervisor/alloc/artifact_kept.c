// SPDX-License-Identifier: Apache-2.0
/* artifact_kept.c: fetches of artifacts, from one supervisor to the next. Runs in: supervisor. */
#include "supervisor/alloc/artifact_kept.h"

#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "supervisor/alloc/alloc_record.h"

void
kept_fetch_save(struct alloc_record *rec, const char *task, const char *boot, const char *hash,
    const struct id *staging)
{
	struct fetch_record *one = list_add(fetch_record, &rec->fetches);
	char name[ID_HEX_SIZE];

	id_to_hex(staging, name);
	str_set(&one->task, task);
	str_set(&one->hash, hash);
	str_set(&one->staging, name);
	str_set(&one->boot, boot);
}

struct kept_fetches *
kept_fetches_read(const struct alloc_record *rec, const char *task, const char *boot)
{
	struct kept_fetches *k = NULL;

	for (size_t i = 0; i < rec->fetches.n; i++) {
		const struct fetch_record *one = &rec->fetches.v[i];
		const size_t n = k ? k->n : 0;
		struct kept_fetch kept;

		if (!str_eq(one->task, task) || !str_eq(one->boot, boot) ||
		    !id_from_hex(str(one->staging), &kept.staging))
			continue;
		(void)snprintf(kept.hash, sizeof kept.hash, "%s", str(one->hash));
		k = mem_resize(k, 1, sizeof *k + (n + 1) * sizeof k->v[0]);
		k->v[n] = kept;
		k->n = n + 1;
	}
	return k;
}

struct id
kept_fetches_take(struct kept_fetches *k, const char *hash)
{
	for (size_t i = 0; k && i < k->n; i++) {
		const struct id staging = k->v[i].staging;

		if (strcmp(k->v[i].hash, hash) != 0)
			continue;
		k->v[i] = k->v[--k->n];
		return staging;
	}
	return (struct id){ 0 };
}

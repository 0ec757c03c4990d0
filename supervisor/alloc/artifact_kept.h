/* SPDX-License-Identifier: Apache-2.0 */
/*
 * artifact_kept.h: the fetches of artifacts that the last supervisor began and did not finish. What
 * the fetcher completed meanwhile is placed, and not fetched again. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_ALLOC_ARTIFACT_KEPT_H
#define DROVER_SUPERVISOR_ALLOC_ARTIFACT_KEPT_H

#include <stdbool.h>
#include <stddef.h>

#include "common/id.h"
#include "supervisor/alloc/artifact_spec.h"

struct alloc_record;

struct kept_fetch {
	struct id staging;
	char hash[ARTIFACT_HASH_SIZE];
};

struct kept_fetches {
	size_t n;
	struct kept_fetch v[];
};

/* Adds a fetch of the task to the record. boot: the present boot's id. */
void kept_fetch_save(struct alloc_record *rec, const char *task, const char *boot, const char *hash,
    const struct id *staging);
/* Returns the fetches of the task that began since the machine booted: what was written before may
 * have been lost. NULL: there are none. The caller frees it. */
struct kept_fetches *kept_fetches_read(
    const struct alloc_record *rec, const char *task, const char *boot);
/* Removes a fetch of this artifact from k, which may be NULL, and returns its staging directory;
 * the zero id if there is none. */
struct id kept_fetches_take(struct kept_fetches *k, const char *hash);

#endif

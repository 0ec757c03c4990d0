/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker_table.h: finds the worker of an id that the supervisor chose, with memory in which the
 * worker reports its progress. Runs in: fetcher, image-fetcher.
 */
#ifndef DROVER_COMMON_WORKER_TABLE_H
#define DROVER_COMMON_WORKER_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"
#include "common/id.h"
#include "common/worker.h"

/* All but workers and told_size is private. */
struct worker_table {
	struct workers *workers;
	size_t told_size; /* bytes of one entry's progress */
	char *told;       /* [WORKERS_MAX], shared with all workers */
	struct {
		struct id id;
		uint32_t serial; /* of the request that started the worker; 0: a free entry */
	} v[WORKERS_MAX];
};

/* Makes the shared memory. Returns 0 or -errno. */
int worker_table_open(struct worker_table *t, struct err *e);

/* Makes an entry with zeroed progress for the worker that is started for the request with this
 * serial. Returns its number; -1: the id is zero or has a running worker, or the table is full. */
int worker_table_add(struct worker_table *t, const struct id *id, uint32_t serial);
/* Returns the number of the running worker of this id, or -1. */
int worker_table_find(const struct worker_table *t, const struct id *id);
bool worker_table_runs(const struct worker_table *t, int i);
/* Returns the progress of entry i, which stays valid. */
void *worker_table_told(const struct worker_table *t, int i);
/* Kills the worker of this id, if it runs, and the programs that it runs. */
void worker_table_cancel(const struct worker_table *t, const struct id *id);

#endif

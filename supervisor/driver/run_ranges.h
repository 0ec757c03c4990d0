/* SPDX-License-Identifier: Apache-2.0 */
/* run_ranges.h: the ranges of ids that containers have (proto/container_ids.h). Runs in:
 * supervisor. */
#ifndef DROVER_SUPERVISOR_DRIVER_RUN_RANGES_H
#define DROVER_SUPERVISOR_DRIVER_RUN_RANGES_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "common/id.h"
#include "proto/container_ids.h"

struct run_ranges {
	uint64_t bits[CONTAINER_RANGES / 64 + 1]; /* bit n: a container has range n */
};

/* Marks a range as used. Returns false for a number that no container can have. */
bool run_range_take(struct run_ranges *ranges, uint32_t range);
void run_range_free(struct run_ranges *ranges, uint32_t range);
/* Takes the lowest free range. Returns its number, or 0 if there is none. */
uint32_t run_range_find(struct run_ranges *ranges);
/*
 * Takes the ranges of runs of this boot that have a record in the directory but are not known, as
 * after the loss of state.db: their containers run until they are reaped. Returns 0, or -errno with
 * *e.
 */
int run_ranges_read(struct run_ranges *ranges, int records_fd, const char *boot_id,
    bool (*is_known)(void *arg, const struct id *run), void *arg, struct err *e);

#endif

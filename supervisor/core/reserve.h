/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reserve.h: a file beside state.db that keeps some space of a full disk for the last commits of a
 * node that lands or retires: else a node with a full disk could not leave. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_CORE_RESERVE_H
#define DROVER_SUPERVISOR_CORE_RESERVE_H

#include <stdbool.h>

struct reserve;

/* Makes the file in this directory, unless it is there or less than 16 MiB are free. The caller
 * frees the result. */
struct reserve *reserve_new(const char *dir);
void reserve_free(struct reserve *r); /* ignores NULL; the file stays */

/* Frees the next piece of the space. Returns false if nothing is left. */
bool reserve_release(struct reserve *r);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* hook_lease.h: what else depends on the lease of an alloc. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_ALLOC_HOOK_LEASE_H
#define DROVER_SUPERVISOR_ALLOC_HOOK_LEASE_H

#include <stdbool.h>
#include <stddef.h>

struct alloc_runner;

/* The lease had passed when the alloc was restored: no task of it starts again. */
bool alloc_lease_passed(const struct alloc_runner *ar);
/* An executor, which reads the lease itself, lets a task of the alloc run: it holds. */
void alloc_lease_holds(struct alloc_runner *ar);
/* The sentence for an alloc that does not run because its lease has passed. */
void alloc_lease_text(const struct alloc_runner *ar, char *buf, size_t size);

#endif

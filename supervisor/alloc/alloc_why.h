/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alloc_why.h: explains why an alloc or its tasks stopped, restarted, or wait. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_ALLOC_ALLOC_WHY_H
#define DROVER_SUPERVISOR_ALLOC_ALLOC_WHY_H

#include "supervisor/alloc/causes.h"
#include "supervisor/table/alloc_table.h"

/* Finds all known causes, the newest first. -errno with *e: the history cannot be read. The caller
 * ends *ret with causes_done() in either case. */
int alloc_why(struct sup *sup, struct sup_alloc *sa, struct causes *ret, struct err *e);

#endif

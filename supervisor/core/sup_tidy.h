/* SPDX-License-Identifier: Apache-2.0 */
/* sup_tidy.h: gives memory and disk space back after many objects were removed, and overwrites what
 * the log of state.db has of removed secrets. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_CORE_SUP_TIDY_H
#define DROVER_SUPERVISOR_CORE_SUP_TIDY_H

#include "supervisor/core/sup.h"

void tidy_new(struct sup *sup);
void tidy_free(struct sup *sup);

/* Counts an object whose row is deleted. After many, when none was removed for some seconds,
 * state.db and its log are truncated, and free memory goes back to the kernel: malloc and SQLite
 * would keep both for objects to come. */
void tidy_count(struct sup *sup);
/* A secret has been removed from a row. Its bytes in state.db are overwritten with the commit, but
 * the log keeps earlier versions of the row: it is truncated when no other object was removed for
 * some seconds, and after a minute at the latest. */
void tidy_secret(struct sup *sup);

#endif

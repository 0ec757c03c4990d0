/* SPDX-License-Identifier: Apache-2.0 */
/* leaks.h: objects of drover on this machine that no row of state.db explains. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_ALLOC_LEAKS_H
#define DROVER_SUPERVISOR_ALLOC_LEAKS_H

#include <jansson.h>

#include "supervisor/core/sup.h"

/*
 * Compares cgroups, sockets and records of runs, mounts, and file-helper's directories with the
 * rows. done gets a new reference to a list of {Kind, Name, Detail}, once, never from within the
 * call. A place that could not be read is in the list with kind "unknown".
 */
void leaks_collect(
    struct sup *sup, void (*done)(struct sup *sup, void *arg, json_t *list), void *arg);

#endif

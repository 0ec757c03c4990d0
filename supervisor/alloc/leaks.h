/* SPDX-License-Identifier: Apache-2.0 */
/* leaks.h: what is on this machine in drover's name without a row in state.db. Runs in:
 * supervisor. */
#ifndef DROVER_SUPERVISOR_ALLOC_LEAKS_H
#define DROVER_SUPERVISOR_ALLOC_LEAKS_H

#include <jansson.h>

#include "supervisor/core/sup.h"

/*
 * Asks exec-helper, mount-helper and file-helper what there is and compares. done gets a new
 * reference to a list of {Kind, Name, Detail}, once, never from within the call; a helper that does
 * not answer is in the list as kind "unknown".
 */
void leaks_collect(
    struct sup *sup, void (*done)(struct sup *sup, void *arg, json_t *list), void *arg);

#endif

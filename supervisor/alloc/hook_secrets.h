/* SPDX-License-Identifier: Apache-2.0 */
/* hook_secrets.h: the mounts of secrets of raw_exec tasks. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_ALLOC_HOOK_SECRETS_H
#define DROVER_SUPERVISOR_ALLOC_HOOK_SECRETS_H

#include <stdbool.h>

struct sup;
struct sup_alloc;

/* Returns true if the secrets of a task of the alloc are mounted. */
bool alloc_has_secrets(const struct sup *sup, const struct sup_alloc *sa);

#endif

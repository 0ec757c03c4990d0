/* SPDX-License-Identifier: Apache-2.0 */
/* cores.h: sets of processors by their numbers. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_NODE_CORES_H
#define DROVER_SUPERVISOR_NODE_CORES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/engine/field.h"

#define CORES_MAX       4096
#define CORES_TEXT_SIZE 512

struct core_set {
	uint8_t has[CORES_MAX];
};

/* Adds those of "0-3,8". false: it is no such list; what stood before the error has been added. */
bool core_set_parse(struct core_set *set, const char *list);
/* Numbers below 0 or from CORES_MAX on are in no set. */
bool core_set_has(const struct core_set *set, int64_t core);

/* Appends one. 0 or -ENOMEM. */
int ints_add(struct ints *list, int64_t value);
/* "0-3,8", cut with "…" where buf ends. */
void core_list_format(const struct ints *list, char buf[CORES_TEXT_SIZE]);

#endif

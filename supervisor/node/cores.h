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

/* Adds the numbers of a list such as "0-3,8". Returns false if it does not parse; the numbers
 * before the error have been added. */
bool core_set_parse(struct core_set *set, const char *list);
/* Returns false for numbers below 0 and from CORES_MAX on. */
bool core_set_has(const struct core_set *set, int64_t core);

void ints_add(struct ints *list, int64_t value);
/* Formats the list as "0-3,8"; a text that is too long is cut and ends in "…". */
void core_list_format(const struct ints *list, char buf[CORES_TEXT_SIZE]);

#endif

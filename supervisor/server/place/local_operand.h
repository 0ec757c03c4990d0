/* SPDX-License-Identifier: Apache-2.0 */
/* local_operand.h: the table of operands, for local_constraint.c and its validation. Runs in:
 * supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_PLACE_LOCAL_OPERAND_H
#define DROVER_SUPERVISOR_SERVER_PLACE_LOCAL_OPERAND_H

#include <stdbool.h>

#include "common/err.h"

enum local_operand_needs {
	NEEDS_LEFT = 1 << 0,
	NEEDS_RIGHT = 1 << 1,
	NO_RIGHT = 1 << 2,
	OF_PEERS = 1 << 3, /* depends on other allocs: not for a task, not for an affinity */
	NOT_AFFINITY = 1 << 4,
};

/* Both values exist when holds() is called, except for "!=", which gets "" for one that does not.
 */
struct local_operand {
	const char *word;
	unsigned needs;
	bool (*holds)(const char *left, const char *right);
	int (*check)(const char *right, struct err *e); /* of the right side */
};

/* NULL: there is no such operand. "" is "=". */
const struct local_operand *local_operand_find(const char *word);

#endif

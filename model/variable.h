/* SPDX-License-Identifier: Apache-2.0 */
/* variable.h: a variable: items at a path of a namespace, and its lock. Runs in: supervisor. */
#ifndef DROVER_MODEL_VARIABLE_H
#define DROVER_MODEL_VARIABLE_H

#include "model/engine/field.h"

#define VARIABLE_PATH_MAX  128
#define VARIABLE_BYTES_MAX 65536 /* of all keys and values together */

/* Who holds the variable, and for how long without a renewal. */
struct variable_lock {
	char *id;
	int64_t ttl;   /* duration */
	int64_t delay; /* duration after the TTL in which nobody gets the lock */
};

struct variable {
	char *namespace, *path;
	struct variable_lock *lock; /* NULL: not locked */
	uint64_t create_index, modify_index;
	int64_t create_time, modify_time; /* nanoseconds since 1970, also in JSON */
	struct string_map items;          /* secret */
};

MODEL_DECLARE(variable_lock);
MODEL_DECLARE(variable);
/* A variable without its items, as lists show it. */
extern const struct type variable_stub_type;
/* The same, as filters of lists see it; it cannot be decoded. */
extern const struct type variable_filter_type;

/* Checks the path of a variable that is to be written. Returns 0 or -EINVAL with a sentence. */
int variable_check_path(const char *path, struct err *e);
/* Returns the bytes of all keys and values. */
size_t variable_size(const struct variable *v);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* local_variables.h: variables. Their items are sealed and only in state.db, so that their size
 * takes no memory. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_VARIABLE_LOCAL_VARIABLES_H
#define DROVER_SUPERVISOR_SERVER_VARIABLE_LOCAL_VARIABLES_H

#include "model/variable.h"
#include "supervisor/core/seal.h"
#include "supervisor/server/base/local.h"
#include "supervisor/server/base/local_map.h"

struct local_lock;

struct local_variable {
	struct local *l;
	struct local_key key; /* "<namespace>.<path>" */
	char *name;
	struct variable var; /* without its items */
	struct dirty row;
	struct sealed items;     /* until they are in the row */
	size_t size;             /* of the sealed items, wherever they are */
	struct local_lock *lock; /* local_locks.c; NULL: not locked */
	bool gone;               /* the row is being deleted; then this is freed */
};

void local_variables_init(struct local *l);
void local_variables_free(struct local *l);
int local_variables_load(struct local *l, struct err *e);

struct local_variable *local_variable_find(
    struct local *l, const char *namespace, const char *path); /* or NULL */
/* Returns the variables of a namespace ("*": of all) whose paths have this prefix, sorted by
 * their keys; the caller frees the array of *ret_n. */
struct local_key **local_variables_select(
    const struct local *l, const char *namespace, const char *prefix, size_t *ret_n);
static inline struct local_variable *
local_variable_of(struct local_key *key)
{
	return key ? container_of(key, struct local_variable, key) : NULL;
}

/*
 * Writes the namespace, path and items of *var, durably, and sets the other members. With
 * var->lock the variable is locked, for a time that begins now; without, its lock stays. Returns 0,
 * or -errno with *e if the items cannot be sealed, -EDQUOT if there are too many variables or they
 * are too large together; then nothing has changed.
 */
int local_variable_put(struct local *l, struct variable *var, struct err *e);
/* Deletes it, durably. */
void local_variable_forget(struct local_variable *v);
/* Removes the lock, durably. The items and the time of their change stay. */
void local_variable_unlock(struct local_variable *v);
/* Copies it with its items into *ret (initialised; the caller frees it, whatever is returned).
 * Returns 0, or -errno with *e if the items cannot be read: -EBADMSG without their key. */
int local_variable_get(const struct local_variable *v, struct variable *ret, struct err *e);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * local_locks.h: how long the holder of a variable's lock keeps it. The lock is lost when it was
 * not renewed for twice the TTL, because a renewal may be late; after the lock's delay it is
 * removed. These times begin again when the agent starts. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_SERVER_VARIABLE_LOCAL_LOCKS_H
#define DROVER_SUPERVISOR_SERVER_VARIABLE_LOCAL_LOCKS_H

#include "supervisor/server/variable/local_variables.h"

#define LOCK_TTL_DEFAULT_NS   (15 * NS_PER_S)
#define LOCK_DELAY_DEFAULT_NS (15 * NS_PER_S)
#define LOCK_TTL_MIN_NS       (10 * NS_PER_S)
#define LOCK_TTL_MAX_NS       (24 * 3600 * NS_PER_S)

/* Begins the time of v->var.lock, or begins it anew. */
void local_lock_begin(struct local_variable *v);
/* Returns false if the lock is lost: then it cannot be renewed. */
bool local_lock_renew(struct local_variable *v);
void local_lock_drop(struct local_variable *v);

#endif

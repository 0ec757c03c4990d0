/* SPDX-License-Identifier: Apache-2.0 */
/*
 * local_leases.h: how long the holder of a variable's lock keeps it. A lease ends when it was not
 * renewed for twice the TTL, because a renewal may be late; after the lock's delay the lock is
 * removed. Leases begin again when the agent starts. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_SERVER_VARIABLE_LOCAL_LEASES_H
#define DROVER_SUPERVISOR_SERVER_VARIABLE_LOCAL_LEASES_H

#include "supervisor/server/variable/local_variables.h"

#define LOCK_TTL_DEFAULT_NS   (15 * NS_PER_S)
#define LOCK_DELAY_DEFAULT_NS (15 * NS_PER_S)
#define LOCK_TTL_MIN_NS       (10 * NS_PER_S)
#define LOCK_TTL_MAX_NS       (24 * 3600 * NS_PER_S)

/* Begins the lease of v->var.lock, or begins it anew. */
void local_lease_begin(struct local_variable *v);
/* Returns false if the lease has ended: then it cannot be renewed. */
bool local_lease_renew(struct local_variable *v);
void local_lease_drop(struct local_variable *v);

#endif

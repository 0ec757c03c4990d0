/* SPDX-License-Identifier: Apache-2.0 */
/* local_namespaces.h: the namespaces of jobs and volumes. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_JOB_LOCAL_NAMESPACES_H
#define DROVER_SUPERVISOR_SERVER_JOB_LOCAL_NAMESPACES_H

#include "model/namespace.h"
#include "supervisor/server/base/local.h"
#include "supervisor/server/base/local_map.h"

#define LOCAL_NAMESPACE_DEFAULT "default"

struct local_namespace {
	struct local_key key; /* its name */
	struct namespace ns;
	struct dirty row;
	bool gone; /* the row is being deleted; then this is freed */
};

/* The namespace "default" always exists. */
void local_namespaces_init(struct local *l);
void local_namespaces_free(struct local *l);
int local_namespaces_load(struct local *l, struct err *e);
/* Makes the namespace of a loaded job or volume if it has no row: a state.db of 0.1 has none. */
void local_namespace_adopt(struct local *l, const char *name);

struct local_namespace *local_namespace_find(const struct local *l, const char *name); /* or NULL */
/* Returns all namespaces, sorted by name; the caller frees the array of *ret_n. */
struct local_key **local_namespaces_sorted(const struct local *l, size_t *ret_n);
static inline struct local_namespace *
local_namespace_of(struct local_key *key)
{
	return key ? container_of(key, struct local_namespace, key) : NULL;
}
/* Makes or replaces the namespace of that name, durably. Takes over *ns, which is emptied. */
void local_namespace_put(struct local *l, struct namespace *ns);
/* Deletes it, durably. It must have no jobs and no volumes. */
void local_namespace_forget(struct local *l, struct local_namespace *n);

#endif

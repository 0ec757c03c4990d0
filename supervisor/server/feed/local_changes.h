/* SPDX-License-Identifier: Apache-2.0 */
/*
 * local_changes.h: at which index each kind of objects changed last, and the list of changed
 * objects. Requests that wait and followers of events are woken after the commit of a change. Runs
 * in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_SERVER_FEED_LOCAL_CHANGES_H
#define DROVER_SUPERVISOR_SERVER_FEED_LOCAL_CHANGES_H

#include "supervisor/server/base/local.h"
#include "supervisor/server/base/local_news.h"

enum local_kind {
	LOCAL_JOBS,
	LOCAL_ALLOCS,
	LOCAL_EVALS,
	LOCAL_DEPLOYMENTS,
	LOCAL_NODES,
	LOCAL_SERVICES,
	LOCAL_VOLUMES,
	LOCAL_NAMESPACES,
	LOCAL_SIGNING_KEYS,
	LOCAL_VARIABLES,
	LOCAL_ACL_POLICIES,
	LOCAL_ACL_TOKENS,
	LOCAL_ACL_ROLES,
	LOCAL_KINDS
};

void local_changes_init(struct local *l);
void local_changes_free(struct local *l);
/* To be called when the index was read from state.db. */
void local_changes_load(struct local *l);

/* Records that an object of this kind has changed at this index. */
void local_changes_record(struct local *l, enum local_kind kind, uint64_t index);
uint64_t local_changes_last(const struct local *l, enum local_kind kind);
/* Returns the index of an object for a request, which may be older than this process: at least that
 * of the agent's start, because earlier changes are not known. */
uint64_t local_changes_since_start(const struct local *l, uint64_t index);

/* Puts the object of n into the list of changed objects, at this index. It must be removed before
 * the object is freed. */
void local_changes_put(
    struct local *l, struct local_news *n, const struct local_news_type *type, uint64_t index);
void local_changes_remove(struct local *l, struct local_news *n);
struct local_news *local_changes_newest(const struct local *l); /* or NULL */

/* Records that the node has changed. */
void local_node_changed(struct local *l);

#endif

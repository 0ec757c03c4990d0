/* SPDX-License-Identifier: Apache-2.0 */
/*
 * local_changes.h: at which index what changed last. Requests that wait and streams of events are
 * woken after the commit of a change. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_SERVER_FEED_LOCAL_CHANGES_H
#define DROVER_SUPERVISOR_SERVER_FEED_LOCAL_CHANGES_H

#include "supervisor/server/base/local.h"
#include "supervisor/server/base/local_news.h"

/* The kinds of objects, each with the index of its last change. */
enum local_kind {
	LOCAL_JOBS,
	LOCAL_ALLOCS,
	LOCAL_EVALS,
	LOCAL_DEPLOYMENTS,
	LOCAL_NODES,
	LOCAL_SERVICES,
	LOCAL_VOLUMES,
	LOCAL_KINDS
};

int local_changes_init(struct local *l);
void local_changes_free(struct local *l);
/* The index was read from state.db. */
void local_changes_load(struct local *l);

/* Something of this kind has changed at this index. */
void local_changes_note(struct local *l, enum local_kind kind, uint64_t index);
uint64_t local_changes_last(const struct local *l, enum local_kind kind);
/* The index of an object of this index, for a request that may be older than this process: whatever
 * was here before the agent's start counts as changed then. */
uint64_t local_changes_since_start(const struct local *l, uint64_t index);

/* n says the same from this index on, as an event. Its thing lives until the removal. */
void local_changes_put(
    struct local *l, struct local_news *n, const struct local_news_type *type, uint64_t index);
void local_changes_remove(struct local *l, struct local_news *n);
struct local_news *local_changes_newest(const struct local *l);

/* The node has changed. */
void local_node_changed(struct local *l);

#endif

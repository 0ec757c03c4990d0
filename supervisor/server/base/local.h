/* SPDX-License-Identifier: Apache-2.0 */
/*
 * local.h: the embedded one-node server: its index, and one part for each of its files.
 * A part is defined in its file alone and made by that file's _init(). Everything durable has a
 * row, written at the end of the turn. Runs in: supervisor.
 *
 * Its rooms, each of which knows only those before it: base, feed (the changes, for requests that
 * wait and for followers of events), sign (keys, tokens of tasks), acl (policies, tokens, and who
 * sends a request), capacity (what allocs use of the node), job (the books: jobs, slots, allocs,
 * evaluations), claim (volumes, services), variable, deploy (deployments and their rules), place
 * (decides about slots, places allocs), drive (actions that start by themselves, and the pass),
 * api.
 */
#ifndef DROVER_SUPERVISOR_SERVER_BASE_LOCAL_H
#define DROVER_SUPERVISOR_SERVER_BASE_LOCAL_H

#include "common/list.h"
#include "supervisor/core/sup_timer.h"
#include "supervisor/core/sup_turn.h"
#include "supervisor/source/source.h"

struct namespace;
struct sd_event_source;

struct local {
	struct source base;
	/* local_base.c */
	uint64_t index;
	struct dirty index_row;
	/* feed/ */
	struct local_changes *changes;
	struct local_kept *kept;
	struct local_streams *streams;
	/* sign/ */
	struct local_keys *keys;
	struct local_signings *signings;
	/* Finds a namespace, or NULL; job/local_namespaces.c, which sign/ cannot name, sets it. */
	const struct namespace *(*namespace_find)(const struct local *l, const char *name);
	/* acl/ */
	struct local_acl *acl;
	struct local_identities *identities;
	/* capacity/ */
	struct local_used *used;
	struct local_cores *cores;
	struct local_ports *ports;
	/* job/ */
	struct local_marks *marks;
	struct local_namespaces *namespaces;
	struct local_jobs *jobs;
	struct local_families *families;
	struct local_allocs *allocs;
	struct local_evals *evals;
	/* claim/ */
	struct local_volumes *volumes;
	struct local_releases *releases;
	struct local_services *services;
	/* variable/ */
	struct local_variables *variables;
	struct local_values *values;
	/* deploy/ */
	struct local_deployments *deployments;
	/* place/ */
	struct local_unplaced *unplaced;
	struct local_drain *drain;
	/* drive/ */
	struct local_periodic *periodic;
	struct sup_timer age;
	int64_t collect_before_ns; /* local_age_collect(); 0: it is done */
};

static inline struct local *
local_of(struct source *s)
{
	return container_of(s, struct local, base);
}

static inline struct local *
local_of_sup(struct sup *sup)
{
	return local_of(sup->source);
}

/* Returns a new index for an object that changes in this turn. */
uint64_t local_index_next(struct local *l);
void local_index_init(struct local *l);
/* Continues after every index that was used before the restart. Returns 0 or -errno. */
int local_index_load(struct local *l, struct err *e);
void local_index_free(struct local *l);

#endif

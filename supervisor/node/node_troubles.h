/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node_troubles.h: what events of the node have said is bad, until an event says that it has ended.
 * They survive a restart, so that the end is told also when it comes after one. Runs in:
 * supervisor.
 */
#ifndef DROVER_SUPERVISOR_NODE_NODE_TROUBLES_H
#define DROVER_SUPERVISOR_NODE_NODE_TROUBLES_H

#include <jansson.h>
#include <stdbool.h>

#include "common/err.h"

struct sup;

/* Reads those of the last supervisor, unless the node is a new one. Returns 0, or -errno with *e;
 * a row that cannot be read is forgotten. */
int node_troubles_new(struct sup *sup, struct err *e);
void node_troubles_free(struct sup *sup);

/* Returns why the thing of this name is bad; NULL: it is not. */
const char *node_trouble(const struct sup *sup, const char *name);
/* Begins a trouble, or ends it (why: NULL). store: false if nothing may be committed now; then it
 * is stored with the next one. */
void node_trouble_set(struct sup *sup, const char *name, const char *why, bool store);
/* Returns an object with the reason of each trouble by its name; it belongs to the supervisor. */
json_t *node_troubles(const struct sup *sup);

#endif

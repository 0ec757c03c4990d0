/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node_events.h: the last ten events of the node: of its volumes, plugins, drivers, disk, clock,
 * health, and connection to the servers. They survive a restart. What flaps is limited: beyond ten
 * events of a subsystem in a minute, only the last one is added, when the minute has passed. Runs
 * in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_NODE_NODE_EVENTS_H
#define DROVER_SUPERVISOR_NODE_NODE_EVENTS_H

#include "model/node.h"
#include "supervisor/core/sup.h"

/* Reads the events of the last supervisor, unless the node is a new one. Returns 0, or -errno with
 * *e; events that cannot be read are forgotten. */
int node_events_new(struct sup *sup, struct err *e);
void node_events_free(struct sup *sup);

/* Adds a copy of an event with its subsystem (such as "Storage"), message and details; the source
 * is notified. */
void node_event_add(struct sup *sup, const struct node_event *event);
/* The same with a message only. */
void __attribute__((format(printf, 3, 4)))
node_event_say(struct sup *sup, const char *subsystem, const char *fmt, ...);

#endif

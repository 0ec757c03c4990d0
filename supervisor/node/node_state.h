/* SPDX-License-Identifier: Apache-2.0 */
/* node_state.h: the description of this node: identity, attributes, resources, drivers, plugins.
 * Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_NODE_NODE_STATE_H
#define DROVER_SUPERVISOR_NODE_NODE_STATE_H

#include "model/node.h"
#include "supervisor/core/sup.h"

/* Reads the node's id from state.db, or makes one, and takes the fingerprints. */
int node_state_new(struct sup *sup, struct err *e);
void node_state_free(struct sup *sup);
/* Fills in the size of the disk (node_disk.h), after the allocs have been loaded. */
void node_count_disk(struct sup *sup);

/* Returns the node with its current plugins and drivers; never NULL after node_state_new(). */
const struct node *node_get(struct sup *sup);
/* For node_events.c. */
struct node *node_of(struct sup *sup);
/* Returns the node's first address, at which services of its tasks are registered; never NULL. */
const char *node_ip(struct sup *sup);
/* Adds a driver with the attributes of its fingerprint, or updates it. */
void node_put_driver(struct sup *sup, const char *driver, bool enabled);
/* Adds the attribute driver.DRIVER.KEY. value: "true", or a text. */
void node_put_driver_attr(struct sup *sup, const char *driver, const char *key, const char *value);
/* Removes the driver's attributes: it cannot work on this machine. detected: whether it is still
 * shown, as one that the operator enabled. */
void node_hide_driver(struct sup *sup, const char *driver, bool detected);
/* Says more about a driver that works. */
void node_describe_driver(struct sup *sup, const char *driver, const char *text);
/* Sets whether the driver works: why is NULL, or says why not. The source is notified. */
void node_put_driver_health(struct sup *sup, const char *driver, const char *why);
/* To change the plugins, remove all, add each existing plugin (*info is copied), and call
 * node_changed(). */
void node_forget_plugins(struct sup *sup);
void node_put_plugin(struct sup *sup, bool controller, const char *id, const struct csi_info *info);
/* Notifies the source that the node has changed. */
void node_changed(struct sup *sup);
/* Sets the drain that is in progress (NULL: none). *drain is copied. */
void node_set_drain(struct sup *sup, const struct drain_strategy *drain);
/* Sets the metadata to the configuration's, overridden by the members of `over`: a text sets a key,
 * null deletes it. */
void node_set_meta(struct sup *sup, const json_t *over);
/* For an operator's request without a drain: sets whether allocs are placed on this node. The
 * setting is durable. */
void node_set_takes_allocs(struct sup *sup, bool takes);
/* Sets what the page of the node says about its status: "landing"; "": nothing. */
void node_set_description(struct sup *sup, const char *text);
/* For a source: sets whether allocs are placed on this node. */
void node_set_eligibility(struct sup *sup, enum node_eligibility eligibility);

#endif

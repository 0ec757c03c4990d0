/* SPDX-License-Identifier: Apache-2.0 */
/* node_attr.h: sets attributes of the node, for fingerprints. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_NODE_NODE_ATTR_H
#define DROVER_SUPERVISOR_NODE_NODE_ATTR_H

#include "model/node.h"

/* node_attrf() truncates a value at 511 bytes. */
void node_attr(struct node *n, const char *name, const char *value);
void node_attrf(struct node *n, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif

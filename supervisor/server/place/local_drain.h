/* SPDX-License-Identifier: Apache-2.0 */
/* local_drain.h: the drain of the node, and whether it is eligible for allocs. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_SERVER_PLACE_LOCAL_DRAIN_H
#define DROVER_SUPERVISOR_SERVER_PLACE_LOCAL_DRAIN_H

#include "model/node.h"
#include "supervisor/server/base/local.h"

void local_drain_init(struct local *l);
void local_drain_free(struct local *l);
/* To be called before the allocs are restored, and after. */
int local_drain_load(struct local *l, struct err *e);
void local_drain_start(struct local *l);
/* Returns true if nothing may be placed: the node is not eligible, or the agent ends. */
bool local_drain_is_on(const struct local *l);
/* source_ops.set_drain */
void local_set_drain(struct source *s, bool on);
/* Starts a drain, or changes the strategy of the present one. Sets the times in *drain. */
void local_drain_begin(struct local *l, struct drain_strategy *drain);
/* eligible: makes the node eligible for allocs again. */
void local_drain_cancel(struct local *l, bool eligible);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* nomad_values.h: variables and services at the servers, for the templates of tasks. Each is
 * followed by a blocking query with the token of a task; tasks with the same rights share it. Runs
 * in: supervisor. */
#ifndef DROVER_SUPERVISOR_CLUSTER_NODE_NOMAD_VALUES_H
#define DROVER_SUPERVISOR_CLUSTER_NODE_NOMAD_VALUES_H

#include "supervisor/cluster/node/nomad.h"

/* source_ops.watch and source_ops.unwatch */
struct source_watch *nomad_watch_value(struct source *s, struct sup_alloc *sa, const char *task,
    const struct source_query *q, source_value_cb *cb, void *arg);
void nomad_unwatch_value(struct source *s, struct source_watch *w);
void nomad_values_init(struct nomad *n);
void nomad_values_free(struct nomad *n);

#endif

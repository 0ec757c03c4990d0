/* SPDX-License-Identifier: Apache-2.0 */
/*
 * local_values.h: variables and services that the templates of tasks show, followed by the index of
 * the embedded server. Tasks that follow the same value share it; it is made again only when a
 * variable, a service or an ACL policy has changed. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_SERVER_VARIABLE_LOCAL_VALUES_H
#define DROVER_SUPERVISOR_SERVER_VARIABLE_LOCAL_VALUES_H

#include "supervisor/server/base/local.h"

void local_values_init(struct local *l);
void local_values_free(struct local *l);

/* source_ops.watch and source_ops.unwatch. With acl { enabled } a task may read the variables of
 * its job, and what policies for its job permit. */
struct source_watch *local_watch(struct source *s, struct sup_alloc *sa, const char *task,
    const struct source_query *q, source_value_cb *cb, void *arg);
void local_unwatch(struct source *s, struct source_watch *w);

#endif

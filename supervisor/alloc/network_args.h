/* SPDX-License-Identifier: Apache-2.0 */
/* network_args.h: the arguments of CNI plugins. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_ALLOC_NETWORK_ARGS_H
#define DROVER_SUPERVISOR_ALLOC_NETWORK_ARGS_H

#include "common/err.h"
#include "model/network.h"
#include "proto/ipc_records.h"
#include "supervisor/core/sup.h"
#include "supervisor/table/alloc_table.h"

/*
 * Writes what CNI_ARGS says to the plugins of an alloc's network: IgnoreUnknown, the `args` of the
 * group's networks with their variables replaced, and what identifies the alloc. Returns 0, or
 * -errno with *e if an argument cannot be passed on.
 */
int network_args_make(
    struct sup *sup, const struct sup_alloc *sa, char ret[NET_ARGS_SIZE], struct err *e);

#endif

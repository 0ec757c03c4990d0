/* SPDX-License-Identifier: Apache-2.0 */
/* rpc_table.h: macros that the field tables of calls share. For this folder only. Runs in:
 * supervisor. */
#ifndef DROVER_SUPERVISOR_CLUSTER_RPC_RPC_TABLE_H
#define DROVER_SUPERVISOR_CLUSTER_RPC_RPC_TABLE_H

#include "model/engine/table.h"
#include "supervisor/cluster/rpc/rpc.h"

/* Embedded structs are flat on the wire: their fields are in the request's own table. */
#define RPC_QUERY                                                                                  \
	F_STRING(query.region, "Region"), F_STRING(query.namespace, "Namespace"),                  \
	    F_STRING(query.auth_token, "AuthToken"),                                               \
	    F_UINT(query.min_query_index, "MinQueryIndex"),                                        \
	    F_DURATION(query.max_query_time, "MaxQueryTime"),                                      \
	    F_BOOL(query.allow_stale, "AllowStale"), F_STRING(query.prefix, "Prefix"),             \
	    F_STRING(query.filter, "Filter"), F_STRING(query.next_token, "NextToken"),             \
	    F_INT(query.per_page, "PerPage"), F_BOOL(query.reverse, "Reverse")
#define RPC_WRITE                                                                                  \
	F_STRING(write.region, "Region"), F_STRING(write.namespace, "Namespace"),                  \
	    F_STRING(write.auth_token, "AuthToken"),                                               \
	    F_STRING(write.idempotency_token, "IdempotencyToken")

#endif

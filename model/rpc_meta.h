/* SPDX-License-Identifier: Apache-2.0 */
/* rpc_meta.h: the fields that every answer to a query begins or ends with. Runs in: supervisor. */
#ifndef DROVER_MODEL_RPC_META_H
#define DROVER_MODEL_RPC_META_H

#include "model/engine/field.h"

/* QueryMeta, in every answer; WriteMeta has only its index. */
struct rpc_meta {
	uint64_t index;
	int64_t last_contact; /* duration */
	bool known_leader;
	char *next_token;
};

/* On the wire its fields are members of the answer itself, so they are part of the answer's
 * table. */
#define RPC_META                                                                                   \
	F_UINT(meta.index, "Index"), F_DURATION(meta.last_contact, "LastContact"),                 \
	    F_BOOL(meta.known_leader, "KnownLeader"), F_STRING(meta.next_token, "NextToken")

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* rpc_alloc.h: calls to servers about allocs and their identities. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_CLUSTER_RPC_RPC_ALLOC_H
#define DROVER_SUPERVISOR_CLUSTER_RPC_RPC_ALLOC_H

#include "model/alloc.h"
#include "supervisor/cluster/rpc/rpc.h"

/* Alloc.GetAllocs. */
struct rpc_allocs_req {
	struct strings alloc_ids;
	struct rpc_query query;
};

/* Raw allocs for rpc_alloc_decode(), decoded one by one, so that one invalid alloc does not affect
 * the others. */
struct rpc_allocs_rep {
	struct raws allocs;
	struct rpc_meta meta;
};

/* Decodes one alloc of rpc_allocs_rep into an initialised alloc. Fields that an older server does
 * not have stay unset; job_complete() fills them in. Returns as model_from_msgpack(); after -EINVAL
 * and -EMSGSIZE *ret has the identity of the alloc (ids, group, indexes, desired status) if that
 * can be decoded, so that it can be reported as failed with *e. */
int rpc_alloc_decode(const struct raw *raw, struct alloc *ret, struct err *e);

/* Alloc.GetAlloc. */
struct rpc_alloc_req {
	char *alloc_id;
	struct rpc_query query;
};

struct rpc_get_alloc_rep {
	struct alloc *alloc; /* NULL: the servers do not have it */
	struct rpc_meta meta;
};

/* Node.UpdateAlloc: of each alloc what alloc_update_type has. The answer is rpc_meta_rep. */
struct rpc_update_req {
	MODEL_LIST(struct alloc)
	allocs; /* list_add(alloc, …), then model_copy(&alloc_update_type, …) */
	struct rpc_write write;
};

/* Alloc.SignIdentities. */
struct rpc_identity {
	char *alloc_id, *identity_name, *workload_identifier, *interpolated_workload_identifier;
	int64_t workload_type; /* 0 task, 1 service */
	/* In an answer: the token, or the reason why it was not signed. */
	char *jwt;
	int64_t expiration; /* time; 0: never */
	char *reason;
};

struct rpc_sign_req {
	MODEL_LIST(struct rpc_identity) identities;
	struct rpc_query query;
};

struct rpc_sign_rep {
	MODEL_LIST(struct rpc_identity) signed_identities;
	MODEL_LIST(struct rpc_identity) rejections;
	struct rpc_meta meta;
};

MODEL_DECLARE(rpc_allocs_req);
MODEL_DECLARE(rpc_allocs_rep);
MODEL_DECLARE(rpc_alloc_req);
MODEL_DECLARE(rpc_get_alloc_rep);
MODEL_DECLARE(rpc_update_req);
MODEL_DECLARE(rpc_identity);
MODEL_DECLARE(rpc_sign_req);
MODEL_DECLARE(rpc_sign_rep);

#endif

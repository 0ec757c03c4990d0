/* SPDX-License-Identifier: Apache-2.0 */
/* rpc_claim.h: calls to servers about the claims of volumes. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_CLUSTER_RPC_RPC_CLAIM_H
#define DROVER_SUPERVISOR_CLUSTER_RPC_RPC_CLAIM_H

#include "model/volume.h"
#include "supervisor/cluster/rpc/rpc.h"

/* CSIVolume.Claim. */
struct rpc_claim_req {
	char *volume_id, *alloc_id, *node_id, *external_node_id;
	enum claim_mode claim;
	enum csi_access access_mode;
	enum csi_attachment attachment_mode;
	enum claim_state state;
	struct rpc_write write; /* namespace: the job's */
};

struct rpc_claim_rep {
	struct string_map publish_context;
	struct csi_volume *volume;
	struct rpc_meta meta;
};

/* CSIVolume.Unpublish. The answer is rpc_meta_rep. */
struct rpc_unpublish_req {
	char *volume_id;
	struct csi_claim *claim; /* state: CLAIM_UNPUBLISHING */
	struct rpc_write write;
};

/* CSIVolume.Get. The answer's volume is not needed: rpc_meta_rep. */
struct rpc_volume_req {
	char *id;
	struct rpc_query query;
};

MODEL_DECLARE(rpc_claim_req);
MODEL_DECLARE(rpc_claim_rep);
MODEL_DECLARE(rpc_unpublish_req);
MODEL_DECLARE(rpc_volume_req);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* rpc.c: field tables of the calls between node and servers. Runs in: supervisor. */
#include "supervisor/cluster/rpc/rpc.h"

#include "supervisor/cluster/rpc/rpc_table.h"
#include "supervisor/cluster/rpc/rpc_alloc.h"
#include "supervisor/cluster/rpc/rpc_claim.h"

#define S rpc_query_req
static const struct field rpc_query_req_fields[] = { RPC_QUERY };
MODEL_TYPE(rpc_query_req, rpc_query_req_fields, .name = "request");
#undef S

#define S rpc_meta_rep
static const struct field rpc_meta_rep_fields[] = { RPC_META };
MODEL_TYPE(rpc_meta_rep, rpc_meta_rep_fields, .name = "answer");
#undef S

#define S rpc_register_req
static const struct field rpc_register_req_fields[] = {
	F_POINTER(node, "Node", node),
	RPC_WRITE,
};
MODEL_TYPE(rpc_register_req, rpc_register_req_fields, .name = "request");
#undef S

#define S rpc_status_req
static const struct field rpc_status_req_fields[] = {
	F_STRING(node_id, "NodeID"),
	F_ENUM(status, "Status", node_status_names),
	F_BOOL(force_identity_renewal, "ForceIdentityRenewal"),
	RPC_WRITE,
};
MODEL_TYPE(rpc_status_req, rpc_status_req_fields, .name = "request");
#undef S

#define S rpc_server
static const struct field rpc_server_fields[] = {
	F_STRING(rpc_advertise_addr, "RPCAdvertiseAddr"),
	F_INT(rpc_major_version, "RPCMajorVersion"),
	F_INT(rpc_minor_version, "RPCMinorVersion"),
	F_STRING(datacenter, "Datacenter"),
};
MODEL_TYPE(rpc_server, rpc_server_fields, .name = "server");
#undef S

#define S rpc_node_rep
static const struct field rpc_node_rep_fields[] = {
	F_DURATION(heartbeat_ttl, "HeartbeatTTL"),
	F_STRINGS(eval_ids, "EvalIDs"),
	F_UINT(eval_create_index, "EvalCreateIndex"),
	F_UINT(node_modify_index, "NodeModifyIndex"),
	F_UINT(features, "Features"),
	F_STRING(leader_rpc_addr, "LeaderRPCAddr"),
	F_INT(num_nodes, "NumNodes"),
	F_LIST(servers, "Servers", rpc_server),
	F_ENUM(scheduling_eligibility, "SchedulingEligibility", node_eligibility_names),
	F_STRING(signed_identity, "SignedIdentity"),
	RPC_META,
};
MODEL_TYPE(rpc_node_rep, rpc_node_rep_fields, .name = "answer");
#undef S

#define S rpc_node_req
static const struct field rpc_node_req_fields[] = {
	F_STRING(node_id, "NodeID"),
	F_STRING(secret_id, "SecretID"),
	RPC_QUERY,
};
MODEL_TYPE(rpc_node_req, rpc_node_req_fields, .name = "request");
#undef S

#define S rpc_client_allocs_rep
static const struct field rpc_client_allocs_rep_fields[] = {
	F_INT_MAP(allocs, "Allocs"),
	F_STRING_MAP(migrate_tokens, "MigrateTokens"),
	RPC_META,
};
MODEL_TYPE(rpc_client_allocs_rep, rpc_client_allocs_rep_fields, .name = "answer");
#undef S

#define S rpc_get_node_rep
static const struct field rpc_get_node_rep_fields[] = {
	F_POINTER(node, "Node", node),
	RPC_META,
};
MODEL_TYPE(rpc_get_node_rep, rpc_get_node_rep_fields, .name = "answer");
#undef S

#define S rpc_allocs_req
static const struct field rpc_allocs_req_fields[] = {
	F_STRINGS(alloc_ids, "AllocIDs"),
	RPC_QUERY,
};
MODEL_TYPE(rpc_allocs_req, rpc_allocs_req_fields, .name = "request");
#undef S

#define S rpc_allocs_rep
static const struct field rpc_allocs_rep_fields[] = {
	F_RAWS(allocs, "Allocs"),
	RPC_META,
};
MODEL_TYPE(rpc_allocs_rep, rpc_allocs_rep_fields, .name = "answer");
#undef S

#define S rpc_alloc_req
static const struct field rpc_alloc_req_fields[] = {
	F_STRING(alloc_id, "AllocID"),
	RPC_QUERY,
};
MODEL_TYPE(rpc_alloc_req, rpc_alloc_req_fields, .name = "request");
#undef S

#define S rpc_get_alloc_rep
static const struct field rpc_get_alloc_rep_fields[] = {
	F_POINTER(alloc, "Alloc", alloc),
	RPC_META,
};
MODEL_TYPE(rpc_get_alloc_rep, rpc_get_alloc_rep_fields, .name = "answer");
#undef S

#define S rpc_update_req
static const struct field rpc_update_req_fields[] = {
	F_LIST_VIEW(allocs, "Alloc", alloc, alloc_update),
	RPC_WRITE,
};
MODEL_TYPE(rpc_update_req, rpc_update_req_fields, .name = "request");
#undef S

#define S rpc_node_events
static const struct field rpc_node_events_fields[] = { F_LIST(events, "Events", node_event) };
MODEL_TYPE(rpc_node_events, rpc_node_events_fields, .name = "events", .bare = true);
#undef S

#define S rpc_events_req
static const struct field rpc_events_req_fields[] = {
	F_MAP(node_events, "NodeEvents", rpc_node_events),
	RPC_WRITE,
};
MODEL_TYPE(rpc_events_req, rpc_events_req_fields, .name = "request");
#undef S

#define S rpc_deregister_req
static const struct field rpc_deregister_req_fields[] = {
	F_STRING(node_id, "NodeID"),
	RPC_WRITE,
};
MODEL_TYPE(rpc_deregister_req, rpc_deregister_req_fields, .name = "request");
#undef S

#define S rpc_drain_req
static const struct field rpc_drain_req_fields[] = {
	F_STRING(node_id, "NodeID"),
	F_POINTER(drain_strategy, "DrainStrategy", drain_strategy),
	F_BOOL(mark_eligible, "MarkEligible"),
	F_STRING_MAP(meta, "Meta"),
	RPC_WRITE,
};
MODEL_TYPE(rpc_drain_req, rpc_drain_req_fields, .name = "request");
#undef S

#define S rpc_identity
static const struct field rpc_identity_fields[] = {
	F_STRING(alloc_id, "AllocID"),
	F_STRING(identity_name, "IdentityName"),
	F_STRING(workload_identifier, "WorkloadIdentifier"),
	F_INT(workload_type, "WorkloadType"),
	F_STRING(interpolated_workload_identifier, "InterpolatedWorkloadIdentifier"),
	F_STRING(jwt, "JWT", .flags = FIELD_OMIT_EMPTY),
	F_TIME(expiration, "Expiration", .flags = FIELD_OMIT_EMPTY),
	F_STRING(reason, "Reason", .flags = FIELD_OMIT_EMPTY),
};
MODEL_TYPE(rpc_identity, rpc_identity_fields, .name = "identity");
#undef S

#define S rpc_sign_req
static const struct field rpc_sign_req_fields[] = {
	F_LIST(identities, "Identities", rpc_identity),
	RPC_QUERY,
};
MODEL_TYPE(rpc_sign_req, rpc_sign_req_fields, .name = "request");
#undef S

#define S rpc_sign_rep
static const struct field rpc_sign_rep_fields[] = {
	F_LIST(signed_identities, "SignedIdentities", rpc_identity),
	F_LIST(rejections, "Rejections", rpc_identity),
	RPC_META,
};
MODEL_TYPE(rpc_sign_rep, rpc_sign_rep_fields, .name = "answer");
#undef S

#define S rpc_volume_req
static const struct field rpc_volume_req_fields[] = {
	F_STRING(id, "ID"),
	RPC_QUERY,
};
MODEL_TYPE(rpc_volume_req, rpc_volume_req_fields, .name = "request");
#undef S

#define S rpc_claim_req
static const struct field rpc_claim_req_fields[] = {
	F_STRING(volume_id, "VolumeID"),
	F_STRING(alloc_id, "AllocationID"),
	F_STRING(node_id, "NodeID"),
	F_STRING(external_node_id, "ExternalNodeID"),
	F_ENUM(claim, "Claim", claim_mode_names, .flags = FIELD_AS_NUMBER),
	F_ENUM(access_mode, "AccessMode", csi_access_names),
	F_ENUM(attachment_mode, "AttachmentMode", csi_attachment_names),
	F_ENUM(state, "State", claim_state_names, .flags = FIELD_AS_NUMBER),
	RPC_WRITE,
};
MODEL_TYPE(rpc_claim_req, rpc_claim_req_fields, .name = "request");
#undef S

#define S rpc_claim_rep
static const struct field rpc_claim_rep_fields[] = {
	F_STRING_MAP(publish_context, "PublishContext"),
	F_POINTER(volume, "Volume", csi_volume),
	RPC_META,
};
MODEL_TYPE(rpc_claim_rep, rpc_claim_rep_fields, .name = "answer");
#undef S

#define S rpc_unpublish_req
static const struct field rpc_unpublish_req_fields[] = {
	F_STRING(volume_id, "VolumeID"),
	F_POINTER(claim, "Claim", csi_claim),
	RPC_WRITE,
};
MODEL_TYPE(rpc_unpublish_req, rpc_unpublish_req_fields, .name = "request");
#undef S

#define S rpc_services_req
static const struct field rpc_services_req_fields[] = {
	F_LIST(services, "Services", service_registration),
	RPC_WRITE,
};
MODEL_TYPE(rpc_services_req, rpc_services_req_fields, .name = "request");
#undef S

#define S rpc_service_delete_req
static const struct field rpc_service_delete_req_fields[] = {
	F_STRING(id, "ID"),
	RPC_WRITE,
};
MODEL_TYPE(rpc_service_delete_req, rpc_service_delete_req_fields, .name = "request");
#undef S

int
rpc_alloc_decode(const struct raw *raw, struct alloc *ret, struct err *e)
{
	int r;

	r = model_from_msgpack(&alloc_type, raw->data, raw->len, ret, WIRE_MEMORY_MAX, e);
	if (r == -EINVAL || r == -EMSGSIZE)
		(void)model_from_msgpack(
		    &alloc_head_type, raw->data, raw->len, ret, WIRE_MEMORY_MAX, NULL);
	return r;
}

// SPDX-License-Identifier: Apache-2.0
/* rpc_value.c: field tables of the calls for what templates show. Runs in: supervisor. */
#include "supervisor/cluster/rpc/rpc_value.h"

#include "supervisor/cluster/rpc/rpc_table.h"

#define S rpc_variable
static const struct field rpc_variable_fields[] = {
	F_STRING(namespace, "Namespace"),
	F_STRING(path, "Path"),
	F_UINT(create_index, "CreateIndex"),
	F_UINT(modify_index, "ModifyIndex"),
	F_INT(create_time, "CreateTime"),
	F_INT(modify_time, "ModifyTime"),
	F_STRING_MAP(items, "Items"),
};
MODEL_TYPE(rpc_variable, rpc_variable_fields, .name = "variable");
#undef S

#define S rpc_variable_req
static const struct field rpc_variable_req_fields[] = { F_STRING(path, "Path"), RPC_QUERY };
MODEL_TYPE(rpc_variable_req, rpc_variable_req_fields, .name = "request");
#undef S

#define S rpc_variable_rep
static const struct field rpc_variable_rep_fields[] = {
	F_POINTER(data, "Data", rpc_variable),
	RPC_META,
};
MODEL_TYPE(rpc_variable_rep, rpc_variable_rep_fields, .name = "answer");
#undef S

#define S rpc_variables_rep
static const struct field rpc_variables_rep_fields[] = {
	F_LIST(data, "Data", rpc_variable),
	RPC_META,
};
MODEL_TYPE(rpc_variables_rep, rpc_variables_rep_fields, .name = "answer");
#undef S

#define S rpc_service_req
static const struct field rpc_service_req_fields[] = {
	F_STRING(service_name, "ServiceName"),
	F_STRING(choose, "Choose"),
	RPC_QUERY,
};
MODEL_TYPE(rpc_service_req, rpc_service_req_fields, .name = "request");
#undef S

#define S rpc_service_rep
static const struct field rpc_service_rep_fields[] = {
	F_LIST(services, "Services", service_registration),
	RPC_META,
};
MODEL_TYPE(rpc_service_rep, rpc_service_rep_fields, .name = "answer");
#undef S

#define S rpc_service_name
static const struct field rpc_service_name_fields[] = {
	F_STRING(service_name, "ServiceName"),
	F_STRINGS(tags, "Tags"),
};
MODEL_TYPE(rpc_service_name, rpc_service_name_fields, .name = "service");
#undef S

#define S rpc_service_namespace
static const struct field rpc_service_namespace_fields[] = {
	F_STRING(namespace, "Namespace"),
	F_LIST(services, "Services", rpc_service_name),
};
MODEL_TYPE(rpc_service_namespace, rpc_service_namespace_fields, .name = "namespace");
#undef S

#define S rpc_service_list_rep
static const struct field rpc_service_list_rep_fields[] = {
	F_LIST(services, "Services", rpc_service_namespace),
	RPC_META,
};
MODEL_TYPE(rpc_service_list_rep, rpc_service_list_rep_fields, .name = "answer");
#undef S

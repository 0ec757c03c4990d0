/* SPDX-License-Identifier: Apache-2.0 */
/* host_data.c: field tables of facts about the machine. Runs in: supervisor. */
#include "model/host_data.h"

#include "model/engine/table.h"

#define S host_address
static const struct field host_address_fields[] = {
	F_STRING(type, "type"),
	F_STRING(string, "string"),
	F_STRING(address, "address"),
	F_STRING(interface, "interface"),
};
MODEL_TYPE(host_address, host_address_fields, .name = "address");
#undef S

#define S host_space
static const struct field host_space_fields[] = {
	F_INT(disk_mb, "DiskMB"),
	F_INT(used_mb, "UsedMB"),
};
MODEL_TYPE(host_space, host_space_fields, .name = "disk");
#undef S

#define S host_data
static const struct field host_data_fields[] = {
	F_STRING(os, "OS"),
	F_LIST(network, "Network", host_address),
	F_STRING(resolv_conf, "ResolvConf"),
	F_STRING(hosts, "Hosts"),
	F_STRING_MAP(environment, "Environment"),
	F_MAP(disk, "Disk", host_space),
};
MODEL_TYPE(host_data, host_data_fields, .name = "host");
#undef S

#define S rpc_host_rep
static const struct field rpc_host_rep_fields[] = {
	F_STRING(agent_id, "AgentID"),
	F_POINTER(host_data, "HostData", host_data),
};
MODEL_TYPE(rpc_host_rep, rpc_host_rep_fields, .name = "answer");
#undef S

/* SPDX-License-Identifier: Apache-2.0 */
/* network.c: field tables of networks and ports. Runs in: supervisor, cli. */
#include "model/engine/table.h"
#include "model/network.h"

#define S dns_config
static const struct field dns_config_fields[] = {
	F_STRINGS(servers, "Servers"),
	F_STRINGS(searches, "Searches"),
	F_STRINGS(options, "Options"),
};
MODEL_TYPE(dns_config, dns_config_fields, .name = "dns");
#undef S

#define S port
static const struct field port_fields[] = {
	F_STRING(label, "Label"),
	F_INT(value, "Value"),
	F_INT(to, "To"),
	F_STRING(host_network, "HostNetwork"),
	F_BOOL(ignore_collision, "IgnoreCollision"),
};
MODEL_TYPE(port, port_fields, .name = "port", .title = 1 + offsetof(struct port, label));
#undef S

#define S network_resource
static const struct field network_resource_fields[] = {
	F_STRING(mode, "Mode"),
	F_STRING(device, "Device"),
	F_STRING(cidr, "CIDR"),
	F_STRING(ip, "IP"),
	F_STRING(hostname, "Hostname", .flags = FIELD_OMIT_EMPTY),
	F_INT(mbits, "MBits"),
	F_POINTER(dns, "DNS", dns_config),
	F_LIST(reserved_ports, "ReservedPorts", port),
	F_LIST(dynamic_ports, "DynamicPorts", port),
	F_JSON(cni, "CNI"),
};
MODEL_TYPE(network_resource, network_resource_fields, .name = "network");
#undef S

/* SPDX-License-Identifier: Apache-2.0 */
/* network.c: field tables of networks and ports. Runs in: supervisor, cli. */
#include "model/network.h"

#include <errno.h>
#include <string.h>

#include "common/id.h"
#include "model/engine/table.h"

#define S dns_config
static const struct field dns_config_fields[] = {
	F_STRINGS(servers, "Servers"),
	F_STRINGS(searches, "Searches"),
	F_STRINGS(options, "Options"),
};
MODEL_TYPE(dns_config, dns_config_fields, .name = "dns");
#undef S

#define S cni_config
static const struct field cni_config_fields[] = {
	F_STRING_MAP(args, "Args"),
};
MODEL_TYPE(cni_config, cni_config_fields, .name = "cni");
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
	F_POINTER(cni, "CNI", cni_config),
};
MODEL_TYPE(network_resource, network_resource_fields, .name = "network");
#undef S

bool
network_is_own(const struct network_resource *n)
{
	return *str(n->mode) && !str_eq(n->mode, "host");
}

const char *
network_cni_name(const struct network_resource *n)
{
	const char *mode = str(n->mode);

	return strncmp(mode, "cni/", 4) == 0 ? mode + 4 : NULL;
}

/* Whether it is printable, and not taken for the end of the argument or of its name. */
static bool
is_cni_text(const char *text)
{
	for (; *text; text++)
		if (*text == ';' || *text == '=' || *text == 0x7f ||
		    ((unsigned char)*text & 0xe0) == 0)
			return false;
	return true;
}

int
network_check_cni_arg(const char *key, const char *value, struct err *e)
{
	if (*key && is_cni_text(key) && is_cni_text(value))
		return 0;
	return err_say(e, -EINVAL,
	    "network: cni: argument \"%.60s\" cannot be passed to CNI plugins: it must have a "
	    "name, "
	    "and neither name nor value may have ';', '=' or control characters",
	    key);
}

int
network_check(const struct network_resource *n, bool own, struct err *e)
{
	const char *name = network_cni_name(n);

	if (*str(n->hostname) && (!network_is_own(n) || str_eq(n->mode, "none")))
		return err_say(e, -EINVAL,
		    "a network with a hostname must have mode \"bridge\" or \"cni/NAME\"");
	if (!network_is_own(n))
		return 0;
	if (!own)
		return err_say(e, -EINVAL,
		    "a network in the resources of a task cannot have mode \"%.40s\": only the "
		    "group's network can",
		    n->mode);
	if (!str_eq(n->mode, "bridge") && !str_eq(n->mode, "none") &&
	    !(name && name_is_component(name)))
		return err_say(e, -EINVAL,
		    "network mode \"%.40s\" is unknown: use \"host\", \"none\", \"bridge\" or "
		    "\"cni/NAME\"",
		    n->mode);
	for (size_t i = 0; n->cni && i < n->cni->args.n; i++)
		if (network_check_cni_arg(n->cni->args.v[i].key, str(n->cni->args.v[i].value), e) <
		    0)
			return e->code;
	if (str_eq(n->mode, "none") && n->reserved_ports.n + n->dynamic_ports.n > 0)
		return err_say(e, -EINVAL, "a network of mode \"none\" has no ports: remove them");
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * config_cni.c: reads the settings of allocations' networks: client { cni_path, bridge_network_name
 * … }. Runs in: the launcher's configuration child.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/id.h"
#include "config/config_reader.h"

int
config_read_hairpin(struct config_reader *c, const struct hcl_node *node)
{
	return config_get_bool(c, node, node->key, &c->policy->cni.hairpin);
}

int
config_read_bridge(struct config_reader *c, const struct hcl_node *node)
{
	char name[CONFIG_DEVICE_SIZE];
	int r = config_get_text(c, node, node->key, name, sizeof name);

	if (r < 0)
		return r;
	if (!name_is_component(name))
		return config_fail(
		    c, node->at, "%s: \"%s\" is not the name of an interface", node->key, name);
	memcpy(c->policy->cni.bridge, name, sizeof name);
	return 0;
}

/* A network with at least a few addresses. */
static int
read_subnet(
    struct config_reader *c, const struct hcl_node *node, int family, char ret[CONFIG_CIDR_SIZE])
{
	const unsigned most = family == AF_INET ? 29 : 125;
	char text[CONFIG_CIDR_SIZE], address[CONFIG_CIDR_SIZE];
	unsigned char bytes[16];
	uint64_t bits = 0;
	const char *at;
	int r = config_get_text(c, node, node->key, text, sizeof text);

	if (r < 0)
		return r;
	(void)strcpy(address, text);
	address[strcspn(address, "/")] = '\0';
	at = text + strcspn(text, "/");
	if (*at++ != '/' || inet_pton(family, address, bytes) != 1 ||
	    !config_take_number(&at, most, &bits) || *at || bits < 8)
		return config_fail(c, node->at,
		    "%s: expected a network such as \"%s\", found \"%s\"", node->key,
		    family == AF_INET ? "172.26.64.0/20" : "fd00:a110:c8::/120", text);
	memcpy(ret, text, sizeof text);
	return 0;
}

int
config_read_bridge_subnet(struct config_reader *c, const struct hcl_node *node)
{
	return read_subnet(c, node, AF_INET, c->policy->cni.subnet);
}

int
config_read_bridge_subnet6(struct config_reader *c, const struct hcl_node *node)
{
	return read_subnet(c, node, AF_INET6, c->policy->cni.subnet6);
}

int
config_read_cni_config_dir(struct config_reader *c, const struct hcl_node *node)
{
	return config_get_path(c, node, node->key, c->policy->cni.config_dir);
}

/* Several directories, with ':' between them. */
int
config_read_cni_path(struct config_reader *c, const struct hcl_node *node)
{
	char text[CONFIG_PATH_SIZE], parts[CONFIG_PATH_SIZE], *rest = parts, *part;
	int r = config_get_text(c, node, node->key, text, sizeof text);

	if (r < 0)
		return r;
	(void)strcpy(parts, text);
	while ((part = strsep(&rest, ":")))
		if ((r = config_check_path(c, node->at, node->key, part)) < 0)
			return r;
	memcpy(c->policy->cni.path, text, sizeof text);
	return 0;
}

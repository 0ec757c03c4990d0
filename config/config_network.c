// SPDX-License-Identifier: Apache-2.0
/*
 * config_network.c: reads which addresses and ports of the node tasks may use: client {
 * network_interface, host_network … }. Runs in: the launcher's configuration child.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/id.h"
#include "common/port_list.h"
#include "config/config_reader.h"

static int
read_ports(struct config_reader *c, const struct hcl_node *node, char ret[CONFIG_PATH_SIZE])
{
	char list[CONFIG_PATH_SIZE];
	const char *at = list;
	uint32_t low, high;
	int r = config_get_text(c, node, node->key, list, sizeof list);

	if (r < 0)
		return r;
	while ((r = port_list_next(&at, &low, &high)) > 0)
		;
	if (r < 0)
		return config_fail(c, node->at,
		    "%s: expected ports and ranges of them as in \"22,8500-8600\", found \"%.64s\"",
		    node->key, list);
	memcpy(ret, list, sizeof list);
	return 0;
}

int
config_read_reserved_ports(struct config_reader *c, const struct hcl_node *node)
{
	return read_ports(c, node, c->policy->cni.reserved_ports);
}

/* A template depends on the machine's interfaces, and drover does not evaluate templates. */
static bool
is_template(struct config_reader *c, const struct hcl_node *node)
{
	if (node->kind != HCL_NODE_STRING || !strstr(node->text, "{{"))
		return false;
	config_warn(c, node->at, node->key, "has no effect as a template: name the interface");
	return true;
}

static int
read_interface(struct config_reader *c, const struct hcl_node *node, char ret[CONFIG_DEVICE_SIZE])
{
	char name[CONFIG_DEVICE_SIZE];
	int r = config_get_text(c, node, node->key, name, sizeof name);

	if (r < 0)
		return r;
	/* The name becomes a component of paths below /sys. */
	if (name[0] && !name_is_component(name))
		return config_fail(
		    c, node->at, "%s: \"%s\" is not the name of an interface", node->key, name);
	memcpy(ret, name, sizeof name);
	return 0;
}

int
config_read_network_interface(struct config_reader *c, const struct hcl_node *node)
{
	return is_template(c, node) ? 0 : read_interface(c, node, c->config->network_interface);
}

static int
read_cidr(struct config_reader *c, const struct hcl_node *node, struct config_host_network *net)
{
	char text[CONFIG_CIDR_SIZE], *slash;
	const char *at;
	uint64_t bits;
	int r = config_get_text(c, node, node->key, text, sizeof text);

	if (r < 0 || !text[0])
		return r;
	memcpy(net->cidr, text, sizeof text);
	slash = strchr(text, '/');
	at = slash ? slash + 1 : "";
	if (slash)
		*slash = '\0';
	net->family = strchr(text, ':') ? AF_INET6 : AF_INET;
	if (inet_pton(net->family, text, net->prefix) != 1 ||
	    !config_take_number(&at, net->family == AF_INET ? 32 : 128, &bits) || *at)
		return config_fail(c, node->at,
		    "%s: expected a network such as \"192.0.2.0/24\", found \"%s\"", node->key,
		    net->cidr);
	net->prefix_bits = (uint32_t)bits;
	return 0;
}

static int
set_host_network(
    struct config_reader *c, const struct hcl_node *node, const struct config_host_network *net)
{
	struct agent_config *config = c->config;
	uint32_t i = 0;

	while (i < config->n_host_networks && strcmp(config->host_networks[i].name, net->name) != 0)
		i++;
	if (i == CONFIG_NETWORKS_MAX)
		return config_fail(c, node->key_at, "host_network: expected at most 16");
	config->host_networks[i] = *net;
	if (i == config->n_host_networks)
		config->n_host_networks++;
	return 0;
}

/* Reads host_network "name" { cidr, interface, reserved_ports }; node is the object under the
 * name. */
static int
read_host_network(struct config_reader *c, const struct hcl_node *node)
{
	struct config_host_network net = { 0 };
	const struct hcl_node *body = node->kind == HCL_NODE_LIST ? node->first : node;
	int r = 0;

	if (!body || body->kind != HCL_NODE_OBJECT || (node->kind == HCL_NODE_LIST && body->next))
		return config_wrong(c, node, "host_network", "a name and a block");
	if (!name_is_component(node->key) || strlen(node->key) >= sizeof net.name ||
	    strcmp(node->key, "default") == 0)
		return config_fail(c, node->key_at,
		    "host_network: \"%.64s\" is not a valid name (letters, digits, '-', '_', '.'; "
		    "\"default\" is reserved for network_interface)",
		    node->key);
	(void)strcpy(net.name, node->key);
	for (const struct hcl_node *n = body->first; n && r == 0; n = n->next) {
		if (strcmp(n->key, "cidr") == 0)
			r = read_cidr(c, n, &net);
		else if (strcmp(n->key, "interface") == 0 && is_template(c, n))
			return 0; /* without an interface it would match every address */
		else if (strcmp(n->key, "interface") == 0)
			r = read_interface(c, n, net.interface);
		else if (strcmp(n->key, "reserved_ports") == 0)
			r = read_ports(c, n, net.reserved_ports);
		else
			config_warn(c, n->key_at, n->key, "is unknown and has no effect");
	}
	return r < 0 ? r : set_host_network(c, node, &net);
}

const struct config_attr config_host_network_attrs[] = { { .fn = read_host_network } };

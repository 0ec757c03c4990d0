// SPDX-License-Identifier: Apache-2.0
/*
 * config_cluster.c: how the agent joins and leaves a cluster: client { servers, server_join,
 * drain_on_shutdown }. Runs in: the launcher's configuration child, cli.
 */
#include <errno.h>
#include <string.h>

#include "common/duration.h"
#include "config/config_reader.h"

static int
add_server(struct config_reader *c, const struct hcl_node *node)
{
	struct agent_config *config = c->config;

	if (config->n_servers == CONFIG_SERVERS_MAX)
		return config_fail(c, node->at, "servers: expected at most 16");
	if (node->text[0] == '\0' || strpbrk(node->text, " \t"))
		return config_fail(c, node->at,
		    "servers: expected the address of a server, found \"%.64s\"", node->text);
	if (config_get_text(
		c, node, "servers", config->servers[config->n_servers], CONFIG_PATH_SIZE) < 0)
		return -EINVAL;
	config->n_servers++;
	return 0;
}

int
config_read_servers(struct config_reader *c, const struct hcl_node *node)
{
	c->config->n_servers = 0;
	return config_each_string(c, node, node->key, add_server);
}

/* retry_join adds to client.servers. Addresses that a cloud provider would supply are not
 * supported. */
static int
add_join(struct config_reader *c, const struct hcl_node *node)
{
	if (strncmp(node->text, "provider=", 9) == 0) {
		config_warn(c, node->at, "retry_join",
		    "has no effect with a provider: set addresses of servers");
		return 0;
	}
	return add_server(c, node);
}

static int
read_retry_join(struct config_reader *c, const struct hcl_node *node)
{
	return config_each_string(c, node, node->key, add_join);
}

static int
read_retry_interval(struct config_reader *c, const struct hcl_node *node)
{
	return config_get_duration(c, node, 1000, &c->config->retry_interval_ms);
}

const struct config_attr config_server_join_attrs[] = {
	CALL("retry_join", read_retry_join),
	NUMBER("retry_max", retry_max),
	CALL("retry_interval", read_retry_interval),
	UNUSED_AS("start_join", "has no effect: clients do not have it: use retry_join"),
	{ 0 },
};

static int
read_drain_deadline(struct config_reader *c, const struct hcl_node *node)
{
	return config_get_duration(c, node, 0, &c->config->drain_deadline_ms);
}

static const struct config_attr drain_attrs[] = {
	CALL("deadline", read_drain_deadline),
	BOOL("force", drain_force),
	BOOL("ignore_system_jobs", drain_spares_system),
	{ 0 },
};

int
config_read_drain(struct config_reader *c, const struct hcl_node *node)
{
	c->config->drain_on_shutdown = true;
	return config_read_blocks(c, node, drain_attrs);
}

// SPDX-License-Identifier: Apache-2.0
/* config_csi.c: CSI plugins that are not tasks of drover: client { csi_plugin "id" { … } }. Runs
 * in: the launcher's configuration child, cli. */
#include <errno.h>
#include <string.h>

#include "common/id.h"
#include "config/config_reader.h"
#include "proto/csi_limits.h"
#include "proto/ipc_records.h"

#define HEALTH_TIMEOUT_MS 30000

static int
read_type(struct config_reader *c, const struct hcl_node *node, uint32_t *ret)
{
	static const char *const types[] = {
		[PLUGIN_CONTROLLER] = "controller",
		[PLUGIN_NODE] = "node",
		[PLUGIN_MONOLITH] = "monolith",
	};

	for (uint32_t i = PLUGIN_CONTROLLER; i <= PLUGIN_MONOLITH; i++) {
		if (node->kind == HCL_NODE_STRING && strcmp(node->text, types[i]) == 0) {
			*ret = i;
			return 0;
		}
	}
	return config_wrong(c, node, node->key, "\"node\", \"controller\" or \"monolith\"");
}

static int
set_plugin(
    struct config_reader *c, const struct hcl_node *node, const struct config_csi_plugin *plugin)
{
	struct agent_policy *policy = c->policy;
	uint32_t i = 0;

	while (i < policy->n_csi_plugins && strcmp(policy->csi_plugins[i].id, plugin->id) != 0)
		i++;
	if (i == CONFIG_PLUGINS_MAX)
		return config_fail(c, node->key_at, "csi_plugin: expected at most 16");
	policy->csi_plugins[i] = *plugin;
	if (i == policy->n_csi_plugins)
		policy->n_csi_plugins++;
	memcpy(c->config->csi_plugins, policy->csi_plugins, sizeof policy->csi_plugins);
	c->config->n_csi_plugins = policy->n_csi_plugins;
	return 0;
}

int
config_read_csi_call_timeout(struct config_reader *c, const struct hcl_node *node)
{
	uint64_t ms;
	int r = config_get_duration(c, node, 1000, &ms);

	if (r < 0)
		return r;
	if (ms > CSI_TIMEOUT_MAX_MS)
		return config_fail(c, node->at,
		    "%s: expected a duration of at most 30m, found \"%.64s\"", node->key,
		    node->text);
	c->config->csi_call_timeout_ms = ms;
	return 0;
}

/* Reads csi_plugin "id" { type, socket, health_timeout }; node is the object under the id. */
static int
read_csi_plugin(struct config_reader *c, const struct hcl_node *node)
{
	struct config_csi_plugin plugin = { .health_timeout_ms = HEALTH_TIMEOUT_MS };
	const struct hcl_node *body = node->kind == HCL_NODE_LIST ? node->first : node;
	int r = 0;

	if (!body || body->kind != HCL_NODE_OBJECT || (node->kind == HCL_NODE_LIST && body->next))
		return config_wrong(
		    c, node, "csi_plugin", "an id and a block with type and socket");
	if (strlen(node->key) >= sizeof plugin.id || !name_is_component(node->key))
		return config_fail(c, node->key_at,
		    "csi_plugin: \"%.64s\" is not a valid id (letters, digits, '-', '_', '.')",
		    node->key);
	(void)strcpy(plugin.id, node->key);
	for (const struct hcl_node *n = body->first; n && r == 0; n = n->next) {
		if (strcmp(n->key, "type") == 0)
			r = read_type(c, n, &plugin.kind);
		else if (strcmp(n->key, "socket") == 0)
			r = config_get_path(c, n, n->key, plugin.socket);
		else if (strcmp(n->key, "health_timeout") == 0)
			r = config_get_duration(c, n, 1000, &plugin.health_timeout_ms);
		else
			config_warn(c, n->key_at, n->key, "is unknown and has no effect");
	}
	if (r < 0)
		return r;
	if (!plugin.socket[0] || !plugin.kind)
		return config_fail(c, node->key_at, "csi_plugin \"%s\": expected %s", plugin.id,
		    plugin.kind ? "socket, the path of the plugin's socket"
				: "type = \"node\", \"controller\" or \"monolith\"");
	return set_plugin(c, node, &plugin);
}

const struct config_attr config_csi_plugin_attrs[] = { { .fn = read_csi_plugin } };

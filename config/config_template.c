// SPDX-License-Identifier: Apache-2.0
/* config_template.c: what the templates of tasks may do: client { template { … } }. Runs in: the
 * launcher's configuration child, cli. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/glob.h"
#include "config/config_reader.h"

/* Adds a name, or a pattern of glob.h, to the list. */
static int
read_denied(struct config_reader *c, const struct hcl_node *node)
{
	char *list = c->config->template.denied, name[CONFIG_NAME_SIZE];
	const size_t size = sizeof c->config->template.denied, len = strlen(list);
	int r = config_get_text(c, node, "function_denylist", name, sizeof name);

	if (r < 0)
		return r;
	for (const char *at = name; *at; at++)
		if (!isalnum((unsigned char)*at) && *at != '_' && *at != '*')
			return config_fail(
			    c, node->at, "function_denylist: \"%.64s\" is no function", name);
	if (!*name || len + strlen(name) + 2 > size)
		return config_fail(c, node->at,
		    "function_denylist: expected names of functions, of at most %zu bytes together",
		    size - 1);
	(void)snprintf(list + len, size - len, "%s%s", len > 0 ? " " : "", name);
	return 0;
}

/* The list replaces the default, as Nomad has it; drover does not have the functions of the
 * default. */
static int
read_denylist(struct config_reader *c, const struct hcl_node *node)
{
	char *list = c->config->template.denied;
	int r;

	list[0] = '\0';
	r = config_each_string(c, node, node->key, read_denied);
	if (r < 0)
		return r;
	if (!glob_list_fits(list, "plugin") || !glob_list_fits(list, "writeToFile"))
		config_warn(c, node->key_at, node->key,
		    "permits no more than without it: plugin and writeToFile are always disabled");
	return 0;
}

static int
read_sandbox(struct config_reader *c, const struct hcl_node *node)
{
	bool disabled = false;
	int r = config_get_bool(c, node, node->key, &disabled);

	if (r == 0 && disabled)
		config_warn(c, node->key_at, node->key,
		    "has no effect: templates read only files of their task's directories");
	return r;
}

/* A wait of 0 s means that a change is rendered at once. */
#define WAIT(reader, field)                                                                        \
	static int reader(struct config_reader *c, const struct hcl_node *node)                    \
	{                                                                                          \
		return config_get_duration(c, node, 0, &c->config->field);                         \
	}
WAIT(read_wait_min, template.wait_min_ms)
WAIT(read_wait_max, template.wait_max_ms)
WAIT(read_bounds_min, template.bounds_min_ms)
WAIT(read_bounds_max, template.bounds_max_ms)

static const struct config_attr wait_attrs[] = {
	CALL("min", read_wait_min),
	CALL("max", read_wait_max),
	{ 0 },
};

static const struct config_attr bounds_attrs[] = {
	CALL("min", read_bounds_min),
	CALL("max", read_bounds_max),
	{ 0 },
};

const struct config_attr config_template_attrs[] = {
	CALL("function_denylist", read_denylist),
	CALL("function_blacklist", read_denylist),
	CALL("disable_file_sandbox", read_sandbox),
	BLOCK("wait", wait_attrs),
	BLOCK("wait_bounds", bounds_attrs),
	UNUSED_AS("block_query_wait", "has no effect: servers are asked again every few minutes"),
	UNUSED_AS("max_stale", "has no effect: templates get no values of Consul"),
	UNUSED_AS("nomad_retry", "has no effect: servers are asked until they answer"),
	UNUSED_AS("consul_retry", "has no effect: templates get no values of Consul"),
	UNUSED_AS("use_client_consul_token", "has no effect: templates get no values of Consul"),
	UNUSED_AS("vault_retry", "has no effect: templates get no values of Vault"),
	UNUSED_AS(
	    "vault_default_lease_duration", "has no effect: templates get no values of Vault"),
	{ 0 },
};

static void
check_wait(struct config_sink *sink, const char *name, uint64_t min, uint64_t max)
{
	char text[ERR_MSG_SIZE];

	if (min <= max)
		return;
	(void)snprintf(text, sizeof text,
	    "client.template.%s: min (%llu ms) is above max (%llu ms)", name,
	    (unsigned long long)min, (unsigned long long)max);
	config_say(sink, true, text);
}

void
config_check_template(const struct agent_config *config, struct config_sink *sink)
{
	check_wait(sink, "wait", config->template.wait_min_ms, config->template.wait_max_ms);
	check_wait(
	    sink, "wait_bounds", config->template.bounds_min_ms, config->template.bounds_max_ms);
}

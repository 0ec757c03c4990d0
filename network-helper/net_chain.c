// SPDX-License-Identifier: Apache-2.0
/* net_chain.c: calls the plugins of a network one after the other, as the CNI specification says.
 * Runs in: a worker of network-helper, as root. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/crash.h"
#include "network-helper/net.h"

/* Returns what goes to the stdin of a plugin: its configuration, completed. */
static json_t *
make_input(const json_t *ledger, const json_t *plugin, const json_t *previous)
{
	const json_t *config = json_object_get(ledger, "config");
	json_t *input = json_deep_copy(plugin);

	(void)json_object_set(input, "name", json_object_get(config, "name"));
	(void)json_object_set(input, "cniVersion", json_object_get(config, "cniVersion"));
	if (previous)
		(void)json_object_set(input, "prevResult", (json_t *)(uintptr_t)previous);
	if (json_is_true(json_object_get(json_object_get(plugin, "capabilities"), "portMappings")))
		(void)json_object_set_new(input, "runtimeConfig",
		    json_pack("{s:O}", "portMappings", json_object_get(ledger, "ports")));
	(void)json_object_del(input, "capabilities");
	return input;
}

static int
call(const char *alloc, const char *command, const json_t *ledger, const json_t *plugin,
    const json_t *previous, uint64_t until_ms, json_t **ret, struct err *e)
{
	cleanup_json json_t *input = make_input(ledger, plugin, previous);
	const char *type = json_string_value(json_object_get(plugin, "type"));

	if (!input || !type || !name_is_component(type))
		return err_say(e, -EINVAL, "a plugin of the network has no valid type");
	return net_plugin_run(alloc, command, type,
	    json_string_value(json_object_get(ledger, "args")) ?: "", input, until_ms, ret, e);
}

/* Plugins such as firewall remove only what they find in the result of those before them. So it is
 * kept before the next one is called, also for a DEL after an ADD that did not end. */
static int
keep_result(const char *alloc, json_t *ledger, const char *key, json_t *result, struct err *e)
{
	return json_object_set(ledger, key, result) < 0 ? err_set(e, -ENOMEM, "keep a result")
							: net_ledger_write(alloc, ledger, e);
}

int
net_chain_add(const char *alloc, json_t *ledger, uint64_t until_ms, struct err *e)
{
	const json_t *plugins = json_object_get(json_object_get(ledger, "config"), "plugins");
	cleanup_json json_t *result = NULL;
	const json_t *plugin;
	size_t i;

	json_array_foreach (plugins, i, plugin) {
		json_t *next = NULL;
		int r = call(alloc, "ADD", ledger, plugin, result, until_ms, &next, e);

		CRASH_POINT(NET_AFTER_ADD);
		if (r < 0)
			return r;
		json_decref(result);
		result = next;
		if (result && (r = keep_result(alloc, ledger, "partial", result, e)) < 0)
			return r;
	}
	if (!result)
		return err_say(e, -EBADMSG, "the CNI plugins printed no result");
	return keep_result(alloc, ledger, "result", result, e);
}

/* Before 1.3.0 portmap takes each published port for a fault, because chains of IPv6 are missing.
 * Debian 12 has 1.1.1, which does not say its version. */
static bool
is_reliable(const char *alloc, const json_t *plugin)
{
	const char *type = json_string_value(json_object_get(plugin, "type"));
	char text[NET_MSG_SIZE];
	unsigned major, minor;
	struct err unused = { 0 };

	if (strcmp(type, "portmap") != 0)
		return true;
	return net_plugin_describe(alloc, type, text, &unused) == 0 &&
	       sscanf(text, "CNI portmap plugin v%u.%u", &major, &minor) == 2 &&
	       (major > 1 || (major == 1 && minor >= 3));
}

int
net_chain_check(const char *alloc, const json_t *ledger, uint64_t until_ms, struct err *e)
{
	const json_t *config = json_object_get(ledger, "config"), *plugin;
	const json_t *off = json_object_get(config, "disableCheck");
	size_t i;
	int r = 0;

	/* CHECK is of version 0.4.0. A network without plugins has no version. */
	if (json_is_true(off) || strcmp(json_string_value(off) ?: "", "true") == 0 ||
	    strverscmp(json_string_value(json_object_get(config, "cniVersion")) ?: "", "0.4") < 0)
		return 0;
	json_array_foreach (json_object_get(config, "plugins"), i, plugin) {
		if (is_reliable(alloc, plugin))
			r = call(alloc, "CHECK", ledger, plugin, json_object_get(ledger, "result"),
			    until_ms, NULL, e);
		CRASH_POINT(NET_AFTER_CHECK);
		if (r < 0)
			return r;
	}
	return 0;
}

int
net_chain_del(const char *alloc, const json_t *ledger, uint64_t until_ms, struct err *e)
{
	const json_t *plugins = json_object_get(json_object_get(ledger, "config"), "plugins");
	const json_t *result =
	    json_object_get(ledger, "result") ?: json_object_get(ledger, "partial");
	struct err first = { 0 }, why = { 0 };

	/* All are called, also after a failure of one. */
	for (size_t i = json_array_size(plugins); i-- > 0;) {
		if (call(alloc, "DEL", ledger, json_array_get(plugins, i), result, until_ms, NULL,
			&why) < 0 &&
		    !first.code)
			first = why;
		CRASH_POINT(NET_AFTER_DEL);
	}
	return first.code ? err_say(e, first.code, "%s", first.msg) : 0;
}

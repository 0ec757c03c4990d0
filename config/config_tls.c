// SPDX-License-Identifier: Apache-2.0
/* config_tls.c: tls { }, and the files with certificates, keys and tokens. Runs in: the launcher's
 * configuration child, cli. */
#include <stdio.h>
#include <string.h>

#include "common/ipc.h"
#include "config/config_reader.h"

/* Files that tasks must not see. */
#define SECRETS                                                                                    \
	(1u << FILE_TLS_KEY | 1u << FILE_HEALTH_KEY | 1u << FILE_HEALTH_TOKEN |                    \
	    1u << FILE_IMAGE_AUTH)

_Static_assert(IPC_PEERS <= CONFIG_PROCESSES, "files_of[] has no room for a process");

int
config_read_file(struct config_reader *c, const struct hcl_node *node, enum config_file which)
{
	char *path = c->config->files[which];
	int r = config_get_path(c, node, node->key, path);

	if (r == 0 && SECRETS >> which & 1 && policy_mask_add(c->policy, path) < 0)
		return config_fail(c, node->at, "%s: too many paths to hide from tasks", node->key);
	return r;
}

static int
read_ca_file(struct config_reader *c, const struct hcl_node *node)
{
	return config_read_file(c, node, FILE_TLS_CA);
}

static int
read_cert_file(struct config_reader *c, const struct hcl_node *node)
{
	return config_read_file(c, node, FILE_TLS_CERT);
}

static int
read_key_file(struct config_reader *c, const struct hcl_node *node)
{
	return config_read_file(c, node, FILE_TLS_KEY);
}

const struct config_attr config_tls_attrs[] = {
	BOOL("rpc", tls_rpc),
	BOOL("verify_server_hostname", tls_verify_server_hostname),
	BOOL("http", tls_http),
	BOOL("verify_https_client", tls_verify_https_client),
	CALL("ca_file", read_ca_file),
	CALL("cert_file", read_cert_file),
	CALL("key_file", read_key_file),
	UNUSED_AS(
	    "rpc_upgrade_mode", "has no effect: connections to servers use TLS if tls.rpc is on"),
	UNUSED_AS("tls_cipher_suites", "has no effect: the TLS library chooses"),
	UNUSED_AS("tls_min_version", "has no effect: TLS 1.2 or newer is used"),
	UNUSED_AS("tls_prefer_server_cipher_suites", "has no effect: the TLS library chooses"),
	{ 0 },
};

/* --- after the last file --- */

/* Adds a file to those that a process gets. It is an error if it is needed and not set. */
static void
need_file(const struct agent_config *config, struct config_sink *sink, enum config_file which,
    const char *block, const char *name, const char *why, uint32_t *files)
{
	char text[ERR_MSG_SIZE];

	if (config->files[which][0]) {
		*files |= 1u << which;
	} else if (why) {
		(void)snprintf(text, sizeof text, "%s, but %s.%s is not set", why, block, name);
		config_say(sink, true, text);
	}
}

static void
check_health(struct agent_config *config, struct config_sink *sink)
{
	const char(*files)[CONFIG_PATH_SIZE] = config->files;
	const char *why = files[FILE_HEALTH_CA][0]     ? "health.tls.ca_file is set"
			  : files[FILE_HEALTH_CERT][0] ? "health.tls.cert_file is set"
			  : files[FILE_HEALTH_KEY][0]  ? "health.tls.key_file is set"
						       : NULL;
	uint32_t *mine = &config->files_of[IPC_LISTENER];

	need_file(config, sink, FILE_HEALTH_CA, "health.tls", "ca_file", NULL, mine);
	need_file(config, sink, FILE_HEALTH_CERT, "health.tls", "cert_file", why, mine);
	need_file(config, sink, FILE_HEALTH_KEY, "health.tls", "key_file", why, mine);
	need_file(config, sink, FILE_HEALTH_TOKEN, "health", "token_file", NULL, mine);
	if (config->listen[LISTEN_HEALTH].len > 0)
		return;
	if (why || files[FILE_HEALTH_TOKEN][0])
		config_say(sink, false,
		    "health.tls and health.token_file have no effect without health.address");
	*mine = 0; /* so far it is about this address only */
}

static void
check_rpc(struct agent_config *config, struct config_sink *sink)
{
	static const char *const names[] = { "ca_file", "cert_file", "key_file" };

	for (int i = 0; i < 3 && config->tls_rpc; i++)
		need_file(config, sink, FILE_TLS_CA + i, "tls", names[i], "tls.rpc is on",
		    &config->files_of[IPC_HEARTBEAT]);
}

/* Clients over TCP must identify themselves, by a certificate or by a token, which only TLS
 * protects on a network. */
static void
check_api_policy(const struct agent_config *config, struct config_sink *sink)
{
	const char *at = config->listen[LISTEN_API].text;
	char text[ERR_MSG_SIZE];

	if (!config->tls_http && !config_listen_is_local(&config->listen[LISTEN_API])) {
		(void)snprintf(text, sizeof text,
		    "the API at %s needs TLS: set tls { http = true }, or addresses { http = "
		    "\"127.0.0.1\" }",
		    at);
		config_say(sink, true, text);
	}
	if (!(config->tls_http && config->tls_verify_https_client) && !config->acl_enabled) {
		(void)snprintf(text, sizeof text,
		    "the API at %s would obey everyone who can reach it: set tls { http = true "
		    "verify_https_client = true }, or acl { enabled = true }",
		    at);
		config_say(sink, true, text);
	}
}

static void
check_api(struct agent_config *config, struct config_sink *sink)
{
	const char *why = config->tls_http ? "tls.http is on" : NULL;
	uint32_t *mine = &config->files_of[IPC_LISTENER];

	if (!config_find_api_address(config, sink)) {
		if (config->tls_http)
			config_say(sink, false,
			    "tls.http has no effect without ports { http }, the API's port over "
			    "TCP");
		return;
	}
	check_api_policy(config, sink);
	if (!why)
		return;
	need_file(config, sink, FILE_TLS_CERT, "tls", "cert_file", why, mine);
	need_file(config, sink, FILE_TLS_KEY, "tls", "key_file", why, mine);
	if (config->tls_verify_https_client)
		need_file(config, sink, FILE_TLS_CA, "tls", "ca_file",
		    "tls.verify_https_client is on", mine);
}

void
config_check_files(struct agent_config *config, struct config_sink *sink)
{
	memset(config->files_of, 0, sizeof config->files_of);
	check_rpc(config, sink);
	check_health(config, sink);
	check_api(config, sink);
	need_file(config, sink, FILE_IMAGE_AUTH, "auth", "config", NULL,
	    &config->files_of[IPC_IMAGE_FETCHER]);
}

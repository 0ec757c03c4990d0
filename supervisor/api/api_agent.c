// SPDX-License-Identifier: Apache-2.0
/* api_agent.c: /v1/agent/self, leaks, host and servers. Runs in: supervisor. */
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "supervisor/table/alloc_table.h"
#include "supervisor/http/api.h"
#include "supervisor/api/api_node.h"
#include "supervisor/node/host_facts.h"
#include "supervisor/alloc/leaks.h"
#include "supervisor/node/node_state.h"
#include "supervisor/source/source_api.h"
#include "supervisor/core/sup_child.h"
#include "supervisor/api/api_routes.h"

static json_t *
show_helpers(struct sup *sup)
{
	static const struct {
		enum ipc_peer peer;
		const char *name;
	} helpers[] = { { IPC_EXEC_HELPER, "exec-helper" }, { IPC_MOUNT_HELPER, "mount-helper" },
		{ IPC_CSI_HELPER, "csi-helper" }, { IPC_HEARTBEAT, "heartbeat" },
		{ IPC_CHECK_HELPER, "check-helper" }, { IPC_FILE_HELPER, "file-helper" },
		{ IPC_JOB_PARSER, "job-parser" }, { IPC_FETCHER, "fetcher" },
		{ IPC_TEMPLATE_RENDERER, "template-renderer" }, { IPC_LISTENER, "listener" },
		{ IPC_IMAGE_FETCHER, "image-fetcher" }, { IPC_IMAGE_UNPACKER, "image-unpacker" },
		{ IPC_NETWORK_HELPER, "network-helper" } };
	json_t *all = json_object();

	for (size_t i = 0; i < sizeof helpers / sizeof helpers[0]; i++) {
		char text[64];

		(void)snprintf(text, sizeof text, "pid %u, start %u",
		    child_pid(sup, helpers[i].peer), child_generation(sup, helpers[i].peer));
		(void)json_object_set_new(all, helpers[i].name, json_string(text));
	}
	return all;
}

/* Returns the i-th server that this node knows; NULL after the last. */
static const char *
find_server(const struct sup *sup, size_t i)
{
	const struct source_api *source = sup->source->api;

	return source->server_known ? source->server_known(sup, i) : NULL;
}

static json_t *
show_client(struct sup *sup)
{
	const struct source_api *source = sup->source->api;
	struct text servers = { 0 };
	char count[16];
	json_t *client;

	(void)snprintf(count, sizeof count, "%u", sup->allocs->n);
	for (size_t i = 0; find_server(sup, i); i++)
		text_printf(&servers, "%s%s", i > 0 ? "," : "", find_server(sup, i));
	client = json_pack("{s:s, s:s, s:s, s:s, s:s}", "node_id", str(node_get(sup)->id),
	    "known_servers", str(servers.text), "server", source->server ? source->server(sup) : "",
	    "num_allocations", count, "last_heartbeat", "");
	text_done(&servers);
	return client;
}

/* Attributes of the machine, from the fingerprint. */
static json_t *
show_runtime(const struct node *node)
{
	static const char *const names[][2] = { { "kernel.name", "kernel.name" },
		{ "kernel.version", "kernel.version" }, { "arch", "cpu.arch" },
		{ "os", "os.name" } };
	json_t *runtime = json_object();

	for (size_t i = 0; i < ELEMENTSOF(names); i++)
		(void)json_object_set_new(runtime, names[i][0],
		    json_string(str(string_map_get(&node->attributes, names[i][1]))));
	return runtime;
}

static json_t *
show_config(const struct sup *sup, const struct node *node)
{
	const struct {
		const char *name, *value;
	} texts[] = {
		{ "LogLevel", sup->config->log_level },
		{ "Datacenter", *str(node->datacenter) ? node->datacenter : "dc1" },
		{ "Region", sup->config->region[0] ? sup->config->region : "global" },
		{ "Name", str(node->name) },
		{ "DataDir", sup->args.data_dir },
		{ "Source", sup->source->ops->name },
	};
	json_t *config =
	    json_pack("{s:{s:b}, s:{s:b}, s:{s:b}, s:{s:s, s:s}, s:b}", "Client", "Enabled", true,
		"Server", "Enabled", false, "ACL", "Enabled", sup->config->acl_enabled, "Version",
		"Version", DROVER_VERSION, "Build", sup->args.build, "DevMode", sup->args.dev);

	for (size_t i = 0; i < ELEMENTSOF(texts); i++)
		(void)json_object_set_new(config, texts[i].name, json_string(texts[i].value));
	return config;
}

void
api_get_self(struct sup *sup, struct api_req *req)
{
	const struct node *node = node_get(sup);
	json_t *stats = json_pack("{s:o, s:o, s:o}", "client", show_client(sup), "processes",
	    show_helpers(sup), "runtime", show_runtime(node));

	api_reply_json(req, json_pack("{s:o, s:{}, s:o}", "config", show_config(sup, node),
				"member", "stats", stats));
}

static void
on_leaks(struct sup *sup, void *arg, json_t *list)
{
	api_reply_json(arg, list);
}

void
api_get_leaks(struct sup *sup, struct api_req *req)
{
	leaks_collect(sup, on_leaks, req);
}

/* If the request names a node, the answer contains the node's id, as clients expect. */
void
api_get_host(struct sup *sup, struct api_req *req)
{
	const char *node_id = api_query(req, "node_id");
	cleanup_done(rpc_host_rep) struct rpc_host_rep rep;

	rpc_host_rep_init(&rep);
	if (*str(api_query(req, "server_id")))
		api_reply_error(req, 400, "this agent has no servers");
	else if (*str(node_id) && !str_eq(node_id, node_get(sup)->id))
		api_reply_error(req, 404, "Unknown node \"%s\"", node_id);
	else {
		rep.host_data = host_data_new();
		host_facts_fill(sup, rep.host_data);
		str_set(&rep.agent_id, node_get(sup)->id);
		if (*str(node_id))
			api_reply_model(req, &rpc_host_rep_type, &rep);
		else
			api_reply_model(req, &host_data_type, rep.host_data);
	}
}

/* Lists the servers that this node knows. */
void
api_get_servers(struct sup *sup, struct api_req *req)
{
	json_t *list = json_array();

	for (size_t i = 0; find_server(sup, i); i++)
		(void)json_array_append_new(list, json_string(find_server(sup, i)));
	api_reply_json(req, list);
}

void
api_put_servers(struct sup *sup, struct api_req *req)
{
	api_reply_error(req, 501,
	    "the servers cannot be changed here: change client { servers } in the configuration "
	    "and reload the agent");
}

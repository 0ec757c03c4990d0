// SPDX-License-Identifier: Apache-2.0
/* cli_node_meta.c: drover node meta read, node meta apply. Runs in: cli. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli_api.h"
#include "cli/cli_print.h"
#include "cli/cli_verbs.h"
#include "common/mem.h"

static struct {
	const char *node;
	struct strings unset;
} options;

#define NODE_ID_FLAG                                                                               \
	{                                                                                          \
		"node-id", CLI_FLAG_STRING, &options.node, "NODE",                                 \
		    "this node instead of the agent's own"                                         \
	}

const struct cli_flag cli_node_meta_read_flags[] = { NODE_ID_FLAG, { 0 } };

const struct cli_flag cli_node_meta_apply_flags[] = {
	NODE_ID_FLAG,
	{ "unset", CLI_FLAG_STRINGS, &options.unset, "KEY",
	    "remove a key, also one from the configuration; may be repeated" },
	{ 0 },
};

/* Builds an object from KEY=VALUE words, with null for each -unset. A new reference; NULL with *e.
 */
static json_t *
read_changes(int n, char **words, struct err *e)
{
	cleanup_json json_t *meta = json_object();

	if (cli_json_add_pairs(meta, n, words, e) < 0)
		return NULL;
	for (size_t i = 0; i < options.unset.n; i++)
		(void)json_object_set_new(meta, options.unset.v[i], json_null());
	if (json_object_size(meta) == 0) {
		(void)err_say(e, -EINVAL, "nothing to change: give KEY=VALUE or -unset KEY");
		return NULL;
	}
	return json_incref(meta);
}

static void
print_meta(const struct cli *cli, const json_t *meta)
{
	size_t n;
	cleanup_free const char **keys = cli_json_keys(meta, &n);
	struct cli_table *t;

	if (n == 0) {
		cli_say(cli, "No metadata");
		return;
	}
	t = CLI_TABLE("Key", "Value");
	for (size_t i = 0; i < n; i++) {
		cli_table_row(t);
		cli_cell(t, "%s", keys[i]);
		cli_cell(t, "%s", json_string_value(json_object_get(meta, keys[i])) ?: "");
	}
	cli_table_print(t);
}

/* changes: NULL only reads. */
static int
read_or_apply(struct cli *cli, const json_t *changes, struct err *e)
{
	cleanup_free char *id = NULL, *target = NULL;
	cleanup_json json_t *answer = NULL;
	int r = options.node ? cli_id_resolve(cli, &cli_kind_node, options.node, &id, e)
			     : cli_id_self(cli, &id, e);

	if (r < 0)
		return r;
	target = cli_target("/v1/client/metadata?node_id=%s", id);
	if (changes)
		r = cli_api_send_new(cli, "POST", target,
		    json_pack("{s:s, s:O}", "NodeID", id, "Meta", changes), &answer, e);
	else
		r = cli_api_get(cli, target, &answer, e);
	if (r == 0 && cli->json)
		return cli_json_print(answer, e);
	if (r == 0)
		print_meta(cli, cli_json_get(answer, "Meta"));
	return r;
}

int
cli_node_meta_read(struct cli *cli, int argc, char **argv)
{
	struct err e = { 0 };

	(void)argc;
	(void)argv;
	return read_or_apply(cli, NULL, &e) < 0 ? cli_fail(cli, &e) : CLI_OK;
}

int
cli_node_meta_apply(struct cli *cli, int argc, char **argv)
{
	struct err e = { 0 };
	cleanup_json json_t *changes = read_changes(argc, argv, &e);
	int r = changes ? read_or_apply(cli, changes, &e) : e.code;

	strings_done(&options.unset);
	return r < 0 ? cli_fail(cli, &e) : CLI_OK;
}

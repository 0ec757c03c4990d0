// SPDX-License-Identifier: Apache-2.0
/* cli_acl_token.c: drover acl token. Runs in: cli. */
#include <errno.h>

#include "cli/cli_acl.h"
#include "cli/cli_api.h"
#include "cli/cli_list.h"
#include "cli/cli_print.h"
#include "cli/cli_verbs.h"
#include "common/cleanup.h"

static struct {
	const char *name, *type, *ttl;
	struct strings policies, role_ids, role_names;
	bool global;
} options;

#define TOKEN_FLAGS                                                                                \
	{ "name", CLI_FLAG_STRING, &options.name, "TEXT", "its name" },                            \
	    { "policy", CLI_FLAG_STRINGS, &options.policies, "POLICY",                             \
		    "a policy of a client token; may be repeated" },                               \
	    { "role-id", CLI_FLAG_STRINGS, &options.role_ids, "ROLE",                              \
		    "a role of a client token, by its id; may be repeated" },                      \
	    { "role-name", CLI_FLAG_STRINGS, &options.role_names, "NAME",                          \
		    "a role of a client token, by its name; may be repeated" },                    \
	{                                                                                          \
		"type", CLI_FLAG_STRING, &options.type, "client|management",                       \
		    "management permits everything; default: client"                               \
	}

const struct cli_flag cli_acl_token_create_flags[] = {
	{ "global", CLI_FLAG_BOOL, &options.global, NULL, "mark it as valid in all regions" },
	TOKEN_FLAGS,
	{ "ttl", CLI_FLAG_STRING, &options.ttl, "DURATION",
	    "until it expires: 1m to 24h; default: never" },
	{ 0 },
};

const struct cli_flag cli_acl_token_update_flags[] = { TOKEN_FLAGS, { 0 } };

void
cli_acl_print_token(const struct cli *cli, const json_t *token)
{
	cleanup_free char *policies = cli_join(json_object_get(token, "Policies"), ", ");
	cleanup_free char *roles = cli_acl_names(json_object_get(token, "Roles"));
	char when[CLI_TIME_SIZE];

	cli_field("Accessor ID", "%s", cli_json_str(token, "AccessorID"));
	cli_field("Secret ID", "%s", cli_json_str(token, "SecretID"));
	cli_field("Name", "%s", cli_json_str(token, "Name"));
	cli_field("Type", "%s", cli_json_str(token, "Type"));
	cli_field("Global", "%s", cli_yes(cli_json_true(token, "Global")));
	cli_field("Created", "%s", cli_time(cli, cli_json_time_ns(token, "CreateTime"), when));
	cli_field("Expires", "%s", cli_json_str(token, "ExpirationTime"));
	cli_field("Policies", "%s", policies);
	cli_field("Roles", "%s", roles);
}

static void
token_cells(const struct cli *cli, struct cli_table *t, const json_t *token)
{
	const char *expires = cli_json_str(token, "ExpirationTime");

	(void)cli;
	cli_cell(t, "%s", cli_json_str(token, "AccessorID"));
	cli_cell(t, "%s", cli_json_str(token, "Name"));
	cli_cell(t, "%s", cli_json_str(token, "Type"));
	cli_cell(t, "%s", *expires ? expires : "never");
}

static const struct cli_list tokens = {
	.none = "No tokens",
	CLI_HEADS("Accessor", "Name", "Type", "Expires"),
	.cells = token_cells,
};

int
cli_acl_token_list(struct cli *cli, int argc, char **argv)
{
	struct err e = { 0 };

	(void)argc;
	(void)argv;
	return cli_list_get(cli, &tokens, "/v1/acl/tokens", &e) < 0 ? cli_fail(cli, &e) : CLI_OK;
}

int
cli_acl_token_info(struct cli *cli, int argc, char **argv)
{
	cleanup_free char *target = cli_target("/v1/acl/token/%s", argv[0]);
	struct err e = { 0 };

	(void)argc;
	return cli_show(cli, target, cli_acl_print_token, &e) < 0 ? cli_fail(cli, &e) : CLI_OK;
}

int
cli_acl_token_self(struct cli *cli, int argc, char **argv)
{
	struct err e = { 0 };

	(void)argc;
	(void)argv;
	return cli_show(cli, "/v1/acl/token/self", cli_acl_print_token, &e) < 0 ? cli_fail(cli, &e)
										: CLI_OK;
}

int
cli_acl_token_delete(struct cli *cli, int argc, char **argv)
{
	cleanup_free char *target = cli_target("/v1/acl/token/%s", argv[0]);
	struct err e = { 0 };

	(void)argc;
	if (cli_api_send(cli, "DELETE", target, NULL, NULL, &e) < 0)
		return cli_fail(cli, &e);
	cli_say(cli, "Token %s is deleted", argv[0]);
	return CLI_OK;
}

/* Sets what the flags say. Returns 0, or -1 if one is not valid UTF-8. */
static int
change_token(json_t *token)
{
	json_t *roles;
	int r = 0;

	if (options.name)
		r |= json_object_set_new(token, "Name", json_string(options.name));
	if (options.type)
		r |= json_object_set_new(token, "Type", json_string(options.type));
	if (options.policies.n > 0)
		r |= json_object_set_new(
		    token, "Policies", cli_json_strings(options.policies.v, options.policies.n));
	if (options.role_ids.n + options.role_names.n > 0) {
		cleanup_json json_t *named = cli_acl_links("Name", &options.role_names);

		roles = cli_acl_links("ID", &options.role_ids);
		r |= named && roles ? json_array_extend(roles, named) : -1;
		r |= json_object_set_new(token, "Roles", roles);
	}
	return r;
}

static int
send_token(struct cli *cli, const char *target, json_t *token, struct err *e)
{
	json_t *answer = NULL;
	int r = change_token(token);

	strings_done(&options.policies);
	strings_done(&options.role_ids);
	strings_done(&options.role_names);
	if (r < 0)
		return err_say(e, -EINVAL, "an argument is not valid UTF-8");
	r = cli_api_send(cli, "PUT", target, token, &answer, e);
	return r < 0 ? r : cli_acl_show(cli, answer, cli_acl_print_token, e);
}

int
cli_acl_token_create(struct cli *cli, int argc, char **argv)
{
	cleanup_json json_t *token =
	    json_pack("{s:s, s:b}", "Type", "client", "Global", options.global);
	struct err e = { 0 };
	int r = 0;

	(void)argc;
	(void)argv;
	if (options.ttl &&
	    json_object_set_new(token, "ExpirationTTL", json_string(options.ttl)) < 0)
		r = err_say(&e, -EINVAL, "an argument is not valid UTF-8");
	if (r == 0)
		r = send_token(cli, "/v1/acl/token", token, &e);
	return r < 0 ? cli_fail(cli, &e) : CLI_OK;
}

int
cli_acl_token_update(struct cli *cli, int argc, char **argv)
{
	cleanup_free char *target = cli_target("/v1/acl/token/%s", argv[0]);
	cleanup_json json_t *token = NULL;
	struct err e = { 0 };

	(void)argc;
	if (cli_api_get(cli, target, &token, &e) < 0 || send_token(cli, target, token, &e) < 0)
		return cli_fail(cli, &e);
	return CLI_OK;
}

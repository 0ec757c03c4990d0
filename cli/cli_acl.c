// SPDX-License-Identifier: Apache-2.0
/* cli_acl.c: drover acl bootstrap, policy and role. Runs in: cli. */
#include "cli/cli_acl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli_api.h"
#include "cli/cli_file.h"
#include "cli/cli_list.h"
#include "cli/cli_print.h"
#include "cli/cli_verbs.h"
#include "common/mem.h"

static struct {
	const char *description, *job, *group, *task, *name;
	struct strings policies;
	bool by_name;
} options;

const struct cli_flag cli_acl_policy_apply_flags[] = {
	{ "description", CLI_FLAG_STRING, &options.description, "TEXT", "its description" },
	{ "group", CLI_FLAG_STRING, &options.group, "GROUP", "only for identities of this group" },
	{ "job", CLI_FLAG_STRING, &options.job, "JOB",
	    "for the identities of this job's tasks, in -namespace" },
	{ "task", CLI_FLAG_STRING, &options.task, "TASK", "only for identities of this task" },
	{ 0 },
};

const struct cli_flag cli_acl_role_flags[] = {
	{ "description", CLI_FLAG_STRING, &options.description, "TEXT", "its description" },
	{ "name", CLI_FLAG_STRING, &options.name, "NAME", "its name" },
	{ "policy", CLI_FLAG_STRINGS, &options.policies, "POLICY", "a policy; may be repeated" },
	{ 0 },
};

const struct cli_flag cli_acl_role_info_flags[] = {
	{ "by-name", CLI_FLAG_BOOL, &options.by_name, NULL, "the word is a name, not an id" },
	{ 0 },
};

int
cli_acl_show(struct cli *cli, json_t *answer, cli_print_fn *print, struct err *e)
{
	int r = 0;

	if (cli->json)
		r = cli_json_print(answer, e);
	else
		print(cli, answer);
	json_decref(answer);
	return r;
}

char *
cli_acl_names(const json_t *links)
{
	cleanup_json json_t *names = json_array();
	const json_t *link;
	size_t i;

	json_array_foreach (links, i, link)
		(void)json_array_append(names, json_object_get(link, "Name"));
	return cli_join(names, ", ");
}

/* --- the first token --- */

/* Reads a secret of 36 characters. */
static int
read_secret(const char *path, json_t **ret, struct err *e)
{
	struct cli_file file = { 0 };
	int r = cli_file_open_filled(path, &file, e);

	if (r == 0) {
		file.text[strcspn(file.text, "\r\n")] = '\0';
		*ret = json_pack("{s:s}", "BootstrapSecret", file.text);
	}
	cli_file_done(&file);
	return r < 0 ? r : *ret ? 0 : err_say(e, -EINVAL, "the secret is not valid UTF-8");
}

int
cli_acl_bootstrap(struct cli *cli, int argc, char **argv)
{
	cleanup_json json_t *body = NULL;
	json_t *answer = NULL;
	struct err e = { 0 };
	int r = argc > 0 ? read_secret(argv[0], &body, &e) : 0;

	if (r == 0)
		r = cli_api_send(cli, "PUT", "/v1/acl/bootstrap", body, &answer, &e);
	if (r == 0)
		r = cli_acl_show(cli, answer, cli_acl_print_token, &e);
	return r < 0 ? cli_fail(cli, &e) : CLI_OK;
}

/* --- policies --- */

static void
policy_cells(const struct cli *cli, struct cli_table *t, const json_t *policy)
{
	(void)cli;
	cli_cell(t, "%s", cli_json_str(policy, "Name"));
	cli_cell(t, "%s", cli_json_str(policy, "Description"));
}

static const struct cli_list policies = {
	.none = "No policies",
	CLI_HEADS("Name", "Description"),
	.cells = policy_cells,
};

int
cli_acl_policy_list(struct cli *cli, int argc, char **argv)
{
	struct err e = { 0 };

	(void)argc;
	(void)argv;
	return cli_list_get(cli, &policies, "/v1/acl/policies", &e) < 0 ? cli_fail(cli, &e)
									: CLI_OK;
}

static void
print_policy(const struct cli *cli, const json_t *policy)
{
	cleanup_free char *rules = mem_strdup(cli_json_str(policy, "Rules"));
	char *save = NULL;

	(void)cli;
	cli_field("Name", "%s", cli_json_str(policy, "Name"));
	cli_field("Description", "%s", cli_json_str(policy, "Description"));
	cli_field("Namespace", "%s", cli_json_str(policy, "JobACL/Namespace"));
	cli_field("Job", "%s", cli_json_str(policy, "JobACL/JobID"));
	cli_field("Group", "%s", cli_json_str(policy, "JobACL/Group"));
	cli_field("Task", "%s", cli_json_str(policy, "JobACL/Task"));
	cli_head("Rules");
	cli_clean_lines(rules);
	for (char *line = strtok_r(rules, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		cli_line("%s", line);
}

int
cli_acl_policy_info(struct cli *cli, int argc, char **argv)
{
	cleanup_free char *target = cli_target("/v1/acl/policy/%s", argv[0]);
	struct err e = { 0 };

	(void)argc;
	return cli_show(cli, target, print_policy, &e) < 0 ? cli_fail(cli, &e) : CLI_OK;
}

int
cli_acl_policy_delete(struct cli *cli, int argc, char **argv)
{
	cleanup_free char *target = cli_target("/v1/acl/policy/%s", argv[0]);
	struct err e = { 0 };

	(void)argc;
	if (cli_api_send(cli, "DELETE", target, NULL, NULL, &e) < 0)
		return cli_fail(cli, &e);
	cli_say(cli, "Policy \"%s\" is deleted", argv[0]);
	return CLI_OK;
}

/* Returns the request for a policy with these rules; NULL if a word is not valid UTF-8. */
static json_t *
make_policy(const struct cli *cli, const char *name, const char *rules)
{
	json_t *policy = json_pack("{s:s, s:s, s:s}", "Name", name, "Description",
	    options.description ?: "", "Rules", rules);
	json_t *job;

	if (!policy || !(options.job || options.group || options.task))
		return policy;
	job = json_pack("{s:s, s:s, s:s, s:s}", "Namespace",
	    cli->namespace && strcmp(cli->namespace, "*") != 0 ? cli->namespace : "default",
	    "JobID", options.job ?: "", "Group", options.group ?: "", "Task", options.task ?: "");
	if (!job || json_object_set_new(policy, "JobACL", job) < 0) {
		json_decref(policy);
		return NULL;
	}
	return policy;
}

int
cli_acl_policy_apply(struct cli *cli, int argc, char **argv)
{
	cleanup_free char *target = cli_target("/v1/acl/policy/%s", argv[0]);
	struct cli_file file = { 0 };
	struct err e = { 0 };
	int r = cli_file_open(argv[1], &file, &e);

	(void)argc;
	if (r == 0)
		r = cli_api_send_new(
		    cli, "PUT", target, make_policy(cli, argv[0], file.text), NULL, &e);
	cli_file_done(&file);
	if (r < 0)
		return cli_fail(cli, &e);
	cli_say(cli, "Policy \"%s\" is applied", argv[0]);
	return CLI_OK;
}

/* --- roles --- */

static void
role_cells(const struct cli *cli, struct cli_table *t, const json_t *role)
{
	cleanup_free char *names = cli_acl_names(json_object_get(role, "Policies"));

	(void)cli;
	cli_cell(t, "%s", cli_json_str(role, "ID"));
	cli_cell(t, "%s", cli_json_str(role, "Name"));
	cli_cell(t, "%s", cli_json_str(role, "Description"));
	cli_cell(t, "%s", names);
}

static const struct cli_list roles = {
	.none = "No roles",
	CLI_HEADS("ID", "Name", "Description", "Policies"),
	.cells = role_cells,
};

int
cli_acl_role_list(struct cli *cli, int argc, char **argv)
{
	struct err e = { 0 };

	(void)argc;
	(void)argv;
	return cli_list_get(cli, &roles, "/v1/acl/roles", &e) < 0 ? cli_fail(cli, &e) : CLI_OK;
}

static void
print_role(const struct cli *cli, const json_t *role)
{
	cleanup_free char *names = cli_acl_names(json_object_get(role, "Policies"));

	(void)cli;
	cli_field("ID", "%s", cli_json_str(role, "ID"));
	cli_field("Name", "%s", cli_json_str(role, "Name"));
	cli_field("Description", "%s", cli_json_str(role, "Description"));
	cli_field("Policies", "%s", names);
}

int
cli_acl_role_info(struct cli *cli, int argc, char **argv)
{
	cleanup_free char *target =
	    cli_target(options.by_name ? "/v1/acl/role/name/%s" : "/v1/acl/role/%s", argv[0]);
	struct err e = { 0 };

	(void)argc;
	return cli_show(cli, target, print_role, &e) < 0 ? cli_fail(cli, &e) : CLI_OK;
}

int
cli_acl_role_delete(struct cli *cli, int argc, char **argv)
{
	cleanup_free char *target = cli_target("/v1/acl/role/%s", argv[0]);
	struct err e = { 0 };

	(void)argc;
	if (cli_api_send(cli, "DELETE", target, NULL, NULL, &e) < 0)
		return cli_fail(cli, &e);
	cli_say(cli, "Role %s is deleted", argv[0]);
	return CLI_OK;
}

json_t *
cli_acl_links(const char *member, const struct strings *words)
{
	json_t *list = json_array();

	for (size_t i = 0; i < words->n; i++) {
		if (json_array_append_new(list, json_pack("{s:s}", member, words->v[i])) < 0) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

/* Sets what the flags say, and sends the role. */
static int
send_role(struct cli *cli, const char *target, json_t *role, struct err *e)
{
	json_t *answer = NULL;
	int r = 0;

	if (options.name)
		r |= json_object_set_new(role, "Name", json_string(options.name));
	if (options.description)
		r |= json_object_set_new(role, "Description", json_string(options.description));
	if (options.policies.n > 0)
		r |=
		    json_object_set_new(role, "Policies", cli_acl_links("Name", &options.policies));
	strings_done(&options.policies);
	if (r < 0)
		return err_say(e, -EINVAL, "an argument is not valid UTF-8");
	r = cli_api_send(cli, "PUT", target, role, &answer, e);
	return r < 0 ? r : cli_acl_show(cli, answer, print_role, e);
}

int
cli_acl_role_create(struct cli *cli, int argc, char **argv)
{
	cleanup_json json_t *role = json_object();
	struct err e = { 0 };

	(void)argc;
	(void)argv;
	return send_role(cli, "/v1/acl/role", role, &e) < 0 ? cli_fail(cli, &e) : CLI_OK;
}

int
cli_acl_role_update(struct cli *cli, int argc, char **argv)
{
	cleanup_free char *target = cli_target("/v1/acl/role/%s", argv[0]);
	cleanup_json json_t *role = NULL;
	struct err e = { 0 };

	(void)argc;
	if (cli_api_get(cli, target, &role, &e) < 0 || send_role(cli, target, role, &e) < 0)
		return cli_fail(cli, &e);
	return CLI_OK;
}

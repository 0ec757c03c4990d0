// SPDX-License-Identifier: Apache-2.0
/* cli_var.c: drover var get, init, list and purge. Runs in: cli. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli_api.h"
#include "cli/cli_file.h"
#include "cli/cli_list.h"
#include "cli/cli_namespace.h"
#include "cli/cli_print.h"
#include "cli/cli_var.h"
#include "cli/cli_verbs.h"
#include "common/mem.h"

static struct {
	const char *out, *template, *item, *check_index;
	bool quiet;
} options;

#define NO_UI "drover has no web interface"

const struct cli_flag cli_var_get_flags[] = {
	{ "item", CLI_FLAG_STRING, &options.item, "KEY",
	    "print only the value of this item, without a newline after it" },
	{ "out", CLI_FLAG_STRING, &options.out, "table|json|hcl|none|go-template",
	    "the format; by default a table on a terminal, else JSON" },
	CLI_VAR_TEMPLATE_FLAG(&options.template),
	{ "ui", CLI_FLAG_REFUSED, NULL, NULL, NO_UI },
	{ 0 },
};

const struct cli_flag cli_var_list_flags[] = {
	CLI_LIST_FLAGS,
	{ "out", CLI_FLAG_STRING, &options.out, "table|json|terse|go-template",
	    "the format; by default a table on a terminal, else JSON" },
	CLI_VAR_TEMPLATE_FLAG(&options.template),
	{ "ui", CLI_FLAG_REFUSED, NULL, NULL, NO_UI },
	{ 0 },
};

const struct cli_flag cli_var_purge_flags[] = {
	{ "check-index", CLI_FLAG_STRING, &options.check_index, "INDEX",
	    "purge it only if it has this index" },
	{ 0 },
};

const struct cli_flag cli_var_init_flags[] = {
	{ "out", CLI_FLAG_STRING, &options.out, "hcl|json", "the format of the file (hcl)" },
	{ "quiet", CLI_FLAG_BOOL, &options.quiet, NULL, "print nothing" },
	{ 0 },
};

/* --- requests --- */

int
cli_var_check_namespace(const struct cli *cli, struct err *e)
{
	if (cli->namespace && strcmp(cli->namespace, "*") == 0)
		return err_say(e, -EINVAL, "a variable belongs to one namespace, not to \"*\"");
	return 0;
}

int
cli_var_check_index(const char *word, int64_t *ret, struct err *e)
{
	int r = word ? cli_number("-check-index", word, ret, e) : 0;

	return r < 0 ? r : word != NULL;
}

char *
cli_var_target(const struct variable *var, const char *query)
{
	struct text target = { 0 };
	cleanup_free char *namespace = cli_target("namespace=%s", str(var->namespace));
	const char *sep = "?";

	text_printf(&target, "/v1/var");
	for (const char *at = str(var->path); *at; at += strspn(at, "/")) {
		cleanup_free char *part = mem_strndup(at, strcspn(at, "/"));
		cleanup_free char *encoded = cli_target("/%s", part);

		text_append(&target, encoded, strlen(encoded));
		at += strlen(part);
	}
	if (query) {
		text_printf(&target, "?%s", query);
		sep = "&";
	}
	if (var->namespace)
		text_printf(&target, "%s%s", sep, namespace);
	return target.text;
}

static int
read_variable(const json_t *json, struct variable *ret, struct err *e)
{
	struct err why = { 0 };

	variable_done(ret);
	return model_from_json(&variable_type, json, ret, &why) < 0
		   ? err_say(e, -EPROTO, "the agent's answer is not a variable: %s", why.msg)
		   : 0;
}

int
cli_var_send(struct cli *cli, const char *method, const char *target, const struct variable *var,
    struct variable *ret, struct err *e)
{
	cleanup_json json_t *body = var ? model_to_json(&variable_type, var, MODEL_COMPACT) : NULL;
	cleanup_json json_t *answer = NULL;
	int r = cli_api_send(cli, method, target, body, &answer, e);

	if (cli->status == 409 && cli->refusal)
		answer = json_loads(cli->refusal, JSON_ALLOW_NUL, NULL);
	if (!answer || !ret)
		return r;
	if (r < 0 && read_variable(answer, ret, e) == 0) {
		free_p(&cli->refusal); /* it has the items */
		return err_say(e, -EEXIST, "the variable has changed");
	}
	return r < 0 ? r : read_variable(answer, ret, e);
}

int
cli_var_say_conflict(
    const struct cli *cli, int64_t index, const struct variable *found, struct err *e)
{
	char time[CLI_TIME_SIZE];

	if (found->modify_index == 0 && index == 0)
		return err_say(e, -EEXIST,
		    "the variable \"%s\" was not changed: another process holds its lock",
		    str(found->path));
	if (found->modify_index == 0)
		return err_say(e, -EEXIST,
		    "the variable \"%s\" was not changed: there is none with the index %lld, or "
		    "another process holds its lock",
		    str(found->path), (long long)index);
	return err_say(e, -EEXIST,
	    "the variable \"%s\" was not changed: its index is %llu, not %lld, and its last change "
	    "was %s; if you are sure, do it again with -check-index %llu",
	    str(found->path), (unsigned long long)found->modify_index, (long long)index,
	    cli_time(cli, found->modify_time, time), (unsigned long long)found->modify_index);
}

/* Fills in the variable that the command line names. */
static int
name_variable(const struct cli *cli, const char *word, struct variable *ret, struct err *e)
{
	cleanup_free char *path = cli_var_path(word);

	if (!*path)
		return err_say(e, -EINVAL, "the path of the variable is empty");
	cli_var_rename(ret, cli->namespace, path);
	return cli_var_check_namespace(cli, e);
}

/* --- get --- */

static int
print_item(const struct variable *var, const char *key, struct err *e)
{
	const char *value = string_map_get(&var->items, key);

	if (!value)
		return err_say(
		    e, -ENOENT, "the variable \"%s\" has no item \"%s\"", str(var->path), key);
	return fwrite(value, 1, strlen(value), stdout) == strlen(value)
		   ? 0
		   : err_say(e, -EIO, "print the value");
}

int
cli_var_get(struct cli *cli, int argc, char **argv)
{
	cleanup_done(variable) struct variable var;
	cleanup_free char *target = NULL;
	struct err e = { 0 };
	int r;

	(void)argc;
	variable_init(&var);
	r = cli_var_check_out(
	    cli, "table json hcl none go-template", options.template, &options.out, &e);
	if (r == 0)
		r = name_variable(cli, argv[0], &var, &e);
	if (r == 0) {
		target = cli_var_target(&var, NULL);
		r = cli_var_send(cli, "GET", target, NULL, &var, &e);
	}
	if (r == 0)
		r = options.item ? print_item(&var, options.item, &e)
				 : cli_var_show(cli, options.out, &var, &e);
	return r < 0 ? cli_fail(cli, &e) : CLI_OK;
}

/* --- list --- */

static void
variable_cells(const struct cli *cli, struct cli_table *t, const json_t *variable)
{
	char time[CLI_TIME_SIZE];

	cli_cell(t, "%s", cli_json_str(variable, "Namespace"));
	cli_cell(t, "%s", cli_json_str(variable, "Path"));
	cli_cell(t, "%s", cli_time(cli, cli_json_int(variable, "ModifyTime"), time));
}

static void
print_variables(const struct cli *cli, const json_t *variables)
{
	struct cli_table *t;
	const json_t *variable;
	size_t i;

	if (json_array_size(variables) == 0) {
		cli_say(cli, "No matching variables found");
		return;
	}
	t = CLI_TABLE("Namespace", "Path", "Last Updated");
	json_array_foreach (variables, i, variable) {
		cli_table_row(t);
		variable_cells(cli, t, variable);
	}
	cli_table_print(t);
}

/* Prints what names a variable, one per line: its path, after its namespace if there are several.
 */
static void
print_names(const struct cli *cli, const json_t *variables)
{
	bool shown = cli_namespace_shown(cli, variables);
	const json_t *variable;
	size_t i;

	json_array_foreach (variables, i, variable)
		(void)printf("%s%s%s\n", shown ? cli_json_str(variable, "Namespace") : "",
		    shown ? " " : "", cli_json_str(variable, "Path"));
}

int
cli_var_list(struct cli *cli, int argc, char **argv)
{
	cleanup_free char *target = cli_target("/v1/vars?prefix=%s", argc > 0 ? argv[0] : "");
	struct err e = { 0 };
	int r = cli_var_check_out(
	    cli, "table json terse go-template", options.template, &options.out, &e);

	if (r == 0) {
		bool terse = strcmp(options.out, "terse") == 0 || cli_list_options.quiet;

		cli_list_options.quiet = false;
		cli->json = !terse && strcmp(options.out, "json") == 0;
		r = cli_list_show(cli, target, terse ? print_names : print_variables, &e);
	}
	return r < 0 ? cli_fail(cli, &e) : CLI_OK;
}

/* --- purge --- */

int
cli_var_purge(struct cli *cli, int argc, char **argv)
{
	cleanup_done(variable) struct variable var;
	cleanup_free char *target = NULL, *query = NULL, *path = cli_var_path(argv[0]);
	int64_t index = 0;
	struct err e = { 0 };
	int r, checked;

	(void)argc;
	variable_init(&var);
	checked = r = cli_var_check_index(options.check_index, &index, &e);
	if (r >= 0)
		r = name_variable(cli, argv[0], &var, &e);
	if (r == 0) {
		query = checked ? mem_printf("cas=%lld", (long long)index) : NULL;
		target = cli_var_target(&var, query);
		r = cli_var_send(cli, "DELETE", target, NULL, &var, &e);
	}
	if (r == -EEXIST)
		r = cli_var_say_conflict(cli, index, &var, &e);
	if (r == 0)
		cli_say(cli, "The variable \"%s\" is purged", path);
	return r < 0 ? cli_fail(cli, &e) : CLI_OK;
}

/* --- init --- */

static const char hcl_example[] =
    "# `drover var put @spec.nv.hcl` writes this variable.\n"
    "# The path and the namespace may also be given on the command line:\n"
    "# `drover var put -namespace default path/to/variable @spec.nv.hcl`.\n"
    "path      = \"path/to/variable\"\n"
    "namespace = \"default\"\n"
    "\n"
    "# The items are encrypted. Templates reach keys of letters, digits and _ most easily.\n"
    "items {\n"
    "  key1 = \"value 1\"\n"
    "  key2 = \"value 2\"\n"
    "}\n";

static const char json_example[] = "{\n"
				   "  \"Namespace\": \"default\",\n"
				   "  \"Path\": \"path/to/variable\",\n"
				   "  \"Items\": {\n"
				   "    \"key1\": \"value 1\",\n"
				   "    \"key2\": \"value 2\"\n"
				   "  }\n"
				   "}\n";

int
cli_var_init(struct cli *cli, int argc, char **argv)
{
	const char *out = options.out ?: cli->json ? "json" : "hcl", *path;
	bool json = strcmp(out, "json") == 0;
	struct err e = { 0 };

	cli->json = false;
	if (!json && strcmp(out, "hcl") != 0) {
		(void)err_say(&e, -EINVAL, "-out must be one of: hcl json");
		return cli_fail(cli, &e);
	}
	path = argc > 0 ? argv[0] : json ? "spec.nv.json" : "spec.nv.hcl";
	if (cli_file_write_example(path, json ? json_example : hcl_example, true, &e) < 0)
		return cli_fail(cli, &e);
	if (!options.quiet)
		cli_say(cli, "%s is written; `drover var put @%s` writes the variable", path, path);
	return CLI_OK;
}

// SPDX-License-Identifier: Apache-2.0
/* cli_namespaces.c: drover namespace apply, delete, list and status. Runs in: cli. */
#include <errno.h>
#include <string.h>

#include "cli/cli_api.h"
#include "cli/cli_file.h"
#include "cli/cli_list.h"
#include "cli/cli_print.h"
#include "cli/cli_verbs.h"
#include "common/mem.h"

static struct {
	const char *description;
	struct strings meta;
} options;

const struct cli_flag cli_namespace_apply_flags[] = {
	{ "description", CLI_FLAG_STRING, &options.description, "TEXT", "its description" },
	{ "meta", CLI_FLAG_STRINGS, &options.meta, "KEY=VALUE", "metadata; may be repeated" },
	{ 0 },
};

static void
namespace_cells(const struct cli *cli, struct cli_table *t, const json_t *namespace)
{
	(void)cli;
	cli_cell(t, "%s", cli_json_str(namespace, "Name"));
	cli_cell(t, "%s", cli_json_str(namespace, "Description"));
}

static const struct cli_list namespaces = {
	CLI_HEADS("Name", "Description"),
	.cells = namespace_cells,
};

int
cli_namespace_list(struct cli *cli, int argc, char **argv)
{
	struct err e = { 0 };

	(void)argc;
	(void)argv;
	return cli_list_get(cli, &namespaces, "/v1/namespaces", &e) < 0 ? cli_fail(cli, &e)
									: CLI_OK;
}

static void
print_names(const char *name, const json_t *list)
{
	cleanup_free char *names = cli_join(list, ", ");

	cli_field(name, "%s", names);
}

static void
print_namespace(const struct cli *cli, const json_t *namespace)
{
	const json_t *value;
	const char *key;

	(void)cli;
	cli_field("Name", "%s", cli_json_str(namespace, "Name"));
	cli_field("Description", "%s", cli_json_str(namespace, "Description"));
	cli_field("Quota", "%s", cli_json_str(namespace, "Quota"));
	print_names("Enabled Drivers", cli_json_get(namespace, "Capabilities/EnabledTaskDrivers"));
	print_names(
	    "Disabled Drivers", cli_json_get(namespace, "Capabilities/DisabledTaskDrivers"));
	print_names("Enabled Modes", cli_json_get(namespace, "Capabilities/EnabledNetworkModes"));
	print_names("Disabled Modes", cli_json_get(namespace, "Capabilities/DisabledNetworkModes"));
	json_object_foreach (cli_json_get(namespace, "Meta"), key, value)
		cli_field(key, "%s", json_string_value(value) ?: "");
}

int
cli_namespace_status(struct cli *cli, int argc, char **argv)
{
	cleanup_free char *target = cli_target("/v1/namespace/%s", argv[0]);
	struct err e = { 0 };

	(void)argc;
	return cli_show(cli, target, print_namespace, &e) < 0 ? cli_fail(cli, &e) : CLI_OK;
}

int
cli_namespace_delete(struct cli *cli, int argc, char **argv)
{
	cleanup_free char *target = cli_target("/v1/namespace/%s", argv[0]);
	struct err e = { 0 };

	(void)argc;
	if (cli_api_send(cli, "DELETE", target, NULL, NULL, &e) < 0)
		return cli_fail(cli, &e);
	cli_say(cli, "Namespace \"%s\" is deleted", argv[0]);
	return CLI_OK;
}

/* Sets what the flags say. Returns 0, or -EINVAL with a sentence. */
static int
change_namespace(json_t *namespace, struct err *e)
{
	json_t *meta = json_object_get(namespace, "Meta");

	if (options.description)
		(void)json_object_set_new(
		    namespace, "Description", json_string(options.description));
	if (options.meta.n > 0 && !json_is_object(meta)) {
		meta = json_object();
		(void)json_object_set_new(namespace, "Meta", meta);
	}
	for (size_t i = 0; i < options.meta.n; i++) {
		char *equals = strchr(options.meta.v[i], '=');

		if (!equals || equals == options.meta.v[i])
			return err_say(
			    e, -EINVAL, "-meta must be KEY=VALUE, not \"%s\"", options.meta.v[i]);
		*equals = '\0';
		if (json_object_set_new(meta, options.meta.v[i], json_string(equals + 1)) < 0)
			return err_say(e, -EINVAL, "an argument is not valid UTF-8");
	}
	return 0;
}

/* Reads the namespace of a file; or the existing one of this name, or a new one. */
static int
read_namespace(struct cli *cli, const char *word, json_t **ret, struct err *e)
{
	cleanup_free char *target = cli_target("/v1/namespace/%s", word);
	int r;

	if (strcmp(word, "-") == 0 || strpbrk(word, "./"))
		return cli_file_read(word, "namespace", ret, e);
	r = cli_api_get(cli, target, ret, e);
	if (r != -ENOENT)
		return r;
	*ret = json_pack("{s:s}", "Name", word);
	return *ret ? 0 : err_say(e, -EINVAL, "an argument is not valid UTF-8");
}

int
cli_namespace_apply(struct cli *cli, int argc, char **argv)
{
	cleanup_json json_t *namespace = NULL;
	struct err e = { 0 };
	int r;

	(void)argc;
	r = read_namespace(cli, argv[0], &namespace, &e);
	if (r == 0)
		r = change_namespace(namespace, &e);
	if (r == 0)
		r = cli_api_send(cli, "PUT", "/v1/namespaces", namespace, NULL, &e);
	if (r == 0)
		cli_say(cli, "Namespace \"%s\" is applied", cli_json_str(namespace, "Name"));
	strings_done(&options.meta);
	return r < 0 ? cli_fail(cli, &e) : CLI_OK;
}

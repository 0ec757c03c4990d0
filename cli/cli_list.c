// SPDX-License-Identifier: Apache-2.0
/* cli_list.c: gets lists of objects and prints them as tables. Runs in: drover. */
#include "cli/cli_list.h"

#include <stdlib.h>

#include "cli/cli_alloc.h"
#include "cli/cli_namespace.h"

void
cli_list_print(const struct cli *cli, const struct cli_list *list, const json_t *objects)
{
	bool shown = cli_namespace_shown(cli, objects);
	struct cli_table *t;
	const json_t *object;
	const char *key;
	size_t i;

	if (list->none && json_array_size(objects) == 0 && json_object_size(objects) == 0) {
		cli_say(cli, "%s", list->none);
		return;
	}
	t = cli_table_new(list->heads, list->n_heads);
	if (shown)
		cli_table_column(t, "Namespace");
	json_array_foreach (objects, i, object) {
		cli_table_row(t);
		list->cells(cli, t, object);
		if (shown)
			cli_cell(t, "%s", cli_json_str(object, "Namespace"));
	}
	json_object_foreach ((json_t *)objects, key, object) {
		cli_table_row(t);
		list->cells(cli, t, object);
	}
	cli_table_print(t);
}

void
cli_map_print(const char *head, const json_t *map)
{
	size_t n;
	cleanup_free const char **names = cli_json_keys(map, &n);

	cli_head("%s", head);
	for (size_t i = 0; i < n; i++) {
		const json_t *value = json_object_get(map, names[i]);
		cleanup_free char *other = json_is_string(value)
					       ? NULL
					       : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);

		cli_field(names[i], "%s", other ? other : json_string_value(value) ?: "");
	}
}

int
cli_list_get(struct cli *cli, const struct cli_list *list, const char *target, struct err *e)
{
	cleanup_json json_t *objects = NULL;
	int r;

	if (cli->json)
		return cli_api_print(cli, target, e);
	r = cli_api_get(cli, target, &objects, e);
	if (r == 0)
		cli_list_print(cli, list, objects);
	return r;
}

int
cli_show(struct cli *cli, const char *target, cli_print_fn *print, struct err *e)
{
	cleanup_json json_t *object = NULL;
	int r;

	if (cli->json)
		return cli_api_print(cli, target, e);
	r = cli_api_get(cli, target, &object, e);
	if (r == 0)
		print(cli, object);
	return r;
}

int
cli_show_with_allocs(struct cli *cli, const char *target, const char *placed, const char *head,
    cli_print_fn *print, struct err *e)
{
	cleanup_json json_t *allocs = NULL;
	int r = cli_show(cli, target, print, e);

	if (r < 0 || cli->json)
		return r;
	r = cli_api_get(cli, placed, &allocs, e);
	if (r < 0)
		return r;
	cli_head("%s", head);
	cli_print_allocs(cli, allocs);
	return 0;
}
